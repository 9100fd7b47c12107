//! The order in which operators ran, whatever the order in which their records are written.

/// The place of a record in the order of execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RecordOrder {
    /// How many operators the session had seen before that of the record.
    pub(crate) operator: u64,
    /// Position among the records that belong to that operator.
    pub(crate) nth: u32,
}

impl RecordOrder {
    /// After every record.
    pub(crate) const LAST: RecordOrder = RecordOrder {
        operator: u64::MAX,
        nth: u32::MAX,
    };
}
