//! Which of several operators, that are one on the other side, is at fault.
//!
//! Where both sides part, one operator of the golden side may be several of the target, such as a
//! linear layer that is a `MatMul` and an `Add`. Values on the way have no counterpart.
//! But a network has many such places, and those at which both sides agree tell what the operators
//! have to be: the first that is another one, or reads a weight that the golden side has not, is
//! named.

use std::collections::{BTreeSet, HashMap};

use super::ComparedValues;
use super::values::ValueIndex;
use crate::compare::matching::ValueAnchor;
use crate::compare::side::ComparedDump;

/// Operators that exporters take apart, under their types in ONNX and in PyTorch, and what they make
/// of them. Without these nothing would be known at the first place of its kind.
const DECOMPOSITIONS: [(&[&str], &[&str]); 4] = [
    (
        &["Gemm", "aten_addmm_default", "aten_linear_default"],
        &["MatMul", "Add"],
    ),
    (
        &["Gelu", "aten_gelu_default"],
        &["Div", "Erf", "Add", "Mul", "Mul"],
    ),
    (
        &["Gelu", "aten_gelu_default"],
        &["Mul", "Div", "Erf", "Add", "Mul"],
    ),
    (&["Silu", "Swish", "aten_silu_default"], &["Sigmoid", "Mul"]),
];

/// Most operators of a region.
const N_OPERATORS_MAX: usize = 32;

/// The types of the target's operators, in the order of execution, in regions that agree: by the
/// golden side's type.
pub(super) struct LearnedRegions(HashMap<String, BTreeSet<Vec<String>>>);

impl LearnedRegions {
    pub(super) fn learn(
        values: &ComparedValues,
        dumps: [&ComparedDump; 2],
        makers: &HashMap<ValueIndex, Vec<usize>>,
        anchors: &[ValueAnchor],
    ) -> LearnedRegions {
        let mut learned: HashMap<String, BTreeSet<Vec<String>>> = HashMap::new();
        for (wholes, parts) in DECOMPOSITIONS {
            for whole in wholes {
                let parts = parts.iter().map(|part| (*part).to_owned());
                let of_type = learned.entry((*whole).to_owned()).or_default();
                of_type.insert(parts.collect());
            }
        }
        for anchor in anchors {
            let [target, golden] = anchor.runs;
            let region = before(values, makers, target);
            let types = region.iter().map(|&run| dumps[0].runs[run].op_type.clone());
            let of_type = learned
                .entry(dumps[1].runs[golden].op_type.clone())
                .or_default();
            of_type.insert(types.collect());
        }
        LearnedRegions(learned)
    }

    /// The operator of the target to name for a region that begins with `target` and is `golden` on
    /// the other side.
    pub(super) fn culprit(
        &self,
        values: &ComparedValues,
        dumps: [&ComparedDump; 2],
        [target, golden]: [usize; 2],
    ) -> usize {
        let Some(learned) = self.0.get(&dumps[1].runs[golden].op_type) else {
            return target;
        };
        let region = after(values, target);
        let types: Vec<&str> = region
            .iter()
            .map(|&run| dumps[0].runs[run].op_type.as_str())
            .collect();
        let n_common = |known: &[String]| {
            let both = known.iter().zip(&types);
            both.take_while(|(known, found)| known == *found).count()
        };
        let nearest = learned.iter().max_by_key(|known| n_common(known));
        let Some(known) = nearest.filter(|known| n_common(known) > 0) else {
            return target;
        };
        let n = n_common(known);
        let reads_orphan = |run: &&usize| {
            let inputs = values.sides[0].inputs_of(**run);
            let mut outside = inputs
                .into_iter()
                .filter(|value| values.sides[0].values[value.0].is_outside);
            outside.any(|value| values.is_orphan(0, value))
        };
        let changed = region[..n].iter().find(reads_orphan).copied();
        // What the golden side computes of its operator's inputs, the target computes of more.
        let reads_other = |run: &&usize| {
            let inputs = values.sides[0].inputs_of(**run);
            let mut computed = inputs.filter(|value| {
                let of = &values.sides[0].values[value.0];
                !of.is_outside && of.is_distinctive()
            });
            computed.any(|value| {
                let equal = values.equals[0][value.0];
                equal.is_some_and(|equal| !values.sides[1].reads(golden, equal))
            })
        };
        let rewired = region[..n].iter().find(reads_other).copied();
        let other = region.get(n).copied().filter(|_| n < known.len());
        changed.or(rewired).or(other).unwrap_or(target)
    }
}

/// The operators that an output was computed by from values that the other side has.
fn before(
    values: &ComparedValues,
    makers: &HashMap<ValueIndex, Vec<usize>>,
    end: usize,
) -> Vec<usize> {
    let mut region = BTreeSet::from([end]);
    let mut open = vec![end];
    while let Some(run) = open.pop() {
        for value in values.sides[0].inputs_of(run) {
            let of = &values.sides[0].values[value.0];
            if of.is_outside || values.equals[0][value.0].is_some() {
                continue;
            }
            let maker = makers.get(&value).and_then(|makers| makers.first());
            if let Some(&maker) = maker.filter(|_| region.len() < N_OPERATORS_MAX)
                && region.insert(maker)
            {
                open.push(maker);
            }
        }
    }
    region.into_iter().collect()
}

/// The operators that compute with what an operator made, in the order of execution, itself first.
fn after(values: &ComparedValues, start: usize) -> Vec<usize> {
    let side = &values.sides[0];
    let mut region = BTreeSet::from([start]);
    let mut open = vec![start];
    while let Some(run) = open.pop() {
        for value in side.outputs.get(&run).into_iter().flatten() {
            if values.equals[0][value.0].is_some() {
                continue;
            }
            for &reader in &side.values[value.0].readers {
                if region.len() < N_OPERATORS_MAX && reader > run && region.insert(reader) {
                    open.push(reader);
                }
            }
        }
    }
    region.into_iter().collect()
}
