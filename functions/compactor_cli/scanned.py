"""The result of a scan, as text and as JSON."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from compactor.clock import instant
from compactor.model import SkipReason
from compactor.money import Verdict
from compactor.report.reasons import hint_of
from compactor.scanning.coverage import Coverage
from compactor.scanning.jobs import Job
from compactor.scanning.layouts import Layout
from compactor.scanning.listing import BOUNDS, MOST_PLACES, Listed
from compactor.scanning.proposals import Proposal
from compactor.sizes import human_bytes, plural
from compactor_cli.console import print_line, print_table
from compactor_cli.plan_money import show_verdict

_BAR_WIDTH = 30
_DAY = 86_400
_DAYS_OF_A_RATE = 3
_POSITIONAL = ("s3_source_uri", "s3_destination_uri")
_VERBS = ("plan", "run", "verify")


@dataclass(frozen=True, slots=True)
class Scanned:
    """A scan, and the recommendations from it.

    Attributes:
        uri: what was scanned.
        at: UNIX seconds.
        read: number of objects of which the first bytes were read.
        jobs: with what each takes.
        money: what compaction would cost and save.
        endpoint_url: as given; the printed commands repeat it.
        names: under which each job was saved; empty if it was not.
    """

    uri: str
    at: float
    listed: Listed
    read: int
    jobs: Sequence[tuple[Job, Coverage]]
    money: Verdict
    endpoint_url: str | None = None
    names: Sequence[str] = ()

    def commands(self, number: int) -> dict[str, str]:
        """Return the commands to plan, run and verify a job, by verb; none if nothing is taken."""
        (job, coverage), name = self.jobs[number], self.names[number] if self.names else ""
        if job.fault or not coverage.taken:
            return {}
        words = [name] if name else [str(job.fields[place]) for place in _POSITIONAL]
        endpoint = ["--endpoint-url", self.endpoint_url] if self.endpoint_url and not name else []
        fields = {**({} if name else job.fields), **job.now}
        options = [
            word
            for field, value in fields.items()
            if field not in _POSITIONAL
            for word in (
                f"--{field.replace('_', '-')}",
                json.dumps(value) if isinstance(value, list) else str(value),
            )
        ]
        more = {"plan": options, "run": options, "verify": ["--deep"]}
        return {
            verb: shlex.join(["compactor", verb, *words, *more[verb], *endpoint]) for verb in _VERBS
        }


def show(scanned: Scanned) -> None:
    """Print everything, the verdict first."""
    if scanned.money.sources:
        show_verdict(scanned.money)
    else:
        print_line(nothing_taken(scanned), "bold")
    _show_sizes(scanned.listed, scanned.uri)
    for job, coverage in scanned.jobs:
        _show_formats(scanned, job, coverage)
    _show_layouts(scanned)
    _show_arrivals(scanned.listed)
    for reason, one in sorted(_skipped(scanned).items()):
        such = f", such as {one['examples'][0]}" if one["examples"] else ""
        print_line(f"skipped: {plural(one['objects'], 'object')}, {reason}{such}{hint_of(reason)}")
    _show_commands(scanned)


def nothing_taken(scanned: Scanned) -> str:
    """Return why a run would take nothing, in one line."""
    proposals = [one for _, coverage in scanned.jobs for one in coverage.proposals]
    choices = [one.match for one in proposals if one.options]
    if choices:
        return f"nothing is compacted until a format is chosen for {', '.join(choices)}"
    kinds = dict.fromkeys(one.kind for one in proposals)
    return f"nothing here can be compacted{': ' if kinds else ''}{', '.join(kinds)}"


def _show_sizes(listed: Listed, uri: str) -> None:
    every = listed.every
    more = "more than " if listed.cut_at else ""
    average = human_bytes(every.bytes / max(1, every.objects))
    print_line(
        f"{uri}: {more}{plural(every.objects, 'object')}, {more}{human_bytes(every.bytes)},"
        f" {average} on average"
    )
    if listed.cut_at:
        print_line(
            f"all figures are of the first {every.objects:,} objects in key order, up to"
            f" {listed.cut_at}; --max-objects lists more, of up to {MOST_PLACES:,} directories"
        )
    most = max(one.objects for one in listed.by_size)
    rows = [
        (name, f"{one.objects:,}", human_bytes(one.bytes), _bar(one.objects, most))
        for name, one in zip(_size_names(), listed.by_size, strict=True)
        if one.objects
    ]
    print_table("Sizes", ("Size", "Objects", "Bytes", ""), rows, texts=(0, 3))
    share, of_bytes = every.small / max(1, every.objects), every.small_bytes / max(1, every.bytes)
    print_line(f"below 128 KiB: {share:.1%} of the objects, {of_bytes:.1%} of the bytes")
    classes = sorted(listed.by_class.items(), key=lambda one: -one[1].objects)
    texts = (f"{n} {plural(one.objects, 'object')}, {human_bytes(one.bytes)}" for n, one in classes)
    print_line(f"storage classes: {'; '.join(texts)}")


def _bar(objects: int, most: int) -> str:
    return "█" * -(-objects * _BAR_WIDTH // most)


def _size_names() -> Iterator[str]:
    for low, high in zip(BOUNDS, (*BOUNDS[1:], None), strict=True):
        if not low:
            yield "empty"
        elif high is None:
            yield f"{human_bytes(low)} and more"
        else:
            yield f"below {human_bytes(high)}"


def _show_formats(scanned: Scanned, job: Job, coverage: Coverage) -> None:
    below = f" below {_levels(job.layout)}" if len(scanned.jobs) > 1 else ""
    rows = [
        (
            "other keys" if one is None else one.match,
            f"{counts.objects:,}",
            human_bytes(counts.bytes),
            "not read" if one is None else _format(one),
            "" if one is None else f"{outcome(one)}{one.evidence}",
        )
        for one, counts in coverage.families.items()
    ]
    heads = ("Keys", "Objects", "Bytes", "Format", "Evidence")
    title = f"Formats{below}, by the first bytes of {plural(scanned.read, 'object')}"
    print_table(title, heads, rows, texts=(0, 3, 4))


def _format(proposal: Proposal) -> str:
    """Return the proposed format with its options, such as ``csv, header = true``."""
    options = dict(proposal.options[0]) if proposal.options else {}
    options.pop("format", None)
    return ", ".join((proposal.kind, *(f"{n} = {json.dumps(v)}" for n, v in options.items())))


def outcome(proposal: Proposal) -> str:
    """Return how sure a proposal is, before its evidence."""
    return f"{proposal.confidence}; " if proposal.options else ""


def _show_layouts(scanned: Scanned) -> None:
    if not scanned.jobs:
        print_line("layout: a run would compact none of these objects")
    total = sum(one.objects for one in scanned.listed.places.values())
    for job, coverage in scanned.jobs:
        print_line(f"layout: {_layout(job.layout, coverage, total)}")
        if job.layout.why:
            print_line(f"  {job.layout.why}")


def _levels(layout: Layout) -> str:
    levels = [*layout.root, *layout.pattern]
    levels += [layout.date_format] if layout.date_format else ["*"] * layout.depth
    return "".join(f"{level}/" for level in levels) or "one partition, flat"


def _layout(layout: Layout, coverage: Coverage, total: int) -> str:
    share = layout.objects / max(1, total)
    text = f"{_levels(layout)}, {layout.objects:,} of {plural(total, 'key')} fit ({share:.1%})"
    if layout.date_format is None:
        text += f"; depth {layout.depth}, no dates"
    else:
        text += f"; dates from {_date(layout.begin)} to {_date(layout.end - 1)}"
    outputs = f"about {plural(coverage.outputs, 'output')}"
    return f"{text}; {plural(coverage.partitions, 'partition')}, {outputs}"


def _show_arrivals(listed: Listed) -> None:
    days = (listed.last - listed.first) / _DAY
    rate = ""
    if days >= _DAYS_OF_A_RATE:
        every = listed.every
        rate = f", {every.objects / days:,.0f} objects and {human_bytes(every.bytes / days)} a day"
    print_line(f"arrivals: from {instant(listed.first)} to {instant(listed.last)}{rate}")


def _skipped(scanned: Scanned) -> dict[str, dict[str, Any]]:
    """Return what a run would skip, by reason; includes objects outside of all layouts."""
    skipped = {reason.value: asdict(one) for reason, one in scanned.listed.skips.items()}
    total = sum(one.objects for one in scanned.listed.places.values())
    outside = total - sum(job.layout.objects for job, _ in scanned.jobs)
    if outside > 0 and scanned.jobs:
        skipped[SkipReason.UNPARTITIONED.value] = {
            "objects": outside, "bytes": None, "examples": ()
        }  # fmt: skip
    return skipped


def _show_commands(scanned: Scanned) -> None:
    if not scanned.jobs:
        return
    print_line("Next", "bold")
    for number, (job, coverage) in enumerate(scanned.jobs):
        if len(scanned.jobs) > 1:
            print_line(f"# for {_levels(job.layout)}")
        for line in (*_choices(coverage.proposals), *_remarks(job)):
            print_line(f"# {line}")
        for command in scanned.commands(number).values():
            print_line(command)
    if not scanned.names:
        print_line("# scan again with --save NAME to keep this as a job: compactor run NAME")


def _choices(proposals: Sequence[Proposal]) -> Iterator[str]:
    """Yield what a person has to choose."""
    for proposal in proposals:
        if proposal.options and not proposal.declared:
            choices = (_choice(proposal.match, options) for options in proposal.options)
            yield f"{proposal.match} is left alone: it is unsure; choose {' or '.join(choices)}"


def _remarks(job: Job) -> Iterator[str]:
    if job.fault:
        yield f"no input is possible for this: {job.fault}"
        return
    if job.note:
        yield job.note
    if job.now:
        yield "with 0 a run takes even what arrived a moment ago; leave both out later"


def _choice(match: str, options: Mapping[str, Any]) -> str:
    """Return a declaration as the option ``--set``."""
    texts = [f"{match}={options['format']}"]
    for name, value in options.items():
        if name != "format":
            texts.append(f"{name}={json.dumps(value).strip(chr(34))}")
    return f"--set {shlex.quote(','.join(texts))}"


def document(scanned: Scanned) -> dict[str, Any]:
    """Return the result for JSON."""
    listed = scanned.listed
    return {
        "source": scanned.uri,
        "at": scanned.at,
        "objects": listed.every.objects,
        "bytes": listed.every.bytes,
        "cut_at": listed.cut_at or None,
        "sizes": [
            {"from": low, "objects": one.objects, "bytes": one.bytes}
            for low, one in zip(BOUNDS, listed.by_size, strict=True)
        ],
        "below_128_kib": {"objects": listed.every.small, "bytes": listed.every.small_bytes},
        "storage_classes": {
            name: {"objects": one.objects, "bytes": one.bytes}
            for name, one in listed.by_class.items()
        },
        "arrivals": {"first": listed.first, "last": listed.last},
        "skipped": _skipped(scanned),
        "money": scanned.money.to_dict(),
        "jobs": [
            {
                "layout": _layout_document(job.layout, coverage),
                "formats": [
                    _family(one, counts.objects, counts.bytes)
                    for one, counts in coverage.families.items()
                ],
                "fields": dict(job.fields),
                "note": job.note,
                "fault": job.fault,
                **(scanned.commands(number) or dict.fromkeys(_VERBS)),
            }
            for number, (job, coverage) in enumerate(scanned.jobs)
        ],
    }


def _family(proposal: Proposal | None, objects: int, size: int) -> dict[str, Any]:
    counts = {"objects": objects, "bytes": size}
    if proposal is None:
        return {"match": None, **counts}
    return {
        "match": proposal.match,
        **counts,
        "kind": proposal.kind,
        "confidence": proposal.confidence,
        "evidence": proposal.evidence,
        "share": proposal.share,
        "declarations": proposal.options,
    }


def _layout_document(layout: Layout, coverage: Coverage) -> dict[str, Any]:
    return {
        "levels": [*layout.root, *layout.pattern],
        "date_format": layout.date_format,
        "depth": layout.depth,
        "why": layout.why,
        "objects": layout.objects,
        "partitions": coverage.partitions,
        "outputs": coverage.outputs,
        "first": None if layout.date_format is None else _date(layout.begin),
        "last": None if layout.date_format is None else _date(layout.end - 1),
    }


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()
