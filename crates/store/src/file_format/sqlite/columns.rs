//! The names of a table's columns in the statement that made it.
//!
//! Only statements of plain words are understood: a column that is computed has no place in a row,
//! so that everything that might say so is refused rather than counted wrong.

/// Longest statement that is parsed.
const STATEMENT_BYTES_MAX: usize = 64 << 10;
/// Words that say that a column is computed.
const COMPUTED: [&str; 5] = ["generated", "always", "as", "virtual", "stored"];

/// The names of the columns in their order; none if the statement has more than names, types and a
/// key.
pub(super) fn names(statement: &str) -> Option<Vec<String>> {
    if statement.len() > STATEMENT_BYTES_MAX {
        return None;
    }
    let (head, rest) = statement.split_once('(')?;
    // Clauses after the columns change how rows are stored.
    let (definitions, tail) = rest.rsplit_once(')')?;
    let mut words = head.split_ascii_whitespace();
    let is_table = ["create", "table"].iter().all(|word| {
        words
            .next()
            .is_some_and(|found| found.eq_ignore_ascii_case(word))
    });
    if !is_table || !tail.trim_ascii().is_empty() {
        return None;
    }
    let (columns, key) = split_off_key(definitions)?;
    is_key(key).then_some(())?;
    columns.split(',').map(column_name).collect()
}

/// Columns, and the key over several of them that may follow.
fn split_off_key(definitions: &str) -> Option<(&str, &str)> {
    let Some((before, _)) = definitions.split_once('(') else {
        return Some((definitions, ""));
    };
    let end = before.rfind(',')?;
    Some((definitions.get(..end)?, definitions.get(end + 1..)?))
}

fn is_key(text: &str) -> bool {
    let text = text.trim_ascii().to_ascii_lowercase();
    let inner = text.strip_prefix("primary key");
    let inner = inner.and_then(|rest| rest.trim_ascii().strip_prefix('(')?.strip_suffix(')'));
    text.is_empty()
        || inner.is_some_and(|inner| inner.split(',').all(|name| is_word(name.trim_ascii())))
}

fn column_name(definition: &str) -> Option<String> {
    let mut words = definition.split_ascii_whitespace();
    let name = words.next().filter(|name| is_word(name))?;
    let rest: Vec<String> = words.map(str::to_ascii_lowercase).collect();
    let is_plain = rest
        .iter()
        .all(|word| is_word(word) && !COMPUTED.contains(&word.as_str()));
    // Such a column is the number of the row, and not among its values.
    let is_number_of_row =
        rest.first().is_some_and(|kind| kind == "integer") && rest.contains(&"primary".to_owned());
    (is_plain && !is_number_of_row).then(|| name.to_owned())
}

fn is_word(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_statements_are_understood() {
        let check = |statement: &str, expected: &str| {
            let found = names(statement).map(|names| names.join(" "));
            assert_eq!(found.as_deref().unwrap_or("none"), expected, "{statement}");
        };
        check("CREATE TABLE t (a int not null, B text)", "a B");
        check(
            "create\ttable t(\n a TensorProto,\n b,\n primary key (a, b) )",
            "a b",
        );
        check("CREATE TABLE t (a text primary key not null, b)", "a b");
        check("CREATE TABLE t (a)", "a");
        check("CREATE TABLE t (id INTEGER PRIMARY KEY, a)", "none");
        check("CREATE TABLE t (a int, b int AS (a), c)", "none");
        check(
            "CREATE TABLE t (a int, b int generated always as (a) virtual)",
            "none",
        );
        check("CREATE TABLE t (a, primary key (a)) without rowid", "none");
        check("CREATE TABLE t (a, primary key (a), b as (a))", "none");
        check("CREATE TABLE t (\"a b\", c)", "none");
        check("CREATE TABLE t (a /* , x */, b)", "none");
        check("CREATE TABLE t (a varchar(3), b)", "none");
        check("CREATE TABLE t (a,, b)", "none");
        check("CREATE TABLE t ()", "none");
        check("CREATE VIEW t AS select (1)", "none");
        check("CREATE VIRTUAL TABLE t USING fts5(a)", "none");
        check("", "none");
    }
}
