//! Reading a graph.

use std::collections::HashMap;

use super::attribute::parse_attribute;
use super::scan::{closing, find_outside, inside, split};
use super::values::{extents, parse_device, parse_literal, parse_type};
use super::{FUNCTIONAL_PREFIX, IN_FILE};
use crate::FormatError;
use crate::file_format::byte_order_mark;
use crate::record::graph::{
    AttributeGroup, GraphAttribute, GraphDescription, GraphNode, GraphParameter, InputOrigin,
    KernelView, NodeSource,
};

/// How the line with a node's name begins; the second one is that of older versions.
const FULL_NAME: [&str; 2] = ["# Fullname with scope: (", ": full_name_with_scope: ("];
const GROUPS: [(AttributeGroup, &str); 3] = [
    (AttributeGroup::Operator, "primitive_attrs: {"),
    (AttributeGroup::Node, "cnode_attrs: {"),
    (AttributeGroup::Origin, "cnode_primal_attrs: {"),
];

/// Reads a graph from a file's text.
///
/// # Errors
/// [`FormatError`] if the text names no graph, or a node cannot be parsed.
pub fn decode(text: &str) -> Result<GraphDescription, FormatError> {
    let mut reader = GraphIrReader::default();
    let mut offset = byte_order_mark::n_bytes(text.as_bytes());
    let mut lines = byte_order_mark::behind(text)
        .split_inclusive('\n')
        .peekable();
    while let Some(line) = lines.next() {
        let start = offset;
        offset += line.len();
        // Values of tensors can take several lines.
        while starts_node(line) && lines.peek().is_some_and(|next| continues_node(next)) {
            offset += lines.next().map_or(0, str::len);
        }
        let whole = text[start..offset].trim_end_matches(['\n', '\r']);
        reader
            .line(whole)
            .map_err(|expected| error(start, expected, whole))?;
    }
    if reader.graph.name.is_empty() {
        let found = text.lines().next().unwrap_or_default();
        return Err(error(0, "`# IR entry: @` or `subgraph @`", found));
    }
    Ok(reader.graph)
}

fn error(offset: usize, expected: &str, found: &str) -> FormatError {
    let found: String = found.chars().take(60).collect();
    FormatError::new(
        offset as u64,
        expected,
        format!("`{}`", found.escape_debug()),
    )
}

fn starts_node(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("Return(") || (line.starts_with('%') && line.contains(") = "))
}

fn continues_node(line: &str) -> bool {
    let line = line.trim();
    let is_view = [": (", ": full_name", "# ", "Return(", "}"]
        .iter()
        .any(|s| line.starts_with(s));
    !is_view && !starts_node(line) && !line.is_empty()
}

/// Which part of the file the line is in.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum IrFilePart {
    #[default]
    Head,
    Attributes,
    Parameters,
    GraphAttributes,
    Nodes,
    Result,
    Order,
}

#[derive(Default)]
struct GraphIrReader {
    graph: GraphDescription,
    part: IrFilePart,
    /// Nodes by their number in the file.
    by_number: HashMap<u64, usize>,
}

type LineResult = Result<(), &'static str>;

impl GraphIrReader {
    fn line(&mut self, line: &str) -> LineResult {
        let trimmed = line.trim();
        if let Some(part) = self.heading(trimmed) {
            self.part = part;
            return Ok(());
        }
        match self.part {
            IrFilePart::Attributes => self.graph.entry_attributes.extend(pair(trimmed)),
            IrFilePart::GraphAttributes => self.graph_attribute(trimmed),
            IrFilePart::Parameters if trimmed.starts_with("%para") => self.parameter(trimmed)?,
            IrFilePart::Nodes | IrFilePart::Result => self.node_line(trimmed)?,
            // Only this line has the result's label: its own line has `Return` in place of a label.
            IrFilePart::Order if trimmed.contains("> Return, ") => {
                let label = trimmed
                    .split_once('{')
                    .and_then(|(head, _)| head.rsplit(':').next());
                self.graph.result.label = label.unwrap_or_default().to_owned();
            }
            _ => {}
        }
        Ok(())
    }

    /// The part that a line opens or closes.
    fn heading(&mut self, line: &str) -> Option<IrFilePart> {
        let name = line.strip_prefix("# IR entry: @");
        let subgraph = line
            .strip_prefix("subgraph @")
            .and_then(|l| l.split('(').next());
        if let Some(name) = name.or(subgraph) {
            self.graph.name = name.trim().to_owned();
            // The file has the graph's id only at the end of the name: `kernel_graph7`.
            let digits = name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
            self.graph.id = name[digits..].parse().unwrap_or(0);
            self.by_number.clear();
            return Some(if subgraph.is_some() {
                IrFilePart::Nodes
            } else {
                IrFilePart::Head
            });
        }
        if line.starts_with("subgraph instance:") {
            let address = line.rsplit_once("0x").map_or("", |(_, address)| address);
            self.graph.instance = u64::from_str_radix(address, 16).unwrap_or(0);
            return Some(IrFilePart::Head);
        }
        match line {
            "# Attrs:" => Some(IrFilePart::Attributes),
            "# Params:" => Some(IrFilePart::Parameters),
            "subgraph attr:" => Some(IrFilePart::GraphAttributes),
            "# Order:" => Some(IrFilePart::Order),
            "" if matches!(self.part, IrFilePart::Attributes | IrFilePart::Parameters) => {
                Some(IrFilePart::Head)
            }
            "}" if matches!(self.part, IrFilePart::Nodes | IrFilePart::Result) => {
                Some(IrFilePart::Head)
            }
            _ => None,
        }
    }

    fn graph_attribute(&mut self, line: &str) {
        self.graph.attributes.extend(pair(line));
    }

    /// `%para1_x: <…> : [2, 3]  :  <…>  :  IsWeight: false`
    fn parameter(&mut self, line: &str) -> LineResult {
        let expected = "a parameter: `%para1_name: <type>`";
        let (_, rest) = line.split_once('_').ok_or(expected)?;
        let (name, rest) = rest.split_once(": <").ok_or(expected)?;
        // Keys of references may hold anything, so the type ends where the next part begins.
        let end = rest
            .find(">  :  ")
            .into_iter()
            .chain(rest.find("> : ["))
            .min();
        let end = end.unwrap_or_else(|| rest.trim_end().len().saturating_sub(1));
        let kind = rest.get(..end).ok_or(expected)?;
        let rest = rest.get(end + 1..).unwrap_or_default();
        let input_shape = rest.strip_prefix(" : [").and_then(|r| r.split_once(']'));
        let mut parameter = GraphParameter {
            name: name.to_owned(),
            listed_name: None,
            value: parse_type(&format!("<{kind}>")),
            input_shape: input_shape.and_then(|(shape, _)| extents(shape)),
            has_default: false,
            device: None,
            is_weight: false,
        };
        for part in rest.split("  :  ").map(str::trim) {
            match part {
                "has_default" => parameter.has_default = true,
                "IsWeight: true" => parameter.is_weight = true,
                _ => parameter.device = parameter.device.or_else(|| parse_device(part)),
            }
        }
        self.graph.parameters.push(parameter);
        Ok(())
    }

    fn node_line(&mut self, line: &str) -> LineResult {
        if let Some(rest) = line.strip_prefix("Return(") {
            return self.result(rest);
        }
        if line.starts_with('%') {
            return self.node(line);
        }
        let full_name = FULL_NAME.iter().find_map(|start| line.strip_prefix(start));
        if let Some(name) = full_name {
            let name = name.strip_suffix(')').unwrap_or(name).to_owned();
            match (self.part, self.graph.nodes.last_mut()) {
                // The result is not in the list of nodes, so its name must not go to the last of
                // them.
                (IrFilePart::Result, _) => self.graph.result.full_name = name,
                (_, Some(node)) => node.full_name = name,
                (_, None) => {}
            }
            return Ok(());
        }
        // The text after `Return` describes the result and not the last node.
        let Some(node) = self
            .graph
            .nodes
            .last_mut()
            .filter(|_| self.part == IrFilePart::Nodes)
        else {
            return Ok(());
        };
        if let Some(views) = line.strip_prefix(": (") {
            view(node, views);
        } else if let Some(place) = line.strip_prefix(IN_FILE) {
            if node.source.is_empty() {
                node.source.push(NodeSource::default());
            }
            if let Some(source) = node.source.last_mut() {
                source.lines.push(place.to_owned());
            }
        } else if let Some(heading) = inside(line, "# Corresponding ", ":") {
            node.source.push(NodeSource {
                heading: Some(format!("Corresponding {heading}")),
                lines: Vec::new(),
            });
        }
        Ok(())
    }

    /// `%1(label) = Name(arguments) {instance name: n} primitive_attrs: {…} …`
    fn node(&mut self, line: &str) -> LineResult {
        let expected = "a node: `%0(label) = Name(arguments)`";
        let (head, rest) = line.split_once(") = ").ok_or(expected)?;
        let (number, label) = head
            .strip_prefix('%')
            .and_then(|h| h.split_once('('))
            .ok_or(expected)?;
        let number = number.parse().map_err(|_| expected)?;
        let (op_type, arguments) = rest.split_once('(').ok_or(expected)?;
        let (inputs, rest) = self.inputs(arguments).ok_or(expected)?;
        let instance = rest.trim_start().strip_prefix("{instance name: ");
        let instance_name = instance
            .and_then(|r| r.split_once('}'))
            .map(|(n, _)| n.to_owned());
        let plain = op_type.strip_prefix(FUNCTIONAL_PREFIX);
        self.by_number.insert(number, self.graph.nodes.len());
        self.graph.nodes.push(GraphNode {
            label: label.to_owned(),
            op_type: plain.unwrap_or(op_type).to_owned(),
            is_functional: plain.is_some(),
            instance_name,
            inputs,
            attributes: attributes(rest),
            ..GraphNode::default()
        });
        Ok(())
    }

    fn result(&mut self, arguments: &str) -> LineResult {
        self.part = IrFilePart::Result;
        let (outputs, rest) = self.inputs(arguments).ok_or("`Return(%0)`")?;
        self.graph.outputs = outputs;
        self.graph.result.attributes = attributes(rest);
        Ok(())
    }

    /// The arguments up to the closing parenthesis, and what follows that.
    fn inputs<'a>(&mut self, text: &'a str) -> Option<(Vec<InputOrigin>, &'a str)> {
        let mut inputs = Vec::new();
        let mut rest = text;
        while !rest.starts_with(')') {
            // Names of parameters may hold commas, brackets and quotes, so a known name is matched
            // as a whole before anything looks for the argument's end.
            let n = match self.known_parameter(rest) {
                Some(n) => n,
                None => find_outside(rest, &[", ", ")"])?,
            };
            let input = self.input(&rest[..n]);
            inputs.push(input);
            rest = &rest[n..];
            rest = rest.strip_prefix(", ").unwrap_or(rest);
        }
        Some((inputs, &rest[1..]))
    }

    /// Length of a reference to a parameter whose name may hold anything.
    fn known_parameter(&self, text: &str) -> Option<usize> {
        let (number, after) = text.strip_prefix("%para")?.split_once('_')?;
        let index = number.parse::<usize>().ok()?.checked_sub(1)?;
        let name = self.graph.parameters.get(index)?.name.as_str();
        let rest = after.strip_prefix(name).filter(|_| !name.is_empty())?;
        let is_end = rest.starts_with(", ") || rest.starts_with(')');
        is_end.then_some(text.len() - rest.len())
    }

    fn input(&mut self, text: &str) -> InputOrigin {
        if let Some(rest) = text.strip_prefix("%para") {
            let (number, name) = rest.split_once('_').unwrap_or((rest, ""));
            // Parameters are numbered from 1, while nodes are numbered from 0.
            let index = number.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
            if let Some((index, parameter)) =
                index.and_then(|i| Some((i, self.graph.parameters.get_mut(i)?)))
            {
                // MindSpore lists parameters of subgraphs without the name that nodes call them by.
                // Both are kept, so that the file can be written again.
                if parameter.name != name && parameter.listed_name.is_none() {
                    let listed = std::mem::replace(&mut parameter.name, name.to_owned());
                    parameter.listed_name = Some(listed);
                }
                return InputOrigin::Parameter(index);
            }
        }
        let number = text
            .strip_prefix('%')
            .and_then(|number| number.parse().ok());
        let node = number.and_then(|number: u64| self.by_number.get(&number));
        match node {
            Some(&index) => InputOrigin::Node(index),
            // A reference into nowhere costs this input alone; the rest of the graph is still of
            // use.
            None if text.starts_with('%') => InputOrigin::Unknown(text.to_owned()),
            None => self.graph.constant(parse_literal(text)),
        }
    }
}

/// One line of types, the part after `: (`.
fn view(node: &mut GraphNode, text: &str) {
    let Some((inputs, outputs)) = text.strip_suffix(')').and_then(|t| t.split_once(") -> ("))
    else {
        return;
    };
    // This is the line of kinds, `(Tensor) -> (Tensor)`, which contains less than the types.
    if !inputs.starts_with('<') && !outputs.starts_with('<') {
        return;
    }
    let device =
        |text| -> Option<Vec<_>> { split_types(text).into_iter().map(parse_device).collect() };
    // Lines of host types and of device types look alike, and a node may have either or both. Only
    // device types have a layout, so the one that can be read as such is the kernel's.
    match (device(inputs), device(outputs)) {
        (Some(inputs), Some(outputs)) if !outputs.is_empty() => {
            node.kernel = Some(KernelView { inputs, outputs });
        }
        _ => node.output = parse_type(outputs),
    }
}

/// `<…>, <…>` as a list.
fn split_types(text: &str) -> Vec<&str> {
    let mut types = Vec::new();
    let mut rest = text;
    // `split` does not handle angle brackets, and types contain commas.
    while let Some(at) = rest.find(">, <") {
        types.push(&rest[..=at]);
        rest = &rest[at + 3..];
    }
    if !text.is_empty() {
        types.push(rest);
    }
    types
}

fn attributes(text: &str) -> Vec<GraphAttribute> {
    let mut attributes = Vec::new();
    for (group, title) in GROUPS {
        // A value may be a text that looks like a title, so quotes and brackets are skipped.
        let Some(start) = find_outside(text, &[title]) else {
            continue;
        };
        let body = &text[start + title.len() - 1..];
        let Some(end) = closing(body) else { continue };
        for part in split(&body[1..end], ", ") {
            if let Some((name, value)) = part.split_once(": ") {
                attributes.push(GraphAttribute {
                    group,
                    name: name.to_owned(),
                    value: parse_attribute(value),
                });
            }
        }
    }
    attributes
}

fn pair(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once(':')?;
    Some((name.to_owned(), value.trim().to_owned()))
}
