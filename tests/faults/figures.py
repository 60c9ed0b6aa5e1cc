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

    def write(self, directory: Path) -> None:
        """Leave them as ``faults.json``."""
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "faults.json").write_text(json.dumps(self.to_dict(), indent=2) + "\n", "utf-8")

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        faults = dict(sorted(self.faults.items()))
        return {
            "faults": faults,
            "runs": self.runs,
            "kills": self.kills,
            "records": self.records,
        }
