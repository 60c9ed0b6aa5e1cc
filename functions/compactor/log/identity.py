"""The identity of a state: a random id that log entries and outputs name, and what it belongs to.

A deleted log looks like a log that never existed. So the first writer to commit creates
``identity.json``; entries that name another id were written for another state. It also says how
sources are divided into partitions, each of which has its own log: a run that divided them
differently would find no commits in its logs, and compact every source again.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from threading import Lock

import msgspec

from compactor.decoding import decoder
from compactor.destination import LOG_METADATA, is_output_name
from compactor.documents import find_document, leave_first
from compactor.errors import IntegrityError, InvalidInput
from compactor.model import SourceObject
from compactor.ports import ObjectStore
from compactor.settings.layout import IDENTITY_NAME, StateLayout
from compactor.settings.settings import STATE_ROOT, Settings
from compactor.settings.uris import S3Uri
from compactor.settings.windows import wildcards_of

#: Advice at the end of errors about an incomplete log.
WAY_OUT = "bring the deleted versions back, as docs/operations.md says"
_VERSION = 1
# A role may lack access to other states' locations, some of which belong to other accounts.
_NOT_FOR_US = frozenset({"permission", "bucket", "region"})


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """The id of a state, and what it belongs to.

    Attributes:
        destination: URI of the outputs.
        source_root: URI that paths of partitions are relative to.
        segments: number of segments of a partition's path.
    """

    version: int = _VERSION
    log_id: str
    destination: str
    source_root: str
    segments: int

    @classmethod
    def of(cls, settings: Settings) -> Identity:
        """Return the identity of a new state of a run with these settings."""
        return cls(
            log_id=uuid.uuid4().hex,
            destination=settings.s3_destination_uri,
            source_root=settings.source.root.uri,
            segments=_segments(settings),
        )

    def require_same_partitions(self, settings: Settings) -> None:
        """Check that a run divides the source as those before it did.

        Raises:
            InvalidInput: it has another source, or other partitions.
        """
        if self.source_root != settings.source.root.uri:
            field, made_of = "s3_source_uri", f"the source {self.source_root}"
        elif self.segments != _segments(settings):
            field = "depth" if settings.date_format is None else "date_format"
            made_of = f"the partitions {self.source_root}{'*/' * self.segments}"
        else:
            return
        accepted = (
            f"{made_of} that {self.destination} was made of (otherwise the same objects would be"
            " compacted again), or another s3_destination_uri"
        )
        raise InvalidInput(field, getattr(settings, field), accepted)


_decode = decoder(Identity)


def _segments(settings: Settings) -> int:
    if settings.date_format is None:
        return len(settings.source.pattern) + settings.depth
    return len(settings.source.pattern) + len(wildcards_of(settings.date_format))


def identity_at(state: S3Uri, store: ObjectStore) -> Identity | None:
    """Return the identity of a state, or None if it has none yet.

    Raises:
        IntegrityError: it is damaged, or of a later version.
    """
    return find_document(store, StateLayout(state).identity, _decode, _VERSION)


def read_identity(settings: Settings, store: ObjectStore) -> Identity | None:
    """Return the identity of a run's state, or None if it has none yet.

    Raises:
        IntegrityError: it is damaged, or of a later version.
        InvalidInput: the state belongs to another destination.
    """
    identity = identity_at(settings.state, store)
    if identity is not None and identity.destination != settings.s3_destination_uri:
        accepted = f"a prefix of its own; this one belongs to {identity.destination}"
        raise InvalidInput("s3_state_uri", settings.s3_state_uri, accepted)
    return identity


def require_identity(settings: Settings, log_id: str, identity: Identity | None) -> None:
    """Check that the state has the identity that a log's entries name.

    Raises:
        IntegrityError: it has another one, or none.
    """
    if identity is None or identity.log_id != log_id:
        bucket, key = settings.layout.identity
        what = "is missing" if identity is None else f"says that this is log {identity.log_id}"
        raise IntegrityError(f"s3://{bucket}/{key} {what}, entries name log {log_id}: {WAY_OUT}")


class StateIdentity:
    """The identity of a run's state, read at most once a call.

    Args:
        settings: the run's settings.
        store: the store that holds the state.
        identity: what discovery read; None to read it when it is first needed.
    """

    def __init__(
        self, settings: Settings, store: ObjectStore, identity: Identity | None = None
    ) -> None:
        self._settings = settings
        self._store = store
        self._identity = identity
        self._lock = Lock()

    def claim(self, named: str) -> str:
        """Return the log id, which outputs and entries name; create the identity for the first.

        Args:
            named: what the entries of a log name; empty for an empty log.

        Raises:
            IntegrityError: the entries name another identity, or it is missing or damaged.
            InvalidInput: the state belongs to another destination, or was made of other partitions.
        """
        with self._lock:
            if self._identity is None:
                read = read_identity if named else self._create_or_read
                self._identity = read(self._settings, self._store)
        if named:
            require_identity(self._settings, named, self._identity)
        assert self._identity is not None  # noqa: S101 - created, or required
        self._identity.require_same_partitions(self._settings)
        return self._identity.log_id

    @staticmethod
    def _create_or_read(settings: Settings, store: ObjectStore) -> Identity:
        identity = read_identity(settings, store)
        if identity is not None:
            return identity
        own_identity = Identity.of(settings)
        if leave_first(store, settings.layout.identity, own_identity, _VERSION):
            return own_identity
        # Another worker created it first, or an earlier attempt of this PUT did.
        return read_identity(settings, store) or own_identity


def marker_keys(prefixes: Iterable[str]) -> list[str]:
    """Return the keys of the identities of states at these prefixes."""
    return [prefix + IDENTITY_NAME for prefix in prefixes]


def states_of_source(prefix: str) -> list[str]:
    """Return the default state prefixes of all destinations that contain this source prefix."""
    segments = prefix.split("/")[:-1]
    above = (
        "".join(f"{segment}/" for segment in segments[:count]) for count in range(len(segments))
    )
    return [STATE_ROOT + prefix_above for prefix_above in (*above, prefix) if prefix_above]


def exists(store: ObjectStore, bucket: str, key: str) -> bool:
    """Return True if the object exists and the role may access it."""
    try:
        return store.head(bucket, key) is not None
    except InvalidInput as error:
        if error.field not in _NOT_FOR_US:
            raise
        return False


def refuse_outputs_as_sources(settings: Settings, store: ObjectStore) -> None:
    """Refuse to compact earlier outputs, as when source and destination are swapped.

    Only looks at the default location of a destination's state.

    Raises:
        InvalidInput: the source is, or lies in, the destination of another run.
    """
    root = settings.source.root
    for prefix in states_of_source(root.prefix):
        if exists(store, root.bucket, prefix + IDENTITY_NAME):
            accepted = (
                f"a source that no run wrote; s3://{root.bucket}/{prefix.removeprefix(STATE_ROOT)}"
                f" holds the outputs of the log in s3://{root.bucket}/{prefix}"
            )
            raise InvalidInput("s3_source_uri", settings.s3_source_uri, accepted)


def is_output_of_a_run(store: ObjectStore, source: SourceObject) -> bool:
    """Return True if the source's own metadata marks it as an output."""
    try:
        head = store.head(source.bucket, source.key)
    except InvalidInput:
        # A single inaccessible object must not stop the run.
        return False
    return head is not None and LOG_METADATA in head.metadata


def outputs_among(
    sources: Sequence[SourceObject], store: ObjectStore, no_outputs: set[bytes]
) -> list[SourceObject]:
    """Return the sources of a group that are outputs of some run, by their own metadata.

    Of the sources named like outputs the first is checked, and the others only if it is an output.

    Args:
        sources: the group's sources.
        store: the store that holds them.
        no_outputs: identities of first sources already found not to be outputs; updated.
    """
    named = [source for source in sources if is_output_name(source.key)]
    if not named or named[0].identity in no_outputs:
        return []
    if not is_output_of_a_run(store, named[0]):
        no_outputs.add(named[0].identity)
        return []
    return [source for source in named if is_output_of_a_run(store, source)]
