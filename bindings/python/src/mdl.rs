//! `opscope.acl.mdl`: models.

mod aipp;
mod config;
mod dataset;
mod describe;
mod dump;
mod exec_config;
mod execute;
mod load;

use crate::Fill;

pub(crate) const FILLS: &[Fill] = &[
    load::fill,
    config::fill,
    describe::fill,
    dataset::fill,
    execute::fill,
    exec_config::fill,
    dump::fill,
    aipp::fill,
];
