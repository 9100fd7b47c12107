//! `cargo xtask`: tests, checks and benchmarks of the project.

#![expect(clippy::print_stderr, reason = "a command-line tool for developers")]

mod bench;
mod command;
mod conformance;
mod install_c;
mod package;
mod page;
mod prose;
mod pytest;
mod python;
mod rings;
mod source_text;
mod style;
mod tidy;

use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::command::{cargo, run};
use crate::package::{RAY_REQUIREMENTS, TORCH_REQUIREMENTS};
use crate::pytest::AtOnce;

/// The features that the default build lacks. Everything is built with them here, so that nothing
/// is built twice.
const EXTRAS: &str = "opscope/remote";
/// Packages that tests need.
const E2E_REQUIREMENTS: &str = "tests/e2e/requirements.txt";

const USAGE: &str = "usage: cargo xtask COMMAND

  test    everything: formatting, lints, invariants, tests, documentation, fuzz targets, and the
          comparison with ONNX Runtime, and the Python package, with Ray and PyTorch as well
          (installs what they need into target/python)
  check   formatting, lints and invariants only
  tidy    invariants only: dependencies, places, names, comments, rings of imports
  e2e     the comparison with ONNX Runtime only
  conformance [--engine NAME] [--cases PATTERN]...
          the node cases that ONNX tests backends with, through each engine with every operator
          dumped; without options the tables in docs/engines.md are written anew
  page    builds the page of `opscope view` from `web/`, with npm, for the binary to hold
  browser the tests of the page in a browser only
  python  the tests of the Python package only, without those of torch
  ray     the tests of work that processes and a Ray cluster share only
  torch   the tests of the Python package with PyTorch only
  wheel   a wheel of the Python package, in target/wheels; options go to maturin
  bench   benchmarks; every one checks its answer. MINDSPORE_PYTHON names a Python with MindSpore,
          whose dump one of them measures, TORCH_PYTHON one with PyTorch; `bench gpu` needs a GPU,
          and ends with 4 without one
  install-c --prefix DIR
          builds the C library and copies it and its headers into DIR
";

fn main() -> ExitCode {
    let command = std::env::args().nth(1).unwrap_or_default();
    let start = Instant::now();
    let result = match command.as_str() {
        "test" => test(),
        "check" => check(),
        "tidy" => tidy::check(),
        "e2e" => end_to_end(),
        "conformance" => conformance::run_all(&std::env::args().skip(2).collect::<Vec<_>>()),
        "page" => page::build(),
        "browser" => page_in_browser(),
        "python" => package::test(),
        "ray" => package::test_ray(),
        "torch" => package::test_torch(),
        "wheel" => package::wheel(&std::env::args().skip(2).collect::<Vec<_>>()),
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

fn test() -> Result<()> {
    check()?;
    // Downloading these takes minutes, in which the compiler has work.
    let packages = thread::spawn(|| {
        let later = [RAY_REQUIREMENTS, TORCH_REQUIREMENTS];
        later
            .iter()
            .try_for_each(|one| python::with_packages(one).map(drop))
    });
    let mut tests = cargo(&["test", "--workspace", "--features", EXTRAS, "--locked"]);
    // User converters of the drop-in are Python scripts that need numpy.
    python::provide(&mut tests, E2E_REQUIREMENTS)?;
    // Tests of ONNX Runtime skip themselves without its library; the others mean the embedded
    // engine.
    let library = python::onnxruntime_library(E2E_REQUIREMENTS)?;
    tests.env("OPSCOPE_ENGINE_LIB", library);
    tests.env("OPSCOPE_ENGINE", "tract");
    run("tests", tests)?;
    let mut doc = cargo(&[
        "doc",
        "--workspace",
        "--features",
        EXTRAS,
        "--no-deps",
        "--locked",
        "--document-private-items",
    ]);
    doc.env(
        "RUSTDOCFLAGS",
        "-D warnings -A rustdoc::private-intra-doc-links",
    );
    run("documentation", doc)?;
    let mut fuzz = cargo(&["check", "--manifest-path", "fuzz/Cargo.toml", "--locked"]);
    // Checking links nothing, so the fuzzer's own C++ code need not be compiled for it.
    fuzz.env(
        "CUSTOM_LIBFUZZER_PATH",
        command::root().join("target/libfuzzer.a"),
    );
    run("fuzz targets", fuzz)?;
    page::check()?;
    end_to_end()?;
    page::test_in_browser()?;
    conformance::run_sample()?;
    package::test()?;
    // What could not be installed is tried again, and told then.
    let _ = packages.join();
    package::test_ray()?;
    package::test_torch()
}

fn check() -> Result<()> {
    run("formatting", cargo(&["fmt", "--all", "--", "--check"]))?;
    tidy::check().context("invariants")?;
    let clippy = [
        "clippy",
        "--workspace",
        "--features",
        EXTRAS,
        "--all-targets",
        "--locked",
        "--",
        "-D",
        "warnings",
    ];
    run("lints", cargo(&clippy))
}

/// Runs the models of the tests in the built binary and in ONNX Runtime and compares every value.
fn end_to_end() -> Result<()> {
    build_binary()?;
    let mut pytest = pytest::in_folder(E2E_REQUIREMENTS, "tests/e2e", AtOnce::AllProcessors)?;
    pytest.env("OPSCOPE", built("debug", "opscope")?);
    run("comparison with ONNX Runtime", pytest)
}

/// Opens the page of the built binary in a browser.
fn page_in_browser() -> Result<()> {
    build_binary()?;
    page::test_in_browser()
}

fn build_binary() -> Result<()> {
    run(
        "binary",
        cargo(&[
            "build",
            "--workspace",
            "--features",
            EXTRAS,
            "--bin",
            "opscope",
            "--locked",
        ]),
    )
}

/// A file that was built with a profile.
fn built(profile: &str, name: &str) -> Result<PathBuf> {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    let path = command::root().join(target).join(profile).join(name);
    if !path.is_file() {
        bail!("`{}` was not built", path.display());
    }
    Ok(path)
}
