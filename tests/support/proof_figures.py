"""What tests leave for ``make proof``: figures by name, and how soon each guard was missed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def leave(directory: Path, name: str, figures: Mapping[str, Any]) -> None:
    """Figures of one kind, as ``NAME.json``."""
    (directory / f"{name}.json").write_text(json.dumps(figures), encoding="utf-8")


def note_mutation(directory: Path, kind: str, guard: str, schedules: int) -> None:
    """A guard was taken out, and it took so many schedules until that was noticed.

    Args:
        directory: of the figures.
        kind: of the schedules; each has a file of its own, ``mutations-KIND.json``.
        guard: its name.
        schedules: that were played, the one that noticed included.
    """
    path = directory / f"mutations-{kind}.json"
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    known[guard] = {"schedules": schedules}
    path.write_text(json.dumps(known), encoding="utf-8")
