//! Outputs of one operator in other places.

use std::collections::{BTreeMap, HashSet};

use super::places::{DifferentPart, NodeLabel, Place, label};
use super::{ModelPair, behind};

/// An operator several of whose outputs are other values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExchangedOutputs {
    /// The target's operator.
    pub operator: NodeLabel,
    /// The outputs, by their names in the target.
    pub outputs: Vec<String>,
    /// The [differences](ModelPair::differences) that it stands for.
    pub differences: Vec<usize>,
}

impl ModelPair {
    /// Which of the chosen differences are one: whatever reads an output of an operator should read
    /// another value, and so it is for several of its outputs.
    pub fn exchanged_outputs(&self, chosen: &[usize]) -> Vec<ExchangedOutputs> {
        let readers = behind::readers(&self.target);
        let mut found: BTreeMap<usize, ExchangedOutputs> = BTreeMap::new();
        for &index in chosen {
            let difference = &self.differences[index];
            let (Place::Inputs { readers: wrong, .. }, [DifferentPart::Wiring { target, .. }]) =
                (&difference.place, &difference.parts[..])
            else {
                continue;
            };
            // An operator that reads the output rightly shows that the others are wrong.
            let all = readers.get(target.as_str());
            let is_whole = all.is_some_and(|all| all.iter().all(|at| wrong.contains(at)));
            let maker = self.target.maker(target);
            // Something that is missing behind the output is not the fault of what makes it.
            let maker = maker.filter(|_| {
                is_whole && !self.target.returns(target) && !self.is_made_from(difference)
            });
            if let Some((maker, _)) = maker {
                let operator = label(&self.target.nodes()[maker]);
                let known = found.entry(maker).or_default();
                known.operator = operator;
                known.outputs.push(target.clone());
                known.differences.push(index);
            }
        }
        found.retain(|_, known| known.outputs.iter().collect::<HashSet<_>>().len() > 1);
        found.into_values().collect()
    }
}
