//! Explanations of configurations.

use super::*;

#[test]
fn explanations() {
    let config = loaded(
        r#""dump_level": "op", "dump_mode": "all", "dump_step": "1|3-4", "dump_data": "stats",
            "dump_stats": ["L2norm", "Max", "Max"], "dump_list": [{"model_name": "net",
            "layer": ["conv"], "opname_blacklist": [{"name": "conv", "pos": ["input1"]}]}]"#,
    );
    let explanation = explain(&config, &ConfigEnvironment::default());
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
    assert_eq!(explain(&nothing, &ConfigEnvironment::default()).rows, []);
}

#[test]
fn explanations_follow_the_environment() {
    let env = ConfigEnvironment {
        current_dir: "/cwd".into(),
        collect_path: Some("/collect".into()),
        ..ConfigEnvironment::default()
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
            "asked for by: `NPU_COLLECT_PATH`, which precedes",
        ),
        (
            r#""dump_op_switch": "off""#,
            "asked for by: `NPU_COLLECT_PATH`, which precedes",
        ),
    ] {
        let told = told(members);
        assert!(told.contains(expected), "{told}");
        assert!(told.contains(of_failures), "{told}");
    }
}
