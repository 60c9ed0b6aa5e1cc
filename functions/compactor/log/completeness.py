"""Checks that a partition's log still has every entry ever written to it.

Entries are numbered from 1 and never deleted, so a missing entry leaves a gap. Entries missing from
the end are detected by what remains: a checkpoint that covers more entries, or an output, which is
published only after its entry was written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial

from compactor.destination import Destination, OutputName, output_name
from compactor.errors import IntegrityError, InvalidInput
from compactor.log.identity import WAY_OUT, is_output_of_a_run
from compactor.model import SourceObject
from compactor.ports import ObjectStore

# In a destination that others also write to, each foreign stem costs two HEADs.
_MOST_STEMS = 100


def require_unbroken(where: str, entries: Collection[int], known: Collection[int]) -> None:
    """Check that no entry is missing up to the last known one.

    Args:
        where: the log's location, for messages.
        entries: sequences of the existing entries.
        known: sequences that checkpoints and witnesses name.

    Raises:
        IntegrityError: names the first missing entry.
    """
    last = max((*entries, *known), default=0)
    missing = [number for number in range(1, last + 1) if number not in entries]
    if missing:
        more = f" nor {len(missing) - 1} others" if len(missing) > 1 else ""
        raise IntegrityError(
            f"commit log {where} has no entry {missing[0]}{more}, but was {last} entries long: it"
            f" was changed by hand; {WAY_OUT}"
        )


def unnamed_outputs(
    store: ObjectStore, destination: Destination, is_named: Callable[[SourceObject], bool]
) -> list[SourceObject]:
    """Return the readable outputs of a partition that its log does not name.

    Costs one LIST per thousand objects of its level, and the HEADs of :func:`outputs_among`.

    Raises:
        InvalidInput: as :func:`outputs_among`.
    """

    def listed() -> Iterator[SourceObject]:
        for page in store.list_level(destination.bucket, destination.prefix):
            yield from (o for o in page.objects if output_name(o.key) and not is_named(o))

    return outputs_among(listed, store)


def outputs_among(
    listed: Callable[[], Iterable[SourceObject]], store: ObjectStore
) -> list[SourceObject]:
    """Return the listed objects that are outputs of a run.

    Names with the usual stem are accepted as they are. Objects with another stem were renamed, or
    are not outputs; their metadata decides. The first and last of each stem are checked, and the
    rest only if one of these is an output.

    Args:
        listed: returns the objects; called again if some with another stem are outputs.
        store: the store that holds them.

    Raises:
        InvalidInput: there are too many stems to check each.
    """
    own: list[SourceObject] = []
    ends: dict[str, tuple[SourceObject, SourceObject]] = {}
    for one, found in _names(listed()):
        if found.is_usual:
            own.append(one)
            continue
        stem = found.stem
        ends[stem] = (ends[stem][0] if stem in ends else one, one)
        if len(ends) > _MOST_STEMS:
            accepted = (
                f"a prefix with fewer objects of others that are named as outputs are, such as"
                f" s3://{one.bucket}/{one.key}: more than {_MOST_STEMS} stems are not looked at"
            )
            raise InvalidInput("s3_destination_uri", f"s3://{one.bucket}", accepted)
    is_output = partial(is_output_of_a_run, store)
    others = {name for name, pair in ends.items() if any(map(is_output, dict.fromkeys(pair)))}
    if others:
        own += [one for one, name in _names(listed()) if name.stem in others and is_output(one)]
    return own


def _names(listed: Iterable[SourceObject]) -> Iterator[tuple[SourceObject, OutputName]]:
    for one in listed:
        name = output_name(one.key)
        if name is not None:
            yield one, name


def not_whole(where: str, entries: int, unnamed: Sequence[SourceObject]) -> IntegrityError:
    """Return the error for outputs that no entry of their partition's log names."""
    first = unnamed[0]
    rest = len(unnamed) - 1
    more, them = (f" and {rest:,} more outputs", "them") if rest else ("", "it")
    has = f"ends with entry {entries}" if entries else "is empty"
    return IntegrityError(
        f"commit log {where} {has}, and does not name s3://{first.bucket}/{first.key}{more}: what"
        f" is in {them} would be compacted again. Entries are gone, or another s3_state_uri has"
        f" them; {WAY_OUT}"
    )
