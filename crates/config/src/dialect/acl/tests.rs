use opscope_capture::{
    Exclusion, FailureDetail, ModelSelection, NameRange, OperatorKey, OperatorSelection, Purpose,
    Sides,
};
use opscope_store::record::Side;

use super::*;

/// A directory to dump into, and what `load` says of a configuration with `@` for that directory.
fn load_in(config: &str) -> (tempfile::TempDir, Result<AclConfig, Vec<Issue>>) {
    let dir = tempfile::tempdir().unwrap();
    let text = config.replace('@', dir.path().to_str().unwrap());
    let env = Environment {
        current_dir: dir.path().to_owned(),
        ..Environment::default()
    };
    let result = load(&text, &env);
    (dir, result)
}

/// What is loaded of a `dump` object with these members, beside `dump_path`.
fn loaded(members: &str) -> AclConfig {
    let config = format!(r#"{{"dump": {{"dump_path": "@", {members}}}}}"#);
    let (_dir, result) = load_in(&config);
    result.unwrap_or_else(|issues| panic!("{config}: {issues:?}"))
}

fn dump_of(members: &str) -> AclDump {
    loaded(members).dump.unwrap()
}

fn named(names: &[&str]) -> OperatorSelection {
    OperatorSelection::named(names.iter().copied())
}

fn every() -> ModelSelection {
    ModelSelection::Every(OperatorSelection::every())
}

/// What is left out of every plan for values of models.
fn never_dumped() -> Vec<Exclusion> {
    let exclusion = |operators: OperatorKey| Exclusion {
        model: None,
        operators,
        slots: None,
    };
    let never = ["If", "Loop", "Scan", "Constant"].map(|name| OperatorKey::Type(name.into()));
    let unless_named = [
        "Concat",
        "ConcatD",
        "ConcatV2",
        "ConcatV2D",
        "ConcatFromSequence",
        "Split",
        "SplitD",
        "SplitV",
        "SplitVD",
        "SplitToSequence",
    ];
    let unless_named = unless_named.map(|name| OperatorKey::UnnamedOfType(name.into()));
    never
        .into_iter()
        .chain(unless_named)
        .map(exclusion)
        .collect()
}

#[test]
fn the_documented_example() {
    let dump = dump_of(
        r#""dump_list": [{"model_name": "ResNet-101"},
            {"model_name": "ResNet-50", "layer": ["conv1", "pool1"]}],
            "dump_mode": "output", "dump_op_switch": "off", "dump_data": "tensor""#,
    );
    let models = ModelSelection::Named(vec![
        ("ResNet-101".into(), OperatorSelection::every()),
        ("ResNet-50".into(), named(&["conv1", "pool1"])),
    ]);
    let plan = Plan {
        models,
        sides: Sides::Outputs,
        excluded: never_dumped(),
        ..Plan::everything()
    };
    assert_eq!((dump.plan, dump.mode), (plan, Mode::Operator));
    assert_eq!(dump.content, Content::Tensors);
    assert!(!dump.has_single_operators);
}

#[test]
fn lists_and_switches() {
    let on = r#""dump_op_switch": "on""#;
    let cases = [
        (r#""dump_list": [{}]"#.to_owned(), every()),
        (on.to_owned(), every()),
        (format!(r#"{on}, "dump_list": []"#), every()),
        (
            format!(r#"{on}, "dump_list": [{{"model_name": ""}}]"#),
            every(),
        ),
        (
            format!(r#"{on}, "dump_list": [{{"layer": []}}, {{"model_name": "a"}}]"#),
            ModelSelection::Named(vec![("a".into(), OperatorSelection::every())]),
        ),
        (
            r#""dump_list": [{"model_name": "a"}, {"layer": ["x"]}]"#.to_owned(),
            ModelSelection::Every(named(&["x"])),
        ),
        (
            r#""dump_list": [{"layer": ["x"]}, {"layer": ["y"]}, {"model_name": "a"}]"#.to_owned(),
            ModelSelection::Every(named(&["y"])),
        ),
        (
            r#""dump_list": [{"model_name": "a", "layer": ["x"]}, {"model_name": "b"},
                {"model_name": "a", "layer": ["y"]}]"#
                .to_owned(),
            ModelSelection::Named(vec![
                ("b".into(), OperatorSelection::every()),
                ("a".into(), named(&["y"])),
            ]),
        ),
        (
            r#""dump_level": "kernel", "dump_list": [{}]"#.to_owned(),
            ModelSelection::None,
        ),
    ];
    for (members, models) in cases {
        let dump = dump_of(&members);
        assert_eq!(dump.plan.models, models, "{members}");
        assert_eq!(
            dump.has_single_operators,
            members.contains("\"on\""),
            "{members}"
        );
    }
}

#[test]
fn ranges_and_blacklists() {
    let dump = dump_of(
        r#""dump_level": "op", "dump_list": [
            {"model_name": "a", "layer": ["x"], "opname_range": [{"begin": "b", "end": "e"}],
             "opname_blacklist": [{"name": "x", "pos": ["input0", "output2", "in3"]}, {"name": "y"}]},
            {"model_name": "b", "optype_blacklist": [{"name": "Conv", "pos": ["input1"]}]},
            {"model_name": "b", "optype_blacklist": [{"name": "Add", "pos": ["input1"]}]}]"#,
    );
    let ranges = vec![NameRange {
        begin: "b".into(),
        end: "e".into(),
    }];
    let models = ModelSelection::Named(vec![
        (
            "a".into(),
            OperatorSelection {
                ranges,
                ..named(&["x"])
            },
        ),
        ("b".into(), OperatorSelection::every()),
    ]);
    assert_eq!(dump.plan.models, models);
    let exclusion = |model: &str, operators, slots| Exclusion {
        model: Some(model.into()),
        operators,
        slots: Some(slots),
    };
    let op_type = |name: &str| OperatorKey::Type(name.into());
    let mut excluded = vec![
        exclusion(
            "a",
            OperatorKey::Name("x".into()),
            vec![(Side::Input, 0), (Side::Output, 2)],
        ),
        exclusion("b", op_type("Conv"), vec![(Side::Input, 1)]),
        exclusion("b", op_type("Add"), vec![(Side::Input, 1)]),
    ];
    excluded.extend(never_dumped());
    assert_eq!(dump.plan.excluded, excluded);
}

#[test]
fn modes_and_steps() {
    let members = r#""dump_list": [{}], "dump_mode": "MODE", "dump_step": "0|5-6",
        "dump_debug": "off", "dump_level": "all""#;
    for (mode, sides) in [
        ("input", Sides::Inputs),
        ("output", Sides::Outputs),
        ("all", Sides::Both),
    ] {
        let plan = dump_of(&members.replace("MODE", mode)).plan;
        assert_eq!(plan.sides, sides);
        let steps: Vec<u64> = (0..9).filter(|&step| plan.steps.contains(step)).collect();
        assert_eq!(steps, [0, 5, 6]);
    }
}

#[test]
fn watchers() {
    let watcher = r#""dump_scene": "watcher""#;
    let dump = dump_of(&format!(
        r#"{watcher}, "dump_list": [{{"watcher_nodes": ["a"]}},
            {{"layer": ["A", "B"], "watcher_nodes": ["C", "D"]}}]"#
    ));
    let rule = OperatorSelection {
        watched: vec!["C".into(), "D".into()],
        ..named(&["A", "B"])
    };
    assert_eq!(dump.plan.models, ModelSelection::Every(rule));
    assert_eq!(
        (dump.mode, dump.plan.purpose),
        (Mode::Watcher, Purpose::Watch)
    );
    assert_eq!(dump_of(watcher).plan.models, ModelSelection::None);
}

#[test]
fn overflows() {
    let dump = dump_of(r#""dump_debug": "on", "dump_list": []"#);
    assert_eq!(
        (dump.mode, dump.plan.purpose, dump.plan.models),
        (Mode::Overflow, Purpose::Overflow, every())
    );
    let config = loaded(r#""dump_debug": "on", "dump_data": "stats""#);
    assert_eq!(config.dump.unwrap().content, Content::Tensors);
    assert_eq!(config.issues[0].pointer, "/dump/dump_data");
}

/// The documents call a dump of models beside one of overflows an error; the vendor's checker is on record
/// for accepting it.
#[test]
fn overflows_and_models() {
    let dir = tempfile::tempdir().unwrap();
    let env = Environment {
        current_dir: dir.path().to_owned(),
        ..Environment::default()
    };
    for list in [r#"[{}]"#, r#"[{"model_name": "a"}, {"layer": []}]"#] {
        let text =
            format!(r#"{{"dump": {{"dump_path": ".", "dump_debug": "on", "dump_list": {list}}}}}"#);
        let issues = load(&text, &env).unwrap_err();
        assert_eq!(
            issues[0].to_string(),
            "1:62: error EP0005 at `/dump/dump_list`: `dump_list` cannot be set when `dump_debug` is \
             `on` (leave `dump_list` out)"
        );
        let config = check(&text, &env).unwrap();
        assert_eq!(config.dump.unwrap().plan.models, ModelSelection::None);
        let issue = &config.issues[0];
        assert_eq!((issue.severity, issue.code()), (Severity::Warning, None));
        assert!(issue.message.contains("Opscope refuses"), "{issue}");
    }
}

/// The third example of the document about offline models.
#[test]
fn an_empty_list_without_a_switch_is_about_single_operators() {
    let config = loaded(r#""dump_list": [], "dump_data": "tensor""#);
    let issue = &config.issues[0];
    assert_eq!(
        (issue.severity, issue.pointer.as_str()),
        (Severity::Note, "/dump/dump_list")
    );
    assert_eq!(config.issues.len(), 1);
    let dump = config.dump.clone().unwrap();
    assert_eq!(
        (dump.mode, dump.has_single_operators),
        (Mode::SingleOperators, true)
    );
    assert_eq!(
        (dump.plan.models, dump.plan.sides),
        (ModelSelection::None, Sides::Outputs)
    );
    let explanation = explain(&config, &Environment::default());
    let subjects: Vec<&str> = explanation
        .rows
        .iter()
        .map(|(subject, _)| *subject)
        .collect();
    assert_eq!(
        subjects,
        [
            "models",
            "operators outside models",
            "sides",
            "form",
            "files"
        ]
    );
}

#[test]
fn failures_go_to_the_first_place_that_can_be_used() {
    let env = Environment {
        current_dir: "/cwd".into(),
        home: Some("/home/me".into()),
        work_path: Some("/work".into()),
        ..Environment::default()
    };
    let text = r#"{"dump": {"dump_scene": "SCENE", "dump_path": "PATH", "dump_step": "x"}}"#;
    for (scene, path, detail, third) in [
        ("lite_exception", "out", FailureDetail::Brief, "/cwd/out"),
        (
            "aic_err_brief_dump",
            "~/x",
            FailureDetail::Brief,
            "/home/me/x",
        ),
        ("aic_err_norm_dump", "/x", FailureDetail::Normal, "/x"),
        (
            "aic_err_detail_dump",
            "1.2.3.4:/x",
            FailureDetail::Full,
            "/cwd/x",
        ),
    ] {
        let text = text.replace("SCENE", scene).replace("PATH", path);
        let config = load(&text, &env).unwrap();
        let dump = config.dump.unwrap();
        assert_eq!(dump.plan.purpose, Purpose::Failures(detail));
        let places: Vec<_> = dump.places.iter().map(|p| p.to_str().unwrap()).collect();
        assert_eq!(places, ["/work", third, "/cwd"], "{text}");
        let has_home = path.starts_with('~');
        let notes = config
            .issues
            .iter()
            .filter(|i| i.severity == Severity::Note);
        assert_eq!(notes.count(), usize::from(has_home), "{:?}", config.issues);
        assert!(
            config
                .issues
                .iter()
                .any(|i| i.message.contains("no effect"))
        );
    }
}

#[test]
fn failures_that_the_environment_asks_for() {
    let of = |scene: Option<&str>, collect: Option<&str>| {
        let env = Environment {
            current_dir: "/cwd".into(),
            dump_path: Some("/dump".into()),
            dump_scene: scene.map(str::to_owned),
            collect_path: collect.map(PathBuf::from),
            ..Environment::default()
        };
        from_environment(&env).map(|dump| (dump.mode.name(), dump.places))
    };
    let places = |places: &[&str]| places.iter().map(PathBuf::from).collect::<Vec<_>>();
    let by_scene = places(&["/dump", "/cwd"]);
    let by_path = places(&["/collect"]);
    for (scene, collect, expected) in [
        (None, None, None),
        (Some("watcher"), None, None),
        (Some("lite_exception"), None, None),
        (
            Some("aic_err_brief_dump"),
            Some("/collect"),
            Some(("exception_brief", &by_scene)),
        ),
        (
            Some("aic_err_detail_dump"),
            None,
            Some(("exception_detail", &by_scene)),
        ),
        (None, Some("/collect"), Some(("exception_norm", &by_path))),
        (
            Some("x"),
            Some("/collect"),
            Some(("exception_norm", &by_path)),
        ),
    ] {
        let expected = expected.map(|(mode, places)| (mode, places.clone()));
        assert_eq!(of(scene, collect), expected, "{scene:?} {collect:?}");
    }
}

#[test]
fn a_place_behind_an_address_is_below_the_current_directory() {
    let (dir, result) = load_in(r#"{"dump": {"dump_path": "1.2.3.4:/a/b", "dump_list": [{}]}}"#);
    let places = result.unwrap().dump.unwrap().places;
    assert_eq!(places, [dir.path().join("a/b")]);
    assert!(!dir.path().join("a").exists());
}

#[test]
fn accepted_without_effect() {
    for config in [
        "",
        "{}",
        "[]",
        "\u{feff}{}",
        r#"{"dump": {}}"#,
        r#"{"profiler": {"switch": "on"}}"#,
        r#"{"dump": {"dump_path": "@"}}"#,
        r#"{"dump": {"dump_path": "@", "dump_list": [], "dump_op_switch": "off"}}"#,
    ] {
        let (_dir, result) = load_in(config);
        let loaded = result.unwrap_or_else(|issues| panic!("{config}: {issues:?}"));
        assert_eq!(loaded.dump, None, "{config}");
        let messages: Vec<&str> = loaded.issues.iter().map(|i| i.message.as_str()).collect();
        assert_eq!(messages.len(), 1, "{config}: {messages:?}");
        assert!(messages[0].starts_with("nothing is dumped"));
    }
}

/// One warning on each line: what the `dump` object holds, its pointer, part of the message.
const WARNINGS: &str = r#"
"dump_paht": "@", "dump_list": [{}] | /dump/dump_paht | did you mean `dump_path`?
"dump_list": [{"layers": []}] | /dump/dump_list/0/layers | did you mean `layer`?
"dump_list": [{"a/b~": 1}] | /dump/dump_list/0/a~1b~0 | unknown key, it has no effect
"dump_list": [{}], "dump_level": "kernel" | /dump/dump_level | models leave no files
"dump_list": [{}], "dump_kernel_data": "all" | /dump/dump_kernel_data | it has no effect
"dump_list": [{}, {"model_name": "m"}] | /dump/dump_list/1 | for every model
"dump_list": [{}, {}] | /dump/dump_list/0 | `dump_list[1]` is about the same model
"dump_list": [{"model_name": ""}], "dump_op_switch": "on" | /dump/dump_list/0/model_name | has no effect
"dump_list": [{"opname_blacklist": [{"name": "c", "pos": ["in0"]}]}], "dump_level": "op" | /dump/dump_list/0/opname_blacklist/0/pos/0 | `in0` leaves nothing out
"dump_list": [{"opname_blacklist": [{}]}], "dump_level": "op" | /dump/dump_list/0/opname_blacklist/0 | leaves nothing out
"dump_scene": "watcher" | /dump | no operator is watched
"dump_debug": "on", "dump_mode": "input" | /dump/dump_mode | both sides are dumped
"dump_debug": "on", "dump_stats": ["Max"] | /dump/dump_stats | no effect with `dump_debug` on
"dump_scene": "lite_exception", "dump_list": [{}] | /dump/dump_list | of every model count
"#;

#[test]
fn warnings_name_the_place() {
    for line in WARNINGS.trim().lines() {
        let parts: Vec<&str> = line.split(" | ").collect();
        let [members, pointer, part] = parts[..] else {
            panic!("{line}")
        };
        let issues = loaded(members).issues;
        let issue = issues.iter().find(|issue| issue.pointer == pointer);
        let issue = issue.unwrap_or_else(|| panic!("{line}: {issues:?}"));
        assert!(issue.to_string().contains(part), "{line}: {issue}");
        assert_eq!((issue.severity, issue.code()), (Severity::Warning, None));
    }
}

#[test]
fn a_file_full_of_what_has_no_effect_is_told_in_part() {
    let entries = vec![r#"{"x": 1, "model_name": "a"}"#; 2000].join(", ");
    let issues = loaded(&format!(r#""dump_list": [{entries}]"#)).issues;
    assert_eq!(issues.len(), 1001);
    let last = &issues[1000].message;
    assert_eq!(last, "2999 further warnings are left out");
}

#[test]
fn keys_beside_the_dump_object() {
    let (_dir, result) = load_in(r#"{"dump_list": [], "max_opqueue_num": "1", "dunp": {}}"#);
    let issues = result.unwrap().issues;
    let told: Vec<String> = issues.iter().map(ToString::to_string).collect();
    assert!(told[1].ends_with("(`dump_list` belongs into the `dump` object)"));
    assert!(told[2].ends_with("(did you mean `dump`?)"));
    assert_eq!(told.len(), 3);
}

#[test]
fn the_place_is_where_the_value_stands() {
    let (_dir, result) = load_in("{\n  \"dump\": {\n    \"dump_mode\": \"al\", \"x\": 1\n  }\n}");
    let issues = result.unwrap_err();
    assert_eq!((issues[0].place.line, issues[0].place.column), (3, 18));
    let told: Vec<String> = issues.iter().map(ToString::to_string).collect();
    let expected = [
        "3:18: error EP0002 at `/dump/dump_mode`: found `al`, expected all/input/output (did you \
         mean `all`?)",
        "3:24: warning at `/dump/x`: unknown key, it has no effect",
    ];
    assert_eq!(told, expected);
}

#[test]
fn home() {
    let dir = tempfile::tempdir().unwrap();
    let mut env = Environment {
        current_dir: dir.path().to_owned(),
        home: Some(dir.path().to_owned()),
        ..Environment::default()
    };
    let text = r#"{"dump": {"dump_path": "$HOME", "dump_list": [{}]}}"#;
    let config = load(text, &env).unwrap();
    assert_eq!(
        config.dump.unwrap().places,
        [dir.path().canonicalize().unwrap()]
    );
    let issue = &config.issues[0];
    assert!(issue.message.contains("literally"), "{issue}");
    assert_eq!((issue.severity, issue.code()), (Severity::Note, None));
    // The vendor's checker is on record for the word alone.
    let issue = &check(text, &env).unwrap_err()[0];
    assert_eq!(issue.code(), Some("EP0003"));
    assert!(
        issue.to_string().contains("such as `$HOME/output`"),
        "{issue}"
    );
    for path in ["$HOME/output", "~/output", "$HOME/", "~/"] {
        let text = text.replace("$HOME", path);
        let verdict = |loaded: Result<AclConfig, Vec<Issue>>| loaded.is_ok();
        let is_there = !path.ends_with("output");
        assert_eq!(verdict(load(&text, &env)), is_there, "{path}");
        assert_eq!(verdict(check(&text, &env)), is_there, "{path}");
    }
    std::fs::create_dir(dir.path().join("output")).unwrap();
    for path in ["$HOME/output", "~/output"] {
        let text = text.replace("$HOME", path);
        for loaded in [load(&text, &env), check(&text, &env)] {
            let config = loaded.unwrap();
            assert_eq!(
                config.dump.unwrap().places[0].file_name().unwrap(),
                "output"
            );
            assert_eq!(config.issues[0].severity, Severity::Note);
        }
    }
    env.home = None;
    let issue = &load(text, &env).unwrap_err()[0];
    assert_eq!(issue.code(), Some("EP0003"));
    assert!(issue.to_string().contains("write the directory out"));
}

#[test]
fn odd_paths() {
    let dir = tempfile::tempdir().unwrap();
    let env = Environment {
        current_dir: dir.path().to_owned(),
        ..Environment::default()
    };
    for name in ["a b", "x:"] {
        std::fs::create_dir(dir.path().join(name)).unwrap();
    }
    for (name, code, part) in [
        ("a b", None, "dumps no model"),
        ("x:", Some("EP0003"), "nothing stands after the colon"),
    ] {
        let text = format!(r#"{{"dump": {{"dump_path": "{name}", "dump_list": [{{}}]}}}}"#);
        let config = load(&text, &env).unwrap();
        let issue = &config.issues[0];
        assert_eq!((issue.severity, issue.code()), (Severity::Warning, code));
        assert!(issue.message.contains(part), "{issue}");
        assert!(config.dump.is_some());
    }
}

#[test]
fn whose_reports() {
    for (text, expected) in [
        ("", Some(ReportScope::Thread)),
        ("5", Some(ReportScope::Thread)),
        (r#"{"dump": {}}"#, Some(ReportScope::Thread)),
        (r#"{"err_msg_mode": "0"}"#, Some(ReportScope::Thread)),
        (r#"{"err_msg_mode": "1"}"#, Some(ReportScope::Process)),
        (r#"{"err_msg_mode": 1}"#, None),
        (r#"{"err_msg_mode": "2"}"#, None),
        (r#"{"err_msg_mode": ""}"#, None),
        ("{", None),
    ] {
        assert_eq!(report_scope(text).ok(), expected, "{text}");
    }
    let issue = report_scope(r#"{"err_msg_mode": "2"}"#).unwrap_err();
    assert_eq!(
        issue.to_string(),
        "1:18: error at `/err_msg_mode`: found `2`, expected the text `0` or `1`"
    );
}

#[test]
fn explanations() {
    let config = loaded(
        r#""dump_level": "op", "dump_mode": "all", "dump_step": "1|3-4", "dump_data": "stats",
            "dump_stats": ["L2norm", "Max", "Max"], "dump_list": [{"model_name": "net",
            "layer": ["conv"], "opname_blacklist": [{"name": "conv", "pos": ["input1"]}]}]"#,
    );
    let explanation = explain(&config, &Environment::default());
    let rows: Vec<String> = explanation
        .rows
        .iter()
        .map(|(subject, text)| format!("{subject}: {text}"))
        .collect();
    for expected in [
        "model: `net`, by file name or by the graph's name",
        "operators: `conv`",
        "left out: input.1 of operator `conv` of model `net`",
        "left out: operators of type `If`, operators of type `Loop`, operators of type `Scan`, \
         operators of type `Constant`",
        "left out: operators of types `Concat`, `ConcatD`, `ConcatV2`, `ConcatV2D`, \
         `ConcatFromSequence`, `Split`, `SplitD`, `SplitV`, `SplitVD`, `SplitToSequence` that are not \
         named here",
        "sides: inputs and outputs",
        "steps: executions 1, 3 to 4 (they count from 0)",
        "form: statistics, one CSV file for each operator: the number of elements and Max, L2norm",
        "operators outside models: not dumped",
    ] {
        assert!(
            rows.iter().any(|row| row == expected),
            "{expected}: {rows:#?}"
        );
    }
    assert!(
        rows.last().unwrap().ends_with(".{timestamp}.csv"),
        "{rows:?}"
    );
    let nothing = loaded(r#""dump_list": [], "dump_op_switch": "off""#);
    assert_eq!(explain(&nothing, &Environment::default()).rows, []);
}

#[test]
fn explanations_follow_the_environment() {
    let env = Environment {
        current_dir: "/cwd".into(),
        collect_path: Some("/collect".into()),
        ..Environment::default()
    };
    let told = |members: &str| {
        let explanation = explain(&loaded(members), &env);
        let rows = explanation
            .rows
            .iter()
            .map(|(subject, text)| format!("{subject}: {text}"));
        rows.collect::<Vec<_>>().join("\n")
    };
    let of_failures = "files: /collect/extra-info/data-dump";
    for (members, expected) in [
        (
            r#""dump_list": [{}]"#,
            "operators that fail: dumped too, because of `NPU_COLLECT_PATH`",
        ),
        (
            r#""dump_scene": "lite_exception""#,
            "asked for by: `NPU_COLLECT_PATH`, which goes before",
        ),
        (
            r#""dump_op_switch": "off""#,
            "asked for by: `NPU_COLLECT_PATH`, which goes before",
        ),
    ] {
        let told = told(members);
        assert!(told.contains(expected), "{told}");
        assert!(told.contains(of_failures), "{told}");
    }
}
