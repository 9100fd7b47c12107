//! Comparing two dumps: where do they part, and whose fault is it?
//!
//! | module | job |
//! | --- | --- |
//! | [`side`] | a dump as operators with slots |
//! | [`matching`] | which operator and slot of one side is which of the other |
//! | [`measure`] | the numbers of every pair of slots |
//! | [`verdict`] | what the numbers mean |
//! | [`replay`] | an operator that was run again from its inputs: its own error |
//! | [`attribution`] | first divergence, what each operator added, where NaN comes from |
//! | [`result`] | everything a comparison found, to be saved and read again |

pub mod attribution;
pub mod document;
mod flow;
pub mod matching;
pub mod measure;
mod metrics;
mod nearest;
pub mod replay;
pub mod result;
pub mod side;
mod skips;
mod statistics;
pub mod verdict;
