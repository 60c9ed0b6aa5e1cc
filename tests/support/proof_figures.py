"""Figures of tests for ``make proof``, and how soon the removal of each guard was noticed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def leave(directory: Path, name: str, figures: Mapping[str, Any]) -> None:
    """Write figures of one kind to ``NAME.json``."""
    (directory / f"{name}.json").write_text(json.dumps(figures), encoding="utf-8")


def note_mutation(directory: Path, kind: str, guard: str, schedules: int) -> None:
    """Record how many schedules it took to notice that a guard was removed.

    Args:
        directory: the directory of the figures.
        kind: the kind of schedules, each with its own file ``mutations-KIND.json``.
        guard: the guard's name.
        schedules: the number of schedules, including the one that noticed.
    """
    path = directory / f"mutations-{kind}.json"
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    known[guard] = {"schedules": schedules}
    path.write_text(json.dumps(known), encoding="utf-8")
