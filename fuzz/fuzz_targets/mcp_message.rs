//! Any line is a message, or has an error that a client can read.

#![no_main]

use libfuzzer_sys::fuzz_target;
use opscope_cli::parse_mcp_message;

fuzz_target!(|line: &[u8]| {
    if let Err(error) = parse_mcp_message(line) {
        assert!(!error.cause.is_empty() && !error.expected.is_empty());
    }
});
