//! `opscope completions`.

use clap_complete::Shell;

use crate::exit::CommandResult;
use crate::{console, help};

/// Print the completions of a shell
///
/// The shell then completes commands, options and their values after the Tab key.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  source <(opscope completions bash)
  opscope completions zsh > ~/.zfunc/_opscope
  opscope completions fish > ~/.config/fish/completions/opscope.fish")]
pub(crate) struct CompletionsArguments {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(arguments: &CompletionsArguments) -> CommandResult {
    // The generator panics if its writer fails, so it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(
        arguments.shell,
        &mut help::complete(),
        "opscope",
        &mut script,
    );
    console::print_generated(&script)?;
    Ok(())
}
