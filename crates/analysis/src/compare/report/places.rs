//! Places of operators, reduced to what distinguishes the operators of one comparison.

use crate::compare::result::{Comparison, OperatorName, SkipSide};

/// The parts of a place of which one of both sides has several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShownPlaces {
    has_ranks: bool,
    has_models: bool,
    has_steps: bool,
}

impl ShownPlaces {
    /// Looks through all operators, also those without a partner.
    pub fn for_comparison(comparison: &Comparison) -> ShownPlaces {
        let pairs = comparison.operators.iter();
        let [of_target, of_golden] = [false, true].map(|is_golden| {
            let skips = comparison.skips.iter();
            // A skip of both sides is under the target's name.
            let skips = skips.filter(move |skip| (skip.side == SkipSide::Golden) == is_golden);
            skips.filter_map(|skip| skip.operator.as_ref())
        });
        // Each side by itself: another name of the model on the other side does not make a second
        // model.
        let target = pairs.clone().flat_map(|pair| &pair.target);
        let golden = pairs.flat_map(|pair| &pair.golden);
        let target = ShownPlaces::of_names(target.chain(of_target));
        let golden = ShownPlaces::of_names(golden.chain(of_golden));
        ShownPlaces {
            has_ranks: target.has_ranks || golden.has_ranks,
            has_models: target.has_models || golden.has_models,
            has_steps: target.has_steps || golden.has_steps,
        }
    }

    fn of_names<'a>(names: impl Iterator<Item = &'a OperatorName>) -> ShownPlaces {
        let mut shown = ShownPlaces::default();
        let (mut rank, mut model, mut step) = (None, None, None);
        for name in names {
            shown.has_ranks |= is_another(&mut rank, name.rank);
            shown.has_models |= is_another(&mut model, name.model.as_deref());
            shown.has_steps |= is_another(&mut step, name.step);
        }
        shown
    }

    /// Rank, model and step where there are several, and repetition where there is one.
    pub fn words(self, name: &OperatorName) -> String {
        super::words::place(&OperatorName {
            rank: name.rank.filter(|_| self.has_ranks),
            model: name.model.clone().filter(|_| self.has_models),
            step: name.step.filter(|_| self.has_steps),
            repeat: name.repeat,
            ..OperatorName::default()
        })
    }
}

/// Whether a value is another one than the first.
fn is_another<T: PartialEq>(first: &mut Option<T>, value: Option<T>) -> bool {
    match (&first, value) {
        (_, None) => false,
        (Some(known), Some(value)) => *known != value,
        (None, value) => {
            *first = value;
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::result::{OperatorResult, Skip};

    fn name(rank: Option<u32>, model: &str, step: u64) -> OperatorName {
        OperatorName {
            rank,
            model: Some(model.into()),
            step: Some(step),
            ..OperatorName::default()
        }
    }

    fn pair(target: OperatorName, golden: OperatorName) -> OperatorResult {
        OperatorResult {
            target: [target].into(),
            golden: [golden].into(),
            ..OperatorResult::default()
        }
    }

    #[test]
    fn what_all_operators_share_is_not_said() {
        let mut comparison = Comparison {
            operators: vec![
                pair(name(Some(0), "a", 0), name(Some(0), "b", 0)),
                pair(name(Some(0), "a", 0), name(None, "b", 0)),
            ],
            ..Comparison::default()
        };
        let words = |comparison: &Comparison| {
            ShownPlaces::for_comparison(comparison).words(&comparison.operators[0].target[0])
        };
        assert_eq!(words(&comparison), "");
        let last = pair(name(Some(0), "a", 1), name(Some(1), "b", 1));
        comparison.operators.push(last);
        assert_eq!(words(&comparison), "rank 0, step 0");
        comparison.operators.pop();
        comparison.skips.push(Skip {
            side: SkipSide::Golden,
            operator: Some(name(Some(0), "c", 0)),
            ..Skip::default()
        });
        assert_eq!(words(&comparison), "a");
        comparison.operators[0].target[0].repeat = 2;
        assert_eq!(words(&comparison), "a, repeat 2");
    }
}
