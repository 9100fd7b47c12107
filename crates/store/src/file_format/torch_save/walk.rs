//! The way through the plain data of a file, to its tensors.

use std::collections::HashSet;

use super::archive::TorchArchive;
use super::known_names::is_plain;
use super::names::{PathName, PathStep, distinct_names};
use super::pickle::{Pickle, PickleCall, PickleValue, ValueId, excerpt};
use super::rebuild::TensorSource;
use super::{DEPTH_MAX, N_TENSORS_MAX, N_VISITS_MAX, NAMES_BYTES_MAX, TorchFile, TorchTensor};
use crate::FormatError;

/// The way through a file.
pub(super) struct TensorWalk<'a> {
    pickle: &'a Pickle<'a>,
    archive: &'a TorchArchive,
    path: Vec<PathStep<'a>>,
    n_visits: usize,
    n_others: usize,
    n_name_bytes: usize,
    names: Vec<PathName>,
    tensors: Vec<TorchTensor>,
}

impl<'a> TensorWalk<'a> {
    pub(super) fn new(pickle: &'a Pickle<'a>, archive: &'a TorchArchive) -> TensorWalk<'a> {
        TensorWalk {
            pickle,
            archive,
            path: Vec::new(),
            n_visits: 0,
            n_others: 0,
            n_name_bytes: 0,
            names: Vec::new(),
            tensors: Vec::new(),
        }
    }

    /// All tensors in the order of the data, each with a name.
    pub(super) fn finish(mut self) -> Result<TorchFile, FormatError> {
        self.visit(self.pickle.root())?;
        let names = distinct_names(self.names)?.into_iter();
        let named = names
            .zip(self.tensors)
            .map(|(name, tensor)| TorchTensor { name, ..tensor });
        Ok(TorchFile {
            tensors: named.collect(),
            n_others: self.n_others,
            meta: Vec::new(),
        })
    }

    fn visit(&mut self, id: ValueId) -> Result<(), FormatError> {
        // Shared values are visited from each side: lists of lists can make few values many.
        self.n_visits += 1;
        if self.n_visits > N_VISITS_MAX {
            return Err(unexpected(
                &format!("at most {N_VISITS_MAX} values"),
                "more",
            ));
        }
        if self.path.len() > DEPTH_MAX {
            let expected = format!("at most {DEPTH_MAX} values inside one another");
            return Err(unexpected(&expected, "more"));
        }
        match self.pickle.value(id) {
            PickleValue::Tuple(items) | PickleValue::List(items) => {
                for (position, &item) in (0..).zip(items) {
                    self.step(PathStep::Number(position), item)?;
                }
                Ok(())
            }
            PickleValue::Dict(pairs) => self.visit_pairs(pairs),
            PickleValue::Set(items) => {
                let mut items = items.iter();
                items.try_for_each(|&item| self.step(PathStep::Unnamed, item))
            }
            PickleValue::Call(call) => self.visit_call(call),
            // PyTorch saves storages by themselves, too: their elements are data like any other.
            PickleValue::Persistent(storage) => {
                let tensor = TensorSource::new(self.pickle, self.archive).storage(*storage);
                self.add(tensor?)
            }
            PickleValue::None
            | PickleValue::Bool(_)
            | PickleValue::Int(_)
            | PickleValue::Long
            | PickleValue::Float(_)
            | PickleValue::Text(_)
            | PickleValue::Bytes(_)
            | PickleValue::Name(_) => {
                self.n_others += 1;
                Ok(())
            }
        }
    }

    fn step(&mut self, step: PathStep<'a>, to: ValueId) -> Result<(), FormatError> {
        self.path.push(step);
        self.visit(to)?;
        self.path.pop();
        Ok(())
    }

    fn visit_pairs(&mut self, pairs: &'a [(ValueId, ValueId)]) -> Result<(), FormatError> {
        let mut seen = HashSet::new();
        for &(key, value) in pairs {
            let step = match self.pickle.value(key) {
                PickleValue::Text(text) => PathStep::Text(text),
                PickleValue::Int(number) => PathStep::Number(*number),
                _ => PathStep::Unnamed,
            };
            // Python keeps the last value of a key, at the place of its first.
            if step != PathStep::Unnamed && !seen.insert(step) {
                let found = match step {
                    PathStep::Text(text) => format!("`{}` twice", excerpt(text)),
                    _ => "a number twice".to_owned(),
                };
                return Err(unexpected("each key of a dictionary once", &found));
            }
            self.step(step, value)?;
        }
        Ok(())
    }

    fn visit_call(&mut self, call: &'a PickleCall<'a>) -> Result<(), FormatError> {
        if is_plain(*call.name) {
            // Of plain arguments come plain values; a tensor among them has no name.
            return self.step(PathStep::Unnamed, call.args);
        }
        let tensor = TensorSource::new(self.pickle, self.archive).tensor(call)?;
        self.add(tensor)
    }

    fn add(&mut self, tensor: TorchTensor) -> Result<(), FormatError> {
        let n_bytes = self.path.iter().map(|step| step.n_bytes());
        self.n_name_bytes = n_bytes.fold(self.n_name_bytes, usize::saturating_add);
        if self.n_name_bytes > NAMES_BYTES_MAX {
            let expected = format!("names of at most {NAMES_BYTES_MAX} bytes");
            return Err(unexpected(&expected, "more"));
        }
        let Some(name) = PathName::new(&self.path) else {
            let expected = "tensors in lists, and under keys that are text or integers";
            return Err(unexpected(expected, "one in a set, or under another key"));
        };
        if self.tensors.len() == N_TENSORS_MAX {
            return Err(unexpected(
                &format!("at most {N_TENSORS_MAX} tensors"),
                "more",
            ));
        }
        self.names.push(name);
        self.tensors.push(tensor);
        Ok(())
    }
}

fn unexpected(expected: &str, found: &str) -> FormatError {
    FormatError::new(0, expected, found)
}
