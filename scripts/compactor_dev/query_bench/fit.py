"""``python -m compactor_dev.query_bench.fit [FILE …]``: what runs of the bench come to.

Fits the model of :mod:`compactor.planning.seconds` to each engine that read sources and outputs of
one compression, tells how far it is off, and which goals the run has shown. Fitted are medians of
the query ``group``, which reads everything; with so many readers as GETs were under way at once
the other three figures are a linear problem. None may be below zero.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

from compactor.planning.seconds import ATHENA, Engine, Stored, seconds
from compactor_dev import REPOSITORY
from compactor_dev.query_bench.access import Requests
from compactor_dev.query_bench.session import Turn
from compactor_dev.query_bench.table import Figure, Key, figures, markdown

_RESULTS = REPOSITORY / "build" / "query-bench" / "results.json"
_QUERY, _RAW = "group", "raw"
# Outputs of the sources' own compression: one part each.
_FITTED = ("same", "gzip")
_FEWEST_POINTS = 4
#: Published pairs whose objects are told: how many, their bytes, seconds.
PUBLISHED = (
    ("AWS Storage Blog, raw", Stored(2_000, 280_000_000, 2_000), 16.0),
    ("AWS Storage Blog, compacted (4 outputs assumed)", Stored(4, 280_000_000, 4), 6.8),
    ("Upsolver, raw", Stored(582_000, 83_000_000_000, 582_000), 40.7),
    ("Upsolver, compacted", Stored(336, 83_000_000_000, 336 * 4), 9.7),
)


@dataclass(frozen=True, slots=True)
class Point:
    """One median.

    Attributes:
        given, layout: names of the set and the layout.
        stored: what was read.
        seconds: it took.
        gets: GETs that were under way at once, at most.
    """

    given: str
    layout: str
    stored: Stored
    seconds: float
    gets: int


@dataclass(frozen=True, slots=True)
class Fit:
    """The model of one engine.

    Attributes:
        title: of the engine, with its threads.
        engine: what was found.
        errors: of each point: how much longer the model takes, as a share of the seconds.
    """

    title: str
    engine: Engine
    errors: Mapping[tuple[str, str], float]


def main(argv: Sequence[str] | None = None) -> int:
    """Read, fit, print; 1 where the file is none of the bench's."""
    parser = argparse.ArgumentParser(prog="query_bench.fit", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("results", type=Path, nargs="*", help=f"of its runs (default {_RESULTS})")
    args = parser.parse_args(argv)
    sets: list[Mapping[str, Any]] = []
    turns: list[Turn] = []
    for file in args.results or [_RESULTS]:
        try:
            sets += json.loads(file.read_text("utf-8"))["sets"]
            turns = [turn for one in sets for turn in _turns(one)]
        except (OSError, ValueError, KeyError, TypeError) as error:
            sys.stderr.write(f"{file}: no results of make query-bench ({error!r})\n")
            return 1
    found = figures(turns)
    for text in (_models(sets, found), _published(), _goals(found)):
        sys.stdout.write(f"{text}\n\n")
    return 0


def _turns(given: Mapping[str, Any]) -> Iterator[Turn]:
    for turn in given["turns"]:
        yield replace(Turn(**turn), requests=Requests(**turn["requests"]))


def points(
    sets: Sequence[Mapping[str, Any]], found: Mapping[Key, Figure]
) -> dict[str, list[Point]]:
    """What the model is fitted to, by the title of the engine.

    Args:
        sets: as the bench's results have them.
        found: the medians of all their turns.
    """
    stored = {
        (one["name"], layout): Stored(count, one["bytes"][layout], count)
        for one in sets
        for layout, count in one["objects"].items()
    }
    points: dict[str, list[Point]] = {}
    for (given, query, title, layout), figure in found.items():
        if query == _QUERY and not figure.cold and _is_fitted(layout):
            gets = figure.requests.most_gets
            point = Point(given, layout, stored[given, layout], figure.median, gets)
            points.setdefault(title, []).append(point)
    return points


def _is_fitted(layout: str) -> bool:
    return layout == _RAW or layout.startswith(_FITTED)


def fitted(title: str, measured: Sequence[Point]) -> Fit | None:
    """The engine that comes nearest to these, each error as a share of its seconds.

    Returns:
        None where there are too few to say anything of more than themselves.
    """
    if len(measured) < _FEWEST_POINTS:
        return None
    readers = max(1, *(one.gets for one in measured))
    rows = [[part / one.seconds for part in _parts(one.stored, readers)] for one in measured]
    start, opening, each_byte = _least(rows)
    engine = Engine(start, opening, 1 / each_byte if each_byte else float("inf"), readers)
    errors = {
        (one.given, one.layout): seconds(engine, one.stored) / one.seconds - 1 for one in measured
    }
    return Fit(title, engine, errors)


def _parts(stored: Stored, readers: int) -> tuple[float, float, float]:
    """What start, opening and each byte are multiplied by: the model's own formula."""
    opening = stored.objects / max(1, min(readers, stored.objects))
    return 1.0, opening, stored.bytes / max(1, min(readers, stored.parts))


def _least(rows: Sequence[Sequence[float]]) -> tuple[float, float, float]:
    """Three factors, none below zero, by which each row adds up to 1 as nearly as can be."""
    best, least = (0.0, 0.0, 0.0), float(len(rows))
    for count in (1, 2, 3):
        for chosen in combinations(range(3), count):
            found = _solved(rows, chosen)
            if found is None or min(found) < 0:
                continue
            factors = [0.0, 0.0, 0.0]
            for place, value in zip(chosen, found, strict=True):
                factors[place] = value
            left = sum((_sum(row, factors) - 1) ** 2 for row in rows)
            if left < least:
                best, least = (factors[0], factors[1], factors[2]), left
    return best


def _sum(row: Sequence[float], factors: Sequence[float]) -> float:
    return sum(part * factor for part, factor in zip(row, factors, strict=True))


def _solved(rows: Sequence[Sequence[float]], chosen: Sequence[int]) -> list[float] | None:
    """Least squares of these columns, by the normal equations; None where they say the same."""
    # Columns differ by many orders of magnitude.
    scales = [max(row[place] for row in rows) for place in chosen]
    columns = [
        [row[place] / scale for row in rows] for place, scale in zip(chosen, scales, strict=True)
    ]
    matrix = [[_sum(one, other) for other in columns] + [sum(one)] for one in columns]
    size = len(columns)
    for at in range(size):
        pivot = max(range(at, size), key=lambda row: abs(matrix[row][at]))
        matrix[at], matrix[pivot] = matrix[pivot], matrix[at]
        if abs(matrix[at][at]) < 1e-9:
            return None
        for row in range(size):
            if row != at:
                factor = matrix[row][at] / matrix[at][at]
                matrix[row] = [
                    one - factor * other for one, other in zip(matrix[row], matrix[at], strict=True)
                ]
    return [matrix[at][size] / matrix[at][at] / scales[at] for at in range(size)]


def _models(sets: Sequence[Mapping[str, Any]], found: Mapping[Key, Figure]) -> str:
    heads = ("Engine, threads", "Points", "Errors", "Readers", "Start s", "Opening ms", "MB/s")
    lines = []
    for title, measured in sorted(points(sets, found).items()):
        fit = fitted(title, measured)
        if fit is None:
            lines.append([title, str(len(measured)), "too few points", "", "", "", ""])
            continue
        worst = f"{min(fit.errors.values()):+.0%} to {max(fit.errors.values()):+.0%}"
        one = fit.engine
        lines.append(
            [
                title,
                str(len(measured)),
                worst,
                str(one.readers),
                f"{one.start_seconds:.2f}",
                f"{one.open_seconds * 1000:.1f}",
                f"{one.bytes_per_second / 1e6:.1f}",
            ]
        )
    return markdown(heads, lines)


def _published() -> str:
    heads = ("Published", "Seconds", "The model", "Error")
    lines = []
    for name, stored, took in PUBLISHED:
        model = seconds(ATHENA, stored)
        lines.append([name, f"{took:g}", f"{model:.1f}", f"{model / took - 1:+.0%}"])
    return markdown(heads, lines)


@dataclass(frozen=True, slots=True)
class Goal:
    """One of the bench's goals, of one engine.

    Attributes:
        what: it asks for.
        title: of the engine, with its threads.
        shown: in words.
        met: whether it was.
    """

    what: str
    title: str
    shown: str
    met: bool


_MANY = ", 32"
_SMALL, _LARGE = "20k-3kb", "2k-120kb"
_SMALL_TIMES, _SMALL_TIMES_AT_32, _LARGE_TIMES, _PARQUET_TIMES = 10.0, 4.0, 2.0, 5.0
_EXACT_SHARE = 1.1


def goals(found: Mapping[Key, Figure]) -> Iterator[Goal]:
    """Those of which the run has the figures; what was cold on one side says nothing."""
    for given, title in dict.fromkeys((key[0], key[2]) for key in found):
        by_layout = {key[3]: one for key, one in found.items() if key[:3] == (given, _QUERY, title)}
        raw, same = by_layout.get(_RAW), by_layout.get("same")
        if raw is None or same is None or raw.cold != same.cold:
            continue
        many = title.endswith(_MANY)
        wanted = _wanted(given, many=many)
        if wanted:
            what = f"{given}: compacted at least {wanted:g} times as fast"
            yield Goal(what, title, f"{same.gain:.1f} x", same.gain >= wanted)
        parquet = by_layout.get("parquet")
        if parquet is not None and parquet.cold == same.cold:
            more = same.median / parquet.median
            what = f"{given}: Parquet {_PARQUET_TIMES:g} times as fast again"
            yield Goal(what, title, f"{more:.1f} x", more >= _PARQUET_TIMES)
        exact = by_layout.get("exact")
        if exact is not None and exact.cold == raw.cold:
            share = exact.median / _expected(raw, same, exact)
            what = f"{given}: the exact table within 10 %, object by object"
            yield Goal(what, title, f"{share - 1:+.0%}", share <= _EXACT_SHARE)


def _wanted(given: str, *, many: bool) -> float:
    if given == _SMALL:
        return _SMALL_TIMES_AT_32 if many else _SMALL_TIMES
    if given == _LARGE:
        # Never slower, at any concurrency.
        return 1.0 if many else _LARGE_TIMES
    return 0.0


def _expected(raw: Figure, same: Figure, exact: Figure) -> float:
    """The seconds of a table of which so many objects are sources, between raw and compacted."""
    between = max(1, raw.requests.gets - same.requests.gets)
    share = (exact.requests.gets - same.requests.gets) / between
    return same.median + (raw.median - same.median) * share


def _goals(found: Mapping[Key, Figure]) -> str:
    lines = [
        [one.what, one.title, one.shown, "met" if one.met else "**missed**"] for one in goals(found)
    ]
    return markdown(("Goal", "Engine, threads", "Shown", ""), lines)


if __name__ == "__main__":
    sys.exit(main())
