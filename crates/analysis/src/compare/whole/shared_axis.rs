//! An axis of a tensor that ranks share.

/// An axis that ranks share.
#[derive(Clone, PartialEq)]
pub(super) struct SharedAxis {
    pub(super) axis: usize,
    /// Which part each rank has.
    pub(super) places: Vec<u64>,
    pub(super) n_parts: u64,
    /// Equally long sections of the axis, each of which ranks share by itself.
    pub(super) n_sections: usize,
}

impl SharedAxis {
    pub(super) fn new(axis: usize, places: Vec<u64>, n_parts: u64) -> SharedAxis {
        SharedAxis {
            axis,
            places,
            n_parts,
            n_sections: 1,
        }
    }
}
