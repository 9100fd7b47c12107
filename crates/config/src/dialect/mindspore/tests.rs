use std::path::PathBuf;

use opscope_capture::Purpose;
use proptest::prelude::*;

use super::*;

const COMMON_REST: &str =
    r#""path": "/p", "net_name": "N", "input_output": 0, "support_device": [0]"#;

fn env() -> ConfigEnvironment {
    ConfigEnvironment {
        current_dir: "/".into(),
        ..ConfigEnvironment::default()
    }
}

/// A complete file with further keys in the first section.
fn file(more: &str, e2e: &str) -> String {
    format!(r#"{{"common_dump_settings": {{{COMMON_REST}, {more}}}{e2e}}}"#)
}

fn dump_of(target: TreeTarget, more: &str) -> MindSporeDumpPlan {
    let text = file(
        more,
        r#", "e2e_dump_settings": {"enable": true, "sample_mode": 1, "sample_num": 5, "save_kernel_args": true, "trans_flag": false}"#,
    );
    load(&text, target, &env()).unwrap().dump.unwrap()
}

#[test]
fn what_targets_do_not_have_is_left_out() {
    let more = r#""dump_mode": 0, "iteration": "1|3-4|9-2|x"#.replace("|x", "\"");
    let more = format!(r#"{more}, "kernels": []"#);
    let cpu = dump_of(TreeTarget::Cpu, &more);
    let ranges = [1..=1, 3..=4];
    assert_eq!(cpu.iteration.ranges(), Some(&ranges[..]));
    assert_eq!(
        (cpu.n_samples, cpu.trans_flag, cpu.saves_kernel_args),
        (None, true, false)
    );
    assert!(cpu.is_device_selected(7));
    let ascend = dump_of(TreeTarget::AscendKernels, &more);
    assert_eq!(
        (
            ascend.n_samples,
            ascend.trans_flag,
            ascend.saves_kernel_args
        ),
        (Some(5), false, true)
    );
    assert!(ascend.is_device_selected(0) && !ascend.is_device_selected(7));
}

#[test]
fn home_is_the_users_in_a_dump_of_ours() {
    let env = ConfigEnvironment {
        home: Some("/home/.me".into()),
        ..env()
    };
    for (path, expected) in [
        ("~/dump", Some("/home/.me/dump")),
        ("$HOME/a/b", Some("/home/.me/a/b")),
        ("~", Some("/home/.me")),
        ("~/a b", None),
        ("~me/dump", None),
        ("a/~", None),
    ] {
        let text = file(r#""dump_mode": 0, "iteration": "all", "kernels": []"#, "");
        let text = text.replace("/p", path);
        let loaded = load(&text, TreeTarget::Cpu, &env).ok();
        let found = loaded.map(|config| config.dump.unwrap().path);
        assert_eq!(found, expected.map(PathBuf::from), "{path}");
        // MindSpore's verdict is unchanged.
        assert!(check(&text, TreeTarget::Cpu, &env).is_err(), "{path}");
    }
}

#[test]
fn marked_operators_are_dumped_on_every_target() {
    let more = r#""dump_mode": 2, "iteration": "all", "kernels": []"#;
    for target in [TreeTarget::Cpu, TreeTarget::Gpu, TreeTarget::AscendKernels] {
        assert_eq!(
            dump_of(target, more).kernels,
            DumpedKernels::BySetDump,
            "{target:?}"
        );
        let is_accepted =
            check(&file(more, r#", "e2e_dump_settings": {}"#), target, &env()).is_ok();
        assert_eq!(
            is_accepted,
            target == TreeTarget::AscendKernels,
            "{target:?}"
        );
    }
}

#[test]
fn purposes() {
    use opscope_capture::FailureDetail::Brief;
    for (mode, target, expected) in [
        (0, TreeTarget::Cpu, Purpose::Values),
        (2, TreeTarget::Cpu, Purpose::Values),
        (2, TreeTarget::Gpu, Purpose::Overflow),
        (3, TreeTarget::AscendKernels, Purpose::Overflow),
        (4, TreeTarget::AscendKernels, Purpose::Failures(Brief)),
    ] {
        let more = format!(
            r#""dump_mode": 0, "iteration": "all", "kernels": [], "op_debug_mode": {mode}"#
        );
        assert_eq!(
            dump_of(target, &more).purpose,
            expected,
            "{mode} {target:?}"
        );
    }
}

#[test]
fn without_a_section_ascend_dumps_whole_graphs_only() {
    let more = r#""dump_mode": 0, "iteration": "all", "kernels": [], "op_debug_mode": 0"#;
    let text = file(more, "");
    let dump = |target| load(&text, target, &env()).unwrap().dump;
    assert!(dump(TreeTarget::AscendKernels).is_none());
    assert_eq!(
        dump(TreeTarget::AscendGraph).unwrap().file_format,
        FileFormat::Bin
    );
    assert_eq!(dump(TreeTarget::Gpu).unwrap().file_format, FileFormat::Npy);
    assert_eq!(dump(TreeTarget::Cpu).unwrap().text, text);
}

#[test]
fn what_follows_the_first_value_is_passed_over() {
    let whole = file(r#""dump_mode": 0, "iteration": "all", "kernels": []"#, "");
    for (after, place) in [
        ("", None),
        (" \n\t", None),
        ("}", Some(1)),
        ("\n{ x", Some(2)),
    ] {
        let text = format!("\u{feff}{whole}{after}");
        let config = check(&text, TreeTarget::Cpu, &env()).unwrap();
        let warned = config
            .issues
            .iter()
            .find(|i| i.message.contains("is ignored"));
        assert_eq!(warned.map(|issue| issue.place.line), place, "{after:?}");
        assert_eq!(config.dump.unwrap().text, text);
    }
    // Text without a complete value is still refused.
    for text in ["", " ", "}", "{\"common_dump_settings\":", "{} {"] {
        assert!(check(text, TreeTarget::Cpu, &env()).is_err(), "{text:?}");
    }
}

#[test]
fn the_variable_asks_for_the_graph_engine() {
    assert_eq!(default_target(&env()), TreeTarget::Cpu);
    let asking = ConfigEnvironment {
        has_ge_dump: true,
        ..env()
    };
    assert_eq!(default_target(&asking), TreeTarget::GraphEngine);
}

#[test]
fn whole_graphs_follow_the_format_beside_the_other_section() {
    for (written, expected, is_told) in [
        (r#""npy""#, FileFormat::Npy, false),
        (r#""bin""#, FileFormat::Bin, false),
        (r#""zip""#, FileFormat::Bin, true),
        ("5", FileFormat::Bin, true),
    ] {
        let more = format!(
            r#""dump_mode": 0, "iteration": "all", "kernels": [], "file_format": {written}"#
        );
        let text = file(&more, r#", "e2e_dump_settings": {"enable": true}"#);
        for target in [TreeTarget::AscendGraph, TreeTarget::GraphEngine] {
            let config = check(&text, target, &env()).unwrap();
            let warned = config
                .issues
                .iter()
                .any(|i| i.pointer.ends_with("file_format"));
            assert_eq!(
                (config.dump.unwrap().file_format, warned),
                (expected, is_told),
                "{written}"
            );
        }
        // MindSpore ignores it everywhere else.
        for target in [TreeTarget::Cpu, TreeTarget::Gpu, TreeTarget::AscendKernels] {
            let config = check(&text, target, &env()).unwrap();
            assert!(
                config
                    .issues
                    .iter()
                    .any(|i| i.message.contains("no effect")),
                "{written}"
            );
        }
    }
}

#[test]
fn precision_is_that_of_the_device() {
    use DevicePrecision::{High, Low};
    for (target, e2e, saved, expected) in [
        (
            TreeTarget::AscendKernels,
            r#""stat_calc_mode": "device""#,
            "statistic",
            Some(High),
        ),
        (
            TreeTarget::AscendKernels,
            r#""stat_calc_mode": "device", "device_stat_precision_mode": "low""#,
            "statistic",
            Some(Low),
        ),
        (
            TreeTarget::AscendKernels,
            r#""device_stat_precision_mode": "low""#,
            "statistic",
            None,
        ),
        (
            TreeTarget::AscendKernels,
            r#""stat_calc_mode": "device""#,
            "full",
            None,
        ),
        (
            TreeTarget::AscendGraph,
            r#""stat_calc_mode": "device""#,
            "statistic",
            None,
        ),
        (
            TreeTarget::Gpu,
            r#""stat_calc_mode": "device""#,
            "statistic",
            None,
        ),
    ] {
        let more = format!(
            r#""dump_mode": 0, "iteration": "all", "kernels": [], "saved_data": "{saved}""#
        );
        let text = file(
            &more,
            &format!(r#", "e2e_dump_settings": {{"enable": true, {e2e}}}"#),
        );
        let dump = check(&text, target, &env()).unwrap().dump.unwrap();
        assert_eq!(dump.device_precision, expected, "{target:?} {e2e} {saved}");
    }
}

#[test]
fn rules_come_in_the_order_in_which_they_are_tried() {
    let more = r#""dump_mode": 1, "iteration": "all",
        "kernels": ["relu", "Default/a-op1", "name-regex(.* b)", "", "relu", 5]"#;
    let DumpedKernels::Listed(rules) = dump_of(TreeTarget::Cpu, more).kernels else {
        panic!("rules are expected")
    };
    let rules: Vec<_> = rules
        .iter()
        .map(|rule| (rule.pattern(), rule.kind))
        .collect();
    let expected = [
        ("5", RuleKind::Type),
        ("Default/a-op1", RuleKind::Name),
        (".*b", RuleKind::Regex),
        ("relu", RuleKind::Type),
    ];
    assert_eq!(rules, expected);
    let more = r#""dump_mode": 1, "iteration": "all", "kernels": [" ", ""]"#;
    assert_eq!(dump_of(TreeTarget::Cpu, more).kernels, DumpedKernels::Every);
}

#[test]
fn numbers_keep_their_low_32_bits() {
    let more = r#""dump_mode": 4294967296, "iteration": "all", "kernels": [], "initial_iteration": 8589934599"#;
    let config = load(
        &file(more, r#", "e2e_dump_settings": {}"#),
        TreeTarget::Cpu,
        &env(),
    )
    .unwrap();
    assert_eq!(
        (config.settings.dump_mode, config.settings.initial_iteration),
        (0, 7)
    );
    assert_eq!(config.issues.len(), 2);
}

#[test]
fn what_has_no_effect_is_warned_about() {
    let more = r#""dump_mode": 0, "iteration": "5-3", "kernels": [], "bogus": 1, "file_format": 5"#;
    let text = file(
        more,
        r#", "e2e_dump_settings": {"enabel": true}, "other": 1"#,
    );
    let config = load(&text, TreeTarget::Cpu, &env()).unwrap();
    let mut pointers: Vec<_> = config
        .issues
        .iter()
        .map(|issue| issue.pointer.as_str())
        .collect();
    pointers.sort_unstable();
    let expected = [
        "/common_dump_settings/bogus",
        "/common_dump_settings/file_format",
        "/common_dump_settings/iteration",
        "/e2e_dump_settings/enabel",
        "/other",
    ];
    assert_eq!(pointers, expected);
}

#[test]
fn names_of_files() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    for name in ["a b.json", "c.txt"] {
        std::fs::write(at(name), "{}").unwrap();
    }
    assert!(check_file_name(&at("a b.json")).is_ok());
    for (name, expected) in [
        ("c.txt", "suffix only supports json!"),
        ("none.json", "Get dump config file failed"),
        ("", "Invalid json file name"),
    ] {
        let issue = check_file_name(&at(name)).unwrap_err();
        assert_eq!(issue.vendor_text.as_deref(), Some(expected));
    }
}

proptest! {
    #[test]
    fn any_entry_is_a_rule_or_refused(entry in r#"(name-regex\()?[\[\](){}*+?|^$\\:.,=\-a0-9]{0,12}\)?"#) {
        let entry = serde_json::Value::from(entry);
        let more = format!(r#""dump_mode": 1, "iteration": "all", "kernels": [{entry}]"#);
        let text = file(&more, r#", "e2e_dump_settings": {}"#);
        match load(&text, TreeTarget::Cpu, &env()) {
            Ok(config) => prop_assert!(config.dump.is_some()),
            Err(issues) => prop_assert!(issues[0].pointer == "/common_dump_settings/kernels/0"),
        }
    }
}
