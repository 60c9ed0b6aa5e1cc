"""The identity of a state: a random id stored next to the commit logs and named by every entry.

A deleted log looks like a log that never existed. So the first run that stores anything writes a
marker, ``identity.json``, and each entry and each output names its id. If the marker is missing
although entries name it, or holds another id, the state was deleted or replaced.

State prefixes must not contain each other either: the logs of one would be listed as logs of the
other, whose clean-up would delete sources based on them.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Sequence
from itertools import islice

import msgspec

from compactor.decoding import require_version
from compactor.destination import LOG_METADATA, output_name
from compactor.errors import AlreadyExists, IntegrityError, InvalidInput, ObjectMissing
from compactor.layout import IDENTITY_NAME, PARTITIONS, identity_key
from compactor.log.log_reader import some_entries
from compactor.model import SourceObject
from compactor.ports import ObjectStore
from compactor.settings.settings import STATE_ROOT, Settings

#: Advice at the end of errors about an incomplete log.
WAY_OUT = (
    "bring the state back from a backup or its earlier versions, or rebuild the log from the"
    " outputs with compactor adopt"
)
_VERSION = 1
# Matches the identity marker of another state below a state that is not in use yet.
_OTHER_STATE = re.compile(r"(.+/)identity\.json", re.DOTALL)
# Enough to find one marker: a new state holds the records of few runs.
_PAGES_LOOKED_AT = 10
_OUTPUTS_LOOKED_AT = 20
# A role may lack access to other states' locations, some of which belong to other accounts.
_NOT_FOR_US = frozenset({"permission", "bucket", "region"})


class LogIdentity(msgspec.Struct, frozen=True):
    """The id of a log and the URI of the destination it describes."""

    log_id: str
    destination: str


def read_identity(settings: Settings, store: ObjectStore) -> LogIdentity | None:
    """Return the identity of a run's state, or None if it has none yet.

    Raises:
        IntegrityError: the marker is damaged, or of a later version.
        InvalidInput: the state belongs to another destination.
    """
    bucket, key = identity_key(settings)
    try:
        body = store.get(bucket, key)
    except ObjectMissing:
        return None
    found = _decode(f"s3://{bucket}/{key}", body)
    if found.destination != settings.s3_destination_uri:
        accepted = f"a prefix of its own; this one belongs to {found.destination}"
        raise InvalidInput("s3_state_uri", settings.s3_state_uri, accepted)
    return found


def require_identity(settings: Settings, store: ObjectStore, log_id: str) -> None:
    """Check that the state has the identity that a log's entries name.

    Raises:
        IntegrityError: it has another one, or its marker is missing.
    """
    found = read_identity(settings, store)
    if found is None or found.log_id != log_id:
        bucket, key = identity_key(settings)
        what = "is missing" if found is None else f"says that this is log {found.log_id}"
        raise IntegrityError(f"s3://{bucket}/{key} {what}, entries name log {log_id}: {WAY_OUT}")


def claim_identity(settings: Settings, store: ObjectStore) -> LogIdentity:
    """Return the identity of a run's state, creating it if there is none yet.

    Raises:
        IntegrityError: the marker is missing, but there are entries, which name an identity.
        InvalidInput: the state belongs to another destination.
    """
    found = read_identity(settings, store)
    if found is not None:
        return found
    _refuse_lost_marker(settings, store)
    return _make(settings, store)


def restore_identity(
    settings: Settings, store: ObjectStore, outputs: Sequence[SourceObject]
) -> LogIdentity:
    """Restore the identity of a state that lost its marker, as its entries and outputs name it.

    Args:
        settings: the run's settings.
        store: the store that holds the state.
        outputs: some of its outputs; only the first ones are examined.

    Raises:
        IntegrityError: they name more than one identity.
        InvalidInput: the state belongs to another destination.
    """
    found = read_identity(settings, store)
    if found is not None:
        return found
    heads = [store.head(one.bucket, one.key) for one in outputs[:_OUTPUTS_LOOKED_AT]]
    named = {head.metadata.get(LOG_METADATA, "") for head in heads if head is not None}
    named |= {commit.log_id for commit in some_entries(settings.state, store)}
    named.discard("")
    if len(named) > 1:
        raise IntegrityError(
            f"what is in {settings.s3_destination_uri} was written for the logs"
            f" {', '.join(sorted(named))}: one state cannot be that of several"
        )
    return _make(settings, store, *named)


def _make(settings: Settings, store: ObjectStore, log_id: str = "") -> LogIdentity:
    bucket, key = identity_key(settings)
    made = LogIdentity(log_id or uuid.uuid4().hex, settings.s3_destination_uri)
    try:
        store.create(bucket, key, _encode(made), content_type="application/json")
    except AlreadyExists:
        # Another worker created it first, or an earlier attempt of this PUT did.
        return read_identity(settings, store) or made
    return made


def check_new_state(settings: Settings, store: ObjectStore) -> None:
    """Check the surroundings of a state that has no identity yet before a run uses it.

    Raises:
        IntegrityError: entries already name an identity, so the marker was lost.
        InvalidInput: the state contains another one, or lies in one.
    """
    refuse_states_around(settings, store, logs_only=False)
    _refuse_states_below(settings, store)
    _refuse_lost_marker(settings, store)


def refuse_states_around(settings: Settings, store: ObjectStore, *, logs_only: bool) -> None:
    """Refuse a state that lies in another one.

    Args:
        settings: the run's settings.
        store: the store that holds the state.
        logs_only: refuse only if its logs would be mistaken for the other state's.

    Raises:
        InvalidInput: the state lies in another one.
    """
    state = settings.state
    for place in states_around(state.prefix):
        among_logs = state.prefix.removeprefix(place).startswith(PARTITIONS)
        if (among_logs or not logs_only) and is_state(store, state.bucket, place):
            raise _nested(settings, f"s3://{state.bucket}/{place}")


def marker_keys(prefixes: Iterable[str]) -> list[str]:
    """Return the keys of the markers of states at these prefixes."""
    return [prefix + IDENTITY_NAME for prefix in prefixes]


def states_of_source(prefix: str) -> list[str]:
    """Return the default state prefixes of all destinations that contain this source prefix."""
    return [STATE_ROOT + one for one in (*states_around(prefix), prefix) if one]


def states_around(prefix: str) -> list[str]:
    """Return the prefixes of all states that would contain this one, the bucket's root first."""
    segments = prefix.split("/")[:-1]
    return ["".join(f"{one}/" for one in segments[:count]) for count in range(len(segments))]


def is_state(store: ObjectStore, bucket: str, prefix: str) -> bool:
    """Return True if this prefix is known to hold a state."""
    return exists(store, bucket, prefix + IDENTITY_NAME)


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
        if is_state(store, root.bucket, prefix):
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
    named = [one for one in sources if output_name(one.key)]
    if not named or named[0].identity in no_outputs:
        return []
    if not is_output_of_a_run(store, named[0]):
        no_outputs.add(named[0].identity)
        return []
    return [one for one in named if is_output_of_a_run(store, one)]


def _refuse_states_below(settings: Settings, store: ObjectStore) -> None:
    state = settings.state
    pages = store.list_objects(state.bucket, state.prefix)
    for page in islice(pages, _PAGES_LOOKED_AT):
        for one in page:
            match = _OTHER_STATE.fullmatch(one.key, len(state.prefix))
            if match is not None:
                raise _nested(settings, f"s3://{state.bucket}/{state.prefix}{match[1]}")


def _refuse_lost_marker(settings: Settings, store: ObjectStore) -> None:
    for commit in some_entries(settings.state, store):
        require_identity(settings, store, commit.log_id)


def _nested(settings: Settings, other: str) -> InvalidInput:
    accepted = f"a prefix that neither contains another state nor lies in it, as with {other}"
    return InvalidInput("s3_state_uri", settings.s3_state_uri, accepted)


def _encode(identity: LogIdentity) -> bytes:
    document = {
        "version": _VERSION,
        "log_id": identity.log_id,
        "destination": identity.destination,
    }
    return json.dumps(document, indent=1).encode()


def _decode(where: str, body: bytes) -> LogIdentity:
    require_version(where, body, _VERSION)
    try:
        document = json.loads(body)
        log_id, destination = document["log_id"], document["destination"]
        if not (isinstance(log_id, str) and log_id and isinstance(destination, str)):
            raise ValueError("no identity")
    except (ValueError, KeyError, TypeError) as error:
        raise IntegrityError(f"{where} is damaged: {error!r}: {WAY_OUT}") from error
    return LogIdentity(log_id, destination)
