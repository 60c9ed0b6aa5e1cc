"""The results of discovery: one work item per partition, and the work lists on S3."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

import msgspec

from compactor.decoding import decoder, numbered, require_version
from compactor.errors import InvalidInput, ObjectMissing
from compactor.layout import run_key
from compactor.log.resting import NONE_AT_REST, Resting
from compactor.model import Partition, Skipped
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings

ITEMS_NAME = "items.json"
OVERSIZED_NAME = "oversized.json"
DISCOVERY_NAME = "discovery.json"
SETTINGS_NAME = "settings.json"
#: Format version of everything that a run writes below its own prefix; stored in discovery.json.
RUN_VERSION = 1

# Fields of the errors that stores raise if a bucket cannot be used. Other errors are passed on.
_ABOUT_A_BUCKET = frozenset({"bucket", "permission", "region"})


@dataclass(frozen=True, slots=True)
class WorkItem:
    """One partition to be compacted.

    Attributes:
        path: the partition's path below the source root.
        bucket: source bucket.
        prefix: source prefix.
        objects: objects counted. In a partition with more objects than one worker takes, only
            those without a commit; in an oversized one, those counted until that was known.
        bytes: their listed bytes.
    """

    path: str
    bucket: str
    prefix: str
    objects: int
    bytes: int

    @property
    def partition(self) -> Partition:
        """The partition to be compacted."""
        return Partition(bucket=self.bucket, prefix=self.prefix, path=self.path)

    def to_dict(self) -> dict[str, Any]:
        """Return the item as an element of the work list."""
        return asdict(self)

    @classmethod
    def from_dict(cls, given: object) -> WorkItem:
        """Read an element of the work list. Unknown fields are rejected.

        Raises:
            InvalidInput: the element is not a work item.
        """
        kinds = {"path": str, "bucket": str, "prefix": str, "objects": int, "bytes": int}
        accepted = f"an object with exactly {', '.join(kinds)}"
        if not isinstance(given, Mapping) or set(given) != set(kinds):
            raise InvalidInput("item", given, accepted)
        for name, kind in kinds.items():
            if type(given[name]) is not kind:
                raise InvalidInput(f"item.{name}", given[name], f"a {kind.__name__}")
        return cls(**given)


class Largest(msgspec.Struct):
    """The maximum counts of a list's partitions, which may be those of different partitions.

    Attributes:
        objects: most objects of one partition.
        bytes: most bytes of one partition.
    """

    objects: int = 0
    bytes: int = 0

    def add(self, items: Sequence[WorkItem]) -> Largest:
        """Include more items; return self."""
        for item in items:
            self.objects = max(self.objects, item.objects)
            self.bytes = max(self.bytes, item.bytes)
        return self


class Discovery(msgspec.Struct, frozen=True):
    """The partitions of a run, in order, without empty ones and those at rest.

    Attributes:
        items: partitions that one worker can take.
        oversized: partitions for Spark.
        unpartitioned: objects above the depth of the partitions, and so in no partition.
        resting: partitions at rest, which are in neither list.
    """

    items: tuple[WorkItem, ...] = ()
    oversized: tuple[WorkItem, ...] = ()
    unpartitioned: Skipped = msgspec.field(default_factory=lambda: Skipped(0, 0))
    resting: Resting = NONE_AT_REST


class Joined(msgspec.Struct, frozen=True):
    """The counts of a discovery whose lists are on S3.

    Attributes:
        items: number of partitions that one worker can take.
        oversized: number of partitions for Spark.
        unpartitioned: objects that are in no partition.
        resting: partitions at rest, which are in neither list.
        largest: the largest partitions that one worker can take.
    """

    items: int
    oversized: int
    unpartitioned: Skipped
    resting: Resting = NONE_AT_REST
    largest: Largest = msgspec.field(default_factory=Largest)


class WorkLists(msgspec.Struct, frozen=True):
    """The keys and lengths of a run's work lists, which lie next to its settings."""

    bucket: str
    items_key: str
    oversized_key: str
    item_count: int = 0
    oversized_count: int = 0
    largest: Largest = msgspec.field(default_factory=Largest)

    @property
    def run_uri(self) -> str:
        """The run's prefix, with everything that the Spark job needs."""
        return f"s3://{self.bucket}/{self.items_key.removesuffix(ITEMS_NAME)}"


def to_items_json(items: Sequence[WorkItem]) -> bytes:
    """Return work items as a JSON array for a Distributed Map's ItemReader."""
    return b"[" + b",\n".join(map(to_line, items)) + b"]\n"


def to_line(item: WorkItem) -> bytes:
    """Return one element of a work list."""
    return json.dumps(item.to_dict(), separators=(",", ":")).encode()


_decode_objects = decoder(list[msgspec.Raw])


def elements_of(store: ObjectStore, bucket: str, key: str) -> Iterator[bytes]:
    """Yield the elements of a work list, however long, with one line at a time in memory.

    Raises:
        ObjectMissing: there is no such list.
    """
    rest = b""
    for chunk in store.open(bucket, key):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield from _objects_in(line)
    yield from _objects_in(rest)


def _objects_in(line: bytes) -> Iterator[bytes]:
    """Return the objects of a line. This program writes one per line, others may write several."""
    # Cut off the array's brackets and the comma after the last object.
    inside = line[line.find(b"{") : line.rfind(b"}") + 1]
    return map(bytes, _decode_objects(b"[" + inside + b"]"))


def write_work(
    discovery: Discovery,
    settings: Settings,
    run_id: str,
    store: ObjectStore,
    warnings: Sequence[str] = (),
    *,
    requests: Mapping[str, int] = MappingProxyType({}),
) -> WorkLists:
    """Write both work lists, what is in neither, and the settings below the state prefix.

    They are passed through S3, because a workflow's state is limited to 256 KiB.

    Args:
        discovery: what was found.
        settings: settings of the run.
        run_id: id of the run.
        store: where the state is.
        warnings: warnings for the run's report, one line each.
        requests: requests that discovery made, by kind.

    Raises:
        InvalidInput: the state prefix cannot be written, or the run id is invalid.
    """
    bucket, items_key = run_key(settings, run_id, ITEMS_NAME)
    _, oversized_key = run_key(settings, run_id, OVERSIZED_NAME)
    with blaming("s3_state_uri", settings):
        for key, items in ((items_key, discovery.items), (oversized_key, discovery.oversized)):
            store.put(bucket, key, to_items_json(items), content_type="application/json")
    counts = Joined(
        len(discovery.items),
        len(discovery.oversized),
        discovery.unpartitioned,
        discovery.resting,
        Largest().add(discovery.items),
    )
    return write_rest(counts, settings, run_id, store, warnings, requests=requests)


def write_rest(
    found: Joined,
    settings: Settings,
    run_id: str,
    store: ObjectStore,
    warnings: Sequence[str] = (),
    *,
    requests: Mapping[str, int] = MappingProxyType({}),
) -> WorkLists:
    """Write the settings and discovery.json of a run whose work lists are already written.

    Args:
        found: counts of what is in the lists, and what is in neither.
        settings: settings of the run.
        run_id: id of the run.
        store: where the state is.
        warnings: see :func:`write_work`.
        requests: see :func:`write_work`.
    """
    seen = {
        "unpartitioned": asdict(found.unpartitioned),
        "warnings": list(warnings),
        "resting": asdict(found.resting),
        "requests": dict(requests),
    }
    for name, document in (
        (SETTINGS_NAME, settings.to_dict()),
        (DISCOVERY_NAME, numbered(seen, RUN_VERSION)),
    ):
        bucket, key = run_key(settings, run_id, name)
        store.put(bucket, key, json.dumps(document).encode(), content_type="application/json")
    bucket, items_key = run_key(settings, run_id, ITEMS_NAME)
    _, oversized_key = run_key(settings, run_id, OVERSIZED_NAME)
    return WorkLists(bucket, items_key, oversized_key, found.items, found.oversized, found.largest)


def read_items(bucket: str, key: str, store: ObjectStore) -> tuple[WorkItem, ...]:
    """Return the work items of a list."""
    return tuple(WorkItem.from_dict(one) for one in json.loads(store.get(bucket, key)))


def require_known_run(bucket: str, prefix: str, store: ObjectStore) -> bytes:
    """Refuse a run that a later version of this program wrote.

    Args:
        bucket: bucket of the state.
        prefix: prefix of the run, ending in ``/``.
        store: where the state is.

    Returns:
        The body of discovery.json; empty if discovery failed before it wrote one.

    Raises:
        IntegrityError: the format version is unknown.
    """
    try:
        body = store.get(bucket, prefix + DISCOVERY_NAME)
    except ObjectMissing:
        return b""
    require_version(f"s3://{bucket}/{prefix}{DISCOVERY_NAME}", body, RUN_VERSION)
    return body


@contextmanager
def blaming(name: str, settings: Settings) -> Iterator[None]:
    """Turn a store's errors about a bucket into errors about the input field that names it.

    Args:
        name: the field whose URI the requests inside use.
        settings: the run's input.
    """
    try:
        yield
    except InvalidInput as error:
        if error.field not in _ABOUT_A_BUCKET:
            raise
        value = getattr(settings, name)
        accepted = f"{error.accepted} ({error.field} {error.value!r})"
        message = f"{name} {value}: {error.message}" if error.message else ""
        raise InvalidInput(name, value, accepted, message=message) from error
