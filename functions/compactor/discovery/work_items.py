"""What discovery found: one work item per partition, and their lists on S3."""

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
#: Of everything that a run writes below its own prefix; discovery.json names it.
RUN_VERSION = 1

# What stores name when a bucket cannot be used; any other error is passed on.
_ABOUT_A_BUCKET = frozenset({"bucket", "permission", "region"})


@dataclass(frozen=True, slots=True)
class WorkItem:
    """One partition to be compacted.

    Attributes:
        path: the partition's path below the source root.
        bucket: source bucket.
        prefix: source prefix.
        objects: objects counted. Of a partition with more objects than one worker takes,
            those without a commit; of an oversized one, as many as were counted until that
            was known.
        bytes: their listed bytes.
    """

    path: str
    bucket: str
    prefix: str
    objects: int
    bytes: int

    @property
    def partition(self) -> Partition:
        """The partition this item is about."""
        return Partition(bucket=self.bucket, prefix=self.prefix, path=self.path)

    def to_dict(self) -> dict[str, Any]:
        """The element of the work list."""
        return asdict(self)

    @classmethod
    def from_dict(cls, given: object) -> WorkItem:
        """Read an element of the work list back; unknown fields are refused.

        Raises:
            InvalidInput: not a work item.
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
    """The most that any partition of a list has; they need not be of one partition.

    Attributes:
        objects: of a partition.
        bytes: of a partition.
    """

    objects: int = 0
    bytes: int = 0

    def add(self, items: Sequence[WorkItem]) -> Largest:
        """With these, too."""
        for item in items:
            self.objects = max(self.objects, item.objects)
            self.bytes = max(self.bytes, item.bytes)
        return self


class Discovery(msgspec.Struct, frozen=True):
    """All partitions of a run, in order; empty ones, and those at rest, are not among them.

    Attributes:
        items: partitions that one worker can take.
        oversized: partitions for Spark.
        unpartitioned: objects above the depth of the partitions: no partition holds them.
        resting: partitions at rest, which are in neither list.
    """

    items: tuple[WorkItem, ...] = ()
    oversized: tuple[WorkItem, ...] = ()
    unpartitioned: Skipped = msgspec.field(default_factory=lambda: Skipped(0, 0))
    resting: Resting = NONE_AT_REST


class Joined(msgspec.Struct, frozen=True):
    """What was found, in numbers: the lists themselves are on S3.

    Attributes:
        items: partitions that one worker can take.
        oversized: partitions for Spark.
        unpartitioned: objects that no partition holds.
        resting: partitions at rest, which are in neither list.
        largest: of those that one worker can take.
    """

    items: int
    oversized: int
    unpartitioned: Skipped
    resting: Resting = NONE_AT_REST
    largest: Largest = msgspec.field(default_factory=Largest)


class WorkLists(msgspec.Struct, frozen=True):
    """Where the lists of work items lie, beside the settings of the run, and how long they are."""

    bucket: str
    items_key: str
    oversized_key: str
    item_count: int = 0
    oversized_count: int = 0
    largest: Largest = msgspec.field(default_factory=Largest)

    @property
    def run_uri(self) -> str:
        """The prefix below which everything of this run lies; all that the Spark job is given."""
        return f"s3://{self.bucket}/{self.items_key.removesuffix(ITEMS_NAME)}"


def to_items_json(items: Sequence[WorkItem]) -> bytes:
    """Work items as the JSON array that a Distributed Map's ItemReader takes."""
    return b"[" + b",\n".join(map(to_line, items)) + b"]\n"


def to_line(item: WorkItem) -> bytes:
    """One element of that array."""
    return json.dumps(item.to_dict(), separators=(",", ":")).encode()


_decode_objects = decoder(list[msgspec.Raw])


def elements_of(store: ObjectStore, bucket: str, key: str) -> Iterator[bytes]:
    """The elements of such an array, however long it is, a line in memory at a time.

    Raises:
        ObjectMissing: there is none.
    """
    rest = b""
    for chunk in store.open(bucket, key):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield from _objects_in(line)
    yield from _objects_in(rest)


def _objects_in(line: bytes) -> Iterator[bytes]:
    """The objects of a line: this program writes one, others may write several."""
    # Around them are the brackets of the array, and commas.
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
    """Write both lists, what is in neither, and the settings below the state prefix.

    Through S3, because the state of a workflow holds 256 KiB only.

    Args:
        discovery: what was found.
        settings: of the run.
        run_id: of the run.
        store: where the state is.
        warnings: what the report of the run is to warn of, one line each.
        requests: that discovery made, by kind.

    Raises:
        InvalidInput: the state prefix cannot be written, or the run id is no name.
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
    """Write what lies beside the lists, which are written.

    Args:
        found: what is in the lists, and in neither.
        settings: of the run.
        run_id: of the run.
        store: where the state is.
        warnings: see :func:`write_work`.
        requests: likewise.
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
    """The work items of a list."""
    return tuple(WorkItem.from_dict(one) for one in json.loads(store.get(bucket, key)))


def require_known_run(bucket: str, prefix: str, store: ObjectStore) -> bytes:
    """Refuse what a later version of this program wrote about a run.

    Args:
        bucket: of the state.
        prefix: of the run, ending in ``/``.
        store: where it is.

    Returns:
        The body of discovery.json; empty where discovery failed before it wrote one.

    Raises:
        IntegrityError: its version is not known here.
    """
    try:
        body = store.get(bucket, prefix + DISCOVERY_NAME)
    except ObjectMissing:
        return b""
    require_version(f"s3://{bucket}/{prefix}{DISCOVERY_NAME}", body, RUN_VERSION)
    return body


@contextmanager
def blaming(name: str, settings: Settings) -> Iterator[None]:
    """Make what a store says of a bucket a message about the input field that names it.

    Args:
        name: name of the field whose URI the requests inside use.
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
