//! A run that writes nothing and tells how much it would write.

mod report;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use opscope_capture::Sink;
use opscope_dump::{Volume, VolumeSink};
use opscope_store::atomic_file::{Creator, Pretended};
use opscope_store::{Space, space};

use super::RunArguments;
use crate::console::tell;
use crate::exit::chain;
use crate::format;

/// Stand-ins that take the place of writing.
pub(super) struct DryRun {
    creator: Arc<Creator>,
    pub(super) sink: Arc<VolumeSink>,
    place: PathBuf,
    /// Totals that were told already, of operators that ran before.
    told: Mutex<Pretended>,
}

/// Forecast of what a run would write.
pub(crate) struct Forecast {
    volume: Volume,
    total: Pretended,
    place: PathBuf,
    has_random_inputs: bool,
    space: Option<Space>,
    /// Bytes in whole blocks, of everything that would be written up to here, and files.
    needed: (u64, u64),
}

impl RunArguments {
    /// Whether inputs are made up because none are given.
    fn has_made_up_inputs(&self) -> bool {
        let is_given = !self.input.is_empty() || self.inputs.is_some() || self.seed.is_some();
        self.volume.dry_run && !is_given
    }

    /// The seed of random inputs, if there are to be any.
    pub(super) fn seed(&self) -> Option<u64> {
        self.seed.or(self.has_made_up_inputs().then_some(0))
    }
}

impl DryRun {
    /// Counts what `next`, which goes by way of `creator`, would write to `place`.
    pub(super) fn new(creator: Arc<Creator>, next: Arc<dyn Sink>, place: PathBuf) -> DryRun {
        DryRun {
            creator,
            sink: Arc::new(VolumeSink::new(next)),
            place,
            told: Mutex::default(),
        }
    }

    /// Returns the forecast of what would have been written since the last time.
    pub(super) fn take(&self, arguments: &RunArguments, has_inputs: bool) -> Forecast {
        let has_random_inputs = has_inputs && arguments.has_made_up_inputs();
        let space = match space(&self.place) {
            Ok(space) => Some(space),
            Err(error) => {
                warn(&chain(&error));
                None
            }
        };
        let block_bytes = space.map_or(1, |space| space.block_bytes);
        let so_far = self.creator.pretended(block_bytes).unwrap_or_default();
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let earlier = std::mem::replace(&mut *told, so_far);
        let forecast = Forecast {
            volume: self.sink.take(),
            total: since(so_far, earlier),
            place: self.place.clone(),
            has_random_inputs,
            space,
            needed: (
                so_far.n_bytes_in_blocks + so_far.n_dirs * block_bytes,
                so_far.n_files + so_far.n_dirs,
            ),
        };
        forecast.warn();
        forecast
    }
}

fn since(now: Pretended, earlier: Pretended) -> Pretended {
    Pretended {
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

impl Forecast {
    fn warn(&self) {
        if self.has_random_inputs {
            warn("no inputs are given: they are random, as with `--seed 0`");
        }
        if self.fits() == Some(false) {
            let (bytes, files) = self.needed;
            warn(&format!(
                "there is no room for the dump: it needs {} and {}, {}",
                format::bytes(bytes),
                format::count(files, "file"),
                self.free()
            ));
        }
    }

    /// Whether there is room; `None` if the operating system does not tell.
    fn fits(&self) -> Option<bool> {
        let space = self.space?;
        let (bytes, files) = self.needed;
        let has_names = space.n_files_free.is_none_or(|free| files <= free);
        Some(bytes <= space.n_bytes_free && has_names)
    }

    fn free(&self) -> String {
        let Some(space) = self.space else {
            return "nobody knows how much is free".to_owned();
        };
        let bytes = format::bytes(space.n_bytes_free);
        match space.n_files_free {
            Some(files) => format!("{bytes} and {} are free", format::count(files, "file")),
            None => format!("{bytes} are free"),
        }
    }
}

fn warn(message: &str) {
    tell!("opscope: warning: {message}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(needed: (u64, u64), n_files_free: Option<u64>, expected: bool) {
        let space = Space {
            n_bytes_free: 1000,
            n_files_free,
            block_bytes: 10,
        };
        let forecast = Forecast {
            volume: Volume::default(),
            total: Pretended::default(),
            place: PathBuf::new(),
            has_random_inputs: false,
            space: Some(space),
            needed,
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
