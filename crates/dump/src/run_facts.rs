//! The time and the plan, as run records store them.

use std::collections::BTreeMap;

use opscope_capture::{ModelSelection, OperatorSelection, Plan, Purpose, SlotSides};
use opscope_store::clock;

/// The time as records of runs have it: RFC 3339, UTC, with microseconds.
pub fn now() -> String {
    format!("{:.6}", clock::timestamp())
}

/// The plan in a few words, without the names of operators.
pub(crate) fn plan_in_short(plan: &Plan) -> BTreeMap<String, String> {
    let purpose = match plan.purpose {
        Purpose::Values => "values",
        Purpose::Overflow => "overflow",
        Purpose::NonFinite => "non_finite",
        Purpose::Failures(_) => "failures",
        Purpose::Watch => "watch",
    };
    let sides = match plan.sides {
        SlotSides::Inputs => "inputs",
        SlotSides::Outputs => "outputs",
        SlotSides::Both => "both",
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
    let words = [
        ("purpose", purpose.to_owned()),
        ("sides", sides.to_owned()),
        ("models", models),
        ("operators", operators),
        ("steps", steps),
    ];
    let mut words = BTreeMap::from(words.map(|(key, value)| (key.to_owned(), value)));
    if !plan.excluded.is_empty() {
        words.insert("excluded".to_owned(), plan.excluded.len().to_string());
    }
    if plan.shows_quantising {
        words.insert("quantising".to_owned(), "shown".to_owned());
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
