//! A node's attributes as text, and back.

use std::str::FromStr;

use opscope_store::record::AttributeKind;

use super::schema::AttributeProto;

/// Most elements of a list that are written out.
const N_ELEMENTS_MAX: usize = 64;
/// Most bytes of a text that are written out.
const N_TEXT_BYTES_MAX: usize = 1024;

/// An attribute's value: numbers as they are, texts in quotes, lists in brackets, tensors and
/// graphs by name.
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
    // Only the type, which old files omit, distinguishes an empty list from a zero.
    match attribute.r#type.unwrap_or(0) {
        1 => attribute.f().to_string(),
        3 => quoted(attribute.s()),
        6..=14 => "[]".to_owned(),
        // The type is missing, so the filled field determines it.
        _ if !attribute.s().is_empty() => quoted(attribute.s()),
        _ if attribute.f() != 0.0 => attribute.f().to_string(),
        _ => attribute.i().to_string(),
    }
}

/// Returns the type that the text of an attribute represents; [`AttributeKind::Other`] if the text
/// is incomplete.
pub(super) fn r#type(attribute: &AttributeProto) -> AttributeKind {
    match attribute.r#type.unwrap_or(0) {
        1 if attribute.f().is_finite() => AttributeKind::Float,
        2 => AttributeKind::Int,
        3 if is_plain_text(attribute.s()) => AttributeKind::Text,
        6 if attribute.floats.len() <= N_ELEMENTS_MAX
            && attribute.floats.iter().all(|f| f.is_finite()) =>
        {
            AttributeKind::Floats
        }
        7 if attribute.ints.len() <= N_ELEMENTS_MAX => AttributeKind::Ints,
        _ => AttributeKind::Other,
    }
}

/// The attribute that a text represents; `None` if it is incomplete.
pub(super) fn parse(name: &str, text: &str, r#type: AttributeKind) -> Option<AttributeProto> {
    let attribute = AttributeProto {
        name: name.to_owned(),
        ..AttributeProto::default()
    };
    Some(match r#type {
        AttributeKind::Float => AttributeProto {
            r#type: Some(1),
            f: Some(text.parse().ok()?),
            ..attribute
        },
        AttributeKind::Int => AttributeProto {
            r#type: Some(2),
            i: Some(text.parse().ok()?),
            ..attribute
        },
        AttributeKind::Text => AttributeProto {
            r#type: Some(3),
            s: Some(text.strip_prefix('"')?.strip_suffix('"')?.to_owned().into()),
            ..attribute
        },
        AttributeKind::Floats => AttributeProto {
            r#type: Some(6),
            floats: parse_list(text)?,
            ..attribute
        },
        AttributeKind::Ints => AttributeProto {
            r#type: Some(7),
            ints: parse_list(text)?,
            ..attribute
        },
        AttributeKind::Python | AttributeKind::Other => return None,
    })
}

fn is_plain_text(bytes: &[u8]) -> bool {
    let mut chars = bytes.iter();
    bytes.len() <= N_TEXT_BYTES_MAX
        && chars.all(|byte| (b' '..=b'~').contains(byte) && !b"\"\\'".contains(byte))
}

fn parse_list<T: FromStr>(text: &str) -> Option<Vec<T>> {
    let items = text.strip_prefix('[')?.strip_suffix(']')?.split(", ");
    let items = items.filter(|item| !item.is_empty());
    items.map(|item| item.parse().ok()).collect()
}

fn list<T>(items: &[T], item: impl Fn(&T) -> String) -> String {
    // A lookup table kept as an attribute may have millions of elements.
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
    fn texts_become_attributes_again() {
        let check = |attribute: AttributeProto, expected: AttributeKind| {
            let found = r#type(&attribute);
            assert_eq!(found, expected, "{attribute:?}");
            let again = parse("a", &text(&attribute), found);
            let is_known = expected != AttributeKind::Other;
            assert_eq!(again, Some(attribute).filter(|_| is_known));
        };
        let named = || AttributeProto {
            name: "a".into(),
            ..AttributeProto::default()
        };
        let int = |i| AttributeProto {
            r#type: Some(2),
            i: Some(i),
            ..named()
        };
        let float = |f| AttributeProto {
            r#type: Some(1),
            f: Some(f),
            ..named()
        };
        let string = |s: &[u8]| AttributeProto {
            r#type: Some(3),
            s: Some(s.to_vec().into()),
            ..named()
        };
        let ints = |ints| AttributeProto {
            r#type: Some(7),
            ints,
            ..named()
        };
        let floats = |floats| AttributeProto {
            r#type: Some(6),
            floats,
            ..named()
        };
        check(int(i64::MIN), AttributeKind::Int);
        check(int(0), AttributeKind::Int);
        check(float(1.0), AttributeKind::Float);
        check(float(0.1), AttributeKind::Float);
        check(float(f32::MIN_POSITIVE), AttributeKind::Float);
        check(float(f32::INFINITY), AttributeKind::Other);
        check(string(b"SAME_UPPER"), AttributeKind::Text);
        check(string(b""), AttributeKind::Text);
        check(string(b"a\"b"), AttributeKind::Other);
        check(ints(vec![]), AttributeKind::Ints);
        check(ints(vec![-1, 2]), AttributeKind::Ints);
        check(ints(vec![0; 65]), AttributeKind::Other);
        check(floats(vec![1.0, -0.5]), AttributeKind::Floats);
    }

    #[test]
    fn kinds() {
        let empty = AttributeProto::default;
        check(
            &AttributeProto {
                r#type: Some(2),
                i: Some(-3),
                ..empty()
            },
            "-3",
        );
        check(
            &AttributeProto {
                r#type: Some(1),
                f: Some(0.5),
                ..empty()
            },
            "0.5",
        );
        check(
            &AttributeProto {
                r#type: Some(7),
                ints: vec![1, 2],
                ..empty()
            },
            "[1, 2]",
        );
        check(
            &AttributeProto {
                r#type: Some(7),
                ..empty()
            },
            "[]",
        );
        check(
            &AttributeProto {
                r#type: Some(3),
                s: Some(b"a\"b".to_vec().into()),
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
