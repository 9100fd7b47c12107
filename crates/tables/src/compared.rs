//! The comparison table: one part per pair of dumps.

use std::io::BufWriter;
use std::path::{Path, PathBuf};

use opscope_store::StoreError;
use opscope_store::atomic_file::PermissionModes;
use opscope_tensor::digest::{hex, xxh3_128};

use super::{EXTENSION, SOURCES_KEY, TablesReport, fingerprint_in};
use opscope_analysis::compare::report::{ComparedRuns, write_parquet};
use opscope_analysis::compare::result::Comparison;

/// The name of the table.
pub const COMPARE_TABLE: &str = "compare";

/// The part of a comparison in an index.
pub struct ComparePart<'a> {
    out: &'a Path,
    runs: ComparedRuns<'a>,
    sources: String,
}

impl<'a> ComparePart<'a> {
    /// The part of two dumps whose tables were just written, the target first.
    pub fn new(
        out: &'a Path,
        runs: ComparedRuns<'a>,
        reports: [&TablesReport; 2],
    ) -> ComparePart<'a> {
        let [target, golden] = reports.map(|report| report.sources.as_str());
        let ComparedRuns {
            target: run,
            golden: golden_run,
        } = runs;
        // Comparison rules depend on the version.
        let version = env!("CARGO_PKG_VERSION");
        let text = format!("{version} {run} {golden_run} {target} {golden}");
        ComparePart {
            out,
            runs,
            sources: hex(&xxh3_128(text.as_bytes())),
        }
    }

    /// The file of the part.
    pub fn file(&self) -> PathBuf {
        let dir = self.out.join(COMPARE_TABLE).join(self.runs.target);
        dir.join(format!("{}.{EXTENSION}", self.runs.golden))
    }

    /// Whether the part exists and matches the source files.
    pub fn is_current(&self) -> bool {
        fingerprint_in(&self.file()).is_some_and(|sources| sources == self.sources)
    }

    /// Writes the part atomically.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be written.
    pub fn write(&self, comparison: &Comparison, modes: PermissionModes) -> Result<(), StoreError> {
        let metadata = vec![(SOURCES_KEY.to_owned(), self.sources.clone())];
        let creator = super::creator(self.out, modes);
        creator.replace_with(&self.file(), |file| {
            write_parquet(comparison, self.runs, metadata, &mut BufWriter::new(file))
        })
    }
}

/// Whether an index has comparisons of the dump `target`, or any comparisons.
pub fn has_comparisons(index: &Path, target: Option<&str>) -> bool {
    let dir = index.join(COMPARE_TABLE);
    match target {
        Some(target) => super::has_part(&dir.join(target)),
        None => std::fs::read_dir(dir).is_ok_and(|entries| {
            let mut dirs = entries.flatten();
            dirs.any(|entry| super::has_part(&entry.path()))
        }),
    }
}
