//! Types of operators that go by different names in different frameworks.

mod table;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use opscope_store::reader::ExecutionKind;
use table::SYNONYMS;

use crate::compare::side::OperatorExecution;

/// The type of an operator, in words that all frameworks share.
#[derive(Clone, Debug)]
pub(super) struct OpType {
    name: Arc<str>,
    /// Whether it is one that is known to be different from all others that are known.
    is_known: bool,
    /// Whether its output has the values of its input.
    pub is_view: bool,
}

/// Operators whose output has the values of their input, in another order, dtype or place.
const VIEWS: [&str; 14] = [
    "transpose",
    "reshape",
    "cast",
    "identity",
    "flatten",
    "squeeze",
    "unsqueeze",
    "transdata",
    "contiguous",
    "memcpy",
    "expand",
    "load",
    "depend",
    "data",
];

/// Those of them that have the values in another order, or several times.
const REORDERING_VIEWS: [&str; 3] = ["transpose", "transdata", "expand"];

/// Type words are shorter, whatever punctuation they contain.
const N_WORD_BYTES_MAX: usize = 64;

/// Namespaces in front of a type.
const NAMESPACES: [&str; 12] = [
    "ai.onnx.ml::",
    "ai.onnx::",
    "com.microsoft::",
    "torch.ops.",
    "torch.nn.functional.",
    "aten::",
    "aten.",
    "aten_",
    "prims::",
    "prims.",
    "prims_",
    "npu_",
];

/// Suffixes of PyTorch's overloads.
const OVERLOADS: [&str; 22] = [
    "default",
    "tensor",
    "scalar",
    "self",
    "out",
    "int",
    "dim",
    "dim_intlist",
    "tensor_scalar",
    "scalar_tensor",
    "tensor_mode",
    "scalar_mode",
    "tensor_out",
    "using_ints",
    "dim_int",
    "dimname",
    "tensor_tensor",
    "vec",
    "float",
    "correction",
    "tensor_tensor_scalar",
    "start",
];

/// Types by the word that a dump has.
#[derive(Default)]
pub(super) struct OpTypeIndex {
    known: HashMap<String, OpType>,
    synonyms: HashMap<&'static str, &'static str>,
}

/// Whether the output of an operator has the values of its input, according to its type.
pub(crate) fn is_view(run: &OperatorExecution) -> bool {
    with_types(|types| types.op_type_of(run).is_view)
}

/// The same of a type.
pub(crate) fn is_view_type(op_type: &str) -> bool {
    with_types(|types| types.of_word(op_type).is_view)
}

/// Whether an operator type may replace several operators.
pub(crate) fn may_be_fused(op_type: &str) -> bool {
    with_types(|types| types.of_word(op_type).may_be_fused())
}

/// Whether the output of an operator has the values of its input in the same order, too.
pub(crate) fn has_elements_of_input(run: &OperatorExecution) -> bool {
    let name = with_types(|types| types.op_type_of(run));
    name.is_view && !REORDERING_VIEWS.contains(&name.name())
}

/// Whether two operators are of one type, in whatever words their frameworks have for it.
pub(crate) fn is_same_type(a: &OperatorExecution, b: &OperatorExecution) -> bool {
    with_types(|types| types.op_type_of(a).name == types.op_type_of(b).name)
}

/// The same of types.
pub(crate) fn is_one_type(a: &str, b: &str) -> bool {
    with_types(|types| types.of_word(a).name == types.of_word(b).name)
}

/// Maximum number of words that a thread keeps the types of.
const N_WORDS_MAX: usize = 4096;

thread_local! {
    /// Words of earlier requests: normalising a word is far slower than looking it up.
    static TYPES: RefCell<OpTypeIndex> = RefCell::default();
}

fn with_types<R>(work: impl FnOnce(&mut OpTypeIndex) -> R) -> R {
    TYPES.with_borrow_mut(|types| {
        if types.known.len() > N_WORDS_MAX {
            types.known.clear();
        }
        work(types)
    })
}

impl OpTypeIndex {
    /// The type of a run; by its name if the dump has no types and the name is one, as in `Relu_5`.
    pub(super) fn op_type_of(&mut self, run: &OperatorExecution) -> OpType {
        if run.kind != ExecutionKind::Operator {
            return OpType::new(run.kind.name(), false);
        }
        if !run.op_type.is_empty() {
            return self.of_word(&run.op_type);
        }
        self.of_name(&run.op_name)
    }

    /// The longest end of a name that is the word for a type. A name is not proof, so that it is
    /// known to differ from none.
    fn of_name(&mut self, op_name: &str) -> OpType {
        let last = op_name.rsplit(['/', '.']).next().unwrap_or_default();
        let word = last.trim_end_matches(|c: char| c.is_ascii_digit() || "_-".contains(c));
        // MindSpore ends names in `-op` and a number, as in `Conv2D-op12`.
        let word = word.strip_suffix("-op").unwrap_or(word);
        let ends = word
            .match_indices(['_', '-'])
            .map(|(at, mark)| &word[at + mark.len()..]);
        let ends = std::iter::once(word).chain(ends);
        for end in ends.filter(|end| end.len() <= N_WORD_BYTES_MAX) {
            let found = self.of_word(end);
            if found.is_known {
                return OpType::new(&found.name, false);
            }
        }
        OpType::new("", false)
    }

    pub(super) fn of_word(&mut self, word: &str) -> OpType {
        if self.synonyms.is_empty() {
            for group in SYNONYMS {
                self.synonyms
                    .extend(group.iter().map(|word| (*word, group[0])));
            }
        }
        if let Some(found) = self.known.get(word) {
            return found.clone();
        }
        let found = normalised(word).find_map(|form| self.synonyms.get(form.as_str()));
        let op_type = match found {
            Some(name) => OpType::new(name, true),
            None => OpType::new(&normalised(word).last().unwrap_or_default(), false),
        };
        self.known.insert(word.to_owned(), op_type.clone());
        op_type
    }
}

impl OpType {
    fn new(name: &str, is_known: bool) -> OpType {
        OpType {
            name: name.into(),
            is_known,
            is_view: VIEWS.contains(&name),
        }
    }

    /// The common name of all words for it; empty if unknown.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is unknown.
    pub(super) fn is_empty(&self) -> bool {
        self.name.is_empty()
    }

    /// Whether it may replace several operators: its type is unknown or not in any table.
    pub(super) fn may_be_fused(&self) -> bool {
        !self.is_known
    }

    /// Whether two types are surely not the same.
    pub(super) fn clashes_with(&self, other: &OpType) -> bool {
        self.is_known && other.is_known && self.name != other.name
    }

    /// Whether two types are the same.
    pub(super) fn is_same(&self, other: &OpType) -> bool {
        !self.is_empty() && self.name == other.name
    }
}

/// Forms of a type to look for, from the one nearest to what the dump has to the plainest.
fn normalised(word: &str) -> impl Iterator<Item = String> {
    let lower = word.to_ascii_lowercase();
    let mut rest = lower.as_str();
    // Namespaces nest, as in `torch.ops.aten.add`.
    while let Some(after) = NAMESPACES.iter().find_map(|space| rest.strip_prefix(space)) {
        rest = after;
    }
    let squeezed = |text: &str| text.replace(['_', '-', '.', ':', ' '], "");
    let whole = squeezed(rest);
    let bare = OVERLOADS
        .iter()
        .filter_map(|overload| rest.strip_suffix(overload)?.strip_suffix(['.', '_']))
        // Some overloads end in others, as `tensor_scalar` in `scalar`: the longest one is removed.
        .min_by_key(|bare| bare.len());
    let bare = squeezed(bare.unwrap_or(rest));
    // Ascend counts the versions of a type, and ends those with attributes instead of inputs in
    // `D`.
    let unversioned = bare
        .trim_end_matches(|c: char| c.is_ascii_digit())
        .strip_suffix('v')
        .map_or(bare.clone(), str::to_owned);
    let plain = unversioned.strip_suffix('d').map(str::to_owned);
    // A type that no table has is named by the last form, where a final `d` stays: it may be a
    // letter of the word.
    let last = unversioned.clone();
    [
        Some(whole),
        Some(bare),
        Some(unversioned),
        plain,
        Some(last),
    ]
    .into_iter()
    .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_type_in_all_words() {
        let mut types = OpTypeIndex::default();
        for group in [
            &[
                "Conv",
                "Conv2D",
                "Conv2DD",
                "aten_convolution_default",
                "aten.convolution.default",
            ][..],
            &[
                "Gemm",
                "MatMul",
                "MatMulV2",
                "aten_addmm",
                "aten_addmm_default",
                "aten::mm",
                "Dense",
            ],
            &[
                "Relu",
                "ReLU",
                "aten_relu",
                "aten::relu_",
                "aten.relu.default",
            ],
            &[
                "Add",
                "AddV2",
                "aten_add_Tensor",
                "aten::add_.Tensor",
                "AddD",
            ],
            &["ReduceSum", "ReduceSumD", "aten_sum_dim_IntList", "sum"],
            &[
                "Softmax",
                "SoftmaxV2",
                "aten__softmax_default",
                "aten::softmax.int",
            ],
            &[
                "LayerNormalization",
                "LayerNorm",
                "aten_native_layer_norm_default",
            ],
            &["MyOwnOp", "myownop", "my_own_op"],
        ] {
            for word in group {
                let (a, b) = (types.of_word(group[0]), types.of_word(word));
                assert!(a.is_same(&b), "{} {word}: {a:?} {b:?}", group[0]);
            }
        }
    }

    #[test]
    fn different_types_stay_different() {
        let mut types = OpTypeIndex::default();
        for (a, b) in [
            ("Conv", "Relu"),
            ("Add", "Sub"),
            ("ReduceSum", "ReduceMean"),
            ("BatchMatMul", "Relu"),
            ("Relu", "LeakyRelu"),
        ] {
            let (a, b) = (types.of_word(a), types.of_word(b));
            assert!(a.clashes_with(&b) && !a.is_same(&b), "{a:?} {b:?}");
        }
        // Of what the table lacks nothing is sure.
        let (a, b) = (types.of_word("MyOp"), types.of_word("YourOp"));
        assert!(!a.clashes_with(&b) && !a.is_same(&b));
        assert!(types.of_word("TransData").is_view && !types.of_word("Conv").is_view);
    }

    #[test]
    fn no_word_is_in_two_groups() {
        let mut seen = HashMap::new();
        for group in SYNONYMS {
            for word in *group {
                assert_eq!(seen.insert(*word, group[0]), None, "{word}");
                assert_eq!(*word, word.to_ascii_lowercase().replace('_', ""), "{word}");
            }
        }
    }

    #[test]
    fn names_tell_types_where_nothing_else_does() {
        let mut types = OpTypeIndex::default();
        let mut of = |op_name: &str| {
            types.op_type_of(&OperatorExecution {
                op_name: op_name.into(),
                ..OperatorExecution::default()
            })
        };
        let conv = of("net/Conv_12");
        for name in ["Default/features.conv2d-op7", "net_block_Conv_3"] {
            assert!(conv.is_same(&of(name)), "{name}");
        }
        assert!(!conv.clashes_with(&of("relu")) && !conv.is_same(&of("relu")));
        assert!(of("layer1").is_empty());
    }
}
