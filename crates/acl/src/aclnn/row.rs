//! Rows of the table of operators.

use super::call::{Composed, OperatorCall};
use super::parameter::Parameter;

/// An operator.
pub struct OperatorRow {
    /// The function of stage two, such as `aclnnAdd`; that of stage one ends in
    /// `GetWorkspaceSize`.
    pub function: &'static str,
    /// The type under which it is dumped.
    pub op_type: &'static str,
    /// The header that declares it, below `aclnnop`.
    pub header: &'static str,
    /// Its result, in a formula or a few words.
    pub meaning: &'static str,
    /// Its parameters, in C's order, without those of every operator.
    pub parameters: &'static [Parameter],
    pub(crate) compose: fn(&mut OperatorCall<'_>) -> Composed,
}

/// Operators that belong together.
pub struct OperatorFamily {
    /// A few words for the section that lists them.
    pub name: &'static str,
    /// The operators.
    pub rows: &'static [OperatorRow],
}

/// Makes rows of a family's table. A row is the function of stage two, the type under which it is
/// dumped, its header and its meaning, the function here that composes it, and its parameters.
macro_rules! operator_rows {
    ($family:literal; $(
        $function:ident = $op_type:ident($header:literal, $meaning:literal) by $compose:ident
            ($($parameter:ident: $kind:ident),* $(,)?);
    )+) => {
        pub(in crate::aclnn) const FAMILY: $crate::aclnn::row::OperatorFamily =
            $crate::aclnn::row::OperatorFamily {
                name: $family,
                rows: &[$($crate::aclnn::row::OperatorRow {
                    function: stringify!($function),
                    op_type: stringify!($op_type),
                    header: $header,
                    meaning: $meaning,
                    parameters: &[$($crate::aclnn::parameter::Parameter {
                        written: stringify!($parameter),
                        kind: $crate::aclnn::parameter::ParameterKind::$kind,
                    }),*],
                    compose: $compose,
                }),+],
            };
    };
}
pub(super) use operator_rows;
