"""ONNX's own node cases through the engines, in several executions and forms. `cargo xtask conformance` calls this."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

# The readers of dumps are those of the end-to-end tests.
sys.path.append(str(Path(__file__).resolve().parents[1] / "e2e"))

import cases
import known
import onnx
import report
import sample
from run import Engine, Result, run_all

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "tests" / "conformance" / "README.md"


def main() -> int:
    arguments = _arguments()
    binary = arguments.binary.resolve()
    every_case = cases.provide(arguments.folder)
    chosen = sample.choose(every_case)
    picked = chosen if arguments.sample else every_case
    if arguments.cases:
        picked = [case for case in picked if any(fnmatchcase(case.name, pattern) for pattern in arguments.cases)]
    if not picked:
        print("no case has such a name", file=sys.stderr)
        return 2
    results: dict[str, list[Result]] = {}
    for engine in _engines(arguments):
        with tempfile.TemporaryDirectory(prefix="conformance-") as scratch:
            results[engine.name] = run_all(binary, engine, picked, Path(scratch), arguments.jobs)
    if arguments.cases:
        for line in _details(results):
            print(line)
    print("\n".join([*report.summary(results), "", *report.by_form_of_inputs(results)]))
    lines = known.problems(results, is_complete=len(picked) == len(every_case))
    if arguments.sample:
        lines += sample.changes(results)
    elif arguments.write:
        sample.save(results, chosen)
        text = DOCUMENT.read_text(encoding="utf-8")
        DOCUMENT.write_text(report.replace_between(text, _document(binary, results)), encoding="utf-8")
    for line in lines:
        print(line, file=sys.stderr)
    return 1 if lines else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", type=Path, required=True, help="the built `opscope`")
    parser.add_argument("--folder", type=Path, required=True, help="where generated cases are kept")
    parser.add_argument("--engine", action="append", choices=["tract", "onnxruntime"], help="[default: both]")
    parser.add_argument("--engine-lib", type=Path, help="ONNX Runtime's library")
    parser.add_argument("--cases", action="append", metavar="PATTERN", help="only these, and tell what became of each")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="[default: one for each processor]")
    parser.add_argument("--sample", action="store_true", help="the stored sample, compared with what is stored")
    parser.add_argument("--write", action="store_true", help="write the tables and the sample into the project")
    return parser.parse_args()


def _engines(arguments: argparse.Namespace) -> Iterator[Engine]:
    names = arguments.engine or ["tract", "onnxruntime"]
    if "tract" in names:
        yield Engine("tract", ("--engine", "tract"))
    if "onnxruntime" in names:
        library = arguments.engine_lib or _library()
        yield Engine("onnxruntime", ("--engine", "onnxruntime", "--engine-lib", str(library)))


def _library() -> Path:
    """The library that the package `onnxruntime` carries."""
    import onnxruntime

    folder = Path(onnxruntime.__file__).parent / "capi"
    return max(folder.glob("libonnxruntime.so.*"))


def _details(results: dict[str, list[Result]]) -> Iterator[str]:
    for engine, all_of in results.items():
        for result in all_of:
            yield f"{engine} {result.case.name}: {result.verdict.outcome} {result.verdict.detail}".rstrip()
            for form, verdict in result.forms.items():
                yield f"    {form}: {verdict.outcome} {verdict.detail}".rstrip()


def _document(binary: Path, results: dict[str, list[Result]]) -> Iterator[str]:
    tool = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    versions = {"tract": _tract_version(), "onnxruntime": _onnxruntime_version()}
    named = [f"{engine} {versions[engine]}" for engine in results]
    n_cases = len(next(iter(results.values())))
    yield f"{n_cases} node cases of onnx {onnx.__version__}, through {' and '.join(named)} ({tool})."
    yield ""
    yield from report.summary(results)
    yield ""
    yield from report.by_form_of_inputs(results)
    for title, keys in (("form", _form), ("opset", _opset), ("type of an input or output", report.dtypes)):
        yield ""
        yield from report.by(results, title, keys)
    yield ""
    yield from known.table(results)
    yield ""
    yield from report.missing(results)
    yield ""
    yield from report.by_operator(results)


def _form(result: Result) -> list[str]:
    return [report.form(result)]


def _opset(result: Result) -> list[str]:
    return [report.opset_range(result)]


def _tract_version() -> str:
    manifest = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    return manifest.split('tract-onnx = { version = "=')[1].split('"')[0]


def _onnxruntime_version() -> str:
    import onnxruntime

    return onnxruntime.__version__


if __name__ == "__main__":
    sys.exit(main())
