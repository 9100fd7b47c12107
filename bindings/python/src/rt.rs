//! `opscope.acl.rt`: the runtime.

mod device;
mod event;
mod exception;
mod memory;
mod report;

use crate::Fill;

pub(crate) const FILLS: &[Fill] = &[
    device::fill,
    memory::fill,
    event::fill,
    report::fill,
    exception::fill,
];
