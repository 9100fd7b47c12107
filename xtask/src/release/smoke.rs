//! Trying an installed package: the first page of the guide, as a new user would run it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::{VERSION, layout, output};
use crate::command::root;

const EXAMPLE: &str = "examples/digits";
/// The example in an empty root directory.
const EXAMPLE_IN_ROOT: &str = "/digits";
const C_PROGRAM: &str = "xtask/src/release/smoke.c";

/// How the programs of an installation are started.
pub(super) struct Launcher {
    opscope: String,
    /// The directory that the programs see as `/`.
    root_dir: Option<PathBuf>,
    /// A copy of the example, where programs run.
    example: PathBuf,
}

impl Launcher {
    /// Programs see nothing but the package, the example and the libraries that the command needs.
    pub(super) fn in_root(root_dir: &Path, opscope: &str) -> Result<Self> {
        let example = root_dir.join(EXAMPLE_IN_ROOT.trim_start_matches('/'));
        copy_example(&example)?;
        let program = root_dir.join(opscope.trim_start_matches('/'));
        for library in loaded_libraries(&program)? {
            layout::copy(&library, &root_dir.join(library.strip_prefix("/")?))?;
        }
        fs::create_dir_all(root_dir.join("tmp"))?;
        Ok(Self {
            opscope: opscope.to_owned(),
            root_dir: Some(root_dir.to_owned()),
            example,
        })
    }

    /// The command of a Python environment.
    pub(super) fn in_environment(environment: &Path, dir: &Path) -> Result<Self> {
        let example = dir.join("digits");
        copy_example(&example)?;
        let opscope = environment.join("bin/opscope");
        Ok(Self {
            opscope: opscope
                .to_str()
                .context("a path that is not UTF-8")?
                .to_owned(),
            root_dir: None,
            example,
        })
    }

    /// A program in the directory of the example, without the variables of this process.
    fn command(&self, program: &str) -> Command {
        let mut command;
        if let Some(root_dir) = &self.root_dir {
            command = Command::new("unshare");
            command
                .args(["--user", "--map-root-user", "--root"])
                .arg(root_dir);
            command.args(["--wd", EXAMPLE_IN_ROOT, program]);
        } else {
            command = Command::new(program);
            command.current_dir(&self.example);
        }
        command
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", "/tmp");
        command
    }

    fn opscope(&self) -> Command {
        self.command(&self.opscope)
    }
}

/// Runs the commands of the README and compares their output.
pub(super) fn first_page(launcher: &Launcher) -> Result<()> {
    let version = output(launcher.opscope().arg("--version"))?;
    ensure!(
        version.trim() == format!("opscope {VERSION}"),
        "`--version` prints `{version}`"
    );
    output(launcher.opscope().arg("doctor"))?;
    let readme = fs::read_to_string(root().join("README.md")).context("README.md")?;
    let block = block(&readme, "```text\n$ ")?;
    for step in block.split("$ ").filter(|step| !step.is_empty()) {
        let (line, expected) = step.split_once('\n').unwrap_or((step, ""));
        let arguments = line.split_whitespace().skip(1);
        let ran = launcher.opscope().args(arguments).output();
        let ran = ran.with_context(|| format!("cannot start `{line}`"))?;
        let printed = String::from_utf8_lossy(&ran.stdout);
        let is_expected = words(&printed).starts_with(&words(expected));
        // Code 1 reports differences.
        if !matches!(ran.status.code(), Some(0 | 1)) || !is_expected {
            let errors = String::from_utf8_lossy(&ran.stderr);
            bail!("`{line}` ({}) printed\n{printed}{errors}", ran.status);
        }
    }
    Ok(())
}

/// Runs the Python code of the README, whose last line has its output as a comment.
pub(super) fn python_example(launcher: &Launcher, python: &Path) -> Result<()> {
    let readme = fs::read_to_string(root().join("README.md")).context("README.md")?;
    let code = block(&readme, "```python\n")?;
    let (_, expected) = code
        .trim()
        .rsplit_once("# ")
        .context("code without its output")?;
    let python = python.to_str().context("a path that is not UTF-8")?;
    let printed = output(launcher.command(python).args(["-c", code]))?;
    ensure!(
        printed.trim().ends_with(expected),
        "README's Python code prints `{printed}`"
    );
    Ok(())
}

/// Compiles a C program with the headers and the library in `package`, and runs it. `libraries` is
/// the directory of the library for the program.
pub(super) fn c_program(launcher: &Launcher, package: &Path, libraries: &str) -> Result<()> {
    let mut cc = Command::new("cc");
    cc.arg(root().join(C_PROGRAM))
        .arg("-I")
        .arg(package.join("include"));
    cc.arg("-L")
        .arg(package.join("lib64"))
        .args(["-lascendcl", "-o"]);
    output(cc.arg(launcher.example.join("c_program")))?;
    let mut program = launcher.command("./c_program");
    output(program.env("LD_LIBRARY_PATH", libraries)).map(drop)
}

/// The rest of a page's code block from its `start`, whose fence is left out.
fn block<'a>(page: &'a str, start: &str) -> Result<&'a str> {
    let at = page
        .find(start)
        .with_context(|| format!("no block begins with `{start}`"))?;
    let fence_end = start.find('\n').map_or(0, |end| end + 1);
    let text = &page[at + fence_end..];
    Ok(text.split("```").next().unwrap_or(text))
}

/// A text without its line breaks, because the page wraps lines.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn copy_example(to: &Path) -> Result<()> {
    for entry in fs::read_dir(root().join(EXAMPLE))? {
        let entry = entry?;
        layout::copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

/// The files of the libraries that a program loads, with the loader.
fn loaded_libraries(program: &Path) -> Result<Vec<PathBuf>> {
    let ldd = Command::new("ldd").arg(program).output();
    let text = String::from_utf8(ldd.context("cannot start ldd")?.stdout)?;
    let words = text.split_whitespace().filter(|word| word.starts_with('/'));
    Ok(words.map(PathBuf::from).collect())
}
