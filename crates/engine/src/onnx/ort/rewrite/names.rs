//! Names of nodes by which the library's errors can say which operator they are about.

use std::collections::HashMap;

use super::own_node::PREFIX;
use crate::onnx::proto;
use crate::onnx::schema::{GraphProto, ModelProto};

/// A text of the library's in which names that were given here are replaced by those that `own`
/// knows.
pub(crate) fn with_own_names<'a>(text: &str, own: impl Fn(u32) -> Option<&'a str>) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(PREFIX) {
        let n_digits = after.bytes().take_while(u8::is_ascii_digit).count();
        // Names of taps begin alike and go on with a word; they stay as they are.
        let (digits, behind) = after.split_at(n_digits);
        result.push_str(before);
        match digits.parse().ok().and_then(&own) {
            Some(name) => result.push_str(name),
            None => result.extend([PREFIX, digits]),
        }
        rest = behind;
    }
    result + rest
}

/// Gives every operator of a model a unique name, which identifies it in errors; returns the tasks
/// by name. Names that are already unique stay.
pub(crate) fn name_nodes(model: &mut ModelProto) -> HashMap<String, u32> {
    let Some(graph) = &mut model.graph else {
        return HashMap::new();
    };
    let mut n_by_name: HashMap<String, usize> = HashMap::new();
    for node in proto::all_nodes(graph) {
        *n_by_name.entry(node.name.clone()).or_default() += 1;
    }
    let is_unique = |name: &str| {
        // A model that was written with taps in it may have names like ours.
        let is_free = !name.is_empty() && !name.starts_with(PREFIX);
        is_free && n_by_name.get(name) == Some(&1)
    };
    let mut tasks = HashMap::new();
    name_nodes_of(graph, &is_unique, &mut tasks, &mut 0);
    tasks
}

fn name_nodes_of(
    graph: &mut GraphProto,
    is_unique: &impl Fn(&str) -> bool,
    tasks: &mut HashMap<String, u32>,
    n_tasks: &mut u32,
) {
    for node in &mut graph.node {
        if !is_unique(&node.name) {
            node.name = format!("{PREFIX}{n_tasks}");
        }
        tasks.insert(node.name.clone(), *n_tasks);
        *n_tasks += 1;
        for body in proto::bodies_mut(node) {
            name_nodes_of(body, is_unique, tasks, n_tasks);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_names_are_put_back() {
        let own = |task_id| ["zero", "one"].get(task_id as usize).copied();
        let check = |text: &str, expected: &str| assert_eq!(with_own_names(text, own), expected);
        check("Name:'opscope:1' and opscope:0.", "Name:'one' and zero.");
        check(
            "opscope:2 opscope:tap:0 opscope:",
            "opscope:2 opscope:tap:0 opscope:",
        );
        check("nothing", "nothing");
    }
}
