"""Sources whose content a commit has already: told by size and CRC32, and found in the log."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from compactor import plain
from compactor.commit_log import Commit
from compactor.contents import UNREAD_MARK, mark_of
from compactor.manifest import ManifestRow
from compactor.model import Again, ObjectGroup, SourceObject
from compactor.ports import ObjectStore, SourceBody
from compactor.settings import Settings


def compared(
    body: SourceBody,
    content: plain.PlainContent,
    group: ObjectGroup,
    settings: Settings,
    store: ObjectStore,
) -> tuple[Again | None, plain.PlainContent]:
    """Whether a source looks like what was compacted of its key before; and its content.

    Long content is read to its end for that, and then given from its beginning again.

    Raises:
        SourceChanged, UnreadableSource: as reading it raises them.
    """
    source = body.source
    found = group.held.get(source.identity)
    marks = found - {UNREAD_MARK} if found else None
    if not marks:
        return None, content
    if not content.complete:
        for _ in content.chunks():
            continue
    if mark_of(content.size, content.crc32) in marks:
        return Again(source, 0, content.size, content.crc32), content
    if content.complete:
        return None, content
    again = next(store.read_sources([source]))
    if again.error is not None:
        raise again.error
    return None, plain.read(again, settings)


def found_in(
    again: Iterable[Again], commits: Iterable[Commit], published: Collection[int]
) -> tuple[Again, ...]:
    """The same with the newest commits that have their contents; without those that none has.

    Args:
        again: of one partition.
        commits: its valid commits, the newest first; no more are asked for than needed.
        published: sequences of those whose output is known to be readable. None of them can
            become void.
    """
    left = {(one.source.bucket, one.source.key): one for one in again}
    found: list[Again] = []
    for commit in commits:
        if not left:
            break
        if commit.sequence not in published:
            continue
        for row in commit.rows:
            one = left.get((row.source.bucket, row.source.key))
            if one is not None and _is_same(one, row):
                del left[row.source.bucket, row.source.key]
                told = replace(one, plain_bytes=row.plain_bytes, crc32=row.crc32)
                found.append(replace(told, of=commit.sequence))
        for earlier in commit.again:
            # Put twice more, with one ETag: what it was the first time, says the first of both.
            one = left.get((earlier.source.bucket, earlier.source.key))
            if one is not None and one.source.identity == earlier.source.identity:
                del left[earlier.source.bucket, earlier.source.key]
                found.append(replace(earlier, source=one.source))
    return tuple(found)


def put_again(source: SourceObject) -> Again:
    """A source that a commit names, and that was put once more: its ETag tells its content."""
    return Again(source, 0, None, None)


def _is_same(one: Again, row: ManifestRow) -> bool:
    if one.source.identity == row.source.identity:
        return True
    same = (one.plain_bytes, one.crc32) == (row.plain_bytes, row.crc32)
    return same and row.plain_bytes is not None and row.crc32 is not None
