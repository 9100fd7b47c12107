//! Statistics files of AscendCL data dump, read for showing.

use std::path::Path;

use opscope_store::StoreError;
use opscope_store::dump::{Entry, Listing, of_step_tables};
use opscope_store::file_format::stats_csv::{self, Table};
use opscope_store::tree::acl::DumpFileName;

/// The statistics of one execution of one operator.
#[derive(Clone, Debug)]
pub struct OperatorStatistics {
    /// The execution of the model: the number that the file's directory is called.
    pub step: Option<u64>,
    /// The parts of the file's name; none if it follows no pattern.
    pub name: Option<DumpFileName>,
    /// The file's name.
    pub file_name: String,
    /// The rows.
    pub table: Table,
}

/// Reads the statistics files of a listing, in its order, and notes those that cannot be read.
pub fn of_listing(listing: &mut Listing) -> (Vec<OperatorStatistics>, Vec<StoreError>) {
    let (mut tables, mut errors) = (Vec::new(), Vec::new());
    let take = |entry: &Entry, table: Table| OperatorStatistics {
        step: step(&entry.path),
        name: entry.name.clone(),
        file_name: entry.real_name.clone(),
        table,
    };
    for entry in &listing.tables {
        match stats_csv::read_file(&entry.path) {
            Ok(table) => tables.push(take(entry, table)),
            Err(error) => errors.push(error),
        }
    }
    // Names that do not follow the pattern, and those that are lost, leave it to the content.
    listing.entries.retain(|entry| {
        if entry.name.is_some() || !stats_csv::may_be_table(&entry.real_name) {
            return true;
        }
        match stats_csv::read_if_table(&entry.path) {
            Ok(Some(table)) => tables.push(take(entry, table)),
            Ok(None) => return true,
            Err(error) => errors.push(error),
        }
        false
    });
    let n_errors = listing.errors.len();
    for (entry, table) in of_step_tables(listing) {
        tables.push(take(&entry, table));
    }
    errors.extend(listing.errors.drain(n_errors..));
    (tables, errors)
}

fn step(path: &Path) -> Option<u64> {
    path.parent()?.file_name()?.to_str()?.parse().ok()
}
