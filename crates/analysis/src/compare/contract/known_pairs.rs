//! The pairs that the comparison measured, found by a slot of either side.

use crate::compare::matching::{MatchedDumps, Matching, SlotRef};
use crate::compare::party::Party;

/// The pairs that the comparison measured.
///
/// Places are sorted by their slots: a map of a million slots would take six times the memory, while
/// the dumps and the result are there as well.
pub(super) struct KnownPairs<'a> {
    matching: &'a Matching,
    /// The operator and the slot in its list, sorted by the target's slot, and by golden's.
    places: [Vec<[u32; 2]>; 2],
}

/// The partner of a slot, and where they are compared: the operator and the slot in its list.
pub(super) type KnownPartner = (SlotRef, [usize; 2]);

impl<'a> KnownPairs<'a> {
    pub(super) fn collect(sides: MatchedDumps<'a>) -> KnownPairs<'a> {
        let matching = sides.matching;
        let n_slots = matching.pairs.iter().map(|pair| pair.slots.len()).sum();
        let places = Party::BOTH.map(|party| {
            let mut places = Vec::with_capacity(n_slots);
            for (operator, pair) in matching.pairs.iter().enumerate() {
                // More of them than 32 bits count are more than memory holds.
                let slots = (0..pair.slots.len()).map(|slot| [operator, slot].map(|at| at as u32));
                places.extend(slots);
            }
            // Of equal slots the last pair stays the last.
            places.sort_by_key(|&place| slot_at(matching, place, party));
            places
        });
        KnownPairs { matching, places }
    }

    /// The partner of a slot of `party`.
    pub(super) fn partner(&self, slot: SlotRef, party: Party) -> Option<KnownPartner> {
        let places = &self.places[party.index()];
        let end = places.partition_point(|&place| slot_at(self.matching, place, party) <= slot);
        let place = *places[..end].last()?;
        let is_there = slot_at(self.matching, place, party) == slot;
        let partner = slot_at(self.matching, place, party.other());
        is_there.then(|| (partner, place.map(|at| at as usize)))
    }

    /// Where two slots are compared with each other.
    pub(super) fn place(&self, target: SlotRef, golden: SlotRef) -> Option<[usize; 2]> {
        let (partner, place) = self.partner(golden, Party::Golden)?;
        (partner == target).then_some(place)
    }
}

fn slot_at(matching: &Matching, place: [u32; 2], party: Party) -> SlotRef {
    let [operator, slot] = place.map(|at| at as usize);
    let slots = &matching.pairs[operator].slots[slot];
    party.pick(slots.target, slots.golden)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::matching::{RunPair, SlotPair};
    use crate::compare::side::ComparedDump;

    fn at(run: usize, slot: usize) -> SlotRef {
        SlotRef { run, slot }
    }

    #[test]
    fn partners_are_found_from_both_sides() {
        let pair = |slots: &[[usize; 4]]| RunPair {
            slots: slots
                .iter()
                .map(|&[run, slot, other, other_slot]| {
                    SlotPair::plain(at(run, slot), at(other, other_slot))
                })
                .collect(),
            ..RunPair::default()
        };
        let matching = Matching {
            // The last two pairs have one slot of golden in common, the last one counts.
            pairs: vec![
                pair(&[[3, 1, 0, 0], [3, 0, 0, 2]]),
                pair(&[]),
                pair(&[[1, 0, 2, 0]]),
                pair(&[[4, 0, 2, 0]]),
            ],
            ..Matching::default()
        };
        let dump = ComparedDump::default();
        let known = KnownPairs::collect(MatchedDumps {
            target: &dump,
            golden: &dump,
            matching: &matching,
            reference: None,
        });
        let cases = [
            (at(3, 0), Party::Target, Some((at(0, 2), [0, 1]))),
            (at(1, 0), Party::Target, Some((at(2, 0), [2, 0]))),
            (at(0, 0), Party::Golden, Some((at(3, 1), [0, 0]))),
            (at(2, 0), Party::Golden, Some((at(4, 0), [3, 0]))),
            (at(0, 1), Party::Golden, None),
            (at(0, 0), Party::Target, None),
            (at(9, 0), Party::Target, None),
        ];
        for (slot, party, expected) in cases {
            assert_eq!(known.partner(slot, party), expected, "{slot:?} {party:?}");
        }
        assert_eq!(known.place(at(4, 0), at(2, 0)), Some([3, 0]));
        assert_eq!(known.place(at(1, 0), at(2, 0)), None);
    }
}
