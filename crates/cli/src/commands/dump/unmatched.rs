//! What a plan names and a model lacks.

use opscope_capture::{ModelSelection, Plan, Tap};
use opscope_engine::{GraphKind, LoadedModel};
use opscope_store::record::ModelId;

use super::request::Target;

/// Types of operators with graphs of their own, whose operators are not shown.
const WITH_BODIES: [&str; 3] = ["If", "Loop", "Scan"];

/// Says what the plan of `tap` names and the model lacks, in the graph that the engine runs.
#[expect(clippy::print_stderr, reason = "warnings go to standard error")]
pub(super) fn warn(
    tap: &Tap,
    (id, model, graph): (&ModelId, &dyn LoadedModel, GraphKind),
    target: &Target,
) {
    let (plan, selected) = (tap.plan(), tap.selected());
    if !selected.is_model_matched && matches!(target, Target::Acl(_)) {
        eprintln!("opscope: warning: {}", other_models(plan, id));
    }
    for text in &selected.unused_rules {
        eprintln!("opscope: warning: [DataDump] Unused Kernel in json: {text}");
    }
    for name in &selected.unmatched {
        let text = no_operator(name, model, graph);
        eprintln!("opscope: warning: {text}");
    }
}

fn other_models(plan: &Plan, id: &ModelId) -> String {
    let ModelSelection::Named(rules) = &plan.models else {
        return "the configuration selects no operators of models".to_owned();
    };
    let names: Vec<String> = rules.iter().map(|(name, _)| format!("`{name}`")).collect();
    format!(
        "the configuration selects other models only; this one is `{}` (graph `{}`), selected are {}",
        id.file_stem,
        id.graph_name,
        names.join(", ")
    )
}

fn no_operator(name: &str, model: &dyn LoadedModel, graph: GraphKind) -> String {
    let place = match graph {
        GraphKind::Original => "the model",
        GraphKind::Executed => "the graph that ONNX Runtime makes of the model",
    };
    let lower = name.to_lowercase();
    let operators = || model.operators().iter();
    let alike = operators().map(|operator| &operator.op_name).find(|known| {
        let known = known.to_lowercase();
        known.contains(&lower) || lower.contains(&known)
    });
    let mut text = format!("{place} has no operator `{name}`");
    if operators().any(|operator| WITH_BODIES.contains(&operator.op_type.as_str())) {
        text += " outside the bodies of `If`, `Loop` and `Scan`";
    }
    if let Some(known) = alike {
        text += &format!("; there is `{known}`");
    }
    text
}
