//! Any text is read or refused, and every row has a cell for each column.

#![no_main]

use libfuzzer_sys::fuzz_target;
use opscope_store::file_format::stats_csv;

fuzz_target!(|text: &str| {
    if let Ok(table) = stats_csv::parse(text) {
        assert!(
            table
                .rows
                .iter()
                .all(|row| row.len() == table.columns.len())
        );
    }
});
