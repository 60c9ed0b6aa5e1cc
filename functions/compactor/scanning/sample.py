"""Detects formats and compressions of a few objects, in the same way as runs do."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import floor

from compactor.encoding.codecs import beginning, detect_compression
from compactor.errors import SourceChanged, UnreadableSource
from compactor.model import Compression, Format, QuarantineReason, SourceObject
from compactor.outputs.detection import Detector, detector
from compactor.outputs.neighbours import SharedLines
from compactor.planning.dialects import Dialects
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings

#: Maximum number of objects in the sample, each with one GET of its first bytes.
MOST_SAMPLED = 64
#: Maximum number of bytes read of each.
RANGE_BYTES = 256 << 10
# Objects with further file extensions are treated as one kind.
_MOST_KINDS = 32
_READERS = 8
#: Settings named in the detail of an object that a run leaves alone.
UNKNOWN_HEADER, UNKNOWN_TEXT = "set csv_header", 'set format: "text"'
_REMEDY = re.compile(r'set (format|encoding)(?: to|:) "(\w+)"')
_PARQUET = b"PAR1"
_SEED = 17
_EXTENSION = re.compile(r"(?:\.[A-Za-z][A-Za-z0-9]{0,15}){1,2}\Z")


@dataclass(frozen=True, slots=True)
class Looked:
    """One object of the sample.

    Attributes:
        format: None if it has no content, or is refused.
        refused: why a run would leave it, as far as its first bytes show: a
            :class:`compactor.model.QuarantineReason`, or ``changed``.
        first_line: of an object that is, or may be, refused.
        stored_bytes, plain_bytes: number of bytes read, and of these decompressed.
    """

    source: SourceObject
    compression: Compression = Compression.NONE
    format: Format | None = None
    refused: str = ""
    detail: str = ""
    first_line: bytes = b""
    stored_bytes: int = 0
    plain_bytes: int = 0

    @property
    def kind(self) -> str:
        """Its format and compression, or why it is left, for display."""
        if self.refused:
            return f"left alone: {self.refused}"
        compression = "" if self.compression is Compression.NONE else f", {self.compression}"
        return f"{self.format or 'no content'}{compression}"


class Chances:
    """A uniform random sample of objects of each kind of name, the same for the same listing.

    Memory depends on the number of kinds, which is small.
    """

    def __init__(self) -> None:
        self._random = random.Random(_SEED)  # noqa: S311 - no secret, but the same each time
        self._chosen: dict[str, list[SourceObject]] = {}
        self._seen: dict[str, int] = {}

    def kind(self, key: str) -> str:
        """Return the kind that an object of this key counts as."""
        kind = kind_of(key)
        return kind if kind in self._seen or len(self._seen) < _MOST_KINDS else ""

    def add(self, one: SourceObject) -> None:
        """Add a readable object."""
        kind = self.kind(one.key)
        seen = self._seen[kind] = self._seen.get(kind, 0) + 1
        chosen = self._chosen.setdefault(kind, [])
        if len(chosen) < MOST_SAMPLED:
            chosen.append(one)
        elif (at := int(self._random.random() * seen)) < MOST_SAMPLED:
            chosen[at] = one

    def chosen(self) -> list[SourceObject]:
        """Return at most 64 objects sorted by key: of each kind in proportion, but at least one."""
        places = shares(self._seen, MOST_SAMPLED)
        found = [one for kind, many in places.items() for one in self._chosen[kind][:many]]
        return sorted(found, key=lambda one: one.key)


def taken_shares(looked: Sequence[Looked], kind: Callable[[str], str]) -> dict[str, float]:
    """Return the share of the sampled objects of each kind that a run would not leave alone."""
    counts = Counter(kind(one.source.key) for one in looked)
    taken = Counter(kind(one.source.key) for one in looked if not one.refused)
    return {name: taken[name] / many for name, many in counts.items()}


def required_by(looked: Sequence[Looked]) -> dict[str, str]:
    """Return the fields without which a run would leave sampled objects alone.

    They decide what no object shows for certain, so the caller must say what they decide.
    """
    formats = {one.format for one in looked if one.format is not None}
    if formats == {Format.PARQUET} and not any(one.refused for one in looked):
        return {"format": "parquet"}
    named = Counter(one for each in looked for one in _REMEDY.findall(each.detail))
    wanted: dict[str, str] = {}
    for (name, value), _ in named.most_common():
        # A format is that of all sources, also of those that were recognised.
        if name != "format" or not formats:
            wanted.setdefault(name, value)
    firsts = [one.first_line for one in looked if UNKNOWN_HEADER in one.detail]
    if firsts and "format" not in wanted and not formats & {Format.CSV, Format.TSV}:
        wanted["csv_header"] = "present" if len(set(firsts)) == 1 < len(firsts) else "absent"
    return wanted


def kind_of(key: str) -> str:
    """Return the extension of a key's name, such as ``.json.gz``."""
    match = _EXTENSION.search(key, key.rfind("/") + 1)
    return match[0].lower() if match else ""


def shares(counts: Mapping[str, int], places: int) -> dict[str, int]:
    """Divide places by counts: one each, the rest in proportion; never more than ``places``."""
    kinds = sorted(counts, key=lambda kind: (-counts[kind], kind))[:places]
    left, total = places - len(kinds), sum(counts[kind] for kind in kinds)
    return {
        kind: min(counts[kind], 1 + floor(left * counts[kind] / max(1, total))) for kind in kinds
    }


def look(
    sources: Sequence[SourceObject],
    store: ObjectStore,
    settings: Settings,
    on_one: Callable[[], None] = lambda: None,
) -> list[Looked]:
    """Detect the formats of these objects, with one ranged GET each.

    Args:
        sources: at most 64, none of them empty.
        store: where they are.
        settings: they affect detection.
        on_one: called after each.

    Raises:
        TransientStoreError: the store did not answer.
    """
    detect = detector(settings, Dialects(settings, store, pins=False))
    shared = SharedLines()

    def one(source: SourceObject) -> Looked:
        found = _look(source, store, detect, shared)
        on_one()
        return found

    with ThreadPoolExecutor(_READERS, thread_name_prefix="sample") as pool:
        found = list(pool.map(one, sources[:MOST_SAMPLED]))
    left = {one.source.identity: one for one in shared.left_alone()}
    return [
        Looked(each.source, each.compression, None, why.reason, why.detail, each.first_line)
        if (why := left.get(each.source.identity))
        else each
        for each in found
    ]


def _look(
    source: SourceObject, store: ObjectStore, detect: Detector, shared: SharedLines
) -> Looked:
    compression, plain = Compression.NONE, b""
    try:
        stored = store.read_range(source, 0, min(source.size, RANGE_BYTES))
        compression = detect_compression(stored)
        if stored.startswith(_PARQUET):
            return Looked(source, format=Format.PARQUET, stored_bytes=len(stored))
        complete = len(stored) == source.size
        plain, whole = beginning(stored, complete=complete)
        found = detect(plain, source.key, whole)
    except SourceChanged:
        return Looked(source, compression, refused="changed", detail="it is not what was listed")
    except UnreadableSource as error:
        reason = QuarantineReason(error.reason)
        first = plain.partition(b"\n")[0]
        return Looked(source, compression, None, reason, error.detail, first)
    format = found.format if found is not None else None
    first = b""
    if found is not None and found.compared:
        shared.see(source, plain)
        first = plain.partition(b"\n")[0]
    return Looked(source, compression, format, "", "", first, len(stored), len(plain))
