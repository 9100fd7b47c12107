//! ONNX's sets of operators, and the attributes that operators have without naming them.
//!
//! Source: the operator schemas of the `onnx` package; `tests/e2e/onnx_defaults.py` writes the
//! table.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use super::{AttributeKind, DefaultAttribute, Operator};
use crate::file_format::graph_json::STANDARD_DOMAIN;

/// Domain, type, first version of the operator set, then name, type and text of an attribute;
/// versions that give the operator none have a line without one.
const TABLE: &str = include_str!("attribute_defaults.tsv");

/// By domain and type: the attributes from each version on, in rising order.
type Table = HashMap<(&'static str, &'static str), Vec<(i64, Arc<[DefaultAttribute]>)>>;

/// The name of a set of operators; empty for the standard one.
pub fn standard(domain: &str) -> &str {
    if domain == STANDARD_DOMAIN {
        ""
    } else {
        domain
    }
}

/// Whether a domain is that of ONNX's own operators.
pub fn is_standard(domain: &str) -> bool {
    standard(domain).is_empty()
}

/// Whether two domains name the same set of operators.
pub fn is_same_domain(a: &str, b: &str) -> bool {
    standard(a) == standard(b)
}

/// The attributes that operators of a type have without naming them in a version of their set,
/// their texts like those of named ones.
pub fn default_attributes(
    domain: &str,
    op_type: &str,
    version: i64,
) -> Option<Arc<[DefaultAttribute]>> {
    let of_type = table().get(&(standard(domain), op_type))?;
    // The newest entry that is not newer, as ONNX resolves versions.
    let mut newest_first = of_type.iter().rev();
    let (_, attributes) = newest_first.find(|(since, _)| *since <= version)?;
    Some(attributes.clone())
}

impl Operator {
    /// Sets the defaults that it has in a model with these operator sets.
    pub fn set_defaults(&mut self, opsets: &[(String, i64)]) {
        let mut opsets = opsets.iter();
        let of_domain = opsets.find(|(set, _)| is_same_domain(set, &self.domain));
        let known = of_domain
            .and_then(|(_, version)| default_attributes(&self.domain, &self.op_type, *version));
        if let Some(known) = known {
            self.default_attributes = known;
        }
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
            let r#type = kind(r#type);
            let text = match (r#type, text.parse::<f32>()) {
                (AttributeKind::Float, Ok(number)) => number.to_string(),
                (AttributeKind::Text, _) => format!("{text:?}"),
                _ => text.to_owned(),
            };
            attributes.push(DefaultAttribute {
                name: name.to_owned(),
                text,
                r#type,
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
        let found = default_attributes(domain, op_type, version);
        let found: Vec<_> = found
            .iter()
            .flat_map(|all| all.iter())
            .map(|all| (all.name.as_str(), all.text.as_str()))
            .collect();
        assert_eq!(found, expected, "{op_type} {version}");
    }

    #[test]
    fn defaults_follow_the_version() {
        let gemm = [
            ("alpha", "1"),
            ("beta", "1"),
            ("transA", "0"),
            ("transB", "0"),
        ];
        let lrn = [("alpha", "0.0001"), ("beta", "0.75"), ("bias", "1")];
        check("", "Gemm", 17, &gemm);
        check("x", "Gemm", 17, &[]);
        check("", "Nothing", 17, &[]);
        check("ai.onnx", "LRN", 13, &lrn);
        check("", "Softmax", 12, &[("axis", "1")]);
        check("", "Softmax", 13, &[("axis", "-1")]);
        // The attribute became an input.
        check("", "Dropout", 7, &[("ratio", "0.5")]);
        check("", "Dropout", 12, &[]);
        check("", "Relu", 0, &[]);
        check(
            "",
            "GridSample",
            22,
            &[
                ("align_corners", "0"),
                ("mode", "\"linear\""),
                ("padding_mode", "\"zeros\""),
            ],
        );
    }
}
