"""A few objects looked at: which formats and compressions there are, as runs find them out."""

from __future__ import annotations

import random
import re
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

#: How many objects are looked at, at most; each with one GET of its first bytes.
MOST_SAMPLED = 64
#: Of each at most so many bytes.
RANGE_BYTES = 256 << 10
# Beyond so many kinds of names, the rest is one.
_MOST_KINDS = 32
_READERS = 8
_PARQUET = b"PAR1"
_SEED = 17
_EXTENSION = re.compile(r"(?:\.[A-Za-z][A-Za-z0-9]{0,15}){1,2}\Z")


@dataclass(frozen=True, slots=True)
class Looked:
    """One object of the sample.

    Attributes:
        format: None where it has no content, or where it is refused.
        refused: why a run would leave it alone, as far as its first bytes show; a
            :class:`compactor.model.QuarantineReason`, or ``changed``.
        stored_bytes, plain_bytes: of what was read, and what that is decompressed.
    """

    source: SourceObject
    compression: Compression = Compression.NONE
    format: Format | None = None
    refused: str = ""
    detail: str = ""
    stored_bytes: int = 0
    plain_bytes: int = 0

    @property
    def kind(self) -> str:
        """What it is to a person."""
        if self.refused:
            return f"left alone: {self.refused}"
        compression = "" if self.compression is Compression.NONE else f", {self.compression}"
        return f"{self.format or 'no content'}{compression}"


class Chances:
    """Some objects of each kind of name, each with the same chance; the same for the same listing.

    Memory depends on the types, of which there are few.
    """

    def __init__(self) -> None:
        self._random = random.Random(_SEED)  # noqa: S311 - no secret, but the same each time
        self._chosen: dict[str, list[SourceObject]] = {}
        self._seen: dict[str, int] = {}

    def add(self, one: SourceObject) -> None:
        """One more that could be read."""
        kind = kind_of(one.key)
        if kind not in self._seen and len(self._seen) >= _MOST_KINDS:
            kind = ""
        seen = self._seen[kind] = self._seen.get(kind, 0) + 1
        chosen = self._chosen.setdefault(kind, [])
        if len(chosen) < MOST_SAMPLED:
            chosen.append(one)
        elif (at := int(self._random.random() * seen)) < MOST_SAMPLED:
            chosen[at] = one

    def chosen(self) -> list[SourceObject]:
        """At most 64, of each kind as its share is but at least one; in the order of keys."""
        places = shares(self._seen, MOST_SAMPLED)
        found = [one for kind, many in places.items() for one in self._chosen[kind][:many]]
        return sorted(found, key=lambda one: one.key)


def kind_of(key: str) -> str:
    """The end of its name, such as ``.json.gz``."""
    match = _EXTENSION.search(key, key.rfind("/") + 1)
    return match[0].lower() if match else ""


def shares(counts: Mapping[str, int], places: int) -> dict[str, int]:
    """Divide places by counts: one each, the rest in proportion; never more in all."""
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
    """The formats of these, each by one ranged GET.

    Args:
        sources: at most 64, none of them empty.
        store: where they are.
        settings: what decides formats.
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
        Looked(each.source, each.compression, refused=why.reason, detail=why.detail)
        if (why := left.get(each.source.identity))
        else each
        for each in found
    ]


def _look(
    source: SourceObject, store: ObjectStore, detect: Detector, shared: SharedLines
) -> Looked:
    compression = Compression.NONE
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
        return Looked(source, compression, refused=reason, detail=error.detail)
    format = found.format if found is not None else None
    if found is not None and found.compared:
        shared.see(source, plain)
    return Looked(source, compression, format, stored_bytes=len(stored), plain_bytes=len(plain))
