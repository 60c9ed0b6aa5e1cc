"""Whether a table is still the one that its log describes. Nothing is touched when it is not."""

from __future__ import annotations

from compactor.errors import IntegrityError, InvalidInput
from compactor.settings.settings import Settings
from compactor.settings.uris import parse_location
from compactor.sinks.table_catalog import TableState
from compactor.sinks.table_entries import TableLogState
from compactor.sinks.upserts import UpsertKey, require_same_key

_WAYS = (
    "bring the table back as it was, accept what it is now (compactor tables accept), or compact"
    " into another s3_destination_uri with a table of its own"
)


def require_table(log: TableLogState, table: str, key: UpsertKey | None = None) -> None:
    """Make sure that a log is about this table.

    Args:
        log: what it says.
        table: as the run's input names it.
        key: what makes records one row of it; None where they are data files.

    Raises:
        InvalidInput: it is about another one, or was begun with another key.
    """
    if log.table and log.table != table:
        accepted = f"{log.table}, which has outputs of this destination; or another destination"
        raise InvalidInput("table", table, accepted)
    if log.last:
        require_same_key(key, log.upsert, table)


def require_known(table: TableState | None, log: TableLogState, address: str) -> None:
    """Make sure that a table is what its log says.

    Args:
        table: as it was read before the last look at the log's entries, and after its first;
            None where there is none.
        log: what the log says.
        address: of the table, for a person.

    Raises:
        IntegrityError: it is not; names the way out.
    """
    if not log.last and table is not None and not table.last:
        return
    if table is None:
        if log.last:
            raise IntegrityError(
                f"{address} is gone: it was dropped or renamed, and has {log.outputs:,} outputs of"
                f" this destination: {_WAYS}"
            )
        return
    fault = fault_of(table, log)
    if fault:
        raise IntegrityError(f"{address} {fault}: {_WAYS}")
    if log.accepted > table.last:
        raise IntegrityError(
            f"{address} is being accepted, by entry {log.accepted} of the table log: if that was"
            " interrupted, run compactor tables accept again"
        )


def fault_of(table: TableState, log: TableLogState) -> str:
    """Why a table is not what its log says, in a phrase; empty when it is."""
    if log.uuid and table.uuid != log.uuid:
        return (
            f"is another table than before, {table.uuid} instead of {log.uuid}: it was made again"
        )
    if table.last > log.last:
        return (
            f"has everything up to entry {table.last} of the table log, which ends with"
            f" {log.last}: entries are gone, or another state has them"
        )
    if table.last < log.published:
        what = f"up to entry {table.last} alone" if table.last else "nothing of this log"
        return (
            f"was seen with entry {log.published} of the table log and now says that it has {what}:"
            " it was restored, or the property was removed"
        )
    return f"does not have what it says: {table.fault}" if table.fault else ""


def require_apart(table: TableState, settings: Settings) -> None:
    """Make sure that the table's own clean-up cannot reach outputs that no snapshot names yet.

    Of a Delta table the settings themselves say it, and were refused if need be.

    Raises:
        InvalidInput: the destination or the state lies in the table's location, or the other way
            round.
    """
    address = settings.table_address
    if address is not None and address.location is not None:
        return
    try:
        location = parse_location(_s3(table.location))
    except ValueError:
        accepted = f"a table on S3; {table.location} is where this one lies"
        raise InvalidInput("table", settings.table, accepted) from None
    places = (("s3_destination_uri", settings.destination), ("s3_state_uri", settings.state))
    for name, place in places:
        if place.overlaps(location):
            raise InvalidInput(
                name,
                getattr(settings, name),
                f"a prefix outside the table's location, {location.uri}: removing orphan files"
                " there deletes what no snapshot names yet",
            )


def require_writable(table: TableState, address: str) -> None:
    """Make sure that the table asks nothing of its writers that a commit of outputs cannot keep.

    Args:
        table: as it was read.
        address: of the table, for a person.

    Raises:
        InvalidInput: it does; says in one sentence what.
    """
    if table.refusal:
        raise InvalidInput("table", address, table.refusal)


def _s3(location: str) -> str:
    for scheme in ("s3a://", "s3n://"):
        if location.startswith(scheme):
            return "s3://" + location.removeprefix(scheme)
    return location
