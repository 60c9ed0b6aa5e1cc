"""What is done with one group before the commit, wherever it is done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from compactor.destination import Destination
from compactor.errors import CommitConflict, ObjectMissing, TransientStoreError
from compactor.formats import Decide
from compactor.log.entries import Commit, Output
from compactor.model import ObjectGroup
from compactor.outputs.compact import compact
from compactor.outputs.group_reading import ReadingTime
from compactor.outputs.pending import PendingOutput
from compactor.outputs.second_pass import read_again
from compactor.outputs.verify import check_pending
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings


def store_group(
    group: ObjectGroup,
    settings: Settings,
    store: ObjectStore,
    destination: Destination,
    time: ReadingTime | None = None,
    *,
    decide: Decide,
) -> PendingOutput:
    """Steps 1 to 3 of the write order: read, store and verify one group, or what of it fits a time.

    An output in which a second reader sees other records than in its sources is dropped, and
    these are quarantined.

    Raises:
        SourceChanged: a source is not what was listed; nothing was stored.
        CommitConflict: the upload was dropped, which no run does before another one has
            published this very output.
        IntegrityError: what was stored is not what was read; it is dropped.
        TransientStoreError: the store does not answer; likewise, if that was possible.
    """
    try:
        pending = compact(group, settings, store, destination, time, decide=decide)
    except ObjectMissing as error:
        raise CommitConflict(f"group {group.id} was published meanwhile: {error}") from error
    with dropping(pending.output, store):
        check_pending(pending)
        differences = read_again(pending)
    return withhold(pending, differences, store)


def withhold(pending: PendingOutput, differences: str, store: ObjectStore) -> PendingOutput:
    """What is to be committed of a group, of which a second reader saw these differences."""
    if not differences:
        return pending
    drop(pending.output, store)
    return pending.withheld(differences)


def draft_of(
    pending: PendingOutput, run_id: str, now: float, replaces: int | None = None
) -> Commit | None:
    """The commit that would publish this; None where there is nothing to record."""
    draft = pending.draft(run_id, now, replaces)
    return None if draft.empty else draft


@contextmanager
def dropping(
    output: Output | None, store: ObjectStore, errors: tuple[type[Exception], ...] = (Exception,)
) -> Iterator[None]:
    """:func:`drop` an output when one of these errors passes."""
    try:
        yield
    except errors:
        drop(output, store)
        raise


def drop(output: Output | None, store: ObjectStore) -> None:
    """Abort the upload of an output that will not be committed.

    Where that fails, as whatever led here may have, clean-up aborts it after some days.
    """
    if output is not None:
        with suppress(TransientStoreError):
            store.abort_upload(output.bucket, output.key, output.upload_id)
