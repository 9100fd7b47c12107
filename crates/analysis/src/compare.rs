//! Comparing two dumps: where do they part, and whose fault is it?
//!
//! | module | job |
//! | --- | --- |
//! | [`side`] | a dump as operators with slots |
//! | [`matching`] | which operator and slot of one side is which of the other |
//! | [`result`] | everything a comparison found, to be saved and read again |

pub mod matching;
pub mod result;
pub mod side;
