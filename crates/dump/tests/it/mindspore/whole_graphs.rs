//! Ascend by whole graphs, and the graph engine.

use opscope_capture::{
    CaptureSession, KernelSelection, ModelSelection, OperatorSelection, Plan, Purpose,
    SessionOptions, Steps,
};
use opscope_dump::{MindSporeOptions, RuntimeMode};
use opscope_store::file_format::dump_data::DumpFile;
use opscope_store::record::ModelId;
use opscope_store::tree::mindspore::TreeTarget;

use super::run::{files, floats, operators, options, run, text};

#[test]
fn array_files_below_step_and_time() {
    let dir = tempfile::tempdir().unwrap();
    let plan = Plan {
        steps: Steps::in_ranges(vec![1..=1]),
        models: ModelSelection::Every(OperatorSelection::named(["/add/Add"])),
        ..Plan::everything()
    };
    run(
        options(dir.path(), TreeTarget::AscendGraph),
        plan,
        2,
        &floats(&[2.0]),
    );
    let at = "1/20240102030405/0/net/1/1/Add._add_Add.1.0.T";
    assert_eq!(
        files(dir.path()),
        [
            format!("{at}.input.0.ND.float32.npy"),
            format!("{at}.input.1.ND.float32.npy"),
            format!("{at}.output.0.ND.float32.npy"),
            "acl_dump_0.json".into(),
        ]
    );
    let path = dir.path().join("1");
    assert_eq!(
        text(dir.path(), "acl_dump_0.json"),
        format!(
            "{{\"dump\":{{\"dump_list\":[{{\"layer\":[\"/add/Add\"]}}],\"dump_mode\":\"all\",\
             \"dump_op_switch\":\"on\",\"dump_path\":\"{}\"}}}}",
            path.display()
        )
    );
}

/// Array files next to the iterations of the model, whatever form operators have, and once.
#[test]
fn constants_lie_beside_iterations() {
    let name = "constants/Parameter.data-0.0.0.T.output.0.DefaultFormat.float32.npy";
    for (target, is_bin, place) in [
        (TreeTarget::AscendGraph, false, "0/20240102030405/0/net/1"),
        (TreeTarget::AscendGraph, true, "0/20240102030405/0/net/1"),
        (TreeTarget::GraphEngine, true, "20240102030405/0/net/1"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let options = MindSporeOptions {
            is_bin,
            ..options(dir.path(), target)
        };
        let plan = Plan {
            has_constants: true,
            ..Plan::everything()
        };
        run(options, plan, 2, &floats(&[2.0]));
        let found = files(dir.path());
        let constants: Vec<_> = found.iter().filter(|f| f.contains("constants")).collect();
        assert_eq!(constants, [&format!("{place}/{name}")]);
        let operators = found.iter().filter(|f| f.contains("/Add._add_Add."));
        assert_eq!(operators.count(), if is_bin { 2 } else { 6 }, "{found:?}");
    }
}

#[test]
fn operator_files_of_the_graph_engine() {
    let dir = tempfile::tempdir().unwrap();
    let options = MindSporeOptions {
        is_bin: true,
        ..options(dir.path(), TreeTarget::GraphEngine)
    };
    run(options, Plan::everything(), 1, &floats(&[2.0]));
    assert_eq!(
        files(dir.path()),
        [
            "20240102030405/0/net/1/0/Add._add_Add.1.0.T",
            "20240102030405/0/net/1/0/Conv._conv_Conv.0.0.T",
        ]
    );
    let step = dir.path().join("20240102030405/0/net/1/0");
    for entry in std::fs::read_dir(step).unwrap() {
        let file = DumpFile::open(&entry.unwrap().path()).unwrap();
        assert_eq!(
            (file.header().inputs.len(), file.header().outputs.len()),
            (2, 1)
        );
    }
}

#[test]
fn overflow_leaves_a_record_in_the_form_of_the_tensors() {
    for (is_bin, record) in [
        (false, "Opdebug.Node_OpDebug.1.0.T.output.0.json"),
        (true, "Opdebug.Node_OpDebug.1.0.T"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let options = MindSporeOptions {
            is_bin,
            runtime: RuntimeMode::Overflow,
            ..options(dir.path(), TreeTarget::AscendGraph)
        };
        let plan = Plan {
            purpose: Purpose::Overflow,
            n_overflows_max: Some(1),
            ..Plan::everything()
        };
        // Each addition of the largest number to itself overflows.
        super::run::run_with(options, plan, |tap, operators| {
            for step in 0..2 {
                tap.begin_step(step);
                let (h, sum) = (floats(&[f32::MAX]), floats(&[f32::INFINITY]));
                super::run::execute(tap, &operators[1], &[h.clone(), h], &sum);
            }
        });
        let names = files(dir.path());
        let at = "0/20240102030405/0/net/1/0/";
        assert!(names.contains(&format!("{at}{record}")), "{names:?}");
        assert!(
            names.iter().any(|name| name.contains("Add._add_Add")),
            "{names:?}"
        );
        assert!(
            !names.iter().any(|name| name.starts_with("1/")),
            "{names:?}"
        );
        let told = text(dir.path(), "acl_dump_0.json");
        assert!(
            told.starts_with(r#"{"dump":{"dump_debug":"on","dump_path":"#),
            "{told}"
        );
    }
}

#[test]
fn marks_switch_operators_and_scopes_on_and_off() {
    let plan = || Plan {
        models: ModelSelection::Every(OperatorSelection::by_kernels(KernelSelection::Marked)),
        ..Plan::everything()
    };
    let check = |marks: &[(&str, bool)], expected: &[u32]| {
        let sink = std::sync::Arc::new(opscope_capture::sink::MemorySink::default());
        let session = CaptureSession::start(plan(), sink, SessionOptions::default()).unwrap();
        for (target, enabled) in marks {
            session.set_dump(target, *enabled);
        }
        let model = std::sync::Arc::new(ModelId::default());
        let (_, selected) = session.attach(&model, &operators(), &[]);
        let mut tasks: Vec<u32> = selected.kept.keys().copied().collect();
        tasks.sort_unstable();
        assert_eq!(tasks, expected, "{marks:?}");
    };
    check(&[], &[]);
    check(&[("/conv", true)], &[0]);
    check(&[("/conv/", true), ("/add/Add", true)], &[0, 1]);
    check(&[("/co", true)], &[]);
    check(&[("/", true), ("/conv", false)], &[1]);
    check(&[("/conv", false), ("/", true)], &[0, 1]);
}

#[test]
fn operators_may_mark_themselves() {
    let plan = Plan {
        models: ModelSelection::Every(OperatorSelection::by_kernels(KernelSelection::Marked)),
        ..Plan::everything()
    };
    let check = |texts: [Option<&str>; 2], marks: &[(&str, bool)], expected: &[u32]| {
        let sink = std::sync::Arc::new(opscope_capture::sink::MemorySink::default());
        let session = CaptureSession::start(plan.clone(), sink, SessionOptions::default()).unwrap();
        for (target, enabled) in marks {
            session.set_dump(target, *enabled);
        }
        let mut operators = operators();
        for (operator, text) in operators.iter_mut().zip(texts) {
            let attributes = text.map(|text| ("dump".to_owned(), text.to_owned()));
            let operator = std::sync::Arc::make_mut(operator);
            operator.attributes = attributes.into_iter().collect();
        }
        let model = std::sync::Arc::new(ModelId::default());
        let (_, selected) = session.attach(&model, &operators, &[]);
        let mut tasks: Vec<u32> = selected.kept.keys().copied().collect();
        tasks.sort_unstable();
        assert_eq!(tasks, expected, "{texts:?} {marks:?}");
    };
    check([Some("true"), None], &[], &[0]);
    check([Some("true"), Some("true")], &[], &[0, 1]);
    check([Some("false"), Some("1")], &[], &[]);
    // A mark from outside goes before.
    check([Some("true"), None], &[("/", true)], &[0, 1]);
    check([Some("true"), None], &[("/conv", false)], &[]);
}
