"""Reads, stores and verifies one group before its commit; shared by workers and Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from compactor.destination import Destination
from compactor.errors import CommitConflict, ObjectMissing, TransientStoreError
from compactor.log.entries import Commit, Output
from compactor.model import ObjectGroup
from compactor.outputs.compact import compact
from compactor.outputs.group_reading import ReadingTime
from compactor.outputs.pending import PendingOutput
from compactor.outputs.verify import check_pending
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings


def store_group(
    group: ObjectGroup,
    settings: Settings,
    store: ObjectStore,
    destination: Destination,
    time: ReadingTime | None = None,
) -> PendingOutput:
    """Read, store and verify one group: steps 1 to 3 of the write order.

    With ``time``, only sources that fit into it are read.

    Raises:
        SourceChanged: a source differs from its listing; nothing was stored.
        CommitConflict: the upload was dropped, which a run does only after another one has
            published the same output.
        IntegrityError: what was stored is not what was read; the output is dropped.
        TransientStoreError: the store did not answer; the output is dropped, if possible.
    """
    try:
        pending = compact(group, settings, store, destination, time)
    except ObjectMissing as error:
        raise CommitConflict(f"group {group.id} was published meanwhile: {error}") from error
    with dropping(pending.output, store):
        check_pending(pending)
    return pending


def draft_of(
    pending: PendingOutput, run_id: str, now: float, replaces: int | None = None
) -> Commit | None:
    """Return the commit that would publish the output; None if there is nothing to record."""
    draft = pending.draft(run_id, now, replaces)
    return None if draft.empty else draft


@contextmanager
def dropping(
    output: Output | None, store: ObjectStore, errors: tuple[type[Exception], ...] = (Exception,)
) -> Iterator[None]:
    """:func:`drop` an output if the block raises one of these errors."""
    try:
        yield
    except errors:
        drop(output, store)
        raise


def drop(output: Output | None, store: ObjectStore) -> None:
    """Abort the upload of an output that will not be committed.

    If the abort fails, possibly for the same reason, clean-up aborts the upload after some days.
    """
    if output is not None:
        with suppress(TransientStoreError):
            store.abort_upload(output.bucket, output.key, output.upload_id)
