//! Counting elements that overflowed.

use opscope_store::file_format::op_debug::StatusCause;

use super::OutputOverflow;

/// The number of elements, and the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    n_elements: u64,
    first_element: Option<usize>,
}

impl Tally {
    /// Counts the element at `index`. Elements may come in any order.
    pub(super) fn note(&mut self, index: usize) {
        self.n_elements += 1;
        self.first_element = Some(self.first_element.map_or(index, |first| first.min(index)));
    }

    /// The place, if any element was counted.
    pub(super) fn place(self, cause: StatusCause, output: usize) -> Option<OutputOverflow> {
        self.first_element.map(|first_element| OutputOverflow {
            cause,
            output,
            n_elements: self.n_elements,
            first_element,
        })
    }
}

impl FromIterator<usize> for Tally {
    fn from_iter<I: IntoIterator<Item = usize>>(indices: I) -> Tally {
        let mut tally = Tally::default();
        indices.into_iter().for_each(|index| tally.note(index));
        tally
    }
}
