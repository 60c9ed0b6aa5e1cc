"""Lists what is below a prefix, and sums it up by directory, extension and storage class."""

from __future__ import annotations

import math
import random
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable
from typing import NamedTuple

from compactor import model
from compactor.encoding import output_encoding
from compactor.model import SkipReason, SourceObject
from compactor.money import SMALL_BYTES
from compactor.planning.key_rules import KeyRules
from compactor.planning.markers import owner_of, roots_in
from compactor.planning.surroundings import Surroundings
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings
from compactor.sizes import GIB, MIB

_KIB = 1 << 10
#: Lower bounds of the histogram's classes, in bytes. Empty objects are a class of their own.
BOUNDS = (0, 1, 4 * _KIB, 16 * _KIB, 64 * _KIB, SMALL_BYTES, MIB, 8 * MIB, 64 * MIB, GIB)
#: Of directories, by extension and storage class, which take 1 KB each; of shapes of keys; of keys
#: of each shape that are kept for reading.
MOST_PLACES, _MOST_SHAPES, _MOST_KEYS = 200_000, 256, 64
# Outputs of earlier runs.
_OWN = re.compile(r"(?:.*/)?compacted-[0-9a-f]{32}(?:\.[^/]*)?", re.DOTALL)
_LOG = re.compile(r"\.log(?![A-Za-z0-9])[^/]*\Z", re.IGNORECASE)
_EXTENSION = re.compile(r"(?:\.[A-Za-z][A-Za-z0-9]{0,15}){1,2}\Z")
# Words with digits, such as dates, numbers and UUIDs, and what else globs do not take literally.
_VARIABLE = re.compile(r"(?:(?:(?<![A-Za-z])[A-Za-z]{0,2})?[0-9*?\[][^-_.]*[-_]?)+")


class Place(NamedTuple):
    """Where objects are that are counted together; ``name`` is a glob such as ``*.csv.gz``."""

    directory: str
    name: str
    storage_class: str


class Counts:
    """Numbers and bytes of objects.

    Attributes:
        small, small_bytes: below 128 KiB.
        large, large_bytes: of at least half an output, so that each is copied alone.
    """

    __slots__ = ("bytes", "large", "large_bytes", "objects", "small", "small_bytes")

    def __init__(self) -> None:
        self.objects = self.bytes = self.small = self.small_bytes = 0
        self.large = self.large_bytes = 0

    def count(self, size: int, target: float = math.inf) -> None:
        """Count an object; ``target`` is the size of its output."""
        self.objects += 1
        self.bytes += size
        self.small += size < SMALL_BYTES
        self.small_bytes += size if size < SMALL_BYTES else 0
        self.large += 2 * size >= target
        self.large_bytes += size if 2 * size >= target else 0

    def add(self, counts: Counts, share: float = 1.0) -> None:
        """Add a share of other objects."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + round(share * getattr(counts, name)))


class Listed:
    """What is below a prefix.

    Attributes:
        root: the prefix.
        every: all objects; by_size: by :data:`BOUNDS`; by_class: by storage class.
        first, last: times of the first and the last arrival, UNIX seconds.
        recent: number of objects that arrived within ``open_partition_seconds``.
        skips: what no run takes, whatever the layout, by reason.
        places: counts of all others that can be read.
        shapes: some keys by the shape of their directory and name, for reading.
        cut_at: the last key that was listed; empty if these are all.
    """

    def __init__(self, settings: Settings, now: float, roots: dict[str, SkipReason]) -> None:
        self.root = settings.source.root
        self.every = Counts()
        self.by_size, self.by_class = [Counts() for _ in BOUNDS], defaultdict[str, Counts](Counts)
        self.first = self.last = 0.0
        self.recent = 0
        self.skips: dict[SkipReason, model.Skipped] = {}
        self.places = defaultdict[Place, Counts](Counts)
        self.shapes: dict[tuple[str, str], list[SourceObject]] = {}
        self.cut_at = ""
        self._roots = roots
        self._skipped_by_key = KeyRules(settings, roots)
        self._settled_before = now - settings.settle_seconds
        self._closed_before = now - settings.open_partition_seconds
        self._of_shape = defaultdict[tuple[str, str], int](int)
        # The same sample for the same listing.
        self._random = random.Random(17)  # noqa: S311 - a sample, the same each time

    def add(self, source: SourceObject) -> None:
        """Count the next object."""
        size, arrived = source.size, source.last_modified
        by_size = self.by_size[bisect_right(BOUNDS, size) - 1]
        for counts in (self.every, by_size, self.by_class[source.storage_class]):
            counts.count(size)
        self.first, self.last = min(self.first or arrived, arrived), max(self.last, arrived)
        self.recent += arrived > self._closed_before
        reason = self._skipped(source)
        if reason is not None:
            self._skip(reason, 1, size, source.key)
        if reason in (None, SkipReason.TOO_YOUNG):
            self._place(source)

    def _skipped(self, source: SourceObject) -> SkipReason | None:
        if _OWN.fullmatch(source.key):
            return SkipReason.OWN_STATE
        if reason := self._skipped_by_key(source):
            return reason
        if not source.size:
            return SkipReason.EMPTY
        if source.storage_class in model.ARCHIVED_CLASSES:
            return SkipReason.ARCHIVED
        return SkipReason.TOO_YOUNG if source.last_modified > self._settled_before else None

    def _skip(self, reason: SkipReason, count: int, size: int, example: str) -> None:
        before = self.skips.get(reason, model.Skipped(0, 0, ()))
        examples = (*before.examples, example)[: model.SHOWN_EXAMPLES]
        self.skips[reason] = model.Skipped(before.objects + count, before.bytes + size, examples)

    def _place(self, source: SourceObject) -> None:
        directory, name = split_key(source.key)
        shape = directory_shape(directory[len(self.root.prefix) :]), name
        if shape not in self._of_shape and len(self._of_shape) >= _MOST_SHAPES:
            name, shape = "*", ("", "*")
        place = Place(directory, name, source.storage_class)
        self.places[place].count(source.size, target_of(name))
        self._of_shape[shape] += 1
        samples = self.shapes.setdefault(shape, [])
        if len(samples) < _MOST_KEYS:
            samples.append(source)
        elif (at := int(self._random.random() * self._of_shape[shape])) < _MOST_KEYS:
            samples[at] = source

    def leave_tables(self) -> None:
        """Skip objects of tables and registries whose marker came after them."""
        for place in [*self.places] if self._roots else ():
            owner = owner_of(place.directory, self._roots)
            if owner is not None:
                counts = self.places.pop(place)
                self._skip(owner, counts.objects, counts.bytes, place.directory)


def list_below(
    settings: Settings, store: ObjectStore, now: float, most: int, on_objects: Callable[[int], None]
) -> Listed:
    """List what is below the source, in the order of keys.

    Args:
        settings: with a source without wildcards; they decide which keys are skipped.
        store: where the objects are.
        now: UNIX seconds.
        most: maximum number of objects to list, at least 1.
        on_objects: called with the number of objects listed so far.

    Raises:
        InvalidInput: there is no such bucket, or listing it is not permitted.
        TransientStoreError: the store did not answer.
    """
    root = settings.source.root
    surroundings = Surroundings(store, root.bucket)
    owner = surroundings.above(root.prefix)
    roots = {} if owner is None else {root.prefix: owner}
    listed, last_key = Listed(settings, now, roots), ""
    for page in store.list_objects(root.bucket, root.prefix):
        room = most - listed.every.objects if len(listed.places) < MOST_PLACES else 0
        roots |= roots_in(page[:room])
        for source in page[:room]:
            listed.add(source)
            last_key = source.key
        on_objects(listed.every.objects)
        if len(page) > room:
            listed.cut_at = last_key
            partition = model.Partition(root.bucket, root.prefix, "")
            cut = model.Listing(partition, (), complete=False, last_key=last_key)
            roots |= surroundings.around(cut, "")
            break
    listed.leave_tables()
    return listed


def split_key(key: str) -> tuple[str, str]:
    """Return a key's directory, and its name as a glob such as ``*.csv.gz``.

    Of a name without an extension, words with digits become ``*``.
    """
    at = key.rfind("/") + 1
    directory, name = key[:at], key[at:]
    if _LOG.search(name):
        return directory, "*.log*"
    extension = _EXTENSION.search(name)
    name = extension[0].lower() if extension else _VARIABLE.sub("*", name)
    return directory, f"*{name}".replace("**", "*")


def directory_shape(directory: str) -> str:
    """Return a glob of a directory: levels with digits or values become ``*``."""
    levels = ("*" if re.search(r"[0-9=*?\[]", one) else one for one in directory.split("/")[:-1])
    return re.sub(r"(?:\*/)+\Z", "", "".join(f"{level}/" for level in levels))


def target_of(name: str) -> int:
    """Return the default size of outputs of objects with this name, in bytes."""
    if output_encoding.packing_class(name).compression is model.Compression.NONE:
        return output_encoding.PLAIN_TARGET_BYTES
    return output_encoding.COMPRESSED_TARGET_BYTES
