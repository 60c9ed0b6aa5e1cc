"""The result of a scan, as text and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from compactor.clock import instant
from compactor.model import SkipReason
from compactor.money import Verdict
from compactor.report.reasons import hint_of
from compactor.scanning.choosing import Choice, Layout, wildcards
from compactor.scanning.listing_sums import BOUNDS
from compactor.scanning.proposals import Proposal
from compactor.scanning.sample import UNKNOWN_HEADER, UNKNOWN_TEXT, Looked
from compactor.scanning.scan import Seen
from compactor.sizes import human_bytes, human_seconds, plural
from compactor_cli.console import print_line, print_table
from compactor_cli.plan_money import show_verdict

_BAR_WIDTH = 30
_DAY = 86_400
# Setting named in the detail of a skipped object -> advice on the option that decides.
_DECIDING = {
    UNKNOWN_HEADER: "add --csv-header present where first records name the columns,"
    " --csv-header absent where they are rows",
    UNKNOWN_TEXT: "add --format text where lines are records of their own",
}


# What a proposed value decides that the objects do not show.
_DECIDED = {
    ("csv_header", "present"): "the first lines are equal, so --csv-header present treats them as"
    " column names; if they are rows, give absent",
    ("csv_header", "absent"): "the first lines differ, so --csv-header absent treats them as rows;"
    " if they are column names, give present",
    ("format", "text"): "--format text treats every line as a record",
    ("encoding", "single_byte"): "--encoding single_byte accepts text that is not UTF-8",
}
_VERBS = ("plan", "run", "verify")


@dataclass(frozen=True, slots=True)
class Scanned:
    """A scan, and the recommendations from it.

    Attributes:
        uri: what was scanned.
        at: UNIX seconds.
        money: what compaction would cost and save.
        endpoint_url: as given; the printed commands repeat it.
        jobs: under which each proposal was saved; empty if they were not.
    """

    uri: str
    at: float
    seen: Seen
    looked: Sequence[Looked]
    choice: Choice
    proposals: Sequence[Proposal]
    money: Verdict
    endpoint_url: str | None = None
    jobs: Sequence[str] = ()

    def commands(self, number: int) -> dict[str, str]:
        """Return the commands to plan, run and verify a proposal, by verb."""
        one, job = self.proposals[number], self.jobs[number] if self.jobs else ""
        endpoint = ("--endpoint-url", self.endpoint_url) if self.endpoint_url and not job else ()
        return {
            "plan": one.command("plan", *endpoint, job=job),
            "run": one.command("run", *endpoint, job=job),
            "verify": one.command("verify", "--deep", *endpoint, job=job),
        }


def show(found: Scanned) -> None:
    """Print everything, the verdict first."""
    show_verdict(found.money)
    _show_sizes(found.seen, found.uri)
    _show_looked(found.looked)
    _show_layout(found)
    _show_arrivals(found)
    _show_skipped(found)
    _show_commands(found)


def _show_sizes(seen: Seen, uri: str) -> None:
    about = "" if seen.rest is None else "about "
    average = human_bytes(seen.bytes / max(1, seen.objects))
    print_line(
        f"{uri}: {about}{plural(seen.total_objects, 'object')},"
        f" {about}{human_bytes(seen.total_bytes)}, {average} on average"
    )
    if seen.rest is not None:
        rest = seen.rest
        listed = seen.objects - rest.looked_at
        print_line(
            f"extrapolated from the first {listed:,} objects in key order, up to {rest.after}, and"
            f" {rest.looked_at:,} sampled after it; all figures below are of these. --max-objects"
            " lists more"
        )
    sizes, most = seen.sizes, max(1, *seen.sizes.objects)
    rows = [
        (name, f"{many:,}", human_bytes(size), "█" * -(-many * _BAR_WIDTH // most))
        for name, many, size in zip(_classes(), sizes.objects, sizes.bytes, strict=True)
        if many
    ]
    if rows:
        print_table("Sizes", ("Size", "Objects", "Bytes", ""), rows, texts=(0, 3))
    objects, size = sizes.small
    share, of_bytes = objects / max(1, sum(sizes.objects)), size / max(1, sum(sizes.bytes))
    print_line(f"below 128 KiB: {share:.1%} of the objects, {of_bytes:.1%} of the bytes")
    classes = sorted(seen.classes.items(), key=lambda one: -one[1][0])
    shown_classes = (
        f"{name} {plural(many, 'object')}, {human_bytes(size)}" for name, (many, size) in classes
    )
    print_line(f"storage classes: {'; '.join(shown_classes)}")


def _classes() -> Iterator[str]:
    for low, high in zip(BOUNDS, (*BOUNDS[1:], None), strict=True):
        if not low:
            yield "empty"
        elif high is None:
            yield f"{human_bytes(low)} and more"
        else:
            yield f"below {human_bytes(high)}"


def _show_looked(looked: Sequence[Looked]) -> None:
    if not looked:
        print_line("formats: no object could be read")
        return
    counts = Counter(one.kind for one in looked)
    examples = {one.kind: one for one in reversed(looked)}
    rows = [
        (kind, f"{many:,}", f"{examples[kind].source.key}{_detail(examples[kind])}")
        for kind, many in counts.most_common()
    ]
    heads = ("Format", "Objects", "Such as")
    title = f"Formats of {plural(len(looked), 'object')} in a sample"
    print_table(title, heads, rows, texts=(0, 2))
    for setting, advice in _DECIDING.items():
        many = sum(setting in one.detail for one in looked)
        if many:
            print_line(f"{plural(many, 'object')} left alone: {advice}")
    if counts.keys() & {"parquet"}:
        print_line("Parquet is only merged with --format parquet")


def _detail(one: Looked) -> str:
    return f" ({one.detail})" if one.detail else ""


def _show_layout(found: Scanned) -> None:
    choice = found.choice
    if choice.clear:
        (layout,) = choice.layouts
        print_line(f"layout: {_layout(layout, choice.total)}")
        if choice.why:
            print_line(f"  {choice.why}")
    elif choice.layouts:
        best = "the two best" if len(choice.layouts) > 1 else "the best"
        print_line(f"layout: not clear ({choice.why}); {best}:")
        for layout in choice.layouts:
            print_line(f"  {_layout(layout, choice.total)}")
    else:
        print_line(f"layout: {choice.why}")
    if found.seen.keys.odd:
        odd = plural(found.seen.keys.odd, "key")
        print_line(
            f"  {odd} with a level that is empty, . or ..: no source prefix can include them"
        )


def _layout(one: Layout, total: int) -> str:
    text = f"{one.shown}, {_fits(one, total)}"
    if one.kinds:
        text += f"; * stands for {wildcards(one.kinds)}"
    if one.begin is not None and one.end is not None:
        text += f"; dates from {_date(one.begin)} to {_date(one.end - 1)}"
    elif one.date_format is None:
        text += f"; depth {one.depth}, no dates"
    outputs = f"about {plural(one.outputs, 'output')}"
    return f"{text}; {plural(one.partitions, 'partition')}, {outputs}"


def _fits(one: Layout, total: int) -> str:
    return f"{one.objects:,} of {plural(total, 'key')} fit ({one.objects / max(1, total):.1%})"


def _show_arrivals(found: Scanned) -> None:
    arrivals, seen = found.seen.arrivals, found.seen
    usual = arrivals.usual_day
    span = arrivals.last - arrivals.first
    if usual is not None:
        objects, size, days = usual
        text = f"{objects:,.0f} objects and {human_bytes(size)} a day (the median of {days:,} days)"
    else:
        text = f"{plural(seen.objects, 'object')} within {human_seconds(span)}"
    print_line(f"arrivals: {text}, the last one {instant(arrivals.last)}")


def _show_skipped(found: Scanned) -> None:
    for reason, one in sorted(_skipped(found).items()):
        such = f", such as {one['examples'][0]}" if one["examples"] else ""
        print_line(f"skipped: {plural(one['objects'], 'object')}, {reason}{such}{hint_of(reason)}")


def _skipped(found: Scanned) -> dict[str, dict[str, Any]]:
    """Return what a run would skip, by reason; includes objects outside of a clear layout."""
    skipped = {reason.value: asdict(one) for reason, one in found.seen.skips.by_reason.items()}
    if found.choice.clear:
        (layout,) = found.choice.layouts
        outside = found.choice.total - layout.objects
        deeper = layout.way.named_below if layout.way is not None else 0
        for reason, many in (
            (SkipReason.UNPARTITIONED, outside),
            (SkipReason.DEEPER_LEVEL, deeper),
        ):
            if many:
                skipped[reason.value] = {"objects": many, "bytes": None, "examples": ()}
    return skipped


def _show_commands(found: Scanned) -> None:
    if not found.proposals:
        return
    several = len(found.proposals) > 1
    print_line("Next", "bold")
    if several and found.choice.either:
        print_line("# use one of these, not both: they interpret the same keys differently")
    for number, one in enumerate(found.proposals):
        if several:
            print_line(f"# for {one.layout.shown}")
        _show_next(one, found.commands(number))
    if found.proposals and not found.jobs:
        print_line("# scan again with --save NAME to keep this as a job: compactor run NAME")


def _show_next(one: Proposal, commands: Mapping[str, str]) -> None:
    decided = [_DECIDED[which] for which in _DECIDED if which in one.fields.items()]
    for note in (*one.notes, *decided):
        print_line(f"# {note}")
    if one.fault:
        print_line(f"# no input is possible for this: {one.fault}")
        return
    if one.now:
        print_line("# with 0 a run takes even what arrived a moment ago; leave both out later")
    for command in commands.values():
        print_line(command)


def document(found: Scanned) -> dict[str, Any]:
    """Return the result for JSON."""
    seen = found.seen
    small, small_bytes = seen.sizes.small
    return {
        "source": found.uri,
        "at": found.at,
        "objects": seen.total_objects,
        "bytes": seen.total_bytes,
        "listed": seen.objects,
        "extrapolated": None if seen.rest is None else asdict(seen.rest),
        "sizes": [
            {"from": low, "objects": many, "bytes": size}
            for low, many, size in zip(BOUNDS, seen.sizes.objects, seen.sizes.bytes, strict=True)
        ],
        "below_128_kib": {"objects": small, "bytes": small_bytes},
        "storage_classes": {
            name: {"objects": many, "bytes": size} for name, (many, size) in seen.classes.items()
        },
        "sample": [_one_looked(one) for one in found.looked],
        "layout": {
            "clear": found.choice.clear,
            "why": found.choice.why,
            "keys": found.choice.total,
            "either": found.choice.either,
            "candidates": [_one_layout(one) for one in found.choice.layouts],
        },
        "arrivals": _arrivals(found),
        "skipped": _skipped(found),
        "money": found.money.to_dict(),
        "inputs": [
            {
                "fields": dict(one.fields),
                "notes": one.notes,
                "fault": one.fault,
                **(dict.fromkeys(_VERBS) if one.fault else found.commands(number)),
            }
            for number, one in enumerate(found.proposals)
        ],
    }


def _one_looked(one: Looked) -> dict[str, Any]:
    return {
        "key": one.source.key,
        "size": one.source.size,
        "compression": one.compression,
        "format": one.format,
        "refused": one.refused,
        "detail": one.detail,
    }


def _one_layout(one: Layout) -> dict[str, Any]:
    return {
        "levels": [*one.root, *one.pattern],
        "date_format": one.date_format,
        "depth": one.depth,
        "objects": one.objects,
        "bytes": one.bytes,
        "partitions": one.partitions,
        "outputs": one.outputs,
        "first": None if one.begin is None else _date(one.begin),
        "last": None if one.end is None else _date(one.end - 1),
        "wildcards": [{"kind": kind, "names": many} for kind, many in one.kinds],
        "example": one.example,
    }


def _arrivals(found: Scanned) -> dict[str, Any]:
    arrivals = found.seen.arrivals
    usual = arrivals.usual_day
    return {
        "first": arrivals.first,
        "last": arrivals.last,
        "objects_a_day": None if usual is None else usual[0],
        "bytes_a_day": None if usual is None else usual[1],
    }


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()
