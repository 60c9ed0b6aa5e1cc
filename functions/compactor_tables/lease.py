"""Leases on tables: one run at a time works on a table, for a limited time.

A lease is one object per table. It is created with If-None-Match, and replaced with If-Match if it
has expired, was released, or belongs to the same run. So a stopped run resumes if it is started
again under its own name, and a dead run blocks others only until its lease expires.
"""

from __future__ import annotations

import msgspec

from compactor.decoding import decoded, decoder, numbered
from compactor.errors import AlreadyExists, CompactorError, ObjectMissing, SourceChanged
from compactor.model import SourceObject
from compactor.ports import Clock, ObjectStore
from compactor.settings.tables import TableAddress
from compactor.settings.uris import S3Uri
from compactor_tables import document_keys as places

LEASE_VERSION = 1
#: EMR Serverless ends a job after twelve hours by default; verification comes after that.
LEASE_SECONDS = 13 * 3_600.0
# Tolerance for the clock of a run that takes an expired lease, which may be ahead.
_GRACE_SECONDS = 60.0
_TRIES = 5


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """The right of a run to work on a table.

    Attributes:
        table: its address.
        run_id: of the run that holds the lease; empty once it was released.
        engine: that does the work.
        since, until: UNIX seconds.
        maintained: when maintenance of the table last ended, UNIX seconds; None for never.
    """

    table: str
    run_id: str
    engine: str = ""
    since: float = 0.0
    until: float = 0.0
    maintained: float | None = None

    def keeps_out(self, run_id: str, now: float) -> bool:
        """Return whether a run must wait for this lease."""
        return self.run_id not in ("", run_id) and now < self.until + _GRACE_SECONDS


class LeaseHeld(CompactorError):
    """Another run works on the table. The caller leaves the table, and may try again later."""

    def __init__(self, lease: Lease) -> None:
        super().__init__(
            f"run {lease.run_id} works on {lease.table} with {lease.engine}; if it has ended,"
            f" --name {lease.run_id} resumes it"
        )
        self.lease = lease


class LeaseLost(CompactorError):
    """This run no longer holds the table. The caller must begin nothing new, and change nothing."""


_decode = decoder(Lease)


class Leases:
    """The leases of one state.

    Args:
        store: honours If-None-Match and If-Match on PutObject.
        state: where they lie.
        clock: decides when they expire.
    """

    def __init__(self, store: ObjectStore, state: S3Uri, clock: Clock) -> None:
        self._store, self._state, self._clock = store, state, clock

    def look(self, table: TableAddress) -> Lease | None:
        """Return the present lease of a table; None if there never was one."""
        found = self._read(table)
        return found[0] if found else None

    def take(
        self, table: TableAddress, run_id: str, *, engine: str, seconds: float = LEASE_SECONDS
    ) -> Lease:
        """Take the lease on a table, or renew it.

        Args:
            table: its address.
            run_id: of the run.
            engine: that does the work.
            seconds: from now until the lease expires.

        Raises:
            LeaseHeld: another run holds it.
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
                maintained=found[0].maintained if found else None,
            )
            if self._written(table, lease, found[1] if found else None):
                return lease
        raise LeaseHeld(_somebodys(table))

    def release(self, table: TableAddress, run_id: str, *, is_maintained: bool = False) -> bool:
        """Release the lease on a table; return False if this run does not hold it.

        Args:
            table: its address.
            run_id: of the run that releases it.
            is_maintained: whether an engine worked on the table.
        """
        for _ in range(_TRIES):
            found = self._read(table)
            if found is None or found[0].run_id != run_id:
                return False
            now = self._clock.now()
            maintained = now if is_maintained else found[0].maintained
            free = msgspec.structs.replace(found[0], run_id="", until=now, maintained=maintained)
            if self._written(table, free, found[1]):
                return True
        return False

    def require(self, table: TableAddress, run_id: str) -> None:
        """Check that this run holds the table.

        Raises:
            LeaseLost: it does not, or its lease has expired.
        """
        self._require(self.look(table), table, run_id)

    def require_no_other(self, table: TableAddress, run_id: str) -> None:
        """Check that no other run holds the table, and that this run's lease has not expired.

        For a caller that may also be started by hand, and then has no lease.

        Raises:
            LeaseLost: another run holds it, or this run's lease has expired.
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
        """Read the lease of a table, with its ETag, or return None."""
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
        """Write a lease; return False if another writer has changed it since it was read."""
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


def _somebodys(table: TableAddress) -> Lease:
    """Return a stand-in for a lease that changed each time it was read."""
    return Lease(table=table.text, run_id="of another writer", engine="something")
