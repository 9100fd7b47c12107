//! The files of an installation below a prefix such as `/usr`.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::{Release, output};
use crate::command::root;
use crate::install_c;

/// Where shells find the completions of a command.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/opscope"),
    ("fish", "share/fish/vendor_completions.d/opscope.fish"),
    ("zsh", "share/zsh/site-functions/_opscope"),
];

/// Installs the command, its manual pages and completions, and the documents of a release.
pub(super) fn install(release: &Release, built: &Path, prefix: &Path) -> Result<()> {
    let opscope = built.join("opscope");
    copy(&opscope, &prefix.join("bin/opscope"))?;
    let pages = prefix.join("share/man/man1");
    fs::create_dir_all(&pages)?;
    output(Command::new(&opscope).args(["man", "--out"]).arg(&pages))?;
    for page in fs::read_dir(&pages)? {
        output(Command::new("gzip").arg("-9n").arg(page?.path()))?;
    }
    for (shell, place) in COMPLETIONS {
        let script = output(Command::new(&opscope).args(["completions", shell]))?;
        let path = prefix.join(place);
        fs::create_dir_all(path.parent().context("a place without a directory")?)?;
        fs::write(path, script)?;
    }
    let documents = prefix.join("share/doc/opscope");
    copy(&root().join("LICENSE"), &documents.join("copyright"))?;
    copy(
        &root().join("CHANGELOG.md"),
        &documents.join("CHANGELOG.md"),
    )?;
    copy(&release.notices, &documents.join("THIRD_PARTY_NOTICES"))?;
    copy(&release.sbom, &documents.join("sbom.cdx.json"))
}

/// Installs the shared C library and its headers, as an NPU toolkit has them.
pub(super) fn install_c_library(built: &Path, dir: &Path) -> Result<()> {
    install_c::install_shared(built, dir)
}

/// Copies a file into a directory that is created if missing.
pub(super) fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to.parent().context("a place without a directory")?)?;
    fs::copy(from, to)
        .map(drop)
        .with_context(|| format!("cannot copy `{}` to `{}`", from.display(), to.display()))
}
