//! Floats and neighbours that are kept beside quantised values.

use std::sync::Arc;

use opscope_capture::sink::MemorySink;
use opscope_capture::{
    CaptureSession, Exclusion, GraphView, OperatorRule, Plan, QuantisedKind, QuantisedPlace,
    SessionOptions, SlotPosition, SlotSides, Tap, TensorRule, TensorRules,
};
use opscope_dump::StatsSink;
use opscope_store::record::{ModelId, Operator, Record, SlotSide};

use super::double::{floats, operator};
use super::quantised_model::{
    ADD, CONV, POOL, everything, execute, lines, numbers, once, only, operators, quantised,
    records, value, with_options,
};

#[test]
fn floats_lie_beside_integers_that_nothing_dequantises() {
    let records = records(everything(), once);
    assert_eq!(
        lines(&records),
        [
            "0:quantise:3/1",
            "0:x_DequantizeLinear:3/1",
            "1:b_DequantizeLinear:2/1",
            "1:conv:9/1",
            "1:w_DequantizeLinear:3/1",
            "1:y_DequantizeLinear:3/1",
            "2:pool:1/1",
            "3:add:8/1",
            "3:p_DequantizeLinear:3/1",
            "4:z_DequantizeLinear:3/1",
            "5:relu:1/1",
        ]
    );
    let view = |name: &str| {
        let name = format!("{name}_DequantizeLinear");
        let mut records = records.iter();
        let record = records.find(|record| record.operator.op_name == name);
        let record = record.unwrap();
        assert_eq!(record.operator.op_type, "DequantizeLinear");
        (numbers(&record.outputs[0].1), record.clone())
    };
    assert_eq!(view("x").0, [1.0, -64.5]);
    assert_eq!(view("y").0, [1.0, 2.0]);
    assert_eq!(view("p").0, [2.0, 3.0]);
    let (floats, record) = view("w");
    assert_eq!(floats, [2.0, 4.0, 8.0, -8.0]);
    assert_eq!(record.outputs[0].1.shape().dims(), [2, 2]);
    assert_eq!(record.operator.inputs, ["w_quantized", "ws", "wz"]);
    assert_eq!(record.operator.outputs, ["w_DequantizeLinear_Output"]);
    assert_eq!(record.operator.attributes, [("axis".into(), "0".into())]);
    assert_eq!(record.inputs[0].1.host_bytes().unwrap(), [1, 2, 3, 0xff]);
    // The scale of what is added to products is the product of their scales.
    let (floats, record) = view("b");
    assert_eq!(floats, [100.0, -14.0]);
    assert_eq!(numbers(&record.inputs[1].1), [1.0, 2.0]);
    assert_eq!(record.operator.inputs, ["b_quantized", "xs * ws"]);
}

#[test]
fn without_the_option_nothing_of_that_is_there() {
    let plan = Plan {
        shows_quantising: false,
        ..everything()
    };
    let names = lines(&records(plan, once));
    assert_eq!(names.len(), 6, "{names:?}");
}

#[test]
fn a_selected_operator_brings_its_neighbours() {
    let check = |name: &str, expected: &[&str]| {
        assert_eq!(lines(&records(only(name), once)), expected, "{name}");
    };
    check(
        "conv",
        &[
            "0:quantise:3/1",
            "0:x_DequantizeLinear:3/1",
            "1:b_DequantizeLinear:2/1",
            "1:conv:9/1",
            "1:w_DequantizeLinear:3/1",
            "1:y_DequantizeLinear:3/1",
        ],
    );
    // Its neighbours know the scales, and need not be written for that.
    check(
        "pool",
        &[
            "1:y_DequantizeLinear:3/1",
            "2:pool:1/1",
            "3:p_DequantizeLinear:3/1",
        ],
    );
    check(
        "add",
        &[
            "3:add:8/1",
            "3:p_DequantizeLinear:3/1",
            "4:z_DequantizeLinear:3/1",
        ],
    );
    check("relu", &["4:z_DequantizeLinear:3/1", "5:relu:1/1"]);
    check("nothing of the kind", &[]);
}

/// A chain of the QDQ form, in which views and neighbours stand between.
#[test]
fn views_are_walked_through_and_siblings_found() {
    let operators = [
        operator(0, "QuantizeLinear", "q", &["x", "s"], &["i"]),
        operator(1, "Reshape", "shape", &["i", "n"], &["j"]),
        operator(2, "DequantizeLinear", "d", &["j", "s"], &["f"]),
        operator(3, "Relu", "relu", &["f"], &["g"]),
        operator(4, "QuantizeLinear", "q2", &["g", "t"], &["k"]),
        operator(5, "MatMulInteger", "product", &["k", "k"], &["m"]),
        operator(6, "DequantizeLinear", "d2", &["k", "t"], &["h"]),
        operator(7, "Tanh", "tanh", &["h"], &["o"]),
    ];
    let at = |task_id, place: SlotPosition, value, kind| QuantisedPlace {
        task_id,
        place,
        value,
        kind,
        scale: vec![(SlotSide::Input, 1)],
        zero_point: None,
        axis: 1,
        block_size: 0,
    };
    use QuantisedKind::{Computes, Dequantises, Quantises};
    let quantised = [
        at(0, (SlotSide::Output, 0), 1, Quantises),
        at(2, (SlotSide::Input, 0), 2, Dequantises),
        at(4, (SlotSide::Output, 0), 3, Quantises),
        at(5, (SlotSide::Input, 0), 3, Computes),
        at(6, (SlotSide::Input, 0), 3, Dequantises),
    ];
    for (name, expected) in [
        ("relu", &[0, 2, 3, 4, 6][..]),
        ("product", &[4, 5, 6]),
        ("tanh", &[4, 6, 7]),
        ("shape", &[0, 1, 2]),
        ("q", &[0, 2]),
    ] {
        let session = CaptureSession::start(
            only(name),
            Arc::new(MemorySink::default()),
            SessionOptions::default(),
        );
        let session = session.unwrap();
        let graph = GraphView {
            operators: &operators,
            quantised: &quantised,
            ..GraphView::default()
        };
        let (_, selected) = session.attach_graph(&Arc::new(ModelId::default()), graph);
        let of_record = selected.kept.iter().filter(|(_, kept)| kept.n_slots() > 0);
        let mut tasks: Vec<u32> = of_record.map(|(task_id, _)| *task_id).collect();
        tasks.sort_unstable();
        assert_eq!(tasks, expected, "{name}");
        session.finish();
    }
}

#[test]
fn what_quantises_has_both_sides_whichever_is_asked_for() {
    let of_side = |sides| Plan {
        sides,
        ..everything()
    };
    // Weights are not kept where outputs are.
    assert_eq!(
        lines(&records(of_side(SlotSides::Outputs), once)),
        [
            "0:quantise:3/1",
            "0:x_DequantizeLinear:3/1",
            "1:conv:0/1",
            "1:y_DequantizeLinear:3/1",
            "2:pool:0/1",
            "3:add:0/1",
            "3:p_DequantizeLinear:3/1",
            "4:z_DequantizeLinear:3/1",
            "5:relu:0/1",
        ]
    );
    let names = lines(&records(of_side(SlotSides::Inputs), once));
    assert!(names.contains(&"1:conv:9/0".to_owned()), "{names:?}");
    assert!(
        names.contains(&"4:z_DequantizeLinear:3/1".to_owned()),
        "{names:?}"
    );
    assert!(
        names.contains(&"1:y_DequantizeLinear:3/1".to_owned()),
        "{names:?}"
    );
}

/// Floats of operators that repeat within a step are shown each time, except those that cannot have
/// changed.
#[test]
fn bodies_that_repeat() {
    let records = records(everything(), |tap, operators| {
        for step in 0..2 {
            tap.begin_step(step);
            for i in [CONV, POOL, ADD, CONV, POOL, ADD] {
                execute(tap, &operators[i]);
            }
            tap.end_step();
        }
    });
    let count = |name: &str, step: u64| {
        let is_it = |r: &&Record| r.operator.op_name == name && r.step == step;
        records.iter().filter(is_it).count()
    };
    for step in 0..2 {
        assert_eq!(count("w_DequantizeLinear", step), 1);
        assert_eq!(count("b_DequantizeLinear", step), 1);
        assert_eq!(count("y_DequantizeLinear", step), 2);
        assert_eq!(count("p_DequantizeLinear", step), 2);
    }
}

/// Engines may tell iterations apart by names.
#[test]
fn floats_are_called_after_their_iteration() {
    let records = records(everything(), |tap, operators| {
        tap.begin_step(0);
        for suffix in [".0", ".1"] {
            let mut operator = Operator::clone(&operators[CONV]);
            operator.op_name.push_str(suffix);
            execute(tap, &Arc::new(operator));
        }
        tap.end_step();
    });
    assert_eq!(
        lines(&records),
        [
            "1:b_DequantizeLinear:2/1",
            "1:conv.0:9/1",
            "1:conv.1:9/1",
            "1:w_DequantizeLinear:3/1",
            "1:y_DequantizeLinear.0:3/1",
            "1:y_DequantizeLinear.1:3/1",
        ]
    );
}

#[test]
fn what_an_engine_is_to_show() {
    let session = CaptureSession::start(
        only("pool"),
        Arc::new(MemorySink::default()),
        SessionOptions::default(),
    );
    let session = session.unwrap();
    let (operators, quantised) = (operators(), quantised());
    let graph = GraphView {
        operators: &operators,
        quantised: &quantised,
        ..GraphView::default()
    };
    let (_, selected) = session.attach_graph(&Arc::new(ModelId::default()), graph);
    let positions = |task_id: u32| {
        let kept = &selected.kept[&task_id];
        (
            kept.positions(SlotSide::Input),
            kept.positions(SlotSide::Output),
        )
    };
    assert_eq!(positions(1), (vec![6, 7], vec![0]));
    assert_eq!(positions(2), (vec![0], vec![0]));
    assert_eq!(positions(3), (vec![0, 1, 2], vec![]));
    session.finish();
    let rule = |text: &str| text.parse::<TensorRule>().unwrap();
    let texts = [
        "name:y_DequantizeLinear",
        "type:QLinearConv",
        "type:MaxPool",
    ];
    let rules = TensorRules::new(texts.map(rule).into());
    assert_eq!(
        rules.unused(&selected, &operators),
        [&rule("type:QLinearConv")]
    );
}

#[test]
fn exclusions_count_for_floats_too() {
    let without = |operators, slots| {
        let excluded = vec![Exclusion {
            model: None,
            operators,
            slots,
        }];
        let plan = Plan {
            excluded,
            ..everything()
        };
        lines(&records(plan, once))
    };
    let of_type = |name: &str| OperatorRule::Type(name.to_owned());
    let names = without(of_type("DequantizeLinear"), None);
    assert!(
        names.iter().all(|name| !name.contains("Dequantize")),
        "{names:?}"
    );
    let names = without(OperatorRule::Name("y_DequantizeLinear".into()), None);
    assert!(
        names.iter().all(|name| !name.contains("y_Dequantize")),
        "{names:?}"
    );
    assert!(
        names.contains(&"1:w_DequantizeLinear:3/1".to_owned()),
        "{names:?}"
    );
    let names = without(
        of_type("DequantizeLinear"),
        Some(vec![(SlotSide::Input, 1)]),
    );
    assert!(
        names.contains(&"1:w_DequantizeLinear:2/1".to_owned()),
        "{names:?}"
    );
    let names = without(of_type("QLinearConv"), Some(vec![(SlotSide::Output, 0)]));
    assert!(
        names.iter().all(|name| !name.contains("y_Dequantize")),
        "{names:?}"
    );
}

#[test]
fn statistics_are_those_of_the_floats() {
    let check = |is_borrowed: bool| {
        let sink = Arc::new(StatsSink::default());
        with_options(
            everything(),
            sink.clone(),
            SessionOptions::default(),
            |tap, operators| {
                tap.begin_step(0);
                for operator in operators {
                    if !is_borrowed {
                        execute(tap, operator);
                        continue;
                    }
                    let mut probe = tap.open(operator).unwrap();
                    for (i, name) in operator.inputs.iter().enumerate() {
                        probe
                            .input_borrowed(i, value(name).host_view().unwrap())
                            .unwrap();
                    }
                    for (i, name) in operator.outputs.iter().enumerate() {
                        probe
                            .output_borrowed(i, value(name).host_view().unwrap())
                            .unwrap();
                    }
                    probe.submit();
                }
                tap.end_step();
            },
        );
        let rows = sink.take().unwrap();
        let row = |name: &str, side| {
            let mut rows = rows.iter();
            let is_it = |row: &&opscope_dump::StatsRow| {
                row.operator.op_name == name && row.side == side && row.index == 0
            };
            rows.find(is_it).unwrap().stats.unwrap()
        };
        let floats = row("x_DequantizeLinear", SlotSide::Output);
        assert_eq!((floats.min, floats.max), (-64.5, 1.0));
        let integers = row("x_DequantizeLinear", SlotSide::Input);
        assert_eq!((integers.min, integers.max), (-128.0, 3.0));
    };
    check(false);
    check(true);
}

#[test]
fn counts_add_up_however_it_ends() {
    let options = |n_tensors_max| SessionOptions {
        n_tensors_max,
        n_writers: 1,
        ..SessionOptions::default()
    };
    let run = |n_max, run: &dyn Fn(&mut Tap, &[Arc<Operator>])| {
        let sink = Arc::new(MemorySink::default());
        with_options(everything(), sink, options(n_max), |tap, operators| {
            run(tap, operators);
        })
    };
    let all = run(None, &|tap, operators| once(tap, operators));
    assert_eq!(
        (all.n_selected, all.n_dropped),
        (4 + 10 + 2 + 9 + 4 + 2 + 19, 0)
    );
    for n_max in 0..all.n_selected {
        let limited = run(Some(n_max), &|tap, operators| once(tap, operators));
        assert_eq!(limited.n_selected, all.n_selected, "{n_max}");
        assert_eq!(limited.dropped.n_limit, limited.n_dropped, "{n_max}");
        assert!(limited.n_written <= n_max);
    }
    let failed = run(None, &|tap, operators| {
        tap.begin_step(0);
        let probe = tap.open(&operators[CONV]).unwrap();
        probe.fail("no");
    });
    assert_eq!(failed.dropped.n_operator_failed, 10 + 11);
    // A scale that does not fit, and one that is not shown.
    for is_shown in [true, false] {
        let misfit = run(None, &|tap, operators| {
            tap.begin_step(0);
            let mut probe = tap.open(&operators[0]).unwrap();
            probe.input(0, value("x"));
            if is_shown {
                probe.input(1, floats(&[1.0, 2.0, 3.0]));
            }
            probe.input(2, value("xz"));
            probe.output(0, value("x_quantized"));
            probe.submit();
        });
        let n_missing = 4 + u64::from(!is_shown);
        assert_eq!(misfit.dropped.n_not_shown, n_missing);
        assert_eq!(misfit.n_written, 8 - n_missing);
    }
}
