//! The outputs that inputs read: millions of pairs, which a map would hold in four times the memory.

use crate::compare::matching::SlotRef;

/// By input slot the output slot that it was made as.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Producers {
    /// Sorted by reader.
    pairs: Vec<ReaderAndMaker>,
    /// By run, where its inputs begin in `pairs`; and where the last ones end.
    starts: Vec<u32>,
}

/// Numbers of the reader's run and slot, and of the maker's.
type ReaderAndMaker = [u32; 4];

impl Producers {
    /// The output that an input reads.
    pub(super) fn get(&self, reader: SlotRef) -> Option<SlotRef> {
        let [start, end] = [reader.run, reader.run + 1].map(|run| self.starts.get(run).copied());
        let of_run = self.pairs.get(start? as usize..end? as usize)?;
        let found = of_run.binary_search_by_key(&reader.slot, |pair| pair[1] as usize);
        Some(maker(&of_run[found.ok()?]))
    }

    /// All inputs that read an output, in order, with it.
    pub(super) fn iter(&self) -> impl Iterator<Item = (SlotRef, SlotRef)> {
        self.pairs.iter().map(|pair| {
            let [run, slot] = [0, 1].map(|i| pair[i] as usize);
            (SlotRef { run, slot }, maker(pair))
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }
}

fn maker(pair: &ReaderAndMaker) -> SlotRef {
    let [run, slot] = [2, 3].map(|i| pair[i] as usize);
    SlotRef { run, slot }
}

impl FromIterator<(SlotRef, SlotRef)> for Producers {
    /// Of several makers of one input the last counts. More runs or slots than 32 bits count are
    /// more than memory holds.
    fn from_iter<I: IntoIterator<Item = (SlotRef, SlotRef)>>(all: I) -> Producers {
        let number = |number: usize| u32::try_from(number).expect("fits in memory");
        let all = all.into_iter();
        let mut pairs: Vec<ReaderAndMaker> = all
            .map(|(to, from)| [to.run, to.slot, from.run, from.slot].map(number))
            .collect();
        pairs.sort_by_key(|pair| [pair[0], pair[1]]);
        pairs.dedup_by(|later, kept| {
            let is_same = later[..2] == kept[..2];
            if is_same {
                *kept = *later;
            }
            is_same
        });
        pairs.shrink_to_fit();
        let n_runs = pairs.last().map_or(0, |pair| pair[0] + 1);
        let starts = (0..=n_runs).map(|run| number(pairs.partition_point(|pair| pair[0] < run)));
        let starts = starts.collect();
        Producers { pairs, starts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_input_has_its_last_maker() {
        let at = |run, slot| SlotRef { run, slot };
        let all = [
            (at(3, 1), at(0, 0)),
            (at(1, 0), at(0, 1)),
            (at(3, 0), at(1, 2)),
            (at(3, 1), at(2, 0)),
        ];
        let producers: Producers = all.into_iter().collect();
        let expected = [
            (at(1, 0), at(0, 1)),
            (at(3, 0), at(1, 2)),
            (at(3, 1), at(2, 0)),
        ];
        assert_eq!(producers.iter().collect::<Vec<_>>(), expected);
        for (reader, maker) in expected {
            assert_eq!(producers.get(reader), Some(maker));
        }
        for reader in [at(0, 0), at(2, 0), at(3, 2), at(4, 0), at(9, 9)] {
            assert_eq!(producers.get(reader), None, "{reader:?}");
        }
        assert_eq!(Producers::default().get(at(0, 0)), None);
    }
}
