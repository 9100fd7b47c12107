//! `opscope view`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use opscope_analysis::compare::run::CompareError;
use opscope_analysis::default_jobs;
use opscope_view::{
    OperatorFinding, PageServer, PageState, ServerOptions, UnfinishedSurvey, ViewError, ViewedRuns,
};

use crate::commands::dump::run_model::is_signalled;
use crate::commands::saved_result::{self, program};
use crate::console::{self, line, report};
use crate::exit::{CommandFailure, CommandResult, UNREADABLE, USAGE, check_dump};
use crate::progress;

/// Interval between checks for a signal.
const BETWEEN_CHECKS: Duration = Duration::from_millis(50);
/// Checks for a signal between two checks that the dumps are still there.
const N_BETWEEN_LOOKS: u64 = 20;

/// Show a dump, or where two dumps diverge, in the browser
///
/// With one dump: every operator with its statistics, the origins of NaN and infinities, and the
/// tensors. With two: the result of `opscope compare`, and both tensors side by side. The page is
/// served locally to anyone who has the address with its token, and reads only these dumps. Ctrl-C
/// ends it.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  opscope view dump
  opscope view npu cpu --no-open
  opscope view npu cpu --reference cpu-float64
  opscope view --from result.json
  ssh -L 8080:localhost:8080 machine opscope view dump --port 8080 --no-open")]
pub(crate) struct ViewArguments {
    /// A dump; with GOLDEN, the one under test
    #[arg(required_unless_present = "from", conflicts_with = "from")]
    dump: Option<PathBuf>,
    /// The reference dump
    golden: Option<PathBuf>,
    /// A third dump: its tensors are shown next to the pair's, and its distance from GOLDEN is the
    /// yardstick, as in `opscope compare`
    #[arg(long, value_name = "DUMP", requires = "golden")]
    reference: Option<PathBuf>,
    /// Show a result saved by `opscope compare --json`, without tensors
    #[arg(long, value_name = "RESULT")]
    from: Option<PathBuf>,
    #[command(flatten)]
    server: ServerArguments,
    /// Number of threads [default: one for each processor]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
}

/// Where the page is served.
#[derive(clap::Args)]
pub(crate) struct ServerArguments {
    /// Only print the address
    #[arg(long)]
    no_open: bool,
    /// The interface to serve the page on; on any but the loopback interface, everyone who has the
    /// address and reaches this machine can see the dumps
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    host: String,
    /// The port [default: any free port]
    #[arg(
        long,
        value_name = "PORT",
        default_value_t = 0,
        hide_default_value = true
    )]
    port: u16,
}

pub(crate) fn run(arguments: &ViewArguments) -> CommandResult {
    let dumps = [&arguments.dump, &arguments.golden];
    for path in dumps.into_iter().chain([&arguments.reference]).flatten() {
        check_dump(path)?;
    }
    let n_threads = arguments.jobs.unwrap_or_else(default_jobs).max(1);
    let program = program();
    let runs = match (&arguments.from, dumps) {
        (Some(saved), _) => ViewedRuns::of_saved(saved_result::read(saved)?),
        (None, [Some(target), Some(golden)]) => progress::with_spinner("comparing", || {
            let reference = arguments.reference.as_deref();
            ViewedRuns::open_two([target, golden], reference, n_threads, &program)
        })
        .map_err(failure)?,
        (None, [Some(dump), None]) => {
            let begun = progress::with_spinner("reading", || {
                UnfinishedSurvey::begin(dump, Vec::new(), n_threads, &program)
            });
            let (runs, rest) = begun.map_err(failure)?;
            return serve(runs, rest, &arguments.server, n_threads);
        }
        // clap guarantees this.
        (None, [None, _]) => return Err(CommandFailure::message(USAGE, "a dump is required")),
    };
    serve(Arc::new(runs), None, &arguments.server, n_threads)
}

/// The options of a command that can show its findings.
#[derive(clap::Args)]
pub(crate) struct FindingsPage {
    /// Show the findings in the browser, as `opscope view` does, until Ctrl-C
    #[arg(long)]
    view: bool,
    #[command(flatten)]
    server: ServerArguments,
}

impl FindingsPage {
    /// Checks before the work that one dump can be shown, and that standard output is free for its
    /// address.
    pub(crate) fn check(&self, dumps: &[PathBuf], is_json: bool) -> CommandResult {
        let message = match dumps {
            _ if !self.view => return Ok(()),
            _ if is_json => "`--view` cannot be combined with `--json`",
            [_] => return Ok(()),
            _ => "`--view` shows one directory; pass the one that holds all dumps",
        };
        Err(CommandFailure::message(USAGE, message))
    }

    /// Shows a dump with the findings, if that was asked for.
    pub(crate) fn show(
        &self,
        dump: &Path,
        findings: impl FnOnce() -> Vec<OperatorFinding>,
        n_threads: usize,
    ) -> CommandResult {
        if !self.view {
            return Ok(());
        }
        // Read again: the command may have opened only a part of the dump.
        let begun = UnfinishedSurvey::begin(dump, findings(), n_threads, &program());
        let (runs, rest) = begun.map_err(failure)?;
        serve(runs, rest, &self.server, n_threads)
    }
}

/// Serves the page until it is interrupted.
pub(crate) fn serve(
    runs: Arc<ViewedRuns>,
    rest: Option<UnfinishedSurvey>,
    server: &ServerArguments,
    n_threads: usize,
) -> CommandResult {
    let state = (rest.as_ref()).map_or(PageState::Whole, UnfinishedSurvey::state);
    let sides = [
        Some(&runs.target),
        runs.golden.as_ref(),
        runs.reference.as_ref(),
    ];
    let mut paths: Vec<PathBuf> = sides
        .into_iter()
        .flatten()
        .map(|side| side.path.clone())
        .collect();
    // A saved result has no dumps, and a URL is no path of this disk.
    paths.retain(|path| path.exists());
    let page = bind(runs, state, server, n_threads)?;
    line!(console::out(), "{}", page.address())?;
    // Programs that wait for the address read it from a pipe.
    console::out().flush()?;
    open_unless_asked(server, page.address());
    if let Some(rest) = rest {
        let shown = page.runs();
        // Ends with the process, together with results that would no longer be shown.
        thread::spawn(move || rest.finish(&shown));
    }
    // A signal may come before the server handles it, after a model ran; that run's handler notes
    // it.
    let shown = page.runs();
    thread::spawn(move || {
        let mut n_checks = 0;
        while !is_signalled() {
            thread::sleep(BETWEEN_CHECKS);
            n_checks += 1;
            if n_checks % N_BETWEEN_LOOKS == 0 && paths.iter().any(|path| !path.exists()) {
                shown.announce(PageState::Removed);
                // Once is enough, and a dump that comes back is another one.
                paths.clear();
            }
        }
        shown.end();
    });
    page.run();
    Ok(())
}

/// Binds the requested port.
pub(crate) fn bind(
    runs: Arc<ViewedRuns>,
    state: PageState,
    server: &ServerArguments,
    n_threads: usize,
) -> CommandResult<PageServer> {
    let options = ServerOptions {
        host: server.host.clone(),
        port: server.port,
        n_threads,
        ..ServerOptions::default()
    };
    PageServer::bind(runs, state, &options).map_err(failure)
}

pub(crate) fn open_unless_asked(server: &ServerArguments, address: &str) {
    if !server.no_open && !open_browser(address) {
        report!("no browser could be opened: open the address above, or forward its port");
    }
}

pub(crate) fn failure(error: ViewError) -> CommandFailure {
    let code = match &error {
        ViewError::Compare(CompareError::NothingChosen { .. } | CompareError::Mapping(_))
        | ViewError::Serve { .. } => USAGE,
        ViewError::Dump(_)
        | ViewError::Empty { .. }
        | ViewError::Compare(_)
        | ViewError::Report(_) => UNREADABLE,
    };
    CommandFailure::new(code, error)
}

/// Asks the desktop to open an address; returns whether that worked.
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
