//! Selecting operators and floats around quantised values.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use opscope_store::record::{AttributeKind, Operator, SlotSide};

use super::graph_view::GraphView;
use super::selected::SelectedSlots;
use crate::quantised::{FloatView, QuantisedKind, QuantisedPlace, ShowingRule, SlotPosition};
use crate::select::exclude::ModelExclusions;
use crate::{Plan, Purpose};

/// The type of a record that holds dequantised floats.
const DEQUANTISING_TYPE: &str = "DequantizeLinear";
/// How names of quantised values end. Without that, they are the names of the floats.
const QUANTISED_SUFFIXES: [&str; 2] = ["_quantized", "_QuantizeLinear_Output"];
/// Operators that pass on their input reshaped or unchanged.
const VIEWS: &[&str] = &[
    "Flatten",
    "Identity",
    "Reshape",
    "Squeeze",
    "Transpose",
    "Unsqueeze",
];

/// Selects the quantising and dequantising operators next to selected operators, in either
/// direction, directly or through views, and the operators that dequantise a value that a selected
/// operator reads. Returns the tasks of all operators that quantise or dequantise; empty if the
/// plan does not ask for them.
pub(super) fn bring(plan: &Plan, graph: GraphView<'_>, is_selected: &mut [bool]) -> HashSet<u32> {
    if !is_asked_for(plan) {
        return HashSet::new();
    }
    let places = graph.quantised.iter();
    let quantising: HashSet<u32> = places
        .filter(|place| place.kind != QuantisedKind::Computes)
        .map(|place| place.task_id)
        .collect();
    let neighbours = ValueNeighbours::new(graph, &quantising);
    let chosen = is_selected.iter().enumerate();
    // The list holds the operators selected before: those added here must not add more in turn.
    let chosen: Vec<usize> = chosen.filter(|(_, is)| **is).map(|(i, _)| i).collect();
    for start in chosen {
        for near in neighbours.around(start) {
            is_selected[near] = true;
        }
    }
    quantising
}

fn is_asked_for(plan: &Plan) -> bool {
    plan.shows_quantising && plan.purpose == Purpose::Values
}

/// Who produces and who reads which value.
struct ValueNeighbours<'a> {
    operators: &'a [Arc<Operator>],
    quantising: &'a HashSet<u32>,
    producer: HashMap<&'a str, Vec<usize>>,
    readers: HashMap<&'a str, Vec<usize>>,
    /// For each operator that reads quantised values, those that dequantise the same ones.
    siblings: HashMap<u32, Vec<usize>>,
}

impl<'a> ValueNeighbours<'a> {
    fn new(graph: GraphView<'a>, quantising: &'a HashSet<u32>) -> ValueNeighbours<'a> {
        let operators = graph.operators;
        let (mut producer, mut readers) = (HashMap::new(), HashMap::new());
        for (i, operator) in operators.iter().enumerate() {
            note(&mut producer, &operator.outputs, i);
            note(&mut readers, &operator.inputs, i);
        }
        let positions = operators.iter().enumerate();
        let position: HashMap<u32, usize> = positions.map(|(i, op)| (op.task_id, i)).collect();
        let mut dequantising: HashMap<u32, Vec<usize>> = HashMap::new();
        for place in graph.quantised {
            if place.kind == QuantisedKind::Dequantises
                && let Some(&i) = position.get(&place.task_id)
            {
                dequantising.entry(place.value).or_default().push(i);
            }
        }
        let mut siblings: HashMap<u32, Vec<usize>> = HashMap::new();
        for place in graph.quantised {
            let near = dequantising.get(&place.value).into_iter().flatten();
            siblings.entry(place.task_id).or_default().extend(near);
        }
        ValueNeighbours {
            operators,
            quantising,
            producer,
            readers,
            siblings,
        }
    }

    /// Operators around `start` that quantise or dequantise.
    fn around(&self, start: usize) -> Vec<usize> {
        let task_id = self.operators[start].task_id;
        let mut found = self.siblings.get(&task_id).cloned().unwrap_or_default();
        let operators = &self.operators;
        self.walk(
            start,
            |i| values(&self.producer, &operators[i].inputs),
            &mut found,
        );
        self.walk(
            start,
            |i| values(&self.readers, &operators[i].outputs),
            &mut found,
        );
        found
    }

    fn walk(&self, start: usize, step: impl Fn(usize) -> Vec<usize>, found: &mut Vec<usize>) {
        let (mut waiting, mut seen) = (vec![start], HashSet::from([start]));
        while let Some(i) = waiting.pop() {
            for near in step(i) {
                let operator = &self.operators[near];
                let is_quantising = self.quantising.contains(&operator.task_id);
                // Exporters put a reshape or a transpose between an operator and what quantises for
                // it.
                let hands_on = is_quantising || VIEWS.contains(&operator.op_type.as_str());
                if !hands_on || !seen.insert(near) {
                    continue;
                }
                waiting.push(near);
                if is_quantising {
                    found.push(near);
                }
            }
        }
    }
}

fn note<'a>(table: &mut HashMap<&'a str, Vec<usize>>, names: &'a [String], i: usize) {
    for name in names.iter().filter(|name| !name.is_empty()) {
        table.entry(name).or_default().push(i);
    }
}

fn values(table: &HashMap<&str, Vec<usize>>, names: &[String]) -> Vec<usize> {
    let found = names.iter().filter_map(|name| table.get(name.as_str()));
    found.flatten().copied().collect()
}

/// Adds the floats of quantised values that are kept and that nothing in the model dequantises;
/// whether there are any.
pub(super) fn add_views(
    plan: &Plan,
    graph: GraphView<'_>,
    exclusions: &ModelExclusions<'_>,
    kept: &mut HashMap<u32, SelectedSlots>,
) -> bool {
    if !is_asked_for(plan) {
        return false;
    }
    let operators = graph.operators.iter();
    let by_task: HashMap<u32, &Operator> = operators.map(|op| (op.task_id, &**op)).collect();
    let kept_values = names_kept(&by_task, kept);
    let places = graph.quantised.iter();
    let dequantised: HashSet<u32> = places
        .filter(|place| place.kind == QuantisedKind::Dequantises)
        .map(|place| place.value)
        .collect();
    let constants: HashSet<&str> = graph.constants.iter().map(String::as_str).collect();
    let all_outputs = graph.operators.iter().flat_map(|op| &op.outputs);
    let produced: HashSet<&str> = all_outputs
        .map(String::as_str)
        .filter(|name| !constants.contains(name))
        .collect();
    let mut from_producer = HashSet::new();
    let mut views = Vec::new();
    for place in graph.quantised {
        let Some(operator) = by_task.get(&place.task_id) else {
            continue;
        };
        let name = name_at(operator, place.place);
        let is_kept = kept_values.contains(name)
            && !exclusions.whole(operator)
            && !exclusions.slot(operator, place.place.0, place.place.1);
        if !is_kept || place.scale.is_empty() || dequantised.contains(&place.value) {
            continue;
        }
        let showing = match place.place.0 {
            SlotSide::Output => ShowingRule::Always,
            SlotSide::Input if produced.contains(name) => ShowingRule::ByFirstReader,
            SlotSide::Input => ShowingRule::Once,
        };
        let beside = record_of(operator, place);
        if exclusions.whole(&beside) || exclusions.slot(&beside, SlotSide::Output, 0) {
            continue;
        }
        if showing == ShowingRule::Always {
            from_producer.insert(place.value);
        }
        let inputs =
            (0..beside.inputs.len()).filter(|&i| !exclusions.slot(&beside, SlotSide::Input, i));
        views.push(FloatView {
            value: place.value,
            showing,
            elements: place.place,
            scale: place.scale.clone(),
            zero_point: place.zero_point,
            axis: place.axis,
            block_size: place.block_size,
            inputs: inputs.collect(),
            of: operator.op_name.clone(),
            operator: Arc::new(beside),
        });
    }
    views
        .retain(|view| view.showing == ShowingRule::Always || !from_producer.contains(&view.value));
    let has_views = !views.is_empty();
    for view in views {
        // The operator that knows the scale need not be a selected one.
        let entry = kept.entry(view.operator.task_id).or_default();
        // An operator may read a value twice.
        if entry.views.iter().all(|other| other.value != view.value) {
            entry.views.push(view);
        }
    }
    has_views
}

/// Names of the values that are kept anywhere.
fn names_kept<'a>(
    by_task: &HashMap<u32, &'a Operator>,
    kept: &HashMap<u32, SelectedSlots>,
) -> HashSet<&'a str> {
    let mut names = HashSet::new();
    for (task_id, entry) in kept {
        if let Some(operator) = by_task.get(task_id) {
            let inputs = entry.inputs.iter().map(|&i| (SlotSide::Input, i));
            let outputs = entry.outputs.iter().map(|&i| (SlotSide::Output, i));
            names.extend(inputs.chain(outputs).map(|place| name_at(operator, place)));
        }
    }
    names
}

fn name_at(operator: &Operator, (side, i): SlotPosition) -> &str {
    let names = match side {
        SlotSide::Input => &operator.inputs,
        SlotSide::Output => &operator.outputs,
    };
    names.get(i).map_or("", String::as_str)
}

/// Returns the operator for the record of the floats. Names follow ONNX Runtime's quantiser for the
/// models in which it keeps a `DequantizeLinear`.
fn record_of(operator: &Operator, place: &QuantisedPlace) -> Operator {
    let value = name_at(operator, place.place);
    let mut suffixes = QUANTISED_SUFFIXES.iter();
    let float = suffixes.find_map(|suffix| value.strip_suffix(suffix));
    let op_name = format!("{}_DequantizeLinear", float.unwrap_or(value));
    let scales = place.scale.iter().map(|at| name_at(operator, *at));
    let mut inputs = vec![value.to_owned(), scales.collect::<Vec<_>>().join(" * ")];
    inputs.extend(place.zero_point.map(|at| name_at(operator, at).to_owned()));
    let mut attributes = vec![("axis".to_owned(), place.axis.to_string())];
    if place.block_size > 0 {
        attributes.push(("block_size".to_owned(), place.block_size.to_string()));
    }
    Operator {
        task_id: operator.task_id,
        op_type: DEQUANTISING_TYPE.to_owned(),
        outputs: vec![format!("{op_name}_Output")],
        op_name,
        inputs,
        attribute_types: vec![AttributeKind::Int; attributes.len()],
        attributes,
        ..Operator::default()
    }
}
