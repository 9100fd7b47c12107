//! Joins the dumps of all ranks into one run with a sequence of executions per rank.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use opscope_store::StoreError;
use opscope_store::reader::DumpIndex;
use thiserror::Error;

use super::content::ContentMarks;
use super::meetings::Meetings;
use super::order::RankOrder;
use super::sequence::{RankPlace, RankSequence, rank, sequences};
use opscope_analysis::compare::side::ComparedDump;
use opscope_analysis::read_dump;

/// A run of several ranks.
#[derive(Debug)]
pub struct RankedRun {
    /// All executions of all ranks.
    pub dump: ComparedDump,
    /// The ranks, in ascending order.
    pub ranks: Vec<RankSequence>,
    /// For each execution of the dump, the index of its rank in [`RankedRun::ranks`] and its
    /// position in that sequence; `None` for values that are not executed, such as parameters.
    pub places: Vec<Option<RankPlace>>,
    /// The collectives.
    pub meetings: Meetings,
    /// The order of executions.
    pub order: RankOrder,
    /// The marks of its tensors; empty before [`RankedRun::read_marks`].
    pub marks: ContentMarks,
}

/// Why dumps do not form a single run.
#[derive(Debug, Error)]
pub enum RankedRunError {
    /// A path does not exist.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is nothing to read.
    #[error("`{}` holds no executions of operators", .0.display())]
    Empty(PathBuf),
    /// Two dumps have the same rank.
    #[error("rank {rank} is in both `{}` and `{}`: they are two runs", first.display(), second.display())]
    SameRank {
        /// The rank.
        rank: u32,
        /// The first dump that has it.
        first: PathBuf,
        /// The other dump.
        second: PathBuf,
    },
    /// A rank appears twice below one directory.
    #[error(
        "`{}` holds several runs: rank {rank} has `{op_name}` of step {step} more than once",
        path.display()
    )]
    SeveralRuns {
        /// The directory.
        path: PathBuf,
        /// The rank.
        rank: u32,
        /// The operator.
        op_name: String,
        /// The step.
        step: u64,
    },
}

impl RankedRun {
    /// Reads a run from a directory of all ranks, or from several dumps of some ranks each.
    ///
    /// Executions without a rank belong to rank 0.
    ///
    /// # Errors
    /// [`RankedRunError`] if there is no run, or more than one.
    pub fn open(paths: &[PathBuf], n_threads: usize) -> Result<RankedRun, RankedRunError> {
        let root = paths.first().map_or(Path::new("."), PathBuf::as_path);
        let dump = match paths {
            [path] => ComparedDump::open(path, n_threads)?,
            _ => ComparedDump::from_index(root, read_all(paths, n_threads)?),
        };
        check_single_run(&dump, root)?;
        if dump.runs.is_empty() && dump.problems.is_empty() {
            return Err(RankedRunError::Empty(root.to_owned()));
        }
        Ok(RankedRun::new(dump))
    }

    /// Builds the run of a dump's executions.
    pub fn new(dump: ComparedDump) -> RankedRun {
        let ranks = sequences(&dump);
        let mut places = vec![None; dump.runs.len()];
        for (nth_rank, sequence) in ranks.iter().enumerate() {
            for (position, &run) in sequence.runs.iter().enumerate() {
                places[run] = Some(RankPlace { nth_rank, position });
            }
        }
        let meetings = Meetings::find(&dump, &ranks);
        let order = RankOrder::new(&meetings, ranks.len());
        RankedRun {
            dump,
            ranks,
            places,
            meetings,
            order,
            marks: ContentMarks::default(),
        }
    }

    /// Reads the marks of tensors from digests, elements or statistics of the dump.
    pub fn read_marks(&mut self, n_threads: usize) {
        self.marks = ContentMarks::read(&self.dump, n_threads);
    }

    /// The rank of an execution.
    pub fn rank_of(&self, run: usize) -> u32 {
        rank(&self.dump.runs[run])
    }

    /// Whether an execution is a collective.
    pub fn is_collective(&self, run: usize) -> bool {
        self.meetings.of_run.contains_key(&run) || self.meetings.unmatched.contains_key(&run)
    }

    /// A key that sorts executions of all ranks consistently with the order of ranks and
    /// collectives: step, level, rank and place.
    pub fn sort_key(&self, run: usize) -> (Option<u64>, u32, usize, usize) {
        let step = self.dump.runs[run].place.step;
        match self.places[run] {
            Some(place) => (
                step,
                self.order.level(place),
                place.nth_rank,
                place.position,
            ),
            None => (step, u32::MAX, usize::MAX, run),
        }
    }

    /// Whether the first execution is known to come before the second.
    pub fn precedes(&self, first: usize, second: usize) -> bool {
        match (self.places[first], self.places[second]) {
            (Some(first), Some(second)) => self.order.precedes(&self.meetings, first, second),
            _ => false,
        }
    }
}

/// Reads several dumps of one run.
fn read_all(paths: &[PathBuf], n_threads: usize) -> Result<DumpIndex, RankedRunError> {
    let mut all = DumpIndex::default();
    let mut of_rank: BTreeMap<u32, &PathBuf> = BTreeMap::new();
    // A rank in two dumps would be merged into one, with slots of both.
    for path in paths {
        let mut index = read_dump(path, n_threads)?;
        // Checked before the tensors are moved: afterwards executions of both dumps are mixed.
        let ranks: HashSet<u32> = index
            .executions
            .iter()
            .map(|execution| execution.rank.unwrap_or(0))
            .collect();
        for rank in ranks {
            if let Some(first) = of_rank.insert(rank, path) {
                return Err(RankedRunError::SameRank {
                    rank,
                    first: first.clone(),
                    second: path.clone(),
                });
            }
        }
        // The form determines how names are parsed; dumps of one run share it.
        if all.form.is_empty() {
            all.form = index.form;
        }
        all.executions.append(&mut index.executions);
        all.tensors.append(&mut index.tensors);
        all.files.append(&mut index.files);
        all.tables.append(&mut index.tables);
        all.graphs.append(&mut index.graphs);
        all.descriptions.append(&mut index.descriptions);
        all.passed_over.append(&mut index.passed_over);
        all.errors.append(&mut index.errors);
    }
    Ok(all)
}

/// Rejects a directory in which a rank has an operator twice under one number: executions of two
/// runs would be merged, with slots of both.
fn check_single_run(dump: &ComparedDump, path: &Path) -> Result<(), RankedRunError> {
    for run in &dump.runs {
        // Slots are sorted, so duplicates are neighbours.
        let mut pairs = run.slots.windows(2);
        if run.place.step.is_some()
            && pairs.any(|pair| pair[0].key() == pair[1].key() && pair[0].problem.is_none())
        {
            return Err(RankedRunError::SeveralRuns {
                path: path.to_owned(),
                rank: rank(run),
                op_name: run.op_name.to_string(),
                step: run.place.step.unwrap_or(0),
            });
        }
    }
    Ok(())
}
