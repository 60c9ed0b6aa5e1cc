"""The run's own records on S3, located by the run's URI."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from compactor.discovery.work_list import SETTINGS_NAME, oversized_partitions, require_known_run
from compactor.errors import InvalidInput, ObjectMissing
from compactor.model import Partition
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings
from compactor.settings.uris import S3Uri

RUN_ACCEPTED = "the URI of a run, s3://BUCKET/<state prefix>/runs/<run id>/"


@dataclass(frozen=True, slots=True)
class RunPlace:
    """The location of one run's records.

    Attributes:
        prefix: ends in ``runs/<run id>/``.
    """

    bucket: str
    prefix: str

    @classmethod
    def parse(cls, text: str) -> RunPlace:
        """Parse a run's URI.

        Raises:
            InvalidInput: the text is not the URI of a run.
        """
        uri = S3Uri.parse("run", text)
        segments = uri.prefix.split("/")
        if len(segments) < 3 or segments[-3] != "runs":
            raise InvalidInput("run", text, RUN_ACCEPTED)
        return cls(uri.bucket, uri.prefix)

    @property
    def run_id(self) -> str:
        """The last segment of the prefix."""
        return self.prefix.split("/")[-2]

    @property
    def uri(self) -> str:
        """The run's URI, ending in ``/``."""
        return f"s3://{self.bucket}/{self.prefix}"


@dataclass(frozen=True, slots=True)
class LoadedRun:
    """A run, and the partitions that its workers left to Spark."""

    run_id: str
    settings: Settings
    partitions: Sequence[Partition]


def load_run(place: RunPlace, store: ObjectStore) -> LoadedRun:
    """Read the settings and the records of oversized partitions.

    Raises:
        InvalidInput: one of them is missing or malformed, or the settings belong to a run
            in another location.
        IntegrityError: a later version of this program wrote them.
    """
    require_known_run(place.bucket, place.prefix, store)
    settings = _settings(place, store)
    if settings.layout.run(place.run_id) != (place.bucket, place.prefix):
        found = settings.s3_state_uri
        raise InvalidInput(SETTINGS_NAME, found, f"an s3_state_uri that contains {place.uri}")
    partitions = list(oversized_partitions(place.bucket, place.prefix, store))
    return LoadedRun(place.run_id, settings, partitions)


def _settings(place: RunPlace, store: ObjectStore) -> Settings:
    given = _json(place, SETTINGS_NAME, store)
    try:
        return Settings.from_input(given)
    except InvalidInput as error:
        raise InvalidInput(f"{SETTINGS_NAME}: {error.field}", error.value, error.accepted) from None


def _json(place: RunPlace, name: str, store: ObjectStore) -> object:
    try:
        body = store.get(place.bucket, place.prefix + name)
    except ObjectMissing:
        accepted = f"{RUN_ACCEPTED}, where discovery has written {name}"
        raise InvalidInput("run", place.uri, accepted) from None
    try:
        return json.loads(body)
    except ValueError as error:
        shown = body[:80].decode("utf-8", "replace")
        raise InvalidInput(name, shown, f"a JSON document ({error})") from None


def write_record(place: RunPlace, name: str, document: object, store: ObjectStore) -> None:
    """Store one of the run's records as JSON."""
    body = msgspec.json.format(msgspec.json.encode(document), indent=2)
    store.put(place.bucket, place.prefix + name, body, content_type="application/json")
