"""How a destination's sources are divided into partitions, stored with its logs.

Each partition has its own commit log. If a later run divided the same source differently (by hour
instead of by day, one level deeper, or from another root), it would look into other logs, find no
commits there and compact every object a second time. So the first run that commits anything writes
its scheme next to the logs, before its commit, and discovery refuses a run whose scheme contradicts
it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec

from compactor.decoding import require_version
from compactor.errors import (
    AlreadyExists,
    IntegrityError,
    InvalidInput,
    ObjectMissing,
    TransientStoreError,
)
from compactor.layout import SCHEMES, scheme_copy_key, scheme_key, schemes_prefix
from compactor.log.identity import WAY_OUT
from compactor.log.log_reader import some_entries
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings
from compactor.settings.uris import S3Uri
from compactor.settings.windows import matches, wildcards_of

_VERSION = 1
# Each lost race means that another run added a scheme; a destination has one or two.
_MOST_RACES = 100


class Scheme(msgspec.Struct, frozen=True):
    """The rule that decides which partition a key belongs to.

    Attributes:
        root: source root; paths of partitions are relative to it.
        segments: patterns of a partition path's segments, with ``*`` for the varying parts. The
            partition of a key is its first ``len(segments)`` segments.
        destination: URI that outputs are written to.
    """

    root: S3Uri
    segments: tuple[str, ...]
    destination: str

    @classmethod
    def of(cls, settings: Settings) -> Scheme:
        """Return the scheme of a run with these settings."""
        source = settings.source
        if settings.date_format is not None:
            below = wildcards_of(settings.date_format)
        else:
            below = ("*",) * settings.depth
        return cls(source.root, source.pattern + below, settings.s3_destination_uri)

    @property
    def pattern(self) -> str:
        """The partitions' prefixes as a pattern, for display."""
        return self.root.uri + "".join(f"{segment}/" for segment in self.segments)

    def contradicts(self, other: Scheme) -> bool:
        """Return True if a key can fall into partitions of both schemes, with different paths."""
        same_paths = self.root == other.root and len(self.segments) == len(other.segments)
        return not same_paths and self._meets(other)

    def _meets(self, other: Scheme) -> bool:
        if self.root.bucket != other.root.bucket:
            return False
        pairs = zip(self._all_segments(), other._all_segments(), strict=False)
        return all(_may_be_equal(one, two) for one, two in pairs)

    def _all_segments(self) -> tuple[str, ...]:
        return (*self.root.prefix.split("/")[:-1], *self.segments)


def _may_be_equal(one: str, two: str) -> bool:
    if "*" in one and "*" in two:
        heads = one.partition("*")[0], two.partition("*")[0]
        return heads[0].startswith(heads[1]) or heads[1].startswith(heads[0])
    return matches(one, two) or matches(two, one)


def check_scheme(settings: Settings, store: ObjectStore) -> bool:
    """Compare a run's scheme with those stored under the state prefix.

    Returns:
        True if the scheme is already stored.

    Raises:
        InvalidInput: it contradicts one of them.
    """
    scheme = Scheme.of(settings)
    known = _load(settings, store)
    _refuse_contradiction(settings, scheme, known)
    return scheme in known


def remember_scheme(
    settings: Settings,
    store: ObjectStore,
    *,
    paths: Sequence[str] | None = None,
    number: int | None = None,
) -> None:
    """Write a run's scheme next to the commit logs, unless it is stored already.

    Args:
        settings: the run's settings.
        store: the store that holds the state.
        paths: paths of all partitions that have a log or outputs, to restore a lost scheme; None if
            the log is believed to be complete.
        number: a recent result of :func:`number_of_scheme`; None to look it up.

    Raises:
        InvalidInput: it contradicts a stored scheme, which may have been written a moment ago.
        IntegrityError: there are commits, but the scheme of their partitions is missing.
        TransientStoreError: the store reports that a scheme exists, but does not list it.
    """
    scheme = Scheme.of(settings)
    for _ in range(_MOST_RACES):
        if number is None:
            number = number_of_scheme(settings, store, paths=paths)
        if number is None or _add(settings, store, number, scheme) == scheme:
            return
        # Another run took the number.
        number = None
    prefix = schemes_prefix(settings)[1]
    raise TransientStoreError(f"{_MOST_RACES} other schemes came first below {prefix}")


def number_of_scheme(
    settings: Settings, store: ObjectStore, *, paths: Sequence[str] | None = None
) -> int | None:
    """Return the number a run's scheme would be written under, or None if it is stored already.

    A scheme that another run writes in the meantime takes that number.

    Args:
        settings: the run's settings.
        store: the store that holds the state.
        paths: as for :func:`remember_scheme`.

    Raises:
        InvalidInput: it contradicts a stored scheme.
        IntegrityError: there are commits, but the scheme of their partitions is missing.
    """
    scheme = Scheme.of(settings)
    known = _load(settings, store)
    if paths is None and not known and any(some_entries(settings.state, store)):
        # Another run's first worker may have started in between; it writes its scheme before its
        # commit.
        known = _load(settings, store)
        if not known:
            raise _lost(settings, 1)
    _refuse_contradiction(settings, scheme, known)
    if scheme in known:
        return None
    if paths is not None:
        _require_fit(settings, scheme, paths)
    return len(known) + 1


def source_roots(state: S3Uri, store: ObjectStore) -> tuple[S3Uri, ...]:
    """Return the distinct roots of all sources compacted to a state's destination.

    Raises:
        IntegrityError: a scheme is damaged.
    """
    prefix = f"{state.prefix}{SCHEMES}"
    keys = [one.key for page in store.list_objects(state.bucket, prefix) for one in page]
    places = ((f"s3://{state.bucket}/{key}", store.get(state.bucket, key)) for key in keys)
    return tuple(dict.fromkeys(_decode(where, body).root for where, body in places))


def _add(settings: Settings, store: ObjectStore, number: int, scheme: Scheme) -> Scheme | None:
    """Write the next scheme, or complete one whose copy has that number already.

    Schemes are numbered and created only if absent: of two concurrent first runs, one must read the
    other's scheme before it may add its own. The loss of the last scheme would go unnoticed, so
    each but the first (whose loss the log entries reveal) has a copy that is written before it. A
    writer that finds such a copy restores that scheme first.

    Returns:
        The scheme written, or None if another run took the number.
    """
    if number > 1:
        bucket, key = scheme_copy_key(settings, number)
        try:
            store.create(bucket, key, _encode(scheme), content_type="application/json")
        except AlreadyExists:
            try:
                scheme = _decode(f"s3://{bucket}/{key}", store.get(bucket, key))
            except ObjectMissing:
                return None
    bucket, key = scheme_key(settings, number)
    try:
        store.create(bucket, key, _encode(scheme), content_type="application/json")
    except AlreadyExists:
        return None
    return scheme


def _refuse_contradiction(settings: Settings, scheme: Scheme, known: list[Scheme]) -> None:
    for other in known:
        if scheme.destination != other.destination:
            raise InvalidInput(
                "s3_state_uri",
                settings.s3_state_uri,
                f"a prefix of its own; this one belongs to {other.destination}",
            )
        if scheme.contradicts(other):
            field = _field_at_fault(settings, scheme, other)
            raise InvalidInput(
                field,
                getattr(settings, field),
                f"the partitions {other.pattern} that {other.destination} was made of"
                f" ({scheme.pattern} would compact the same objects again), or another"
                " s3_destination_uri",
            )


def _field_at_fault(settings: Settings, scheme: Scheme, other: Scheme) -> str:
    if scheme.root != other.root:
        return "s3_source_uri"
    return "depth" if settings.date_format is None else "date_format"


def _load(settings: Settings, store: ObjectStore) -> list[Scheme]:
    bucket, prefix = schemes_prefix(settings)
    keys = [entry.key for page in store.list_objects(bucket, prefix) for entry in page]
    for number, key in enumerate(keys, start=1):
        if key != scheme_key(settings, number)[1]:
            raise _lost(settings, number)
    try:
        return [_decode(f"s3://{bucket}/{key}", store.get(bucket, key)) for key in keys]
    except ObjectMissing as error:
        raise IntegrityError(f"{error}: it was deleted just now") from None


def _require_fit(settings: Settings, scheme: Scheme, paths: Sequence[str]) -> None:
    for path in paths:
        segments = path.split("/")[:-1]
        fits = len(segments) == len(scheme.segments)
        if not fits or not all(map(matches, scheme.segments, segments)):
            field = "depth" if settings.date_format is None else "date_format"
            accepted = f"what the outputs were made with; there are some of {path or '(root)'}"
            raise InvalidInput(field, getattr(settings, field), accepted)


def _lost(settings: Settings, number: int) -> IntegrityError:
    bucket, key = scheme_key(settings, number)
    return IntegrityError(
        f"s3://{bucket}/{key} is missing, and so nothing says how the sources of the commits in"
        f" {settings.s3_state_uri} were divided: {WAY_OUT}"
    )


def _encode(scheme: Scheme) -> bytes:
    document = {
        "version": _VERSION,
        "root": scheme.root.uri,
        "segments": scheme.segments,
        "destination": scheme.destination,
    }
    return json.dumps(document, indent=1).encode()


def _decode(where: str, body: bytes) -> Scheme:
    require_version(where, body, _VERSION)
    try:
        document = json.loads(body)
        root = S3Uri.parse("root", document["root"])
        return Scheme(root, tuple(document["segments"]), document["destination"])
    except (ValueError, KeyError, TypeError, InvalidInput) as error:
        raise IntegrityError(f"{where} is not a scheme this program wrote: {error!r}") from error
