//! Which operator and slot of one side is which of the other.

mod by_name;

use opscope_store::record::Side as SlotSide;
use opscope_tensor::Layout;

use super::side::Side;

/// How partners are looked for.
#[derive(Clone, Debug, Default)]
pub struct Options {}

impl Matching {
    /// Finds what belongs together.
    pub fn of(target: &Side, golden: &Side, _options: &Options) -> Matching {
        by_name::matching(target, golden)
    }
}

/// What belongs together, and what is left over.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matching {
    /// In the order in which the target ran.
    pub pairs: Vec<RunPair>,
    /// Executions without a partner, those of the target first.
    pub unmatched: Vec<Unmatched>,
}

/// Executions that belong together: one of each side, or several of one where operators were fused.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunPair {
    /// Executions of the target, as indices into its runs, in order.
    pub target: Vec<usize>,
    /// Executions of the golden side.
    pub golden: Vec<usize>,
    /// What brought them together.
    pub how: How,
    /// Slots that are compared.
    pub slots: Vec<SlotPair>,
    /// Slots without a partner.
    pub missing: Vec<MissingSlot>,
}

/// What brought executions together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum How {
    /// The same name, place and number.
    #[default]
    Name,
    /// The same type at the same place in the order of execution.
    Order,
    /// The operators that one was fused from.
    Fusion,
    /// A mapping that the user gave.
    Mapping,
    /// A likeness of names, types, shapes and neighbours, from 0 to 1.
    Fuzzy(f64),
}

/// Two slots that are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlotPair {
    /// The target's.
    pub target: SlotRef,
    /// The golden side's.
    pub golden: SlotRef,
    /// The layout that both are brought to before they are compared; none if they are compared as they are.
    pub layout: Option<Layout>,
}

/// A slot of a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotRef {
    /// Which of the side's runs.
    pub run: usize,
    /// Which of its slots.
    pub slot: usize,
}

/// A slot without a partner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MissingSlot {
    /// Whether the target has it, and the golden side does not.
    pub is_of_target: bool,
    /// Input or output.
    pub side: SlotSide,
    /// Which one.
    pub index: u32,
}

/// An execution without a partner.
#[derive(Clone, Debug, PartialEq)]
pub struct Unmatched {
    /// Whether it is the target's.
    pub is_of_target: bool,
    /// Which of the side's runs.
    pub run: usize,
    /// Why.
    pub reason: Reason,
}

/// Why an execution has no partner.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// Nothing of the other side has its name.
    NoSuchName,
    /// The other side has no such step or rank.
    NoSuchPlace,
    /// The other side has it less often.
    NoSuchRepeat,
    /// It vanished in a fused operator, whose inner values the other side does not have.
    InsideFusion(String),
    /// A mapping or choice of the user leaves it out.
    LeftOut,
}
