//! Warnings and notes, and their positions.

use super::*;

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

/// One warning on each line: the contents of the `dump` object, its pointer, part of the message.
const WARNINGS: &str = r#"
"dump_paht": "@", "dump_list": [{}] | /dump/dump_paht | did you mean `dump_path`?
"dump_list": [{"layers": []}] | /dump/dump_list/0/layers | did you mean `layer`?
"dump_list": [{"a/b~": 1}] | /dump/dump_list/0/a~1b~0 | unknown key, it has no effect
"dump_list": [{}], "dump_level": "kernel" | /dump/dump_level | models leave no files
"dump_list": [{}], "dump_kernel_data": "all" | /dump/dump_kernel_data | it has no effect
"dump_list": [{}, {"model_name": "m"}] | /dump/dump_list/1 | for every model
"dump_list": [{}, {}] | /dump/dump_list/0 | `dump_list[1]` is for the same model
"dump_list": [{"model_name": ""}], "dump_op_switch": "on" | /dump/dump_list/0/model_name | has no effect
"dump_list": [{"opname_blacklist": [{"name": "c", "pos": ["in0"]}]}], "dump_level": "op" | /dump/dump_list/0/opname_blacklist/0/pos/0 | `in0` excludes nothing
"dump_list": [{"opname_blacklist": [{}]}], "dump_level": "op" | /dump/dump_list/0/opname_blacklist/0 | excludes nothing
"dump_scene": "watcher" | /dump | no operator is watched
"dump_debug": "on", "dump_mode": "input" | /dump/dump_mode | both sides are dumped
"dump_debug": "on", "dump_stats": ["Max"] | /dump/dump_stats | no effect with `dump_debug` on
"dump_scene": "lite_exception", "dump_list": [{}] | /dump/dump_list | of every model are dumped
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
    assert_eq!(last, "2999 further warnings are omitted");
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
