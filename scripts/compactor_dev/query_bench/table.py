"""Medians of the turns, for people."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from compactor_dev.query_bench.access import Requests
from compactor_dev.query_bench.lake import Filled
from compactor_dev.query_bench.session import Turn

HEADS = (
    "Query",
    "Engine, threads",
    "Layout",
    "Objects",
    "Median s",
    "Min s",
    "Gain",
    "GET",
    "HEAD",
    "LIST",
    "MB",
    "GETs at once",
)


@dataclass(frozen=True, slots=True)
class Figure:
    """One query of one engine on one layout.

    Attributes:
        turns: that were counted.
        median, least: seconds.
        requests: of the last turn.
        cold: nothing had warmed the engine up for it.
        gain: how many times as long the same took on raw objects; 0.0 where that is unknown, and
            where one of the two was cold and the other was not.
    """

    turns: int
    median: float
    least: float
    requests: Requests
    cold: bool = False
    gain: float = 0.0


#: Set, query, engine with its threads, layout.
Key = tuple[str, str, str, str]


def figures(turns: Sequence[Turn]) -> Mapping[Key, Figure]:
    """By set, query, engine and layout, in the order they were asked in.

    The turn that warms up counts where there is no other: what was too slow for a second.
    """
    by_key: dict[Key, list[Turn]] = {}
    for turn in turns:
        key = (turn.given, turn.query, turn.engine, turn.layout)
        by_key.setdefault(key, []).append(turn)
    found: dict[Key, Figure] = {}
    for key, several in by_key.items():
        warm = [one for one in several if one.number]
        counted = warm or several
        seconds = [one.seconds for one in counted]
        median, least = statistics.median(seconds), min(seconds)
        found[key] = Figure(len(counted), median, least, counted[-1].requests, cold=not warm)
    return {key: _with_gain(key, one, found) for key, one in found.items()}


def _with_gain(key: Key, one: Figure, found: Mapping[Key, Figure]) -> Figure:
    raw = found.get((*key[:3], "raw"))
    if raw is None or raw.cold != one.cold:
        return one
    return replace(one, gain=raw.median / one.median)


def rows(filled: Filled, found: Mapping[Key, Figure]) -> list[list[str]]:
    """One set's rows below :data:`HEADS`."""
    lines = []
    for (given, query, engine, layout), one in sorted(
        found.items(), key=lambda item: (item[0][1], item[0][2])
    ):
        if given != filled.given.name:
            continue
        asked = one.requests
        objects = filled.outputs.get(layout)
        lines.append(
            [
                query,
                engine,
                layout,
                f"{objects:,}" if objects is not None else "",
                f"{one.median:.2f}" + (" ¹" if one.cold else ""),
                f"{one.least:.2f}",
                f"{one.gain:.2f} x" if one.gain else "",
                f"{asked.gets:,}",
                f"{asked.heads:,}",
                f"{asked.lists:,}",
                f"{asked.bytes / 1e6:.1f}",
                f"{asked.most_gets:,}",
            ]
        )
    return lines


def markdown(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table as documents have it."""
    rule = [":---", ":---", ":---", *["---:"] * (len(heads) - 3)]
    return "\n".join(f"| {' | '.join(line)} |" for line in (heads, rule, *lines))
