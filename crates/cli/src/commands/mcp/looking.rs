//! The tool `look`.

use std::ops::Range;
use std::path::{Path, PathBuf};

use opscope_analysis::compare::result::SlotKey;
use opscope_analysis::compare::side::ComparedDump;
use opscope_analysis::default_jobs;
use opscope_analysis::elements::NumpyArray;
use opscope_store::record::SlotSide;
use opscope_tensor::{Numbers, TensorView, stats};
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::{ToolFailure, ToolResult};
use crate::commands::dump::near_names::nearest;
use crate::exit::check_dump;
use crate::format::json_number;

/// Maximum number of listed elements.
const N_WORST: usize = 5;
/// Elements of a slice.
const N_SLICE: usize = 8;

/// Arguments of `look`.
#[derive(Deserialize)]
pub(super) struct LookArguments {
    dump: PathBuf,
    operator: String,
    slot: SlotKey,
    golden: Option<PathBuf>,
    step: Option<u64>,
    #[serde(default)]
    at: Vec<usize>,
}

/// A tensor of a dump.
struct Shown {
    array: NumpyArray,
    op_type: String,
    step: Option<u64>,
}

pub(super) fn look(given: &LookArguments) -> ToolResult {
    let target = shown(given, &given.dump)?;
    let golden = given.golden.as_deref().map(|dump| shown(given, dump));
    let golden = golden.transpose()?;
    let dims = target.array.shape.dims().to_vec();
    let mut answer = json!({
        "op_type": target.op_type,
        "step": target.step,
        "dtype": target.array.dtype.name(),
        "shape": dims,
        "statistics": statistics(&target.array)?,
    });
    let golden = golden.map(|golden| golden.array);
    if let Some(golden) = &golden {
        if golden.shape != target.array.shape {
            answer["golden"] =
                json!({ "shape": golden.shape.dims(), "dtype": golden.dtype.name() });
            answer["next"] =
                json!("the shapes differ: `verdict` names the operator that caused it");
            return Ok(answer);
        }
        answer["golden_statistics"] = statistics(golden)?;
    }
    let pair = Pair {
        target: numbers(&target.array)?,
        golden: golden.as_ref().map(numbers).transpose()?,
        dims,
    };
    let worst = pair.worst();
    answer["worst"] = worst.iter().map(|at| json!(pair.element(*at))).collect();
    let at = pair.position(&given.at)?;
    let at = at.or(worst.first().copied()).unwrap_or(0);
    answer["slice"] = pair.slice(at);
    answer["next"] = json!(match (worst.is_empty(), pair.golden.is_some()) {
        (true, true) => "the tensors are equal: `look` at an output of the next operator",
        (false, true) if given.slot.side == SlotSide::Input => {
            "an input differs: `look` at the operator that makes it; a weight is the cause itself"
        }
        (false, true) => "`look` at its inputs tells an own error from an inherited one; `why`",
        _ => "`golden` compares it with the same tensor of another dump; `at` moves the slice",
    });
    Ok(answer)
}

/// The tensor in a dump.
fn shown(given: &LookArguments, path: &Path) -> Result<Shown, ToolFailure> {
    check_dump(path)?;
    let dump = ComparedDump::open(path, default_jobs());
    let dump = dump.map_err(crate::exit::CommandFailure::from)?;
    let mut runs = dump
        .runs
        .iter()
        .filter(|run| *run.op_name == *given.operator);
    let run = runs
        .clone()
        .find(|run| given.step.is_none() || run.place.step == given.step)
        .ok_or_else(|| match runs.next() {
            Some(run) => ToolFailure::new(
                format!("operator `{}` has no step {:?}", given.operator, given.step),
                &format!("step {:?} has it", run.place.step),
            ),
            None => {
                let names = dump.runs.iter().map(|run| &*run.op_name);
                let near = nearest(&given.operator, names.clone());
                let near = if near.is_empty() {
                    names.take(8).collect()
                } else {
                    near
                };
                ToolFailure::new(
                    format!("`{}` has no operator `{}`", path.display(), given.operator),
                    &format!("such as {}", near.join(", ")),
                )
            }
        })?;
    let slot = run.slot(given.slot.side, given.slot.index).ok_or_else(|| {
        let slots: Vec<String> = run
            .slots
            .iter()
            .map(|slot| slot.key().to_string())
            .collect();
        ToolFailure::new(
            format!("operator `{}` has no {}", given.operator, given.slot),
            &format!("it has {}", slots.join(", ")),
        )
    })?;
    let array = opscope_view::elements_of(slot).map_err(|error| {
        let message = format!("{} of `{}`: {error}", given.slot, given.operator);
        ToolFailure::new(message, "`run` dumps all elements")
    })?;
    Ok(Shown {
        array,
        op_type: run.op_type.to_string(),
        step: run.place.step,
    })
}

fn statistics(array: &NumpyArray) -> ToolResult {
    let view = TensorView::new(array.dtype, &array.shape, array.bytes());
    let found = stats(view).map_err(|error| not_numeric(&error.to_string()))?;
    let counts = &found.counts;
    let mut statistics = json!({
        "min": json_number(found.min),
        "max": json_number(found.max),
        "mean": json_number(found.mean),
        "std": json_number(found.std),
        "l2": json_number(found.l2),
        "elements": counts.n_elements,
    });
    let counts = [
        ("zero", counts.n_zero),
        ("nan", counts.n_nan),
        ("inf", counts.n_pos_inf + counts.n_neg_inf),
    ];
    for (name, n) in counts.into_iter().filter(|(_, n)| *n > 0) {
        statistics[name] = json!(n);
    }
    Ok(statistics)
}

fn numbers(array: &NumpyArray) -> Result<Numbers<'_>, ToolFailure> {
    Numbers::new(array.dtype, array.bytes())
        .ok_or_else(|| not_numeric(&format!("elements of `{}`", array.dtype)))
}

fn json_numbers(numbers: &Numbers<'_>, range: Range<usize>) -> Vec<Value> {
    let values = range.map(|at| numbers.get(at).map_or(Value::Null, json_number));
    values.collect()
}

fn not_numeric(what: &str) -> ToolFailure {
    ToolFailure::new(format!("{what} are not numbers"), "`look` at another slot")
}

/// A tensor and its partner, of one shape.
struct Pair<'a> {
    target: Numbers<'a>,
    golden: Option<Numbers<'a>>,
    dims: Vec<usize>,
}

impl Pair<'_> {
    /// How bad an element is: its distance from golden's, or its magnitude. `None` if it is equal.
    fn badness(&self, at: usize) -> Option<f64> {
        let value = self.target.get(at)?;
        let Some(golden) = &self.golden else {
            // NaN and infinities come first.
            return Some(if value.is_nan() {
                f64::INFINITY
            } else {
                value.abs()
            });
        };
        let golden = golden.get(at)?;
        if value == golden || value.is_nan() && golden.is_nan() {
            return None;
        }
        let distance = (value - golden).abs();
        Some(if distance.is_nan() {
            f64::INFINITY
        } else {
            distance
        })
    }

    /// Positions of the worst elements, the worst first.
    fn worst(&self) -> Vec<usize> {
        let mut worst: Vec<(f64, usize)> = Vec::new();
        for at in 0..self.target.len() {
            let Some(badness) = self.badness(at) else {
                continue;
            };
            if worst.len() == N_WORST && worst.last().is_some_and(|last| badness <= last.0) {
                continue;
            }
            // After equal ones, so that the first of several elements is listed first.
            let place = worst.partition_point(|known| known.0 >= badness);
            worst.insert(place, (badness, at));
            worst.truncate(N_WORST);
        }
        worst.into_iter().map(|(_, at)| at).collect()
    }

    /// An element with its index: `[0, 3] 1.5`, with golden's `[0, 3] 1.5 / 2`.
    fn element(&self, at: usize) -> String {
        let value = self.target.get(at).unwrap_or(f64::NAN);
        let golden = self.golden.as_ref().and_then(|golden| golden.get(at));
        let golden = golden.map_or_else(String::new, |golden| format!(" / {golden}"));
        format!("{:?} {value}{golden}", self.index(at))
    }

    /// The elements around a position along the last axis.
    fn slice(&self, at: usize) -> Value {
        let n_last = self.dims.last().copied().unwrap_or(1).max(1);
        let column = at % n_last;
        let n = N_SLICE.min(n_last);
        let first = column.saturating_sub(n / 2).min(n_last - n);
        let start = at - column + first;
        let range = start..(start + n).min(self.target.len());
        let mut slice = json!({
            "from": self.index(start),
            "target": json_numbers(&self.target, range.clone()),
        });
        if let Some(golden) = &self.golden {
            slice["golden"] = json!(json_numbers(golden, range));
        }
        slice
    }

    fn index(&self, mut at: usize) -> Vec<usize> {
        let mut index: Vec<usize> = Vec::with_capacity(self.dims.len());
        for &dim in self.dims.iter().rev() {
            index.push(at.checked_rem(dim).unwrap_or(0));
            at = at.checked_div(dim).unwrap_or(0);
        }
        index.reverse();
        index
    }

    /// The position of an index, if one is given.
    fn position(&self, index: &[usize]) -> Result<Option<usize>, ToolFailure> {
        if index.is_empty() {
            return Ok(None);
        }
        let is_inside = index.len() == self.dims.len()
            && index.iter().zip(&self.dims).all(|(at, dim)| at < dim);
        if !is_inside {
            return Err(ToolFailure::new(
                format!(
                    "the index {index:?} is outside of the shape {:?}",
                    self.dims
                ),
                "one number below each size",
            ));
        }
        let at = index.iter().zip(&self.dims);
        Ok(Some(at.fold(0, |position, (at, dim)| position * dim + at)))
    }
}
