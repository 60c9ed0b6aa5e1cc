"""Whether a partition's log has all that was ever written to it.

Entries are numbered from 1 and none is ever deleted, so a gap shows by itself. What is missing at
the end shows by what is there without it: a checkpoint that sums up more entries, or an output,
which is published only after its entry was written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial

from compactor.destination import Destination, OutputName, output_name
from compactor.errors import IntegrityError, InvalidInput
from compactor.log.identity import WAY_OUT, is_output_of_a_run
from compactor.model import SourceObject
from compactor.ports import ObjectStore

# Of a destination that others write to as well, each stem of theirs takes two HEADs.
_MOST_STEMS = 100


def require_unbroken(where: str, entries: Collection[int], known: Collection[int]) -> None:
    """Make sure that no entry is missing below the last one that is known.

    Args:
        where: the log, for a person.
        entries: sequences of those that are there.
        known: sequences that checkpoints and witnesses name.

    Raises:
        IntegrityError: names the first that is missing.
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
    """The outputs of a partition that can be read, and that its log does not name.

    One LIST for a thousand objects of its level, and what :func:`outputs_among` asks.

    Raises:
        InvalidInput: as there.
    """

    def listed() -> Iterator[SourceObject]:
        for page in store.list_level(destination.bucket, destination.prefix):
            yield from (o for o in page.objects if output_name(o.key) and not is_named(o))

    return outputs_among(listed, store)


def outputs_among(
    listed: Callable[[], Iterable[SourceObject]], store: ObjectStore
) -> list[SourceObject]:
    """The objects that are outputs of a run: by their names those of the usual stem.

    Others, which were renamed, are outputs by their metadata. Of each other stem the first and
    the last are looked at, and the rest only where one of these is an output.

    Args:
        listed: gives the objects, a second time where some of another stem are outputs.
        store: where they are.

    Raises:
        InvalidInput: too many stems for a look at each.
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
