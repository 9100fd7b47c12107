//! Names in a plan that the model lacks.

use opscope_capture::{ModelSelection, Plan, Tap};
use opscope_engine::{GraphKind, LoadedModel};
use opscope_store::record::ModelId;

use super::near_names;
use crate::console::report;

/// Operator types with subgraphs, whose operators are not observed.
const WITH_BODIES: [&str; 3] = ["If", "Loop", "Scan"];

/// Warns of names in `tap`'s plan that are missing from the graph that the engine runs.
/// `is_acl` says whether the dump has AscendCL's form, which names models.
pub(super) fn warn(
    tap: &Tap,
    (id, model, graph): (&ModelId, &dyn LoadedModel, GraphKind),
    is_acl: bool,
) {
    let (plan, selected) = (tap.plan(), tap.selected());
    if !selected.is_model_matched && is_acl {
        report!("opscope: warning: {}", other_models(plan, id));
    }
    for text in &selected.unused_rules {
        // The wording is MindSpore's own, which its users search for.
        report!("opscope: warning: [DataDump] Unused Kernel in json: {text}");
    }
    if selected.is_unmarked {
        report!(
            "opscope: warning: `dump_mode` 2 dumps marked operators, and none is marked: name them by `--set-dump`"
        );
    }
    for name in &selected.unmatched {
        let text = no_operator(name, model, graph);
        report!("opscope: warning: {text}");
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
        // Fusion may have removed the operator from this graph although the model has the name.
        GraphKind::Executed => "the graph that ONNX Runtime optimised",
    };
    let operators = model.operators();
    let near = near_names::nearest(
        name,
        operators.iter().map(|operator| operator.op_name.as_str()),
    );
    let near: Vec<String> = near.iter().map(|known| format!("`{known}`")).collect();
    let mut text = format!("{place} has no operator `{name}`");
    if operators
        .iter()
        .any(|operator| WITH_BODIES.contains(&operator.op_type.as_str()))
    {
        text += " outside the bodies of `If`, `Loop` and `Scan`";
    }
    if !near.is_empty() {
        text += &format!("; there is {}", near.join(", "));
    }
    text
}
