"""Sources left alone because of their content: counts by reason, and the setting that may help."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from compactor.model import Quarantined, QuarantineReason, Skipped, SkipReason
from compactor.sizes import plural

#: Reasons that depend on settings: under different settings such a source is tried again.
BY_SETTINGS = frozenset(
    {
        QuarantineReason.UNKNOWN_FORMAT,
        QuarantineReason.BINARY,
        QuarantineReason.ENCODING,
        QuarantineReason.OPEN_END,
        QuarantineReason.OPEN_QUOTE,
        QuarantineReason.AMBIGUOUS_HEADER,
        QuarantineReason.MALFORMED,
        QuarantineReason.RECORDS_DIFFER,
    }
)
#: The setting that gets such sources compacted; no entry if no setting can.
REMEDIES: Mapping[str, str] = MappingProxyType(
    {
        QuarantineReason.UNKNOWN_FORMAT: 'format: "text", if its lines are records',
        QuarantineReason.BINARY: 'encoding: "any_bytes", if it is text',
        QuarantineReason.ENCODING: 'encoding: "single_byte", or convert it to UTF-8',
        QuarantineReason.AMBIGUOUS_HEADER: "csv_header",
        QuarantineReason.MALFORMED: "format",
        QuarantineReason.RECORDS_DIFFER: "format or csv_header to what they are",
    }
)
_IN_WORDS: Mapping[str, str] = MappingProxyType(
    {
        QuarantineReason.CORRUPT: "compression damaged",
        QuarantineReason.TRUNCATED: "cut off",
        QuarantineReason.BOMB: "too large when decompressed",
        QuarantineReason.UNKNOWN_FORMAT: "format unknown",
        QuarantineReason.BINARY: "binary",
        QuarantineReason.ENCODING: "encoding unknown",
        QuarantineReason.OPEN_END: "last records incomplete",
        QuarantineReason.AMBIGUOUS_HEADER: "first lines ambiguous",
        QuarantineReason.OPEN_QUOTE: "quotes not closed",
        QuarantineReason.MALFORMED: "documents malformed",
        QuarantineReason.TOO_LARGE: "documents too large",
        QuarantineReason.ARCHIVED: "archived",
        QuarantineReason.ACCESS_DENIED: "access denied",
        QuarantineReason.ENCRYPTED: "key of their encryption denied",
        QuarantineReason.RECORDS_DIFFER: "records read differently",
        QuarantineReason.CLIENT_ENCRYPTED: "encrypted by their client",
    }
)
#: Separator in the name of what decided formats: what follows names the decisions pinned for the
#: data set, which some of these sources wait for.
WAITS = "."


@dataclass(slots=True)
class LeftAlone:
    """The sources of a run that were left alone for one reason.

    Attributes:
        example: key of the first.
        detail: what was seen of it, its first bytes escaped.
        setting: the setting that would change it; empty if none would.
    """

    objects: int = 0
    bytes: int = 0
    example: str = ""
    detail: str = ""
    setting: str = ""

    def plus(self, other: LeftAlone) -> LeftAlone:
        """Return the sum of both, with the example of the first that has one."""
        named = self if self.example else other
        return replace(named, objects=self.objects + other.objects, bytes=self.bytes + other.bytes)


def count(counts: dict[str, LeftAlone], sources: Iterable[Quarantined], sign: int = 1) -> None:
    """Add sources that were left alone, by reason; with a sign of -1, subtract them."""
    for one in sources:
        found = counts.get(one.reason)
        if found is None:
            setting = REMEDIES.get(one.reason, "")
            found = LeftAlone(0, 0, one.source.key, one.detail, setting)
            counts[one.reason.value] = found
        found.objects += sign
        found.bytes += sign * one.source.size


def added_up(found: Iterable[Mapping[str, LeftAlone]]) -> dict[str, LeftAlone]:
    """Return the sums by reason, the most frequent first."""
    result: dict[str, LeftAlone] = {}
    for one in found:
        for reason, left in one.items():
            # The count is zero if the commits were replaced.
            if not left.objects:
                continue
            result[reason] = result.get(reason, LeftAlone()).plus(left)
    return dict(sorted(result.items(), key=lambda item: (-item[1].objects, item[0])))


def headline(compacted: int, left: Mapping[str, LeftAlone], skipped: Mapping[str, Skipped]) -> str:
    """Return one line if any source was left alone for its content, else "".

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
    reason, most = next(iter(left.items()))
    mostly = "" if most.objects == now + earlier else "mostly "
    setting = f", set {most.setting}" if most.setting else ""
    return f"{line}: {mostly}{_IN_WORDS.get(reason, reason)}{setting}"
