"""What all tests of a session did to the runs, added up."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.faults import KILLS, Fault


class Figures:
    """Sums of a session.

    Attributes:
        faults: by the name of their kind; those of the proxy and those of the machine.
        runs: executions of the workflow, faulty ones and those that make good.
        kills: worker processes ended with SIGKILL.
        records: records of sources that were shown to be in exactly one output.
    """

    def __init__(self) -> None:
        self.faults: Counter[str] = Counter()
        self.runs = 0
        self.kills = 0
        self.records = 0

    def add(self, faults: Mapping[Fault, int]) -> None:
        """Add what a proxy counted."""
        for fault, count in faults.items():
            self.faults[fault.value] += count
            self.kills += count if fault in KILLS else 0

    def write(self, directory: Path, process: str) -> None:
        """Leave them as ``faults-PROCESS.json``: tests of several processes add up in `summed`."""
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / f"faults-{process}.json"
        path.write_text(json.dumps(self.to_dict(), indent=2) + "\n", "utf-8")

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        faults = dict(sorted(self.faults.items()))
        return {
            "faults": faults,
            "runs": self.runs,
            "kills": self.kills,
            "records": self.records,
        }


def summed(directory: Path) -> dict[str, Any]:
    """What all processes left in a directory, as `Figures.to_dict` has it."""
    total = Figures()
    for path in directory.glob("faults-*.json"):
        left = json.loads(path.read_text("utf-8"))
        total.faults.update(left["faults"])
        total.runs += left["runs"]
        total.kills += left["kills"]
        total.records += left["records"]
    return total.to_dict()
