//! Rows of the table of operators.

use super::call::{Composed, OperatorCall};
use super::parameter::Parameter;

/// An operator.
pub struct OperatorRow {
    /// The stage-two function, such as `aclnnAdd`; that of stage one ends in `GetWorkspaceSize`.
    pub function: &'static str,
    /// Its type in dumps.
    pub op_type: &'static str,
    /// Its header, below `aclnnop`.
    pub header: &'static str,
    /// Its result, as a formula or in a few words.
    pub meaning: &'static str,
    /// Its parameters, in C's order, without the common ones.
    pub parameters: &'static [Parameter],
    pub(crate) compose: fn(&OperatorCall<'_>) -> Composed,
}

/// A group of related operators.
pub struct OperatorFamily {
    /// Its title in the documentation.
    pub name: &'static str,
    /// The operators.
    pub rows: &'static [OperatorRow],
}

/// Defines the rows of a family's table. An entry is the type in dumps, the header and the meaning,
/// the function that composes it, with arguments after the call, and the stage-two functions with
/// their parameters: a row each.
macro_rules! operator_rows {
    ($family:literal; $(
        $op_type:ident($header:literal, $meaning:literal) by $compose:ident $arguments:tt:
            $($function:ident($($parameter:ident: $kind:ident),*)),+;
    )+) => {
        pub(crate) const FAMILY: $crate::aclnn::row::OperatorFamily =
            $crate::aclnn::row::OperatorFamily {
                name: $family,
                rows: &[$($($crate::aclnn::row::OperatorRow {
                    function: stringify!($function),
                    op_type: stringify!($op_type),
                    header: $header,
                    meaning: $meaning,
                    parameters: &[$($crate::aclnn::parameter::Parameter {
                        written: stringify!($parameter),
                        kind: $crate::aclnn::parameter::ParameterKind::$kind,
                    }),*],
                    compose: $crate::aclnn::row::composer!($compose $arguments),
                }),+),+],
            };
    };
}
pub(super) use operator_rows;

/// The function that composes an operator, with its arguments bound.
macro_rules! composer {
    ($compose:ident ($($argument:expr),*)) => {
        |call| $compose(call $(, $argument)*)
    };
}
pub(super) use composer;
