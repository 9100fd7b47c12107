//! `opscope`: dumps, converts and shows what every operator of a neural network reads and writes.

use std::process::ExitCode;

fn main() -> ExitCode {
    opscope_cli::run(std::env::args_os().collect()).into()
}
