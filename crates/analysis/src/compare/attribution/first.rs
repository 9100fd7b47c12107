//! The first slot where both sides part.

use std::cell::LazyCell;
use std::collections::{BTreeMap, HashMap, HashSet};

use super::kinds::{fills_a_shape, is_in_place};
use super::suspects::{SuspectReach, SuspectSearch, suspect_of};
use super::{absorbed, cause_of, distance};
use crate::compare::flow::{ResultSlot, ResultSource, ValueFlow};
use crate::compare::matching::{is_one_type, is_view_type, may_be_fused};
use crate::compare::result::{
    Cause, Comparison, DivergencePoint, Evidence, OperatorPlace, OperatorResult, PairingEvidence,
    PartingOperator, RuleName, SkipReason, SlotAgreement, SlotResult, Suspect, VerdictLevel,
    WiringChange,
};

/// The first divergences and failures of a comparison.
pub(super) struct FirstFaults {
    pub(super) divergence: Option<DivergencePoint>,
    pub(super) failure: Option<DivergencePoint>,
    /// The first divergence of each rank; empty if there is one rank.
    pub(super) by_rank: Vec<DivergencePoint>,
    /// All operators: by step, then by their position in their rank's step, then by rank.
    pub(super) order: Vec<usize>,
}

pub(super) fn find_first(comparison: &Comparison, flow: &ValueFlow) -> FirstFaults {
    let order = order_of(&comparison.operators);
    let search = FaultSearch {
        comparison,
        flow,
        is_absorbed: absorbed::find(comparison, flow),
        is_fed: fed(&comparison.operators),
        suspects: SuspectSearch::new(comparison),
    };
    let mut ranks: BTreeMap<Option<u32>, Vec<usize>> = BTreeMap::new();
    for &i in &order {
        let (rank, _) = comparison.operators[i].place();
        ranks.entry(rank).or_default().push(i);
    }
    let by_rank = if ranks.len() > 1 {
        let firsts = ranks
            .values()
            .map(|order| search.first(VerdictLevel::Warn, order));
        firsts.flatten().collect()
    } else {
        Vec::new()
    };
    let divergence = search.first(VerdictLevel::Warn, &order);
    let failure = search.first(VerdictLevel::Fail, &order);
    // The place where a difference exceeds the limits is weaker evidence than the weight that it
    // began with.
    let has_grown =
        |point: &DivergencePoint| matches!(point.cause, Cause::Gradual | Cause::Inherited);
    let began = divergence
        .clone()
        .filter(|point| point.cause == Cause::Outside);
    let failure = match failure {
        Some(failure) if has_grown(&failure) => began.or(Some(failure)),
        failure => failure,
    };
    FirstFaults {
        divergence,
        failure,
        by_rank,
        order,
    }
}

fn fed(operators: &[OperatorResult]) -> Vec<bool> {
    let mut is_fed = vec![false; operators.len()];
    for operator in operators {
        for &[_, reader] in &operator.readers {
            // A saved result may be damaged. A value that one step leaves to a later one comes from
            // outside the later step.
            if operators
                .get(reader)
                .is_some_and(|reader| reader.place() == operator.place())
            {
                is_fed[reader] = true;
            }
        }
    }
    is_fed
}

/// Whether a pair rests on type and order, and shapes, whole numbers or booleans differ: other
/// graphs compute these in other ways.
pub(in crate::compare) fn is_doubtful(operator: &OperatorResult) -> bool {
    let is_guessed = !operator.is_certain && operator.how != PairingEvidence::Mapping;
    let tells_little =
        |slot: &SlotResult| slot.evidence == Evidence::Shape || !distance::is_float(slot);
    let mut outputs = operator.outputs().filter(|slot| slot.is_apart());
    let has_any = outputs.clone().next().is_some();
    let mut inputs = operator.inputs();
    // A weight that the golden side reads elsewhere is that of another operator.
    let is_misplaced =
        inputs.any(|slot| matches!(slot.agreement, Some(SlotAgreement::Elsewhere(_))));
    is_guessed && (is_misplaced || has_any && outputs.all(tells_little))
}

/// Whether an operator of several ranks is that of the same call of the program.
fn is_called_alike(operator: &OperatorResult) -> bool {
    let mut slots = operator.slots.iter();
    operator.how == PairingEvidence::Name && slots.any(|slot| slot.ranks.is_some())
}

/// Whether an operator has inputs, and all of them were compared and agree.
fn all_inputs_pass(operator: &OperatorResult) -> bool {
    let mut inputs = operator.inputs();
    let has_any = operator.inputs().next().is_some();
    has_any && inputs.all(|slot| slot.level == VerdictLevel::Pass && slot.agreement.is_none())
}

/// Whether an operator makes another order of what agrees, that one of the sides comes to later.
pub(in crate::compare) fn makes_another_order(operator: &OperatorResult) -> bool {
    let is_moved = |slot: &SlotResult| {
        slot.evidence == Evidence::Tensor && slot.agreement == Some(SlotAgreement::Downstream)
    };
    all_inputs_pass(operator) && operator.outputs().any(is_moved)
}

/// Whether statistics alone show that an operator agrees, and graphs that it is another one.
fn is_hidden_by_statistics(operator: &OperatorResult) -> bool {
    let mut outputs = operator.outputs();
    let names = [&operator.target, &operator.golden].map(|names| names.last());
    let types = names.map(|name| name.map(|name| &name.op_type));
    (!operator.attributes.is_empty() || types[0] != types[1])
        && outputs.any(|slot| slot.evidence == Evidence::Statistics)
}

/// Ranks run side by side, and their clocks may differ: of equal steps the position in the step
/// decides.
fn order_of(operators: &[OperatorResult]) -> Vec<usize> {
    let mut n_of: HashMap<OperatorPlace, usize> = HashMap::new();
    let mut order: BTreeMap<(Option<u64>, usize, Option<u32>), usize> = BTreeMap::new();
    for (i, operator) in operators.iter().enumerate() {
        let (rank, step) = operator.place();
        let position = n_of.entry((rank, step)).or_insert(0);
        order.insert((step, *position, rank), i);
        *position += 1;
    }
    order.into_values().collect()
}

fn type_of(operator: &OperatorResult) -> &str {
    let name = operator.target.last();
    name.map_or("", |name| name.op_type.as_str())
}

struct FaultSearch<'a> {
    comparison: &'a Comparison,
    flow: &'a ValueFlow,
    /// For each operator, whether no later difference comes from its own.
    is_absorbed: Vec<bool>,
    /// For each operator, whether a graph names the producer of one of its inputs.
    is_fed: Vec<bool>,
    suspects: SuspectSearch<'a>,
}

impl FaultSearch<'_> {
    /// The first of some operators that reaches a level. If values locate the divergence, no other
    /// operator is named, unless one of its inputs is changed from outside.
    fn first(&self, level: VerdictLevel, order: &[usize]) -> Option<DivergencePoint> {
        let leading = order.iter().copied();
        let leading = leading.filter(|&i| !self.is_absorbed[i]);
        let leading: Vec<usize> = leading.collect();
        let operators = &self.comparison.operators;
        // One operator on one side and several on the other: that holds for every shape of the pair
        // that shows it, as what one of its own name reads or makes does.
        let partings = self.comparison.partings.iter().filter(|parting| {
            let golden = operators[parting.operator].golden.last();
            let is_part = golden.is_some_and(|golden| {
                let op_type = &parting.name.op_type;
                may_be_fused(&golden.op_type) && !may_be_fused(op_type) && !is_view_type(op_type)
            });
            let operator = &operators[parting.operator];
            let is_named = operator.how == PairingEvidence::Name && operator.has_other_size();
            // The row that it was put into is about another one.
            let has_no_row = operator.target.last() != Some(&parting.name);
            is_part
                || is_named
                || has_no_row
                || !(parting.others.is_empty() && parting.rewired.is_empty())
        });
        let is_region: HashSet<usize> = partings.map(|parting| parting.operator).collect();
        let sure = leading.iter().copied();
        let sure = sure.filter(|&i| {
            (is_region.contains(&i) || !is_doubtful(&operators[i])) && !self.is_harmless(i)
        });
        let sure: Vec<usize> = sure.collect();
        // The effect of a changed weight may be below the limits where the weight is read, and grow
        // beyond them further on.
        let quiet = order.iter().copied().filter(|&i| {
            let mut outputs = operators[i].outputs();
            // A difference that comes right again further on does not grow.
            !self.is_absorbed[i]
                || !outputs.any(|slot| slot.level == VerdictLevel::Fail || slot.agreement.is_some())
        });
        let quiet: Vec<usize> = quiet.collect();
        let first = LazyCell::new(|| self.first_of(level, &leading));
        // A weight that a step has changed differs in the next one.
        let is_later = |point: &DivergencePoint| {
            let is_weight = point.cause == Cause::Outside;
            is_weight
                && first.as_ref().is_some_and(|first| {
                    operators[first.operator].place().1 < operators[point.operator].place().1
                })
        };
        // A difference without effect is reported only if there is no other.
        self.first_of(level, &sure)
            .filter(|point| point.cause.accuses() && !is_later(point))
            .or_else(|| first.clone().filter(|point| point.cause.accuses()))
            .or_else(|| {
                let quiet = self.first_of(level, &quiet);
                quiet.filter(|point| point.cause == Cause::Outside && !is_later(point))
            })
            .or_else(|| first.clone())
            .or_else(|| self.first_of(level, order))
    }

    /// Whether what differs in an operator is a weight that comes to nothing elsewhere.
    fn is_harmless(&self, operator: usize) -> bool {
        let slots = self.comparison.operators[operator].slots.iter().enumerate();
        let mut inputs = slots
            .filter(|(_, slot)| !slot.is_output() && slot.is_apart())
            .peekable();
        inputs.peek().is_some() && inputs.all(|(k, _)| self.is_harmless_weight(operator, k))
    }

    /// Whether the very same pair of tensors was an input before, where it came to nothing.
    fn is_harmless_weight(&self, operator: usize, slot: usize) -> bool {
        let source = self.flow.source(operator, slot);
        let first = source.target.filter(|first| first.operator != operator);
        self.comparison.operators[operator].slots[slot].is_outside
            && source.is_same
            && first.is_some_and(|first| self.is_absorbed[first.operator])
    }

    fn first_of(&self, level: VerdictLevel, order: &[usize]) -> Option<DivergencePoint> {
        let operators = &self.comparison.operators;
        let reaches = |slot: &SlotResult| slot.is_apart() && slot.level >= level;
        // Small differences part where they have grown too large, which is no fault of a place, and
        // what no level reaches needs no name.
        let places: HashSet<OperatorPlace> = order
            .iter()
            .filter(|i| operators[**i].slots.iter().any(reaches))
            .map(|i| operators[*i].place())
            .collect();
        let mut partings: HashMap<usize, &PartingOperator> = HashMap::new();
        let all = self.comparison.partings.iter();
        let (forms, telling): (Vec<_>, Vec<_>) = all
            .filter(|at| places.contains(&operators[at.operator].place()) && self.is_apart_at(at))
            .partition(|parting| self.tells_nothing(parting));
        // Of forms alone the first is where to look.
        for parting in if telling.is_empty() { forms } else { telling } {
            partings.entry(parting.operator).or_insert(parting);
        }
        let of_partings: HashSet<OperatorPlace> = partings
            .keys()
            .map(|operator| operators[*operator].place())
            .collect();
        let is_vague = self.vague_places(&partings, order);
        order.iter().find_map(|i| {
            let operator = &operators[*i];
            let is_told = of_partings.contains(&operator.place());
            let mut slots = operator.slots.iter().enumerate();
            let is_changed = slots.any(|(k, slot)| {
                slot.is_outside && reaches(slot) && !self.is_harmless_weight(*i, k)
            });
            // A differing input is stronger evidence than a differing output, unless its origin is
            // known. A view of a weight was not compared, and its reader has the numbers.
            let parting = partings.get(i).filter(|parting| {
                let is_listed = operator.target.last() == Some(&parting.name);
                let computes = !is_view_type(&parting.name.op_type);
                let is_written = parting.change == Some(WiringChange::Overwrites);
                let is_earlier = parting.cause == Cause::Outside && !is_listed && computes;
                !is_changed || is_written || is_earlier
            });
            if let Some(parting) = parting {
                return Some(self.at_parting(parting));
            }
            if is_told && !is_changed {
                // Tensors of several ranks are compared by the calls of a program.
                let is_called_alike = operator.how == PairingEvidence::Name
                    && operator.slots.iter().any(|slot| slot.ranks.is_some());
                let may_be_first =
                    operator.is_certain || is_called_alike || is_vague.contains(&operator.place());
                let is_own = may_be_first && all_inputs_pass(operator);
                let point = is_own.then(|| self.in_operator(operator, level)).flatten();
                return point.filter(|point| matches!(point.cause, Cause::Own | Cause::Unknown));
            }
            self.in_operator(operator, level)
        })
    }

    /// Whether a parting is the form of a value alone: a view that was not compared, or an operator
    /// that reads nothing but the shape of its input. A cast that the golden side lacks rounds.
    fn tells_nothing(&self, parting: &PartingOperator) -> bool {
        let listed = &self.comparison.operators[parting.operator].target;
        let op_type = &parting.name.op_type;
        let rounds = parting.change.is_some() && is_one_type(op_type, "Cast");
        let is_view = is_view_type(op_type) && !rounds;
        let is_form = !listed.contains(&parting.name) && is_view || fills_a_shape(op_type);
        parting.cause == Cause::Own && is_form
    }

    /// Whether something differs at a parting: an operator that passes cannot be at fault, unless
    /// statistics alone show that it does, or it brings what agrees into another order.
    fn is_apart_at(&self, parting: &PartingOperator) -> bool {
        let operator = &self.comparison.operators[parting.operator];
        let is_listed = operator.target.last() == Some(&parting.name);
        // The overwrite shows at the reader.
        let overwrites = parting.change == Some(WiringChange::Overwrites);
        // Golden's output may be in another form, as that of a view in front of a convolution in
        // blocks of channels is.
        let computes = operator.target.len() > 1 || !is_view_type(&parting.name.op_type);
        let is_uncompared = parting.cause == Cause::Own
            && computes
            && !operator.slots.iter().any(SlotResult::is_output);
        !is_listed
            || overwrites
            || is_uncompared
            || parting.rewired.is_empty() && is_hidden_by_statistics(operator)
            || is_view_type(&parting.name.op_type) && makes_another_order(operator)
            || operator.slots.iter().any(SlotResult::is_apart)
    }

    /// Places whose first parting names no operator that was compared, such as a module around
    /// many, or one at which small differences grew: an operator before it may say more.
    fn vague_places(
        &self,
        partings: &HashMap<usize, &PartingOperator>,
        order: &[usize],
    ) -> HashSet<OperatorPlace> {
        let mut firsts: HashMap<OperatorPlace, bool> = HashMap::new();
        for parting in order.iter().filter_map(|i| partings.get(i)) {
            let operator = &self.comparison.operators[parting.operator];
            let is_listed = operator.target.contains(&parting.name);
            let is_vague = parting.cause == Cause::Gradual || !is_listed;
            firsts.entry(operator.place()).or_insert(is_vague);
        }
        firsts.retain(|_, is_vague| *is_vague);
        firsts.into_keys().collect()
    }

    fn at_parting(&self, parting: &PartingOperator) -> DivergencePoint {
        let operator = &self.comparison.operators[parting.operator];
        let is_listed = operator.target.last() == Some(&parting.name);
        // Golden's may compute what comes next as well, such as an activation.
        let is_open = is_listed
            && operator.target.len() == 1
            && !operator.slots.iter().any(SlotResult::is_output);
        DivergencePoint {
            operator: parting.operator,
            slot: parting.slot,
            cause: match parting.cause {
                Cause::Own if is_open || self.tells_nothing(parting) => Cause::Unknown,
                cause => cause,
            },
            name: (!is_listed).then(|| parting.name.clone()),
            ..DivergencePoint::default()
        }
    }

    /// The first slot of an operator that reaches a level, inputs first.
    fn in_operator(
        &self,
        operator: &OperatorResult,
        level: VerdictLevel,
    ) -> Option<DivergencePoint> {
        let op_type = type_of(operator);
        let mut all = (0..operator.slots.len())
            .filter(|&k| operator.slots[k].is_apart() && operator.slots[k].level >= level);
        let mut inputs = all.clone().filter(|&k| {
            // If it was changed in place, it contains the operator's result.
            let source = self.flow.source(operator.index, k);
            let is_changed = source.is_own_output && is_in_place(op_type);
            !is_changed && !operator.slots[k].is_output()
        });
        if let Some(k) = inputs.next() {
            let source = self.flow.source(operator.index, k);
            let (cause, suspects) = self.of_input(operator, &operator.slots[k], source);
            return Some(DivergencePoint {
                operator: operator.index,
                slot: operator.slots[k].slot,
                cause,
                suspects,
                ..DivergencePoint::default()
            });
        }
        let k = all.find(|&k| operator.slots[k].is_output())?;
        Some(DivergencePoint {
            operator: operator.index,
            slot: operator.slots[k].slot,
            cause: cause_of(operator),
            suspects: operator.suspects.to_vec(),
            ..DivergencePoint::default()
        })
    }

    /// Why an input is apart that no output before is.
    fn of_input(
        &self,
        operator: &OperatorResult,
        slot: &SlotResult,
        source: ResultSource,
    ) -> (Cause, Vec<Suspect>) {
        if slot.is_outside {
            return (Cause::Outside, Vec::new());
        }
        let nearest = || self.suspects.nearest(operator, SuspectReach::Any);
        let op_type = type_of(operator);
        // No operator causes a changed input of the model.
        let made = |at: Option<ResultSlot>| {
            at.filter(|at| self.comparison.operators[at.operator].slots[at.slot].is_output())
        };
        let makers = if source.is_same {
            [source.target, source.golden]
        } else {
            [made(source.target), made(source.golden)]
        };
        match makers {
            // An operator before it reads the same, and it is as unknown there.
            [Some(a), Some(_)]
                if source.is_same && made(Some(a)).is_none() && a.operator < operator.index =>
            {
                let reader = &self.comparison.operators[a.operator];
                let source = self.flow.source(a.operator, a.slot);
                self.of_input(reader, &reader.slots[a.slot], source)
            }
            // Its maker was not judged, or by other limits.
            [Some(a), Some(_)] if source.is_same => {
                let maker = &self.comparison.operators[a.operator];
                let rules = &maker.slots[a.slot].rules;
                let is_judged = !rules.iter().any(|rule| rule.metric == RuleName::NotJudged);
                // With its axes in another order, a value is right for those alone that expect it.
                if maker.slots[a.slot].agreement == Some(SlotAgreement::Downstream) {
                    return (Cause::Unknown, nearest());
                }
                if is_judged {
                    return (Cause::Gradual, Vec::new());
                }
                (
                    Cause::Unknown,
                    suspect_of(maker, SkipReason::NotJudged)
                        .into_iter()
                        .collect(),
                )
            }
            // It came straight from an operator on one side, and on the other it did not.
            [Some(_), _] | [_, Some(_)] => (Cause::Unknown, nearest()),
            // A view passes its input on unchanged.
            [None, None] if source.is_own_output && !is_view_type(op_type) => {
                (Cause::Unknown, nearest())
            }
            [None, None] if slot.is_unseen || self.suspects.is_gap_before(operator, slot) => {
                (Cause::Unknown, nearest())
            }
            // A graph identifies outside values.
            [None, None]
                if self.is_fed[operator.index]
                    && (operator.is_certain || is_called_alike(operator))
                    && slot.parameter.is_none() =>
            {
                (Cause::Unknown, nearest())
            }
            // Tensors of two shapes have no numbers that tell where they come from.
            [None, None] if slot.evidence == Evidence::Shape && self.is_made(operator, slot) => {
                (Cause::Unknown, nearest())
            }
            [None, None] => (Cause::Outside, Vec::new()),
        }
    }

    /// Whether a graph lists the operator among the readers of an output of the input's shape.
    fn is_made(&self, operator: &OperatorResult, slot: &SlotResult) -> bool {
        self.is_fed[operator.index]
            && self.comparison.operators.iter().any(|maker| {
                let mut made = maker.readers.iter();
                made.any(|&[k, reader]| {
                    let output = maker.slots.get(k).map(|output| &output.target.shape);
                    reader == operator.index && output == Some(&slot.target.shape)
                })
            })
    }
}
