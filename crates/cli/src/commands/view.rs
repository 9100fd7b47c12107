//! `opscope view`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use opscope_analysis::compare::run::CompareError;
use opscope_analysis::default_jobs;
use opscope_view::{PageServer, ServerOptions, ViewError, ViewedRuns};

use crate::console::{self, line, tell};
use crate::exit::{CommandFailure, UNREADABLE, USAGE, check_path};
use crate::progress;

/// Show a dump, or two dumps and where they part, as a page in the browser
///
/// With one dump: every operator with its numbers, where NaN and infinities begin, and the tensors.
/// With two: what `opscope compare` finds, and both tensors beside each other. The page is served on
/// this machine alone, to whoever has the address with its token, and reads nothing but these
/// dumps. Ctrl-C ends it.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  opscope view dump
  opscope view npu cpu --no-open
  ssh -L 8080:localhost:8080 machine opscope view dump --port 8080 --no-open")]
pub(crate) struct ViewArguments {
    /// A dump; with GOLDEN the one that is examined
    dump: PathBuf,
    /// The dump that is taken for right
    golden: Option<PathBuf>,
    /// Only print the address
    #[arg(long)]
    no_open: bool,
    /// The interface that the page is served on; with another than the loopback one everybody who
    /// has the address and reaches this machine sees the dumps
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    host: String,
    /// The port [default: any that is free]
    #[arg(
        long,
        value_name = "PORT",
        default_value_t = 0,
        hide_default_value = true
    )]
    port: u16,
    /// Number of threads [default: one for each processor]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
}

pub(crate) fn run(arguments: &ViewArguments) -> Result<(), CommandFailure> {
    check_path(&arguments.dump)?;
    if let Some(golden) = &arguments.golden {
        check_path(golden)?;
    }
    let n_threads = arguments.jobs.unwrap_or_else(default_jobs).max(1);
    let program = format!("opscope {}", env!("CARGO_PKG_VERSION"));
    let runs = progress::with_spinner("reading", || match &arguments.golden {
        None => ViewedRuns::open_one(&arguments.dump, n_threads, &program),
        Some(golden) => ViewedRuns::open_two([&arguments.dump, golden], n_threads, &program),
    });
    let options = ServerOptions {
        host: arguments.host.clone(),
        port: arguments.port,
        n_threads,
    };
    let server = PageServer::bind(runs.map_err(failure)?, &options).map_err(failure)?;
    line!(console::out(), "{}", server.address())?;
    // Whoever waits for the address reads it from a pipe.
    console::out().flush()?;
    if !arguments.no_open && !open_browser(server.address()) {
        tell!("no browser could be opened: open the address above, or forward its port");
    }
    server.run().map_err(failure)
}

fn failure(error: ViewError) -> CommandFailure {
    let code = match &error {
        ViewError::Compare(CompareError::NothingChosen { .. } | CompareError::Mapping(_))
        | ViewError::Serve { .. } => USAGE,
        ViewError::Dump(_) | ViewError::Empty { .. } | ViewError::Compare(_) => UNREADABLE,
    };
    CommandFailure::new(code, error)
}

/// Asks the desktop to open an address; false where there is none.
fn open_browser(address: &str) -> bool {
    let opener = if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    let has_desktop = cfg!(target_os = "macos")
        || ["DISPLAY", "WAYLAND_DISPLAY"]
            .iter()
            .any(|name| std::env::var_os(name).is_some());
    if !has_desktop || !is_command(opener) {
        return false;
    }
    let mut command = Command::new(opener);
    command
        .arg(address)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().is_ok()
}

fn is_command(name: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|dir| Path::new(&dir).join(name).is_file())
}
