"""How often `opscope compare` names the culprit between forms of a network, and whether sound pairs pass.

    python compare_forms.py OPSCOPE_BINARY FOLDER [--sample SHARE] [--only NETWORK,…]

Needs the packages of `requirements.txt` and the `opscope` package. Networks of `networks.py` are dumped in the forms of
`forms.py`; `planted.py` plants faults into the exported files. The tables of `docs/compare/across-tools.md` are what this prints. It
ends with 1 if a sound pair fails, or if fewer culprits or causes are named than `docs/compare/across-tools.md` says. `--sample`
takes a share of the pairs, as `tests/e2e/sampling.py` draws it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import sys
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))
import networks
import onnx
import sampling
from forms import EXPORTED, FORMS, ONNX_FORMS, QUANTISED, STATISTICS, Dumper
from planted import Fault, Planter

SEED = 7
N_THREADS = 2
NAMED_MIN, CAUSES_MIN, NAMED_BY_STATISTICS_MIN = 0.95, 0.9, 0.8
# A sample is small, and some of its pairs depend on the CPU: engines choose layouts by its vectors. Where chance may do
# more, three standard deviations count.
SAMPLE_SLACK = 0.15


@dataclass(frozen=True)
class Verdict:
    """What a comparison says of a pair."""

    level: str
    headline: str
    cause: str

    @property
    def is_fail(self) -> bool:
        return self.level == "fail"


@dataclass(frozen=True)
class Pair:
    """A form with a fault, and a sound one."""

    network: str
    form: str
    golden: str
    fault: Fault
    target_dump: Path
    golden_dump: Path

    def __str__(self) -> str:
        culprits = ", ".join(self.fault.culprits)
        return f"{self.network}: {self.form} against {self.golden}: {self.fault.kind} ({culprits})"


def main() -> None:
    """Dumps all forms, compares the sound ones, then those with faults."""
    warnings.filterwarnings("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sample", type=float, default=1.0)
    parser.add_argument("--only", default="")
    chosen = parser.parse_args()
    names = [name for name in chosen.only.split(",") if name] or [*networks.NETWORKS, *QUANTISED]
    share = 1.0 if sampling.is_exhaustive() else chosen.sample
    trial = Trial(Dumper(chosen.binary, chosen.folder), names, share)
    is_good = trial.compare_sound()
    is_good &= trial.compare_faults()
    sys.exit(int(not is_good))


class Trial:
    """All pairs of some networks."""

    def __init__(self, dumper: Dumper, names: list[str], share: float) -> None:
        self.dumper, self.names, self.share = dumper, names, share
        for name in names:
            dumper.dump_forms(name)

    def compare(self, target: Path, golden: Path) -> Verdict:
        result, headline = self.result(target, golden)
        summary = result["summary"]
        first = summary.get("first_failure") or summary.get("first_divergence") or {}
        return Verdict(summary["level"], headline, first.get("cause", ""))

    def result(self, target: Path, golden: Path) -> tuple[dict, str]:
        """The result of a comparison, and its first line."""
        file = self.dumper.folder / f"{target.parent.name}_{target.name}_{golden.name}.json"
        arguments = ("compare", target, golden, "--jobs", "1", "--json", file, "--force")
        compared = self.dumper.run(*arguments)
        if compared.returncode not in (0, 1, 4):
            raise RuntimeError(compared.stderr)
        result = json.loads(file.read_text())
        file.unlink()
        return result, compared.stdout.split("\n", 1)[0]

    def is_named(self, pair: Pair, verdict: Verdict) -> bool:
        """Whether a headline names an operator at fault; of one that was removed, also its partner on the golden side."""
        if any(f"`{culprit}`" in verdict.headline for culprit in pair.fault.culprits):
            return True
        if pair.fault.kind != "removed" or "the target has no such operator" not in verdict.headline:
            return False
        sound, _ = self.result(self.dumper.dump_of(pair.network, pair.form), pair.golden_dump)
        removed = pair.fault.culprits[0]
        found = [group for group in sound["operators"] if removed in names_of(group["target"])]
        return any(f"`{name}`" in verdict.headline for group in found for name in names_of(group["golden"]))

    def compare_sound(self) -> bool:
        """Every two forms of each network, in both directions."""
        pairs = []
        for name in self.names:
            forms = [form for form in FORMS if self.dumper.dump_of(name, form).exists()]
            pairs += [(name, target, golden) for target, golden in itertools.permutations(forms, 2)]
        pairs = sampling.sample(pairs, self.share)
        dump_of = self.dumper.dump_of
        with ThreadPoolExecutor(N_THREADS) as pool:
            verdicts = pool.map(lambda pair: self.compare(dump_of(*pair[:2]), dump_of(pair[0], pair[2])), pairs)
        failing = [(pair, verdict) for pair, verdict in zip(pairs, verdicts) if verdict.is_fail]
        print(f"sound pairs: {len(pairs)}, of which {len(failing)} fail")
        for (name, target, golden), verdict in failing:
            print(f"  {name}: {target} against {golden}: {verdict.headline}")
        return not failing

    def planted(self) -> list[Pair]:
        """Every fault against two forms: the source, and one of the others in turn."""
        pairs = []
        for name, form in itertools.product(self.names, EXPORTED):
            file = self.dumper.model_of(name, form)
            if not file.exists():
                continue
            others = [other for other in FORMS if other not in (form, "eager")]
            others = [other for other in others if self.dumper.dump_of(name, other).exists()]
            faults = enumerate(Planter(onnx.load(file), f"{SEED} {name} {form}").faults())
            for k, fault in sampling.sample(faults, self.share, lambda fault: f"{name} {form} {fault[0]}"):  # noqa: B023
                changed = file.with_name(f"{form}_fault_{k}.onnx")
                dump = changed.with_suffix("")
                onnx.save(fault.model, changed)
                # What cannot run has no values to compare, and what changes nothing is no fault.
                if not dump.exists() and not (
                    self.dumper.has_effect(changed, name, form)
                    and self.dumper.dump(changed, ONNX_FORMS[form], name, dump)
                ):
                    continue
                for golden in ("eager", others[k % len(others)]):
                    if golden == "float16" and fault.kind.startswith("precision"):
                        # Within the limits of float16.
                        continue
                    golden_dump = self.dumper.dump_of(name, golden)
                    if golden_dump.exists():
                        pairs.append(Pair(name, form, golden, fault, dump, golden_dump))
        return pairs

    def compare_faults(self) -> bool:
        """Tables by kind of fault and by forms, and the misses."""
        pairs = self.planted()
        with ThreadPoolExecutor(N_THREADS) as pool:
            verdicts = list(pool.map(lambda pair: self.compare(pair.target_dump, pair.golden_dump), pairs))
        is_good = True
        for title, is_statistics in (("elements on both sides", False), ("statistics on one side", True)):
            found = [
                (pair, verdict, self.is_named(pair, verdict))
                for pair, verdict in zip(pairs, verdicts)
                if (pair.golden in STATISTICS) == is_statistics
            ]
            named_min = NAMED_BY_STATISTICS_MIN if is_statistics else NAMED_MIN
            slack = 0.0
            if self.share < 1 and found:
                chance = 3 * math.sqrt(named_min * (1 - named_min) / len(found))
                slack = max(SAMPLE_SLACK, chance)
            is_good &= report(title, found, named_min - slack, CAUSES_MIN - slack)
        return is_good


def names_of(operators: list[dict]) -> list[str]:
    return [operator["op_name"] for operator in operators]


def report(title: str, found: list[tuple[Pair, Verdict, bool]], named_min: float, causes_min: float) -> bool:
    """Prints how many culprits and causes are named, and the rest; says whether they are enough."""
    by_kind, by_golden = Tally(), Tally()
    misses = []
    for pair, verdict, is_named in found:
        is_right = verdict.cause in pair.fault.causes or (
            pair.fault.kind in ("wiring", "order") and "golden side's" in verdict.headline
        )
        by_kind.count(pair.fault.kind, is_named, is_named and is_right)
        by_golden.count(pair.golden, is_named, is_named and is_right)
        if not (is_named and is_right):
            what = "cause" if is_named else "culprit"
            misses.append(f"  {what}: {pair}: {verdict.cause}: {verdict.headline}")
    print(f"\n{title}\n")
    by_kind.print("fault")
    print()
    by_golden.print("golden side")
    print("", *misses, sep="\n")
    n = len(found)
    named, right = by_kind.n_named.total(), by_kind.n_right.total()
    return not n or (named >= named_min * n and right >= min(causes_min, named_min) * n)


class Tally:
    """Pairs, named culprits and right causes by some key."""

    def __init__(self) -> None:
        self.n, self.n_named, self.n_right = Counter(), Counter(), Counter()

    def count(self, key: str, is_named: bool, is_right: bool) -> None:
        self.n[key] += 1
        self.n_named[key] += is_named
        self.n_right[key] += is_right

    def print(self, title: str) -> None:
        print(f"| {title} | pairs | culprit named | with the right cause |\n| --- | --- | --- | --- |")
        for key in [*sorted(self.n)]:
            print(f"| {key} | {self.n[key]} | {self.n_named[key]} | {self.n_right[key]} |")
        n = max(1, self.n.total())
        named, right = self.n_named.total(), self.n_right.total()
        print(f"| all | {self.n.total()} | {named} ({named / n:.1%}) | {right} ({right / n:.1%}) |")


main()
