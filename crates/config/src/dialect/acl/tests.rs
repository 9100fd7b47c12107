use super::*;

/// A directory to dump into, and what `load` says of a configuration with `@` for that directory.
fn load_in(config: &str) -> (tempfile::TempDir, Result<AclConfig, Vec<Issue>>) {
    let dir = tempfile::tempdir().unwrap();
    let text = config.replace('@', dir.path().to_str().unwrap());
    let result = load(&text, dir.path());
    (dir, result)
}

fn plan_of(config: &str) -> Plan {
    load_in(config)
        .1
        .unwrap_or_else(|issues| panic!("{config}: {issues:?}"))
        .dump
        .unwrap()
        .plan
}

fn named(names: &[&str]) -> OperatorSelection {
    OperatorSelection::named(names.iter().copied())
}

#[test]
fn the_documented_example() {
    let plan = plan_of(
        r#"{"dump": {"dump_list": [{"model_name": "ResNet-101"},
            {"model_name": "ResNet-50", "layer": ["conv1", "pool1"]}],
            "dump_path": "@", "dump_mode": "output", "dump_op_switch": "off", "dump_data": "tensor"}}"#,
    );
    let models = ModelSelection::Named(vec![
        ("ResNet-101".into(), OperatorSelection::every()),
        ("ResNet-50".into(), named(&["conv1", "pool1"])),
    ]);
    assert_eq!(
        plan,
        Plan {
            models,
            sides: Sides::Outputs,
            steps: Steps::every()
        }
    );
}

#[test]
fn lists_and_switches() {
    let every = ModelSelection::Every(OperatorSelection::every());
    let cases = [
        (
            r#"{"dump": {"dump_path": "@", "dump_list": [{}]}}"#,
            every.clone(),
        ),
        (
            r#"{"dump": {"dump_path": "@", "dump_op_switch": "on"}}"#,
            every.clone(),
        ),
        (
            r#"{"dump": {"dump_path": "@", "dump_op_switch": "on", "dump_list": []}}"#,
            every.clone(),
        ),
        (
            r#"{"dump": {"dump_path": "@", "dump_op_switch": "on", "dump_list": [{"model_name": ""}]}}"#,
            every,
        ),
        (
            r#"{"dump": {"dump_path": "@", "dump_list": [{"model_name": "a"}, {"layer": ["x"]}]}}"#,
            ModelSelection::Every(named(&["x"])),
        ),
    ];
    for (config, models) in cases {
        assert_eq!(plan_of(config).models, models, "{config}");
    }
}

#[test]
fn modes_and_steps() {
    let config = r#"{"dump": {"dump_path": "@", "dump_list": [{}], "dump_mode": "MODE", "dump_step": "0|5-6",
        "dump_debug": "off", "dump_level": "all"}}"#;
    for (mode, sides) in [
        ("input", Sides::Inputs),
        ("output", Sides::Outputs),
        ("all", Sides::Both),
    ] {
        let plan = plan_of(&config.replace("MODE", mode));
        assert_eq!(plan.sides, sides);
        let steps: Vec<u64> = (0..9).filter(|&step| plan.steps.contains(step)).collect();
        assert_eq!(steps, [0, 5, 6]);
    }
}

#[test]
fn accepted_without_effect() {
    for config in [
        "",
        "{}",
        "[]",
        r#"{"dump": {}}"#,
        r#"{"dupm": {"dump_path": "@"}}"#,
        r#"{"dump": {"dump_path": "@"}}"#,
        r#"{"dump": {"dump_path": "@", "dump_list": [], "dump_op_switch": "off"}}"#,
    ] {
        let (_dir, result) = load_in(config);
        let loaded = result.unwrap_or_else(|issues| panic!("{config}: {issues:?}"));
        assert_eq!(loaded.dump, None, "{config}");
        assert!(
            loaded
                .issues
                .iter()
                .any(|issue| issue.message.contains("nothing is dumped"))
        );
    }
}

/// One refusal on each line: what the `dump` object holds, code, pointer, part of the message.
const REFUSALS: &str = r#"
"dump_path": 1 | EP0001 | /dump/dump_path | found a number, expected a string
"dump_list": [{}] | EP0001 | /dump/dump_path | missing
"dump_path": "" | EP0001 | /dump/dump_path | empty
"dump_path": "@/absent" | EP0003 | /dump/dump_path | does not exist
"dump_path": "1.2.3.4:/x" | EP0003 | /dump/dump_path | not supported yet
"dump_path": "@", "dump_mode": "out" | EP0002 | /dump/dump_mode | `out`
"dump_path": "@", "dump_mode": "" | EP0001 | /dump/dump_mode | empty
"dump_path": "@", "dump_data": "stats" | EP0002 | /dump/dump_data | not supported yet
"dump_path": "@", "dump_step": "2-1" | EP0003 | /dump/dump_step | backwards
"dump_path": "@", "dump_list": {} | EP0001 | /dump/dump_list | expected an array
"dump_path": "@", "dump_list": [1] | EP0001 | /dump/dump_list/0 | an object
"dump_path": "@", "dump_list": [{"layer": [3]}] | EP0001 | /dump/dump_list/0/layer/0 | expected a string
"dump_path": "@", "dump_list": [{"layer": []}] | EP0001 | /dump/dump_list/0/layer | empty
"dump_path": "@", "dump_list": [{"model_name": ""}] | EP0001 | /dump/dump_list/0/model_name | empty
"dump_path": "@", "dump_list": [{"opname_range": []}] | - | /dump/dump_list/0/opname_range | not supported yet
"dump_path": "@", "dump_list": [{"model": "x"}] | - | /dump/dump_list/0/model | unknown key
"dump_path": "@", "dump_debug": "on" | - | /dump/dump_debug | only `off`
"dump_path": "@", "dump_scene": "watcher" | - | /dump/dump_scene | not supported yet
"dump_paht": "@" | - | /dump/dump_paht | did you mean `dump_path`?
"#;

#[test]
fn refusals_name_code_and_place() {
    for line in REFUSALS.trim().lines() {
        let parts: Vec<&str> = line.split(" | ").collect();
        let [members, code, pointer, part] = parts[..] else {
            panic!("{line}")
        };
        refused(&format!("{{\"dump\": {{{members}}}}}"), code, pointer, part);
    }
    refused("{", "EP0004", "", "not valid JSON");
    refused(
        r#"{"dump": null}"#,
        "EP0001",
        "/dump",
        "found null, expected an object",
    );
}

fn refused(config: &str, code: &str, pointer: &str, part: &str) {
    let (_dir, result) = load_in(config);
    let issues = result
        .err()
        .unwrap_or_else(|| panic!("{config} was accepted"));
    let issue = issues
        .iter()
        .find(|issue| issue.severity == Severity::Error)
        .unwrap();
    assert_eq!(
        (issue.code.unwrap_or("-"), issue.pointer.as_str()),
        (code, pointer),
        "{config}"
    );
    assert!(issue.message.contains(part), "{config}: {issue}");
    assert!(
        issue.place.line > 0 && issue.place.column > 0,
        "{config}: {issue}"
    );
}

#[test]
fn the_place_is_where_the_value_stands() {
    let (_dir, result) = load_in("{\n  \"dump\": {\n    \"dump_path\": 7\n  }\n}");
    let issue = &result.unwrap_err()[0];
    assert_eq!((issue.place.line, issue.place.column), (3, 18));
    assert_eq!(
        issue.to_string(),
        "3:18: error EP0001 at `/dump/dump_path`: found a number, expected a string"
    );
}

#[test]
fn home_is_expanded_at_the_beginning_only() {
    let home = PathBuf::from(std::env::var_os("HOME").unwrap());
    assert_eq!(expand_home("$HOME/x"), home.join("x"));
    assert_eq!(expand_home("~"), home);
    assert_eq!(expand_home("~user/x"), PathBuf::from("~user/x"));
    assert_eq!(expand_home("a/$HOME"), PathBuf::from("a/$HOME"));
}
