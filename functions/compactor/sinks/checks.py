"""Checks that a table is still the one that its log describes. Nothing is written here."""

from __future__ import annotations

from compactor.errors import IntegrityError, InvalidInput
from compactor.settings.settings import Settings
from compactor.settings.uris import parse_location
from compactor.sinks.table_catalog import TableState
from compactor.sinks.table_entries import TableLogState
from compactor.sinks.upserts import UpsertKey, require_same_key

_WAYS = (
    "bring the table back as it was, accept what it is now (compactor repair table), or compact"
    " into another s3_destination_uri with a table of its own"
)


def require_table(log: TableLogState, table: str, key: UpsertKey | None = None) -> None:
    """Check that a log is about this table.

    Args:
        log: state of the table log.
        table: as the run's input names it.
        key: the table's key; None if outputs are its data files.

    Raises:
        InvalidInput: the log is about another table, or was started with another key.
    """
    if log.table and log.table != table:
        accepted = f"{log.table}, which has outputs of this destination; or another destination"
        raise InvalidInput("table", table, accepted)
    if log.last:
        require_same_key(key, log.upsert, table)


def require_known(table: TableState | None, log: TableLogState, address: str) -> None:
    """Check that a table matches its log.

    Args:
        table: read after the log was first loaded, and before it was last refreshed; None if
            there is no table.
        log: state of the table log.
        address: of the table, for messages.

    Raises:
        IntegrityError: it does not match; the message says what to do.
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
            " interrupted, run compactor repair table again"
        )


def fault_of(table: TableState, log: TableLogState) -> str:
    """Return why a table does not match its log, in a phrase; empty if it does."""
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
    """Check that the table's own clean-up cannot reach outputs that no snapshot names yet.

    A Delta table's location is part of the settings, which were checked when they were parsed.

    Raises:
        InvalidInput: the table's location overlaps the destination or the state.
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
    """Check that the table requires nothing of its writers that this program does not support.

    Args:
        table: as it was read.
        address: of the table, for messages.

    Raises:
        InvalidInput: it does; the message names the requirement.
    """
    if table.refusal:
        raise InvalidInput("table", address, table.refusal)


def _s3(location: str) -> str:
    for scheme in ("s3a://", "s3n://"):
        if location.startswith(scheme):
            return "s3://" + location.removeprefix(scheme)
    return location
