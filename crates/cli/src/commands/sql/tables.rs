//! The tables that a query reads.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use opscope_analysis::compare::report::ComparedRuns;
use opscope_analysis::run_names;
use opscope_store::atomic_file::Creator;
use opscope_store::tree::own;
use opscope_tables::{
    ComparePart, TablesOptions, TablesReport, TablesShare, labels_in, write_tables,
};

use super::SqlArguments;
use crate::commands::index;
use crate::console::report;
use crate::exit::{CommandFailure, CommandResult, UNREADABLE, USAGE};

/// One dump's tables in an index.
#[derive(Clone, Debug)]
pub(super) struct TableSource {
    /// The directory of the index.
    pub(super) index: PathBuf,
    /// The dump's directory in each table, which is its name in rows.
    pub(super) label: String,
    /// The dump's name in answers, if different, because several dumps may share a name.
    pub(super) run: Option<String>,
}

/// Existing, up-to-date tables.
pub(super) struct PreparedTables {
    pub(super) sources: Vec<TableSource>,
    /// The requested comparison.
    pub(super) compared: Option<PathBuf>,
    /// Files that could not be read.
    pub(super) n_errors: usize,
}

impl PreparedTables {
    /// Creates or updates the tables; those of read-only dumps go below `place`.
    pub(super) fn new(
        arguments: &SqlArguments,
        n_threads: usize,
        place: &Path,
    ) -> CommandResult<PreparedTables> {
        let mut tables = PreparedTables {
            sources: Vec::new(),
            compared: None,
            n_errors: 0,
        };
        let options = TablesOptions {
            n_threads,
            has_stats: arguments.stats,
            modes: arguments.modes.modes(),
            share: TablesShare::All,
        };
        let labels = run_names(&arguments.dumps);
        let mut reports = Vec::new();
        for (dump, label) in arguments.dumps.iter().zip(&labels) {
            let known = labels_in(dump);
            if known.is_empty() {
                reports.push(tables.add_dump(dump, label, place, &options)?);
                continue;
            }
            if arguments.compare {
                let message = format!("`{}` has tables but no tensors to compare", dump.display());
                return Err(CommandFailure::message(USAGE, message));
            }
            let sources = known.into_iter().map(|label| TableSource {
                index: dump.clone(),
                label,
                run: None,
            });
            tables.sources.extend(sources);
        }
        if let ([target, golden], true) = (&reports[..], arguments.compare) {
            // Stored next to the target's tables, under both dumps' names in the answer.
            let runs = ComparedRuns {
                target: &labels[0],
                golden: &labels[1],
            };
            let part = ComparePart::new(&tables.sources[0].index, runs, [target, golden]);
            let dumps = [0, 1].map(|i| arguments.dumps[i].as_path());
            index::write_comparison(&part, dumps, &options)?;
            tables.compared = Some(part.file());
        }
        tables.rename_namesakes();
        Ok(tables)
    }

    /// Creates or completes the tables of a dump.
    fn add_dump(
        &mut self,
        dump: &Path,
        label: &str,
        place: &Path,
        options: &TablesOptions,
    ) -> CommandResult<TablesReport> {
        // In its own tables a dump keeps its name, whatever other dumps are queried with it.
        let own_label = run_names(&[dump]).remove(0);
        let index = own_index(dump, options)
            .unwrap_or_else(|| place.join(format!("tables-{}", self.sources.len())));
        let report = write_tables(dump, &own_label, &index, options)?;
        if report.n_parts() == 0 && report.errors.is_empty() {
            return Err(CommandFailure::nothing_at(dump, &report.passed_over));
        }
        for error in &report.errors {
            report!("opscope: {error}");
        }
        self.n_errors += report.errors.len();
        if report.n_parts() == 0 {
            return Err(CommandFailure::silent(UNREADABLE));
        }
        let run = (label != own_label).then(|| label.to_owned());
        self.sources.push(TableSource {
            index,
            label: own_label,
            run,
        });
        Ok(report)
    }

    /// Renames runs that share a name.
    fn rename_namesakes(&mut self) {
        let mut taken = HashSet::new();
        for source in &mut self.sources {
            let name = source.run.clone().unwrap_or_else(|| source.label.clone());
            let mut free = name.clone();
            let mut n = 1;
            while !taken.insert(free.clone()) {
                n += 1;
                free = format!("{name}-{n}");
            }
            if free != source.label {
                source.run = Some(free);
            }
        }
    }
}

/// The place of tables in a dump; `None` if it is not writable.
fn own_index(dump: &Path, options: &TablesOptions) -> Option<PathBuf> {
    if !dump.is_dir() {
        return None;
    }
    let index = own::index_dir(dump);
    let creator = Creator::in_dump(dump, options.modes);
    creator.create_dir(&index).ok()?;
    // Creating a file proves that the directory is writable; permissions alone do not.
    let probe = tempfile::tempfile_in(&index);
    probe.is_ok().then_some(index)
}
