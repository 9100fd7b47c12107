//! Surveys a dump in pieces: a large dump of elements takes minutes, and partial results are shown.

use std::collections::HashMap;

use opscope_store::record::SlotSide;

use super::{DumpSurvey, SurveyedExecution, lacks_inputs, surveyed, totals, with_masks};
use crate::compare::side::{ComparedDump, ExecutionSlot, OperatorExecution, RunPlace};
use crate::elements::LastFile;
use crate::job;
use crate::statistics_of;

/// Executions per batch: neighbours are often in one file.
const N_AT_ONCE: usize = 64;
/// Maximum number of executions per piece.
const N_OF_PIECE: usize = 1 << 14;
/// Maximum bytes of elements per piece, for several updates per second.
const BYTES_OF_PIECE: u64 = 1 << 28;

/// A survey in progress.
#[derive(Debug)]
pub struct SurveyProgress {
    survey: DumpSurvey,
    shows_inputs: bool,
    n_bytes: u64,
    /// Executions that an earlier survey covers.
    is_known: Vec<bool>,
}

impl SurveyProgress {
    /// A survey that has not begun.
    pub fn new(dump: &ComparedDump) -> SurveyProgress {
        // In a dump of outputs, a missing input does not mean that the operator has none.
        let mut slots = dump.runs.iter().flat_map(|run| &run.slots);
        SurveyProgress {
            shows_inputs: slots.any(|slot| slot.side == SlotSide::Input),
            survey: DumpSurvey {
                executions: vec![SurveyedExecution::default(); dump.runs.len()],
                ..DumpSurvey::default()
            },
            n_bytes: 0,
            is_known: Vec::new(),
        }
    }

    /// Continues the survey of a dump that had fewer executions before.
    pub fn continued(
        dump: &ComparedDump,
        before: &ComparedDump,
        survey: &DumpSurvey,
    ) -> SurveyProgress {
        let mut progress = SurveyProgress::new(dump);
        let had_inputs = SurveyProgress::new(before).shows_inputs;
        // The first input shows that operators without inputs really have none.
        if had_inputs != progress.shows_inputs {
            return progress;
        }
        let known = before.runs.iter().zip(&survey.executions);
        let known = known.take(survey.n_surveyed);
        // Elements that could not be read may be readable by now.
        let known = known.filter(|(_, found)| found.n_nan.is_some() && found.n_inf.is_some());
        let known: HashMap<_, _> = known.map(|(run, found)| (key(run), found)).collect();
        let executions = progress.survey.executions.iter_mut();
        for (place, run) in executions.zip(&dump.runs) {
            let found = known.get(&key(run)).copied();
            progress.is_known.push(found.is_some());
            *place = found.copied().unwrap_or_default();
        }
        progress
    }

    /// Whether all executions are surveyed.
    pub fn is_done(&self) -> bool {
        self.survey.n_surveyed == self.survey.executions.len()
    }

    /// Bytes of elements read so far.
    pub fn n_bytes(&self) -> u64 {
        self.n_bytes
    }

    /// The survey so far.
    pub fn survey(&self) -> &DumpSurvey {
        &self.survey
    }

    /// Returns the survey.
    pub fn into_survey(self) -> DumpSurvey {
        self.survey
    }

    /// Surveys the next executions of the dump that was passed to the constructor.
    pub fn advance(&mut self, dump: &ComparedDump, n_threads: usize) {
        let first = self.survey.n_surveyed;
        let (mut end, mut n_bytes) = (first, 0_u64);
        for run in dump.runs.iter().skip(first).take(N_OF_PIECE) {
            let read = run.slots.iter().filter(|slot| is_read(slot));
            n_bytes = n_bytes.saturating_add(read.map(|slot| slot.n_bytes).sum());
            end += 1;
            if n_bytes > BYTES_OF_PIECE {
                break;
            }
        }
        let runs = (first..end).filter(|&run| self.is_known.get(run) != Some(&true));
        let runs: Vec<usize> = runs.collect();
        let chunks: Vec<&[usize]> = runs.chunks(N_AT_ONCE).collect();
        let shows_inputs = self.shows_inputs;
        let parts = job::map(&chunks, n_threads, |chunk| {
            let mut file = LastFile::default();
            let mut problems = Vec::new();
            let executions = chunk.iter().map(|&run| {
                let [inputs, outputs] = totals(dump, run, &mut file, &mut problems);
                let is_all_known = shows_inputs && !lacks_inputs(dump, run);
                let surveyed = surveyed(&inputs, &outputs, is_all_known);
                with_masks(surveyed, &outputs, &dump.runs[run].op_type)
            });
            (executions.collect::<Vec<_>>(), problems)
        });
        let mut runs = runs.iter();
        for (executions, problems) in parts {
            // The order matters: `zip` consumes one more of its first iterator than of its second.
            for (execution, &run) in executions.into_iter().zip(runs.by_ref()) {
                self.survey.executions[run] = execution;
            }
            self.survey.problems.extend(problems);
        }
        self.survey.n_surveyed = end;
        self.n_bytes = self.n_bytes.saturating_add(n_bytes);
    }
}

/// Identifies an execution, along with the number of slots.
fn key(run: &OperatorExecution) -> (&RunPlace, &str, Option<u32>, usize, usize) {
    (
        &run.place,
        &run.op_name,
        run.task_id,
        run.repeat,
        run.slots.len(),
    )
}

/// Whether the elements of a slot are read, because the dump has no statistics of it.
fn is_read(slot: &ExecutionSlot) -> bool {
    slot.has_elements && !statistics_of(slot).counts[..3].iter().all(Option::is_some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::side::OperatorExecution;

    #[test]
    fn what_is_known_stays() {
        let run = |name: &str| OperatorExecution {
            op_name: name.into(),
            ..OperatorExecution::default()
        };
        let dump = |names: &[&str]| ComparedDump {
            runs: names.iter().map(|name| run(name)).collect(),
            ..ComparedDump::default()
        };
        let before = dump(&["a", "c"]);
        // Values that a real survey would not produce.
        let found = |n| SurveyedExecution {
            n_nan: Some(n),
            n_inf: Some(0),
            ..SurveyedExecution::default()
        };
        let survey = DumpSurvey {
            executions: vec![found(7), found(8)],
            n_surveyed: 1,
            problems: vec!["of before".to_owned()],
        };
        let now = dump(&["b", "a", "c"]);
        let mut progress = SurveyProgress::continued(&now, &before, &survey);
        while !progress.is_done() {
            progress.advance(&now, 1);
        }
        let survey = progress.into_survey();
        let n_nan = survey.executions.iter().map(|execution| execution.n_nan);
        assert_eq!(n_nan.collect::<Vec<_>>(), [Some(0), Some(7), Some(0)]);
        assert!(survey.problems.is_empty());
    }

    #[test]
    fn pieces_make_a_whole() {
        let dump = ComparedDump {
            runs: vec![OperatorExecution::default(); N_OF_PIECE + 1],
            ..ComparedDump::default()
        };
        let mut progress = SurveyProgress::new(&dump);
        progress.advance(&dump, 2);
        assert_eq!(progress.survey().n_surveyed, N_OF_PIECE);
        assert!(!progress.is_done());
        progress.advance(&dump, 2);
        assert!(progress.is_done());
        let executions = progress.into_survey().executions;
        assert_eq!(executions.len(), N_OF_PIECE + 1);
        assert!(executions.iter().all(|found| found.n_nan == Some(0)));
        assert!(SurveyProgress::new(&ComparedDump::default()).is_done());
    }
}
