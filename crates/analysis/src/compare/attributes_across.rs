//! Attributes that ONNX and PyTorch have under other names, or by position.

use std::collections::BTreeMap;

use super::attribution::kinds::plain_type;
use super::result::AttributeDifference;
use super::side::OperatorExecution;

/// An attribute of an ONNX operator, the argument of PyTorch's that it is, and the values of both if
/// they are left out; empty where one has to be given.
struct Counterpart {
    onnx: (&'static str, &'static str, &'static str),
    torch: (&'static str, &'static str, &'static str),
}

const COUNTERPARTS: [Counterpart; 11] = [
    row(
        ("LayerNormalization", "epsilon", "1e-5"),
        ("native_layer_norm", "argument.4", "1e-5"),
    ),
    row(
        ("LayerNormalization", "epsilon", "1e-5"),
        ("layer_norm", "argument.4", "1e-5"),
    ),
    row(
        ("BatchNormalization", "epsilon", "1e-5"),
        ("native_batch_norm", "argument.7", ""),
    ),
    row(
        ("BatchNormalization", "epsilon", "1e-5"),
        ("batch_norm", "argument.7", ""),
    ),
    row(
        ("InstanceNormalization", "epsilon", "1e-5"),
        ("native_batch_norm", "argument.7", ""),
    ),
    row(
        ("LeakyRelu", "alpha", "0.01"),
        ("leaky_relu", "argument.1", "0.01"),
    ),
    row(("Elu", "alpha", "1"), ("elu", "argument.1", "1")),
    row(("Softmax", "axis", "-1"), ("_softmax", "argument.1", "")),
    row(
        ("LogSoftmax", "axis", "-1"),
        ("_log_softmax", "argument.1", ""),
    ),
    row(("TopK", "largest", "1"), ("topk", "argument.3", "True")),
    row(("TopK", "axis", "-1"), ("topk", "argument.2", "-1")),
];
/// Maximum distance of the same number in two dtypes, relative to its size.
const SAME_NUMBER: f64 = 1e-3;

const fn row(
    onnx: (&'static str, &'static str, &'static str),
    torch: (&'static str, &'static str, &'static str),
) -> Counterpart {
    Counterpart { onnx, torch }
}

/// The attributes of two operators, one of PyTorch and one of ONNX, whose numbers are known to
/// differ, under the name in ONNX.
pub(super) fn across_frameworks(
    runs: [&OperatorExecution; 2],
    attributes: [&BTreeMap<&str, &str>; 2],
    is_torch: [bool; 2],
) -> Vec<AttributeDifference> {
    let types = runs.map(|run| plain_type(&run.op_type));
    let differences = COUNTERPARTS.iter().filter_map(|row| {
        let texts = [0, 1].map(|side| {
            let (op_type, name, default) = if is_torch[side] { row.torch } else { row.onnx };
            let is_it = types[side] == op_type.to_lowercase();
            let text = attributes[side].get(name).copied().unwrap_or(default);
            let text = match text {
                "True" => "1",
                "False" => "0",
                other => other,
            };
            is_it.then_some(text)
        });
        let [Some(target), Some(golden)] = texts else {
            return None;
        };
        let name = row.onnx.1;
        let numbers = [0, 1].map(|side| {
            let number = [target, golden][side].parse::<f64>().ok()?;
            // Views may have brought axes together in front of this one.
            let n_axes = runs[side]
                .slots
                .iter()
                .find_map(|slot| slot.shape.as_ref())?
                .len();
            let is_from_front = name == "axis" && number >= 0.0;
            Some(if is_from_front {
                number - n_axes as f64
            } else {
                number
            })
        });
        let [Some(t), Some(g)] = numbers else {
            return None;
        };
        let is_same = (t - g).abs() <= SAME_NUMBER * t.abs().max(g.abs());
        (!is_same).then(|| AttributeDifference {
            name: name.to_owned(),
            argument: None,
            target: Some(target.to_owned()),
            golden: Some(golden.to_owned()),
        })
    });
    differences.collect()
}

#[cfg(test)]
mod tests {
    use opscope_store::record::SlotSide;
    use opscope_tensor::DType;

    use super::*;
    use crate::compare::side::ExecutionSlot;

    fn run(op_type: &str, n_axes: usize) -> OperatorExecution {
        let shape = vec![2; n_axes];
        let slot = ExecutionSlot::described(SlotSide::Output, 0, DType::F32, &shape);
        OperatorExecution {
            op_type: op_type.into(),
            slots: vec![slot],
            ..OperatorExecution::default()
        }
    }

    fn check(onnx: (&str, &str, &str), torch: (&str, &str, &str), expected: Option<[&str; 2]>) {
        let runs = [run(onnx.0, 4), run(torch.0, 3)];
        let sets = [onnx, torch].map(|(_, name, text)| BTreeMap::from([(name, text)]));
        let found = across_frameworks([&runs[0], &runs[1]], [&sets[0], &sets[1]], [false, true]);
        let found = found
            .first()
            .map(|at| [at.target.clone(), at.golden.clone()]);
        let expected = expected.map(|texts| texts.map(|text| Some(text.to_owned())));
        assert_eq!(found, expected, "{onnx:?} {torch:?}");
    }

    #[test]
    fn numbers_of_counterparts() {
        let norm = "aten_native_layer_norm_default";
        let epsilon = ("LayerNormalization", "epsilon", "0.3");
        check(
            epsilon,
            (norm, "argument.4", "1e-05"),
            Some(["0.3", "1e-05"]),
        );
        let rounded = ("LayerNormalization", "epsilon", "9.999999747378752e-6");
        check(rounded, (norm, "argument.4", "1e-05"), None);
        let softmax = "aten__softmax_default";
        check(("Softmax", "axis", "3"), (softmax, "argument.1", "2"), None);
        check(
            ("Softmax", "axis", "2"),
            (softmax, "argument.1", "-1"),
            Some(["2", "-1"]),
        );
        let largest = ("TopK", "largest", "0");
        check(
            largest,
            ("aten_topk_default", "argument.1", "2"),
            Some(["0", "1"]),
        );
        check(
            ("Softmax", "axis", "2"),
            ("aten_topk_default", "argument.1", "-1"),
            None,
        );
    }
}
