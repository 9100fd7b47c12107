//! Names for operators and values.

use std::collections::HashMap;
use std::sync::Arc;

/// Counts of names so far.
#[derive(Default)]
pub(super) struct NameCounter {
    n_operators: u32,
    n_of_base: HashMap<String, u64>,
    n_arguments: u64,
    n_aliases: u64,
}

impl NameCounter {
    /// Number and name of the next operator: `add`, `add_1`, `add_2`.
    pub(super) fn operator(&mut self, base: &str) -> (u32, Arc<str>) {
        let task_id = self.number();
        if let Some(n) = self.n_of_base.get_mut(base) {
            *n += 1;
            return (task_id, format!("{base}_{n}").into());
        }
        self.n_of_base.insert(base.to_owned(), 0);
        (task_id, base.into())
    }

    /// A number without a name, for an operator that has one.
    pub(super) fn number(&mut self) -> u32 {
        let task_id = self.n_operators;
        self.n_operators = self.n_operators.saturating_add(1);
        task_id
    }

    /// A value without a producer in the step.
    pub(super) fn argument(&mut self) -> Arc<str> {
        let n = self.n_arguments;
        self.n_arguments += 1;
        format!("arg_{n}").into()
    }

    /// A value whose memory was written through another tensor since it was called `of`.
    pub(super) fn alias(&mut self, of: &str) -> Arc<str> {
        self.n_aliases += 1;
        format!("{of}@{}", self.n_aliases).into()
    }
}
