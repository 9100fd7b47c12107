//! Runs that fail or stop, and several of them.

use opscope_capture::{FailureDetail, ModelSelection, Operators, Purpose};
use opscope_store::record::Side;

use super::build::*;
use super::*;
