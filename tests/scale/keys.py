"""Which objects there are, by formula: nothing is stored."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

from compactor.model import Partition

SOURCE_BUCKET, LAKE_BUCKET = "source", "lake"
ROOT = "logs/"
_DAY_MS = 86_400_000
_DASHES = str.maketrans(":.", "--")
# Odd, so that no two ETags or names of a partition are equal.
_MIX, _ETAG = 0x9E3779B1, 0x9E3779B97F4A7C15F39CC0605CEDC835


@dataclass(frozen=True, slots=True)
class Keys:
    """Partitions of equally many JSON Lines objects, named by the time they arrived at.

    Attributes:
        objects: that have come to each partition on the first day, and
        fresh: since then, at the same pace.
        size: bytes of each.
    """

    partitions: int
    objects: int
    fresh: int = 0
    size: int = 4096

    @property
    def in_each(self) -> int:
        """Objects of one partition."""
        return self.objects + self.fresh

    @property
    def total(self) -> int:
        """All objects."""
        return self.partitions * self.in_each

    def path(self, number: int) -> str:
        """Path of a partition below the root."""
        return f"part={number:06}/"

    def prefix(self, number: int) -> str:
        """Prefix of a partition."""
        return ROOT + self.path(number)

    def number_of(self, prefix: str) -> int:
        """Which partition has this prefix.

        Raises:
            KeyError: none.
        """
        digits = prefix.removeprefix(f"{ROOT}part=").removesuffix("/")
        if digits.isdecimal() and int(digits) < self.partitions:
            number = int(digits)
            if self.prefix(number) == prefix:
                return number
        raise KeyError(prefix)

    def has(self, prefix: str) -> bool:
        """Whether a partition has this prefix."""
        try:
            return self.number_of(prefix) >= 0
        except KeyError:
            return False

    def item(self, number: int) -> Partition:
        """What discovery finds of a partition."""
        return Partition(SOURCE_BUCKET, self.prefix(number), self.path(number))

    def items(self) -> Iterator[Partition]:
        """What discovery finds."""
        return map(self.item, range(self.partitions))

    def name(self, number: int, index: int) -> str:
        """Last segment of a key, as Firehose makes them; in the order of the index."""
        day, time = self._arrived(index)
        unlike = index * _MIX + number & 0xFFFFFFFF
        return f"events-1-2026-01-{day:02}-{time.translate(_DASHES)}-{unlike:08x}.json"

    def etag(self, number: int, index: int) -> str:
        """ETag, as of an object that was put in one part."""
        return f"{(index * 1_000_003 + number + 1) * _ETAG & (1 << 128) - 1:032x}"

    def behind(self, number: int, after: str) -> int:
        """Index of the first object behind a key."""
        name = after.removeprefix(self.prefix(number)) if after else ""
        if not name:
            return 0
        return bisect_right(range(self.in_each), name, key=lambda index: self.name(number, index))

    def entries(self, number: int, start: int, end: int) -> Iterator[str]:
        """The Contents elements of a page, as S3 writes them."""
        prefix = quote(self.prefix(number), safe="/")
        for index in range(start, min(end, self.in_each)):
            day, time = self._arrived(index)
            yield (
                f"<Contents><Key>{prefix}{self.name(number, index)}</Key>"
                f"<LastModified>2026-01-{day:02}T{time}Z</LastModified>"
                f"<ETag>&quot;{self.etag(number, index)}&quot;</ETag><Size>{self.size}</Size>"
                "<StorageClass>STANDARD</StorageClass></Contents>"
            )

    def _arrived(self, index: int) -> tuple[int, str]:
        """Day of the month, and time of day: all come at the same pace."""
        day, ms = divmod(index * _DAY_MS // self.objects, _DAY_MS)
        seconds, ms = divmod(ms, 1000)
        minutes, seconds = divmod(seconds, 60)
        hours, minutes = divmod(minutes, 60)
        return 1 + day, f"{hours:02}:{minutes:02}:{seconds:02}.{ms:03}"
