//! A node's attributes as text, for people.

use tract_onnx::pb::AttributeProto;

/// Most elements of a list that are written out.
const N_ELEMENTS_MAX: usize = 64;
/// Most bytes of a text that are written out.
const N_TEXT_BYTES_MAX: usize = 1024;

/// An attribute's value: numbers as they are, texts in quotes, lists in brackets, tensors and graphs
/// by name.
pub(super) fn text(attribute: &AttributeProto) -> String {
    if let Some(tensor) = &attribute.t {
        return format!("tensor{:?}", tensor.dims);
    }
    if let Some(graph) = &attribute.g {
        return format!("graph `{}` of {} nodes", graph.name, graph.node.len());
    }
    if !attribute.ints.is_empty() {
        return list(&attribute.ints, ToString::to_string);
    }
    if !attribute.floats.is_empty() {
        return list(&attribute.floats, ToString::to_string);
    }
    if !attribute.strings.is_empty() {
        return list(&attribute.strings, |bytes| quoted(bytes));
    }
    // An empty list cannot be told from a zero but by the type, which old files leave out.
    match attribute.r#type {
        1 => attribute.f.to_string(),
        3 => quoted(&attribute.s),
        6..=14 => "[]".to_owned(),
        _ if !attribute.s.is_empty() => quoted(&attribute.s),
        _ if attribute.f != 0.0 => attribute.f.to_string(),
        _ => attribute.i.to_string(),
    }
}

fn list<T>(items: &[T], item: impl Fn(&T) -> String) -> String {
    let shown: Vec<String> = items.iter().take(N_ELEMENTS_MAX).map(item).collect();
    let more = if items.len() > N_ELEMENTS_MAX {
        format!(", … {} in all", items.len())
    } else {
        String::new()
    };
    format!("[{}{more}]", shown.join(", "))
}

fn quoted(bytes: &[u8]) -> String {
    let shown = bytes.get(..N_TEXT_BYTES_MAX).unwrap_or(bytes);
    format!("{:?}", String::from_utf8_lossy(shown))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(attribute: &AttributeProto, expected: &str) {
        assert_eq!(text(attribute), expected);
    }

    #[test]
    fn kinds() {
        let empty = AttributeProto::default;
        check(
            &AttributeProto {
                r#type: 2,
                i: -3,
                ..empty()
            },
            "-3",
        );
        check(
            &AttributeProto {
                r#type: 1,
                f: 0.5,
                ..empty()
            },
            "0.5",
        );
        check(
            &AttributeProto {
                r#type: 7,
                ints: vec![1, 2],
                ..empty()
            },
            "[1, 2]",
        );
        check(
            &AttributeProto {
                r#type: 7,
                ..empty()
            },
            "[]",
        );
        check(
            &AttributeProto {
                r#type: 3,
                s: b"a\"b".to_vec(),
                ..empty()
            },
            "\"a\\\"b\"",
        );
        let many = text(&AttributeProto {
            ints: vec![0; 100],
            ..empty()
        });
        assert!(many.ends_with(", … 100 in all]"), "{many}");
    }
}
