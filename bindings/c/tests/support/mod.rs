//! Programs in C and C++, compiled with the headers and the library built for the tests.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The root of the project.
pub(crate) fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The directory of the headers.
pub(crate) fn headers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("include")
}

/// The directory of the library: cargo builds it next to the tests, which depend on it.
pub(crate) fn library_dir() -> PathBuf {
    let test = std::env::current_exe().expect("the test has a path");
    let dir = test.parent().expect("the test has a directory");
    let library = dir.join("libascendcl.so");
    assert!(library.is_file(), "{} was not built", library.display());
    dir.to_owned()
}

/// A program compiled in a separate directory.
pub(crate) struct Program {
    path: PathBuf,
    dir: tempfile::TempDir,
}

/// The output of a successful program.
pub(crate) struct Said {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Program {
    /// Compiles `tests/programs/{source}` with all warnings as errors.
    pub(crate) fn compile(source: &str) -> Program {
        let dir = tempfile::tempdir().expect("a directory for the program");
        let path = dir.path().join("program");
        let library_dir = library_dir();
        let is_cpp = source.ends_with(".cpp");
        let (compiler, standard) = if is_cpp {
            ("g++", "-std=c++11")
        } else {
            ("gcc", "-std=c99")
        };
        let mut command = Command::new(compiler);
        command
            .args([standard, "-Wall", "-Wextra", "-Werror"])
            .arg(format!("-I{}", headers().display()))
            .arg(programs().join(source))
            .arg(format!("-L{}", library_dir.display()))
            .arg(format!("-Wl,-rpath,{}", library_dir.display()))
            .args(["-lascendcl", "-lpthread", "-o"])
            .arg(&path);
        if !is_cpp {
            command.arg("-pedantic");
        }
        succeed(&mut command);
        Program { path, dir }
    }

    /// A directory that exists as long as the program.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Writes a file next to the program.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.dir().join(name);
        std::fs::write(&path, content).expect("a file beside the program");
        path
    }

    /// Runs the program in its directory; it has to succeed.
    pub(crate) fn run<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Said {
        said(succeed(self.command().args(arguments)))
    }

    /// Like [`Program::run`], with further environment variables.
    pub(crate) fn run_in<A: AsRef<OsStr>>(
        &self,
        variables: &[(&str, &OsStr)],
        arguments: &[A],
    ) -> Said {
        let mut command = self.command();
        command.envs(variables.iter().copied()).args(arguments);
        said(succeed(&mut command))
    }

    /// Like [`Program::run`], with text on standard input.
    pub(crate) fn run_with(&self, input: &str) -> Said {
        let mut child = self
            .command()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut stdin = child.stdin.take().expect("it has an input");
        stdin.write_all(input.as_bytes()).expect("it reads");
        drop(stdin);
        let output = child.wait_with_output().expect("the program ends");
        assert_well(&self.path.display().to_string(), &output);
        said(output)
    }

    /// The program, without environment variables that change dumps and logs.
    fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.current_dir(self.dir());
        for name in [
            "ASCEND_DUMP_PATH",
            "ASCEND_WORK_PATH",
            "NPU_COLLECT_PATH",
            "ASCEND_GLOBAL_LOG_LEVEL",
            "ASCEND_SLOG_PRINT_TO_STDOUT",
            "OPSCOPE_ENGINE_LIB",
            // Cargo puts a directory first that may hold the library of an earlier build.
            "LD_LIBRARY_PATH",
        ] {
            command.env_remove(name);
        }
        // The embedded engine, regardless of the machine.
        command.env("OPSCOPE_ENGINE", "tract");
        command
    }
}

fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs")
}

fn said(output: Output) -> Said {
    let text = |bytes| String::from_utf8(bytes).expect("it writes text");
    Said {
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

/// Runs a command that has to succeed. A missing compiler is a failure that names it.
pub(crate) fn succeed(command: &mut Command) -> Output {
    let name = command.get_program().display().to_string();
    let output = command.output();
    let output = output.unwrap_or_else(|error| panic!("cannot start `{name}`: {error}"));
    assert_well(&name, &output);
    output
}

fn assert_well(name: &str, output: &Output) {
    assert!(
        output.status.success(),
        "{name}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
}
