"""The totals of one run, before and after, as text."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from compactor.escaping import visible
from compactor.log.resting import Resting
from compactor.readers.outcome import Outcomes
from compactor.report.cost import RunCost
from compactor.report.reasons import dead_letter_line, hint_of
from compactor.sizes import human_bytes, plural
from compactor_cli.console import counted, print_line, print_table

_SHOWN_WARNINGS = 5


@dataclass(frozen=True, slots=True)
class Summary:
    """The totals of a run; bytes are stored bytes, seconds are wall time.

    Attributes:
        status: ``succeeded`` or ``failed``.
        partitions: number of partitions with at least one object.
        resting: partitions of these that are at rest and were not read; they contain
            ``resting_objects``.
        records: records in the outputs; those of server-side copies are not counted.
        dead_letters: records that do not fit the schema of their Parquet output, stored below
            ``dead_letter_prefixes``, of which these are the first.
        skipped: objects left alone, by reason.
        quarantined: objects left alone because of their content.
        left_alone: their number, an example and its detail, by reason.
        headline: how many objects were left alone for their content, and why; or why nothing was
            compacted; else empty.
        oversized: partitions left for Spark.
        spark: partitions that Spark compacted; included in all other totals.
        report_uri: URI of the full report.
        clean_up: the report's section on clean-up, or None.
        table: the report's section on the table, or None.
        readers: what query engines see; None without a table for readers.
        warnings: what the store does not guarantee, and what is done instead.
        overwritten: objects that replaced compacted ones of the same key with other content, such
            as ``overwritten_example``.
    """

    run_id: str
    status: str
    partitions: int
    objects_before: int
    objects_after: int
    bytes_before: int
    bytes_after: int
    records: int
    dead_letters: int
    seconds: float
    skipped: Mapping[str, int] = field(default_factory=dict)
    quarantined: int = 0
    left_alone: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    headline: str = ""
    oversized: tuple[str, ...] = ()
    spark: tuple[str, ...] = ()
    report_uri: str = ""
    clean_up: Mapping[str, Any] | None = None
    table: Mapping[str, Any] | None = None
    readers: Mapping[str, Any] | None = None
    warnings: tuple[str, ...] = ()
    overwritten: int = 0
    overwritten_example: str = ""
    resting: int = 0
    resting_objects: int = 0
    cost: Mapping[str, Any] | None = None
    dead_letter_prefixes: tuple[str, ...] = ()

    @classmethod
    def of(cls, report: Mapping[str, Any], seconds: float, report_uri: str) -> Summary:
        """Return the totals in a ``report.json``."""
        totals = report["totals"]
        resting, overwritten = Resting(**report["resting"]), report["overwritten"]
        return cls(
            run_id=report["run_id"],
            status=report["status"],
            partitions=report["partition_count"] + len(report["oversized"]) + resting.partitions,
            resting=resting.partitions,
            resting_objects=resting.objects,
            objects_before=totals["objects_in"],
            objects_after=totals["objects_out"],
            bytes_before=totals["bytes_in"],
            bytes_after=totals["bytes_out"],
            records=totals["records"],
            dead_letters=totals["dead_letters"],
            seconds=round(seconds, 2),
            skipped={reason: one["objects"] for reason, one in report["skipped"].items()},
            quarantined=totals["quarantined"],
            left_alone=report["left_alone"],
            headline=report["headline"],
            oversized=tuple(report["oversized"]),
            spark=tuple(report["spark"]),
            report_uri=report_uri,
            clean_up=report["clean_up"],
            table=report["table"],
            readers=report["readers"],
            cost=report["cost"],
            dead_letter_prefixes=tuple(report["dead_letters"]),
            warnings=tuple(report["warnings"]),
            overwritten=overwritten["objects"],
            overwritten_example=next(iter(overwritten["examples"]), ""),
        )

    @property
    def is_idle(self) -> bool:
        """Whether a run succeeded and found nothing to compact."""
        done = self.objects_before or self.objects_after or self.spark
        return self.status == "succeeded" and not (done or self.left_alone or self.oversized)

    @property
    def ratio(self) -> float:
        """Objects before per object after; 0.0 if nothing was compacted."""
        return self.objects_before / self.objects_after if self.objects_after else 0.0

    @property
    def average_before(self) -> float:
        """Mean bytes of a source."""
        return self.bytes_before / self.objects_before if self.objects_before else 0.0

    @property
    def average_after(self) -> float:
        """Mean bytes of an output."""
        return self.bytes_after / self.objects_after if self.objects_after else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the totals for JSON, with derived ones."""
        return {
            **dataclasses.asdict(self),
            "average_bytes_before": round(self.average_before, 1),
            "average_bytes_after": round(self.average_after, 1),
            "compaction_ratio": round(self.ratio, 2),
        }


def print_summary(summary: Summary) -> None:
    """Print the headline and the table of a run, and a line for everything it left alone."""
    has_figures = summary.objects_before or summary.objects_after
    news = summary.headline or ("" if has_figures else "nothing compacted")
    result = f"Run {summary.run_id}: {summary.status}{f', {news}' if news else ''}"
    if has_figures:
        _print_figures(summary, result)
    else:
        print_line(result, "bold")
        print_line(f"{plural(summary.partitions, 'partition')}, {summary.seconds:,.1f} s")
    _print_left_alone(summary)
    if summary.overwritten:
        print_line(
            f"overwritten: {plural(summary.overwritten, 'object')} at keys compacted before, such"
            f" as {visible(summary.overwritten_example)}: old and new content are both kept"
        )
    for path in summary.spark:
        print_line(f"by Spark: {path or '(root)'}")
    if summary.dead_letters:
        print_line(dead_letter_line(summary.dead_letters, summary.dead_letter_prefixes))
    for path in summary.oversized:
        print_line(f"left for Spark: {path or '(root)'}")
    for line in counted(summary.warnings):
        print_line(f"warning: {line}")
    _print_what_followed(summary)


def _print_figures(summary: Summary, title: str) -> None:
    rows = (
        ("Partitions", f"{summary.partitions:,}", ""),
        ("Objects", f"{summary.objects_before:,}", f"{summary.objects_after:,}"),
        ("Bytes", human_bytes(summary.bytes_before), human_bytes(summary.bytes_after)),
        ("Average size", human_bytes(summary.average_before), human_bytes(summary.average_after)),
        ("Records", f"{summary.records + summary.dead_letters:,}", f"{summary.records:,}"),
        ("Compaction ratio", "", f"{summary.ratio:,.1f} : 1" if summary.ratio else "-"),
        ("Seconds", "", f"{summary.seconds:,.1f}"),
    )
    print_table(title, ("", "Before", "After"), rows)


def _print_what_followed(summary: Summary) -> None:
    """Print lines for cost, the table of the outputs, the readers' table and clean-up."""
    if summary.cost is not None:
        print_line(RunCost(**summary.cost).line)
    if summary.table is not None:
        _print_table_commits(summary.table)
    if summary.readers is not None:
        print_line(Outcomes(**summary.readers).line)
    if summary.clean_up is not None:
        _print_clean_up(summary.clean_up)


def _print_left_alone(summary: Summary) -> None:
    if summary.resting:
        print_line(Resting(summary.resting, summary.resting_objects).line)
    for reason, objects in sorted(summary.skipped.items()):
        print_line(f"left alone: {plural(objects, 'object')}, {reason}{hint_of(reason)}")
    for reason, one in summary.left_alone.items():
        print_line(f"left alone: {plural(one['objects'], 'source')}, {reason}, such as")
        print_line(f"  {one['example']}: {one['detail']}")


def _print_table_commits(table: Mapping[str, Any]) -> None:
    outputs, commits = plural(table["outputs"], "output"), plural(table["commits"], "commit")
    print_line(f"table: {outputs}, {table['rows']:,} rows in {table['table']} by {commits}")
    if upserts := table.get("upserts"):
        became = ("inserted", "updated", "deleted", "superseded", "stale")
        print_line(f"table: records {', '.join(f'{upserts[one]:,} {one}' for one in became)}")


def _print_clean_up(clean_up: Mapping[str, Any]) -> None:
    size = human_bytes(clean_up["deleted_bytes"])
    commits = plural(clean_up["commits"], "commit")
    deleted = plural(clean_up["deleted"], "source")
    print_line(f"clean-up: {deleted} of {commits} deleted, {size}")
    for name, noun, rest in (
        ("refused", "source", "not deleted by S3; see the report"),
        ("uploads_aborted", "unfinished upload", "aborted"),
    ):
        if clean_up[name]:
            print_line(f"clean-up: {plural(clean_up[name], noun)} {rest}")
    warnings = counted(clean_up["warnings"])
    for line in warnings[:_SHOWN_WARNINGS]:
        print_line(f"clean-up: warning: {line}")
    hidden = len(warnings) - _SHOWN_WARNINGS
    if hidden > 0:
        print_line(f"clean-up: and {plural(hidden, 'more warning')}; see the report")
