//! Columns of the tables for slots, operators and skips.

use super::{ShownPlaces, words};
use crate::compare::result::{
    Comparison, MetricId, Metrics, NonFiniteRole, OperatorName, OperatorResult, Skip, SkipSide,
    SlotKey, SlotResult,
};

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ReportCell {
    Nothing,
    Text(String),
    Number(f64),
}

/// Columns of a slot before its numbers.
pub(super) const SLOT_COLUMNS: [&str; 33] = [
    "index",
    "op_type",
    "op_name",
    "golden_op_type",
    "golden_op_name",
    "rank",
    "model",
    "step",
    "repeat",
    "how",
    "likeness",
    "operator_level",
    "inputs_error",
    "outputs_error",
    "added_error",
    "non_finite",
    "cause",
    "suspects",
    "in_verdict",
    "slot",
    "golden_slot",
    "level",
    "rules",
    "evidence",
    "target_dtype",
    "golden_dtype",
    "target_layout",
    "golden_layout",
    "target_shape",
    "golden_shape",
    "layout",
    "reason",
    "message",
];

/// How many of [`SLOT_COLUMNS`] are about the operator; they come first.
pub(super) const N_OPERATOR_COLUMNS: usize = 19;

/// Columns after the numbers.
pub(super) const PATH_COLUMNS: [&str; 2] = ["target_path", "golden_path"];

/// All metrics of slots, and of those of yardsticks if there are any.
pub(super) struct MetricColumns {
    metrics: Vec<MetricId>,
    yardsticks: Vec<MetricId>,
}

impl MetricColumns {
    pub(super) fn for_comparison(comparison: &Comparison) -> MetricColumns {
        // These are columns of every report, even an empty one, so that scripts find them.
        let mut metrics: Vec<MetricId> = MetricId::with_columns().collect();
        let mut yardsticks = Vec::new();
        for slot in comparison
            .operators
            .iter()
            .flat_map(|operator| &operator.slots)
        {
            add(&mut metrics, &slot.metrics);
            if let Some(natural) = &slot.yardstick {
                add(&mut yardsticks, natural);
            }
        }
        MetricColumns {
            metrics,
            yardsticks,
        }
    }

    /// The titles.
    pub(super) fn titles(&self) -> impl Iterator<Item = String> {
        let yardsticks = self
            .yardsticks
            .iter()
            .map(|metric| format!("yardstick_{metric}"));
        let own = self.metrics.iter().map(MetricId::to_string);
        own.chain(yardsticks)
    }

    /// The numbers of a slot.
    pub(super) fn cells(&self, slot: &SlotResult) -> impl Iterator<Item = ReportCell> {
        let own = self
            .metrics
            .iter()
            .map(|metric| number(slot.metrics.get(*metric)));
        let natural = slot.yardstick.as_ref();
        let of_yardstick = self
            .yardsticks
            .iter()
            .map(move |metric| number(natural.and_then(|natural| natural.get(*metric))));
        own.chain(of_yardstick)
    }
}

fn add(known: &mut Vec<MetricId>, metrics: &Metrics) {
    for metric in metrics.names() {
        if !known.contains(metric) {
            known.push(*metric);
        }
    }
}

/// The rows of one comparison's operators and slots.
#[derive(Clone, Copy)]
pub(super) struct OperatorRows {
    /// The operator that the verdict names.
    fault: Option<usize>,
    places: ShownPlaces,
}

impl OperatorRows {
    pub(super) fn for_comparison(comparison: &Comparison) -> OperatorRows {
        OperatorRows {
            fault: comparison.summary.headline().map(|first| first.operator),
            places: ShownPlaces::for_comparison(comparison),
        }
    }

    /// The cells of [`SLOT_COLUMNS`].
    pub(super) fn of_slot(self, operator: &OperatorResult, slot: &SlotResult) -> Vec<ReportCell> {
        let mut cells = self.of_operator(operator);
        let rules: Vec<String> = slot.rules.iter().map(words::rule_words).collect();
        let [target_shape, golden_shape] = [&slot.target, &slot.golden].map(|tensor| {
            let dims: Vec<String> = tensor.shape.iter().map(ToString::to_string).collect();
            text(&dims.join("x"))
        });
        cells.extend([
            slot_cell(slot.slot),
            slot_cell(slot.golden_slot.unwrap_or(slot.slot)),
            text(words::level(slot.level)),
            text(&rules.join("; ")),
            text(slot.evidence.name()),
            text(&slot.target.dtype),
            text(&slot.golden.dtype),
            optional(slot.target.layout.as_ref()),
            optional(slot.golden.layout.as_ref()),
            target_shape,
            golden_shape,
            optional(slot.layout.as_ref()),
            ReportCell::Nothing,
            ReportCell::Nothing,
        ]);
        cells
    }

    /// The first [`N_OPERATOR_COLUMNS`] cells of [`SLOT_COLUMNS`].
    pub(super) fn of_operator(self, operator: &OperatorResult) -> Vec<ReportCell> {
        let suspects: Vec<String> = operator
            .suspects
            .iter()
            .map(|suspect| words::suspect(suspect, self.places))
            .collect();
        // The verdict may name several; a table marks the one that it names first.
        let is_in_verdict = self.fault == Some(operator.index);
        let name = words::name_of(operator);
        let golden = operator.golden.last().cloned().unwrap_or_default();
        let error = operator.error;
        let mut cells = vec![
            ReportCell::Number(operator.index as f64),
            text(&name.op_type),
            text(&joined(&operator.target)),
            text(&golden.op_type),
            text(&joined(&operator.golden)),
        ];
        cells.extend(of_place(&name));
        cells.extend([
            text(operator.how.name()),
            number(operator.likeness),
            text(words::level(operator.level)),
            // Without inputs their error would read as 0, which is a measured one elsewhere.
            number(error.filter(|e| e.has_inputs).map(|error| error.inputs)),
            number(error.map(|error| error.outputs)),
            number(error.map(|error| error.added)),
            operator
                .non_finite
                .as_ref()
                .map_or(ReportCell::Nothing, |role| text(&role_words(role))),
            text(operator.cause.map_or("", words::cause_name)),
            text(&suspects.join("; ")),
            text(if is_in_verdict { "yes" } else { "" }),
        ]);
        cells
    }
}

fn role_words(role: &NonFiniteRole) -> String {
    match role {
        NonFiniteRole::Propagator { from: Some(from) } => {
            format!("{} from {from}", words::role(role))
        }
        role => words::role(role).to_owned(),
    }
}

/// The cells of [`SLOT_COLUMNS`], and of [`PATH_COLUMNS`], of something that was not compared.
pub(super) fn of_skip(skip: &Skip) -> (Vec<ReportCell>, [ReportCell; 2]) {
    let name = skip.operator.clone().unwrap_or_default();
    let (op_type, op_name) = (text(&name.op_type), text(&name.op_name));
    let nothing = || ReportCell::Nothing;
    // A skip of both sides comes with the target's operator, which names the pair.
    let is_of_golden = skip.side == SkipSide::Golden;
    let (of_target, of_golden) = if is_of_golden {
        ([nothing(), nothing()], [op_type, op_name])
    } else {
        ([op_type, op_name], [nothing(), nothing()])
    };
    let mut cells = vec![nothing()];
    cells.extend(of_target.into_iter().chain(of_golden));
    cells.extend(of_place(&name));
    // So that cells stay below their titles.
    cells.resize_with(N_OPERATOR_COLUMNS, nothing);
    let slot = skip.slot.map_or(ReportCell::Nothing, slot_cell);
    cells.extend(if is_of_golden {
        [nothing(), slot]
    } else {
        [slot, nothing()]
    });
    cells.push(text("skip"));
    cells.resize_with(SLOT_COLUMNS.len() - 2, nothing);
    cells.extend([text(skip.reason.name()), text(&skip.message)]);
    let path = optional(skip.path.as_ref());
    let paths = if is_of_golden {
        [nothing(), path]
    } else {
        [path, nothing()]
    };
    (cells, paths)
}

fn of_place(name: &OperatorName) -> [ReportCell; 4] {
    [
        name.rank.map_or(ReportCell::Nothing, |rank| {
            ReportCell::Number(f64::from(rank))
        }),
        optional(name.model.as_ref()),
        name.step
            .map_or(ReportCell::Nothing, |step| ReportCell::Number(step as f64)),
        ReportCell::Number(name.repeat as f64),
    ]
}

/// Names of operators that were fused.
pub(super) fn joined(names: &[OperatorName]) -> String {
    let names: Vec<&str> = names.iter().map(|name| name.op_name.as_str()).collect();
    names.join(" + ")
}

pub(super) fn text(text: &str) -> ReportCell {
    if text.is_empty() {
        ReportCell::Nothing
    } else {
        ReportCell::Text(text.to_owned())
    }
}

/// A slot, under its name.
pub(super) fn slot_cell(slot: SlotKey) -> ReportCell {
    ReportCell::Text(slot.to_string())
}

fn optional(value: Option<&impl AsRef<str>>) -> ReportCell {
    value.map_or(ReportCell::Nothing, |value| text(value.as_ref()))
}

pub(super) fn number(value: Option<f64>) -> ReportCell {
    value.map_or(ReportCell::Nothing, ReportCell::Number)
}
