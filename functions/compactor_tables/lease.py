"""Who works on a table: one run at a time, for a time.

A lease is one object a table. It is taken by If-None-Match where there was none, and by If-Match
from one that ended, was given back, or is of the same run: so a run that was stopped goes on when
it is started again by its own name, and a run that died blocks no other for longer than its lease
says; where its process was on this machine, not at all. A store that ignores If-Match on PutObject
lets two runs take a lease that has ended at the very same moment; the tables' own commits then keep
them apart.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from compactor.decoding import decoded, decoder, numbered
from compactor.errors import AlreadyExists, CompactorError, ObjectMissing, SourceChanged
from compactor.model import SourceObject
from compactor.ports import Clock, ObjectStore
from compactor.settings.tables import TableAddress
from compactor.settings.uris import S3Uri
from compactor_tables import document_keys as places
from compactor_tables.lease_holder import Holder, has_ended

LEASE_VERSION = 1
#: The longest job may run twelve hours, as EMR Serverless ends it by itself; and verifies, after.
LEASE_SECONDS = 13 * 3_600.0
# A run that takes a lease that has ended may have a clock that is ahead.
_GRACE_SECONDS = 60.0
_TRIES = 5
# As many in a row, and something else is the matter.
_MOST_DIED = 20


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """Who works on a table.

    Attributes:
        table: its address.
        run_id: of the run that has it; empty once it was given back.
        engine: that does the work.
        since, until: UNIX seconds.
        died: runs that had it before, have not given it back, and that no history has yet.
        holder: the process of the run; None where that is no process of a machine.
    """

    table: str
    run_id: str
    engine: str = ""
    since: float = 0.0
    until: float = 0.0
    died: tuple[str, ...] = ()
    holder: Holder | None = None

    def keeps_out(self, run_id: str, now: float) -> bool:
        """Whether another run must wait: not for a process of this machine that has ended."""
        ours = not self.run_id or self.run_id == run_id or now >= self.until + _GRACE_SECONDS
        return not ours and not (self.holder is not None and has_ended(self.holder))


class LeaseHeld(CompactorError):
    """Another run works on the table: leave it, and come again."""

    def __init__(self, lease: Lease) -> None:
        by = f", {lease.holder.line}" if lease.holder is not None else ""
        super().__init__(
            f"run {lease.run_id} works on {lease.table} with {lease.engine}{by}; if it has ended,"
            f" --name {lease.run_id} resumes it"
        )
        self.lease = lease


class LeaseLost(CompactorError):
    """The table is not this run's any more: begin nothing new, and touch nothing."""


_decode = decoder(Lease)


class Leases:
    """The leases of one state.

    Args:
        store: honours If-None-Match and If-Match on PutObject.
        state: where they lie.
        clock: decides when they end.
    """

    def __init__(self, store: ObjectStore, state: S3Uri, clock: Clock) -> None:
        self._store, self._state, self._clock = store, state, clock

    def look(self, table: TableAddress) -> Lease | None:
        """The lease of a table as it stands; None where there never was one."""
        found = self._read(table)
        return found[0] if found else None

    def take(
        self,
        table: TableAddress,
        run_id: str,
        *,
        engine: str,
        holder: Holder | None = None,
        seconds: float = LEASE_SECONDS,
    ) -> Lease:
        """Take a table, or keep it, from now for so many seconds.

        Args:
            table: that is taken.
            run_id: of the run.
            engine: that does the work.
            holder: the process of the run, where that is one.
            seconds: after which the lease ends by itself.

        Raises:
            LeaseHeld: another run has it.
        """
        for _ in range(_TRIES):
            found, now = self._read(table), self._clock.now()
            if found is not None and found[0].keeps_out(run_id, now):
                raise LeaseHeld(found[0])
            ours = found is not None and found[0].run_id == run_id
            lease = Lease(
                table=table.text,
                run_id=run_id,
                engine=engine,
                since=found[0].since if found and ours else now,
                until=now + seconds,
                died=_died(found[0], run_id) if found else (),
                holder=holder,
            )
            if self._written(table, lease, found[1] if found else None):
                return lease
        raise LeaseHeld(_somebodys(table))

    def dead(self, table: TableAddress, run_id: str) -> tuple[str, ...]:
        """Runs that died with a table, and that no history has yet, the oldest first.

        Args:
            table: that they had.
            run_id: of the caller.
        """
        lease = self.look(table)
        if lease is None or lease.keeps_out(run_id, self._clock.now()):
            # The run that works on it now will record them.
            return ()
        return _died(lease, run_id)

    def release(self, table: TableAddress, run_id: str, recorded: Collection[str] = ()) -> bool:
        """Give a table back; False where another run has it, or none.

        Args:
            table: that was taken.
            run_id: of the run that gives it back.
            recorded: runs that died with it, and that the history has by now.
        """
        for _ in range(_TRIES):
            found = self._read(table)
            if found is None or not _is_to_free(found[0], run_id, recorded):
                return False
            died = tuple(one for one in found[0].died if one not in recorded)
            now = self._clock.now()
            free = msgspec.structs.replace(found[0], run_id="", until=now, died=died)
            if self._written(table, free, found[1]):
                return True
        return False

    def require(self, table: TableAddress, run_id: str) -> None:
        """Do nothing while the table is this run's.

        Raises:
            LeaseLost: it is not, or not any more.
        """
        self._require(self.look(table), table, run_id)

    def require_no_other(self, table: TableAddress, run_id: str) -> None:
        """Do nothing while no other run has the table, and this one's lease, if any, goes on.

        For a caller that may also be started by hand, and then has none.

        Raises:
            LeaseLost: another run has it, or this one's lease has ended.
        """
        lease = self.look(table)
        if lease is None or not lease.run_id:
            return
        if lease.run_id == run_id or lease.keeps_out(run_id, self._clock.now()):
            self._require(lease, table, run_id)

    def _require(self, lease: Lease | None, table: TableAddress, run_id: str) -> None:
        if lease is None or lease.run_id != run_id or self._clock.now() >= lease.until:
            state = f"run {lease.run_id} has it" if lease and lease.run_id else "no run has it"
            if lease is not None and lease.run_id == run_id:
                state = "its lease has ended"
            raise LeaseLost(f"{table.text} is not the table of run {run_id} any more: {state}")

    def _read(self, table: TableAddress) -> tuple[Lease, str] | None:
        """A lease, and the ETag that it has."""
        bucket, key = places.lease_key(self._state, table)
        for _ in range(_TRIES):
            head = self._store.head(bucket, key)
            if head is None:
                return None
            pinned = SourceObject(bucket, key, head.etag, head.size, head.last_modified)
            try:
                body = self._store.read_range(pinned, 0, head.size)
            except (SourceChanged, ObjectMissing):
                continue
            return decoded(_decode, f"s3://{bucket}/{key}", body, LEASE_VERSION), head.etag
        raise LeaseHeld(_somebodys(table))

    def _written(self, table: TableAddress, lease: Lease, etag: str | None) -> bool:
        """Whether the lease stands; not where another writer was first since it was read."""
        bucket, key = places.lease_key(self._state, table)
        body = msgspec.json.encode(numbered(lease, LEASE_VERSION))
        try:
            if etag is None:
                self._store.create(bucket, key, body, content_type="application/json")
            else:
                self._store.replace(bucket, key, body, etag=etag, content_type="application/json")
        except (AlreadyExists, ObjectMissing):
            return False
        return True


def _died(lease: Lease, run_id: str) -> tuple[str, ...]:
    """What a lease that is free, or has ended, says of runs other than this one."""
    runs = dict.fromkeys((*lease.died, lease.run_id))
    return tuple(one for one in runs if one not in ("", run_id))[-_MOST_DIED:]


def _is_to_free(lease: Lease, run_id: str, recorded: Collection[str]) -> bool:
    if lease.run_id:
        return lease.run_id == run_id or lease.run_id in recorded
    return any(one in recorded for one in lease.died)


def _somebodys(table: TableAddress) -> Lease:
    """A lease that changed each time it was looked at."""
    return Lease(table=table.text, run_id="of another writer", engine="something")
