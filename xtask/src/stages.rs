//! The stages of `cargo xtask test`: a failed stage does not stop the next, and a table at the end
//! names those that failed.

use std::fmt::Write as _;
use std::time::{Duration, Instant};
use std::{env, fs};

use anyhow::{Result, bail};

use crate::command::root;

/// Clock ticks per second, in the unit of Linux's `/proc`.
const TICKS_PER_SECOND: u64 = 100;

/// Finished stages, in order.
#[derive(Default)]
pub(crate) struct Stages {
    finished: Vec<Stage>,
}

struct Stage {
    name: &'static str,
    wall: Duration,
    processor: Option<Duration>,
    failure: Option<String>,
}

impl Stages {
    /// Runs a stage. A failure is printed at once and recorded for the summary.
    pub(crate) fn run(&mut self, name: &'static str, stage: impl FnOnce() -> Result<()>) {
        eprintln!("== stage: {name}{}", free_disk());
        let (start, processor_before) = (Instant::now(), children_processor_time());
        let failure = stage().err().map(|error| format!("{error:#}"));
        if let Some(failure) = &failure {
            eprintln!("xtask: stage `{name}` failed: {failure}");
        }
        let processor = children_processor_time()
            .zip(processor_before)
            .map(|(after, before)| after.saturating_sub(before));
        self.finished.push(Stage {
            name,
            wall: start.elapsed(),
            processor,
            failure,
        });
    }

    /// Prints the table, and fails if a stage failed.
    pub(crate) fn finish(self) -> Result<()> {
        eprint!("{}", self.table());
        let failed: Vec<_> = self
            .finished
            .iter()
            .filter(|stage| stage.failure.is_some())
            .map(|stage| format!("`{}`", stage.name))
            .collect();
        if !failed.is_empty() {
            bail!(
                "{} of {} stages failed: {}",
                failed.len(),
                self.finished.len(),
                failed.join(", ")
            );
        }
        Ok(())
    }

    fn table(&self) -> String {
        let mut table = format!("{:<32} {:>7} {:>7}\n", "stage", "wall s", "CPU s");
        for stage in &self.finished {
            let seconds = |time: Duration| format!("{:.0}", time.as_secs_f64());
            let processor = stage.processor.map_or_else(|| "-".to_owned(), seconds);
            let mark = if stage.failure.is_some() {
                "  FAILED"
            } else {
                ""
            };
            let _ = writeln!(
                table,
                "{:<32} {:>7} {processor:>7}{mark}",
                stage.name,
                seconds(stage.wall)
            );
        }
        table
    }
}

/// The space left for builds and for temporary files, in words: tests fail oddly without.
fn free_disk() -> String {
    let free = [root().to_owned(), env::temp_dir()].map(|folder| {
        let space = rustix::fs::statvfs(&folder).ok()?;
        let gigabytes = (space.f_bavail * space.f_frsize) as f64 / 1e9;
        Some(format!("{gigabytes:.1} GB"))
    });
    match free {
        [Some(build), Some(temporary)] => {
            format!(", {build} free, {temporary} for temporary files")
        }
        _ => String::new(),
    }
}

/// Processor time of all finished child processes and their children; `None` without `/proc`.
fn children_processor_time() -> Option<Duration> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The program's name, in parentheses, may contain blanks. Fields are counted after it: `cutime`
    // and `cstime` are the 14th and 15th.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(13);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(Duration::from_millis(
        (user + system) * 1000 / TICKS_PER_SECOND,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_after_a_failure_run_and_the_end_names_it() {
        let mut stages = Stages::default();
        let mut n_run = 0;
        stages.run("first", || bail!("no such file"));
        stages.run("second", || {
            n_run += 1;
            Ok(())
        });
        assert_eq!(n_run, 1);
        let table = stages.table();
        assert!(
            table
                .lines()
                .any(|line| line.starts_with("first") && line.ends_with("FAILED"))
        );
        assert!(
            table
                .lines()
                .any(|line| line.starts_with("second") && !line.ends_with("FAILED"))
        );
        let message = stages.finish().unwrap_err().to_string();
        assert_eq!(message, "1 of 2 stages failed: `first`");
    }

    #[test]
    fn children_have_processor_time_on_linux() {
        assert!(!cfg!(target_os = "linux") || children_processor_time().is_some());
    }
}
