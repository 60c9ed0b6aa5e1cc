"""Decides whether the CSV sources of a data set have a header: once, pinned in the state.

A data set is named by the wildcards and levels above the dates: all partitions with one kind of
record. The first worker that meets a new shape (delimiter and number of columns) samples sources
from the whole data set. If they settle the question, the decision is created in the state, and
every later worker and run uses it. If they do not, nothing is pinned, and the sources wait.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import TypeAlias, TypeVar

import msgspec

from compactor import layout
from compactor.decoding import decoder, require_version
from compactor.encoding.codecs import beginning
from compactor.errors import AlreadyExists, IntegrityError, SourceChanged, UnreadableSource
from compactor.formats.csv_evidence import (
    FEWEST_SOURCES,
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
#: A source's first plain bytes, and whether they are all of its bytes.
_Head: TypeAlias = tuple[bytes, bool]
_IsCsv: TypeAlias = Callable[[SourceObject], bool]
_VERSION = 1
_SAMPLE_BYTES = 64 << 10
# Sources up to this size are read whole, several concurrently.
_SMALL_BYTES = 128 << 10
# Prefixes sampled on each level, and sources in each of them.
_PREFIXES = 4
_SOURCES = 12
_MOST_LEVELS = 8
# Keys listed per prefix.
_LISTED = 1_000
_DATE = re.compile(r"(?:[A-Za-z_]\w*=)?\d[\dT:_-]*")
_NAMED = re.compile(r"\.[ct]sv(?:\.gz|\.gzip|\.zst|\.zstd)?\Z", re.IGNORECASE)


class PinnedDialect(msgspec.Struct):
    """A decision as stored: :class:`CsvDialect`, and the path of its data set."""

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
        """Convert a decision to its stored form."""
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
        """The stored decision."""
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
    """The decisions for every data set that a run meets; callable as :data:`Decide`.

    Args:
        settings: the run's settings.
        store: the store that holds sources and state.
        pins: keep decisions in the state; otherwise they last as long as this object.
        creates: pin decisions that are not pinned yet.
        samples: sample sources if nothing is pinned; otherwise the result is undecided.

    Attributes:
        created: number of decisions pinned by this object.
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
        self._heads: dict[str, dict[str, _Head]] = {}
        # Several threads may sample for one scan.
        self._lock = threading.Lock()

    def __call__(self, key: str, delimiter: bytes, columns: int) -> Decision:
        """Return the decision for sources of this shape in the data set of a key.

        Raises:
            IntegrityError: the pinned decision cannot be read.
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
        """Return a digest of the decisions pinned for the data set of a key; empty for none.

        Sources that wait for a decision are tried again when the digest changes.
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
        found = decide(self._samples_of(key, data_set, delimiter, columns), delimiter, columns)
        if isinstance(found, Undecided) or not self._creates:
            return found
        return self._pin(data_set, name, found)

    def _samples_of(
        self, key: str, data_set: str, delimiter: bytes, columns: int
    ) -> list[SampledSource]:
        """Return the sampled sources of a shape; if they are few, also those that follow a key."""
        if not self._samples:
            return []
        heads = self._sample(data_set, key)
        shaped = _of_shape(heads, delimiter, columns)
        if len(shaped) >= FEWEST_SOURCES:
            return shaped
        # A shape that begins late in a large partition is in no sample of its first keys.
        found = self._beside(key, self._filter(), start_after=key)
        following = self._read(one for one in found if one.key not in heads)
        return shaped + _of_shape(following, delimiter, columns)

    def _names(self, data_set: str) -> dict[str, str]:
        """Return the keys of a data set's pins by name."""
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
            # Another worker pinned a decision first, perhaps a different one: its decision applies.
            found = self._load(key)
        self._names(data_set)[name] = key
        return found

    def _sample(self, data_set: str, key: str) -> Mapping[str, _Head]:
        """Return the beginnings of sources from the whole data set, and of those next to a key."""
        heads = self._heads.get(data_set)
        if heads is None:
            heads = self._read(self._sources(data_set, key))
            # Only one data set is kept: a worker processes them one after another.
            self._heads = {data_set: heads}
        return heads

    def _read(self, found: Iterable[SourceObject]) -> dict[str, _Head]:
        """Return the beginnings of sources by key, without those that cannot be read."""
        sources = {one.key: one for one in found}
        ordered = [sources[key] for key in sorted(sources)]
        small = [one for one in ordered if one.size <= _SMALL_BYTES]
        # A source that the store streams is treated as large.
        bodies = (
            (body.source.key, body.content, True)
            if body.chunks is None
            else self._large(body.source)
            for body in self._store.read_sources(small)
        )
        large = (self._large(one) for one in ordered if one.size > _SMALL_BYTES)
        return {
            key: head
            for key, stored, complete in chain(bodies, large)
            if stored and (head := _head(stored, complete=complete)) is not None
        }

    def _beside(self, key: str, is_csv: _IsCsv, *, start_after: str = "") -> list[SourceObject]:
        """Return sources spread over the first thousand keys of a key's partition."""
        bucket, prefix = self._settings.source.root.bucket, key[: key.rfind("/") + 1]
        pages = self._store.list_objects(bucket, prefix, start_after=start_after)
        found = islice(chain.from_iterable(pages), _LISTED)
        return _spread([one for one in found if is_csv(one)], _SOURCES)

    def _sources(self, data_set: str, key: str) -> Iterator[SourceObject]:
        root = self._settings.source.root
        is_csv = self._filter()
        yield from self._beside(key, is_csv)
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
        """Return objects and prefixes directly below a prefix, about a thousand in all."""
        objects: list[SourceObject] = []
        prefixes: list[str] = []
        for page in self._store.list_level(self._settings.source.root.bucket, prefix):
            objects += page.objects
            prefixes += page.prefixes
            if len(objects) + len(prefixes) >= _LISTED:
                break
        return objects, prefixes

    def _filter(self) -> _IsCsv:
        settings = self._settings
        reason_to_skip = KeyRules(settings)
        named = settings.format == "auto"

        def is_csv(source: SourceObject) -> bool:
            if not source.size or (named and not _NAMED.search(source.key)):
                return False
            return reason_to_skip(source) is None

        return is_csv

    def _large(self, source: SourceObject) -> tuple[str, bytes | None, bool]:
        try:
            return source.key, self._store.read_range(source, 0, _SAMPLE_BYTES), False
        except (SourceChanged, UnreadableSource):
            return source.key, None, False


def _of_shape(heads: Mapping[str, _Head], delimiter: bytes, columns: int) -> list[SampledSource]:
    found = (sampled(head, delimiter, columns, complete=whole) for head, whole in heads.values())
    return [one for one in found if one is not None]


def _head(stored: bytes, *, complete: bool) -> _Head | None:
    """Return a source's first plain bytes, and whether they are all; None if it is damaged."""
    try:
        head, whole = beginning(stored, complete=complete)
    except UnreadableSource:
        return None
    return head[:_SAMPLE_BYTES].removeprefix(BOM), whole and len(head) <= _SAMPLE_BYTES


def data_set_of(settings: Settings, key: str) -> str:
    """Return the path of a source's data set: its partition's levels above those of dates."""
    levels = len(settings.source.pattern)
    if settings.date_format is None:
        levels += settings.depth or 0
    segments = key[len(settings.source.root.prefix) :].split("/")[:-1][:levels]
    while segments and _DATE.fullmatch(segments[-1]):
        segments.pop()
    return "".join(f"{segment}/" for segment in segments)


def _spread(found: Sequence[_T], most: int) -> list[_T]:
    """Return at most ``most`` elements, evenly spread, including the first and the last."""
    if len(found) <= most:
        return list(found)
    return [found[n * (len(found) - 1) // (most - 1)] for n in range(most)]
