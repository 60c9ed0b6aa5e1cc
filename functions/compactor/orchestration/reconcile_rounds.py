"""Rounds of reconciliation: each goes through a whole source, in as many calls as it takes.

The progress of a round is stored in the stream's state, in ``reconcile/<stream>.json``:

    start_after   the key after which the next call resumes
    busy_until    until then a call is at work, unless it died

A call moves ``start_after`` forward only past keys that it has compared, beginning where an earlier
call stopped. Two concurrent calls may compare some keys twice, but never skip one.

"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from compactor.decoding import decoder
from compactor.documents import find_document, leave_document
from compactor.orchestration.reconcile import Reconciled, Reconciliation, reconcile
from compactor.ports import ObjectStore
from compactor.registry.streams import table_and_stream
from compactor.settings.settings import Settings

ROUND_VERSION = 1


class Round(msgspec.Struct, kw_only=True):
    """The progress of a round.

    Attributes:
        begun_at: UNIX seconds.
        ended_at: when the whole source had been compared, in UNIX seconds; 0.0 until then.
        busy_until: no other call resumes before this time, in UNIX seconds.
        start_after: the key after which the next call resumes.
        calls: how many calls worked on it.
        objects, compacted, known, registered, younger: see :class:`Reconciled`.
        cause: the error that ended the last call, if it failed. Such a round is continued only by
            a call that may begin one.
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
        """Add what a call found."""
        self.objects += found.objects
        self.compacted += found.compacted
        self.known += found.known
        self.registered += found.registered
        self.younger += found.younger
        self.start_after = found.start_after


_decode = decoder(Round)


def go_on(given: Reconciliation, busy_seconds: float, *, begin: bool) -> Reconciled | None:
    """Continue the round of a stream, or begin one.

    Args:
        given: the input of this call, except for ``start_after``, which the round determines.
        busy_seconds: how long this call may take.
        begin: begin a round if the last one has ended, or continue it if it failed; otherwise only
            a round under way is continued.

    Returns:
        What this call found; None if there was nothing to do.

    Raises:
        IntegrityError: the state of the round is damaged; also see :func:`reconcile`.
    """
    one = read_round(given.settings, given.store)
    if one is not None and one.busy_until > given.now:
        return None
    if one is None or one.ended_at or one.cause:
        if not begin:
            return None
        if one is None or one.ended_at:
            one = Round(begun_at=given.now)
    one.busy_until, one.calls, one.cause = given.now + busy_seconds, one.calls + 1, ""
    _write(one, given)
    try:
        found = reconcile(replace(given, start_after=one.start_after))
    except Exception as error:
        one.busy_until, one.cause = 0.0, f"{type(error).__name__}: {error}"
        _write(one, given)
        raise
    one.add(found)
    one.busy_until = 0.0
    one.ended_at = given.now if found.complete else 0.0
    _write(one, given)
    return found


def read_round(settings: Settings, store: ObjectStore) -> Round | None:
    """Return the last round of a stream; None if there was no round yet.

    Raises:
        IntegrityError: a later version of this program wrote it, or it is damaged.
    """
    place = settings.layout.reconcile(table_and_stream(settings)[1])
    return find_document(store, place, _decode, ROUND_VERSION, way_out="delete it")


def _write(one: Round, given: Reconciliation) -> None:
    place = given.settings.layout.reconcile(table_and_stream(given.settings)[1])
    leave_document(given.store, place, one, ROUND_VERSION)
