//! What to keep, as values with names.

use std::ops::RangeInclusive;

/// What a session keeps of the models that run under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Which models, and which operators of each.
    pub models: ModelSelection,
    /// Which sides of a selected operator.
    pub sides: Sides,
    /// Which executions of the model.
    pub steps: Steps,
}

/// Which models to keep, and which operators of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelSelection {
    /// No model at all.
    None,
    /// Every model, by the same rule.
    Every(OperatorSelection),
    /// Models by name: the file name without directory and last suffix, or the name that the graph
    /// carries. A match of the file name goes before a match of the graph's name, and a later entry
    /// before an earlier one.
    Named(Vec<(String, OperatorSelection)>),
}

/// Which operators of a model to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperatorSelection {
    /// Every operator.
    Every,
    /// Operators by exact, case-sensitive name.
    Named(Vec<String>),
}

/// Which sides of an operator to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sides {
    /// What it reads.
    Inputs,
    /// What it produces.
    Outputs,
    /// Both.
    Both,
}

impl Sides {
    /// Whether inputs are kept.
    pub fn inputs(self) -> bool {
        self != Sides::Outputs
    }

    /// Whether outputs are kept.
    pub fn outputs(self) -> bool {
        self != Sides::Inputs
    }
}

/// Which executions of a model to keep. Executions count from 0, kept or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steps(Option<Vec<RangeInclusive<u64>>>);

impl Steps {
    /// Every execution.
    pub fn every() -> Steps {
        Steps(None)
    }

    /// The executions in any of `ranges`.
    pub fn in_ranges(ranges: Vec<RangeInclusive<u64>>) -> Steps {
        Steps(Some(ranges))
    }

    /// Whether execution `step` is kept.
    pub fn contains(&self, step: u64) -> bool {
        self.0
            .as_ref()
            .is_none_or(|ranges| ranges.iter().any(|range| range.contains(&step)))
    }
}

impl Plan {
    /// Keeps both sides of every operator of every model in every execution.
    pub fn everything() -> Plan {
        Plan {
            models: ModelSelection::Every(OperatorSelection::Every),
            sides: Sides::Both,
            steps: Steps::every(),
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
    }
}
