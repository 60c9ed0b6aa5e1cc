"""Undo: take a published commit back while all of its sources still stand.

    copy the output out of the readers' sight -> let no table of readers show it
        -> look at the sources -> delete the output -> look at the sources once more
        -> make the commit void in the log

Between the two last steps the records are in their sources alone, and the log still names them,
so that nobody compacts them; after the last they are candidates again. Every step may run twice:
whoever is killed on the way, the next one goes on. Void first and delete then would let a run in
between compact the sources beside an output that still shows them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from os.path import commonprefix

from compactor import layout
from compactor.codecs.encoders import encoder
from compactor.destination import Destination
from compactor.errors import (
    AlreadyExists,
    IntegrityError,
    ObjectMissing,
    SourceChanged,
)
from compactor.log.entries import Commit, Output
from compactor.log.log import CommitLog
from compactor.model import ARCHIVED_CLASSES, Compression, ObjectGroup, SourceObject
from compactor.outputs.pending import OutputWriter
from compactor.outputs.publish import is_published
from compactor.ports import ObjectStore
from compactor.settings.uris import S3Uri


@dataclass(frozen=True, slots=True)
class Undoing:
    """One partition in which commits are taken back.

    Attributes:
        state: where all state lies.
        path: of the partition.
        through: sequence of the last entry of the log that was looked at when commits were chosen.
        unseen: called before an output is deleted, with the sequence of its commit: whoever reads
            it by its name is led elsewhere.
    """

    store: ObjectStore
    state: S3Uri
    path: str
    log: CommitLog
    through: int
    unseen: Callable[[int], None] = lambda sequence: None

    def kept_at(self, commit: Commit) -> str:
        """Key, in the state's bucket, under which the output of a commit is kept."""
        name = commit.output.key.rpartition("/")[2] if commit.output is not None else ""
        return self.state.prefix + layout.withdrawn_prefix(self.path, commit.sequence) + name


def changed_source(commit: Commit, store: ObjectStore) -> str:
    """Key of a source that is not what was compacted, or cannot be read now; empty without one.

    Raises:
        InvalidInput: the bucket of the sources may not be listed.
    """
    left = {row.source.key: row.source.etag for row in commit.rows}
    prefix = commonprefix(list(left))  # noqa: RUF071 - of characters, for keys are no paths
    for page in store.list_objects(commit.source_bucket, prefix):
        if not left:
            break
        for one in page:
            archived = one.storage_class in ARCHIVED_CLASSES and not one.restored_until
            if left.get(one.key) == one.etag and not archived:
                del left[one.key]
    return min(left, default="")


def take_away(commit: Commit, work: Undoing) -> None:
    """Let readers see a published output no more; a copy of it is kept below the state.

    Its commit stands: the records are in their sources alone, and nobody compacts them, until an
    entry with another output replaces it. Safe to run twice, and by two runs at once.

    Raises:
        SourceChanged: a source is not what was compacted; the output is where it was.
        IntegrityError: another object stands at the output's key, or it cannot be deleted.
    """
    _require_sources(commit, work.store)
    if commit.output is not None:
        _take_away(commit, commit.output, work)


def from_kept(
    commit: Commit, group_id: str, destination: Destination, work: Undoing
) -> Output | None:
    """A pending output with the bytes that were taken away; None where there is no copy.

    For when a source changed after :func:`take_away` had looked at it: some of its records are
    nowhere else.

    Raises:
        IntegrityError: the copy has not the size that the commit says.
    """
    output, kept = commit.output, (work.state.bucket, work.kept_at(commit))
    if output is None or work.store.head(*kept) is None:
        return None
    key = output.key.replace(commit.group_id, group_id)
    metadata = partial(destination.metadata, ObjectGroup(group_id, ()))
    writer = OutputWriter(
        work.store, output.bucket, key, encoder(Compression.NONE), metadata=metadata
    )
    try:
        _fill(writer, work.store.open(*kept))
        upload_id, parts = writer.finish()
        if writer.size != output.size:
            raise IntegrityError(f"s3://{'/'.join(kept)} is not what its commit says")
    except BaseException:
        writer.abort()
        raise
    return replace(output, key=key, upload_id=upload_id, parts=parts, crc32=writer.crc32)


def forget_kept(commit: Commit, work: Undoing) -> None:
    """Delete the copy of an output whose records are in another one by now, as far as allowed."""
    bucket, key = work.state.bucket, work.kept_at(commit)
    head = work.store.head(bucket, key)
    if head is not None:
        one = SourceObject(bucket, key, head.etag, head.size, head.last_modified)
        work.store.delete_sources([one])


def _require_sources(commit: Commit, store: ObjectStore) -> None:
    key = changed_source(commit, store)
    if key:
        etag = next(row.source.etag for row in commit.rows if row.source.key == key)
        raise SourceChanged(key, etag, "gone, archived or another one")


def _take_away(commit: Commit, output: Output, work: Undoing) -> None:
    """Let readers see the output no more; a copy of it is kept below the state."""
    store = work.store
    # Whoever was to publish it cannot do so behind our back.
    store.abort_upload(output.bucket, output.key, output.upload_id)
    if not is_published(output, store):
        return
    _copy(output, (output.bucket, output.key), (work.state.bucket, work.kept_at(commit)), store)
    work.unseen(commit.sequence)
    _require_sources(commit, store)
    head = store.head(output.bucket, output.key)
    if head is None:
        return
    one = SourceObject(output.bucket, output.key, head.etag, head.size, head.last_modified)
    for refused in store.delete_sources([one]).refused:
        raise IntegrityError(f"s3://{output.bucket}/{output.key} stays: {refused.reason}")


def _copy(
    output: Output, source: tuple[str, str], target: tuple[str, str], store: ObjectStore
) -> None:
    """Copy an output, checked against its commit as it passes; nothing is written over."""
    if store.head(*target) is not None:
        _require_equal(output, target, store)
        return
    writer = OutputWriter(store, *target, encoder(Compression.NONE))
    try:
        _fill(writer, store.open(*source))
        upload_id, parts = writer.finish()
        if writer.size != output.size or output.crc32 not in (None, writer.crc32):
            raise IntegrityError(f"s3://{'/'.join(source)} is not what its commit says")
        store.complete_upload(*target, upload_id, parts, crc32=writer.crc32)
    except (AlreadyExists, ObjectMissing):
        # Somebody else's copy, or our own whose answer was lost.
        writer.abort()
        _require_equal(output, target, store)
    except BaseException:
        writer.abort()
        raise


def _fill(writer: OutputWriter, pieces: Iterable[bytes]) -> None:
    for piece in pieces:
        writer.write(piece)


def _require_equal(output: Output, target: tuple[str, str], store: ObjectStore) -> None:
    head = store.head(*target)
    sums = (None, output.crc32) if output.crc32 is not None else (None, head and head.crc32)
    if head is None or head.size != output.size or head.crc32 not in sums:
        raise IntegrityError(f"another object stands at s3://{'/'.join(target)}")
