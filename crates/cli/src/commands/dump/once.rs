//! Which tensors of a dump share a file.

use clap::ValueEnum;
use opscope_dump::{DumpForm, FileSharing};

use crate::console::report;

/// Which tensors share a file.
#[derive(clap::Args)]
#[command(next_help_heading = "Files")]
pub(crate) struct OnceArguments {
    /// Where each tensor is a file, which of them are links to one another [default: identity]
    #[arg(long, value_enum, value_name = "HOW")]
    dedup: Option<DedupChoice>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DedupChoice {
    /// None
    Off,
    /// Anything that is the same memory: an output and the inputs that it becomes, weights over
    /// steps
    Identity,
    /// Anything that has equal bytes, in earlier dumps below the same directory too
    Content,
}

impl OnceArguments {
    /// The same form with what these options say of sharing.
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

    /// Says so if the form of the dump leaves nothing to share.
    pub(super) fn warn_without_effect(&self, form: &DumpForm) {
        let has_tensor_files = form.mindspore().is_some_and(|options| {
            // `file_format` `bin` makes files of whole operators on targets without ranks only.
            options.has_tensors && (!options.is_bin || options.target.has_ranks())
        });
        // The other two choices cost nothing, so it does no harm to ask for them in vain.
        if self.dedup == Some(DedupChoice::Content) && !has_tensor_files {
            report!(
                "opscope: warning: `--dedup content` has no effect on a dump in which no tensor is \
                 a file of its own"
            );
        }
    }
}
