//! A run that writes nothing and counts how much it would write.

use std::cmp::Reverse;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use opscope_capture::{Sink, WholeTensors};
use opscope_store::atomic_file::{Creator, DryRunTotals};
use opscope_store::{FreeSpace, StoreError, space};

use crate::sink::{FileAmount, OperatorVolume, Volume, VolumeSink};

/// Counts what a dump would write.
pub struct DryRun {
    creator: Arc<Creator>,
    sink: Arc<VolumeSink>,
    place: PathBuf,
    /// Totals that were taken already, of models that ran before.
    taken: Mutex<DryRunTotals>,
}

/// The files and bytes that a run would write, and the available space.
pub struct DryRunForecast {
    /// By step and by operator.
    pub volume: Volume,
    /// All files, including those outside steps.
    pub total: DryRunTotals,
    /// The directory that they would go to.
    pub place: PathBuf,
    /// Free space in the file system, or why it is unknown.
    pub space: Result<FreeSpace, StoreError>,
    /// Bytes in whole blocks that the dump would take by now, earlier models included.
    pub n_bytes_needed: u64,
    /// Files and directories likewise.
    pub n_files_needed: u64,
}

impl DryRun {
    /// Counts what `next`, which writes through `creator`, would write to `place`.
    pub(crate) fn new(creator: Arc<Creator>, next: Arc<dyn Sink>, place: PathBuf) -> DryRun {
        DryRun {
            creator,
            sink: Arc::new(VolumeSink::new(next)),
            place,
            taken: Mutex::default(),
        }
    }

    pub(crate) fn sink(&self) -> Arc<dyn Sink> {
        self.sink.clone()
    }

    /// Takes the forecast of what would have been written since the last time.
    pub fn take(&self) -> DryRunForecast {
        let space = space(&self.place);
        // If the file system reports no block size there is nothing to round up to, so the result
        // is in plain bytes.
        let block_bytes = space.as_ref().map_or(1, |space| space.block_bytes);
        let so_far = self.creator.pretended(block_bytes).unwrap_or_default();
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let earlier = std::mem::replace(&mut *taken, so_far);
        DryRunForecast {
            // Counts by step and operator restart for each model, while the creator counts on. So
            // only the totals have the earlier models subtracted.
            volume: self.sink.take(),
            total: since(so_far, earlier),
            place: self.place.clone(),
            space,
            // A directory takes a block and a name as a file does.
            n_bytes_needed: so_far.n_bytes_in_blocks + so_far.n_dirs * block_bytes,
            n_files_needed: so_far.n_files + so_far.n_dirs,
        }
    }
}

fn since(now: DryRunTotals, earlier: DryRunTotals) -> DryRunTotals {
    DryRunTotals {
        n_dirs: now.n_dirs.saturating_sub(earlier.n_dirs),
        n_files: now.n_files.saturating_sub(earlier.n_files),
        n_linked: now.n_linked.saturating_sub(earlier.n_linked),
        n_bytes_linked: now.n_bytes_linked.saturating_sub(earlier.n_bytes_linked),
        n_bytes: now.n_bytes.saturating_sub(earlier.n_bytes),
        n_bytes_in_blocks: now
            .n_bytes_in_blocks
            .saturating_sub(earlier.n_bytes_in_blocks),
    }
}

impl DryRunForecast {
    /// Whether there is enough space; `None` if the operating system does not report it.
    pub fn fits(&self) -> Option<bool> {
        let space = self.space.as_ref().ok()?;
        let has_names = space
            .n_files_free
            .is_none_or(|free| self.n_files_needed <= free);
        Some(self.n_bytes_needed <= space.n_bytes_free && has_names)
    }

    /// Files and bytes that belong to no step: graphs, lists of names and the like.
    pub fn beside_steps(&self) -> (u64, u64) {
        // Taken as the difference: files that the tree's sink makes when it is created never pass
        // the counting sink, which is put before it later.
        let mut steps = FileAmount::default();
        self.volume
            .steps
            .values()
            .for_each(|amount| steps += *amount);
        (
            self.total.n_files.saturating_sub(steps.n_files),
            self.total.n_bytes.saturating_sub(steps.n_bytes),
        )
    }

    /// Sums by type of operator, largest first.
    pub fn by_type(&self) -> Vec<(&str, FileAmount)> {
        let mut types: Vec<(&str, FileAmount)> = Vec::new();
        // Operators come sorted by type.
        for OperatorVolume { operator, amount } in &self.volume.operators {
            match types.last_mut() {
                Some((op_type, sum)) if *op_type == operator.op_type => *sum += *amount,
                _ => types.push((&operator.op_type, *amount)),
            }
        }
        types.sort_by_key(|(_, amount)| Reverse(amount.n_bytes));
        types
    }

    /// The `n_max` operators with the largest output, largest first.
    pub fn largest(&self, n_max: usize) -> Vec<&OperatorVolume> {
        let mut operators: Vec<&OperatorVolume> = self.volume.operators.iter().collect();
        operators.sort_by_key(|volume| Reverse(volume.amount.n_bytes));
        operators.truncate(n_max);
        operators
    }

    /// Stretches of steps, first and last, of each of which the same amount is written.
    pub fn stretches(&self) -> Vec<(u64, u64, FileAmount)> {
        let mut stretches: Vec<(u64, u64, FileAmount)> = Vec::new();
        for (&step, &amount) in &self.volume.steps {
            match stretches.last_mut() {
                Some((_, last, same)) if *last + 1 == step && *same == amount => *last = step,
                _ => stretches.push((step, step, amount)),
            }
        }
        stretches
    }

    /// Tensors that are written with all their elements.
    pub fn whole(&self) -> WholeTensors {
        let mut sum = FileAmount::default();
        for operator in &self.volume.operators {
            sum += operator.amount;
        }
        sum.whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(needed: (u64, u64), n_files_free: Option<u64>, expected: bool) {
        let space = FreeSpace {
            n_bytes_free: 1000,
            n_files_free,
            block_bytes: 10,
        };
        let forecast = DryRunForecast {
            volume: Volume::default(),
            total: DryRunTotals::default(),
            place: PathBuf::new(),
            space: Ok(space),
            n_bytes_needed: needed.0,
            n_files_needed: needed.1,
        };
        assert_eq!(
            forecast.fits(),
            Some(expected),
            "{needed:?} {n_files_free:?}"
        );
    }

    #[test]
    fn room_is_for_bytes_and_for_names() {
        check((1000, 5), Some(5), true);
        check((1001, 5), Some(5), false);
        check((1000, 6), Some(5), false);
        check((1000, 6), None, true);
    }
}
