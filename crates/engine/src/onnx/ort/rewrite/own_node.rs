//! Nodes of our own: their domain, their types and their names.

use crate::onnx::schema::NodeProto;

/// The domain of the operators that are put into models.
pub(crate) const DOMAIN: &str = "opscope";
/// The operator that shows what it reads.
pub(crate) const TAP: &str = "Tap";
/// The same with values in a device's memory.
pub(crate) const DEVICE_TAP: &str = "DeviceTap";
/// The operator that produces a number that it has not produced before.
pub(crate) const START: &str = "Start";
/// The operator that counts its runs from 0, restarting for each number that it reads.
pub(crate) const TICK: &str = "Tick";
/// The attribute of a tap: the number of its site.
pub(crate) const SITE: &str = "site";
/// How names begin that are put into models.
pub(super) const PREFIX: &str = "opscope:";
/// Version of our domain.
pub(super) const VERSION: i64 = 1;

/// A node of our domain.
pub(super) fn own_node(
    op_type: &str,
    name: &str,
    input: Vec<String>,
    output: Vec<String>,
) -> NodeProto {
    NodeProto {
        input,
        output,
        name: name.to_owned(),
        op_type: op_type.to_owned(),
        domain: DOMAIN.to_owned(),
        ..NodeProto::default()
    }
}
