//! The headers of `aclnnop`, and the list in the documentation, match the table of operators.
//!
//! With `OPSCOPE_WRITE_HEADERS=1` in the environment they are regenerated.

mod support;

use std::collections::BTreeMap;
use std::fmt::Write;

use opscope_acl::{OPERATOR_FAMILIES, OperatorRow};
use support::{headers, project};

/// Columns of a line.
const WIDTH: usize = 100;

/// A declaration, broken after commas if it is too long.
fn declaration(name: &str, parameters: &[String]) -> String {
    let head = format!("ACL_FUNC_VISIBILITY aclnnStatus {name}(");
    let indent = " ".repeat(8);
    let mut text = head;
    let mut column = text.len();
    for (i, parameter) in parameters.iter().enumerate() {
        let end = if i + 1 == parameters.len() { ");" } else { "," };
        let part = format!("{parameter}{end}");
        let is_first = i == 0;
        if column + part.len() + 1 > WIDTH {
            let _ = write!(text, "\n{indent}{part}");
            column = indent.len() + part.len();
        } else {
            let blank = if is_first { "" } else { " " };
            let _ = write!(text, "{blank}{part}");
            column += blank.len() + part.len();
        }
    }
    text.push('\n');
    text
}

fn declarations(row: &OperatorRow) -> String {
    let parameters = row.parameters.iter();
    let parameters =
        parameters.map(|parameter| format!("{}{}", parameter.kind.c_type(), parameter.name()));
    let mut stage_one: Vec<String> = parameters.collect();
    stage_one.push("uint64_t *workspaceSize".to_owned());
    stage_one.push("aclOpExecutor **executor".to_owned());
    let stage_two = [
        "void *workspace",
        "uint64_t workspaceSize",
        "aclOpExecutor *executor",
        "aclrtStream stream",
    ];
    let stage_two: Vec<String> = stage_two.map(str::to_owned).to_vec();
    format!(
        "/* {} */\n{}{}",
        row.meaning,
        declaration(&format!("{}GetWorkspaceSize", row.function), &stage_one),
        declaration(row.function, &stage_two),
    )
}

/// The generated headers by name.
fn generated() -> BTreeMap<&'static str, String> {
    let mut headers: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
    for row in OPERATOR_FAMILIES.iter().flat_map(|family| family.rows) {
        headers
            .entry(row.header)
            .or_default()
            .push(declarations(row));
    }
    let texts = headers.into_iter().map(|(name, rows)| {
        let guard = name.trim_end_matches(".h").to_uppercase();
        let text = format!(
            "#ifndef OPSCOPE_{guard}_H\n#define OPSCOPE_{guard}_H\n\n\
             /* Made from the table of operators, which crates/acl holds. */\n\n\
             #include \"../aclnn/aclnn_base.h\"\n\n\
             #ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n{}\n\
             #ifdef __cplusplus\n}}\n#endif\n\n#endif\n",
            rows.join("\n"),
        );
        (name, text)
    });
    texts.collect()
}

#[test]
fn headers_are_those_of_the_table() {
    let dir = headers().join("aclnnop");
    let generated = generated();
    if std::env::var_os("OPSCOPE_WRITE_HEADERS").is_some() {
        for (name, text) in &generated {
            std::fs::write(dir.join(name), text).expect("a header is written");
        }
    }
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(&dir).expect("the headers are there") {
        let path = entry.expect("a header").path();
        let name = path
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        found.insert(
            name,
            std::fs::read_to_string(&path).expect("a header is text"),
        );
    }
    let names = generated.keys().map(|name| (*name).to_owned());
    assert_eq!(
        found.keys().cloned().collect::<Vec<_>>(),
        names.collect::<Vec<_>>()
    );
    for (name, text) in &generated {
        assert_eq!(
            found.get(*name),
            Some(text),
            "{name} differs from the table; OPSCOPE_WRITE_HEADERS=1 regenerates it"
        );
    }
}

/// The section of the documentation that lists the operators.
fn listed() -> String {
    let mut text = String::from("## Operators\n\n| family | functions |\n| --- | --- |\n");
    for family in OPERATOR_FAMILIES {
        let (first, rest) = family.name.split_at(1);
        let names: Vec<_> = family
            .rows
            .iter()
            .map(|row| format!("`{}`", row.function))
            .collect();
        let names = names.join(", ");
        let _ = writeln!(text, "| {}{rest} | {names} |", first.to_uppercase());
    }
    text
}

#[test]
fn the_documents_list_the_operators_of_the_table() {
    let path = project().join("docs/acl/aclnn.md");
    let text = std::fs::read_to_string(&path).expect("the documents are there");
    let start = text.find("## Operators\n").expect("a section lists them");
    let end = text[start + 3..]
        .find("\n## ")
        .map_or(text.len(), |at| start + 3 + at);
    let listed = listed();
    if std::env::var_os("OPSCOPE_WRITE_HEADERS").is_some() {
        let text = format!("{}{listed}{}", &text[..start], &text[end..]);
        std::fs::write(&path, text).expect("the documents are written");
        return;
    }
    let message = "OPSCOPE_WRITE_HEADERS=1 regenerates the section";
    assert_eq!(&text[start..end], listed, "{message}");
}

#[test]
fn operators_have_names_of_their_own() {
    let mut functions: Vec<&str> = Vec::new();
    for row in OPERATOR_FAMILIES.iter().flat_map(|family| family.rows) {
        functions.push(row.function);
        assert!(row.function.starts_with("aclnn"), "{}", row.function);
        assert!(row.header.starts_with("aclnn_"), "{}", row.header);
        let mut names: Vec<_> = row
            .parameters
            .iter()
            .map(|parameter| parameter.name())
            .collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), row.parameters.len(), "{}", row.function);
    }
    let n = functions.len();
    functions.sort_unstable();
    functions.dedup();
    assert_eq!(functions.len(), n);
}
