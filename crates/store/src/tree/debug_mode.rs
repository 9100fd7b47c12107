//! Names of logs of PyTorch's `DebugMode`, which programs choose, and names of the operators in
//! them.

use std::path::Path;

use super::{directory_names, number};

/// How names of logs end. Others are not looked into.
const SUFFIXES: [&str; 3] = [".json", ".txt", ".log"];

/// Whether a file of this name may be a log.
pub fn may_be_log(file_name: &str) -> bool {
    SUFFIXES.iter().any(|suffix| file_name.ends_with(suffix))
}

/// The name of a file without its suffix.
pub fn stem(file_name: &str) -> &str {
    let mut suffixes = SUFFIXES.iter();
    let stem = suffixes.find_map(|suffix| file_name.strip_suffix(suffix));
    stem.unwrap_or(file_name)
}

/// Facts from the path of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogPlace {
    /// The index of the process among those that ran together.
    pub rank: Option<u32>,
    /// The execution of the model.
    pub step: Option<u64>,
}

impl LogPlace {
    /// Looks for `rank{N}`, `rank_{N}`, `step{N}` and `step_{N}` among the words of the file's
    /// name, and of the directories; the innermost one counts.
    pub fn from_path(path: &Path) -> LogPlace {
        let mut names = directory_names(path);
        if let Some(last) = names.last_mut() {
            *last = stem(last).to_owned();
        }
        LogPlace {
            rank: names.iter().rev().find_map(|name| numbered(name, "rank")),
            step: names.iter().rev().find_map(|name| numbered(name, "step")),
        }
    }
}

/// The number after a word, directly or as the next word.
fn numbered<T: std::str::FromStr>(name: &str, word: &str) -> Option<T> {
    let mut words = name.split(['_', '-', '.', ' ']).peekable();
    while let Some(found) = words.next() {
        // `rank3` and `rank_3` are the same, `ranking` is something else.
        let digits = match found.strip_prefix(word) {
            Some("") => words.peek().copied(),
            behind => behind,
        };
        if let Some(number) = digits.and_then(number) {
            return Some(number);
        }
    }
    None
}

/// The name that calls of an operator are counted under: `add` of `aten::add.Tensor`. Functions
/// keep the module that they are of, so that they do not count among operators.
pub fn base_name(op_type: &str) -> String {
    if let Some((_, name)) = op_type.split_once("::") {
        let (name, _) = name.split_once('.').unwrap_or((name, ""));
        return name.to_owned();
    }
    // `<method 'dim' of 'torch._C.TensorBase' objects>`
    if op_type.starts_with('<') {
        let quoted: Vec<&str> = op_type.split('\'').skip(1).step_by(2).collect();
        return match quoted[..] {
            [name, class] => format!("{class}.{name}"),
            [name] => name.to_owned(),
            _ => op_type.to_owned(),
        };
    }
    op_type.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_ranks_and_steps() {
        let place = |path: &str| {
            let place = LogPlace::from_path(Path::new(path));
            (place.rank, place.step)
        };
        assert_eq!(place("/runs/rank3/step_10.json"), (Some(3), Some(10)));
        assert_eq!(place("debug_rank_2.txt"), (Some(2), None));
        assert_eq!(place("a/run1-rank7-step3.log"), (Some(7), Some(3)));
        assert_eq!(place("rank1/rank0.json"), (Some(0), None));
        assert_eq!(place("stepping/ranks.json"), (None, None));
        assert_eq!(place("rank99999999999.json"), (None, None));
    }

    #[test]
    fn operators_are_counted_by_their_names() {
        let cases = [
            ("aten::mm", "mm"),
            ("aten::add_.Tensor", "add_"),
            ("_c10d_functional::wait_tensor", "wait_tensor"),
            ("torch.nn.functional.linear", "torch.nn.functional.linear"),
            (
                "<method 'dim' of 'torch._C.TensorBase' objects>",
                "torch._C.TensorBase.dim",
            ),
            (
                "<method-wrapper '__get__' of getset_descriptor object>",
                "__get__",
            ),
            ("redistribute_input", "redistribute_input"),
            ("triton_poi_fused_add_0", "triton_poi_fused_add_0"),
        ];
        for (op_type, expected) in cases {
            assert_eq!(base_name(op_type), expected);
        }
    }
}
