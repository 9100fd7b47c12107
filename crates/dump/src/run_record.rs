//! Describing a plan and the outcome of a session for the record of a run.

use std::collections::BTreeMap;

use jiff::Timestamp;
use opscope_capture::{
    FirstNonFinite, ModelSelection, OperatorSelection, Plan, Purpose, Sides, Summary,
};
use opscope_store::file_format::run_json::{NonFiniteFinding, OverflowFinding, RunRecord};

/// The time as records of runs have it: RFC 3339, UTC, with microseconds.
pub fn now() -> String {
    format!("{:.6}", Timestamp::now())
}

/// The plan in a few words, without the names of operators.
pub fn plan_in_short(plan: &Plan) -> BTreeMap<String, String> {
    let purpose = match plan.purpose {
        Purpose::Values => "values",
        Purpose::Overflow => "overflow",
        Purpose::NonFinite => "non_finite",
        Purpose::Failures(_) => "failures",
        Purpose::Watch => "watch",
    };
    let sides = match plan.sides {
        Sides::Inputs => "inputs",
        Sides::Outputs => "outputs",
        Sides::Both => "both",
    };
    let (models, operators) = match &plan.models {
        ModelSelection::None => ("none".to_owned(), "none".to_owned()),
        ModelSelection::Every(operators) => ("every".to_owned(), in_short(operators)),
        ModelSelection::Named(models) => {
            let operators = models.iter().map(|(_, operators)| in_short(operators));
            let operators: Vec<String> = operators.collect();
            (format!("{} named", models.len()), operators.join("; "))
        }
    };
    let steps = plan.steps.ranges().map_or_else(
        || "every".to_owned(),
        |ranges| {
            let texts = ranges.iter().map(|r| format!("{}-{}", r.start(), r.end()));
            texts.collect::<Vec<_>>().join(", ")
        },
    );
    let mut words = BTreeMap::new();
    let mut put = |key: &str, value: String| words.insert(key.to_owned(), value);
    put("purpose", purpose.to_owned());
    put("sides", sides.to_owned());
    put("models", models);
    put("operators", operators);
    put("steps", steps);
    if !plan.excluded.is_empty() {
        put("excluded", plan.excluded.len().to_string());
    }
    if plan.shows_quantising {
        put("quantising", "shown".to_owned());
    }
    words
}

fn in_short(operators: &OperatorSelection) -> String {
    if operators.is_every() {
        return "every".to_owned();
    }
    let mut parts = Vec::new();
    if let Some(names) = &operators.names {
        parts.push(format!("{} named", names.len()));
    }
    if !operators.ranges.is_empty() {
        parts.push(format!("{} ranges", operators.ranges.len()));
    }
    if operators.kernels.is_some() {
        parts.push("by rules".to_owned());
    }
    parts.join(", ")
}

/// Adds what the session did to the record: counts are summed up, of findings the first stays.
pub fn add_summary(record: &mut RunRecord, summary: &Summary) {
    let dropped = ("n_dropped", summary.counters.n_dropped);
    for (name, n) in summary.counters.fields().into_iter().chain([dropped]) {
        let sum = record.counters.entry(name.to_owned()).or_default();
        *sum = sum.saturating_add(n);
    }
    if let (None, Some(error)) = (&record.first_error, &summary.first_error) {
        record.first_error = Some(chain(error));
    }
    if let (None, Some(first)) = (&record.first_non_finite, &summary.first_non_finite) {
        record.first_non_finite = Some(non_finite_finding(first));
    }
    let deliberate = &summary.deliberate_infinities;
    if deliberate.n_operators > 0 {
        let told = record.deliberate_infinities.get_or_insert_default();
        told.n_operators = told.n_operators.saturating_add(deliberate.n_operators);
        if let (None, Some(first)) = (&told.first, &deliberate.first) {
            told.first = Some(non_finite_finding(first));
        }
    }
    if let (None, Some(first)) = (&record.first_overflow, &summary.first_overflow) {
        record.first_overflow = Some(OverflowFinding {
            step: first.step,
            task_id: first.task_id,
            op_type: first.op_type.clone(),
            op_name: first.op_name.clone(),
            status: first.status,
        });
    }
}

/// The same as records of runs have it.
pub fn non_finite_finding(first: &FirstNonFinite) -> NonFiniteFinding {
    NonFiniteFinding {
        step: first.step,
        graph: first.graph.clone(),
        task_id: first.task_id,
        op_type: first.op_type.clone(),
        op_name: first.op_name.clone(),
        module: first.call_site.module.to_string(),
        source: first.call_site.source.to_string(),
        slot: format!("{}.{}", first.side.name(), first.index),
        element: first.element.map(|element| element as u64),
        value: match first.value {
            value if value.is_nan() => "NaN",
            value if value > 0.0 => "Inf",
            _ => "-Inf",
        }
        .to_owned(),
        origin: first.origin.name().to_owned(),
        nan: first.counts.n_nan,
        pos_inf: first.counts.n_pos_inf,
        neg_inf: first.counts.n_neg_inf,
    }
}

/// An error with its causes on one line.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let texts: Vec<String> = causes.map(ToString::to_string).collect();
    texts.join(": ")
}

#[cfg(test)]
mod tests {
    use opscope_capture::Steps;

    use super::*;

    #[test]
    fn plans_in_short() {
        let plan = Plan {
            models: ModelSelection::Named(vec![(
                "net".into(),
                OperatorSelection::named(["a", "b"]),
            )]),
            steps: Steps::in_ranges(vec![0..=0, 5..=7]),
            ..Plan::everything()
        };
        let short = plan_in_short(&plan);
        for (key, value) in [
            ("purpose", "values"),
            ("sides", "both"),
            ("models", "1 named"),
            ("operators", "2 named"),
            ("steps", "0-0, 5-7"),
        ] {
            assert_eq!(short[key], value, "{key}");
        }
        assert_eq!(plan_in_short(&Plan::nothing())["models"], "none");
        assert!(!plan_in_short(&plan).contains_key("quantising"));
        let plan = Plan {
            shows_quantising: true,
            ..plan
        };
        assert_eq!(plan_in_short(&plan)["quantising"], "shown");
    }

    #[test]
    fn times_have_microseconds() {
        let now = now();
        assert_eq!(now.len(), "2024-01-02T03:04:05.000006Z".len(), "{now}");
        assert!(now.ends_with('Z'));
    }
}
