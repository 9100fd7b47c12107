//! `cargo xtask install-c`: the C library and its headers in a directory for building programs.
//!
//! The layout is that of an NPU toolkit, so that build files for it find everything with `DDK_PATH`
//! and `NPU_HOST_LIB` set to the directory.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::command::{self, cargo, root};
use crate::target_dir;

const LIBRARY: &str = "libascendcl.so";
/// Names of other libraries that programs link; our library has their functions.
const OTHER_NAMES: &[&str] = &[
    "libascend_dump.so",
    "libacl_op_compiler.so",
    "libacl_cblas.so",
    "libacl_dvpp.so",
    "libacl_retr.so",
    "libacl_tdt_channel.so",
    "libacl_tdt_queue.so",
    "libmsprofiler.so",
    "libopapi.so",
    "libnnopbase.so",
];

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let [option, prefix] = arguments else {
        bail!("usage: cargo xtask install-c --prefix DIR");
    };
    if option != "--prefix" {
        bail!("`{option}` is not an option of install-c; expected `--prefix DIR`");
    }
    // Together with the command, so that dependencies have the same features as in its build.
    let mut build = cargo(&["build", "--release", "--locked"]);
    build.args(["--package", "opscope", "--package", "opscope-c"]);
    command::run("C library", build)?;
    install(&built()?, Path::new(prefix))
}

/// Cargo's directory for release builds.
fn built() -> Result<PathBuf> {
    let dir = target_dir().join("release");
    if !dir.join(LIBRARY).is_file() {
        bail!("`{}` has no {LIBRARY}", dir.display());
    }
    Ok(dir)
}

fn install(built: &Path, prefix: &Path) -> Result<()> {
    install_shared(built, prefix)?;
    const STATIC: &str = "libascendcl.a";
    copy(&built.join(STATIC), &prefix.join("lib64").join(STATIC))?;
    eprintln!("installed into {}", prefix.display());
    Ok(())
}

/// Installs the shared library, its other names and the headers.
pub(crate) fn install_shared(built: &Path, prefix: &Path) -> Result<()> {
    let libraries = prefix.join("lib64");
    create(&libraries)?;
    copy(&built.join(LIBRARY), &libraries.join(LIBRARY))?;
    for name in OTHER_NAMES {
        link(LIBRARY, &libraries.join(name))?;
    }
    // On machines without an NPU, programs link against `lib64/stub`.
    link(".", &libraries.join("stub"))?;
    link("lib64", &prefix.join("lib"))?;
    for name in ["runtime", "acllib"] {
        link(".", &prefix.join(name))?;
    }
    copy_headers(&root().join("bindings/c/include"), &prefix.join("include"))
}

pub(crate) fn copy_headers(from: &Path, to: &Path) -> Result<()> {
    create(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("`{}`", from.display()))? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_headers(&entry.path(), &target)?;
        } else {
            copy(&entry.path(), &target)?;
        }
    }
    Ok(())
}

fn create(dir: &Path) -> Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("cannot create `{}`", dir.display()))
}

/// Replaces a file. A program that has the old one open keeps it.
fn copy(from: &Path, to: &Path) -> Result<()> {
    remove(to)?;
    fs::copy(from, to)
        .map(|_| ())
        .with_context(|| format!("cannot copy `{}` to `{}`", from.display(), to.display()))
}

fn link(to: &str, path: &Path) -> Result<()> {
    if fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir()) {
        bail!(
            "`{}` is a directory; a link is needed there",
            path.display()
        );
    }
    remove(path)?;
    symlink(to, path).with_context(|| format!("cannot create `{}`", path.display()))
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot replace `{}`", path.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_installation_can_be_repeated_and_is_found_everywhere() {
        let dir = tempfile::tempdir().unwrap();
        let built = dir.path().join("built");
        let prefix = dir.path().join("prefix");
        create(&built).unwrap();
        fs::write(built.join("libascendcl.a"), "static").unwrap();
        for content in ["first", "second"] {
            fs::write(built.join(LIBRARY), content).unwrap();
            install(&built, &prefix).unwrap();
            for place in [
                "lib64/libascendcl.so",
                "lib/libascend_dump.so",
                "runtime/lib64/stub/libacl_op_compiler.so",
                "acllib/lib64/stub/libascendcl.so",
                "lib64/libopapi.so",
            ] {
                let found = fs::read_to_string(prefix.join(place)).unwrap();
                assert_eq!(found, content, "{place}");
            }
        }
        for header in [
            "include/acl/acl.h",
            "include/aclnnop/aclnn_add.h",
            "runtime/include/acl/error_codes/rt_error_codes.h",
        ] {
            assert!(prefix.join(header).is_file(), "{header}");
        }
    }

    #[test]
    fn a_directory_in_the_way_of_a_link_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let built = dir.path().join("built");
        let prefix = dir.path().join("prefix");
        create(&built).unwrap();
        create(&prefix.join("lib")).unwrap();
        fs::write(built.join(LIBRARY), "").unwrap();
        fs::write(built.join("libascendcl.a"), "").unwrap();
        let error = install(&built, &prefix).unwrap_err();
        assert!(error.to_string().contains("is a directory"), "{error}");
    }
}
