"""The proof in figures: one command runs it, prints the table, and can put it into docs/proof.md.

    python -m tests.proof
    python -m tests.proof --write

    python -m tests.proof --sample

Runs what ``make test`` leaves out, and all schedules of which it runs a sample. With ``--sample``
only the former, as continuous integration does after ``make test``. Ends with pytest's exit code.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from compactor_dev.markers import replace_between
from tests.faults.figures import summed
from tests.simulation.event_mutations import EVENT_MUTATIONS
from tests.simulation.keyed import KEYED_MUTATIONS
from tests.simulation.lake import LAKE_MUTATIONS
from tests.simulation.mutations import MUTATIONS
from tests.simulation.readers import READER_MUTATIONS
from tests.simulation.tables import TABLE_MUTATIONS
from tests.support.real_servers import REAL_SERVERS

REPOSITORY = Path(__file__).parents[1]
BEGIN, END = "<!-- proof: made by make proof -->\n", "<!-- /proof -->"
# Schedules of a lake: the name of their figures, and what they are.
_LAKE = {
    "simulation-tables": "outputs into a table that others write and compact",
    "simulation-keyed": "upserts that arrive in any order",
    "simulation-events": "events that arrive twice, late, out of order, or never",
    "simulation-lake": "objects that events announce, compacted into a table",
    "simulation-readers": "queries while runs, refreshes and clean-ups proceed or are killed",
    "spark-tables": "outputs into Iceberg and Delta tables, on Spark",
}
_MUTATIONS: Mapping[str, Collection[str]] = {
    "mutations": MUTATIONS,
    "mutations-tables": TABLE_MUTATIONS,
    "mutations-keyed": KEYED_MUTATIONS,
    "mutations-events": EVENT_MUTATIONS,
    "mutations-lake": LAKE_MUTATIONS,
    "mutations-readers": READER_MUTATIONS,
}
_IN_BRACKETS = re.compile(r"\[(.*)\]$", re.DOTALL)


def main() -> int:
    """Run, print, and write where that is asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.proof", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--write", action="store_true", help="put the table into docs/proof.md")
    parser.add_argument(
        "--sample", action="store_true", help="leave out the schedules of which make test runs some"
    )
    args = parser.parse_args()
    if args.sample:
        return run_tests("proof")
    with tempfile.TemporaryDirectory() as directory:
        status = run_tests("proof or sampled", Path(directory))
        made = table(Path(directory))
    sys.stdout.write(made)
    if args.write and not status:
        page = REPOSITORY / "docs" / "proof.md"
        text = page.read_text(encoding="utf-8")
        page.write_text(replace_between(text, BEGIN, END, made), encoding="utf-8")
    return status


def run_tests(marked: str, directory: Path | None = None) -> int:
    """Run the tests with these marks; return pytest's exit code.

    Args:
        marked: an expression of pytest's ``-m``.
        directory: where the tests leave their figures; without one they run a sample.
    """
    command = [sys.executable, "-m", "tests.support.runner", "tests", "-q", "-m", marked]
    command += ["-n", "3", "--dist", "loadfile"]
    environment = dict(os.environ)
    if directory is not None:
        command.append(f"--junitxml={directory / 'cases.xml'}")
        environment["S3_COMPACTOR_PROOF_DIR"] = str(directory)
    return subprocess.run(command, cwd=REPOSITORY, env=environment, check=False).returncode


def table(directory: Path) -> str:
    """The figures that the tests left, in Markdown."""
    rows = [
        *_model(_figures(directory, "model")),
        *_simulation(_figures(directory, "simulation")),
        *_lake(directory),
        *_mutations(directory),
        *_damage(_figures(directory, "damage")),
        *_cases(directory / "cases.xml"),
        *_faults(summed(directory)),
    ]
    lines = [f"| {what} | {figure} |" for what, figure in rows]
    return "\n".join(["| What was done | Figure |", "|---|---|", *lines]) + "\n"


def _figures(directory: Path, name: str) -> Mapping[str, Any]:
    path = directory / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def _model(found: Mapping[str, int]) -> list[tuple[str, str]]:
    searched = {name: states for name, states in found.items() if states}
    starts = f"{sum(searched.values()):,} from {len(searched)} starts"
    guards = f"{len(found) - len(searched)}, each with the shortest trace to a fault"
    return [
        ("states of the protocol models, all visited", starts),
        ("guards of the models whose removal is noticed", guards),
    ]


def _simulation(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    faults: Mapping[str, int] = found.get("faults", {})
    return [
        ("simulated schedules", f"{found.get('schedules', 0):,}"),
        ("requests in them, every promise checked after each", f"{found.get('requests', 0):,}"),
        (
            "faults and other disturbances injected in them",
            f"{sum(faults.values()):,} of {len(faults)} kinds",
        ),
        ("promises broken", f"{found.get('violations', 'unknown')}"),
    ]


def _lake(directory: Path) -> list[tuple[str, str]]:
    rows = []
    for name, what in _LAKE.items():
        found = _figures(directory, name)
        faults = sum(found.get("faults", {}).values())
        broken = found.get("violations", "unknown")
        figure = f"{found.get('schedules', 0):,}, disturbed {faults:,} times, broken: {broken}"
        rows.append((f"schedules of {what}", figure))
    return rows


def _mutations(directory: Path) -> list[tuple[str, str]]:
    noticed = [
        one["schedules"]
        for name, wanted in _MUTATIONS.items()
        for guard, one in _figures(directory, name).items()
        if guard in wanted
    ]
    known = sum(len(one) for one in _MUTATIONS.values())
    figure = f"{len(noticed)} of {known}, each within {max(noticed, default=0):,} schedules"
    return [("guards of the program whose removal is noticed", figure)]


def _damage(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    what = "objects of the state deleted, swapped or replaced, each after each step of a scenario"
    figure = f"{found.get('damages', 0):,}, promises broken: {found.get('violations', 'unknown')}"
    return [(what, figure)]


def _cases(report: Path) -> list[tuple[str, str]]:
    cases: Counter[str] = Counter()
    for case in ET.parse(report).iter("testcase"):  # noqa: S314 - pytest's own report
        folder = case.get("classname", "").split(".")[1]
        if case.find("skipped") is None:
            cases[folder] += 1
            match = _IN_BRACKETS.search(case.get("name", ""))
            names = set(match[1].split("-")) if match and folder == "contract" else set()
            cases.update(names & {*REAL_SERVERS, "moto", "memory"})
    real = ", ".join(f"{cases[name]:,} on {name}" for name in REAL_SERVERS)
    others = f"{cases['moto']:,} on moto, {cases['memory']:,} in memory"
    return [
        ("cases of the store's contract on real S3 servers", real),
        ("the same on stand-ins", others),
        ("cases of hostile input", f"{cases['hostile']:,}"),
    ]


def _faults(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    faults: Mapping[str, int] = found.get("faults", {})
    return [
        ("runs of real processes", f"{found.get('runs', 0):,}"),
        (
            "faults injected between them and a real server",
            f"{sum(faults.values()):,} of {len(faults)} kinds",
        ),
        ("worker processes killed", f"{found.get('kills', 0):,}"),
        (
            "records of their sources, each found in exactly one output",
            f"{found.get('records', 0):,}",
        ),
    ]


if __name__ == "__main__":
    sys.exit(main())
