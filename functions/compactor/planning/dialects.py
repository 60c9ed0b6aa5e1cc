"""Whether the CSV sources of a data set have a header: decided once, and pinned in the state.

A data set is what the wildcards and levels above the dates name: all partitions whose records are
of one kind. The first worker that meets a shape (delimiter and number of columns) of it looks at
sources from all over it; where these decide, the decision is created in the state, and every later
worker and run takes it. Where they do not, nothing is pinned, and the sources wait.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import TypeVar

import msgspec

from compactor import layout
from compactor.decoding import decoder, require_version
from compactor.encoding.codecs import beginning
from compactor.errors import AlreadyExists, IntegrityError, SourceChanged, UnreadableSource
from compactor.formats.csv_evidence import (
    CsvDialect,
    Decision,
    SampledSource,
    Undecided,
    decide,
    sampled,
)
from compactor.formats.lines import BOM
from compactor.model import SourceObject
from compactor.planning.key_rules import KeyRules
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings

_T = TypeVar("_T")
_VERSION = 1
_SAMPLE_BYTES = 64 << 10
# Sources of so many bytes are read whole, several at a time.
_SMALL_BYTES = 128 << 10
# Prefixes looked at on each level, and sources in each of them.
_PREFIXES = 4
_SOURCES = 12
_MOST_LEVELS = 8
# Keys listed of each prefix.
_LISTED = 1_000
_DATE = re.compile(r"(?:[A-Za-z_]\w*=)?\d[\dT:_-]*")
_NAMED = re.compile(r"\.[ct]sv(?:\.gz|\.gzip|\.zst|\.zstd)?\Z", re.IGNORECASE)


class PinnedDialect(msgspec.Struct):
    """A decision as it is stored: :class:`CsvDialect`, and the path of its data set."""

    data_set: str
    delimiter: str
    columns: int
    header: bytes
    types: list[str]
    line_end: str
    words: list[list[str]]
    version: int = _VERSION

    def __post_init__(self) -> None:
        if len(self.types) != self.columns or len(self.words) not in (0, self.columns):
            raise ValueError("it has not one type for each column")

    @classmethod
    def of(cls, found: CsvDialect, data_set: str) -> PinnedDialect:
        """To be stored."""
        return cls(
            data_set,
            found.delimiter.decode(),
            found.columns,
            found.header,
            list(found.types),
            found.line_end.decode(),
            [sorted(one) for one in found.words],
        )

    @property
    def dialect(self) -> CsvDialect:
        """The decision."""
        return CsvDialect(
            self.delimiter.encode(),
            self.columns,
            self.header,
            tuple(self.types),
            self.line_end.encode(),
            tuple(map(frozenset, self.words)),
        )


_decode = decoder(PinnedDialect)


class Dialects:
    """The decisions of every data set that a run meets; called as :data:`Decide` says.

    Args:
        settings: of the run.
        store: where sources and state are.
        pins: keep decisions in the state; otherwise they last as long as this object.
        creates: pin what is not pinned yet.
        samples: look at sources where nothing is pinned; otherwise that is undecided.

    Attributes:
        created: decisions that were pinned here.
    """

    def __init__(
        self,
        settings: Settings,
        store: ObjectStore,
        *,
        pins: bool = True,
        creates: bool = True,
        samples: bool = True,
    ) -> None:
        self.created = 0
        self._settings = settings
        self._store = store
        self._pins = pins
        self._creates = pins and creates
        self._samples = samples
        self._decided: dict[tuple[str, bytes, int], Decision] = {}
        self._pinned: dict[str, dict[str, str]] = {}
        self._heads: dict[str, list[tuple[bytes, bool]]] = {}
        # Several threads look at sources of one scan.
        self._lock = threading.Lock()

    def __call__(self, key: str, delimiter: bytes, columns: int) -> Decision:
        """What is decided of the sources of this shape in the data set of a key.

        Raises:
            IntegrityError: what is pinned cannot be read.
            TransientStoreError: the store does not answer.
        """
        data_set = data_set_of(self._settings, key)
        shape = data_set, delimiter, columns
        with self._lock:
            found = self._decided.get(shape)
            if found is None:
                found = self._decided[shape] = self._decision(key, *shape)
        return found

    def version(self, key: str) -> str:
        """Names the decisions that are pinned for the data set of a key; empty for none.

        Sources that wait for a decision are tried again when this is another one.
        """
        names = sorted(self._names(data_set_of(self._settings, key)))
        if not names:
            return ""
        return hashlib.blake2b("\0".join(names).encode(), digest_size=4).hexdigest()

    def _decision(self, key: str, data_set: str, delimiter: bytes, columns: int) -> Decision:
        name = f"{delimiter.hex()}-{columns}.json"
        pinned = self._names(data_set).get(name)
        if pinned is not None:
            return self._load(pinned)
        heads = self._sample(data_set, key) if self._samples else []
        looked = (sampled(head, delimiter, columns, complete=whole) for head, whole in heads)
        sources: list[SampledSource] = [one for one in looked if one is not None]
        found = decide(sources, delimiter, columns)
        if isinstance(found, Undecided) or not self._creates:
            return found
        return self._pin(data_set, name, found)

    def _names(self, data_set: str) -> dict[str, str]:
        """The pins of a data set: keys by name."""
        if not self._pins:
            return {}
        found = self._pinned.get(data_set)
        if found is None:
            bucket, prefix = layout.csv_dialects_prefix(self._settings, data_set)
            listed = (one.key for page in self._store.list_objects(bucket, prefix) for one in page)
            found = self._pinned[data_set] = {key.rpartition("/")[2]: key for key in listed}
        return found

    def _load(self, key: str) -> CsvDialect:
        bucket = self._settings.state.bucket
        body = self._store.get(bucket, key)
        require_version(f"s3://{bucket}/{key}", body, _VERSION)
        try:
            return _decode(body).dialect
        except (msgspec.MsgspecError, ValueError) as error:
            raise IntegrityError(f"s3://{bucket}/{key} is damaged: {error}") from error

    def _pin(self, data_set: str, name: str, found: CsvDialect) -> CsvDialect:
        bucket, prefix = layout.csv_dialects_prefix(self._settings, data_set)
        key = prefix + name
        body = msgspec.json.encode(PinnedDialect.of(found, data_set))
        try:
            self._store.create(bucket, key, body, content_type="application/json")
            self.created += 1
        except AlreadyExists:
            # Another worker decided first, perhaps otherwise: its decision counts.
            found = self._load(key)
        self._names(data_set)[name] = key
        return found

    def _sample(self, data_set: str, key: str) -> list[tuple[bytes, bool]]:
        """Beginnings of sources from all over a data set, and of those beside a key."""
        heads = self._heads.get(data_set)
        if heads is None:
            sources = {one.key: one for one in self._sources(data_set, key)}
            ordered = [sources[key] for key in sorted(sources)]
            small = [one for one in ordered if one.size <= _SMALL_BYTES]
            # What a store streams is as large to it.
            bodies = (
                (body.content, True) if body.chunks is None else self._large(body.source)
                for body in self._store.read_sources(small)
            )
            large = (self._large(one) for one in ordered if one.size > _SMALL_BYTES)
            heads = [
                head
                for stored, complete in chain(bodies, large)
                if stored and (head := _head(stored, complete=complete)) is not None
            ]
            # Of one data set at a time: a worker meets them one after the other.
            self._heads = {data_set: heads}
        return heads

    def _sources(self, data_set: str, key: str) -> Iterator[SourceObject]:
        root = self._settings.source.root
        is_csv = self._filter()
        pages = self._store.list_objects(root.bucket, key[: key.rfind("/") + 1])
        beside = islice(chain.from_iterable(pages), _LISTED)
        yield from _spread([one for one in beside if is_csv(one)], _SOURCES)
        level = [root.prefix + data_set]
        for _ in range(_MOST_LEVELS):
            below: list[str] = []
            for prefix in level:
                objects, prefixes = self._level(prefix)
                yield from _spread([one for one in objects if is_csv(one)], _SOURCES)
                below += prefixes
            level = _spread(below, _PREFIXES)
            if not level:
                return

    def _level(self, prefix: str) -> tuple[list[SourceObject], list[str]]:
        """Objects and prefixes directly below a prefix, about a thousand of both."""
        objects: list[SourceObject] = []
        prefixes: list[str] = []
        for page in self._store.list_level(self._settings.source.root.bucket, prefix):
            objects += page.objects
            prefixes += page.prefixes
            if len(objects) + len(prefixes) >= _LISTED:
                break
        return objects, prefixes

    def _filter(self) -> Callable[[SourceObject], bool]:
        settings = self._settings
        reason_to_skip = KeyRules(settings, layout.partition_at(settings, ""))
        named = settings.format == "auto"

        def is_csv(source: SourceObject) -> bool:
            if not source.size or (named and not _NAMED.search(source.key)):
                return False
            return reason_to_skip(source) is None

        return is_csv

    def _large(self, source: SourceObject) -> tuple[bytes | None, bool]:
        try:
            return self._store.read_range(source, 0, _SAMPLE_BYTES), False
        except (SourceChanged, UnreadableSource):
            return None, False


def _head(stored: bytes, *, complete: bool) -> tuple[bytes, bool] | None:
    """The first plain bytes of a source, and whether they are all; None for what is damaged."""
    try:
        head, whole = beginning(stored, complete=complete)
    except UnreadableSource:
        return None
    return head[:_SAMPLE_BYTES].removeprefix(BOM), whole and len(head) <= _SAMPLE_BYTES


def data_set_of(settings: Settings, key: str) -> str:
    """The path of the data set of a source: the levels of its partition, above those of dates."""
    levels = len(settings.source.pattern)
    if settings.date_format is None:
        levels += settings.depth or 0
    segments = key[len(settings.source.root.prefix) :].split("/")[:-1][:levels]
    while segments and _DATE.fullmatch(segments[-1]):
        segments.pop()
    return "".join(f"{segment}/" for segment in segments)


def _spread(found: Sequence[_T], most: int) -> list[_T]:
    """At most so many, evenly spread, the first and the last among them."""
    if len(found) <= most:
        return list(found)
    return [found[n * (len(found) - 1) // (most - 1)] for n in range(most)]
