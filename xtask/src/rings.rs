//! Import cycles between the files of a crate.
//!
//! Files below a module may import from the module's file (`super::`), so imports between a file
//! and its descendants do not count.

use std::collections::{BTreeMap, BTreeSet};

use crate::source_text::SourceText;

/// Files by their module path in a crate (`["compare", "verdict"]`), with the imported paths.
#[derive(Default)]
pub(crate) struct ModuleTree {
    imports: BTreeMap<Vec<String>, BTreeSet<Vec<String>>>,
}

impl ModuleTree {
    /// Adds a file of a crate, by its path below `src/`.
    pub(crate) fn add(&mut self, path_in_src: &str, text: &SourceText) {
        let module = module_path(path_in_src);
        let program: String = text
            .program_lines()
            .flat_map(|(_, line)| [line, "\n"])
            .collect();
        let imports = imported_paths(&program, &module);
        self.imports.entry(module).or_default().extend(imports);
    }

    /// The cycles of two and more files, longest first.
    pub(crate) fn rings(&self) -> Vec<Vec<String>> {
        let edges: BTreeMap<&Vec<String>, BTreeSet<&Vec<String>>> = self
            .imports
            .iter()
            .map(|(module, imports)| {
                let targets = imports.iter().filter_map(|path| self.file_of(path));
                let others = targets.filter(|target| !is_within(module, target));
                (module, others.collect())
            })
            .collect();
        let reach: BTreeMap<_, _> = edges.keys().map(|m| (*m, reachable(m, &edges))).collect();
        let mut rings = BTreeSet::new();
        for (module, reached) in &reach {
            let ring: Vec<String> = reached
                .iter()
                .filter(|other| reach[**other].contains(module))
                .map(|other| other.join("::"))
                .collect();
            if ring.len() > 1 {
                rings.insert(ring);
            }
        }
        let mut rings: Vec<Vec<String>> = rings.into_iter().collect();
        rings.sort_by_key(|ring| std::cmp::Reverse(ring.len()));
        rings
    }

    /// The file of the module or item that a path names.
    fn file_of(&self, path: &[String]) -> Option<&Vec<String>> {
        (1..=path.len()).rev().find_map(|n| {
            let (module, _) = self.imports.get_key_value(&path[..n])?;
            Some(module)
        })
    }
}

/// Whether a module is `other` or below it.
fn is_within(module: &[String], other: &[String]) -> bool {
    module.starts_with(other)
}

fn reachable<'a>(
    start: &'a Vec<String>,
    edges: &BTreeMap<&'a Vec<String>, BTreeSet<&'a Vec<String>>>,
) -> BTreeSet<&'a Vec<String>> {
    let mut reached = BTreeSet::new();
    let mut open = vec![start];
    while let Some(module) = open.pop() {
        for next in &edges[module] {
            if reached.insert(*next) {
                open.push(next);
            }
        }
    }
    reached
}

fn module_path(path_in_src: &str) -> Vec<String> {
    let stem = path_in_src.trim_end_matches(".rs");
    let stem = stem.strip_suffix("/mod").unwrap_or(stem);
    if matches!(stem, "lib" | "main") {
        return Vec::new();
    }
    stem.split('/').map(str::to_owned).collect()
}

/// Absolute paths of everything that the `use` lines of a module import from the same crate.
fn imported_paths(code: &str, module: &[String]) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    for (at, _) in code.match_indices("use ") {
        let begins_item = code[..at]
            .trim_end_matches(' ')
            .chars()
            .next_back()
            .is_none_or(|c| matches!(c, '\n' | ')' | 'b' | '{' | ';'));
        let Some(end) = code[at..].find(';') else {
            continue;
        };
        if begins_item {
            expand(&code[at + 4..at + end], &[], &mut paths);
        }
    }
    paths.extend(inline_paths(code));
    paths
        .iter()
        .filter_map(|path| absolute(path, module))
        .collect()
}

/// The full paths in expressions, such as `super::limits::check` in a call.
fn inline_paths(code: &str) -> Vec<Vec<String>> {
    let starts = ["crate::", "super::"]
        .iter()
        .flat_map(|root| code.match_indices(root));
    let paths = starts.filter(|(at, _)| !code[..*at].ends_with([':', '_']));
    let texts = paths.map(|(at, _)| {
        let end = code[at..].find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | ':')));
        &code[at..end.map_or(code.len(), |end| at + end)]
    });
    texts.map(|path| segments(path).collect()).collect()
}

/// Expands a `use` tree into its paths.
fn expand(tree: &str, prefix: &[String], paths: &mut Vec<Vec<String>>) {
    let tree = tree.trim();
    if let Some(open) = tree.find('{') {
        let mut prefix = prefix.to_vec();
        prefix.extend(segments(&tree[..open]));
        let inner = &tree[open + 1..tree.rfind('}').unwrap_or(tree.len())];
        for branch in split_branches(inner) {
            expand(branch, &prefix, paths);
        }
    } else if !tree.is_empty() {
        let name = tree.split(" as ").next().unwrap_or_default();
        let mut path = prefix.to_vec();
        path.extend(segments(name));
        paths.push(path);
    }
}

fn segments(path: &str) -> impl Iterator<Item = String> {
    let parts = path.split("::").map(str::trim);
    parts
        .filter(|part| !part.is_empty() && *part != "*")
        .map(str::to_owned)
}

/// Splits at the commas outside of inner braces.
fn split_branches(tree: &str) -> Vec<&str> {
    let mut branches = Vec::new();
    let (mut depth, mut start) = (0_usize, 0);
    for (i, byte) in tree.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                branches.push(&tree[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    branches.push(&tree[start..]);
    branches
}

/// The path from the crate's root; none for a path into another crate.
fn absolute(path: &[String], module: &[String]) -> Option<Vec<String>> {
    let mut base = match path.first()?.as_str() {
        "crate" => return Some(path[1..].to_vec()),
        "self" | "super" => module.to_vec(),
        _ => return None,
    };
    let mut rest = path;
    while let Some((first, others)) = rest.split_first() {
        match first.as_str() {
            "self" => {}
            "super" => {
                base.pop()?;
            }
            _ => break,
        }
        rest = others;
    }
    base.extend_from_slice(rest);
    Some(base)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[(&str, &str)], rings: &[&[&str]]) {
        let mut tree = ModuleTree::default();
        for (path, source) in files {
            tree.add(path, &SourceText::parse(source));
        }
        assert_eq!(tree.rings(), rings);
    }

    #[test]
    fn rings_are_found() {
        check(
            &[
                ("lib.rs", "mod a; mod b; mod c;"),
                ("a.rs", "use crate::b::B;"),
                ("b.rs", "use super::{a::{self, A}, c::C};"),
                ("c.rs", "pub struct C;"),
            ],
            &[&["a", "b"]],
        );
    }

    #[test]
    fn a_module_and_its_own_parts_are_no_ring() {
        check(
            &[
                ("a.rs", "mod part; use part::Part; pub struct A;"),
                ("a/part.rs", "use super::A;"),
            ],
            &[],
        );
    }

    #[test]
    fn tests_may_import_what_they_like() {
        check(
            &[
                ("a.rs", "use crate::b::B;"),
                ("b.rs", "#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}"),
            ],
            &[],
        );
    }
}
