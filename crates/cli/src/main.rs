//! `opscope`: dumps, converts and shows the inputs and outputs of every operator of a neural
//! network.

use std::process::ExitCode;

fn main() -> ExitCode {
    opscope_cli::run(std::env::args_os().collect()).into()
}
