"""The history of a table on S3: one small document per look, and a sum of the older ones.

    tables/<table id>/history/20261122T191530Z-<run id>+measured.json
    tables/<table id>/history/20261122T194502Z-<run id>+maintained.json
    tables/<table id>/history/20261120T020000Z~sum.json

If there are more than FOLDED_AT single documents, all but the newest KEPT go into a sum, which has
one look per day and stretch between two compactions. A sum holds everything up to the time in its
name, so a reader takes the newest sum and the younger documents. A sum is created before anything
is deleted, and never overwritten: two concurrent processes make two sums, either of which is right.
A sum has at most MOST_SUMMED looks; the oldest are dropped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from compactor.decoding import decoded, decoder, numbered
from compactor.errors import AlreadyExists, ObjectMissing
from compactor.model import SourceObject
from compactor.ports import ObjectStore
from compactor.settings.tables import TableAddress
from compactor.settings.uris import S3Uri
from compactor_tables import document_keys as places
from compactor_tables.observations import History, Look, by_day, in_order

HISTORY_VERSION = 1
FOLDED_AT, KEPT, MOST_SUMMED = 60, 20, 2_000
# Younger looks are not summed up: a look with an earlier time may still be written next to them.
_SETTLED_SECONDS = 3_600.0
_STAMP = "%Y%m%dT%H%M%SZ"
_NAME = re.compile(r"(\d{8}T\d{6}Z)(?:~sum|-.+\+(?:measured|maintained))\.json", re.DOTALL)


class Looks(msgspec.Struct):
    """A document of the history: one look, or those of a sum.

    Attributes:
        table: its address.
        looks: in order of time.
    """

    table: str
    looks: list[Look]


_decode = decoder(Looks)


@dataclass(frozen=True, slots=True)
class _Listed:
    """The documents of a history.

    Attributes:
        total: the newest sum, or None.
        single: single looks since.
        replaced: documents that the sum includes.
    """

    total: SourceObject | None
    single: Sequence[SourceObject]
    replaced: Sequence[SourceObject]


def keep_look(look: Look, state: S3Uri, table: TableAddress, store: ObjectStore) -> None:
    """Store a look in the history.

    Args:
        look: with the id of its run.
        state: of the run.
        table: that was looked at.
        store: where the state lies.
    """
    bucket, prefix = places.history_prefix(state, table)
    kind = "measured" if look.maintained is None else "maintained"
    key = f"{prefix}{_stamp(look.at)}-{look.run_id}+{kind}.json"
    store.put(bucket, key, _encoded(table, [look]), content_type="application/json")


def read_history(state: S3Uri, table: TableAddress, store: ObjectStore) -> History:
    """Return all looks at a table, by at most :data:`FOLDED_AT` and a few requests.

    Raises:
        IntegrityError: a document is damaged, or of a later version of this program.
    """
    bucket, prefix = places.history_prefix(state, table)
    for _ in range(2):
        with suppress(ObjectMissing):
            return _read(_list(bucket, prefix, store), store)
    # Documents vanish while another process folds them; a third attempt sees the result.
    return _read(_list(bucket, prefix, store), store)


def fold_history(state: S3Uri, table: TableAddress, now: float, store: ObjectStore) -> int:
    """Sum up the older looks, if there are enough. Safe at any time, also concurrently.

    Args:
        state: of the run.
        table: whose history it is.
        now: UNIX seconds.
        store: where the state lies, with traits that are safe for deletes.

    Returns:
        The number of deleted documents.

    Raises:
        IntegrityError: a document is damaged, or of a later version of this program.
    """
    bucket, prefix = places.history_prefix(state, table)
    listed = _list(bucket, prefix, store)
    old = list(listed.single[:-KEPT])
    while old and _time_of(old[-1]) > now - _SETTLED_SECONDS:
        old.pop()
    if len(listed.single) <= FOLDED_AT or not old:
        return _delete(listed.replaced, store)
    # Includes all looks of its last second, because a sum holds everything up to its time.
    last = _stamp_of(old[-1])
    old = [one for one in listed.single if _stamp_of(one) <= last]
    try:
        looks = _read(_Listed(listed.total, old, ()), store).looks
    except ObjectMissing:
        return 0
    body = _encoded(table, by_day(looks)[-MOST_SUMMED:])
    with suppress(AlreadyExists):
        store.create(bucket, f"{prefix}{last}~sum.json", body, content_type="application/json")
    gone = [*listed.replaced, *old, *([listed.total] if listed.total else [])]
    return _delete(gone, store)


def _delete(gone: Sequence[SourceObject], store: ObjectStore) -> int:
    return len(gone) - len(store.delete_sources(gone).refused) if gone else 0


def _list(bucket: str, prefix: str, store: ObjectStore) -> _Listed:
    ours = [
        one
        for page in store.list_objects(bucket, prefix)
        for one in page
        if _NAME.fullmatch(one.key, len(prefix))
    ]
    sums = [one for one in ours if one.key.endswith("~sum.json")]
    total = sums[-1] if sums else None
    until = _stamp_of(total) if total else ""
    single = [one for one in ours if _stamp_of(one) > until]
    replaced = [one for one in ours if one is not total and _stamp_of(one) <= until]
    return _Listed(total, single, replaced)


def _read(listed: _Listed, store: ObjectStore) -> History:
    looks: list[Look] = []
    for one in [*([listed.total] if listed.total else []), *listed.single]:
        where = f"s3://{one.bucket}/{one.key}"
        looks += decoded(_decode, where, store.get(one.bucket, one.key), HISTORY_VERSION).looks
    return History(in_order(looks))


def _encoded(table: TableAddress, looks: list[Look]) -> bytes:
    return msgspec.json.encode(numbered(Looks(table.text, looks), HISTORY_VERSION))


def _stamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime(_STAMP)


def _stamp_of(one: SourceObject) -> str:
    name = one.key.rpartition("/")[2]
    return name[: len("20261122T191530Z")]


def _time_of(one: SourceObject) -> float:
    return datetime.strptime(_stamp_of(one), _STAMP).replace(tzinfo=UTC).timestamp()
