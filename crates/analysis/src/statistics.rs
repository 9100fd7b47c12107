//! Statistics files of AscendCL data dump, read for showing.

use std::path::Path;

use opscope_store::StoreError;
use opscope_store::dump::{Listing, of_step_tables};
use opscope_store::file_format::stats_csv::{self, Table};
use opscope_store::tree::acl::DumpFileName;

/// The statistics of one execution of one operator.
#[derive(Clone, Debug)]
pub struct OperatorStatistics {
    /// The execution of the model: the number that the file's directory is called.
    pub step: Option<u64>,
    /// What the file's name says.
    pub name: DumpFileName,
    /// The rows.
    pub table: Table,
}

/// Reads the statistics files of a listing, in its order, and notes those that cannot be read.
pub fn of_listing(listing: &mut Listing) -> (Vec<OperatorStatistics>, Vec<StoreError>) {
    let (mut tables, mut errors) = (Vec::new(), Vec::new());
    for entry in &listing.tables {
        let table = match stats_csv::read_file(&entry.path) {
            Ok(table) => table,
            Err(error) => {
                errors.push(error);
                continue;
            }
        };
        if let (Some(table), Some(name)) = (table, entry.name.clone()) {
            let step = step(&entry.path);
            tables.push(OperatorStatistics { step, name, table });
        }
    }
    let n_errors = listing.errors.len();
    for (entry, table) in of_step_tables(listing) {
        let step = step(&entry.path);
        tables.extend(
            entry
                .name
                .map(|name| OperatorStatistics { step, name, table }),
        );
    }
    errors.extend(listing.errors.drain(n_errors..));
    (tables, errors)
}

fn step(path: &Path) -> Option<u64> {
    path.parent()?.file_name()?.to_str()?.parse().ok()
}
