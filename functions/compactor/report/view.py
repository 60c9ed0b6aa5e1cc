"""What the report's page shows, derived from the document. Pure.

Texts are not escaped here; the templates do that.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from compactor.model import SkipReason
from compactor.report import sentences
from compactor.report.charts import length
from compactor.report.html import human_seconds, moment
from compactor.report.remedies import LEFT_ALONE, failure_remedy
from compactor.report.skipped import why_left
from compactor.settings.fields import FIELDS
from compactor.sizes import human_bytes

#: Number of rows that are always visible; the others are collapsed.
OPEN_ROWS = 12
_REQUESTS: Mapping[str, str] = {
    "GET": "objects or ranges read",
    "LIST": "pages of up to 1,000 keys",
    "PUT": "objects, parts and copies written",
    "HEAD": "looks at one object",
    "DELETE": "objects or uploads taken away",
    "bytes_read": "read from S3",
    "bytes_written": "written to S3",
}
# The outcomes of a record that is merged into a table.
_BECAME = ("inserted", "updated", "deleted", "superseded", "stale")


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """One partition, or the sum of many.

    Attributes:
        before, after, time: lengths of its bars, in percent of the longest partition's.
        failed: it did not finish.
        note: its status, unless that is obvious.
    """

    path: str
    failed: bool
    note: str
    objects_in: int
    objects_out: int
    bytes_in: str
    bytes_out: str
    records: int
    seconds: str
    before: float = 0.0
    after: float = 0.0
    time: float = 0.0


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure, and what to do about it."""

    what: str
    error: str
    cause: str
    remedy: str


def partition_rows(report: Mapping[str, Any]) -> list[PartitionRow]:
    """Return rows for failed partitions, then by number of objects, then the sum of the rest.

    Empty for a run that did nothing, because all rows would be zero.
    """
    if sentences.is_idle(report):
        return []
    spark = frozenset(report["spark"])
    shown = report["partitions"]
    objects, seconds = _longest(report)
    rows = [_partition_row(one, one["path"] in spark, objects, seconds) for one in shown]
    rows.sort(key=lambda row: (not row.failed, -row.objects_in, row.path))
    others = report["partition_count"] - len(shown)
    return [*rows, _others(report, others)] if others > 0 else rows


@dataclass(frozen=True, slots=True)
class Scale:
    """What full lengths of the partitions' bars mean."""

    objects: int
    seconds: str


def scale(report: Mapping[str, Any]) -> Scale:
    """Return the scale of :func:`partition_rows`."""
    objects, seconds = _longest(report)
    return Scale(objects, human_seconds(seconds))


def _longest(report: Mapping[str, Any]) -> tuple[int, float]:
    counts = [one["counts"] for one in report["partitions"]]
    return (
        max((one["objects_in"] for one in counts), default=0),
        max((one["seconds"] for one in counts), default=0.0),
    )


def _partition_row(
    one: Mapping[str, Any], is_spark: bool, objects: int, seconds: float
) -> PartitionRow:
    counts = one["counts"]
    return PartitionRow(
        one["path"] or "(root)",
        one["status"] != "done",
        "by Spark" if is_spark else "",
        counts["objects_in"],
        counts["objects_out"],
        human_bytes(counts["bytes_in"]),
        human_bytes(counts["bytes_out"]),
        counts["records"],
        human_seconds(counts["seconds"]),
        length(counts["objects_in"], objects),
        length(counts["objects_out"], objects),
        length(counts["seconds"], seconds),
    )


def _others(report: Mapping[str, Any], others: int) -> PartitionRow:
    """Return the sum of the partitions that are not shown individually."""
    shown = [one["counts"] for one in report["partitions"]]

    def rest(name: str) -> Any:
        return report["totals"][name] - sum(one[name] for one in shown)

    failed = report["failed_count"] - sum(one["status"] != "done" for one in report["partitions"])
    return PartitionRow(
        f"{others:,} others",
        failed > 0,
        f"{failed:,} failed" if failed else "",
        rest("objects_in"),
        rest("objects_out"),
        human_bytes(rest("bytes_in")),
        human_bytes(rest("bytes_out")),
        rest("records"),
        human_seconds(rest("seconds")),
    )


def failures(report: Mapping[str, Any]) -> list[Failure]:
    """Return everything that failed, with what to do."""
    found = [
        _worded("the run", report["failure"]),
        _worded("Spark", report["spark_failure"].removeprefix("Spark: ")),
    ]
    failed = [one for one in report["partitions"] if one["status"] != "done"]
    found += [
        Failure(p["path"] or "(root)", p["error"], p["cause"], failure_remedy(p["error"]))
        for p in failed
    ]
    table = report["table"] or {"error": "", "cause": "", "faults": ()}
    if table["error"]:
        remedy = failure_remedy(table["error"])
        found.append(Failure("table", table["error"], table["cause"], remedy))
    found += [_worded("table", line) for line in table["faults"]]
    clean_up = report["clean_up"] or {"failures": (), "unsafe": ()}
    found += [_worded("clean-up", line) for line in (*clean_up["failures"], *clean_up["unsafe"])]
    found += [
        _worded("clean-up", f"{n:,} more {kind}")
        for kind, n in clean_up.get("left_out", {}).items()
    ]
    more = report["failed_count"] - len(failed)
    if more > 0:
        found.append(_worded("the run", f"and {more:,} more partitions"))
    return [one for one in found if one.cause]


def _worded(what: str, line: str) -> Failure:
    """Return a failure that is known from one line, which may contain an error's name."""
    names = [word.strip(":") for word in line.split() if word.endswith(":")]
    remedy = next((failure_remedy(name) for name in names), failure_remedy(""))
    return Failure(what, "", line, remedy)


def request_rows(report: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return requests by kind: the kind, its meaning, and their number or size."""
    made = Counter(report["totals"]["requests"])
    made.update((report["clean_up"] or {}).get("requests", {}))
    order = {name: number for number, name in enumerate(_REQUESTS)}
    rows = []
    for name, count in sorted(made.items(), key=lambda one: (order.get(one[0], 99), one[0])):
        is_size = name.startswith("bytes_")
        shown = human_bytes(count) if is_size else f"{count:,}"
        rows.append((name.replace("_", " "), _REQUESTS.get(name, ""), shown))
    return rows


def skipped_rows(report: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return what was skipped by reason, the most frequent first, with what to do."""
    rows = []
    for reason, one in _most_first(report["skipped"]):
        why, remedy = _why(reason, report["settings"])
        rows.append(
            {
                "reason": reason,
                "objects": f"{one['objects']:,}",
                "bytes": human_bytes(one["bytes"]),
                "why": why,
                "remedy": remedy,
                "example": ", ".join(one["examples"]),
            }
        )
    return rows


def _why(reason: str, settings: Mapping[str, Any]) -> tuple[str, str]:
    """Return why objects were skipped, and what to do; empty for reasons of later versions."""
    try:
        known = SkipReason(reason)
    except ValueError:
        return "", ""
    why, remedy = why_left(known, settings)
    return why, remedy or "nothing"


def left_rows(report: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return sources left because of their content by reason, with the setting that decides."""
    return [
        {
            "reason": reason,
            "objects": f"{one['objects']:,}",
            "bytes": human_bytes(one["bytes"]),
            "why": one["detail"],
            "remedy": f"set {one['setting']}" if one["setting"] else LEFT_ALONE.get(reason, ""),
            "example": one["example"],
        }
        for reason, one in _most_first(report["left_alone"])
    ]


def quarantined(report: Mapping[str, Any]) -> list[Mapping[str, str]]:
    """Return the sources left because of their content, as far as they are shown."""
    return [line for one in report["partitions"] for line in one["quarantined"]]


def _most_first(found: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return sorted(found.items(), key=lambda one: (-one[1]["objects"], one[0]))


def table_rows(table: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Return what was published to the table; nothing for a run without a table."""
    if table is None:
        return []
    names = {
        "outputs": "Outputs brought into it",
        "rows": "Rows of them",
        "commits": "Commits of the table",
        "conflicts": "Commits of others that came first",
        "last": "Entries of the table log that are in it",
    }
    rows = [("Table", table["table"]), ("Status", table["status"])]
    rows += [(label, f"{table[name]:,}") for name, label in names.items()]
    upserts = table.get("upserts") or {}
    rows += [
        (f"Records {name}", f"{count:,}") for name, count in upserts.items() if name in _BECAME
    ]
    return [*rows, ("Its version then", table["at"])]


def clean_up_rows(clean_up: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Return what clean-up did; nothing for a run without clean-up."""
    if clean_up is None:
        return []
    names = {
        "partitions": "Partitions past retention",
        "commits": "Commits",
        "deleted": "Sources deleted",
        "changed": "Keys where another object stands now, left alone",
        "refused": "Sources that S3 did not delete",
        "markers": "Deletes that left a noncurrent version",
        "uploads_aborted": "Unfinished uploads aborted",
    }
    rows = [(label, f"{clean_up[name]:,}") for name, label in names.items()]
    rows.insert(3, ("Bytes deleted", human_bytes(clean_up["deleted_bytes"])))
    return rows


def reader_rows(readers: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Return what query engines see; nothing for a run without a readers' table."""
    if readers is None:
        return []
    names = {
        "compacted": "Partitions that show their outputs",
        "raw": "Partitions that show their sources",
        "listed": "Partitions that show a list",
        "switched": "Of these, switched by this run",
        "invisible": "Objects that no query saw before",
        "unread": "Objects in an archive tier, which no engine reads",
        "faults": "Partitions that are not what they are to be",
    }
    return [(label, f"{readers[name]:,}") for name, label in names.items()]


def setting_rows(settings: Mapping[str, Any]) -> tuple[list[tuple[str, str]], ...]:
    """Return the settings that differ from their defaults, and all others."""
    given: list[tuple[str, str]] = []
    left: list[tuple[str, str]] = []
    for name, value in settings.items():
        spec = FIELDS.get(name)
        is_default = spec is not None and not spec.required and value == _plain(spec.default)
        (left if is_default else given).append((name, json.dumps(value, ensure_ascii=False)))
    return given, sorted(left, key=itemgetter(0))


def _plain(default: object) -> object:
    return list(default) if isinstance(default, tuple) else default


@dataclass(frozen=True, slots=True)
class Previous:
    """The run before.

    Attributes:
        command: prints its report.
    """

    run_id: str
    started: str
    command: str


def previous_run(report: Mapping[str, Any]) -> Previous | None:
    """Return the run before into the same destination; None if none is known."""
    if not report["previous"]:
        return None
    last = report["previous"][-1]
    words = (report["settings"]["s3_destination_uri"], last["run_id"])
    command = f"compactor report {' '.join(map(shlex.quote, words))} --open"
    return Previous(last["run_id"], moment(last["started_at"]), command)


def verify_command(settings: Mapping[str, Any]) -> str:
    """Return the shell command that verifies everything again."""
    words: Sequence[str] = (settings["s3_source_uri"], settings["s3_destination_uri"])
    return f"compactor verify {' '.join(map(shlex.quote, words))} --deep"
