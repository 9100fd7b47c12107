//! Directories of named arrays, as programs write them that collect activations.
//!
//! `docs/formats/arrays.md` has the rules.

use std::path::Path;

use super::{directory_names, number};
use crate::record::SlotSide;

/// Characters between the parts of a name.
const SEPARATORS: [char; 3] = ['.', '/', '_'];
/// Words for a side. The longer ones come first, as the others end like them.
const SIDES: [(&str, SlotSide); 4] = [
    ("inputs", SlotSide::Input),
    ("outputs", SlotSide::Output),
    ("input", SlotSide::Input),
    ("output", SlotSide::Output),
];
/// Beginnings of names that end in the number of a step; the last is that of a model's test data in
/// ONNX.
const STEP_PREFIXES: [&str; 3] = ["step_", "iter_", "test_data_set_"];
/// Beginning of names that end in the number of a rank.
const RANK_PREFIX: &str = "rank_";

/// The parts of an array's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayName<'a> {
    /// The operator's name; empty if the file's name only contains the slot.
    pub op_name: &'a str,
    /// Side and position; `None` if the name does not contain them.
    pub slot: Option<(SlotSide, u32)>,
}

impl<'a> ArrayName<'a> {
    /// Splits `{op_name}{separator}{side}{separator}{position}`. The position may be missing; a
    /// name without a side is an operator's.
    pub fn parse(name: &'a str) -> ArrayName<'a> {
        let numbered = name.rsplit_once(SEPARATORS);
        let numbered = numbered.and_then(|(rest, digits)| Some((rest, number(digits)?)));
        let (rest, position) = numbered.unwrap_or((name, 0));
        let found = SIDES.iter().find_map(|(word, side)| {
            let before = rest.strip_suffix(word)?;
            let op_name = match before {
                "" => Some(""),
                // The word counts only after a separator: `myoutput` is the name of an operator.
                _ => before.strip_suffix(SEPARATORS),
            };
            Some((op_name?, *side))
        });
        match found {
            Some((op_name, side)) => ArrayName {
                op_name,
                slot: Some((side, position)),
            },
            None => ArrayName {
                op_name: name,
                slot: None,
            },
        }
    }
}

/// Facts from the path of a file with arrays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ArraysPlace {
    /// The index of the process among those that ran together.
    pub rank: Option<u32>,
    /// The execution of the model.
    pub step: Option<u64>,
}

impl ArraysPlace {
    /// Looks for `step_{N}`, `iter_{N}` or `test_data_set_{N}`, and for `rank_{N}`, in the names of
    /// the directories and in the stem of the file's name; the innermost one counts.
    pub fn from_path(dir: &Path, stem: &str) -> ArraysPlace {
        let mut names = directory_names(dir);
        names.push(stem.to_owned());
        let step = names.iter().rev().find_map(|name| {
            let digits = STEP_PREFIXES
                .iter()
                .find_map(|prefix| name.strip_prefix(prefix));
            number(digits?)
        });
        let rank = names.iter().rev();
        let rank = rank
            .filter_map(|name| name.strip_prefix(RANK_PREFIX))
            .find_map(number);
        ArraysPlace { rank, step }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_a_slot_or_are_operators() {
        let (input, output) = (SlotSide::Input, SlotSide::Output);
        let cases = [
            (
                "layer1.0.conv1/output.0",
                "layer1.0.conv1",
                Some((output, 0)),
            ),
            (
                "layer1.0.conv1.output_1",
                "layer1.0.conv1",
                Some((output, 1)),
            ),
            (
                "layer1.0.conv1.inputs.2",
                "layer1.0.conv1",
                Some((input, 2)),
            ),
            ("conv1_output", "conv1", Some((output, 0))),
            ("input.3", "", Some((input, 3))),
            ("outputs", "", Some((output, 0))),
            ("layer1.0", "layer1.0", None),
            ("throughput", "throughput", None),
            ("throughput.0", "throughput.0", None),
            ("a.output.x", "a.output.x", None),
            ("a.output.99999999999", "a.output.99999999999", None),
            ("", "", None),
        ];
        for (name, op_name, slot) in cases {
            assert_eq!(
                ArrayName::parse(name),
                ArrayName { op_name, slot },
                "{name}"
            );
        }
    }

    #[test]
    fn paths_have_steps_and_ranks() {
        let place = |dir: &str, stem| {
            let place = ArraysPlace::from_path(Path::new(dir), stem);
            (place.rank, place.step)
        };
        assert_eq!(place("/tmp/rank_2/step_10", "acts"), (Some(2), Some(10)));
        assert_eq!(place("/tmp/iter_3", "acts"), (None, Some(3)));
        assert_eq!(place("/tmp/step_1", "step_2"), (None, Some(2)));
        assert_eq!(place("/tmp/step_x", "steps_2"), (None, None));
    }
}
