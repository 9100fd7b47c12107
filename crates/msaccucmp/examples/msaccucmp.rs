//! The drop-in without the rest of the command line:
//! `msaccucmp msaccucmp convert -d FILE -out DIR`.

use std::ffi::OsString;

fn main() {
    let args: Vec<OsString> = std::env::args_os().skip(2).collect();
    std::process::exit(opscope_msaccucmp::run(&args));
}
