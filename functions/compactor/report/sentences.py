"""A run's result in one sentence, and the evidence for it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from compactor.report.skipped import WAITING
from compactor.sizes import plural

_READ_AGAIN = {
    "sample": "The first and last source of each joined output, and one by its hash, were",
    "all": "All joined sources of up to 8 MiB were",
}


def sentence(report: Mapping[str, Any]) -> str:
    """Return a run's result in one sentence.

    Args:
        report: content of ``report.json``.
    """
    totals = report["totals"]
    before, after = totals["objects_in"], totals["objects_out"]
    if not before:
        text = report["headline"] or _nothing(report)
        return text[0].upper() + text[1:]
    parts = [f"{plural(before, 'object')} became {after:,}"]
    if after and before >= 2 * after:
        parts.append(f"queries open {before / after:,.0f} times fewer objects")
    if totals["records"]:
        every = "every one of " if totals["records"] > 1 else ""
        parts.append(f"{every}{plural(totals['records'], 'record')} is in exactly one output")
    return "; ".join(parts) + "."


def failed_sentence(report: Mapping[str, Any]) -> str:
    """Return what failed, and what is safe nevertheless; empty for a run that succeeded."""
    if report["status"] != "failed":
        return ""
    failed = report["failed_count"]
    partitions = plural(partition_count(report), "partition")
    what = f"{failed:,} of {partitions} failed" if failed else "The run failed"
    return f"{what}; what was committed stands, and the same run again does the rest."


def grouped(failures: Iterable[tuple[str, str]]) -> list[str]:
    """Return one line for each cause: the first path that has it, how many others, the cause.

    Args:
        failures: path of a partition, and why it failed.
    """
    paths: dict[str, list[str]] = {}
    for path, cause in failures:
        paths.setdefault(cause, []).append(path or "(root)")
    return [f"{first_of(found)}: {cause}" for cause, found in paths.items()]


def first_of(paths: Sequence[str]) -> str:
    """Return the first path and the number of the others."""
    more = len(paths) - 1
    return paths[0] + (f" and {plural(more, 'more partition')}" if more else "")


def partition_count(report: Mapping[str, Any]) -> int:
    """Return how many partitions a run found, whether it worked on them or not."""
    worked, resting = report["partition_count"], report["resting"]["partitions"]
    return int(worked + len(report["oversized"]) + resting)


def is_idle(report: Mapping[str, Any]) -> bool:
    """Return True for a run that succeeded, and found nothing to compact."""
    totals = report["totals"]
    done = totals["objects_in"] or totals["objects_out"] or report["spark"]
    left = report["left_alone"] or report["oversized"]
    return report["status"] == "succeeded" and not (done or left)


def backlog(report: Mapping[str, Any]) -> int:
    """Return the number of objects that a later run takes as they are: too young or too few now."""
    return sum(int(one["objects"]) for one in _waiting(report))


def oldest_waiting(report: Mapping[str, Any]) -> float | None:
    """Return when the oldest of these was last modified, in UNIX seconds; None if unknown."""
    return min(filter(None, (one["oldest"] for one in _waiting(report))), default=None)


def _waiting(report: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [one for reason, one in report["skipped"].items() if reason in WAITING]


def proof(report: Mapping[str, Any]) -> list[str]:
    """Return the evidence that no record is lost or duplicated, as one or two sentences each."""
    totals, settings = report["totals"], report["settings"]
    if not totals["objects_in"]:
        return _counted_apart(report)
    sources = plural(totals["objects_in"], "source")
    committed = (
        f"{sources} were read as they were listed (by ETag), and committed: the commit log names"
        " each with its place in its output. Nothing could be read before it was committed."
    )
    found = [committed]
    if totals["records"]:
        found.append(
            f"{plural(totals['records'], 'record')} were counted on their way in and out, and the"
            " sums are equal. Every part of an output was stored under its checksum."
        )
    read = _READ_AGAIN.get(settings.get("second_reading", ""))
    if read and totals["records"]:
        rows = "parquet" in {settings.get("format"), settings.get("output_format")}
        same = "there were as many records" if rows else "the records were the same"
        found.append(
            f"{read} read a second time, by readers that share no code with the first, and {same}."
            " A group that differs is never committed."
        )
    return found + _counted_apart(report)


def rejected_line(records: int, places: Sequence[str]) -> str:
    """Return where the records are that are in no output because they fit no row of one.

    Args:
        records: their number.
        places: the first prefixes with them.
    """
    return f"{plural(records, 'rejected record')} in no output: see {', '.join(places)}"


def _counted_apart(report: Mapping[str, Any]) -> list[str]:
    totals = report["totals"]
    found = []
    if totals["copied"]:
        copied = plural(totals["copied"], "output")
        found.append(f"{copied}: a source that S3 copied as it is; its records were not counted.")
    if totals["replayed"]:
        replayed = plural(totals["replayed"], "record")
        found.append(f"{replayed} that an earlier run rejected fit by now, and are in an output.")
    if totals["rejects_waiting"]:
        found.append(f"{rejected_line(totals['rejects_waiting'], report['rejects'])}.")
    return found


def _nothing(report: Mapping[str, Any]) -> str:
    left = {why: one["objects"] for why, one in report["skipped"].items() if one["objects"]}
    left |= {why: one["objects"] for why, one in report["left_alone"].items()}
    if not left:
        return "Nothing was compacted: there was nothing to do."
    most = max(left, key=lambda why: left[why])
    every = plural(sum(left.values()), "object")
    mostly = "all" if len(left) == 1 else "mostly"
    return f"Nothing was compacted: {every} left, {mostly} {most}."
