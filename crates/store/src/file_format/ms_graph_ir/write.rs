//! Writing a graph.

use super::attribute::write_attribute;
use super::values::{joined, write_device, write_literal, write_type};
use super::{FUNCTIONAL_PREFIX, IN_FILE};
use crate::record::graph::{
    AttributeGroup, GraphAttribute, GraphDescription, GraphNode, GraphParameter, InputOrigin,
    ValueType,
};

/// Operators whose arguments are shown with their kind although they are not kernels.
const TUPLE_OPERATORS: [&str; 2] = ["MakeTuple", "TupleGetItem"];

/// The file of a graph.
pub fn encode(graph: &GraphDescription) -> String {
    let name = &graph.name;
    // MindSpore counts `Return` as well, which is not in the list.
    let n_cnodes = graph.nodes.len() + 1;
    // Every operator node has a separate node for the primitive that it applies.
    let n_nodes = graph.parameters.len() + graph.constants.len() + 2 * n_cnodes;
    let entry_attributes = pairs(&graph.entry_attributes);
    let attributes = pairs(&graph.attributes);
    let parameters: String = (1..)
        .zip(&graph.parameters)
        .map(|(i, parameter)| parameter_line(i, parameter))
        .collect();
    let nodes: String = (0..)
        .zip(&graph.nodes)
        .map(|(i, node)| node_text(graph, i, node))
        .collect();
    let result = result_text(graph);
    let returned = graph.outputs.first().map(|output| match output {
        InputOrigin::Node(index) => graph.nodes.get(*index).map_or("", |n| &n.label).to_owned(),
        other => graph.input_name(other),
    });
    format!(
        "# IR entry: @{name}\n# Total subgraphs: 1\n\n# Attrs:\n{entry_attributes}\n\
         # Total params: {}\n# Params:\n{parameters}\n\
         Node counting information:\nTotal number of nodes: {n_nodes}\n\
         Total number of cnodes: {n_cnodes}\n\n\
         subgraph attr:\n{attributes}subgraph instance: {name} : {:#x}\n\n\
         subgraph @{name}() {{\n{nodes}{result}}}\n\
         # Order:\n#   1: @{name}:{}{{[0]: ValueNode<Primitive> Return, [1]: {}}}\n\n\n",
        graph.parameters.len(),
        graph.instance,
        graph.result.label,
        returned.unwrap_or_default(),
    )
}

fn pairs(pairs: &[(String, String)]) -> String {
    pairs
        .iter()
        .map(|(name, value)| format!("{name}: {value}\n"))
        .collect()
}

fn parameter_line(i: usize, parameter: &GraphParameter) -> String {
    let name = parameter.listed_name.as_ref().unwrap_or(&parameter.name);
    let mut line = format!("%para{i}_{name}: ");
    write_type(&mut line, &parameter.value, false);
    if let Some(shape) = &parameter.input_shape {
        line += &format!(" : [{}]", joined(shape));
    }
    if parameter.has_default {
        line += "  :  has_default";
    }
    if let Some(device) = &parameter.device {
        line += "  :  ";
        write_device(&mut line, device);
    }
    line + &format!("  :  IsWeight: {}\n", parameter.is_weight)
}

fn node_text(graph: &GraphDescription, i: usize, node: &GraphNode) -> String {
    let prefix = if node.is_functional {
        FUNCTIONAL_PREFIX
    } else {
        ""
    };
    let mut text = format!("  %{i}({}) = {prefix}{}(", node.label, node.op_type);
    write_inputs(&mut text, graph, &node.inputs);
    text.push(')');
    if let Some(name) = &node.instance_name {
        text += &format!(" {{instance name: {name}}}");
    }
    write_attributes(&mut text, &node.attributes);
    text += "\n      : (";
    write_input_types(&mut text, graph, &node.inputs);
    text += ") -> (";
    write_type(&mut text, &node.output, false);
    text += ")\n";
    if let Some(kernel) = &node.kernel {
        text += "      : (";
        write_list(&mut text, &kernel.inputs, write_device);
        text += ") -> (";
        write_list(&mut text, &kernel.outputs, write_device);
        text += ")\n";
    }
    if node.kernel.is_some() || TUPLE_OPERATORS.contains(&node.op_type.as_str()) {
        text += &kinds_line(graph, node);
    }
    text += &format!("      # Fullname with scope: ({})\n", node.full_name);
    for source in &node.source {
        if let Some(heading) = &source.heading {
            text += &format!("      # {heading}:\n");
        }
        for line in &source.lines {
            text += &format!("      {IN_FILE}{line}\n");
        }
    }
    text
}

fn result_text(graph: &GraphDescription) -> String {
    let mut text = "  Return(".to_owned();
    write_inputs(&mut text, graph, &graph.outputs);
    text.push(')');
    write_attributes(&mut text, &graph.result.attributes);
    text += "\n      : (";
    write_input_types(&mut text, graph, &graph.outputs);
    text + &format!(
        ")\n      # Fullname with scope: ({})\n",
        graph.result.full_name
    )
}

fn write_inputs(text: &mut String, graph: &GraphDescription, inputs: &[InputOrigin]) {
    write_list(text, inputs, |text, input| match input {
        InputOrigin::Node(index) => *text += &format!("%{index}"),
        InputOrigin::Parameter(index) => {
            let name = graph.parameters.get(*index).map_or("", |p| &p.name);
            *text += &format!("%para{}_{name}", index + 1);
        }
        InputOrigin::Constant(index) => {
            if let Some(constant) = graph.constants.get(*index) {
                write_literal(text, &constant.value);
            }
        }
        InputOrigin::Unknown(unknown) => text.push_str(unknown),
    });
}

fn write_input_types(text: &mut String, graph: &GraphDescription, inputs: &[InputOrigin]) {
    write_list(text, inputs, |text, input| {
        let value = graph.type_of(input).unwrap_or_default();
        write_type(text, &value, matches!(input, InputOrigin::Constant(_)));
    });
}

fn write_attributes(text: &mut String, attributes: &[GraphAttribute]) {
    for (group, title) in [
        (AttributeGroup::Operator, "primitive_attrs"),
        (AttributeGroup::Node, "cnode_attrs"),
        (AttributeGroup::Origin, "cnode_primal_attrs"),
    ] {
        let of_group: Vec<_> = attributes.iter().filter(|a| a.group == group).collect();
        if of_group.is_empty() {
            continue;
        }
        *text += &format!(" {title}: {{");
        write_list(text, &of_group, |text, attribute| {
            *text += &format!("{}: ", attribute.name);
            write_attribute(text, &attribute.value);
        });
        text.push('}');
    }
}

fn kinds_line(graph: &GraphDescription, node: &GraphNode) -> String {
    let kinds = node.inputs.iter().filter_map(|input| {
        let value = graph.type_of(input).unwrap_or_default();
        // Kernels are not given monads.
        let is_hidden = node.kernel.is_some() && matches!(value, ValueType::Monad(_));
        let kind = kind(&value, matches!(input, InputOrigin::Constant(_)));
        (!is_hidden).then_some(kind)
    });
    let kinds: Vec<_> = kinds.collect();
    let output = kind(&node.output, false);
    format!("      : ({}) -> ({output})\n", kinds.join(", "))
}

fn kind(value: &ValueType, is_constant: bool) -> &'static str {
    match value {
        ValueType::Tensor(_) | ValueType::Reference { .. } => "Tensor",
        ValueType::Scalar(_) => "Scalar",
        // MindSpore unfolds a tuple that a node makes into single arguments, but no constant one.
        ValueType::Tuple(_) if is_constant => "Tuple",
        ValueType::Tuple(_) => "TupleUnfold",
        ValueType::Monad(_) | ValueType::Other(_) => "Unknown",
    }
}

fn write_list<T>(text: &mut String, items: &[T], mut write: impl FnMut(&mut String, &T)) {
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            text.push_str(", ");
        }
        write(text, item);
    }
}
