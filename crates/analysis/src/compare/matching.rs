//! Matches operators and slots of both sides.
//!
//! Each rule only sees operators that earlier rules left unmatched. `docs/compare/matching.md`
//! lists the rules in order.
//!
//! | module | job |
//! | --- | --- |
//! | `places` | matches ranks, models and steps of both sides |
//! | `board` | existing pairs, and the gaps between them |
//! | `mapping` | the user's pairs |
//! | `fusion` | fused operators |
//! | `identity` | name pairs that no later rule breaks |
//! | `structure` | equal positions in both graphs |
//! | `values` | equal names of values |
//! | `name` | equal names |
//! | `names` | comparison and display of names |
//! | `optimizer` | updates of parameters of one name |
//! | `origin` | equal types called by one module or source line |
//! | `order` | equal types in execution order |
//! | `fuzzy` | similarity |
//! | `slots` | slots of a pair, and their layouts |
//! | `unseen` | inputs whose operator a dump without a graph lacks |
//! | `reason` | why an operator has no match |

mod board;
mod fusion;
mod fuzzy;
mod identity;
mod mapping;
mod name;
mod names;
mod op_type;
mod optimizer;
mod order;
mod origin;
mod places;
mod reason;
mod slots;
mod structure;
pub(super) mod unseen;
mod values;

use std::collections::HashMap;

use board::Board;
use opscope_store::record::SlotSide;
use opscope_tensor::Layout;
use places::PlaceScopes;
use smallvec::SmallVec;
use thin_vec::ThinVec;

pub use super::side::SlotRef;

use super::side::ComparedDump;
use crate::compare::result::Party;

pub use fusion::{FusedOperator, FusionRules, FusionRulesError};
pub(super) use identity::{certain, without_counter};
pub(super) use mapping::understood;
pub use mapping::{MappedNames, Mapping, MappingError, MappingForm, OperatorMapping};
pub(super) use names::joined;
pub(super) use op_type::{
    has_elements_of_input, is_one_type, is_same_type, is_view, is_view_type, may_be_fused,
};
pub(super) use optimizer::updated_parameters;
pub(super) use structure::extended;

/// Options of matching.
#[derive(Clone, Debug, Default)]
pub struct MatchingOptions {
    /// Pairs of target and golden ranks. If empty, they are inferred.
    pub ranks: Vec<(u32, u32)>,
    /// Pairs of target and golden model names. If empty, they are inferred.
    pub models: Vec<(String, String)>,
    /// Pairs of target and golden steps. If empty, they are inferred.
    pub steps: Vec<(u64, u64)>,
    /// How far the target's step numbers are ahead of golden's; `None` if unspecified.
    pub step_offset: Option<i64>,
    /// The user's mapping of operators.
    pub mapping: Option<Mapping>,
    /// The compiler's fusion rules for the target.
    pub target_fusion: Option<FusionRules>,
    /// The compiler's fusion rules for the golden side.
    pub golden_fusion: Option<FusionRules>,
    /// Whether operators may only be matched by mapping, declared fusion and name, never by a
    /// guess.
    pub no_guesses: bool,
    /// Executions of both sides that match by name or by position in both graphs, whatever their
    /// values.
    pub certain: Vec<[usize; 2]>,
    /// Executions with equal outputs.
    pub anchors: Vec<ValueAnchor>,
    /// Which slots of both sides have the same elements.
    pub values: SharedValues,
}

/// Slots by value: slots of both sides with the same number have the same elements.
#[derive(Clone, Debug, Default)]
pub struct SharedValues {
    /// The numbers of the target's slots, and of the golden side's. Slots whose value does not
    /// exist on the other side have none.
    pub of_slot: [HashMap<SlotRef, usize>; 2],
    /// Numbers of values that two operators cannot share by chance, and whether they come from
    /// outside, like weights.
    pub distinctive: HashMap<usize, bool>,
    /// Whether a side lacks operators of the other one, so that type and order are weak evidence.
    pub is_partial: bool,
}

impl SharedValues {
    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        !self.is_partial && self.of_slot.iter().all(HashMap::is_empty)
    }

    fn number(&self, side: usize, slot: SlotRef) -> Option<usize> {
        self.of_slot[side].get(&slot).copied()
    }
}

/// Executions of both sides that produce the same values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueAnchor {
    /// The target's and golden's execution, as indices into the sides' runs.
    pub runs: [usize; 2],
    /// Slots with the same values, each by side and position.
    pub slots: Vec<[(SlotSide, u32); 2]>,
}

impl Matching {
    /// Matches operators and slots. No slot is in two pairs, and equal inputs have equal results.
    ///
    /// # Errors
    /// [`MappingError`] if the mapping has a name that no step of its side has, or repeats one.
    pub fn align(
        target: &ComparedDump,
        golden: &ComparedDump,
        options: &MatchingOptions,
    ) -> Result<Matching, MappingError> {
        let PlaceScopes { scopes, apart } = places::align(target, golden, options);
        let mut board = Board::new([target, golden], &scopes, &options.values);
        for one in apart {
            board.leave(one.party.index(), one.run, one.reason);
        }
        // Names are checked against whole sides, because an operator in a mapping may run in only
        // some of the steps.
        let entries = match &options.mapping {
            Some(given) => mapping::resolve(given, &mut board)?,
            None => Vec::new(),
        };
        let anchors: HashMap<usize, &ValueAnchor> = options
            .anchors
            .iter()
            .map(|anchor| (anchor.runs[0], anchor))
            .collect();
        let rules = [&options.target_fusion, &options.golden_fusion].map(Option::as_ref);
        for scope in &scopes {
            mapping::apply(&entries, &mut board, scope);
            // Before equal names: a fused operator often keeps the name of its first part, whose
            // output it no longer produces.
            fusion::declared(&mut board, scope, rules);
            // For these pairs, different values are faults, not evidence against the pair.
            board.pair_certain(&options.certain, scope);
            // Before names, which are numbered in the order of the parameters.
            optimizer::equal(&mut board, scope);
            // Before equal names: a value may have the name of an operator that does not produce
            // it.
            values::equal(&mut board, &anchors, scope);
            // Before names: a name that contradicts the values belongs to another operator.
            board.pair_anchors(&anchors, scope);
            name::equal(&mut board, scope);
            // Equal names leave operators that both sides fused alike under different names.
            fusion::same_originals(&mut board, scope, rules);
            if !options.no_guesses {
                // Before fusion and order, which do not use the program's source.
                origin::equal(&mut board, scope);
                fusion::by_name(&mut board, scope);
                if scope.is_ordered {
                    // Before `order`, which would pair a fused operator with one part of its chain.
                    fusion::chains(&mut board, scope);
                    order::align(&mut board, scope);
                    name::equal_between_anchors(&mut board, scope);
                    // New pairs have narrowed the gaps, so more operators are now alone between two
                    // pairs.
                    fusion::chains(&mut board, scope);
                }
                fuzzy::likely(&mut board, scope);
            }
            reason::explain(&mut board, scope);
        }
        Ok(board.finish())
    }
}

/// Two dumps and their matches.
#[derive(Clone, Copy, Debug)]
pub struct MatchedDumps<'a> {
    /// The dump under test.
    pub target: &'a ComparedDump,
    /// The trusted dump.
    pub golden: &'a ComparedDump,
    /// The matched slots of both.
    pub matching: &'a Matching,
    /// A dump whose distance from the golden one is the yardstick, matched with the golden one.
    pub reference: Option<(&'a ComparedDump, &'a Matching)>,
}

/// Matched executions, and those without a partner.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matching {
    /// In the order in which the target ran.
    pub pairs: Vec<RunPair>,
    /// Executions without a partner, those of the target first.
    pub unmatched: Vec<UnmatchedExecution>,
}

impl Matching {
    /// The pair of two executions, unless the target is an archive of values.
    pub(super) fn pair_of(&self, [target, golden]: [usize; 2]) -> Option<&RunPair> {
        let at = self
            .pairs
            .partition_point(|pair| pair.target.first().copied() < Some(target));
        let mut pairs = self.pairs[at..].iter();
        let mut pairs = pairs
            .by_ref()
            .take_while(|pair| pair.target.first().copied() == Some(target));
        pairs.find(|pair| pair.target[..] == [target] && pair.golden[..] == [golden])
    }
}

/// Matched executions: one of each side, or several of one side if operators were fused.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunPair {
    /// Executions of the target, as indices into its runs, in order.
    pub target: SmallVec<[usize; 1]>,
    /// Executions of the golden side.
    pub golden: SmallVec<[usize; 1]>,
    /// The evidence of the match.
    pub how: MatchEvidence,
    /// Slots that are compared.
    pub slots: Vec<SlotPair>,
    /// Slots without a partner.
    pub missing: ThinVec<MissingSlot>,
}

/// The evidence for a match of executions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum MatchEvidence {
    /// The same name of an operator or value, the same place and number.
    #[default]
    Name,
    /// The same place in both graphs.
    Structure,
    /// The same values.
    Value,
    /// The same type, called in the same module or at the same line of the program.
    Origin,
    /// The same type at the same place in the order of execution.
    Order,
    /// The operators that one was fused from.
    Fusion,
    /// The user's mapping.
    Mapping,
    /// The similarity of names, types, shapes and neighbours, from 0 to 1.
    Fuzzy(f64),
}

/// Two slots that are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlotPair {
    /// The target's.
    pub target: SlotRef,
    /// The golden side's.
    pub golden: SlotRef,
    /// The layout that both are converted to for the comparison; `None` if neither is.
    pub layout: Option<Layout>,
    /// A conversion that may apply if the shapes differ; only made on request.
    pub hint: Option<LayoutHint>,
}

impl SlotPair {
    /// Two slots that are compared as they are.
    pub(super) fn plain(target: SlotRef, golden: SlotRef) -> SlotPair {
        SlotPair {
            target,
            golden,
            layout: None,
            hint: None,
        }
    }
}

/// A proposal for slots with different shapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutHint {
    /// The shapes agree if the target has one layout and the golden side the other.
    Layouts {
        /// The target's.
        target: Layout,
        /// The golden side's.
        golden: Layout,
    },
}

/// A slot without a partner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MissingSlot {
    /// The side that has it.
    pub party: Party,
    /// Which of the side's runs.
    pub run: usize,
    /// Input or output.
    pub side: SlotSide,
    /// Which one.
    pub index: u32,
    /// Whether it is a value inside a fused operator of the other side.
    pub is_inner: bool,
}

/// An execution without a partner.
#[derive(Clone, Debug, PartialEq)]
pub struct UnmatchedExecution {
    /// The side.
    pub party: Party,
    /// Which of the side's runs.
    pub run: usize,
    /// Why.
    pub reason: UnmatchedReason,
}

/// Why an execution has no partner.
#[derive(Clone, Debug, PartialEq)]
pub enum UnmatchedReason {
    /// No operator of the other side has its name, or is similar enough.
    NoSuchName,
    /// The other side has no such step or rank.
    NoSuchPlace,
    /// The other side ran it less often.
    NoSuchRepeat,
    /// The operator with its name on the other side has another type, the one given.
    OtherType(String),
    /// Two operators of the other side, the ones given, are about equally similar to it.
    Ambiguous(String, String),
    /// It is part of a fused operator, whose inner values the other side does not have.
    InsideFusion(String),
    /// It is a collective without a counterpart of the same name.
    Collective,
    /// The user's mapping or selection excludes it.
    LeftOut,
}
