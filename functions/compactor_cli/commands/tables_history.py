"""``compactor tables history``: charts a table's latency, and recommends a maintenance schedule."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from compactor.errors import InvalidInput
from compactor.s3.store import S3Store
from compactor.settings.tables import TABLE_ACCEPTED, parse_table
from compactor.settings.uris import S3Uri
from compactor.sizes import human_bytes, plural
from compactor_cli.commands import options
from compactor_cli.commands.store import open_store
from compactor_cli.console import print_line, print_table
from compactor_tables.advising import Advice, advise
from compactor_tables.latency import ESTIMATE
from compactor_tables.observations import History, Look
from compactor_tables.observing import Watched
from compactor_tables.policies import RULE_FIELDS

_SHOWN_ROWS = 20
_COLUMNS, _ROWS = 72, 8
_EIGHTHS = " ▁▂▃▄▅▆▇█"
_MARK = "┊"


def add_table(parser: argparse.ArgumentParser) -> None:
    """Add TABLE and the state URI; for all commands that read a table's history."""
    parser.add_argument("table", metavar="TABLE", help=TABLE_ACCEPTED)
    parser.add_argument(
        "--s3-state-uri",
        "--state-uri",
        metavar="URI",
        required=True,
        help="the s3_state_uri of the maintenance runs",
    )


def opened_from(args: argparse.Namespace) -> tuple[Watched, S3Store]:
    """Return the table of a command, and its store.

    Raises:
        InvalidInput: the address is invalid, or there is no such bucket.
    """
    try:
        table = parse_table(args.table)
    except ValueError as error:
        raise InvalidInput("TABLE", args.table, str(error)) from None
    state = S3Uri.parse("s3_state_uri", args.s3_state_uri)
    store = open_store(args.endpoint_url, state.bucket)
    return Watched(state, table, store), store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the table, and what counts as slow."""
    add_table(parser)
    parser.add_argument(
        "--latency",
        metavar="SOURCE",
        help="source of the latency, if several were recorded (by default that of the last"
        " measurement):"
        f" {RULE_FIELDS['latency'].accepted}",
    )
    parser.add_argument(
        "--slower-by",
        type=float,
        metavar="SHARE",
        help="share by which a table may become slower"
        f" (by default {RULE_FIELDS['slower_by'].default_text})",
    )
    options.add_common(parser)


def run(args: argparse.Namespace) -> int:
    """Show the history and recommend a schedule.

    Raises:
        InvalidInput: the input is invalid.
        IntegrityError: the history is damaged.
    """
    share = RULE_FIELDS["slower_by"].parse(
        RULE_FIELDS["slower_by"].default if args.slower_by is None else args.slower_by
    )
    assert isinstance(share, float)  # noqa: S101 - what the field reads
    if args.latency is not None:
        RULE_FIELDS["latency"].parse(args.latency)
    watched, _ = opened_from(args)
    history = watched.history()
    source = args.latency or _newest_source(history)
    advice = advise(history, source, share)
    if args.json:
        print(json.dumps(document(watched.table.text, history, source, advice), indent=2))
    else:
        _show(watched.table.text, history, source, advice)
    return 0


def document(table: str, history: History, source: str, advice: Advice) -> dict[str, Any]:
    """Return a history for JSON."""
    averages = {one.at: one.seconds for part in history.averages(source) for one in part}
    return {
        "table": table,
        "latency": source,
        "looks": [
            {**msgspec.to_builtins(one), "average": averages.get(one.at)} for one in history.looks
        ],
        "cron": advice.cron or None,
        "reason": advice.reason,
    }


def curve(looks: Sequence[Look], source: str) -> list[str]:
    """Return bars of the latency per measurement, newest to the right, with marked compactions."""
    shown = [
        one
        for one in looks
        if one.is_compaction or (one.latency is not None and one.source == source)
    ][-_COLUMNS:]
    highest = max((one.latency or 0.0 for one in shown), default=0.0)
    if not highest:
        return []
    lines = []
    for row in reversed(range(_ROWS)):
        label = f"{highest * (row + 1) / _ROWS:10,.1f} s │"
        bars = (_cell(one, row, highest) for one in shown)
        lines.append(label + "".join(bars))
    first, last = shown[0].day, shown[-1].day
    gap = max(1, len(shown) - len(first) - len(last))
    lines += [" " * 13 + "└" + "─" * len(shown), f"{'':14}{first}{' ' * gap}{last}"]
    return lines


def _cell(look: Look, row: int, highest: float) -> str:
    if look.is_compaction:
        return _MARK
    eighths = round((look.latency or 0.0) / highest * _ROWS * 8) - row * 8
    return _EIGHTHS[max(0, min(8, eighths))]


def _newest_source(history: History) -> str:
    return next((one.source for one in reversed(history.looks) if one.source), ESTIMATE)


def _show(table: str, history: History, source: str, advice: Advice) -> None:
    if not history.looks:
        print_line(
            f"there is no history of {table}: no run has measured it, or the state URI is another"
        )
        return
    print_line(f"{table}: {plural(sum(one.looks for one in history.looks), 'measurement')}", "bold")
    lines = curve(history.looks, source)
    if lines:
        print_line(f"latency by {source}; {_MARK} is a compaction")
        for line in lines:
            print_line(line)
    rows = [_row(one) for one in history.looks[-_SHOWN_ROWS:]]
    heads = ("when (UTC)", "run", "files", "size", "latency", "what")
    print_table(f"the last {plural(len(rows), 'measurement')}", heads, rows)
    schedule = f"recommended: {advice.cron}" if advice.cron else "no schedule to recommend"
    print_line(f"{schedule} ({advice.reason})")


def _row(look: Look) -> tuple[str, ...]:
    latency = "" if look.latency is None else f"{look.latency:,.1f} s"
    return (
        f"{datetime.fromtimestamp(look.at, UTC):%Y-%m-%d %H:%M}",
        look.run_id,
        "" if look.files is None else f"{look.files:,}",
        "" if look.bytes is None else human_bytes(look.bytes),
        latency,
        _what(look),
    )


def _what(look: Look) -> str:
    done = look.maintained
    if done is None:
        return f"due: {look.due}" if look.due else ""
    if not done.files:
        return f"{done.engine}: {done.status}, nothing rewritten"
    return f"{done.engine}: {done.status}, {done.files:,} files into {done.into:,}"
