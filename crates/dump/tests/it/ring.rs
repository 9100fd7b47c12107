//! A ring of steps over the AscendCL tree: what stays on disk, and why.

mod bounds;
mod foreign;
mod run;
mod triggers;
