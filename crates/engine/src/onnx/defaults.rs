//! Attributes that ONNX's operators have without naming them.
//!
//! Source: the operator schemas of the `onnx` package; `tests/e2e/onnx_defaults.py` writes the
//! table.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use opscope_store::record::{AttributeKind, DefaultAttribute, Operator};

use super::proto::{is_same_domain, is_standard};

/// Domain, type, first version of the operator set, then name, type and text of an attribute;
/// versions that give the operator none have a line without one.
const TABLE: &str = include_str!("defaults.tsv");

/// By domain and type: the attributes from each version on, in rising order.
type Table = HashMap<(&'static str, &'static str), Vec<(i64, Arc<[DefaultAttribute]>)>>;

/// Adds to an operator its defaults in a model with these operator sets.
pub(super) fn add(operator: &mut Operator, opsets: &[(String, i64)]) {
    let mut opsets = opsets.iter();
    let Some((_, version)) = opsets.find(|(set, _)| is_same_domain(set, &operator.domain)) else {
        return;
    };
    let domain = if is_standard(&operator.domain) {
        ""
    } else {
        operator.domain.as_str()
    };
    let of_type = table().get(&(domain, operator.op_type.as_str()));
    // The newest entry that is not newer than the model's operator set, as ONNX resolves versions.
    let since = of_type.and_then(|all| all.iter().rev().find(|(since, _)| since <= version));
    if let Some((_, attributes)) = since {
        operator.default_attributes = attributes.clone();
    }
}

fn table() -> &'static Table {
    // The table has thousands of lines, and many programs never ask for one.
    static TABLE_BY_TYPE: OnceLock<Table> = OnceLock::new();
    TABLE_BY_TYPE.get_or_init(read)
}

fn read() -> Table {
    type Versions = Vec<(i64, Vec<DefaultAttribute>)>;
    let mut rows: HashMap<(&str, &str), Versions> = HashMap::new();
    for line in TABLE.lines() {
        let cells: Vec<&str> = line.split('\t').collect();
        let [domain, op_type, since, name, r#type, text] = cells[..] else {
            continue;
        };
        let since = since.parse().unwrap_or(i64::MAX);
        let versions = rows.entry((domain, op_type)).or_default();
        if versions.last().is_none_or(|(last, _)| *last != since) {
            versions.push((since, Vec::new()));
        }
        if let Some((_, attributes)) = versions.last_mut().filter(|_| !name.is_empty()) {
            attributes.push(DefaultAttribute {
                name: name.to_owned(),
                text: text.to_owned(),
                r#type: kind(r#type),
            });
        }
    }
    let rows = rows.into_iter().map(|(key, versions)| {
        let versions = versions.into_iter();
        let versions = versions.map(|(since, attributes)| (since, attributes.into()));
        (key, versions.collect())
    });
    rows.collect()
}

fn kind(name: &str) -> AttributeKind {
    match name {
        "float" => AttributeKind::Float,
        "int" => AttributeKind::Int,
        "text" => AttributeKind::Text,
        "ints" => AttributeKind::Ints,
        _ => AttributeKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(domain: &str, op_type: &str, version: i64, expected: &[(&str, &str)]) {
        let mut operator = Operator {
            op_type: op_type.to_owned(),
            domain: domain.to_owned(),
            ..Operator::default()
        };
        add(
            &mut operator,
            &[("ai.onnx".to_owned(), version), ("x".to_owned(), version)],
        );
        let found: Vec<_> = operator
            .all_attributes()
            .map(|(name, text, _)| (name, text))
            .collect();
        assert_eq!(found, expected, "{op_type} {version}");
    }

    #[test]
    fn defaults_follow_the_version() {
        let gemm = [
            ("alpha", "1.0"),
            ("beta", "1.0"),
            ("transA", "0"),
            ("transB", "0"),
        ];
        check("", "Gemm", 17, &gemm);
        check("x", "Gemm", 17, &[]);
        check("", "Nothing", 17, &[]);
        check("", "Softmax", 12, &[("axis", "1")]);
        check("", "Softmax", 13, &[("axis", "-1")]);
        // The attribute became an input.
        check("", "Dropout", 7, &[("ratio", "0.5")]);
        check("", "Dropout", 12, &[]);
        check("", "Relu", 0, &[]);
    }
}
