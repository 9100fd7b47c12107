//! The wheel. One shared object is Python's module, the command and the C library.
//!
//! Python loads the object as `_native.abi3.so`. A C program links `lib64/libascendcl.so`, which has
//! names without code: as a filter, it makes the dynamic linker take each function from the module.
//! So that this works in a process without Python, the module's symbols of Python are weak.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::build::{self, REQUIREMENTS};
use super::elf::Elf;
use super::smoke::{self, Launcher};
use super::{Release, VERSION, git, layout, output};
use crate::command::{forget_us, root, run};
use crate::{install_c, python};

const SOURCES: &str = "bindings/python/py_src";
const MODULE: &str = "opscope/_native.abi3.so";
const C_LIBRARY: &str = "opscope/lib64/libascendcl.so";
/// The module, from the directory of the C library.
const MODULE_OF_C_LIBRARY: &str = "$ORIGIN/../_native.abi3.so";
/// Writes the list of files and the archive.
const PACK: &str = "xtask/src/release/pack_wheel.py";
/// Libraries that every Linux with glibc has.
const SYSTEM_LIBRARIES: [&str; 6] = [
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "libpthread.so.0",
    "librt.so.1",
    "ld-linux-x86-64.so.2",
];

pub(super) fn make(release: &Release) -> Result<PathBuf> {
    let built = build::build()?;
    let stage = release.stage("wheel")?;
    for name in git(&["ls-files", "-z", SOURCES])?.split_terminator('\0') {
        let place = Path::new(name).strip_prefix(SOURCES)?;
        layout::copy(&root().join(name), &stage.join(place))?;
    }
    let mut module = Elf::read(&built.join("lib_native.so"))?;
    module.weaken(is_python)?;
    fs::write(stage.join(MODULE), module.bytes())?;
    let c_library = Elf::read(&built.join("libascendcl.so"))?;
    link_c_library(release, &c_library.exported()?, &stage.join(C_LIBRARY))?;
    let headers = root().join("bindings/c/include");
    install_c::copy_headers(&headers, &stage.join("opscope/include"))?;
    let tags = tags(&module)?;
    write_metadata(release, &stage, &tags)?;
    let name = format!("opscope-{VERSION}-cp39-abi3-{}.whl", tags.join("."));
    let path = release.out.join(name);
    let mut pack = python::with_packages(REQUIREMENTS)?;
    pack.arg(PACK).args([&stage, &path]).arg(&release.epoch);
    run("wheel", pack)?;
    Ok(path)
}

fn is_python(symbol: &str) -> bool {
    symbol.starts_with("Py") || symbol.starts_with("_Py")
}

/// Links a library that has the names of the C functions and takes them from the module.
fn link_c_library(release: &Release, functions: &BTreeSet<String>, path: &Path) -> Result<()> {
    let stage = release.stage("c-library")?;
    let mut assembly = ".text\n".to_owned();
    for name in functions {
        let _ = writeln!(assembly, ".globl {name}\n.type {name},%function\n{name}:");
    }
    assembly += ".long 0\n.section .note.GNU-stack,\"\",%progbits\n";
    let (source, object) = (stage.join("names.s"), stage.join("names.o"));
    fs::write(&source, assembly)?;
    let mut assembler = Command::new("cc");
    output(assembler.arg("-c").arg(&source).arg("-o").arg(&object))?;
    fs::create_dir_all(path.parent().context("a library without a directory")?)?;
    let mut linker = Command::new("ld");
    linker.args(["-shared", "-s", "-soname", "libascendcl.so"]);
    linker.args(["--build-id=none", "-F", MODULE_OF_C_LIBRARY]);
    output(linker.arg(&object).arg("-o").arg(path)).map(drop)
}

/// The platforms for which pip takes the wheel: Linux with the glibc that the module needs.
fn tags(module: &Elf) -> Result<Vec<String>> {
    for library in module.needed()? {
        if !SYSTEM_LIBRARIES.contains(&&*library) {
            bail!("the extension module needs `{library}`, which not every Linux has");
        }
    }
    let minor = module
        .glibc_minor()?
        .context("the extension module is not linked to glibc")?;
    let mut tags = vec![format!("manylinux_2_{minor}_x86_64")];
    if minor <= 17 {
        // The name that pip before 20.3 knows.
        tags.push("manylinux2014_x86_64".to_owned());
    }
    Ok(tags)
}

fn write_metadata(release: &Release, stage: &Path, tags: &[String]) -> Result<()> {
    let mut maturin = python::with_packages(REQUIREMENTS)?;
    maturin.args(["-m", "maturin", "pep517", "write-dist-info"]);
    maturin.args(["--interpreter", "python3", "--metadata-directory"]);
    forget_us(&mut maturin);
    output(
        maturin
            .arg(stage)
            .current_dir(root().join("bindings/python")),
    )?;
    let dir = stage.join(format!("opscope-{VERSION}.dist-info"));
    let tags: String = tags
        .iter()
        .map(|tag| format!("Tag: cp39-abi3-{tag}\n"))
        .collect();
    let text = format!("Wheel-Version: 1.0\nGenerator: xtask\nRoot-Is-Purelib: false\n{tags}");
    fs::write(dir.join("WHEEL"), text)?;
    let files = [
        ("LICENSE", root().join("LICENSE")),
        ("THIRD_PARTY_NOTICES", release.notices.clone()),
    ];
    let metadata = fs::read_to_string(dir.join("METADATA"))?;
    let (head, body) = metadata
        .split_once("\n\n")
        .context("metadata without a description")?;
    let mut head = head.to_owned();
    for (name, file) in files {
        head += &format!("\nLicense-File: {name}");
        layout::copy(&file, &dir.join("licenses").join(name))?;
    }
    fs::write(dir.join("METADATA"), format!("{head}\n\n{body}"))?;
    layout::copy(&release.sbom, &dir.join("sboms/opscope.cdx.json"))
}

/// Installs the wheel in a new environment with the packages that it depends on.
pub(super) fn check(release: &Release, path: &Path) -> Result<()> {
    let dir = release.stage("wheel-installed")?;
    let environment = dir.join("venv");
    let mut venv = python::with_packages(REQUIREMENTS)?;
    venv.args(["-m", "venv"]).arg(&environment);
    run("environment for the wheel", venv)?;
    let mut pip = Command::new(environment.join("bin/python"));
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]);
    run("installation of the wheel", {
        pip.arg(path);
        pip
    })?;
    let launcher = Launcher::in_environment(&environment, &dir)?;
    smoke::first_page(&launcher)?;
    smoke::python_example(&launcher, &environment.join("bin/python"))?;
    let locate = "import opscope, os; print(os.path.dirname(opscope.__file__))";
    let mut python = Command::new(environment.join("bin/python"));
    let package = output(python.args(["-c", locate]).current_dir(&dir))?;
    let package = PathBuf::from(package.trim());
    let libraries = package.join("lib64");
    let libraries = libraries.to_str().context("a path that is not UTF-8")?;
    smoke::c_program(&launcher, &package, libraries)
}
