"""Why objects were left alone and what failed: for each reason a sentence, and what to do.

:data:`REASONS` has a line for every reason of a skip, for every reason of a quarantine, and for the
errors that end a partition. Everything else here puts them into a run's words.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, NamedTuple

from compactor.discovery.forecast import Waiting
from compactor.log.counts import LeftAlone
from compactor.model import QuarantineReason, Skipped, SkipReason
from compactor.settings.fields import FIELDS
from compactor.settings.settings import Settings
from compactor.sizes import plural

#: The reason of partitions that are too large for a worker, where there is no Spark.
OVERSIZED = "oversized"
#: Reasons of objects that a later run takes as they are; the first two pass with time alone.
_BY_AGE = (SkipReason.TOO_YOUNG, SkipReason.OPEN_PARTITION)
_WAITING = frozenset({*_BY_AGE, SkipReason.TOO_FEW})
# Permanent reasons, which need no action, come last in a headline.
_LAST = frozenset(
    {
        SkipReason.COMMITTED,
        SkipReason.EMPTY,
        SkipReason.DIRECTORY_MARKER,
        SkipReason.GONE,
    }
)
_SHOWN_REASONS = 2
_AGAIN = "start again with the same input: what was committed stands"


class Reason(NamedTuple):
    """A sentence about the objects, and what to do; empty if nothing, or if only time helps.

    ``{name}`` is replaced by the value of a setting, ``{=name value}`` by how to set one.
    """

    sentence: str
    remedy: str = ""


REASONS: Mapping[str, Reason] = MappingProxyType(
    {
        # Skipped: a listed object that is in no group.
        SkipReason.TOO_YOUNG: Reason("younger than settle_seconds ({settle_seconds})"),
        SkipReason.OPEN_PARTITION: Reason(
            "in a partition younger than six times settle_seconds ({settle_seconds})"
        ),
        SkipReason.TOO_FEW: Reason(
            "in a partition with fewer of them than min_objects ({min_objects})",
            "wait for more, or give {=min_objects 1}",
        ),
        SkipReason.ARCHIVED: Reason(
            "in Glacier or Deep Archive, where nothing can be read",
            "restore them first (aws s3api restore-object), then run again",
        ),
        SkipReason.NOT_INCLUDED: Reason(
            "matched by no pattern of include ({include})",
            "patterns are of keys below the source, and * stands for slashes, too",
        ),
        SkipReason.EXCLUDED: Reason(
            "excluded by exclude ({exclude})", "correct exclude if they should be compacted"
        ),
        SkipReason.OWN_STATE: Reason(
            "outputs or records of this program", "give a source that no run wrote"
        ),
        SkipReason.HIDDEN: Reason(
            "hidden: a level or name below the source begins with _ or .",
            "spell that out in a pattern of include if it should be compacted",
        ),
        SkipReason.TABLE: Reason(
            "files of a table (Delta, Iceberg, Hudi, Paimon, Spark's sink), whose log names them",
            "compactor maintain plan shows what compacting Delta and Iceberg tables brings",
        ),
        SkipReason.REGISTRY: Reason(
            "parts of a registry of container images, which finds them by their keys"
        ),
        SkipReason.CLOUDTRAIL_DIGEST: Reason(
            "digests of CloudTrail, which hold no events",
            "the events lie below CloudTrail/ of the same account",
        ),
        SkipReason.QUARANTINED: Reason(
            "left alone by an earlier run for what they hold, as its report says",
            "give other settings, or {=retry_quarantined true}",
        ),
        SkipReason.UNPARTITIONED: Reason(
            "above the partitions, or in one whose path is too long",
            "give another depth (now {depth}) or date_format",
        ),
        SkipReason.DEEPER_LEVEL: Reason(
            "in a level below their partition that names a column",
            "give a depth or a date_format that reaches it",
        ),
        SkipReason.COMMITTED: Reason("compacted already"),
        SkipReason.OVERWRITTEN: Reason(
            "put over an object that was compacted already, and so in no output",
            "copy them under new keys; raise settle_seconds (now {settle_seconds}) if objects grow",
        ),
        SkipReason.EMPTY: Reason("empty"),
        SkipReason.DIRECTORY_MARKER: Reason("markers of directories, without content"),
        SkipReason.GONE: Reason("gone since their event, or changed"),
        # Quarantined: a source that was left alone for its content. By the listing, too: an
        # .instruction object beside a source says that its client encrypted it.
        QuarantineReason.CLIENT_ENCRYPTED: Reason(
            "encrypted by their client before they came to S3",
            "decrypt them first; outputs of them could not be",
        ),
        QuarantineReason.CORRUPT: Reason(
            "compression damaged", "write them again from where they came"
        ),
        QuarantineReason.TRUNCATED: Reason("cut off", "write them again from where they came"),
        QuarantineReason.BOMB: Reason(
            "too large when decompressed",
            "write them in objects that decompress to less than 16 MiB",
        ),
        QuarantineReason.UNKNOWN_FORMAT: Reason(
            "of no format that is certain", "declare it in formats; compactor scan proposes it"
        ),
        QuarantineReason.BINARY: Reason("binary", "none: they are no lines of text"),
        QuarantineReason.ENCODING: Reason(
            "not UTF-8", 'declare encoding = "single_byte" in formats, if they are text'
        ),
        QuarantineReason.OPEN_END: Reason("last records incomplete", "complete them"),
        QuarantineReason.OPEN_QUOTE: Reason("quotes not closed", "complete them"),
        QuarantineReason.MALFORMED: Reason(
            "not what formats declares, or malformed documents",
            "correct formats, or write them again",
        ),
        QuarantineReason.UNSUPPORTED_TYPE: Reason(
            "types or metadata that no output keeps",
            "leave them out by exclude, or write them with other types",
        ),
        QuarantineReason.TOO_LARGE: Reason("documents too large", "write them in smaller objects"),
        QuarantineReason.ARCHIVED: Reason("archived", "restore them in S3; each run tries again"),
        QuarantineReason.ACCESS_DENIED: Reason(
            "access denied", "let the role read them; each run tries again"
        ),
        QuarantineReason.ENCRYPTED: Reason(
            "key of their encryption denied", "let the role use their key; each run tries again"
        ),
        OVERSIZED: Reason(
            "larger than one worker may take, and spark_engine is none",
            "set engine to worker, give another spark_engine, or a larger lambda_max_bytes",
        ),
        # Failed: by the class name of the error. The runbook's tables have details.
        "TransientStoreError": Reason("S3 did not answer, again and again", _AGAIN),
        "States.Timeout": Reason("the work took too long", _AGAIN),
        "WorkerLost": Reason(
            "the worker died; its function's log has its last lines",
            "raise worker_memory_mb; then start again",
        ),
        "SourceChanged": Reason(
            "sources changed each time they were planned",
            f"look for a producer that overwrites; {_AGAIN}",
        ),
        "CommitConflict": Reason(
            "another run committed meanwhile", f"look for two schedules; {_AGAIN}"
        ),
        "NothingReadable": Reason(
            "no source of the partition may be read",
            "fix the role, the bucket policy or the KMS key that the cause names",
        ),
        "InvalidInput": Reason("a setting does not fit what is there", "the cause names it"),
        "ObjectArchived": Reason(
            "an output or the commit log lies in an archive tier",
            "restore it, and keep lifecycle rules away from the state prefix",
        ),
        "IntegrityError": Reason(
            "the state and what is stored contradict each other",
            "let no clean-up run before you know why (no delete_after); compactor verify SOURCE"
            " DEST names what is wrong; docs/operations.md says how to bring back a deleted log",
        ),
        "NotMerged": Reason("outputs are committed, and not all are merged into the table", _AGAIN),
    }
)
_OTHER_ERROR = Reason("", f"fix what the cause names; {_AGAIN}")
_GIVEN = re.compile(r"\{=(\w+) (\w+)\}")


def why_left(
    reason: str, settings: Mapping[str, Any], *, typed: bool = False, when: str = ""
) -> Reason:
    """Return why objects were left alone, and what to do, with the values of the settings.

    Args:
        reason: of a skip or a quarantine; one that is not in the table has no texts.
        settings: of the run, from its report; missing ones have their defaults.
        typed: show settings as command-line options.
        when: when a run takes objects that were skipped for their age; by default, a later run.
    """
    values = {name: _value_text(settings.get(name, spec.default)) for name, spec in FIELDS.items()}
    sentence, remedy = REASONS.get(reason, Reason(""))
    if reason in _BY_AGE:
        remedy = f"{when or 'a later run takes them'}, or give {{=settle_seconds 0}}"
    remedy = _GIVEN.sub(lambda match: _option(match[1], match[2], typed=typed), remedy)
    return Reason(sentence.format_map(values), remedy.format_map(values))


def why_failed(error: str) -> Reason:
    """Return what an error means, and what to do about it, by its class name."""
    return REASONS.get(error, _OTHER_ERROR)


def hint_of(reason: str) -> str:
    """Return the command for objects of this reason, as the end of a line; usually empty."""
    return f"; {REASONS[SkipReason.TABLE].remedy}" if reason == SkipReason.TABLE else ""


def too_large(partitions: int) -> str:
    """Return why partitions that are too large for a worker are left, and what to do."""
    which = "1 partition is" if partitions == 1 else f"{partitions:,} partitions are"
    sentence, remedy = REASONS[OVERSIZED]
    return f"{which} {sentence}; {remedy}"


# Headlines


def nothing_to_do(
    settings: Settings,
    skipped: Mapping[str, Skipped],
    oversized: int = 0,
    *,
    waiting: Waiting | None = None,
    typed: bool = False,
) -> str:
    """Return the headline of a run that compacted nothing, or of a plan that would not.

    Args:
        settings: of the run.
        skipped: what it left, by name of the :class:`compactor.model.SkipReason`.
        oversized: number of partitions that are left because there is no Spark for them.
        waiting: about the objects that are left because of their age; None if not known.
        typed: show settings as command-line options.
    """
    parts = [too_large(oversized)] if oversized else []
    reasons = sorted(
        map(SkipReason, skipped), key=lambda reason: (reason in _LAST, -skipped[reason].objects)
    )
    shown = reasons[: _SHOWN_REASONS - len(parts)]
    for reason in shown:
        when = "" if waiting is None else _when(reason, waiting)
        sentence, remedy = why_left(reason, settings.to_dict(), typed=typed, when=when)
        line = f"{plural(skipped[reason].objects, 'object')} left: {sentence}"
        parts.append(f"{line}; {remedy}" if remedy else line)
    others = sum(skipped[reason].objects for reason in reasons[len(shown) :])
    if others:
        parts.append(f"{plural(others, 'object')} for other reasons, see below")
    return f"nothing to compact: {'; '.join(parts) or _nothing_there(settings)}"


def left_for_content(
    compacted: int, left: Mapping[str, LeftAlone], skipped: Mapping[str, Skipped]
) -> str:
    """Return the headline of a run that left sources alone for their content, else "".

    Args:
        compacted: number of sources that this run compacted.
        left: what it left alone, the most frequent reason first.
        skipped: what it did not examine; sources that earlier runs left alone count as well.
    """
    now = sum(one.objects for one in left.values())
    earlier = skipped.get(SkipReason.QUARANTINED, Skipped(0, 0)).objects
    if not now + earlier:
        return ""
    total = compacted + now + earlier
    line = f"{compacted:,} of {plural(total, 'object')} compacted, {now + earlier:,} left alone"
    if not left:
        return f"{line} by earlier runs: see their reports"
    name, most = next(iter(left.items()))
    mostly = "" if most.objects == now + earlier else "mostly "
    reason = REASONS.get(name, Reason(name))
    remedy = f", {reason.remedy}" if reason.remedy else ""
    return f"{line}: {mostly}{reason.sentence}{remedy}"


def _when(reason: SkipReason, waiting: Waiting) -> str:
    """Return when a run takes the objects that are left because of their age."""
    which = "oldest" if reason is SkipReason.TOO_YOUNG else "newest"
    age = age_text(waiting.now - getattr(waiting, which))
    at = moment_text(waiting.ready_at, waiting.now)
    return f"the {which} is {age} old, so a run from {at} on takes them"


def _nothing_there(settings: Settings) -> str:
    if settings.takes_events:
        return "no event named an object"
    place = f"below {settings.s3_source_uri}"
    return (
        f"no object {place}" if settings.date_format is None else f"no object of the window {place}"
    )


def age_text(seconds: float) -> str:
    """Format an age in whole seconds, minutes, hours or days; never below 0."""
    whole = max(0, int(seconds))
    for unit, length in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if whole >= 2 * length:
            return f"{whole // length} {unit}"
    return f"{whole} s"


def moment_text(at: float, now: float) -> str:
    """Format a future time, rounded up to minutes: today as ``19:52 UTC``, else with its date.

    Args:
        at: UNIX seconds.
        now: UNIX seconds.
    """
    moment = datetime.fromtimestamp(math.ceil(at / 60) * 60, UTC)
    today = datetime.fromtimestamp(now, UTC).date()
    return f"{moment:%H:%M} UTC" if moment.date() == today else f"{moment:%Y-%m-%d %H:%M} UTC"


# What a stored report says of partitions and of objects left for later


def partition_count(report: Mapping[str, Any]) -> int:
    """Return how many partitions a run found, whether it worked on them or not."""
    return int(report["partition_count"])


def backlog(report: Mapping[str, Any]) -> int:
    """Return the number of objects that a later run takes as they are: too young or too few now."""
    return sum(int(one["objects"]) for one in _waiting(report))


def oldest_waiting(report: Mapping[str, Any]) -> float | None:
    """Return when the oldest of these was last modified, in UNIX seconds; None if unknown."""
    return min(filter(None, (one["oldest"] for one in _waiting(report))), default=None)


def grouped(failures: Iterable[tuple[str, str]]) -> list[str]:
    """Return one line for each cause: the first path that has it, how many others, the cause.

    Args:
        failures: path of a partition, and why it failed.
    """
    paths: dict[str, list[str]] = {}
    for path, cause in failures:
        paths.setdefault(cause, []).append(path)
    return [f"{first_of(same)}: {cause}" for cause, same in paths.items()]


def first_of(paths: Sequence[str]) -> str:
    """Return the first path and the number of the others."""
    more = len(paths) - 1
    return (paths[0] or "(root)") + (f" and {plural(more, 'more partition')}" if more else "")


def dead_letter_line(records: int, places: Sequence[str]) -> str:
    """Return where the records are that are in no output because they fit no row of one.

    Args:
        records: their number.
        places: the first prefixes with them.
    """
    remedy = "parquet_schema declares columns that take them"
    return (
        f"{plural(records, 'dead-letter record')} in no output: see {', '.join(places)}; {remedy}"
    )


def _waiting(report: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [one for reason, one in report["skipped"].items() if reason in _WAITING]


def _value_text(value: object) -> object:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else value


def _option(name: str, value: str, *, typed: bool) -> str:
    option = f"--{name.replace('_', '-')}"
    if not typed:
        return f"{name}: {value}"
    return option if value == "true" else f"{option} {value}"
