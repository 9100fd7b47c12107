//! `opscope.acl.op`: single operators.

mod attribute;
mod execute;
mod model_dir;

use crate::Fill;

pub(crate) const FILLS: &[Fill] = &[attribute::fill, execute::fill, model_dir::fill];
