//! Selection of models, operators and steps.

use super::*;

/// Exclusions of every plan for values of models.
fn never_dumped() -> Vec<Exclusion> {
    lower::never_dumped().chain(lower::data_flow()).collect()
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
        sides: SlotSides::Outputs,
        excluded: never_dumped(),
        ..Plan::everything()
    };
    assert_eq!((dump.plan, dump.mode), (plan, DumpMode::Operator));
    assert_eq!(dump.content, AclContent::Tensors);
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
    let op_type = |name: &str| OperatorRule::Type(name.into());
    let mut excluded = vec![
        exclusion(
            "a",
            OperatorRule::Name("x".into()),
            vec![(SlotSide::Input, 0), (SlotSide::Output, 2)],
        ),
        exclusion("b", op_type("Conv"), vec![(SlotSide::Input, 1)]),
        exclusion("b", op_type("Add"), vec![(SlotSide::Input, 1)]),
    ];
    excluded.extend(never_dumped());
    assert_eq!(dump.plan.excluded, excluded);
}

#[test]
fn modes_and_steps() {
    let members = r#""dump_list": [{}], "dump_mode": "MODE", "dump_step": "0|5-6",
        "dump_debug": "off", "dump_level": "all""#;
    for (mode, sides) in [
        ("input", SlotSides::Inputs),
        ("output", SlotSides::Outputs),
        ("all", SlotSides::Both),
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
        (DumpMode::Watcher, Purpose::Watch)
    );
    assert_eq!(dump_of(watcher).plan.models, ModelSelection::None);
}

#[test]
fn overflows() {
    let dump = dump_of(r#""dump_debug": "on", "dump_list": []"#);
    assert_eq!(
        (dump.mode, dump.plan.purpose, dump.plan.models),
        (DumpMode::Overflow, Purpose::Overflow, every())
    );
    let config = loaded(r#""dump_debug": "on", "dump_data": "stats""#);
    assert_eq!(config.dump.unwrap().content, AclContent::Tensors);
    assert_eq!(config.issues[0].pointer, "/dump/dump_data");
}

/// The documentation calls a dump of models together with one of overflows an error; the vendor's
/// checker is recorded to accept it.
#[test]
fn overflows_and_models() {
    let dir = tempfile::tempdir().unwrap();
    let env = ConfigEnvironment {
        current_dir: dir.path().to_owned(),
        ..ConfigEnvironment::default()
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

/// The third example of the documentation about offline models.
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
        (DumpMode::SingleOperators, true)
    );
    assert_eq!(
        (dump.plan.models, dump.plan.sides),
        (ModelSelection::None, SlotSides::Outputs)
    );
    let explanation = explain(&config, &ConfigEnvironment::default());
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
fn exclusions_are_those_of_the_documentation() {
    let page = include_str!("../../../../../../docs/config/acl.md");
    // Names in the list item that continues with `verb`.
    let names = |verb: &str| -> Vec<String> {
        let (before, _) = page.split_once(verb).unwrap();
        let (_, item) = before.rsplit_once("\n* ").unwrap();
        item.split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect()
    };
    let never = lower::never_dumped().map(|exclusion| exclusion.operators);
    let expected = names(" are never dumped")
        .into_iter()
        .map(OperatorRule::Type);
    assert!(never.eq(expected));
    let mut unless_named: Vec<OperatorRule> = lower::data_flow()
        .map(|exclusion| exclusion.operators)
        .collect();
    let expected = names(" leave no file within a model").into_iter();
    let mut expected: Vec<OperatorRule> = expected.map(OperatorRule::UnnamedOfType).collect();
    unless_named.sort_by_key(|key| format!("{key:?}"));
    expected.sort_by_key(|key| format!("{key:?}"));
    assert_eq!(unless_named, expected);
}
