//! Which NaN or infinity is reported, and which infinities count as wanted.

use std::sync::Arc;

use opscope_capture::sink::MemorySink;
use opscope_capture::{
    CaptureSession, FirstNonFinite, NonFiniteOrigin, Plan, SessionOptions, SessionSummary,
    SlotSides,
};
use opscope_store::record::{ModelId, Operator, SlotSide};
use opscope_tensor::{DType, Shape, Tensor};

const NAN: f32 = f32::NAN;
const INF: f32 = f32::INFINITY;

/// An operator: type, inputs, outputs, and of each the values.
type Step<'a> = (&'a str, &'a [(&'a str, &'a [f32])], (&'a str, &'a [f32]));

fn tensor(values: &[f32]) -> Tensor {
    let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    Tensor::from_vec(DType::F32, Shape::new([values.len()]).unwrap(), bytes).unwrap()
}

fn operator(task_id: usize, (op_type, inputs, output): &Step<'_>) -> Arc<Operator> {
    Arc::new(Operator {
        task_id: task_id as u32,
        op_type: (*op_type).to_owned(),
        op_name: format!("op{task_id}"),
        inputs: inputs.iter().map(|(name, _)| (*name).to_owned()).collect(),
        outputs: vec![output.0.to_owned()],
        ..Operator::default()
    })
}

/// Runs each list of operators as one step.
fn run(sides: SlotSides, steps: &[&[Step<'_>]]) -> SessionSummary {
    let plan = Plan {
        sides,
        ..Plan::everything()
    };
    let options = SessionOptions {
        n_writers: 3,
        ..SessionOptions::default()
    };
    let session = CaptureSession::start(plan, Arc::new(MemorySink::default()), options).unwrap();
    let graph: Vec<_> = steps[0]
        .iter()
        .enumerate()
        .map(|(i, one)| operator(i, one))
        .collect();
    let (mut tap, _) = session.attach(&Arc::new(ModelId::default()), &graph, &[]);
    for (number, step) in steps.iter().enumerate() {
        tap.begin_step(number as u64);
        for (operator, (_, inputs, output)) in graph.iter().zip(*step) {
            let mut probe = tap.open(operator).unwrap();
            for (i, (_, values)) in inputs.iter().enumerate() {
                probe.input(i, tensor(values));
            }
            probe.output(0, tensor(output.1));
            probe.submit();
        }
        tap.end_step();
    }
    session.finish()
}

fn told(
    first: Option<&FirstNonFinite>,
) -> Option<(String, SlotSide, Option<usize>, NonFiniteOrigin)> {
    first.map(|first| {
        (
            first.op_name.clone(),
            first.side,
            first.element,
            first.origin,
        )
    })
}

/// A name, the steps' operators, the first finding that is wanted, and how many operators have
/// wanted infinities.
type MaskCase<'a> = (
    &'a str,
    &'a [Step<'a>],
    Option<(&'a str, SlotSide, usize, NonFiniteOrigin)>,
    u64,
);

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn masks_are_told_apart_from_results() {
    use NonFiniteOrigin::{Computed, Constant, Given};
    let finite: &[f32] = &[1.0, 2.0];
    let mask: &[f32] = &[0.0, -INF];
    let cases: &[MaskCase<'_>] = &[
        (
            "a constant",
            &[
                ("Constant", &[], ("m", mask)),
                ("Add", &[("x", finite), ("m", mask)], ("s", &[1.0, -INF])),
            ],
            None,
            2,
        ),
        (
            "an initializer",
            &[("Add", &[("x", finite), ("m", mask)], ("s", &[1.0, -INF]))],
            None,
            1,
        ),
        (
            "a selection",
            &[(
                "Where",
                &[("x", finite), ("c", &[-INF])],
                ("s", &[1.0, -INF]),
            )],
            None,
            1,
        ),
        (
            "an overflow",
            &[(
                "Mul",
                &[("x", &[1.0, 3e38]), ("y", &[1.0, 3e38])],
                ("s", &[1.0, INF]),
            )],
            Some(("op0", SlotSide::Output, 1, Computed)),
            0,
        ),
        (
            "an overflow beside a mask",
            &[(
                "Mul",
                &[("x", &[-INF, 3e38]), ("y", &[1.0, 3e38])],
                ("s", &[-INF, INF]),
            )],
            Some(("op0", SlotSide::Output, 0, Computed)),
            0,
        ),
        (
            "a mask that is stretched",
            &[(
                "Add",
                &[("x", &[1.0, 2.0]), ("m", &[-INF])],
                ("s", &[-INF, -INF]),
            )],
            None,
            1,
        ),
        (
            "a computed mask",
            &[
                ("Log", &[("b", &[1.0, 0.0])], ("l", mask)),
                ("Add", &[("x", finite), ("l", mask)], ("s", &[1.0, -INF])),
                ("Softmax", &[("s", &[1.0, -INF])], ("p", &[1.0, 0.0])),
            ],
            None,
            3,
        ),
        (
            "one that goes elsewhere too",
            &[
                ("Log", &[("b", &[1.0, 0.0])], ("l", mask)),
                ("Softmax", &[("l", mask)], ("p", &[1.0, 0.0])),
                ("Relu", &[("l", mask)], ("r", &[0.0, 0.0])),
            ],
            Some(("op0", SlotSide::Output, 1, Computed)),
            0,
        ),
        (
            "one that is a result",
            &[("Log", &[("b", &[1.0, 0.0])], ("l", mask))],
            Some(("op0", SlotSide::Output, 1, Computed)),
            0,
        ),
        (
            "+Inf before a softmax",
            &[
                ("Exp", &[("b", &[1.0, 99.0])], ("l", &[1.0, INF])),
                ("Softmax", &[("l", &[1.0, INF])], ("p", &[0.0, NAN])),
            ],
            Some(("op0", SlotSide::Output, 1, Computed)),
            0,
        ),
        (
            "a row that is masked whole",
            &[
                (
                    "Add",
                    &[("x", finite), ("m", &[-INF, -INF])],
                    ("s", &[-INF, -INF]),
                ),
                ("Softmax", &[("s", &[-INF, -INF])], ("p", &[NAN, NAN])),
            ],
            Some(("op1", SlotSide::Output, 0, Computed)),
            1,
        ),
        (
            "a NaN that was given",
            &[("Relu", &[("x", &[1.0, NAN])], ("r", &[1.0, NAN]))],
            Some(("op0", SlotSide::Input, 1, Given)),
            0,
        ),
        (
            "a NaN that is a constant",
            &[("Constant", &[], ("c", &[NAN]))],
            Some(("op0", SlotSide::Output, 0, Constant)),
            0,
        ),
        (
            "PyTorch's operators",
            &[
                ("aten.full.default", &[], ("m", mask)),
                (
                    "aten.add_.Tensor",
                    &[("x", finite), ("m", mask)],
                    ("s", &[1.0, -INF]),
                ),
                (
                    "aten._softmax.default",
                    &[("s", &[1.0, -INF])],
                    ("p", &[1.0, 0.0]),
                ),
            ],
            None,
            3,
        ),
    ];
    for (name, step, expected, n_deliberate) in cases {
        let summary = run(SlotSides::Both, &[step]);
        let expected = expected
            .map(|(op, side, element, origin)| (op.to_owned(), side, Some(element), origin));
        assert_eq!(told(summary.first_non_finite.as_ref()), expected, "{name}");
        assert_eq!(
            summary.deliberate_infinities.n_operators, *n_deliberate,
            "{name}"
        );
    }
}

#[test]
fn a_mask_of_an_earlier_step_does_not_hide_a_nan() {
    let mask: &[f32] = &[0.0, -INF];
    let good: &[Step<'_>] = &[
        (
            "Add",
            &[("x", &[1.0, 2.0]), ("m", mask)],
            ("s", &[1.0, -INF]),
        ),
        ("Log", &[("y", &[1.0, 1.0])], ("l", &[0.0, 0.0])),
    ];
    let bad: &[Step<'_>] = &[good[0], ("Log", &[("y", &[1.0, -1.0])], ("l", &[0.0, NAN]))];
    for sides in [SlotSides::Both, SlotSides::Outputs, SlotSides::Inputs] {
        let summary = run(sides, &[good, good, bad]);
        let first = summary.first_non_finite.as_ref();
        // A result without readers is unseen where inputs alone are dumped.
        let step = if sides == SlotSides::Inputs { 0 } else { 2 };
        assert_eq!(first.map(|first| first.step), Some(step), "{sides:?}");
        assert_eq!(
            first.unwrap().value.is_nan(),
            sides != SlotSides::Inputs,
            "{sides:?}"
        );
    }
}
