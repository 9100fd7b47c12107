//! `cargo xtask`: tests, checks and benchmarks of the project.

#![expect(clippy::print_stderr, reason = "a command-line tool for developers")]

mod bench;
mod command;
mod conformance;
mod install_c;
mod licences;
mod package;
mod page;
mod prose;
mod pytest;
mod python;
mod release;
mod rings;
mod source_text;
mod stages;
mod style;
mod tidy;
mod verdicts;

use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::Instant;

use anyhow::{Result, bail};

use crate::command::{cargo, root, run};
use crate::package::{RAY_REQUIREMENTS, TORCH_REQUIREMENTS};
use crate::pytest::AtOnce;
use crate::stages::Stages;

/// Python packages for the tests.
const E2E_REQUIREMENTS: &str = "tests/e2e/requirements.txt";

/// The path of the licence notices.
const NOTICES: &str = "target/THIRD_PARTY_NOTICES";

const USAGE: &str = "usage: cargo xtask COMMAND

  test [--quick] [--exhaustive]
          formatting, lints, invariants, tests, documentation, fuzz targets, the comparison with
          ONNX Runtime, and the Python package, also with Ray and PyTorch (installs what they need
          into target/python). A failed stage does not stop the others; the summary names it. Large
          families of cases run a sample, drawn by the commit. --quick: no documentation, browser,
          Ray or PyTorch. --exhaustive: every case, also for `e2e`, `python`, `ray`, `torch`,
          `browser`
  check   formatting, lints and invariants only
  tidy    invariants only: dependencies, their licences, places, names, comments, import cycles
  notices [FILE]
          the licence texts of everything in a release, in target/THIRD_PARTY_NOTICES
  e2e     the comparison with ONNX Runtime only
  conformance [--engine NAME] [--cases PATTERN]...
          ONNX's backend node tests through each engine, with every operator dumped; without
          options the tables in tests/conformance/README.md are rewritten
  verdicts [--set NAME] [--only GLOB] [--update] [-v]
          cases with a known right answer through the binary, as a table, with those that
          are better or worse than in tests/verdicts/expected.json; `--update` stores the outcomes
  page    builds the page of `opscope view` from `web/`, with npm, for the binary to embed
  browser the tests of the page in a browser only
  python  the tests of the Python package only, without those of torch
  ray     the tests of work shared by processes and a Ray cluster only
  torch   the tests of the Python package with PyTorch only
  release [--out DIR] [source | archive | deb | wheel]...
          packages, by default all, in target/release-packages, with notices, SBOM and checksums;
          each is installed into an empty place and runs the first page of the guide
  bench   benchmarks; each checks its answer. MINDSPORE_PYTHON names a Python with MindSpore, whose
          dump one of them measures, TORCH_PYTHON one with PyTorch; `bench gpu` needs a GPU, and
          ends with 4 without one
  install-c --prefix DIR
          builds the C library and copies it and its headers into DIR
";

fn main() -> ExitCode {
    let command = std::env::args().nth(1).unwrap_or_default();
    let start = Instant::now();
    let result = match command.as_str() {
        "test" => test(&std::env::args().skip(2).collect::<Vec<_>>()),
        "check" => check(),
        "tidy" => invariants(),
        "notices" => {
            let out = std::env::args().nth(2);
            let out = out.map_or_else(|| root().join(NOTICES), PathBuf::from);
            licences::write(&out)
        }
        "e2e" => end_to_end(),
        "conformance" => conformance::run_all(&std::env::args().skip(2).collect::<Vec<_>>()),
        "verdicts" => verdicts::run_sets(&std::env::args().skip(2).collect::<Vec<_>>()),
        "page" => page::build(),
        "browser" => page_in_browser(),
        "python" => package::test(),
        "ray" => package::test_ray(),
        "torch" => package::test_torch(),
        "release" => release::run(&std::env::args().skip(2).collect::<Vec<_>>()),
        "bench" => bench::run(&std::env::args().skip(2).collect::<Vec<_>>()),
        "install-c" => install_c::run(&std::env::args().skip(2).collect::<Vec<_>>()),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => {
            eprintln!(
                "xtask {command}: done in {:.0} s",
                start.elapsed().as_secs_f64()
            );
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("xtask {command}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The rules of the project that can be checked without a build.
fn invariants() -> Result<()> {
    tidy::check()?;
    licences::check()
}

/// Which tests `cargo xtask test` runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lane {
    /// All of them.
    Full,
    /// Those without PyTorch, Ray or a browser.
    Quick,
}

fn test(options: &[String]) -> Result<()> {
    let mut lane = Lane::Full;
    for option in options {
        match option.as_str() {
            "--quick" => lane = Lane::Quick,
            pytest::EXHAUSTIVE => {}
            _ => bail!("`{option}` is no option of `test`; expected --quick or --exhaustive"),
        }
    }
    let mut stages = Stages::default();
    check_in(&mut stages);
    // Downloading these takes minutes, during which the compiler works.
    let packages = (lane == Lane::Full).then(|| thread::spawn(install_large_packages));
    stages.run("Rust tests", test_rust);
    if lane == Lane::Full {
        stages.run("documentation", document);
        stages.run("page", page::check);
    }
    stages.run("end to end", end_to_end);
    stages.run("Python package", package::test);
    if lane == Lane::Full {
        stages.run("browser", page::test_in_browser);
        stages.run("node cases of ONNX", conformance::run_sample);
        // The stage that needs a failed installation repeats and reports it.
        let _ = packages.map(thread::JoinHandle::join);
        stages.run("Ray", package::test_ray);
        stages.run("PyTorch", package::test_torch);
    }
    stages.finish()
}

fn install_large_packages() -> Result<()> {
    for requirements in [RAY_REQUIREMENTS, TORCH_REQUIREMENTS] {
        python::with_packages(requirements)?;
    }
    Ok(())
}

fn test_rust() -> Result<()> {
    let mut tests = cargo(&["test", "--workspace", "--locked", "--no-fail-fast"]);
    // User converters of the drop-in are Python scripts that need numpy.
    python::provide(&mut tests, E2E_REQUIREMENTS)?;
    // Tests of ONNX Runtime are skipped without its library; the others use the embedded engine.
    let library = python::onnxruntime_library(E2E_REQUIREMENTS)?;
    tests.env("OPSCOPE_ENGINE_LIB", library);
    tests.env("OPSCOPE_ENGINE", "tract");
    run("tests", tests)
}

fn document() -> Result<()> {
    let mut doc = cargo(&["doc", "--workspace", "--no-deps", "--locked"]);
    doc.arg("--document-private-items");
    doc.env(
        "RUSTDOCFLAGS",
        "-D warnings -A rustdoc::private-intra-doc-links",
    );
    run("documentation", doc)
}

fn check() -> Result<()> {
    let mut stages = Stages::default();
    check_in(&mut stages);
    stages.finish()
}

fn check_in(stages: &mut Stages) {
    stages.run("formatting", || {
        run("formatting", cargo(&["fmt", "--all", "--", "--check"]))
    });
    stages.run("invariants", invariants);
    stages.run("lints", || {
        let mut clippy = cargo(&["clippy", "--workspace", "--all-targets", "--locked"]);
        clippy.args(["--", "-D", "warnings"]);
        // Fuzz targets are checked but not linked, so the fuzzer's C++ code need not be compiled.
        clippy.env("CUSTOM_LIBFUZZER_PATH", target_dir().join("libfuzzer.a"));
        run("lints", clippy)
    });
}

/// Runs the models of the tests in the built binary and in ONNX Runtime and compares every value.
fn end_to_end() -> Result<()> {
    build_binary()?;
    let mut pytest = pytest::in_folder(E2E_REQUIREMENTS, "tests/e2e", AtOnce::AllProcessors)?;
    pytest.env("OPSCOPE", built("debug", "opscope")?);
    run("comparison with ONNX Runtime", pytest)?;
    let mut sample = pytest::in_folder(E2E_REQUIREMENTS, "tests/verdicts", AtOnce::AllProcessors)?;
    sample.env("OPSCOPE", built("debug", "opscope")?);
    sample.env(
        "OPSCOPE_ENGINE_LIB",
        python::onnxruntime_library(E2E_REQUIREMENTS)?,
    );
    run("a sample of verdicts", sample)
}

/// Opens the page of the built binary in a browser.
fn page_in_browser() -> Result<()> {
    build_binary()?;
    page::test_in_browser()
}

fn build_binary() -> Result<()> {
    run(
        "binary",
        cargo(&["build", "--workspace", "--bin", "opscope", "--locked"]),
    )
}

/// The path of a file built with a profile.
fn built(profile: &str, name: &str) -> Result<PathBuf> {
    let path = target_dir().join(profile).join(name);
    if !path.is_file() {
        bail!("`{}` was not built", path.display());
    }
    Ok(path)
}

/// Cargo's target directory.
fn target_dir() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR");
    root().join(target.map_or_else(|| "target".into(), PathBuf::from))
}
