//! Sharing of files between tensors.

use clap::ValueEnum;
use opscope_dump::{DumpForm, FileSharing};

use crate::console::report;

/// Which tensors share a file.
#[derive(clap::Args)]
#[command(next_help_heading = "Files")]
pub(crate) struct OnceArguments {
    /// If each tensor has its own file, which of them are links [default: identity]
    #[arg(long, value_enum, value_name = "HOW")]
    dedup: Option<DedupChoice>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DedupChoice {
    /// None
    Off,
    /// Values in the same memory: an output and the inputs it becomes, weights over steps
    Identity,
    /// Values with equal bytes, also in earlier dumps below the same directory
    Content,
}

impl OnceArguments {
    /// Applies these options to a form.
    pub(super) fn apply(&self, mut form: DumpForm) -> DumpForm {
        if let DumpForm::MindSpore(options) = &mut form {
            options.dedup = match self.dedup.unwrap_or(DedupChoice::Identity) {
                DedupChoice::Off => FileSharing::Off,
                DedupChoice::Identity => FileSharing::Identity,
                DedupChoice::Content => FileSharing::Content,
            };
        }
        form
    }

    /// Warns if the form of the dump has nothing to share.
    pub(super) fn warn_without_effect(&self, form: &DumpForm) {
        let has_tensor_files = form.mindspore().is_some_and(|options| {
            // `file_format` `bin` writes files of whole operators on targets without ranks only.
            options.has_tensors && (!options.is_bin || options.target.has_ranks())
        });
        // The other two choices cost nothing, so asking for them in vain is harmless.
        if self.dedup == Some(DedupChoice::Content) && !has_tensor_files {
            report!(
                "opscope: warning: `--dedup content` has no effect on a dump in which no tensor has \
                 its own file"
            );
        }
    }
}
