"""The same records in several layouts, and what makes each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from compactor.errors import InvalidInput
from compactor_dev.query_bench.sets import ASKED_DAY, DAYS, QuerySet, day_path

RAW_BUCKET = "query-raw"
#: As many of the first days are closed and compacted where a table is half of each.
CLOSED_DAYS = 3


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a set's records lie.

    Attributes:
        name: as ``--layouts`` takes it.
        options: of ``compactor run``, which makes it; None where nothing is made.
        parquet: what is read is Parquet.
        extension: the end of its outputs' keys; empty for that of the sources.
        of: the layouts that a table of several states takes its days from.
    """

    name: str
    options: Mapping[str, str] | None = field(default_factory=dict)
    parquet: bool = False
    extension: str = ""
    of: tuple[str, str] | None = None

    @property
    def bucket(self) -> str:
        """Of its objects; a bucket for each, all of which can be cached."""
        return f"query-{self.name}"

    def places(self, given: QuerySet, query: str) -> list[str]:
        """What an engine reads for a query: ``bucket/prefix/*<extension>``, one for each day.

        A reader with partition columns prunes days as this does.
        """
        days = [ASKED_DAY] if query == "day" else range(DAYS)
        return [self._place(given, day) for day in days]

    def documents(self, given: QuerySet, query: str) -> list[str]:
        """Those of :meth:`places` whose objects are CloudTrail documents, not records."""
        raw = f"{RAW_BUCKET}/"
        return [one for one in self.places(given, query) if given.trails and one.startswith(raw)]

    def _place(self, given: QuerySet, day: int) -> str:
        if self.of is not None:
            closed, still_open = (LAYOUTS[name] for name in self.of)
            return (closed if day < CLOSED_DAYS else still_open)._place(given, day)
        root = given.name if self.options is None else f"data/{given.name}"
        return f"{self.bucket}/{root}/{day_path(day)}*{self.extension or given.extension}"


def _target(size: int) -> dict[str, str]:
    return {"--compression": "same", "--target-bytes": str(size << 20)}


LAYOUTS: Mapping[str, Layout] = {
    one.name: one
    for one in (
        Layout("raw", options=None),
        Layout("same", {"--compression": "same"}),
        Layout("gzip", {"--compression": "gzip"}, extension=".json.gz"),
        Layout("zstd", {"--compression": "zstd"}, extension=".json.zst"),
        Layout("none", {"--compression": "none"}, extension=".json"),
        Layout("parquet", {"--output-format": "parquet"}, parquet=True, extension=".parquet"),
        Layout("exact", options=None, of=("same", "raw")),
        # Outputs of one size each, for the choice of a default.
        *(Layout(f"same-{size}m", _target(size)) for size in (5, 8, 16, 32, 64, 128)),
    )
}


def chosen(names: str) -> list[Layout]:
    """The layouts that a comma-separated list names, ``raw`` always first.

    Raises:
        InvalidInput: one is unknown.
    """
    wanted = [name for name in names.split(",") if name]
    for name in wanted:
        if name not in LAYOUTS:
            raise InvalidInput("--layouts", name, f"some of {', '.join(LAYOUTS)}")
    return [LAYOUTS[name] for name in dict.fromkeys(["raw", *wanted])]


def to_make(layouts: Sequence[Layout]) -> list[Layout]:
    """Those that a run makes, with what others are of."""
    named = [name for one in layouts for name in (one.of or (one.name,))]
    return [LAYOUTS[name] for name in dict.fromkeys(named) if LAYOUTS[name].options is not None]
