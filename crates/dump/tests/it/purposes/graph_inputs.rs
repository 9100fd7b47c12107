//! Graph inputs in separate records.

use std::sync::Arc;

use opscope_capture::sink::MemorySink;
use opscope_capture::{ModelSelection, OperatorSelection, Plan, SlotSides, Steps};
use opscope_store::file_format::dump_data::DumpFile;
use opscope_tensor::Layout;

use super::double::{execute, files, floats, lazy_sink, operator, with_session};

fn plan(sides: SlotSides) -> Plan {
    Plan {
        sides,
        has_graph_inputs: true,
        ..Plan::everything()
    }
}

#[test]
fn each_reader_has_a_file_with_its_own_task() {
    let dir = tempfile::tempdir().unwrap();
    let operators = [
        operator(0, "Add", "add", &["x", "x"], &["s"]),
        operator(1, "Mul", "mul", &["s", "x"], &["p"]),
        operator(2, "Neg", "neg", &["x"], &["n"]),
    ];
    let selected = OperatorSelection::named(["add", "mul"]);
    let plan = Plan {
        models: ModelSelection::Every(selected),
        ..plan(SlotSides::Outputs)
    };
    let sink = Arc::new(lazy_sink(dir.path()));
    let summary = with_session(plan, sink, &operators, &["x"], |tap| {
        let x = floats(&[1.0, 2.0]).with_layout(Layout::Nchw);
        let s = floats(&[2.0, 4.0]);
        execute(
            tap,
            &operators[0],
            &[x.clone(), x.clone()],
            std::slice::from_ref(&s),
        );
        execute(tap, &operators[1], &[s, x.clone()], &[floats(&[2.0, 8.0])]);
        execute(tap, &operators[2], &[x], &[floats(&[-1.0, -2.0])]);
    });
    let files = files(dir.path());
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "20240102030405/0/net/1/0/Add.add.0.0.STAMP",
            "20240102030405/0/net/1/0/Data.x.0.0.STAMP",
            "20240102030405/0/net/1/0/Data.x.1.0.STAMP",
            "20240102030405/0/net/1/0/Mul.mul.1.0.STAMP",
        ]
    );
    let file = DumpFile::from_bytes(files[names[2]].clone()).unwrap();
    assert_eq!(file.header().op_name, "x");
    assert_eq!(
        (file.header().inputs.len(), file.header().outputs.len()),
        (0, 1)
    );
    let tensor = file.tensors().next().unwrap();
    assert_eq!(tensor.entry.layout(), Some(Layout::Nchw));
    assert_eq!(tensor.bytes, floats(&[1.0, 2.0]).host_bytes().unwrap());
    let c = summary.counters;
    // Eight tensors of the operators, and one more for each reader that is kept.
    assert_eq!((c.n_offered, c.n_selected, c.n_written), (8 + 2, 4, 4));
    assert_eq!((c.n_operators_written, c.n_files), (2, 4));
}

#[test]
fn inputs_of_the_operator_are_kept_beside_them_only_if_both_sides_are() {
    let operators = [operator(0, "Add", "add", &["x", "w"], &["s"])];
    for (sides, n_inputs, n_records) in [
        (SlotSides::Outputs, 0, 2),
        (SlotSides::Both, 2, 2),
        (SlotSides::Inputs, 2, 1),
    ] {
        let sink = Arc::new(MemorySink::default());
        with_session(plan(sides), sink.clone(), &operators, &["x"], |tap| {
            let x = floats(&[1.0]);
            execute(tap, &operators[0], &[x.clone(), x.clone()], &[x]);
        });
        let records = sink.take();
        assert_eq!(records.len(), n_records, "{sides:?}");
        let own = records.last().unwrap();
        assert_eq!(
            (own.operator.op_name.as_str(), own.inputs.len()),
            ("add", n_inputs)
        );
        // The input was there first.
        assert!(records.is_sorted_by(|a, b| a.timestamp_us < b.timestamp_us));
    }
}

#[test]
fn what_is_not_shown_counts_as_dropped() {
    let operators = [operator(0, "Add", "add", &["x"], &["s"])];
    let sink = Arc::new(MemorySink::default());
    let plan = Plan {
        steps: Steps::in_ranges(vec![0..=1]),
        ..plan(SlotSides::Outputs)
    };
    let summary = with_session(plan, sink, &operators, &["x"], |tap| {
        // The operator fails; shows no input; shows one twice; runs in a step that is not kept.
        drop(tap.open(&operators[0]));
        execute(tap, &operators[0], &[], &[floats(&[1.0])]);
        tap.begin_step(1);
        let x = floats(&[2.0]);
        let mut probe = tap.open(&operators[0]).unwrap();
        probe.input(0, x.clone());
        probe.input(0, x.clone());
        probe.output(0, x.clone());
        probe.output(0, x.clone());
        probe.output(7, x.clone());
        probe.submit();
        tap.begin_step(2);
        assert!(tap.open(&operators[0]).is_none());
    });
    let c = summary.counters;
    assert_eq!((c.n_selected, c.n_written, c.n_dropped), (6, 3, 3));
}
