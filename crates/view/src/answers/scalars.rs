//! A scalar output, such as a loss, over the columns of the heat map.

use opscope_analysis::compare::result::SlotKey;
use opscope_analysis::elements::LastFile;
use opscope_analysis::scalars::{ScalarOutput, default_scalar, scalar_value};
use opscope_store::record::SlotSide;
use serde_json::{Value, json};

use super::steps::{AskedSteps, columns};
use super::{AnswerError, Query, number_or};
use crate::json::known;
use crate::viewed::{ShownSide, ViewedRuns};

/// Maximum number of outputs to choose from, in addition to the selected one.
const N_CHOICES_MAX: usize = 500;

/// The numbers of one column's steps.
#[derive(Clone, Copy, Default)]
struct ScalarCell {
    low: Option<f64>,
    high: Option<f64>,
    has_nan: bool,
    has_inf: bool,
    /// The operator selected with the column.
    id: Option<usize>,
}

impl ScalarCell {
    fn add(&mut self, value: Option<f64>, id: Option<usize>) {
        let was_bad = self.has_nan || self.has_inf;
        if let Some(value) = value {
            self.has_nan |= value.is_nan();
            self.has_inf |= value.is_infinite();
            if value.is_finite() {
                self.low = Some(self.low.map_or(value, |low| low.min(value)));
                self.high = Some(self.high.map_or(value, |high| high.max(value)));
            }
        }
        // The first non-finite number takes precedence over earlier ones.
        let is_bad = self.has_nan || self.has_inf;
        if self.id.is_none() || is_bad && !was_bad {
            self.id = id;
        }
    }

    /// `n` NaN, `i` infinities, `0` finite only, `-` unknown.
    fn mark(&self) -> char {
        match self {
            cell if cell.has_nan => 'n',
            cell if cell.has_inf => 'i',
            cell if cell.low.is_none() => '-',
            _ => '0',
        }
    }
}

pub(super) fn answer(runs: &ViewedRuns, query: &Query) -> Result<Value, AnswerError> {
    let asked = AskedSteps::read(query)?;
    let scalars = runs.target.scalars();
    let chosen = match query.get("scalar") {
        Some(_) => {
            let wanted: usize = number_or(query, "scalar", 0)?;
            Some((
                wanted,
                scalars
                    .get(wanted)
                    .ok_or_else(|| AnswerError::Missing(format!("there is no scalar {wanted}")))?,
            ))
        }
        None => default_scalar(scalars).and_then(|chosen| Some((chosen, scalars.get(chosen)?))),
    };
    let (steps, n_columns) = asked.steps(runs);
    let side =
        |side| chosen.map(|(_, scalar)| cells(runs, scalar, side, asked.rank, (&steps, n_columns)));
    let choices = scalars.iter().enumerate();
    let choices = choices
        .filter(|&(at, _)| at < N_CHOICES_MAX || chosen.is_some_and(|(id, _)| id == at))
        .map(|(at, scalar)| {
            json!({
                "id": at,
                "op_type": scalar.op_type.as_str(),
                "op_name": scalar.op_name.as_str(),
                "slot": format!("out{}", scalar.output),
                "dtype": scalar.dtype.name(),
            })
        });
    let golden = runs.golden.as_ref().and_then(|_| side(ShownSide::Golden));
    Ok(json!({
        "total": scalars.len(),
        "choices": choices.collect::<Vec<_>>(),
        "chosen": chosen.map(|(id, _)| id),
        "columns": columns(&steps, n_columns),
        "target": side(ShownSide::Target).as_deref().map(series),
        "golden": golden.as_deref().map(series),
    }))
}

/// The numbers of a side, by column.
fn cells(
    runs: &ViewedRuns,
    scalar: &ScalarOutput,
    side: ShownSide,
    rank: Option<u32>,
    (steps, n_columns): (&[u64], usize),
) -> Vec<ScalarCell> {
    let mut cells = vec![ScalarCell::default(); n_columns];
    let mut file = LastFile::default();
    let key = SlotKey {
        side: SlotSide::Output,
        index: scalar.output,
    };
    for &index in &scalar.runs {
        let Some(run) = runs.target.dump.runs.get(index) else {
            continue;
        };
        let is_wanted = rank.is_none_or(|rank| run.place.rank == Some(rank));
        let step = run.place.step.filter(|_| is_wanted);
        // The filter may have excluded the whole step.
        let Some(at) = step.and_then(|step| steps.binary_search(&step).ok()) else {
            continue;
        };
        let id = runs.operator_of(index);
        let slot = match side {
            ShownSide::Target => run.slot(key.side, key.index),
            ShownSide::Golden | ShownSide::Reference => id.and_then(|id| runs.slot(id, key, side)),
        };
        // The matched output may have another shape.
        let slot = slot.filter(|slot| slot.n_elements() == Some(1));
        let value = slot.and_then(|slot| scalar_value(slot, &mut file));
        if let Some(cell) = cells.get_mut(at * n_columns / steps.len()) {
            cell.add(value, id);
        }
    }
    cells
}

fn series(cells: &[ScalarCell]) -> Value {
    json!({
        "low": cells.iter().map(|cell| known(cell.low)).collect::<Vec<_>>(),
        "high": cells.iter().map(|cell| known(cell.high)).collect::<Vec<_>>(),
        "marks": cells.iter().map(ScalarCell::mark).collect::<String>(),
        "ids": cells.iter().map(|cell| cell.id).collect::<Vec<_>>(),
    })
}
