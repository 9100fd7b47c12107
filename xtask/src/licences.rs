//! Checks the licences of all dependencies, and writes the notices for distributed packages.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::command::{metadata, root};

/// Licences, by their SPDX names, that only require their text to accompany a program.
const ALLOWED: [&str; 15] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "BlueOak-1.0.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "NCSA",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
    "MIT-0",
];
/// Further licences of tools that build the page without being part of it.
const ALLOWED_OF_TOOLS: [&str; 1] = ["MPL-2.0"];
/// The only source of crates.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";
/// The distributed crates.
pub(crate) const PRODUCTS: [&str; 3] = ["opscope", "opscope-python", "opscope-c"];
/// Prefixes of the names of licence files, in upper case.
const FILE_NAMES: [&str; 6] = [
    "LICENSE",
    "LICENCE",
    "COPYING",
    "COPYRIGHT",
    "NOTICE",
    "UNLICENSE",
];
const NPM_LOCK: &str = "web/package-lock.json";
const NPM_PACKAGES: &str = "web";

/// A package of another project.
pub(crate) struct ForeignPackage {
    /// With its version, after a blank.
    pub(crate) name: String,
    /// `cargo` or `npm`.
    pub(crate) registry: &'static str,
    pub(crate) licence: String,
    pub(crate) directory: PathBuf,
}

/// Checks that every package has an allowed licence, and comes from a registry.
pub(crate) fn check() -> Result<()> {
    let metadata = packages_here()?;
    let mut wrong = Vec::new();
    for package in packages(&metadata) {
        let source = package["source"].as_str();
        let name = name_of(package);
        let licence = package["license"].as_str().unwrap_or_default();
        match source {
            // A crate of this workspace.
            None => {}
            Some(REGISTRY) if is_allowed(licence, &ALLOWED) => {}
            Some(REGISTRY) => wrong.push(format!("{name}: its licence is `{licence}`")),
            Some(other) => wrong.push(format!("{name}: it comes from `{other}`")),
        }
    }
    let tools = [&ALLOWED[..], &ALLOWED_OF_TOOLS].concat();
    for (path, package) in npm_packages()? {
        let licence = package["license"].as_str().unwrap_or_default();
        let is_tool = package["dev"] == true;
        let allowed = if is_tool { &tools[..] } else { &ALLOWED };
        if !is_allowed(licence, allowed) {
            wrong.push(format!("{path}: its licence is `{licence}`"));
        }
    }
    if !wrong.is_empty() {
        bail!(
            "licences that `licences.rs` does not allow:\n  {}",
            wrong.join("\n  ")
        );
    }
    Ok(())
}

/// The packages in the products.
pub(crate) fn foreign_packages() -> Result<Vec<ForeignPackage>> {
    let mut foreign = linked(&packages_here()?)?;
    // The tools that build the page are not part of it.
    for (path, package) in npm_packages()? {
        if package["dev"] != true {
            let name = path.trim_start_matches("node_modules/");
            foreign.push(ForeignPackage {
                name: format!("{name} {}", package["version"].as_str().unwrap_or_default()),
                registry: "npm",
                licence: package["license"].as_str().unwrap_or_default().to_owned(),
                directory: root().join(NPM_PACKAGES).join(&path),
            });
        }
    }
    Ok(foreign)
}

/// Writes the licence texts of all packages in the products, each text once.
pub(crate) fn write(out: &Path) -> Result<()> {
    let foreign = foreign_packages()?;
    // Many packages have identical texts.
    let mut texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut without = Vec::new();
    for package in &foreign {
        // Its licence text is unknown before, and notices without it would be wrong.
        if !package.directory.is_dir() {
            let name = &package.name;
            bail!("`{name}` is not installed: `cargo xtask page` does that");
        }
        let files = licence_files(&package.directory);
        if files.is_empty() {
            without.push(format!("{}: {}", package.name, package.licence));
        }
        for file in files {
            let text =
                fs::read(&file).with_context(|| format!("cannot read `{}`", file.display()))?;
            let text = String::from_utf8_lossy(&text).replace("\r\n", "\n");
            texts
                .entry(text.trim().to_owned())
                .or_default()
                .insert(package.name.clone());
        }
    }
    let mut notices = format!(
        "Opscope contains the work of others: {} packages. Their licences follow, each with the \
         packages that came with it.\n",
        foreign.len()
    );
    if !without.is_empty() {
        let _ = write!(
            notices,
            "\nPackages without a licence file, with the licence that they name:\n\n{}\n",
            without.join("\n")
        );
    }
    for (text, names) in texts {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let rule = "-".repeat(80);
        let _ = write!(
            notices,
            "\n{rule}\n{}\n{rule}\n\n{text}\n",
            names.join("\n")
        );
    }
    if let Some(dir) = out.parent() {
        fs::create_dir_all(dir)?;
    }
    fs::write(out, notices).with_context(|| format!("cannot write `{}`", out.display()))?;
    eprintln!("{} packages in `{}`", foreign.len(), out.display());
    Ok(())
}

/// Cargo's metadata of the packages built on this machine. Those of other systems would have to be
/// downloaded just for this.
fn packages_here() -> Result<Value> {
    metadata(&["--filter-platform", &host()?])
}

/// The target triple of this compiler.
fn host() -> Result<String> {
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(compiler).arg("-vV").output();
    let text = String::from_utf8(output.context("rustc -vV")?.stdout)?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("`rustc -vV` names no host")?.to_owned())
}

fn packages(metadata: &Value) -> impl Iterator<Item = &Value> {
    metadata["packages"].as_array().into_iter().flatten()
}

fn name_of(package: &Value) -> String {
    let [name, version] = ["name", "version"].map(|key| package[key].as_str().unwrap_or_default());
    format!("{name} {version}")
}

/// The packages that the products link, without dependencies of their tests and builds.
fn linked(metadata: &Value) -> Result<Vec<ForeignPackage>> {
    let mut by_id = BTreeMap::new();
    let mut open = Vec::new();
    for package in packages(metadata) {
        let id = package["id"]
            .as_str()
            .context("a package without an identifier")?;
        by_id.insert(id, package);
        if PRODUCTS.iter().any(|name| package["name"] == *name) {
            open.push(id);
        }
    }
    let nodes = metadata["resolve"]["nodes"]
        .as_array()
        .into_iter()
        .flatten();
    let nodes = nodes.filter_map(|node| Some((node["id"].as_str()?, node)));
    let nodes: BTreeMap<&str, &Value> = nodes.collect();
    let mut known: HashSet<&str> = open.iter().copied().collect();
    let mut foreign = Vec::new();
    while let Some(id) = open.pop() {
        let package = by_id
            .get(id)
            .context("a dependency that is not a package")?;
        if !package["source"].is_null() {
            let manifest = PathBuf::from(package["manifest_path"].as_str().unwrap_or_default());
            foreign.push(ForeignPackage {
                name: name_of(package),
                registry: "cargo",
                licence: package["license"].as_str().unwrap_or_default().to_owned(),
                directory: manifest.parent().unwrap_or(&manifest).to_owned(),
            });
        }
        let needed = nodes.get(id).and_then(|node| node["deps"].as_array());
        for dependency in needed.into_iter().flatten() {
            let kinds = dependency["dep_kinds"].as_array().into_iter().flatten();
            // Dependencies of tests and build scripts have a kind.
            let is_linked = kinds.into_iter().any(|kind| kind["kind"].is_null());
            let id = dependency["pkg"].as_str().filter(|_| is_linked);
            open.extend(id.filter(|id| known.insert(id)));
        }
    }
    foreign.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(foreign)
}

/// The packages of the page and of the tools that build it, by their paths.
fn npm_packages() -> Result<Vec<(String, Value)>> {
    let text = fs::read_to_string(root().join(NPM_LOCK)).context(NPM_LOCK)?;
    let lock: Value = serde_json::from_str(&text).context(NPM_LOCK)?;
    let packages = lock["packages"].as_object().into_iter().flatten();
    // The first entry is the page.
    let packages = packages.filter(|(path, _)| !path.is_empty());
    Ok(packages
        .map(|(path, package)| (path.clone(), package.clone()))
        .collect())
}

fn licence_files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .filter(|entry| {
            let name = entry.file_name().to_string_lossy().to_uppercase();
            let is_text = FILE_NAMES.iter().any(|start| name.starts_with(start));
            is_text && entry.file_type().is_ok_and(|kind| kind.is_file())
        })
        .map(|entry| entry.path())
        .collect();
    files.sort();
    files
}

/// Whether allowed licences satisfy an SPDX expression. Older crates use a slash for `OR`.
fn is_allowed(expression: &str, allowed: &[&str]) -> bool {
    let text = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut rest = &words[..];
    let is_met = any_of(&mut rest, allowed);
    // Trailing words mean a malformed expression.
    is_met && rest.is_empty()
}

/// `A OR B`, which binds weaker than `AND`.
fn any_of(rest: &mut &[&str], allowed: &[&str]) -> bool {
    let mut is_met = all_of(rest, allowed);
    while let Some((&"OR", behind)) = rest.split_first() {
        *rest = behind;
        is_met |= all_of(rest, allowed);
    }
    is_met
}

/// `A AND B`.
fn all_of(rest: &mut &[&str], allowed: &[&str]) -> bool {
    let mut is_met = one(rest, allowed);
    while let Some((&"AND", behind)) = rest.split_first() {
        *rest = behind;
        is_met &= one(rest, allowed);
    }
    is_met
}

/// A licence, with its exception if it has one, or an expression in parentheses.
fn one(rest: &mut &[&str], allowed: &[&str]) -> bool {
    let Some((&word, behind)) = rest.split_first() else {
        return false;
    };
    *rest = behind;
    if word == "(" {
        let is_met = any_of(rest, allowed);
        let Some((&")", behind)) = rest.split_first() else {
            return false;
        };
        *rest = behind;
        return is_met;
    }
    let mut licence = word.to_owned();
    if let [with @ "WITH", exception, behind @ ..] = *rest {
        licence = format!("{licence} {with} {exception}");
        *rest = behind;
    }
    allowed.contains(&licence.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_met_or_not() {
        for (expression, expected) in [
            ("MIT", true),
            ("MIT/Apache-2.0", true),
            ("GPL-3.0-only OR MIT", true),
            ("GPL-3.0-only AND MIT", false),
            ("(MIT OR GPL-3.0-only) AND ISC", true),
            ("(MIT OR ISC) AND GPL-3.0-only", false),
            ("MIT OR ISC AND GPL-3.0-only", true),
            ("Apache-2.0 WITH LLVM-exception", true),
            ("MIT WITH LLVM-exception", false),
            ("LGPL-2.1-or-later", false),
            ("(MIT", false),
            ("MIT ISC", false),
            ("", false),
        ] {
            assert_eq!(is_allowed(expression, &ALLOWED), expected, "{expression}");
        }
    }
}
