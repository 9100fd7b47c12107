//! Several processes that dump: killed in the middle, and at the same time into the same directory.
//!
//! A process is this test binary again, told by a variable what to write.

mod killed;
mod together;
mod work;
