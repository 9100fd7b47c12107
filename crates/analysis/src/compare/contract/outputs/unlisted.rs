//! Outputs that no graph lists: the values that no operator reads, and the program's tensors that a
//! run writes to.

use std::collections::{HashMap, HashSet};

use opscope_store::record::SlotSide;

use super::super::model_values::{ModelOutput, ModelPlace};
use super::{OutputPair, OutputSearch, shown};
use crate::compare::matching::SlotRef;
use crate::compare::party::Party;
use crate::compare::result::{UpdatedBy, ValuePairing};

impl OutputSearch<'_> {
    /// Golden's outputs with their partners, and the tensors that only the target writes to, if no
    /// graph names the outputs of either side. Left out are tensors that one side writes to and the
    /// other does not even read, such as the gradients that a fused optimizer scales.
    pub(super) fn unlisted(
        &self,
        target: &ModelPlace<'_>,
        golden: &ModelPlace<'_>,
    ) -> Vec<OutputPair> {
        let updated = target.outputs.iter().filter(|output| output.is_updated);
        let updated: HashMap<&str, &ModelOutput> = updated
            .map(|output| (output.name.as_str(), output))
            .collect();
        let places = [target, golden];
        let mut pairs = Vec::new();
        for output in &golden.outputs {
            let named = updated.get(output.name.as_str());
            let named = named.filter(|_| output.is_updated);
            let slot = output.slot;
            let paired = slot.and_then(|slot| self.known.partner(slot, Party::Golden));
            let (partner, by) = match (named, paired) {
                (Some(named), _) => (Some((*named).clone()), ValuePairing::Name),
                (None, Some((paired, _))) => match self.instead_of(paired, output, places) {
                    Some(other) => (Some(other), ValuePairing::Position),
                    None => (shown(paired), ValuePairing::Operator),
                },
                (None, None) => match target.kept(output, golden) {
                    Some(kept) if kept.slot.is_none() => continue,
                    None => match self.equal_unread(output, target, &pairs) {
                        Some(equal) => (Some(equal), ValuePairing::Value),
                        None => (None, ValuePairing::Operator),
                    },
                    kept => (kept, ValuePairing::Operator),
                },
            };
            pairs.push((partner, Some(output.clone()), by));
        }
        let golden_names: HashSet<&str> = (golden.outputs.iter())
            .filter(|output| output.is_updated)
            .map(|output| output.name.as_str())
            .collect();
        pairs.extend(target.outputs.iter().filter_map(|output| {
            let is_alone = !golden_names.contains(output.name.as_str())
                && (output.slot)
                    .and_then(|slot| self.known.partner(slot, Party::Target))
                    .is_none();
            let kept = Some(output).filter(|_| is_alone)?;
            let kept = golden.kept(kept, target)?;
            kept.slot?;
            Some((Some(output.clone()), Some(kept), ValuePairing::Name))
        }));
        pairs
    }

    /// The target's output that has the values of one of golden's, and is no other one's partner by
    /// its values.
    fn equal_unread(
        &self,
        output: &ModelOutput,
        target: &ModelPlace<'_>,
        pairs: &[OutputPair],
    ) -> Option<ModelOutput> {
        let slot = output.slot.filter(|_| !output.is_updated)?;
        let is_taken = |place: SlotRef| {
            pairs.iter().any(|(partner, _, by)| {
                let partner = partner.as_ref().and_then(|partner| partner.slot);
                *by == ValuePairing::Value && partner == Some(place)
            })
        };
        let mut outputs = target.outputs.iter();
        let equal = outputs.find(|other| {
            let place = other.slot.filter(|_| !other.is_updated);
            place.is_some_and(|place| !is_taken(place) && self.agrees(place, slot))
        });
        equal.cloned()
    }

    /// The target's output in place of one of golden's, where the partner of that is a value that
    /// the target reads on.
    fn instead_of(
        &self,
        partner: SlotRef,
        output: &ModelOutput,
        places: [&ModelPlace<'_>; 2],
    ) -> Option<ModelOutput> {
        // The program's tensors are read on, whatever their place among unread values is.
        if output.is_updated {
            return None;
        }
        let mut outputs = places[0].outputs.iter();
        let is_output = outputs.any(|output| output.slot == Some(partner));
        let other = self.at_same_position(output, Party::Golden, places)?;
        let slots = [other.slot?, output.slot?];
        let [own, golden] =
            [0, 1].map(|i| [self.sides.target, self.sides.golden][i].slot(slots[i]));
        (!is_output && own.shape == golden.shape).then_some(other)
    }

    /// Which side writes to an output that is a tensor of the program.
    pub(super) fn updated_by(&self, outputs: [Option<&ModelOutput>; 2]) -> Option<UpdatedBy> {
        let mut updated = outputs.iter().flatten();
        updated.find(|output| output.is_updated)?;
        let dumps = [self.sides.target, self.sides.golden];
        let reads = [0, 1].map(|side| {
            let slot = outputs[side].and_then(|output| output.slot);
            slot.is_some_and(|slot| dumps[side].slot(slot).side == SlotSide::Input)
        });
        Some(match reads {
            [true, _] => UpdatedBy::Golden,
            [_, true] => UpdatedBy::Target,
            [false, false] => UpdatedBy::Both,
        })
    }
}
