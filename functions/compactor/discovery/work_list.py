"""The work list of a run on S3, what lies beside it, and what workers leave to Spark.

    runs/<run id>/items.json          partitions, one a line, in a JSON array
    runs/<run id>/oversized/<id>.json   a partition with more than one worker takes
    runs/<run id>/discovery.json      what is in no partition, warnings, requests
    runs/<run id>/settings.json       settings of the run

They are passed through S3, because a workflow's state is limited to 256 KiB.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from types import MappingProxyType

import msgspec

from compactor.decoding import decoder, numbered, require_version
from compactor.discovery.location_checks import blaming
from compactor.discovery.parallel import Parallel
from compactor.errors import InvalidInput, ObjectMissing
from compactor.model import Partition, Skipped
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings

ITEMS_NAME = "items.json"
OVERSIZED_PREFIX = "oversized/"
DISCOVERY_NAME = "discovery.json"
SETTINGS_NAME = "settings.json"
#: Format version of everything that a run writes below its own prefix; stored in discovery.json.
RUN_VERSION = 1

_JSON = "application/json"
_FIELDS = ("path", "bucket", "prefix")
_READERS = 16


class Discovery(msgspec.Struct, frozen=True):
    """The partitions of a run, in order.

    Attributes:
        skipped: objects that are in none of them, by name of the reason.
    """

    partitions: tuple[Partition, ...] = ()
    skipped: Mapping[str, Skipped] = msgspec.field(default_factory=dict)


def to_items_json(partitions: Sequence[Partition]) -> bytes:
    """Return partitions as a JSON array for a Distributed Map's ItemReader."""
    return b"[" + b",\n".join(map(_line, partitions)) + b"]\n"


def _line(partition: Partition) -> bytes:
    document = {name: getattr(partition, name) for name in _FIELDS}
    return json.dumps(document, separators=(",", ":")).encode()


def partition_from(element: object) -> Partition:
    """Read an element of the work list. Unknown fields are rejected.

    Raises:
        InvalidInput: the element is no partition.
    """
    if not isinstance(element, Mapping) or set(element) != set(_FIELDS):
        raise InvalidInput("item", element, f"an object with exactly {', '.join(_FIELDS)}")
    for name in _FIELDS:
        if type(element[name]) is not str:
            raise InvalidInput(f"item.{name}", element[name], "a str")
    return Partition(element["bucket"], element["prefix"], element["path"])


_decode_objects = decoder(list[msgspec.Raw])


def elements_of(store: ObjectStore, bucket: str, key: str) -> Iterator[bytes]:
    """Yield the elements of a list, however long, with one line at a time in memory.

    Raises:
        ObjectMissing: there is no such list.
    """
    unfinished = b""
    for chunk in store.open(bucket, key):
        *lines, unfinished = (unfinished + chunk).split(b"\n")
        for line in lines:
            yield from _objects_in(line)
    yield from _objects_in(unfinished)


def _objects_in(line: bytes) -> Iterator[bytes]:
    """Return the objects of a line. This program writes one per line, others may write several."""
    # Cut off the array's brackets and the comma after the last object.
    inside = line[line.find(b"{") : line.rfind(b"}") + 1]
    return map(bytes, _decode_objects(b"[" + inside + b"]"))


def read_items(store: ObjectStore, bucket: str, key: str) -> Iterator[Partition]:
    """Yield the partitions of a work list.

    Raises:
        ObjectMissing: there is no such list.
        InvalidInput: an element is no partition.
    """
    for element in elements_of(store, bucket, key):
        yield partition_from(json.loads(element))


def write_work(
    discovery: Discovery,
    settings: Settings,
    run_id: str,
    store: ObjectStore,
    warnings: Sequence[str] = (),
    *,
    requests: Mapping[str, int] = MappingProxyType({}),
) -> None:
    """Write the work list, what is not in it, and the settings below the state prefix.

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
    beside = {
        "skipped": {reason: asdict(skipped) for reason, skipped in discovery.skipped.items()},
        "warnings": list(warnings),
        "requests": dict(requests),
    }
    bodies = {
        ITEMS_NAME: to_items_json(discovery.partitions),
        SETTINGS_NAME: json.dumps(settings.to_dict()).encode(),
        DISCOVERY_NAME: json.dumps(numbered(beside, RUN_VERSION)).encode(),
    }
    with blaming("s3_state_uri", settings):
        for name, body in bodies.items():
            store.put(*settings.layout.run(run_id, name), body, content_type=_JSON)


def leave_to_spark(
    settings: Settings, run_id: str, partition: Partition, store: ObjectStore
) -> None:
    """Record that Spark takes what is left in a partition. Idempotent."""
    name = f"{OVERSIZED_PREFIX}{partition.id}.json"
    store.put(*settings.layout.run(run_id, name), _line(partition), content_type=_JSON)


def oversized_partitions(bucket: str, prefix: str, store: ObjectStore) -> Iterator[Partition]:
    """Yield the partitions that the workers of a run left to Spark.

    Args:
        bucket: bucket of the state.
        prefix: prefix of the run, ending in ``/``.
        store: where the state is.
    """
    pages = store.list_objects(bucket, prefix + OVERSIZED_PREFIX)
    keys = [record.key for page in pages for record in page]
    with Parallel(_READERS) as parallel:
        for body in parallel.in_order(partial(store.get, bucket), keys):
            yield partition_from(json.loads(body))


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
