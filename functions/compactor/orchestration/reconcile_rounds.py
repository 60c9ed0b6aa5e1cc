"""Rounds of reconciling: through a whole source, by as many calls as it takes.

How far a round is lies beside the other state of the stream, ``reconcile/<stream>.json``:

    start_after   after this key the next call resumes
    busy_until    a call is at work until then, or died

The place is only ever moved on by who went through everything before it, from the place that an
earlier call left: two concurrent calls go through some keys twice, and none is passed over.

A round by an inventory takes that first, below ``runs/reconcile-<stream>-<begun>/``, as a run does;
all its calls compare the same one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import msgspec

from compactor import layout
from compactor.decoding import decoder, require_version
from compactor.documents import leave_document
from compactor.errors import IntegrityError, ObjectMissing
from compactor.inventory.inventory_listing import InventoryListing
from compactor.orchestration.reconcile import Reconciled, Reconciliation, reconcile
from compactor.ports import ObjectStore
from compactor.registry.streams import table_and_stream
from compactor.settings.settings import Settings

ROUND_VERSION = 1
#: Continues taking the inventory of a round, by the id of a run that its listing lies below;
#: None where time ran out before there was a listing.
Take = Callable[[str], InventoryListing | None]


class Round(msgspec.Struct, kw_only=True):
    """How far a round is.

    Attributes:
        begun_at: UNIX seconds.
        ended_at: when the source was gone through; 0.0 while it is not.
        busy_until: no other call resumes before, UNIX seconds.
        start_after: the key after which the next call resumes.
        calls: that worked on it.
        objects, compacted, known, registered, younger: as :class:`Reconciled` counts them.
        cause: what ended the last call; then only who may begin a round goes on.
    """

    begun_at: float
    ended_at: float = 0.0
    busy_until: float = 0.0
    start_after: str = ""
    calls: int = 0
    objects: int = 0
    compacted: int = 0
    known: int = 0
    registered: int = 0
    younger: int = 0
    cause: str = ""

    def add(self, found: Reconciled) -> None:
        """Note what a call found."""
        self.objects += found.objects
        self.compacted += found.compacted
        self.known += found.known
        self.registered += found.registered
        self.younger += found.younger
        self.start_after = found.start_after


_decode = decoder(Round)


def go_on(
    given: Reconciliation, busy_seconds: float, *, begin: bool, take: Take | None = None
) -> Reconciled | None:
    """Continue the round of a stream, or begin one.

    Args:
        given: of this call; the round says where it starts.
        busy_seconds: how long this call may take.
        begin: a round, where the last one has ended or failed; otherwise only one that is under way
            is continued.
        take: of a round by an inventory.

    Returns:
        What this call found; None where there was nothing to do.

    Raises:
        IntegrityError: the state of the round is damaged; and as :func:`reconcile` and ``take``.
    """
    one = read_round(given.settings, given.store)
    if one is not None and one.busy_until > given.now:
        return None
    if one is None or one.ended_at or one.cause:
        if not begin:
            return None
        # One that failed before it compared anything takes what there is by now.
        if one is None or one.ended_at or not one.start_after:
            one = Round(begun_at=given.now)
    one.busy_until, one.calls, one.cause = given.now + busy_seconds, one.calls + 1, ""
    _write(one, given)
    try:
        found = _compared(one, given, take)
    except Exception as error:
        one.busy_until, one.cause = 0.0, f"{type(error).__name__}: {error}"
        _write(one, given)
        raise
    one.add(found)
    one.busy_until = 0.0
    one.ended_at = given.now if found.complete else 0.0
    _write(one, given)
    return found


def _compared(one: Round, given: Reconciliation, take: Take | None) -> Reconciled:
    given = replace(given, start_after=one.start_after)
    if take is None:
        return reconcile(given)
    _, stream = table_and_stream(given.settings)
    listing = take(layout.round_id(stream, one.begun_at))
    if listing is None:
        return Reconciled(complete=False, start_after=one.start_after)
    return reconcile(replace(given, inventory=listing))


def read_round(settings: Settings, store: ObjectStore) -> Round | None:
    """The last round of a stream; None where there was none yet.

    Raises:
        IntegrityError: a later version of this program wrote it, or it is damaged.
    """
    bucket, key = layout.reconcile_key(settings, table_and_stream(settings)[1])
    where = f"s3://{bucket}/{key}"
    try:
        body = store.get(bucket, key)
    except ObjectMissing:
        return None
    require_version(where, body, ROUND_VERSION)
    try:
        return _decode(body)
    except (msgspec.MsgspecError, ValueError) as error:
        raise IntegrityError(f"{where} is damaged: delete it ({error})") from error


def _write(one: Round, given: Reconciliation) -> None:
    place = layout.reconcile_key(given.settings, table_and_stream(given.settings)[1])
    leave_document(given.store, place, one, ROUND_VERSION)
