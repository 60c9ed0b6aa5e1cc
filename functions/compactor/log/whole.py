"""Whether a partition's log has all that was ever written to it.

Entries are numbered from 1 and nobody deletes one, so a gap shows by itself. What is missing at
the end shows by what is there without it: a checkpoint that sums up more entries, or an output,
which is published only after its entry was written.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from compactor.destination import Destination
from compactor.errors import IntegrityError
from compactor.log.identity import WAY_OUT
from compactor.model import SourceObject
from compactor.ports import ObjectStore


def require_unbroken(where: str, entries: Collection[int], told: Collection[int]) -> None:
    """Make sure that no entry is missing below the last one that anything tells of.

    Args:
        where: the log, for a person.
        entries: sequences of those that are there.
        told: sequences that checkpoints and witnesses tell of.

    Raises:
        IntegrityError: names the first that is missing.
    """
    last = max((*entries, *told), default=0)
    missing = [number for number in range(1, last + 1) if number not in entries]
    if missing:
        more = f" nor {len(missing) - 1} others" if len(missing) > 1 else ""
        raise IntegrityError(
            f"commit log {where} has no entry {missing[0]}{more}, but was {last} entries long: it"
            f" was changed by hand; {WAY_OUT}"
        )


def outputs_there(store: ObjectStore, destination: Destination) -> list[SourceObject]:
    """The outputs of a partition that can be read, by their names; one LIST for a thousand."""
    pages = store.list_objects(destination.bucket, destination.stem_prefix)
    return [one for page in pages for one in page if destination.is_output(one.key)]


def not_whole(where: str, entries: int, unnamed: Sequence[SourceObject]) -> IntegrityError:
    """What to raise where outputs are there that no entry of their partition's log names."""
    first = unnamed[0]
    rest = len(unnamed) - 1
    more, them = (f" and {rest:,} more outputs", "them") if rest else ("", "it")
    has = f"ends with entry {entries}" if entries else "is empty"
    return IntegrityError(
        f"commit log {where} {has}, and does not name s3://{first.bucket}/{first.key}{more}: what"
        f" is in {them} would be compacted again. Entries are gone, or another s3_state_uri has"
        f" them; {WAY_OUT}"
    )
