//! Runs one side several times and finds operators whose results vary.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use opscope_analysis::compare::side::ComparedDump;
use opscope_capture::{SessionOptions, Sink};
use opscope_diff::{
    ComparingSink, GoldenSlots, StreamedOperator, TargetStore, WatchOptions, run_steps,
};
use opscope_dump::held::{HeldDump, HeldRoom, describe};
use opscope_store::record::SlotSide;
use serde_json::{Value, json};

use super::DiffArguments;
use super::inputs::{Side, SideInputs};
use super::side::{self, ModelSide, SidePath};
use crate::commands::dump::run_model::{is_signalled, stop_on_signal};
use crate::console::{self, line};
use crate::exit::{CommandFailure, CommandResult, FOUND, INTERRUPTED, PARTIAL, UNREADABLE, USAGE};
use crate::{format, progress};

/// Version of the JSON.
const VERSION: u32 = 1;

/// An operator whose results vary between runs.
struct VaryingOperator {
    first: StreamedOperator,
    /// Runs in which its outputs changed though its inputs were the same as in the first run.
    n_own: u32,
    /// Runs in which its inputs changed.
    n_inherited: u32,
    /// The largest relative distance of an output.
    rel_l2: f64,
}

impl VaryingOperator {
    fn new(first: &StreamedOperator) -> VaryingOperator {
        VaryingOperator {
            first: first.clone(),
            n_own: 0,
            n_inherited: 0,
            rel_l2: 0.0,
        }
    }

    fn note(&mut self, seen: &StreamedOperator) {
        let outputs = seen
            .slots
            .iter()
            .filter(|slot| slot.side == SlotSide::Output);
        let has_inputs = seen.slots.iter().any(|slot| slot.side == SlotSide::Input);
        self.n_inherited += u32::from(has_inputs);
        self.n_own += u32::from(!has_inputs && outputs.clone().next().is_some());
        // A distance of NaN exceeds all others.
        self.rel_l2 = outputs.fold(self.rel_l2, |most, slot| {
            if slot.rel_l2.is_nan() {
                f64::INFINITY
            } else {
                most.max(slot.rel_l2)
            }
        });
    }
}

/// Findings of repeated runs.
#[derive(Default)]
struct RepeatedRuns {
    n_runs: u32,
    n_operators: usize,
    /// Ordered by step and time of the first run, which is execution order.
    varying: BTreeMap<(u64, u32, String), VaryingOperator>,
    /// Operators with a tensor that could not be compared with the first run.
    n_uncompared: usize,
}

pub(super) fn run(arguments: &DiffArguments, side: &SidePath, n_runs: u32) -> CommandResult {
    let json_file = arguments.options.only_json("--repeat")?;
    let SidePath::Model(path) = side else {
        let message = format!(
            "`{}` is a dump, but `--repeat` runs a model",
            side.path().display()
        );
        return Err(CommandFailure::message(USAGE, message));
    };
    let threads = arguments.repeat_threads.clone();
    let mut runs = RepeatedRuns {
        n_runs,
        ..RepeatedRuns::default()
    };
    let mut golden: Option<(Arc<ComparedDump>, SideInputs)> = None;
    let mut n_left = n_runs;
    let mut nth = 0;
    while n_left > 0 {
        let n_threads = match &threads[..] {
            [] => arguments.n_threads(),
            list => list[nth % list.len()].into(),
        };
        // Only the first session reports its engine.
        let is_quiet = nth > 0 || arguments.is_quiet();
        let engine = (&arguments.engine, &arguments.graph);
        let engine = Arc::new(side::engine("engine", engine, n_threads, is_quiet)?);
        let mut model = ModelSide::load(path, &engine, None)?;
        let n_done = match &golden {
            None => {
                golden = Some(first_run(arguments, &mut model)?);
                1
            }
            // Two runs in each session: some things vary per run, others per session.
            Some((golden, inputs)) => {
                let n_runs = n_left.min(2);
                runs.add(&mut model, golden, (inputs, n_runs))?;
                n_runs
            }
        };
        n_left -= n_done;
        nth += 1;
    }
    // From the first run, because others may take another branch.
    runs.n_operators = golden.map_or(0, |(golden, _)| golden.runs.len());
    if arguments.options.has_words() {
        runs.print(path)?;
    }
    if let Some(json_file) = json_file {
        arguments
            .options
            .write_json(&runs.to_json(path), json_file)?;
    }
    if runs.varying.is_empty() {
        return match runs.n_uncompared {
            0 => Ok(()),
            _ => Err(CommandFailure::silent(PARTIAL)),
        };
    }
    Err(CommandFailure::silent(FOUND))
}

/// The run that all others are compared with.
fn first_run(
    arguments: &DiffArguments,
    model: &mut ModelSide,
) -> CommandResult<(Arc<ComparedDump>, SideInputs)> {
    let inputs = SideInputs::made(arguments, model.model.signature(), None)?;
    let room = Arc::new(HeldRoom::new(arguments.memory_bytes()));
    let held = Arc::new(HeldDump::new(room));
    run_again(model, held.clone(), (&inputs, 1))?;
    let graph = describe(&*model.model, &model.id);
    let graph = graph.map_err(|error| CommandFailure::new(UNREADABLE, error))?;
    let dump = ComparedDump::from_index(&model.label, held.take_index(vec![graph]));
    Ok((Arc::new(dump), inputs))
}

/// Runs each step of a model `n_runs` times in a row; returns the number of operator executions.
fn run_again(
    model: &mut ModelSide,
    sink: Arc<dyn Sink>,
    (inputs, n_runs): (&SideInputs, u32),
) -> CommandResult<u64> {
    let id = model.id.clone();
    let n_runs = n_runs as usize;
    let steps = inputs.steps.iter();
    // All runs of a step share its number, so that each matches the first run's execution.
    let steps: Vec<u64> = steps.flat_map(|&step| vec![step; n_runs]).collect();
    let outcome = progress::with_spinner("running", || {
        run_steps(
            (&mut *model.model, &id),
            sink,
            SessionOptions::default(),
            &steps,
            |nth| inputs.get(Side::Target, nth / n_runs),
            |session| drop(stop_on_signal(session.stop_flag())),
        )
    })?;
    if outcome.is_stopped || is_signalled() {
        return Err(CommandFailure::silent(INTERRUPTED));
    }
    Ok(outcome.summary.counters.n_operators_written)
}

impl RepeatedRuns {
    /// Runs the model again and records every difference from the first run.
    fn add(
        &mut self,
        model: &mut ModelSide,
        golden: &Arc<ComparedDump>,
        (inputs, n_runs): (&SideInputs, u32),
    ) -> CommandResult {
        let options = WatchOptions {
            notes_operators: true,
            ..WatchOptions::default()
        };
        let slots = GoldenSlots::new(golden.clone());
        let sink = Arc::new(ComparingSink::new(slots, TargetStore::Nothing, options));
        let n_executions = run_again(model, sink.clone(), (inputs, n_runs))?;
        for seen in sink.take_operators() {
            self.n_uncompared += usize::from(!seen.is_whole);
            if seen.slots.is_empty() {
                continue;
            }
            let operator = &seen.operator;
            // A task alone does not identify a loop iteration; names do.
            let key = (seen.step, operator.task_id, operator.op_name.clone());
            let varying = self.varying.entry(key);
            varying
                .or_insert_with(|| VaryingOperator::new(&seen))
                .note(&seen);
        }
        // An operator that did not run again, as in another branch, cannot be compared.
        let n_expected = golden.runs.len() as u64 * u64::from(n_runs);
        let n_missing = n_expected.saturating_sub(n_executions);
        self.n_uncompared += usize::try_from(n_missing).unwrap_or(usize::MAX);
        Ok(())
    }

    /// Operators that vary by themselves, in execution order.
    fn own(&self) -> impl Iterator<Item = &VaryingOperator> {
        self.varying.values().filter(|slot| slot.n_own > 0)
    }

    fn print(&self, path: &Path) -> CommandResult {
        let mut out = console::out();
        let (n_runs, path) = (self.n_runs, path.display());
        let n_operators = format::count(self.n_operators as u64, "operator");
        match self.own().next() {
            // Some tensors are not known to be the same.
            None if self.varying.is_empty() && self.n_uncompared > 0 => line!(
                out,
                "SKIP: everything comparable in `{path}` is the same in all {n_runs} runs, bit for bit"
            )?,
            None if self.varying.is_empty() => line!(
                out,
                "PASS: `{path}` is the same in all {n_runs} runs, bit for bit: {n_operators}"
            )?,
            None => line!(
                out,
                "FAIL: `{path}` varies over {n_runs} runs, but no observed operator \
                 is the origin: its inputs vary"
            )?,
            Some(first) => {
                let operator = &first.first.operator;
                line!(
                    out,
                    "FAIL: {} `{}` varies for the same inputs in {} of {} runs",
                    operator.op_type,
                    operator.op_name,
                    first.n_own,
                    n_runs - 1
                )?;
            }
        }
        if !self.varying.is_empty() {
            let header = [
                "operator",
                "type",
                "step",
                "same inputs",
                "other inputs",
                "rel_l2",
                "",
            ];
            let rows = self.varying.values().map(row).collect();
            writeln!(out, "{}", format::table(&header, &header[2..6], rows))?;
            let n_own = self.own().count() as u64;
            line!(
                out,
                "{} of {n_operators} in {n_runs} runs: {n_own} by themselves, the others from what \
                 they read",
                self.varying.len()
            )?;
        }
        if self.n_uncompared > 0 {
            let n = format::count(self.n_uncompared as u64, "execution");
            line!(
                out,
                "not compared: {n} with tensors that have no partner in the first run"
            )?;
        }
        Ok(())
    }

    fn to_json(&self, path: &Path) -> Value {
        let operators: Vec<Value> = self
            .varying
            .values()
            .map(|slot| {
                json!({
                    "op_type": slot.first.operator.op_type,
                    "op_name": slot.first.operator.op_name,
                    "step": slot.first.step,
                    "n_runs_same_inputs": slot.n_own,
                    "n_runs_other_inputs": slot.n_inherited,
                    "rel_l2": format::json_number(slot.rel_l2),
                })
            })
            .collect();
        json!({
            "version": VERSION,
            "model": path.display().to_string(),
            "n_runs": self.n_runs,
            "n_operators": self.n_operators,
            "n_not_compared": self.n_uncompared,
            "operators": operators,
        })
    }
}

fn row(one: &VaryingOperator) -> Vec<String> {
    let operator = &one.first.operator;
    let remark = if one.n_own > 0 { "itself" } else { "inherits" };
    vec![
        operator.op_name.clone(),
        operator.op_type.clone(),
        one.first.step.to_string(),
        one.n_own.to_string(),
        one.n_inherited.to_string(),
        format!("{:.3e}", one.rel_l2),
        remark.to_owned(),
    ]
}
