//! Results that are rounded while the model runs.

use opscope_tensor::RoundingFormat;

use super::build::*;
use super::*;
use crate::ResultRounding;
use crate::onnx::schema::TensorProto;

const FLOAT16: i64 = 10;
const DOUBLE: i64 = 11;
const BFLOAT16: i64 = 16;

/// Next to 1.01 in bfloat16.
const BRAIN: f32 = 1.007_812_5;

fn to_brain(tasks: &[u32]) -> ResultRounding {
    ResultRounding::new(RoundingFormat::Bfloat16, tasks.iter().copied())
}

/// The first result as numbers, under this rounding.
fn first(model: &mut dyn LoadedModel, inputs: &[Tensor], tasks: &[u32]) -> Vec<f32> {
    f32s(&model.run_rounded(inputs, &to_brain(tasks)).unwrap()[0])
}

#[test]
fn only_the_operators_asked_for_are_rounded() {
    let Some(engine) = engine() else { return };
    let nodes = [
        node("Identity", &["x"], &["a"]),
        node("Split", &["a"], &["b", "c"]).int("num_outputs", 2),
        node("Add", &["b", "c"], &["y"]),
    ];
    // The input itself is a result too, and an operator that passes it on must not change it.
    let results = [value("y", FLOAT, 1), value("c", FLOAT, 1)];
    let model = model(graph(&[value("x", FLOAT, 1)], &[], &nodes, &results));
    let mut loaded = load(&engine, &model);
    let x = [tensor(&[2], &[1.01, 2.02])];
    let plain = f32s(&loaded.run(&x, None).unwrap()[0]);
    let survey = loaded.survey_results(&x).unwrap();
    let found: Vec<(u32, usize)> = survey
        .operators()
        .map(|one| (one.operator.task_id, one.float_outputs().count()))
        .collect();
    assert_eq!(found, [(0, 1), (1, 2), (2, 1)]);
    let sum = 1.01_f32 + 2.02;
    for (tasks, expected) in [
        (&[][..], sum),
        (&[0], BRAIN + 2.0 * BRAIN),
        (&[1], BRAIN + 2.0 * BRAIN),
        (&[2], 3.031_25),
        (&[], sum),
    ] {
        assert_eq!(first(&mut *loaded, &x, tasks), [expected], "{tasks:?}");
    }
    assert_eq!((plain, f32s(&x[0])), (vec![sum], vec![1.01, 2.02]));
    // The plain session is recreated on request.
    assert_eq!(f32s(&loaded.run(&x, None).unwrap()[0]), [sum]);
}

#[test]
fn every_iteration_is_rounded() {
    let Some(engine) = engine() else { return };
    let body = graph(
        &[
            value("i", INT64, 0),
            value("on", BOOL, 0),
            value("carried", FLOAT, 1),
        ],
        &[],
        &[
            node("Identity", &["on"], &["still_on"]),
            node("Add", &["carried", "x"], &["sum"]),
        ],
        &[value("still_on", BOOL, 0), value("sum", FLOAT, 1)],
    );
    let nodes = [
        node("Loop", &["n", "", "x"], &["y"]).body("body", body),
        node("Neg", &["y"], &["z"]),
    ];
    let weights = [ints("n", &[], &[3])];
    let results = [value("z", FLOAT, 1)];
    let model = model(graph(&[value("x", FLOAT, 1)], &weights, &nodes, &results));
    let mut loaded = load(&engine, &model);
    let x = [tensor(&[1], &[1.01])];
    let survey = loaded.survey_results(&x).unwrap();
    let floats = survey
        .operators()
        .filter(|one| one.float_outputs().count() > 0);
    let tasks: Vec<u32> = floats.map(|one| one.operator.task_id).collect();
    assert_eq!(tasks, [0, 2, 3]);
    let brain = |x: f32| half::bf16::from_f32(x).to_f32();
    let (mut plain, mut rounded) = (1.01_f32, 1.01_f32);
    for _ in 0..3 {
        plain += 1.01;
        rounded = brain(rounded + 1.01);
    }
    assert_eq!(first(&mut *loaded, &x, &[]), [-plain]);
    assert_eq!(first(&mut *loaded, &x, &[2]), [-rounded]);
    assert_eq!(first(&mut *loaded, &x, &[0]), [-brain(plain)]);
}

#[test]
fn floats_of_all_types_and_nothing_else() {
    let Some(engine) = engine() else { return };
    let cast = |to: i64, output: &str| node("Cast", &["x"], &[output]).int("to", to);
    let back = |input: &str, output: &str| node("Cast", &[input], &[output]).int("to", 1);
    let nodes = [
        cast(FLOAT16, "half"),
        back("half", "of_half"),
        cast(BFLOAT16, "brain"),
        back("brain", "of_brain"),
        cast(DOUBLE, "double"),
        back("double", "of_double"),
        cast(INT64.into(), "whole"),
        cast(TEXT.into(), "text"),
        node("Shape", &["x"], &["shape"]),
        node("SplitToSequence", &["x", "one"], &["parts"]),
        node("SequenceAt", &["parts", "one"], &["part"]),
        node("Less", &["x", "x"], &["less"]),
    ];
    let results = [
        value("of_half", FLOAT, 1),
        value("of_brain", FLOAT, 1),
        value("of_double", FLOAT, 1),
        value("whole", INT64, 1),
        value("text", TEXT, 1),
        value("part", FLOAT, 1),
        value("less", BOOL, 1),
    ];
    let weights = [ints("one", &[], &[1])];
    let model = model(graph(&[value("x", FLOAT, 1)], &weights, &nodes, &results));
    let mut loaded = load(&engine, &model);
    let x = [tensor(&[2], &[1.01, 300.7])];
    let plain = loaded.run(&x, None).unwrap();
    let survey = loaded.survey_results(&x).unwrap();
    let has_floats = survey
        .operators()
        .map(|one| one.float_outputs().count() == 1);
    let expected = [
        true, true, true, true, true, true, false, false, false, false, true, false,
    ];
    assert_eq!(has_floats.collect::<Vec<_>>(), expected);
    let unrounded = loaded.run_rounded(&x, &to_brain(&[])).unwrap();
    let all: Vec<u32> = (0..12).collect();
    let rounded = loaded.run_rounded(&x, &to_brain(&all)).unwrap();
    for (i, (before, same)) in plain.iter().zip(&unrounded).enumerate() {
        let [before, same, after] =
            [before, same, &rounded[i]].map(|tensor| tensor.host_bytes().unwrap());
        assert_eq!(before, same, "{i}");
        // bfloat16 has its own values, and what is no float is as it was.
        assert_eq!(after == before, [1, 3, 4, 6].contains(&i), "{i}");
    }
    assert_eq!(f32s(&rounded[0]), [BRAIN, 300.0]);
    assert_eq!(f32s(&rounded[2]), [BRAIN, 300.0]);
}

#[test]
fn tensors_without_elements_and_axes() {
    let Some(engine) = engine() else { return };
    let nodes = [
        node("Neg", &["x"], &["y"]),
        node("ReduceSum", &["y"], &["sum"]).int("keepdims", 0),
    ];
    let results = [value("y", FLOAT, 2), value("sum", FLOAT, 0)];
    let model = model(graph(&[value("x", FLOAT, 2)], &[], &nodes, &results));
    let mut loaded = load(&engine, &model);
    let empty = [tensor(&[0, 3], &[])];
    loaded.survey_results(&empty).unwrap();
    for format in RoundingFormat::ALL {
        let rounding = ResultRounding::new(format, [0, 1]);
        let outputs = loaded.run_rounded(&empty, &rounding).unwrap();
        assert_eq!(outputs[0].shape().dims(), [0, 3]);
        assert_eq!(f32s(&outputs[1]), [0.0]);
        assert_eq!(outputs[1].shape().dims(), [] as [usize; 0]);
    }
}

/// Random operators draw the same numbers in every run, so that a difference comes from rounding.
#[test]
fn random_numbers_begin_anew() {
    let Some(engine) = engine() else { return };
    let nodes = [
        node("RandomNormalLike", &["x"], &["noise"]),
        node("Add", &["x", "noise"], &["y"]),
    ];
    let model = model(graph(
        &[value("x", FLOAT, 1)],
        &[] as &[TensorProto],
        &nodes,
        &[value("y", FLOAT, 1)],
    ));
    let mut loaded = load(&engine, &model);
    let x = [tensor(&[4], &[0.0; 4])];
    let plain = f32s(&loaded.run(&x, None).unwrap()[0]);
    loaded.survey_results(&x).unwrap();
    for _ in 0..2 {
        assert_eq!(first(&mut *loaded, &x, &[]), plain);
    }
    assert_ne!(first(&mut *loaded, &x, &[0]), plain);
}

/// An operator that no survey has seen is left as it is.
#[test]
fn surveys_add_up() {
    let Some(engine) = engine() else { return };
    let branch = |op_type: &str| {
        graph(
            &[],
            &[],
            &[node(op_type, &["x"], &[op_type])],
            &[value(op_type, FLOAT, 1)],
        )
    };
    let nodes = [node("If", &["c"], &["y"])
        .body("then_branch", branch("Neg"))
        .body("else_branch", branch("Identity"))];
    let inputs = [value("x", FLOAT, 1), value("c", BOOL, 0)];
    let model = model(graph(&inputs, &[], &nodes, &[value("y", FLOAT, 1)]));
    let mut loaded = load(&engine, &model);
    let given = |is_then: bool| {
        let bytes = vec![u8::from(is_then)];
        let condition = Tensor::from_vec(DType::Bool, Shape::new([]).unwrap(), bytes);
        [tensor(&[1], &[1.01]), condition.unwrap()]
    };
    let survey = loaded.survey_results(&given(true)).unwrap();
    assert_eq!(
        [0, 1, 2].map(|task_id| survey.contains(task_id)),
        [true, true, false]
    );
    assert_eq!(first(&mut *loaded, &given(true), &[1]), [-BRAIN]);
    assert_eq!(first(&mut *loaded, &given(false), &[2]), [1.01]);
    loaded.survey_results(&given(false)).unwrap();
    assert_eq!(first(&mut *loaded, &given(false), &[2]), [BRAIN]);
    assert_eq!(first(&mut *loaded, &given(true), &[1]), [-BRAIN]);
}
