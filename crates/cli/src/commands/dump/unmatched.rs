//! Names of a plan that a model lacks.

use opscope_capture::{ModelSelection, Plan, Tap};
use opscope_engine::{GraphKind, LoadedModel};
use opscope_store::record::ModelId;

use super::near_names;
use crate::console::report;

/// Types of operators with graphs of their own, whose operators are not shown.
const WITH_BODIES: [&str; 3] = ["If", "Loop", "Scan"];

/// Says what the plan of `tap` names and the model lacks, in the graph that the engine runs.
/// `is_acl` is whether the dump is in AscendCL's form, which names models.
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
        // These are MindSpore's own words, by which its users look for the cause.
        report!("opscope: warning: [DataDump] Unused Kernel in json: {text}");
    }
    if selected.is_unmarked {
        report!(
            "opscope: warning: `dump_mode` 2 dumps what is marked, and nothing is: name operators by `--set-dump`"
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
        // Operators that were fused are gone from this graph, so the model may have the name all
        // the same.
        GraphKind::Executed => "the graph that ONNX Runtime makes of the model",
    };
    let operators = || model.operators().iter();
    let near = near_names::nearest(name, operators().map(|operator| operator.op_name.as_str()));
    let near: Vec<String> = near.iter().map(|known| format!("`{known}`")).collect();
    let mut text = format!("{place} has no operator `{name}`");
    if operators().any(|operator| WITH_BODIES.contains(&operator.op_type.as_str())) {
        text += " outside the bodies of `If`, `Loop` and `Scan`";
    }
    if !near.is_empty() {
        text += &format!("; there is {}", near.join(", "));
    }
    text
}
