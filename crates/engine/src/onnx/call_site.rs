//! Where in a program an exporter found a node.
//!
//! PyTorch's newer exporter writes it into the node's metadata. The older one puts the module's
//! path into the node's name, `/blocks.1/norm/Add_2`, which says it already.

use std::sync::Arc;

use opscope_store::record::CallSite;

use super::schema::NodeProto;

const NAME_SCOPES: &str = "pkg.torch.onnx.name_scopes";
const STACK_TRACE: &str = "pkg.torch.onnx.stack_trace";

/// Where PyTorch is installed.
const TORCH_DIRS: [&str; 2] = ["/site-packages/torch/", "/dist-packages/torch/"];

/// Maximum number of bytes of metadata that are read: a trace has a line or two for each call.
const N_BYTES_MAX: usize = 1 << 16;

/// Module and line of a node; `None` if both are unknown.
pub(super) fn call_site(node: &NodeProto) -> Option<CallSite> {
    let module = property(node, NAME_SCOPES).and_then(innermost_module);
    let source = property(node, STACK_TRACE).and_then(innermost_call);
    (module.is_some() || source.is_some()).then(|| CallSite {
        module: Arc::from(module.unwrap_or_default()),
        source: Arc::from(source.unwrap_or_default()),
    })
}

fn property<'a>(node: &'a NodeProto, key: &str) -> Option<&'a str> {
    let mut all = node.metadata_props.iter();
    let found = all.find(|property| property.key == key)?;
    Some(found.value.as_str()).filter(|text| text.len() <= N_BYTES_MAX)
}

/// The last path but one of a list in Python's notation,
/// `['', 'blocks.0', 'blocks.0.norm', 'layer_norm']`: the last is the node's own name.
fn innermost_module(scopes: &str) -> Option<String> {
    let list = scopes.trim().strip_prefix('[')?.strip_suffix(']')?;
    let paths: Vec<&str> = list
        .split(", ")
        .map(|path| path.trim_matches(['\'', '"']))
        .collect();
    let (_, modules) = paths.split_last()?;
    modules
        .last()
        .map(|path| (*path).to_owned())
        .filter(|path| !path.is_empty())
}

/// File, line and function of the last call of a trace, before those inside of PyTorch's own
/// modules.
fn innermost_call(trace: &str) -> Option<String> {
    let calls = trace.lines().rev().filter_map(|line| {
        let rest = line.trim_start().strip_prefix("File \"")?;
        let (file, rest) = rest.split_once("\", line ")?;
        let (number, function) = rest.split_once(", in ")?;
        let number: u64 = number.parse().ok()?;
        Some((file, format!("{file}:{number} {function}")))
    });
    let first = calls.clone().next();
    let found = calls.clone().find(|(file, _)| !is_torch(file)).or(first);
    found.map(|(_, call)| call)
}

fn is_torch(file: &str) -> bool {
    let file = file.replace('\\', "/");
    TORCH_DIRS.iter().any(|dir| file.contains(dir))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::onnx::schema::StringStringEntryProto;

    fn told(properties: &[(&str, &str)]) -> Option<[String; 2]> {
        let property = |(key, value): &(&str, &str)| StringStringEntryProto {
            key: (*key).to_owned(),
            value: (*value).to_owned(),
        };
        let found = call_site(&NodeProto {
            metadata_props: properties.iter().map(property).collect(),
            ..NodeProto::default()
        })?;
        Some([found.module.to_string(), found.source.to_string()])
    }

    #[test]
    fn metadata_tell_module_and_line() {
        let trace = "File \"net.py\", line 116, in forward\n    x = block(x)\n  File \"a b/net.py\", line 61, in \
                     forward\n    q = self.q(x)";
        let scopes = "['', 'blocks.0', 'blocks.0.q', 'linear']";
        let found = told(&[(NAME_SCOPES, scopes), (STACK_TRACE, trace)]);
        assert_eq!(found.unwrap(), ["blocks.0.q", "a b/net.py:61 forward"]);
        let torch =
            "  File \"/lib/site-packages/torch/nn/modules/linear.py\", line 134, in forward";
        let found = told(&[(STACK_TRACE, &format!("{trace}\n{torch}"))]);
        assert_eq!(found.unwrap(), ["", "a b/net.py:61 forward"]);
        // Of the network itself there is no path, and a trace may be cut.
        assert_eq!(told(&[(NAME_SCOPES, "['', 'add']")]), None);
        assert_eq!(told(&[(STACK_TRACE, "File \"net.py\", line")]), None);
        assert_eq!(told(&[(NAME_SCOPES, "nonsense")]), None);
    }
}
