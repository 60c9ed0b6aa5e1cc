"""Options, and the run as a whole."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from compactor.errors import CompactorError, InvalidInput
from compactor_cli.console import print_error
from compactor_dev import REPOSITORY
from compactor_dev.benchmark.tools import find
from compactor_dev.query_bench import engines, layouts, sets
from compactor_dev.query_bench.access import AccessLog
from compactor_dev.query_bench.lake import Filled, Place, lake
from compactor_dev.query_bench.session import Session, Turn
from compactor_dev.query_bench.table import HEADS, figures, markdown, rows

_BUILD = REPOSITORY / "build" / "query-bench"
_LATENCY_MS = 25.0
_SETS = "2k-3kb,2k-120kb"
_LAYOUTS = "same,zstd,none,parquet,exact"
# Some records of real CloudTrail fit no columns that the others have, and are rejected.
_LAYOUTS_OF_TRAILS = "same,zstd,none,exact"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure; 1 when an engine answered otherwise than the objects have it."""
    args = _parser().parse_args(argv)
    try:
        measured = _measured(args)
    except CompactorError as error:
        print_error(str(error))
        return 1
    for filled, turns in measured:
        print(_section(filled, turns))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make query-bench", description=__doc__)
    known = ", ".join([*sets.SETS, sets.TRAILS])
    parser.add_argument("--sets", help=f"of {known}; by default {_SETS}, or those of --source")
    parser.add_argument(
        "--source", type=Path, metavar="DIR", help="CloudTrail objects, for the set cloudtrail"
    )
    parser.add_argument(
        "--objects", type=int, default=2_000, help="of the set cloudtrail: copies of --source"
    )
    parser.add_argument(
        "--engines", default=",".join(engines.OF_LOCK), help=f"of {', '.join(engines.ENGINES)}"
    )
    parser.add_argument(
        "--layouts",
        help=f"of {', '.join(layouts.LAYOUTS)}; by default {_LAYOUTS}; no parquet of --source",
    )
    parser.add_argument("--queries", default="group", help=f"of {', '.join(sets.QUERIES)}")
    parser.add_argument("--threads", type=int, nargs="+", default=[0, engines.MANY_THREADS])
    parser.add_argument("--turns", type=int, default=5, help="after one that warms up")
    parser.add_argument("--latency-ms", type=float, default=_LATENCY_MS)
    parser.add_argument("--slow-seconds", type=float, default=20.0, help="asked once only")
    parser.add_argument("--results", type=Path, default=_BUILD / "results.json", metavar="FILE")
    return parser


def _measured(args: argparse.Namespace) -> list[tuple[Filled, list[Turn]]]:
    trails = None if args.source is None else sets.trails_of(args.source, args.objects)
    asked = sets.chosen(args.sets or (_SETS if trails is None else sets.TRAILS), trails)
    chosen = layouts.chosen(args.layouts or (_LAYOUTS if trails is None else _LAYOUTS_OF_TRAILS))
    wanted = engines.chosen(args.engines, args.threads)
    tables = any(one.name == engines.TRINO for one in wanted)
    if tables and any(one.trails for one in asked):
        accepted = f"other engines for {sets.TRAILS}: no table shows its documents and outputs"
        raise InvalidInput("--engines", engines.TRINO, accepted)
    if any(one.parquet for one in chosen) and any(one.trails for one in asked):
        accepted = f"others for {sets.TRAILS}: Parquet lacks records that fit no columns"
        raise InvalidInput("--layouts", args.layouts or _LAYOUTS, accepted)
    queries = [name for name in args.queries.split(",") if name]
    _BUILD.mkdir(parents=True, exist_ok=True)
    tools = find(REPOSITORY / "build" / "bench")

    def say(text: str) -> None:
        if sys.stderr.isatty():
            print_error(text)

    with (
        lake(asked, chosen, Place(tools, _BUILD, args.latency_ms, tables), say) as found,
        engines.running(wanted, found.places, _BUILD) as processes,
    ):
        session = Session(AccessLog(found.log), args.turns, args.slow_seconds, say)
        measured = [
            (filled, session.measure(filled, chosen, processes, queries)) for filled in found.filled
        ]
        versions = {one.engine.name: one.version for one in processes}
    _store(measured, versions, args.results)
    return measured


def _store(
    measured: Sequence[tuple[Filled, list[Turn]]], versions: dict[str, str], file: Path
) -> None:
    document = {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "processors": os.cpu_count(),
        "versions": versions,
        "sets": [
            {
                "name": filled.given.name,
                "objects": filled.outputs,
                "bytes": filled.stored,
                "compaction_seconds": filled.seconds,
                "turns": [asdict(turn) for turn in turns],
            }
            for filled, turns in measured
        ],
    }
    file.write_text(json.dumps(document, indent=1), "utf-8")


def _section(filled: Filled, turns: Sequence[Turn]) -> str:
    answers = filled.answers
    size = answers.stored_bytes / max(1, answers.objects) / 1000
    kind = "CloudTrail" if filled.given.trails else "JSON lines"
    made = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in filled.seconds.items())
    loads = [turn.load for turn in turns] or [0.0]
    load = f"Load average {min(loads):.1f} to {max(loads):.1f}. ¹ once only."
    lines = [
        f"**{answers.objects:,} x {size:.1f} KB {kind}, gzip, {answers.records:,} records**",
        "",
        markdown(HEADS, rows(filled, figures(turns))),
        "",
        f"Runs that made them: {made}. {load}",
        "",
    ]
    return "\n".join(lines)
