//! Names for operators and values.

use std::collections::HashMap;
use std::sync::Arc;

/// Counts what was named so far.
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

    /// A further number, for an operator that has a name.
    pub(super) fn number(&mut self) -> u32 {
        let task_id = self.n_operators;
        self.n_operators = self.n_operators.saturating_add(1);
        task_id
    }

    /// A value that no operator of the step has given.
    pub(super) fn argument(&mut self) -> Arc<str> {
        let n = self.n_arguments;
        self.n_arguments += 1;
        format!("arg_{n}").into()
    }

    /// A value in memory that was written to since it was called `of`, by way of another tensor.
    pub(super) fn alias(&mut self, of: &str) -> Arc<str> {
        self.n_aliases += 1;
        format!("{of}@{}", self.n_aliases).into()
    }
}
