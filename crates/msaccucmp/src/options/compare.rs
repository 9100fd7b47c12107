//! Options of `compare` and `file_compare`.

use crate::arguments::{OptionSpec, ValueKind, exclusive, integer, option, required};

/// Options of `compare`, as given.
#[derive(Debug)]
pub(crate) struct CompareOptions {
    pub(crate) my_path: String,
    pub(crate) golden_path: String,
    pub(crate) fusion_rule: String,
    pub(crate) quant_rule: String,
    pub(crate) close_rule: String,
    pub(crate) out_dir: String,
    pub(crate) custom_dir: String,
    pub(crate) algorithm_options: String,
    pub(crate) algorithms: AlgorithmChoice,
    pub(crate) is_mapping: bool,
    pub(crate) finds_overflow: bool,
    pub(crate) range: Option<String>,
    pub(crate) select: Option<String>,
    pub(crate) has_post_process: bool,
    pub(crate) n_elements_max: i64,
    pub(crate) is_advised: bool,
    pub(crate) is_version_1: bool,
    pub(crate) op_name: Option<String>,
    pub(crate) output_index: Option<String>,
    pub(crate) input_index: Option<String>,
    pub(crate) ignores_details: bool,
    pub(crate) n_top: i64,
    pub(crate) n_lines_max: Option<i64>,
    pub(crate) keeps_slices: bool,
    /// Whether `-r` or `-s` is given unabbreviated, which adds a column.
    pub(crate) has_sequence_word: bool,
    /// The unabbreviated options that require `-op`.
    pub(crate) detail_words: Vec<&'static str>,
}

/// The value of `-alg`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AlgorithmChoice {
    /// Comma-separated names and numbers, or `all`.
    Text(String),
    /// Numbers, one word each.
    Numbers(String),
}

/// Options of `file_compare`.
#[derive(Debug)]
pub(crate) struct FileCompareOptions {
    pub(crate) my_path: String,
    pub(crate) golden_path: String,
    pub(crate) out_dir: String,
}

const ALGORITHM_NUMBERS: &[i64] = &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
const ALGORITHM_NAMES: [&str; 2] = ["-alg", "--algorithm"];
const SEQUENCE_WORDS: [&str; 4] = ["-r", "-s", "--range", "--select"];
const DETAIL_WORDS: [&str; 5] = [
    "-n",
    "--topn",
    "--ignore_single_op_result",
    "-ml",
    "--max_line",
];
const N_TOP: i64 = 20;

pub(super) const FILE_SPECS: &[OptionSpec] = &[
    required(&["-m", "--my_dump_path"]),
    required(&["-g", "--golden_dump_path"]),
    required(&["-out", "--output"]),
];

pub(super) const USAGE: &str = "\
usage: msaccucmp compare [-h] -m MY_DUMP_PATH -g GOLDEN_DUMP_PATH
                         [-f FUSION_RULE] [-q QUANT_RULE] [-cf CLOSE_RULE]
                         [-out OUTPUT_PATH] [-c CUSTOM_SCRIPT_PATH]
                         [-a ALGORITHM_OPTIONS] [-alg ALGORITHM] [-map]
                         [-overflow_detection] [-r RANGE] [-s SELECT] [-p {0,1}]
                         [-max MAX_CMP_SIZE] [-advisor] [-v {1,2}] [-op OP_NAME]
                         [-o OUTPUT | -i INPUT] [--ignore_single_op_result]
                         [-n TOPN] [-ml MAX_LINE] [-ffts]
";

pub(super) const HELP: &str = "
options:
  -h, --help                     show this help and exit
  -m, --my_dump_path             the dump, or an array file
  -g, --golden_dump_path         what to compare with
  -f, --fusion_rule_file         fusion rules of the model, or a directory of them
  -q, --quant_fusion_rule_file   fusion rules of the quantisation
  -cf, --close_fusion_rule_file  rules of the model without fusion
  -out, --output                 where to write; by default the current directory
  -c, --custom_script_path       directory with converters and algorithms in Python
  -a, --algorithm_options        such as \"Name:key=value,key=value;Name:key=value\"
  -alg, --algorithm              numbers 0 to 9 and names, or all
  -map, --mapping                write which operators belong together, and nothing else
  -overflow_detection            add a column: float16 tensors that overflowed
  -r, --range                    start,end,step of the operators to compare; needs -f
  -s, --select                   numbers of the operators to compare; needs -f
  -p, --post_process             for h5 files, which are not supported
  -max, --max_cmp_size           compare this many elements of each tensor
  -advisor                       sum the result up
  -v, --version                  without effect
  -op, --op_name                 list the elements of one operator's tensor
  -o, --output_tensor            which output; needs -op
  -i, --input_tensor             which input; needs -op
  --ignore_single_op_result      only the worst elements; needs -op
  -n, --topn                     how many of the worst elements; needs -op
  -ml, --max_line                how many elements in a file; needs -op
  -ffts                          compare FFTS+ files one by one
";

pub(super) const FILE_USAGE: &str = "\
usage: msaccucmp file_compare [-h] -m MY_DUMP_PATH -g GOLDEN_DUMP_PATH
                              -out OUTPUT_PATH
";

pub(super) const FILE_HELP: &str = "
options:
  -h, --help              show this help and exit
  -m, --my_dump_path      an npy file
  -g, --golden_dump_path  the npy file to compare with
  -out, --output          where to write
";

/// The options in the order of [`options`]. The valid values of `-alg` depend on the second word
/// after it.
pub(super) fn specs(args: &[String]) -> Vec<OptionSpec> {
    let algorithms = if chooses_by_numbers(args) {
        ValueKind::Integers(ALGORITHM_NUMBERS)
    } else {
        ValueKind::SafeText
    };
    vec![
        required(&["-m", "--my_dump_path"]),
        required(&["-g", "--golden_dump_path"]),
        safe(&["-f", "--fusion_rule_file"]),
        safe(&["-q", "--quant_fusion_rule_file"]),
        safe(&["-cf", "--close_fusion_rule_file"]),
        safe(&["-out", "--output"]),
        safe(&["-c", "--custom_script_path"]),
        text(&["-a", "--algorithm_options"]),
        option(&["-alg", "--algorithm"], algorithms),
        flag(&["-map", "--mapping"]),
        flag(&["-overflow_detection"]),
        text(&["-r", "--range"]),
        text(&["-s", "--select"]),
        option(&["-p", "--post_process"], ValueKind::Integer(&[0, 1])),
        option(&["-max", "--max_cmp_size"], ValueKind::AnyInteger),
        flag(&["-advisor"]),
        option(&["-v", "--version"], ValueKind::Integer(&[1, 2])),
        text(&["-op", "--op_name"]),
        exclusive(&["-o", "--output_tensor"]),
        exclusive(&["-i", "--input_tensor"]),
        flag(&["--ignore_single_op_result"]),
        option(&["-n", "--topn"], ValueKind::AnyInteger),
        option(&["-ml", "--max_line"], ValueKind::AnyInteger),
        flag(&["-ffts"]),
    ]
}

/// An option without a value.
fn flag(names: &'static [&'static str]) -> OptionSpec {
    option(names, ValueKind::Flag)
}

/// An option with any value.
fn text(names: &'static [&'static str]) -> OptionSpec {
    option(names, ValueKind::Text)
}

/// An option with a value of safe characters.
fn safe(names: &'static [&'static str]) -> OptionSpec {
    option(names, ValueKind::SafeText)
}

/// Whether the second word after `-alg` is a single digit.
fn chooses_by_numbers(args: &[String]) -> bool {
    ALGORITHM_NAMES.iter().any(|name| {
        // The kind of the option must be known before parsing, so only the raw words are checked:
        // `--algorithm=0` and abbreviations are missed.
        let at = args.iter().position(|arg| arg == name);
        let second = at.and_then(|at| args.get(at + 2));
        second.is_some_and(|word| matches!(word.as_bytes(), [b'0'..=b'9']))
    })
}

/// Assigns the values in the order of [`specs`].
pub(super) fn options(
    mut values: impl Iterator<Item = Option<String>>,
    args: &[String],
) -> CompareOptions {
    let mut next = || values.next().flatten();
    let has_word = |word: &str| args.iter().any(|arg| arg == word);
    CompareOptions {
        my_path: next().unwrap_or_default(),
        golden_path: next().unwrap_or_default(),
        fusion_rule: next().unwrap_or_default(),
        quant_rule: next().unwrap_or_default(),
        close_rule: next().unwrap_or_default(),
        out_dir: next().unwrap_or_default(),
        custom_dir: next().unwrap_or_default(),
        algorithm_options: next().unwrap_or_default(),
        algorithms: match (next(), chooses_by_numbers(args)) {
            (Some(text), true) => AlgorithmChoice::Numbers(text),
            (Some(text), false) => AlgorithmChoice::Text(text),
            (None, _) => AlgorithmChoice::Text("all".to_owned()),
        },
        is_mapping: next().is_some(),
        finds_overflow: next().is_some(),
        range: next(),
        select: next(),
        has_post_process: next().is_some(),
        n_elements_max: next().as_deref().and_then(integer).unwrap_or(0),
        is_advised: next().is_some(),
        is_version_1: next().as_deref().and_then(integer) == Some(1),
        op_name: next(),
        output_index: next(),
        input_index: next(),
        ignores_details: next().is_some(),
        n_top: next().as_deref().and_then(integer).unwrap_or(N_TOP),
        n_lines_max: next().as_deref().and_then(integer),
        keeps_slices: next().is_some(),
        has_sequence_word: SEQUENCE_WORDS.into_iter().any(has_word),
        detail_words: DETAIL_WORDS
            .into_iter()
            .filter(|word| has_word(word))
            .collect(),
    }
}

/// Assigns the values in the order of [`FILE_SPECS`].
pub(super) fn file_options(mut values: impl Iterator<Item = Option<String>>) -> FileCompareOptions {
    let mut next = || values.next().flatten().unwrap_or_default();
    FileCompareOptions {
        my_path: next(),
        golden_path: next(),
        out_dir: next(),
    }
}
