//! The parts of a dump.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use opscope_store::dump::{DumpListing, PassedOver};
use opscope_store::reader::{NativeStep, native_steps};
use opscope_store::slot_table::VERSION;
use opscope_store::tree::acl::clean_name;
use opscope_store::{StoreError, remote};
use opscope_tensor::digest::{hex, xxh3_128};

use super::rows::{self, PartRows};
use opscope_analysis::compare::side::{ComparedDump, RunPlace};
use opscope_analysis::error_chain::chain;

/// Maximum bytes of a part's name. Names that are longer, or lose characters, get a digest as
/// suffix.
const NAME_BYTES_MAX: usize = 150;

/// A dump with its parts.
pub(super) struct DumpParts {
    root: PathBuf,
    label: String,
    /// `None` for the native form, whose tables are read directly.
    side: Option<ComparedDump>,
    pub(super) parts: Vec<TablePart>,
    names: HashSet<String>,
    /// Problems found before any part was read.
    pub(super) problems: Vec<String>,
    pub(super) passed_over: Vec<PassedOver>,
}

/// One step of a model on a rank.
pub(super) struct TablePart {
    pub(super) name: String,
    source: PartSource,
}

/// Digests of a part's source files, with and without computed statistics.
pub(super) struct Fingerprints {
    pub(super) with_stats: String,
    pub(super) without: String,
}

impl Fingerprints {
    pub(super) fn with(&self, has_stats: bool) -> &str {
        if has_stats {
            &self.with_stats
        } else {
            &self.without
        }
    }
}

enum PartSource {
    /// A step of the native form, with the name of its run.
    Native(Box<NativeStep>, String),
    /// Executions of another form, in order.
    Runs(Vec<usize>),
}

impl DumpParts {
    pub(super) fn of_native(root: &Path, label: &str, listing: &DumpListing) -> DumpParts {
        let steps = native_steps(listing);
        let run_dirs: BTreeSet<PathBuf> = steps.iter().map(|step| step.run_dir.clone()).collect();
        let parts = steps.into_iter().map(|step| {
            let time = step.run_dir.file_name().unwrap_or_default();
            let time = time.to_string_lossy();
            let run = match run_dirs.len() {
                1 => label.to_owned(),
                _ => format!("{label}/{time}"),
            };
            // The run, the rank, the model and the file.
            let names = step.path.iter().rev().take(4);
            let mut names: Vec<_> = names
                .map(|name| name.to_string_lossy().into_owned())
                .collect();
            names.reverse();
            if let Some(last) = names.last_mut() {
                let stem = last.rsplit_once('.').map(|(stem, _)| stem.to_owned());
                *last = stem.unwrap_or_default();
            }
            TablePart {
                name: part_name(&names),
                source: PartSource::Native(Box::new(step), run),
            }
        });
        let parts: Vec<TablePart> = parts.collect();
        DumpParts {
            root: root.to_owned(),
            label: label.to_owned(),
            side: None,
            names: parts.iter().map(|part| part.name.clone()).collect(),
            parts,
            problems: listing.errors.iter().map(|error| chain(error)).collect(),
            passed_over: listing.passed_over.clone(),
        }
    }

    /// # Errors
    /// [`StoreError`] if there is nothing at `root`.
    pub(super) fn of_other(
        root: &Path,
        label: &str,
        n_threads: usize,
    ) -> Result<DumpParts, StoreError> {
        let mut side = ComparedDump::open(root, n_threads)?;
        let mut places: BTreeMap<RunPlace, Vec<usize>> = BTreeMap::new();
        // Sorted by place, because models may alternate.
        for (index, run) in side.runs.iter().enumerate() {
            places
                .entry(RunPlace::clone(&run.place))
                .or_default()
                .push(index);
        }
        let parts = places.into_iter().map(|(place, runs)| TablePart {
            name: name_of_place(&place),
            source: PartSource::Runs(runs),
        });
        let parts: Vec<TablePart> = parts.collect();
        Ok(DumpParts {
            root: root.to_owned(),
            label: label.to_owned(),
            names: parts.iter().map(|part| part.name.clone()).collect(),
            parts,
            problems: std::mem::take(&mut side.problems),
            passed_over: std::mem::take(&mut side.passed_over),
            side: Some(side),
        })
    }

    /// Problems with single tensors, which the rows also report; empty for the native form.
    pub(super) fn slot_problems(&self) -> Vec<String> {
        let runs = self.side.iter().flat_map(|side| &side.runs);
        let slots = runs.flat_map(|run| &run.slots);
        slots.filter_map(|slot| slot.problem.clone()).collect()
    }

    /// The name of the dump in the column `run`.
    pub(super) fn label(&self) -> &str {
        &self.label
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// The rows of a part.
    ///
    /// # Errors
    /// [`StoreError`] if its file cannot be read.
    pub(super) fn rows(&self, part: &TablePart) -> Result<PartRows<'_>, StoreError> {
        match (&part.source, &self.side) {
            (PartSource::Native(step, run), _) => rows::of_native(step, run),
            (PartSource::Runs(runs), Some(side)) => {
                Ok(rows::of_runs(side, runs, &self.root, &self.label))
            }
            (PartSource::Runs(_), None) => Ok(PartRows::default()),
        }
    }

    /// Digests of the names, sizes and times of a part's source files. A file that cannot be
    /// inspected has no size.
    pub(super) fn fingerprints(&self, part: &TablePart) -> Fingerprints {
        let mut text = String::new();
        for path in self.sources(part) {
            // A moved dump counts as unchanged.
            let below = path.strip_prefix(&self.root).unwrap_or(path);
            text += &format!("{}", below.display());
            if let Ok(metadata) = remote::metadata(path) {
                let modified = metadata.modified().ok();
                let since =
                    modified.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
                text += &format!(
                    " {} {:?}",
                    metadata.len(),
                    since.map(|since| since.as_nanos())
                );
            }
            text.push('\n');
        }
        let [with_stats, without] = [true, false].map(|has_stats| {
            let version = env!("CARGO_PKG_VERSION");
            let head = format!("{VERSION} {version} {has_stats} {}\n", self.label);
            hex(&xxh3_128((head + &text).as_bytes()))
        });
        Fingerprints {
            with_stats,
            without,
        }
    }

    /// Bytes of a part's source files.
    pub(super) fn n_bytes(&self, part: &TablePart) -> u64 {
        let sources = self.sources(part).into_iter();
        let sizes = sources.filter_map(|path| Some(remote::metadata(path).ok()?.len()));
        sizes.sum()
    }

    /// One digest for all parts.
    pub(super) fn common_fingerprint(&self) -> String {
        let parts = self.parts.iter();
        let texts: Vec<String> = parts.map(|part| self.fingerprints(part).without).collect();
        hex(&xxh3_128(texts.join("\n").as_bytes()))
    }

    fn sources<'a>(&'a self, part: &'a TablePart) -> BTreeSet<&'a Path> {
        match (&part.source, &self.side) {
            // Elements never change, and the rows name them.
            (PartSource::Native(step, _), _) => [step.path.as_path()].into(),
            (PartSource::Runs(runs), Some(side)) => {
                let slots = runs.iter().flat_map(|&run| &side.runs[run].slots);
                let files = slots.map(|slot| slot.path.as_path());
                // Graphs have the names of values and modules.
                let graphs = runs.iter().filter_map(|&run| side.description_of(run));
                files.chain(graphs.map(|(path, _, _)| path)).collect()
            }
            (PartSource::Runs(_), None) => BTreeSet::new(),
        }
    }
}

fn name_of_place(place: &RunPlace) -> String {
    let numbers = [("rank", place.rank.map(Into::into)), ("step", place.step)];
    let [rank, step] = numbers.map(|(name, number)| match number {
        Some(number) => format!("{name}-{number}"),
        None => format!("no-{name}"),
    });
    let model = place.model.clone().unwrap_or_default();
    part_name(&[
        rank,
        format!("{model}-{}", place.model_id.unwrap_or(0)),
        step,
    ])
}

/// The unique name of a part.
fn part_name(names: &[String]) -> String {
    let cleaned: Vec<String> = names.iter().map(|name| clean_name(name)).collect();
    let name = cleaned.join(".");
    if cleaned == names && name.len() <= NAME_BYTES_MAX {
        return name;
    }
    // File systems allow 255 bytes.
    let end = name.floor_char_boundary(NAME_BYTES_MAX);
    let digest = hex(&xxh3_128(names.join("/").as_bytes()));
    format!("{}.{}", &name[..end], &digest[..16])
}

#[cfg(test)]
mod tests {
    use super::part_name;

    #[test]
    fn parts_have_names_of_their_own() {
        let name = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            part_name(&names)
        };
        assert_eq!(name(&["rank-0", "net-1", "step-7"]), "rank-0.net-1.step-7");
        // A digest distinguishes names that lose characters or that split differently.
        let odd = [
            name(&["a/b", "c"]),
            name(&["a_b", "c"]),
            name(&["a", "b_c"]),
            name(&["a.b", "c"]),
        ];
        let distinct: std::collections::HashSet<_> = odd.iter().collect();
        assert_eq!(distinct.len(), odd.len());
        let long = "é".repeat(300);
        assert!(name(&[&long, "step-1"]).len() < 200);
        assert_ne!(name(&[&long, "step-1"]), name(&[&long, "step-2"]));
    }
}
