//! Plans: what a session keeps.

use std::num::NonZeroU64;
use std::ops::RangeInclusive;

use opscope_store::record::SlotSide;

use crate::KernelSelection;

/// Rules that select what a session keeps of the models that run under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Which executions of a selected operator are kept.
    pub purpose: Purpose,
    /// Which models, and which operators of each.
    pub models: ModelSelection,
    /// Tensors, or whole operators, that are left out although they are selected.
    pub excluded: Vec<Exclusion>,
    /// Which sides of a selected operator. Regardless of this, [`Purpose::Overflow`] and
    /// [`Purpose::Failures`] keep both, and [`Purpose::Watch`] keeps outputs.
    pub sides: SlotSides,
    /// Which executions of the model.
    pub steps: Steps,
    /// Whether each graph input that a selected operator reads is kept as a separate record of type
    /// `Data` under the reading operator's task. Requires outputs to be selected.
    pub has_graph_inputs: bool,
    /// Whether values that operators read and no operator produces (weights and inputs of the
    /// model) are kept as separate records at the end of a step. Requires outputs to be selected;
    /// rules of [`OperatorSelection::kernels`] choose among them by name.
    pub has_parameters: bool,
    /// The same for constants of the graph.
    pub has_constants: bool,
    /// Whether quantisation around selected operators is kept: neighbouring quantising and
    /// dequantising operators with both sides, and, for a quantised value that nothing in the model
    /// dequantises, the floats it represents. Under [`Purpose::Values`] only.
    pub shows_quantising: bool,
    /// Maximum number of operators that a session keeps under [`Purpose::Overflow`] and
    /// [`Purpose::NonFinite`]; `None` means all.
    pub n_overflows_max: Option<u64>,
}

/// Which executions of a selected operator are worth keeping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Every execution.
    Values,
    /// Only executions in which the arithmetic overflowed, each with a record of how.
    Overflow,
    /// Only executions with NaN or an infinity in a float16, bfloat16 or float32 output.
    NonFinite,
    /// Only executions that fail.
    Failures(FailureDetail),
    /// Watched operators' outputs, once when they are produced and again after each selected
    /// operator, to see who overwrites them.
    Watch,
}

/// How much is kept of an operator that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureDetail {
    /// Its tensors.
    Brief,
    /// Also name, types, shapes, layouts and attributes.
    Normal,
    /// Also a backtrace and the state of the engine.
    Full,
}

/// Which models to keep, and which operators of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelSelection {
    /// No model at all.
    None,
    /// Every model, by the same rule.
    Every(OperatorSelection),
    /// Models by name: the file name without directory and last suffix, or the name that the graph
    /// carries. A match of the file name takes precedence over one of the graph's name, and a later
    /// entry over an earlier one.
    Named(Vec<(String, OperatorSelection)>),
}

/// Which operators of a model to keep: those named, those inside a range and those that rules
/// choose.
///
/// Without any of these, every operator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperatorSelection {
    /// Exact, case-sensitive names; one of the names of operators that were fused counts too.
    pub names: Option<Vec<String>>,
    /// Ranges of the execution order.
    pub ranges: Vec<NameRange>,
    /// Under [`Purpose::Watch`], the operators whose outputs are watched.
    pub watched: Vec<String>,
    /// Rules that choose more operators than names and ranges do.
    pub kernels: Option<KernelSelection>,
}

/// A range of the execution order, both ends included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameRange {
    /// Name of the first operator.
    pub begin: String,
    /// Name of the last operator.
    pub end: String,
}

/// Operators or tensors that are left out although they are selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exclusion {
    /// The model, by either name as in [`ModelSelection::Named`]; `None` means every model.
    pub model: Option<String>,
    /// The operators.
    pub operators: OperatorRule,
    /// The tensors to leave out; `None` leaves the operator out.
    pub slots: Option<Vec<(SlotSide, usize)>>,
}

/// One operator, or all of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperatorRule {
    /// By exact name.
    Name(String),
    /// By exact type.
    Type(String),
    /// By exact type, except operators that the plan names: as listed, as watched or as the end of
    /// a range. They are excluded entirely, whatever tensors an exclusion lists.
    UnnamedOfType(String),
}

impl OperatorSelection {
    /// Every operator.
    pub fn every() -> OperatorSelection {
        OperatorSelection::default()
    }

    /// Operators by name.
    pub fn named(names: impl IntoIterator<Item = impl Into<String>>) -> OperatorSelection {
        OperatorSelection {
            names: Some(names.into_iter().map(Into::into).collect()),
            ..OperatorSelection::default()
        }
    }

    /// Operators that `kernels` chooses.
    pub fn by_kernels(kernels: KernelSelection) -> OperatorSelection {
        OperatorSelection {
            kernels: Some(kernels),
            ..OperatorSelection::default()
        }
    }

    /// No operator; parameters only if the plan requests them.
    pub fn none() -> OperatorSelection {
        OperatorSelection::named(Vec::<String>::new())
    }

    /// Whether it is every operator.
    pub fn is_every(&self) -> bool {
        self.names.is_none() && self.ranges.is_empty() && self.kernels.is_none()
    }
}

/// Which sides of an operator to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotSides {
    /// The values that it reads.
    Inputs,
    /// The values that it produces.
    Outputs,
    /// Both.
    Both,
}

impl SlotSides {
    /// Whether inputs are kept.
    pub fn inputs(self) -> bool {
        self != SlotSides::Outputs
    }

    /// Whether outputs are kept.
    pub fn outputs(self) -> bool {
        self != SlotSides::Inputs
    }
}

/// Which executions of a model to keep. Executions count from 0, kept or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    /// The executions in any of these; `None` means all.
    ranges: Option<Vec<RangeInclusive<u64>>>,
    /// Of these, only those that match every stride.
    strides: Vec<StepStride>,
}

/// Every execution whose number has the remainder `rest` when divided by `divisor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StepStride {
    divisor: NonZeroU64,
    rest: u64,
}

impl Steps {
    /// Every execution.
    pub fn every() -> Steps {
        Steps::default()
    }

    /// The executions in any of `ranges`.
    pub fn in_ranges(ranges: Vec<RangeInclusive<u64>>) -> Steps {
        Steps {
            ranges: Some(ranges),
            strides: Vec::new(),
        }
    }

    /// Executions 0, `n`, `2 n` and so on.
    pub fn every_nth(n: NonZeroU64) -> Steps {
        Steps {
            ranges: None,
            strides: vec![StepStride {
                divisor: n,
                rest: 0,
            }],
        }
    }

    /// The executions that are in both.
    #[must_use]
    pub fn intersection(self, other: Steps) -> Steps {
        let ranges = match (self.ranges, other.ranges) {
            (Some(ours), Some(theirs)) => {
                let pairs = ours.iter().flat_map(|a| {
                    theirs
                        .iter()
                        .map(move |b| *a.start().max(b.start())..=*a.end().min(b.end()))
                });
                Some(pairs.filter(|range| !range.is_empty()).collect())
            }
            (ours, theirs) => ours.or(theirs),
        };
        let strides = self.strides.into_iter().chain(other.strides).collect();
        Steps { ranges, strides }
    }

    /// The ranges, in the order given; `None` for every execution. With [`Steps::every_nth`], not
    /// all of the executions in them are kept.
    pub fn ranges(&self) -> Option<&[RangeInclusive<u64>]> {
        self.ranges.as_deref()
    }

    /// The same executions where the ranges count from `first` on instead of 0.
    #[must_use]
    pub fn counted_from(self, first: u64) -> Steps {
        let strides = self.strides.into_iter().map(|stride| {
            let divisor = stride.divisor.get();
            let back = first % divisor;
            let rest = if stride.rest >= back {
                stride.rest - back
            } else {
                stride.rest + (divisor - back)
            };
            StepStride { rest, ..stride }
        });
        Steps {
            ranges: self.ranges.map(|ranges| {
                ranges
                    .into_iter()
                    .filter_map(|range| {
                        let end = range.end().checked_sub(first)?;
                        Some(range.start().saturating_sub(first)..=end)
                    })
                    .collect()
            }),
            strides: strides.collect(),
        }
    }

    /// Whether execution `step` is kept.
    pub fn contains(&self, step: u64) -> bool {
        self.ranges
            .as_ref()
            .is_none_or(|ranges| ranges.iter().any(|range| range.contains(&step)))
            && self
                .strides
                .iter()
                .all(|stride| step % stride.divisor == stride.rest)
    }
}

impl Plan {
    /// Keeps both sides of every operator of every model in every execution.
    pub fn everything() -> Plan {
        Plan {
            purpose: Purpose::Values,
            models: ModelSelection::Every(OperatorSelection::every()),
            excluded: Vec::new(),
            sides: SlotSides::Both,
            steps: Steps::every(),
            has_graph_inputs: false,
            has_parameters: false,
            has_constants: false,
            shows_quantising: false,
            n_overflows_max: None,
        }
    }

    /// Keeps nothing.
    pub fn nothing() -> Plan {
        Plan {
            models: ModelSelection::None,
            ..Plan::everything()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps() {
        let steps = Steps::in_ranges(vec![0..=0, 5..=7]);
        let kept: Vec<u64> = (0..10).filter(|&step| steps.contains(step)).collect();
        assert_eq!(kept, [0, 5, 6, 7]);
        assert!(Steps::every().contains(u64::MAX));
        assert!(!Steps::in_ranges(vec![]).contains(0));
        let steps = Steps::in_ranges(vec![0..=3, 5..=7, 6..=9]).counted_from(6);
        assert_eq!(steps, Steps::in_ranges(vec![0..=1, 0..=3]));
        assert_eq!(Steps::every().counted_from(6), Steps::every());
    }

    #[test]
    fn strides_and_intersections() {
        let nth = |n| Steps::every_nth(NonZeroU64::new(n).unwrap());
        let check = |steps: Steps, expected: &[u64]| {
            let kept: Vec<u64> = (0..20).filter(|&step| steps.contains(step)).collect();
            assert_eq!(kept, expected, "{steps:?}");
        };
        check(nth(7), &[0, 7, 14]);
        check(nth(u64::MAX), &[0]);
        check(nth(7).counted_from(2), &[5, 12, 19]);
        check(nth(7).counted_from(7), &[0, 7, 14]);
        check(nth(4).intersection(nth(6)), &[0, 12]);
        check(nth(4).intersection(nth(6)).counted_from(10), &[2, 14]);
        check(
            nth(1).intersection(Steps::every()),
            &(0..20).collect::<Vec<_>>(),
        );
        let first = Steps::in_ranges(vec![0..=3, 8..=12]);
        let second = Steps::in_ranges(vec![2..=9, 12..=u64::MAX]);
        check(first.clone().intersection(second), &[2, 3, 8, 9, 12]);
        check(
            first.clone().intersection(Steps::every()),
            &[0, 1, 2, 3, 8, 9, 10, 11, 12],
        );
        check(nth(3).intersection(first.clone()), &[0, 3, 9, 12]);
        check(first.intersection(Steps::in_ranges(vec![4..=7])), &[]);
    }
}
