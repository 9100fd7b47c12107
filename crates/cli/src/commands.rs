//! One module for each command.

pub(crate) mod convert;
pub(crate) mod dump;
pub(crate) mod msaccucmp;
pub(crate) mod overflow;
pub(crate) mod show;
