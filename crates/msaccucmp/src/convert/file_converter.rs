//! Converts one file, alone or as one of many.

use std::path::Path;

use super::relayout::{self, FileFailure, LayoutChange};
use super::{op_debug, plain};
use crate::failure::ToolFailure;
use crate::options::ToolOutput;
use crate::output::OutputFolder;
use crate::paths::{self, PathKind};
use crate::source::DumpSource;

/// The target format, and the place of the results.
pub(super) struct FileConverter {
    pub(super) output: OutputFolder,
    pub(super) kind: ToolOutput,
    pub(super) relayout: Option<LayoutChange>,
}

impl FileConverter {
    pub(super) fn convert(&self, path: &Path) -> Result<(), FileFailure> {
        self.convert_source(&open(path)?)
    }

    pub(super) fn convert_source(&self, source: &DumpSource) -> Result<(), FileFailure> {
        match &self.relayout {
            Some(relayout) => relayout::convert(&self.output, self.kind, relayout, source),
            None if source.is_op_debug() => Ok(op_debug::convert(&self.output, source)?),
            None => Ok(plain::convert(&self.output, self.kind, source)?),
        }
    }
}

/// Opens a dump, if the reference accepts its path.
pub(super) fn open(path: &Path) -> Result<DumpSource, ToolFailure> {
    paths::check_input(path, PathKind::File)?;
    DumpSource::open(path)
}
