//! The bytes that a dump cannot do without, and what it costs just to move them.

use std::collections::HashSet;
use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use opscope_capture::SessionOptions;
use opscope_capture::sink::MemorySink;
use opscope_store::record::Record;
use opscope_tensor::{Tensor, TensorIdentity};
use tempfile::TempDir;

use crate::subject::Subject;
use crate::timed;

/// The different tensors of a run.
pub(crate) struct Unique {
    /// Bytes of all slots of all steps.
    pub(crate) n_bytes_asked: u64,
    /// Slots of all steps.
    pub(crate) n_slots: u64,
    /// One step's slots, to check answers with.
    pub(crate) step: Vec<Record>,
    /// Tensors that do not change from step to step.
    constant: Vec<Tensor>,
    /// Tensors that each step computes anew.
    fresh: Vec<Tensor>,
    /// How many steps there are.
    pub(crate) n_steps: u64,
}

impl Unique {
    pub(crate) fn measure(subject: &mut Subject, n_steps: u64) -> Unique {
        let sink = Arc::new(MemorySink::default());
        let options = SessionOptions {
            queue_bytes_max: u64::MAX,
            ..SessionOptions::default()
        };
        subject.run_captured(sink.clone(), options, 2);
        let (first, second): (Vec<Record>, Vec<Record>) =
            sink.take().into_iter().partition(|record| record.step == 0);
        let mut of_first = HashSet::new();
        let different = |records: &[Record], seen: &mut HashSet<TensorIdentity>| -> Vec<Tensor> {
            let tensors = records.iter().flat_map(Record::slots);
            tensors
                .filter(|(_, _, tensor)| seen.insert(tensor.identity().unwrap().clone()))
                .map(|(_, _, tensor)| tensor.clone())
                .collect()
        };
        let all = different(&first, &mut of_first);
        let fresh = different(&second, &mut of_first.clone());
        let of_second: HashSet<TensorIdentity> = second
            .iter()
            .flat_map(Record::slots)
            .map(|(_, _, tensor)| tensor.identity().unwrap().clone())
            .collect();
        let constant = all
            .into_iter()
            .filter(|tensor| of_second.contains(tensor.identity().unwrap()))
            .collect();
        Unique {
            n_bytes_asked: first.iter().map(Record::n_bytes).sum::<u64>() * n_steps,
            n_slots: first.iter().map(Record::n_slots).sum::<u64>() * n_steps,
            step: first,
            constant,
            fresh,
            n_steps,
        }
    }

    /// Tensors in the order in which a run shows them.
    fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        let n_steps = usize::try_from(self.n_steps).unwrap();
        let fresh = (0..n_steps).flat_map(|_| &self.fresh);
        self.constant.iter().chain(fresh)
    }

    pub(crate) fn n_bytes(&self) -> u64 {
        self.tensors().map(|tensor| tensor.n_bytes() as u64).sum()
    }

    pub(crate) fn copy(&self) {
        let mut to = Vec::new();
        for tensor in self.tensors() {
            to.clear();
            to.extend_from_slice(tensor.host_bytes().unwrap());
            std::hint::black_box(&to);
        }
    }

    /// Writes one plain file below `place`; it goes with its directory.
    pub(crate) fn write(&self, place: &str) -> (Duration, TempDir) {
        let dir = tempfile::tempdir_in(place).unwrap();
        let time = timed(|| {
            let mut file = File::create(dir.path().join("plain")).unwrap();
            for tensor in self.tensors() {
                file.write_all(tensor.host_bytes().unwrap()).unwrap();
            }
        });
        (time, dir)
    }
}
