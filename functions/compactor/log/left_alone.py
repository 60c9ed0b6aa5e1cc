"""Sources left alone because of their content: counts by reason, with an example."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from compactor.model import Quarantined, QuarantineReason

#: Reasons that depend on settings: under different settings such a source is tried again.
BY_SETTINGS = frozenset(
    {
        QuarantineReason.UNKNOWN_FORMAT,
        QuarantineReason.BINARY,
        QuarantineReason.ENCODING,
        QuarantineReason.OPEN_END,
        QuarantineReason.OPEN_QUOTE,
        QuarantineReason.MALFORMED,
    }
)


@dataclass(slots=True)
class LeftAlone:
    """The sources of a run that were left alone for one reason.

    Attributes:
        example: key of the first.
        detail: what was seen of it, its first bytes escaped.
    """

    objects: int = 0
    bytes: int = 0
    example: str = ""
    detail: str = ""

    def plus(self, other: LeftAlone) -> LeftAlone:
        """Return the sum of both, with the example of the first that has one."""
        named = self if self.example else other
        return replace(named, objects=self.objects + other.objects, bytes=self.bytes + other.bytes)


def count(counts: dict[str, LeftAlone], sources: Iterable[Quarantined], sign: int = 1) -> None:
    """Add sources that were left alone, by reason; with a sign of -1, subtract them."""
    for one in sources:
        found = counts.get(one.reason)
        if found is None:
            found = LeftAlone(0, 0, one.source.key, one.detail)
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
