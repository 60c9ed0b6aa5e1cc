"""Options, and the run as a whole: measure, keep, show."""

from __future__ import annotations

import argparse
import itertools
import json
import signal
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from compactor.errors import CompactorError, InvalidInput
from compactor_cli.console import print_error, print_line, print_table, progress
from compactor_cli.local.model import EngineError
from compactor_dev import REPOSITORY
from compactor_dev.benchmark import (
    against,
    checkout,
    clients,
    datasets,
    results,
    speeds,
    table,
    tools,
)
from compactor_dev.benchmark.clients import Client
from compactor_dev.benchmark.front import Lane
from compactor_dev.benchmark.machine import available_bytes
from compactor_dev.benchmark.results import Results, SetResult
from compactor_dev.benchmark.session import Wanted, measure_set

_BUILD = REPOSITORY / "build"
_EXIT_FAILED, _EXIT_USAGE, _EXIT_INTERRUPTED = 1, 2, 130
_QUICK_SAMPLE = 100
# Sets of which docs/performance.md shows what TLS costs.
_OVER_TLS = ("json-4k", "json-100k")
# Sources and one output in the server's memory, twice: moto joins the parts of an upload.
_LARGE_NEEDS_BYTES = 8 * 1024**3


def parser() -> argparse.ArgumentParser:
    """The options of ``make bench``."""
    made = argparse.ArgumentParser(
        prog="make bench",
        description="Measure one worker beside what people use otherwise, on servers of its own.",
        epilog="Options go into ARGS: make bench ARGS='--quick --clients worker,seed'",
    )
    every_set, every_client = ",".join(datasets.SETS), ",".join(clients.CLIENTS)
    made.add_argument("--sets", metavar="NAMES", help=f"of {every_set}; by default all")
    made.add_argument("--clients", metavar="NAMES", help=f"of {every_client}; by default all")
    made.add_argument("--rounds", type=int, metavar="N", help="by default 3")
    made.add_argument(
        "--latency-ms", metavar="MS", help="added to each request; several with commas: 0,25"
    )
    made.add_argument(
        "--faults",
        action="store_true",
        help="also with 1%% of 503s and 0.5%% of answers half a second late",
    )
    made.add_argument(
        "--tls",
        action="store_true",
        help="also over TLS: worker and bare loop, on every set; without it on"
        f" {' and '.join(_OVER_TLS)} alone, and with --quick or --settings on none",
    )
    made.add_argument(
        "--quick",
        action="store_true",
        help="one round of json-4k at 25 ms, small samples; leaves docs/performance.md alone",
    )
    made.add_argument(
        "--settings",
        metavar="JSON",
        default="{}",
        help="fields of the run, for the worker, to try them out; leaves docs/performance.md alone",
    )
    made.add_argument(
        "--against",
        metavar="COMMIT",
        help="the worker of this commit and today's in turn, and the ratios of each round: by"
        f" default {against.ROUNDS} rounds of json-4k at 25 ms; leaves docs/performance.md alone",
    )
    made.add_argument(
        "--format",
        metavar="NAMES",
        help=f"with --against, of {','.join(datasets.FORMATS)}: 20,000 objects of 4 KB of each",
    )
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Measure what was asked for; returns the exit code."""
    args = parser().parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return _run(args)
    except KeyboardInterrupt:
        print_error("bench: interrupted; what was measured before is kept")
        return _EXIT_INTERRUPTED
    except (CompactorError, EngineError) as error:
        print_error(f"bench: {' '.join(str(error).split())}")
        return _EXIT_USAGE if isinstance(error, InvalidInput) else _EXIT_FAILED


def _run(args: argparse.Namespace) -> int:
    if args.against is not None:
        return _compare(args)
    if args.format is not None:
        raise InvalidInput("--format", args.format, "--against with it, or --sets without")
    chosen = datasets.named(args.sets or _default_sets(quick=args.quick))
    wanted = wanted_of(args, chosen)
    _require_clients(chosen, wanted)
    directory = _BUILD / "bench"
    programs = tools.find(directory)
    chosen = _with_memory(chosen)
    wanted = replace(wanted, clients=_available(wanted.clients, programs))
    kept = _BUILD / ("bench.json" if _usual(args) else "bench-quick.json")
    known = results.load(kept)
    steps = sum(wanted.steps(one) for one in chosen)
    with progress("Measuring", total=steps) as bar:
        done = itertools.count()
        told = replace(wanted, on_step=lambda text: bar.show(next(done), steps, text))
        for data_set in chosen:
            # A set is kept as soon as it is measured: a run takes its time.
            known[data_set.name] = measure_set(data_set, told, programs, directory)
            known = _in_order(known)
            kept.write_text(results.to_json(known), encoding="utf-8")
    for data_set in chosen:
        _show(known[data_set.name])
    print_line(f"Every round: {kept.relative_to(REPOSITORY)}")
    if _usual(args) and table.regenerate(REPOSITORY / "docs/performance.md", known):
        print_line("docs/performance.md: the table between its markers is written anew")
    if _usual(args) and speeds.regenerate(
        REPOSITORY / "functions/compactor/discovery/speed.py", known
    ):
        print_line("discovery/speed.py: its measured table is written anew")
    measured = [known[one.name] for one in chosen]
    _warn(measured)
    return _verdict(measured)


def _usual(args: argparse.Namespace) -> bool:
    """What docs/performance.md shows is made with the defaults alone."""
    return not args.quick and not _settings(args.settings)


def _compare(args: argparse.Namespace) -> int:
    wanted = _comparison(args)
    checkout.resolve(REPOSITORY, wanted.commit)
    directory = _BUILD / "bench"
    programs = tools.find(directory)
    with progress("Comparing", total=wanted.steps()) as bar:
        steps = itertools.count()

        def step(text: str) -> None:
            bar.show(next(steps), wanted.steps(), text)

        old, measured = against.compare(replace(wanted, on_step=step), programs, directory)
    kept = _BUILD / "bench-against.json"
    kept.write_text(results.to_json(measured), encoding="utf-8")
    print_line(f"{old.commit}: {old.subject}")
    for result in measured.values():
        for lane in result.lanes:
            heads, rows = against.rows_of(result, lane, old.commit)
            print_table(f"{result.title}, {lane}", heads, rows, texts=(0, 1))
    for result in measured.values():
        for lane in result.lanes:
            print_line(against.summary_of(result, lane, old.commit))
    print_line(f"Every round: {kept.relative_to(REPOSITORY)}")
    _warn([*measured.values()])
    return _verdict([*measured.values()])


def _comparison(args: argparse.Namespace) -> against.Comparison:
    for option, value in (("--clients", args.clients), ("--faults", args.faults or None)):
        if value is not None:
            raise InvalidInput(option, value, "nothing beside --against, which runs two workers")
    if args.sets is not None and args.format is not None:
        raise InvalidInput("--format", args.format, "either it or --sets")
    formats = "jsonl" if args.format is None else args.format
    chosen = datasets.named(args.sets) if args.sets else datasets.of_formats(formats)
    return against.Comparison(
        commit=args.against,
        sets=[against.first_of(one) for one in chosen] if args.quick else chosen,
        lanes=_compared(args),
        rounds=_rounds(args.rounds, against.QUICK_ROUNDS if args.quick else against.ROUNDS),
        settings=_settings(args.settings),
    )


def _compared(args: argparse.Namespace) -> list[Lane]:
    lanes = _lanes(args.latency_ms or "25")
    return [*lanes, replace(lanes[-1], tls=True)] if args.tls else lanes


def _rounds(given: int | None, default: int) -> int:
    rounds = given if given is not None else default
    if rounds < 1:
        raise InvalidInput("--rounds", rounds, "a whole number from 1")
    return rounds


def _default_sets(*, quick: bool) -> str:
    return "json-4k" if quick else ",".join(datasets.SETS)


def _with_memory(chosen: Sequence[datasets.DataSet]) -> tuple[datasets.DataSet, ...]:
    short = 0 < available_bytes() < _LARGE_NEEDS_BYTES
    if short and any(one.name == "large" for one in chosen):
        print_error("left out: large, which needs 8 GiB of memory")
    return tuple(one for one in chosen if not (short and one.name == "large"))


def wanted_of(args: argparse.Namespace, chosen: Sequence[datasets.DataSet]) -> Wanted:
    """What the options ask for, of these sets.

    Raises:
        InvalidInput: an option is wrong.
    """
    named = clients.named(args.clients or ",".join(clients.CLIENTS))
    return Wanted(
        clients=[_quick(one) for one in named] if args.quick else named,
        lanes=_lanes(args.latency_ms or ("25" if args.quick else "0,25")),
        rounds=_rounds(args.rounds, 1 if args.quick else 3),
        faults=args.faults,
        tls=[one.name for one in chosen if args.tls or (_usual(args) and one.name in _OVER_TLS)],
        settings=_settings(args.settings),
    )


def _require_clients(chosen: Sequence[datasets.DataSet], wanted: Wanted) -> None:
    for data_set in chosen:
        if not wanted.clients_by_lane(data_set):
            names = ",".join(one.name for one in wanted.clients)
            raise InvalidInput("--clients", names, f"one that is measured on {data_set.name}")


def _available(named: Sequence[Client], programs: tools.Tools) -> list[Client]:
    there = [one for one in named if one.available(programs)]
    for absent in [one for one in named if one not in there]:
        print_error(f"left out: {absent.name}, which is not installed")
    return there


def _quick(client: Client) -> Client:
    if client.sample is None:
        return client
    return replace(client, sample=max(_QUICK_SAMPLE, client.sample // 5))


def _lanes(text: str) -> list[Lane]:
    try:
        lanes = [Lane(float(part)) for part in text.split(",")]
    except ValueError:
        lanes = []
    if not lanes or any(not 0 <= lane.latency_ms <= 10_000 for lane in lanes):
        raise InvalidInput("--latency-ms", text, "milliseconds from 0 to 10000: 0,25")
    return list(dict.fromkeys(lanes))


def _settings(text: str) -> dict[str, Any]:
    try:
        given = json.loads(text)
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise InvalidInput("--settings", text, 'a JSON object such as {"compression":"zstd"}')
    return given


def _in_order(known: Results) -> Results:
    names = [*datasets.SETS, *known]
    return {name: known[name] for name in dict.fromkeys(names) if name in known}


def _show(result: SetResult) -> None:
    heads, rows = table.rows_of(result)
    plain = [[cell.replace("**", "") for cell in row] for row in rows]
    print_table(result.title, heads, plain, texts=(0, 1))
    for said in table.sentences(result):
        print_line(said)


def _warn(measured: Sequence[SetResult]) -> None:
    for result in measured:
        disturbed = results.disturbance(result)
        if disturbed is not None:
            print_error(f"bench: {result.title}: {disturbed}")


def _verdict(measured: Sequence[SetResult]) -> int:
    """Outputs that differ make the run fail: a speed without its result is no speed."""
    differing = [
        f"{one.client} on {one.data_set}"
        for result in measured
        for one in result.measurements
        if not one.equal
    ]
    for line in dict.fromkeys(differing):
        print_error(f"bench: the records in the output differ: {line}")
    return _EXIT_FAILED if differing else 0
