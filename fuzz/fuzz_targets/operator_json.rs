//! Any text is a list of operators or refused with a place; an accepted list becomes a model or is
//! refused.

#![no_main]

use std::collections::HashSet;

use libfuzzer_sys::fuzz_target;
use opscope_engine::single_operator::{OperatorError, read_json};

fuzz_target!(|text: &str| {
    match read_json(text) {
        Ok(operators) => {
            let names: HashSet<&str> = operators
                .iter()
                .map(|operator| operator.op_name.as_str())
                .collect();
            assert!(!names.contains(""));
            for operator in &operators {
                if let Ok(prepared) = operator.for_engine() {
                    assert!(!prepared.bytes().is_empty());
                }
            }
        }
        Err(OperatorError::Value { pointer, reason }) => {
            assert!(pointer.starts_with('/') && !reason.is_empty());
        }
        Err(OperatorError::Syntax { line, .. }) => assert!(line > 0 || text.is_empty()),
        Err(other) => panic!("{other}"),
    }
});
