//! Converting one file, alone or among many.

use std::path::Path;

use super::relayout::{self, FileFailure, Relayout};
use super::{op_debug, plain};
use crate::failure::Failure;
use crate::options::OutputKind;
use crate::output::Output;
use crate::paths::{self, Kind};
use crate::source::Source;

/// The form that files are converted to, and the place of the results.
pub(super) struct FileConverter {
    pub(super) output: Output,
    pub(super) kind: OutputKind,
    pub(super) relayout: Option<Relayout>,
}

impl FileConverter {
    pub(super) fn convert(&self, path: &Path) -> Result<(), FileFailure> {
        self.convert_source(&open(path)?)
    }

    pub(super) fn convert_source(&self, source: &Source) -> Result<(), FileFailure> {
        match &self.relayout {
            Some(relayout) => relayout::convert(&self.output, self.kind, relayout, source),
            None if source.is_op_debug() => Ok(op_debug::convert(&self.output, source)?),
            None => Ok(plain::convert(&self.output, self.kind, source)?),
        }
    }
}

/// Opens a dump whose path the reference accepts.
pub(super) fn open(path: &Path) -> Result<Source, Failure> {
    paths::check_input(path, Kind::File)?;
    Source::open(path)
}
