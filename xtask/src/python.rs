//! Python packages, installed into the project's folder.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, bail};

use crate::command::{root, run};

/// A Python with the packages of a requirements file.
///
/// They are installed in a virtual environment below `target/python`. Without `venv` (a separate
/// package on Debian), pip installs them into a folder there.
pub(crate) fn with_packages(requirements: &str) -> Result<Command> {
    let wanted = fs::read_to_string(root().join(requirements))
        .with_context(|| format!("cannot read `{requirements}`"))?;
    let name = requirements.replace(['/', '.'], "-");
    let dir = root().join("target/python").join(name);
    let stamp = dir.join("installed.txt");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(python_in(&dir));
    }
    if dir.exists() {
        fs::remove_dir_all(&dir).context("cannot clear the old packages")?;
    }
    fs::create_dir_all(&dir)?;
    let mut venv = Command::new(system_python());
    venv.args(["-m", "venv"]).arg(dir.join("venv"));
    let has_venv = venv.output().is_ok_and(|output| output.status.success());
    let mut pip = if has_venv {
        let mut pip = python_in(&dir);
        pip.args(["-m", "pip", "install"]);
        pip
    } else {
        let _ = fs::remove_dir_all(dir.join("venv"));
        let mut pip = Command::new(system_python());
        pip.args(["-m", "pip", "install", "--target"])
            .arg(packages(&dir));
        pip
    };
    pip.args(["--quiet", "--disable-pip-version-check", "-r", requirements]);
    if let Err(error) = run("Python packages", pip) {
        bail!("{error:#}; Python 3 with `venv` or `pip` is needed (on Debian: python3-venv)");
    }
    fs::write(stamp, wanted)?;
    Ok(python_in(&dir))
}

/// Puts a `python3` with the packages of a requirements file first on the path of `command`.
pub(crate) fn provide(command: &mut Command, requirements: &str) -> Result<()> {
    let python = with_packages(requirements)?;
    let bin = Path::new(python.get_program()).parent().map(Path::to_owned);
    let old = env::var_os("PATH").unwrap_or_default();
    let dirs = bin
        .into_iter()
        .filter(|dir| dir.is_absolute())
        .chain(env::split_paths(&old));
    command.env("PATH", env::join_paths(dirs)?);
    for (name, value) in python.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    Ok(())
}

/// The shared library of ONNX Runtime from the packages of a requirements file.
pub(crate) fn onnxruntime_library(requirements: &str) -> Result<PathBuf> {
    let mut python = with_packages(requirements)?;
    let locate = "import importlib.util as u; print(u.find_spec('onnxruntime').origin)";
    let output = python.args(["-c", locate]).output();
    let output = output.context("cannot run Python")?;
    let module = PathBuf::from(String::from_utf8(output.stdout)?.trim());
    let dir = module.with_file_name("capi");
    let files = fs::read_dir(&dir).with_context(|| format!("cannot list `{}`", dir.display()))?;
    for file in files {
        let file = file?;
        let name = file.file_name();
        if name.to_string_lossy().starts_with("libonnxruntime.so") {
            return Ok(file.path());
        }
    }
    bail!("`{}` has no `libonnxruntime.so`", dir.display())
}

fn python_in(dir: &Path) -> Command {
    let in_venv = dir.join("venv/bin/python");
    if in_venv.exists() {
        return Command::new(in_venv);
    }
    let mut python = Command::new(system_python());
    python.env("PYTHONPATH", packages(dir));
    python
}

fn packages(dir: &Path) -> PathBuf {
    dir.join("packages")
}

fn system_python() -> PathBuf {
    env::var_os("PYTHON").map_or_else(|| "python3".into(), PathBuf::from)
}
