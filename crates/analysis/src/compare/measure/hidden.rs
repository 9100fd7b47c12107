//! Inputs that an operator has and no dump shows: what differs may have come through them.

use opscope_store::record::SlotSide;

use crate::compare::attribution::kinds::plain_type;
use crate::compare::matching::{MatchedDumps, RunPair};
use crate::compare::side::{ComparedDump, positions};

/// Forms that number the tensors of an operator and nothing else, so that a gap is a tensor.
const NUMBERING_FORMS: [&str; 2] = ["ascend", "mindspore"];
/// Inputs that operators of a type have at least. Sums and the like are left out: tools may keep a
/// number in place of a tensor.
const LEAST_INPUTS: [(&str, usize); 13] = [
    ("batchmatmul", 2),
    ("batchmatmulv2", 2),
    ("conv", 2),
    ("conv2d", 2),
    ("conv3d", 2),
    ("convtranspose", 2),
    ("gather", 2),
    ("gemm", 2),
    ("layernorm", 3),
    ("matmul", 2),
    ("matmulinteger", 2),
    ("matmulv2", 2),
    ("where", 3),
];

/// Positions of inputs that operators of a pair have and the dumps do not show; nothing of operators
/// that were fused, and of those that show no input at all.
pub(super) fn hidden_inputs(sides: MatchedDumps<'_>, pair: &RunPair) -> Vec<u32> {
    let (&[target], &[golden]) = (&pair.target[..], &pair.golden[..]) else {
        return Vec::new();
    };
    let mut hidden = of_run(sides.target, target);
    hidden.extend(of_run(sides.golden, golden));
    hidden.sort_unstable();
    hidden.dedup();
    hidden
}

fn of_run(dump: &ComparedDump, run: usize) -> Vec<u32> {
    let execution = &dump.runs[run];
    let inputs = execution.slots.iter();
    let inputs = inputs.filter(|slot| slot.side == SlotSide::Input);
    let shown: Vec<usize> = inputs.map(|slot| slot.index as usize).collect();
    // A dump of outputs alone shows no input of anything, which its coverage says.
    if shown.is_empty() {
        return Vec::new();
    }
    let (shown, is_there): (Vec<usize>, Vec<bool>) = match dump.presence(run, SlotSide::Input) {
        Some(is_present) => {
            let known = positions(execution, SlotSide::Input, &is_present).into_iter();
            (known.map(|(_, position)| position).collect(), is_present)
        }
        None => {
            let is_numbered = NUMBERING_FORMS.contains(&dump.form);
            let last = shown.iter().max().map_or(0, |last| last + 1);
            let n_numbered = if is_numbered { last } else { 0 };
            let n = n_numbered.max(n_least(&execution.op_type));
            // If tensors have no numbers, only their count is known.
            let n = if is_numbered || shown.len() < n { n } else { 0 };
            (shown, vec![true; n])
        }
    };
    let missing = (0..is_there.len()).filter(|&i| is_there[i] && !shown.contains(&i));
    missing.filter_map(|i| u32::try_from(i).ok()).collect()
}

fn n_least(op_type: &str) -> usize {
    // PyTorch's overloads take numbers in place of tensors.
    let is_torch = op_type.starts_with("aten") || op_type.contains("::") || op_type.contains('.');
    let name = plain_type(op_type);
    let mut least = LEAST_INPUTS.iter().filter(|_| !is_torch);
    least
        .find(|(known, _)| *known == name)
        .map_or(0, |(_, n)| *n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_have_two_inputs() {
        assert_eq!((n_least("MatMul"), n_least("Where")), (2, 3));
        assert_eq!((n_least("Relu"), n_least("aten_mul_Scalar")), (0, 0));
    }
}
