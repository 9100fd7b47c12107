//! All operators.

use std::collections::HashMap;
use std::sync::OnceLock;

pub use super::families::FAMILIES;
use super::row::OperatorRow;

/// The operator with this stage-two function.
pub(crate) fn find(function: &str) -> Option<&'static OperatorRow> {
    static BY_NAME: OnceLock<HashMap<&'static str, &'static OperatorRow>> = OnceLock::new();
    // Built once: a program may call thousands of operators a second.
    let by_name = BY_NAME.get_or_init(|| {
        let rows = FAMILIES.iter().flat_map(|family| family.rows);
        rows.map(|row| (row.function, row)).collect()
    });
    by_name.get(function).copied()
}
