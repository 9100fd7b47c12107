//! The software bill of materials: every package in a release, in CycloneDX's JSON.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::VERSION;
use crate::command::root;
use crate::licences::{self, ForeignPackage};

pub(super) fn write(path: &Path) -> Result<()> {
    let lock = fs::read_to_string(root().join("Cargo.lock")).context("Cargo.lock")?;
    let checksums = checksums(&lock);
    let packages = licences::foreign_packages()?;
    let components: Vec<Value> = packages
        .iter()
        .map(|package| component(package, &checksums))
        .collect();
    let bill = json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": { "component": {
            "type": "application",
            "bom-ref": "opscope",
            "name": "opscope",
            "version": VERSION,
            "licenses": [{ "license": { "id": "Apache-2.0" } }],
        } },
        "components": components,
    });
    fs::write(path, serde_json::to_string_pretty(&bill)? + "\n")
        .with_context(|| format!("cannot write `{}`", path.display()))
}

fn component(package: &ForeignPackage, checksums: &BTreeMap<String, &str>) -> Value {
    let (name, version) = package.name.split_once(' ').unwrap_or((&package.name, ""));
    let purl = format!("pkg:{}/{name}@{version}", package.registry).replace("/@", "/%40");
    let mut component = json!({
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        // Older crates use a slash for `OR`.
        "licenses": [{ "expression": package.licence.replace('/', " OR ") }],
        "purl": purl,
    });
    if let Some(sum) = checksums
        .get(&package.name)
        .filter(|_| package.registry == "cargo")
    {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
    }
    component
}

/// The digests of a `Cargo.lock`, by name and version.
fn checksums(lock: &str) -> BTreeMap<String, &str> {
    let packages = lock.split("[[package]]");
    packages
        .filter_map(|package| {
            let value = |key: &str| {
                let line = package.lines().find_map(|line| line.strip_prefix(key));
                line.map(|line| line.trim_start_matches(" = ").trim_matches('"'))
            };
            let name = format!("{} {}", value("name")?, value("version")?);
            Some((name, value("checksum")?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_has_the_checksum_of_the_lock() {
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\n\
                    checksum = \"0f\"\n\n[[package]]\nname = \"here\"\nversion = \"0.1.0\"\n";
        let checksums = checksums(lock);
        assert_eq!(checksums.len(), 1);
        let package = ForeignPackage {
            name: "a 1.0.0".to_owned(),
            registry: "cargo",
            licence: "MIT/ISC".to_owned(),
            directory: Default::default(),
        };
        let component = component(&package, &checksums);
        assert_eq!(component["purl"], "pkg:cargo/a@1.0.0");
        assert_eq!(component["hashes"][0]["content"], "0f");
        assert_eq!(component["licenses"][0]["expression"], "MIT OR ISC");
    }
}
