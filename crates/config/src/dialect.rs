//! One module for each configuration dialect.

pub mod acl;
