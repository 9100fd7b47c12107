//! Report of a dry run.

use std::io::Write;

use opscope_capture::Whole;
use opscope_dump::{Amount, OperatorVolume};
use serde_json::{Value, json};

use super::super::Outcome;
use super::Forecast;
use crate::console::{self, line};
use crate::exit::Failure;
use crate::format;

/// How many of the largest operators are told.
const N_LARGEST: usize = 10;
/// How many stretches of steps that differ are told one by one.
const N_STRETCHES_SHOWN: usize = 20;

impl Forecast {
    /// Returns the files and bytes that belong to no step: graphs, lists of names and the like.
    fn beside(&self) -> (u64, u64) {
        let mut steps = Amount::default();
        self.volume
            .steps
            .values()
            .for_each(|amount| steps += *amount);
        (
            self.total.n_files.saturating_sub(steps.n_files),
            self.total.n_bytes.saturating_sub(steps.n_bytes),
        )
    }

    /// Sums by type of operator, largest first.
    fn by_type(&self) -> Vec<(&str, Amount)> {
        let mut types: Vec<(&str, Amount)> = Vec::new();
        for OperatorVolume { operator, amount } in &self.volume.operators {
            match types.last_mut() {
                Some((op_type, sum)) if *op_type == operator.op_type => *sum += *amount,
                _ => types.push((&operator.op_type, *amount)),
            }
        }
        types.sort_by_key(|(_, amount)| std::cmp::Reverse(amount.n_bytes));
        types
    }

    fn largest(&self) -> Vec<&OperatorVolume> {
        let mut operators: Vec<&OperatorVolume> = self.volume.operators.iter().collect();
        operators.sort_by_key(|volume| std::cmp::Reverse(volume.amount.n_bytes));
        operators.truncate(N_LARGEST);
        operators
    }

    /// Neighbouring steps of which the same amount is written.
    fn stretches(&self) -> Vec<(u64, u64, Amount)> {
        let mut stretches: Vec<(u64, u64, Amount)> = Vec::new();
        for (&step, &amount) in &self.volume.steps {
            match stretches.last_mut() {
                Some((_, last, same)) if *last + 1 == step && *same == amount => *last = step,
                _ => stretches.push((step, step, amount)),
            }
        }
        stretches
    }

    fn print_steps(&self, out: &mut impl Write) -> Result<(), Failure> {
        let stretches = self.stretches();
        for (first, last, amount) in stretches.iter().take(N_STRETCHES_SHOWN) {
            let (label, each) = match first == last {
                true => (format!("step {first}"), ""),
                false => (format!("steps {first}-{last}"), " each"),
            };
            line!(
                out,
                "{label:<18}{}{each}",
                size(amount.n_files, amount.n_bytes)
            )?;
        }
        if stretches.len() > N_STRETCHES_SHOWN {
            writeln!(out, "                  and more; see `--json`")?;
        }
        Ok(())
    }

    /// The table for people.
    pub(in crate::commands::dump) fn print(&self, outcome: &Outcome) -> Result<(), Failure> {
        let mut out = console::out();
        let steps = format::count(outcome.n_steps, "step");
        let (title, engine) = (&outcome.title, outcome.engine.name());
        line!(
            out,
            "dry run           {title} ({engine}, {steps}); nothing is written"
        )?;
        let volume = &self.volume;
        let (n, n_selected) = (volume.n_operators, volume.n_operators_selected);
        line!(out, "operators         {n_selected} of {n} selected")?;
        self.print_steps(&mut out)?;
        let (files, bytes) = self.beside();
        line!(out, "beside            {}", size(files, bytes))?;
        let total = self.total;
        let dirs = match total.n_dirs {
            1 => "1 directory".to_owned(),
            n => format!("{n} directories"),
        };
        line!(
            out,
            "in total          {} in {dirs}",
            size(total.n_files, total.n_bytes)
        )?;
        if total.n_linked > 0 {
            let saved = format::bytes(total.n_bytes_linked);
            line!(
                out,
                "links             {} of the files, which saves {saved}",
                total.n_linked
            )?;
        }
        let whole = self.whole();
        line!(
            out,
            "whole tensors     {}, {}; {}, {}",
            format::count(whole.n_inputs, "input"),
            format::bytes(whole.n_input_bytes),
            format::count(whole.n_outputs, "output"),
            format::bytes(whole.n_output_bytes)
        )?;
        let needed = format::bytes(self.needed.0);
        line!(out, "room              {needed} on disk, {}", self.free())?;
        line!(out, "place             {}", self.place.display())?;
        self.print_tables(&mut out)
    }

    fn print_tables(&self, out: &mut impl Write) -> Result<(), Failure> {
        if self.volume.operators.is_empty() {
            return Ok(());
        }
        let cells = |amount: &Amount| {
            vec![
                amount.n_records.to_string(),
                amount.n_files.to_string(),
                format::bytes(amount.n_bytes),
                format::bytes(amount.whole.n_input_bytes),
                format::bytes(amount.whole.n_output_bytes),
            ]
        };
        let columns = [
            "executions",
            "files",
            "bytes",
            "whole inputs",
            "whole outputs",
        ];
        let rows = self.by_type().into_iter().map(|(op_type, amount)| {
            let mut row = vec![op_type.to_owned()];
            row.extend(cells(&amount));
            row
        });
        let header: Vec<&str> = ["type"].into_iter().chain(columns).collect();
        let table = format::table(&header, &columns, rows.collect()).trim_fmt();
        writeln!(out, "\n{table}")?;
        let rows = self.largest().into_iter().map(|volume| {
            let operator = &volume.operator;
            let mut row = vec![operator.op_type.clone(), operator.op_name.clone()];
            row.extend(cells(&volume.amount));
            row
        });
        let header: Vec<&str> = ["type", "largest operators"]
            .into_iter()
            .chain(columns)
            .collect();
        let table = format::table(&header, &columns, rows.collect()).trim_fmt();
        writeln!(out, "\n{table}")?;
        Ok(())
    }

    fn whole(&self) -> Whole {
        let amounts = self.volume.operators.iter().map(|volume| volume.amount);
        let mut sum = Amount::default();
        amounts.for_each(|amount| sum += amount);
        sum.whole
    }

    /// The same as a JSON object.
    pub(in crate::commands::dump) fn to_json(&self, outcome: &Outcome) -> Value {
        let amount_json = |amount: &Amount| {
            json!({
                "executions": amount.n_records,
                "files": amount.n_files,
                "bytes": amount.n_bytes,
                "input_bytes": amount.whole.n_input_bytes,
                "output_bytes": amount.whole.n_output_bytes,
            })
        };
        let with = |members: Value, amount: &Amount| {
            let mut object = amount_json(amount);
            if let (Some(object), Value::Object(members)) = (object.as_object_mut(), members) {
                object.extend(members);
            }
            object
        };
        let steps = self.volume.steps.iter();
        let steps = steps.map(|(step, amount)| with(json!({ "step": step }), amount));
        let types = self.by_type().into_iter();
        let types = types.map(|(op_type, amount)| with(json!({ "op_type": op_type }), &amount));
        let largest = self.largest().into_iter().map(|volume| {
            let operator = &volume.operator;
            let name = json!({ "op_type": operator.op_type, "op_name": operator.op_name });
            with(name, &volume.amount)
        });
        let (whole, (beside_files, beside_bytes)) = (self.whole(), self.beside());
        let c = &outcome.summary.counters;
        json!({
            "dry_run": true,
            "model": { "name": outcome.title, "graph": outcome.model.graph_name },
            "steps": outcome.n_steps,
            "random_inputs": self.has_random_inputs,
            "place": self.place,
            "operators": {
                "in_model": self.volume.n_operators,
                "selected": self.volume.n_operators_selected,
            },
            "records": { "offered": c.n_offered, "selected": c.n_selected, "whole": c.n_whole },
            "files": self.total.n_files,
            "bytes": self.total.n_bytes,
            "linked": self.total.n_linked,
            "bytes_linked": self.total.n_bytes_linked,
            "directories": self.total.n_dirs,
            "beside": { "files": beside_files, "bytes": beside_bytes },
            "by_side": {
                "input": { "tensors": whole.n_inputs, "bytes": whole.n_input_bytes },
                "output": { "tensors": whole.n_outputs, "bytes": whole.n_output_bytes },
            },
            "by_step": steps.collect::<Value>(),
            "by_type": types.collect::<Value>(),
            "largest": largest.collect::<Value>(),
            "room": {
                "needed_bytes": self.needed.0,
                "free_bytes": self.space.map(|space| space.n_bytes_free),
                "free_files": self.space.and_then(|space| space.n_files_free),
                "fits": self.fits(),
            },
        })
    }
}

/// Files and bytes.
fn size(n_files: u64, n_bytes: u64) -> String {
    format!(
        "{}, {}",
        format::count(n_files, "file"),
        format::bytes(n_bytes)
    )
}
