//! Any text is a table, damaged or not, or refused; an accepted table round-trips.

#![no_main]

use libfuzzer_sys::fuzz_target;
use opscope_store::file_format::statistic_csv;

fuzz_target!(|text: &str| {
    let Ok(table) = statistic_csv::parse(text) else {
        return;
    };
    for (subject, values) in &table.rows {
        assert_eq!(values.len(), table.columns.len());
        let text = statistic_csv::header(&[]) + &statistic_csv::row(subject, &[]);
        let again = statistic_csv::parse(&text).expect("what is written has a header");
        assert_eq!(again.rows.len(), 1);
    }
});
