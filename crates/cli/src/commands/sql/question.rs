//! A query as parsed by DuckDB: the tables, views and columns that it uses.
//!
//! Names are collected from anywhere in the tree, including string literals: an unused table costs
//! little, whereas a missing one would be an error.

use std::collections::HashSet;

use opscope_tables::{
    COMPARE_TABLE, FUNCTIONS, NamedQuery, RangeComparison, RangeCondition, TABLES, VIEWS,
};
use serde_json::Value;

use crate::exit::{CommandFailure, CommandResult, USAGE};

/// Columns that are empty without statistics. Digests are not among them, because tools may write
/// only those.
const STATISTICS: &[&str] = &[
    "n_nan",
    "n_pos_inf",
    "n_neg_inf",
    "n_zero",
    "n_neg_zero",
    "n_negative",
    "n_subnormal",
    "n_saturated",
    "min",
    "max",
    "sum",
    "mean",
    "std",
    "l1",
    "l2",
    "input_nan",
    "input_inf",
    "output_nan",
    "output_inf",
];
/// Tables and views whose rows depend on statistics.
const BY_STATISTICS: &[&str] = &["events", "first_nan", "first_made_non_finite", "worst"];
/// Tables and views with columns of statistics.
const WITH_STATISTICS: &[&str] = &[
    "tensors",
    "operators",
    "ordered_pairs",
    "pairs",
    "changed",
    "first_changed",
];
/// The parser's names of constructs that use all columns: `*`, a natural join, and `summarize`.
const ALL_COLUMNS: &[&str] = &["star", "natural", "summary"];
/// The parser's names of row sources.
const ROW_SOURCES: &[&str] = &["BASE_TABLE", "TABLE_FUNCTION", "SHOW_REF"];
/// The parser's names of integer types that compare with a 64-bit cell without a cast.
const INTEGERS: &[&str] = &["TINYINT", "SMALLINT", "INTEGER", "BIGINT"];

/// Functions that take a query as text.
const INNER_QUESTIONS: &[&str] = &["query", "query_table", "json_execute_serialized_sql"];

/// A query.
pub(super) struct Question {
    /// All texts of the tree in lower case; `None` if the tree is too deep to parse.
    names: Option<HashSet<String>>,
    /// The tables and views that the query needs.
    relations: HashSet<&'static str>,
    /// Conditions that every row of `tensors` in the answer meets.
    conditions: Vec<RangeCondition>,
}

impl Question {
    /// Reads the tree of DuckDB's `json_serialize_sql`.
    ///
    /// # Errors
    ///
    /// A usage error if the query is not understood, or is not a single read-only statement.
    pub(super) fn from_tree(tree: &Value) -> CommandResult<Question> {
        if tree["error_type"] == "parser" {
            let message = tree["error_message"].as_str().unwrap_or("not understood");
            return Err(CommandFailure::message(USAGE, message));
        }
        let n_statements = tree["statements"].as_array().map_or(0, Vec::len);
        if tree["error"] == true || n_statements != 1 {
            let message = "expected a single read-only statement, such as `select` or `describe`";
            return Err(CommandFailure::message(USAGE, message));
        }
        let mut names = HashSet::new();
        add_texts(tree, &mut names);
        // The query inside such a function is a string here.
        if INNER_QUESTIONS.iter().any(|name| names.contains(*name)) {
            return Ok(Question::unknown());
        }
        if takes_whole_rows(tree) {
            names.insert(ALL_COLUMNS[0].to_owned());
        }
        let relations = relations(&names);
        let conditions = conditions(tree);
        Ok(Question {
            names: Some(names),
            relations,
            conditions,
        })
    }

    /// An unknown query, which may need everything.
    pub(super) fn unknown() -> Question {
        Question {
            names: None,
            relations: known_relations().collect(),
            conditions: Vec::new(),
        }
    }

    /// Whether the query needs a table or view.
    pub(super) fn needs(&self, relation: &str) -> bool {
        self.relations.contains(relation)
    }

    /// Conditions that every row of `tensors` in the answer meets.
    pub(super) fn conditions(&self) -> &[RangeCondition] {
        &self.conditions
    }

    /// Whether the query may read a column of a table.
    pub(super) fn reads_column(&self, column: &str) -> bool {
        self.names.as_ref().is_none_or(|names| {
            names.contains(column)
                || takes_all_columns(names)
                || queries()
                    .filter(|query| self.needs(query.name))
                    .any(|query| words(query.query).any(|word| word == column))
        })
    }

    /// Whether the answer may be incomplete without statistics.
    pub(super) fn needs_statistics(&self) -> bool {
        self.names.as_ref().is_none_or(|names| {
            let is_named = |known: &[&str]| known.iter().any(|name| names.contains(*name));
            // Pairs have statistics of both sides.
            is_named(STATISTICS)
                || is_named(BY_STATISTICS)
                || STATISTICS.iter().any(|name| {
                    let sides = ["a", "b"].map(|side| format!("{name}_{side}"));
                    sides.iter().any(|name| names.contains(name))
                })
                || takes_all_columns(names) && is_named(WITH_STATISTICS)
        })
    }
}

fn takes_all_columns(names: &HashSet<String>) -> bool {
    ALL_COLUMNS.iter().any(|name| names.contains(*name))
}

/// Whether a table's name is used as a column, as in `select t from tensors t`.
fn takes_whole_rows(tree: &Value) -> bool {
    let (mut sources, mut selects) = (Vec::new(), Vec::new());
    add_sources(tree, &mut sources, &mut selects);
    let names = sources
        .iter()
        .flat_map(|source| [source["alias"].as_str(), source["table_name"].as_str()]);
    let names: HashSet<String> = names.flatten().map(str::to_lowercase).collect();
    names_column(tree, &names)
}

/// Whether an unqualified column has one of these names.
fn names_column(tree: &Value, names: &HashSet<String>) -> bool {
    match tree {
        Value::Object(fields) => {
            let column = match tree["column_names"].as_array().map(Vec::as_slice) {
                Some([column]) => column.as_str().map(str::to_lowercase),
                _ => None,
            };
            column.is_some_and(|column| names.contains(&column))
                || fields.values().any(|field| names_column(field, names))
        }
        Value::Array(items) => items.iter().any(|item| names_column(item, names)),
        _ => false,
    }
}

fn queries() -> impl Iterator<Item = &'static NamedQuery> {
    VIEWS.iter().chain(FUNCTIONS)
}

fn known_relations() -> impl Iterator<Item = &'static str> {
    let tables = TABLES.into_iter().chain([COMPARE_TABLE]);
    tables.chain(queries().map(|query| query.name))
}

/// The named tables and views, and those that they depend on. A query without names lists the
/// tables.
fn relations(names: &HashSet<String>) -> HashSet<&'static str> {
    let mut open: Vec<&str> = known_relations()
        .filter(|relation| names.contains(*relation))
        .collect();
    if open.is_empty() {
        return known_relations().collect();
    }
    let mut needed = HashSet::new();
    while let Some(relation) = open.pop() {
        if needed.insert(relation) {
            for query in queries().filter(|query| query.name == relation) {
                open.extend(
                    known_relations().filter(|name| words(query.query).any(|word| word == *name)),
                );
            }
        }
    }
    needed
}

fn words(query: &str) -> impl Iterator<Item = &str> {
    query.split(|c: char| !c.is_alphanumeric() && c != '_')
}

fn add_texts(tree: &Value, names: &mut HashSet<String>) {
    match tree {
        Value::String(text) => {
            names.insert(text.to_lowercase());
        }
        Value::Array(items) => items.iter().for_each(|item| add_texts(item, names)),
        Value::Object(fields) => fields.values().for_each(|field| add_texts(field, names)),
        _ => {}
    }
}

/// Conditions on every row of `tensors`, if the query reads that table only once.
fn conditions(tree: &Value) -> Vec<RangeCondition> {
    let mut sources = Vec::new();
    let mut selects = Vec::new();
    add_sources(tree, &mut sources, &mut selects);
    let [source] = &sources[..] else {
        return Vec::new();
    };
    let table = source["table_name"].as_str();
    if table == Some("first_nan") {
        return vec![RangeCondition {
            column: "n_nan".to_owned(),
            comparison: RangeComparison::Greater,
            value: 0,
        }];
    }
    let mut found = Vec::new();
    if table == Some(TABLES[0]) {
        for select in selects {
            add_conditions(&select["where_clause"], &mut found);
        }
    }
    found
}

/// Collects all row sources, and the parts of the tree that select from one table.
fn add_sources<'t>(tree: &'t Value, sources: &mut Vec<&'t Value>, selects: &mut Vec<&'t Value>) {
    match tree {
        Value::Object(fields) => {
            let kind = tree["type"].as_str();
            // A common table expression has a key, and may shadow a table of that name.
            if kind.is_some_and(|kind| ROW_SOURCES.contains(&kind)) || tree["key"].is_string() {
                sources.push(tree);
            }
            if tree["from_table"]["type"] == "BASE_TABLE" {
                selects.push(tree);
            }
            for field in fields.values() {
                add_sources(field, sources, selects);
            }
        }
        Value::Array(items) => {
            for item in items {
                add_sources(item, sources, selects);
            }
        }
        _ => {}
    }
}

/// Collects comparisons of a column with an integer that must all be true.
fn add_conditions(clause: &Value, found: &mut Vec<RangeCondition>) {
    let comparison = match clause["type"].as_str() {
        Some("CONJUNCTION_AND") => {
            for child in clause["children"].as_array().into_iter().flatten() {
                add_conditions(child, found);
            }
            return;
        }
        Some("COMPARE_EQUAL") => RangeComparison::Equal,
        Some("COMPARE_LESSTHAN") => RangeComparison::Less,
        Some("COMPARE_LESSTHANOREQUALTO") => RangeComparison::AtMost,
        Some("COMPARE_GREATERTHAN") => RangeComparison::Greater,
        Some("COMPARE_GREATERTHANOREQUALTO") => RangeComparison::AtLeast,
        _ => return,
    };
    let names = clause["left"]["column_names"].as_array();
    let column = names.and_then(|names| names.last()?.as_str());
    if let (Some(column), Some(value)) = (column, integer(&clause["right"])) {
        found.push(RangeCondition {
            column: column.to_lowercase(),
            comparison,
            value,
        });
    }
}

/// An integer of the query, in the form of DuckDB 1 or DuckDB 2.
fn integer(constant: &Value) -> Option<i64> {
    if constant["literal"]["kind"] == "INTEGER" {
        return constant["literal"]["text"].as_str()?.parse().ok();
    }
    // Decimals are also stored as integers, without their point.
    let kind = constant["value"]["type"]["id"].as_str()?;
    if !INTEGERS.contains(&kind) {
        return None;
    }
    constant["value"]["value"].as_i64()
}
