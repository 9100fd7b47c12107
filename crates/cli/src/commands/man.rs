//! `opscope man`.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Command;
use clap_mangen::Man;
use opscope_store::atomic_file::{Creator, PermissionModes};

use crate::console::{self, line};
use crate::exit::{CommandFailure, CommandResult, USAGE};
use crate::{format, help};

/// Write the manual pages, one for each command
#[derive(clap::Args)]
#[command(after_help = "Examples:
  opscope man --out man1 && man -l man1/opscope-dump.1
  sudo opscope man --out /usr/local/share/man/man1")]
pub(crate) struct ManArguments {
    /// Directory for the pages; created if missing. Existing pages are replaced
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

pub(crate) fn run(arguments: &ManArguments) -> CommandResult {
    let mut command = help::complete().disable_help_subcommand(true);
    // Gives each command its full name, `opscope dump`.
    command.build();
    // Readable by everyone, because pages hold no data of the user.
    let files = Creator::new(PermissionModes {
        dir: 0o755,
        file: 0o644,
    });
    files
        .create_dir(&arguments.out)
        .map_err(|error| CommandFailure::new(USAGE, error))?;
    let n_pages = write_pages(&files, &arguments.out, &command)?;
    let dir = arguments.out.display();
    let mut out = console::out();
    line!(out, "{} in {dir}", format::count(n_pages, "page"))?;
    line!(out, "next: man -l {dir}/opscope.1")?;
    Ok(())
}

/// Writes the page of a command and of those below it.
fn write_pages(files: &Creator, dir: &Path, command: &Command) -> CommandResult<u64> {
    let source = concat!("opscope ", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command.clone()).source(source);
    let mut page = Vec::new();
    man.render(&mut page)?;
    files
        .replace_file(&dir.join(man.get_filename()), &[&page])
        .map_err(|error| CommandFailure::new(USAGE, error))?;
    let mut n_pages = 1;
    for below in command.get_subcommands() {
        n_pages += write_pages(files, dir, below)?;
    }
    Ok(n_pages)
}
