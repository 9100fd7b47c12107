//! The table of `--weights`.

use opscope_analysis::compare::report::words;
use opscope_analysis::compare::result::{
    Comparison, ListedParameter, MetricId, Party, SlotResult, TensorStatistic,
};

use crate::format;

const HEADER: [&str; 7] = [
    "parameter",
    "dtype",
    "min",
    "max",
    "mean",
    "rel_l2",
    "difference",
];
const RIGHT: [&str; 1] = ["rel_l2"];
/// Separates the target's value from golden's.
const SLASH: &str = " / ";
/// Stands for a value that is not in the dump.
const UNKNOWN: &str = "-";

/// Dtypes and values of all parameters and buffers, target / golden; `None` if there are none.
pub(super) fn table(comparison: &Comparison) -> Option<String> {
    let parameters = &comparison.parameters;
    if parameters.is_empty() {
        return None;
    }
    let rows = parameters
        .iter()
        .map(|parameter| row(comparison, parameter));
    let table = format::table(&HEADER, &RIGHT, rows.collect());
    let n = format::count(parameters.len() as u64, "parameter and buffer");
    let n = n.replace("parameter and buffers", "parameters and buffers");
    Some(format!("{n}, target / golden:\n{}\n", table.trim_fmt()))
}

fn row(comparison: &Comparison, parameter: &ListedParameter) -> Vec<String> {
    let slot = parameter.pair.and_then(|[operator, slot]| {
        let operator = comparison.operators.get(operator)?;
        operator.slots.get(slot)
    });
    let sides = [&parameter.target, &parameter.golden];
    let dtypes = sides.map(|side| side.as_ref().map(|tensor| tensor.dtype.to_string()));
    let name = match parameter.rank.filter(|_| is_ranked(comparison)) {
        Some(rank) => format!("{} of rank {rank}", words::plain(&parameter.name)),
        None => words::plain(&parameter.name),
    };
    let statistics = [
        TensorStatistic::Min,
        TensorStatistic::Max,
        TensorStatistic::Mean,
    ];
    let [min, max, mean] = statistics
        .map(|statistic| both(slot.map_or([None, None], |slot| numbers(slot, statistic))));
    vec![
        name,
        both(dtypes),
        min,
        max,
        mean,
        slot.and_then(|slot| slot.metrics.get(MetricId::RelL2))
            .map_or(UNKNOWN.to_owned(), words::number),
        difference(parameter, slot),
    ]
}

fn is_ranked(comparison: &Comparison) -> bool {
    let ranks = comparison.parameters.iter().map(|parameter| parameter.rank);
    ranks.clone().min() != ranks.max()
}

/// A statistic of both sides.
fn numbers(slot: &SlotResult, statistic: TensorStatistic) -> [Option<String>; 2] {
    [Party::Target, Party::Golden].map(|party| {
        let value = slot.metrics.get(MetricId::of_tensor(party, statistic));
        value.map(words::number)
    })
}

/// The values of both sides, or one if they are equal.
fn both([target, golden]: [Option<String>; 2]) -> String {
    match (target, golden) {
        (None, None) => UNKNOWN.to_owned(),
        (target, golden) if target == golden => target.unwrap_or_default(),
        (target, golden) => {
            let known = [target, golden].map(|value| value.unwrap_or(UNKNOWN.to_owned()));
            known.join(SLASH)
        }
    }
}

fn difference(parameter: &ListedParameter, slot: Option<&SlotResult>) -> String {
    if let Some(words) = words::parameter_change(parameter) {
        return words::plain(&words);
    }
    match (slot, &parameter.target, &parameter.golden) {
        (_, None, _) => "only golden reads it".to_owned(),
        (_, _, None) => "only the target reads it".to_owned(),
        (None, ..) => "its readers have no partners".to_owned(),
        (Some(slot), ..) => {
            match [MetricId::Count, MetricId::EqualCount].map(|metric| slot.metrics.get(metric)) {
                [Some(n), Some(n_equal)] if n == n_equal => "none".to_owned(),
                [Some(n), Some(n_equal)] => {
                    format!("{} of {n} elements", words::number(n - n_equal))
                }
                _ => UNKNOWN.to_owned(),
            }
        }
    }
}
