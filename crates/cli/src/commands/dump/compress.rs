//! Compression of a dump's arrays.

use opscope_dump::MindSporeOptions;
use opscope_store::file_format::zstd;

use crate::arguments::compression;
use crate::exit::{CommandFailure, CommandResult, USAGE};

/// Compression of written files.
#[derive(Clone, Copy, clap::Args)]
#[command(next_help_heading = "Compression")]
pub(crate) struct CompressArguments {
    /// Compress each array file of a dump in MindSpore's form, at a level from 1 (fastest) to 19;
    /// names get `.zst` appended
    #[arg(long, value_name = "zstd[:LEVEL]", value_parser = compression)]
    compress: Option<zstd::CompressionLevel>,
}

impl CompressArguments {
    /// Sets the level of a dump in MindSpore's form; `None` is a dump in another form, or no dump.
    ///
    /// # Errors
    ///
    /// A level for a dump that has no file per array.
    pub(super) fn apply(self, mindspore: Option<&mut MindSporeOptions>) -> CommandResult {
        let Some(level) = self.compress else {
            return Ok(());
        };
        let (reason, hint) = match mindspore {
            Some(options) if !options.has_tensors => (
                "this configuration requests statistics only",
                "request tensors by `saved_data`",
            ),
            // `file_format` applies to dumps of whole graphs only: trees with ranks always hold
            // arrays.
            Some(options) if options.is_bin && !options.target.has_ranks() => (
                "this configuration requests DumpData files, which keep all tensors of an operator \
                 as the vendor's tools read them",
                "set `file_format` to `npy`",
            ),
            Some(options) => {
                options.compression = Some(level);
                return Ok(());
            }
            None => (
                "DumpData files keep all tensors of an operator as the vendor's tools read them, and \
                 `--stats` and `--as` write no files",
                "dump with a configuration of MindSpore, or run `opscope convert --compress` on the dump",
            ),
        };
        let message = format!("`--compress` needs a file for each array: {reason}");
        Err(CommandFailure::message(USAGE, message).with_hint(hint))
    }
}
