"""The world of one schedule: a store, producers, workers, clean-ups, readers, clocks."""

from __future__ import annotations

import gzip
import re
from collections import Counter
from dataclasses import dataclass, replace
from math import inf

import zstandard

from compactor.errors import (
    CompactorError,
    IntegrityError,
    InvalidInput,
    ObjectMissing,
    TransientStoreError,
)
from compactor.limits import USUAL, WorkerLimits
from compactor.log.identity import StateIdentity
from compactor.model import PASSING_REASONS, SourceObject
from compactor.partition.inputs import PartitionRun
from compactor.partition.receipts import Counts, Receipt
from compactor.partition.run import compact_partition
from compactor.settings.settings import Settings
from tests.simulation.choices import Choices
from tests.simulation.contents import MENU, contents
from tests.simulation.faults import PAGE_SIZE, Client, Fault, Guard
from tests.simulation.ledger import DATA, LAKE, SOURCE, Ledger, Violation, records_in
from tests.simulation.processes import Process
from tests.simulation.story import thing
from tests.support.examples import NOW, PARTITION, settings
from tests.support.memory_store import Call, Crashed, ManualClock, MemoryStore

RETENTION_DAYS = 7
DAY = 86_400.0
_COMMON: dict[str, object] = {"delete_after": f"{RETENTION_DAYS}d"}
#: Settings of runs; a schedule takes one of them.
SETTINGS: tuple[Settings, ...] = (
    settings(**_COMMON, settle_seconds=0),
    settings(**_COMMON, settle_seconds=0, compression="gzip"),
    settings(**_COMMON, settle_seconds=0, small_object_bytes=300),
    settings(**_COMMON, compression="zstd"),
)
MIN_PART_BYTES = 100
STATE = "_compactor/compacted/"
NAMES = (
    *("a.json", "b.json", "c.log.gz", "d.csv", "e.json", "f.log.gz", "broken.gz", "empty.json"),
    *("g.csv", "h.dat", "bare.csv"),
)
# A partition of the same data set that no run compacts.
#: A table in the partition. Its marker sorts between its files, so windows separate them.
TABLE = "table/"
TABLE_FILES = ("0.json", "_spark_metadata/0.json", "z.json")
_ENTRY = re.compile(r".*/commits/(\d{20})\.json\.gz", re.DOTALL)
_CHECKPOINT = re.compile(r".*/commits/(\d{20})\.checkpoint\.json\.gz", re.DOTALL)
_SMALL = contents("syslog in files")
REASONS_THAT_PASS = tuple(sorted(PASSING_REASONS))


@dataclass
class SkewedClock:
    """The clocks of the machines: the store's clock, plus a number of seconds."""

    true: ManualClock
    off: float = 0.0

    def now(self) -> float:
        return self.true.now() + self.off


@dataclass
class Patience:
    """A deadline after a number of requests; then a worker must end."""

    requests: float = inf

    def spend(self) -> None:
        self.requests -= 1

    def remaining_seconds(self) -> float:
        return inf if self.requests > 0 else 0.0


class World:
    """Everything in one schedule but the order of its steps.

    Attributes:
        spoiled: something happened after which a worker may raise IntegrityError.
        tampered: original bodies of outputs that were changed or deleted.
        forged: new bodies of these outputs; None for deleted ones.
        damaged: keys of the objects of the state that were deleted or swapped.
        stored: every body that producers put, by key and ETag.
        earlier_etag: keys of sources that were put again with an ETag that they had before another
            one. If a worker commits what it read in between, the later arrival goes unnoticed.
    """

    def __init__(
        self, choices: Choices, without: frozenset[Guard], limits: WorkerLimits = USUAL
    ) -> None:
        self.choices = choices
        self.clock = ManualClock(NOW)
        self.s3 = MemoryStore(self.clock, page_size=PAGE_SIZE, min_part_bytes=MIN_PART_BYTES)
        for bucket in (SOURCE, LAKE):
            self.s3.add_bucket(bucket)
        chosen = choices.one_of(SETTINGS)
        self.settings = replace(chosen, limits=limits)
        self._kinds = {end: contents(choices.one_of(names)) for end, names in MENU.items()}
        self.machine_clock = SkewedClock(self.clock)
        self.ledger = Ledger(self.s3, RETENTION_DAYS * DAY)
        self.spoiled = False
        self._identity = StateIdentity(self.settings, self.s3)
        self._workers = 0
        self.tampered: dict[str, bytes] = {}
        self.forged: dict[str, bytes | None] = {}
        self.damaged: set[str] = set()
        self.earlier_etag: set[str] = set()
        self._without = without
        self._next_record = 0
        self._delivered: dict[str, list[bytes]] = {}
        self.stored: dict[tuple[str, str], bytes] = {}
        self._deliveries = 0
        self.rights_changed = False
        self._started: Counter[str] = Counter()

    # Producers.

    def arrive(self, name: str) -> str:
        """Put a source, over any that has its name."""
        key = PARTITION.prefix + name
        body, joined = self._content(name)
        self.earlier_etag.discard(key)
        self.ledger.removing(key)
        self.ledger.written(body, joined=joined)
        self._delivered.setdefault(name, []).append(body)
        self._seed(key, body)
        self.ledger.producer_acted()
        return f"a producer puts {name}: records {list(records_in(body))}"

    def make_table(self) -> str:
        """Create a table, whose files only its owner may touch."""
        for name in TABLE_FILES:
            body, _ = self._content(name)
            self.ledger.written(body, joined=False)
            self.s3.seed(SOURCE, PARTITION.prefix + TABLE + name, body)
        self.ledger.producer_acted()
        return f"somebody makes a table in {TABLE}"

    def repeat(self, name: str) -> str:
        """Put a source again with the same content."""
        key = PARTITION.prefix + name
        before = self.s3.head(SOURCE, key)
        after = self._seed(key, self.s3.contents(SOURCE)[key])
        if before is not None and before.etag != after.etag:
            self.earlier_etag.add(key)
        return f"a producer puts {name} once more, unchanged"

    def deliver_again(self, name: str) -> str:
        """Put an earlier version of a source again, with the ETag of a multipart upload."""
        key = PARTITION.prefix + name
        body = self._delivered[name][-1]
        if self.choices.chance(0.3):
            body = self.choices.one_of(self._delivered[name])
        self._deliveries += 1
        self.earlier_etag.discard(key)
        self.ledger.removing(key)
        self._seed(key, body, etag=f"{self._deliveries:032x}-1")
        self.ledger.producer_acted()
        return f"a producer delivers {name} again, with another ETag: {list(records_in(body))}"

    def bring_back(self, name: str) -> str:
        """Put the first version of a source again, with the ETag that it had."""
        key = PARTITION.prefix + name
        body = self._delivered[name][0]
        self.ledger.removing(key)
        self._seed(key, body)
        self.ledger.producer_acted()
        return f"a producer puts {name} back, with the ETag it had"

    @property
    def delivered(self) -> list[str]:
        """The names of all sources that were ever put."""
        return list(self._delivered)

    def withdraw(self, name: str) -> str:
        """Delete a source, as its producer."""
        key = PARTITION.prefix + name
        self.ledger.removing(key)
        self.s3.remove(SOURCE, key)
        self.ledger.producer_acted()
        return f"a producer deletes {name}"

    def _seed(self, key: str, body: bytes, etag: str = "") -> SourceObject:
        stored = self.s3.seed(SOURCE, key, body, etag=etag)
        self.stored[key, stored.etag] = body
        return stored

    def _content(self, name: str) -> tuple[bytes, bool]:
        """Return a new body for a source of this name, and whether it may be compacted."""
        if name.startswith("empty"):
            return b"", True
        broken = name.startswith("broken")
        # S3 copies large sources unread, so a broken one would break its output; keep it small.
        kind = _SMALL if broken else self._kinds[name[name.rindex(".") :]]
        body = kind.numbered(self._next_record)
        self._next_record += kind.records
        if name.startswith("bare"):
            # A record with another number of fields contradicts the declaration.
            return body.rpartition(b",")[0] + b"\n", False
        if name.endswith(".gz"):
            body = self._packed(body)
        return body[:-3] if broken else body, kind.joined

    def _packed(self, body: bytes) -> bytes:
        """Compress a body like outputs, so that they can take it as stored, whatever its name."""
        if self.settings.compression == "zstd":
            return zstandard.compress(body)
        return gzip.compress(body, 0, mtime=0)

    @property
    def names(self) -> list[str]:
        """The names of the existing sources, without a table's files."""
        names = (
            key.removeprefix(PARTITION.prefix) for key in self.s3.contents(SOURCE, PARTITION.prefix)
        )
        return [name for name in names if not name.startswith(TABLE)]

    @property
    def outputs(self) -> list[str]:
        """The keys of the readable objects in the destination."""
        return list(self.s3.contents(LAKE, DATA))

    # What happens to the store from outside.

    def change_rights(self, name: str) -> str:
        """Take away the right to read a source, or give it back."""
        place = SOURCE, PARTITION.prefix + name
        self.rights_changed = True
        if self.s3.unreadable.pop(place, None) is not None:
            return f"{name} may be read again"
        self.s3.unreadable[place] = self.choices.one_of(REASONS_THAT_PASS)
        return f"{name} may not be read: {self.s3.unreadable[place]}"

    def give_rights_back(self) -> None:
        """Make every source readable."""
        self.s3.unreadable.clear()

    def drop_uploads(self) -> str:
        """Abort every unfinished upload, as a lifecycle rule does."""
        for upload_id, key in self.s3.unfinished_uploads(LAKE).items():
            self.s3.abort_upload(LAKE, key, upload_id)
        return "a lifecycle rule aborts every unfinished upload"

    def tamper(self, key: str, body: bytes | None) -> str:
        """Overwrite an output with other bytes, or delete it."""
        self.tampered.setdefault(key, self.s3.contents(LAKE)[key])
        self.forged[key] = body
        self.spoiled = True
        self.ledger.tampering(key)
        if body is None:
            self.s3.remove(LAKE, key)
            return f"somebody deletes {thing(LAKE, key)}"
        self.s3.seed(LAKE, key, body)
        return f"somebody overwrites {thing(LAKE, key)}"

    @property
    def state(self) -> dict[str, bytes]:
        """The objects of the state that outlive a run, by key."""
        found = self.s3.contents(LAKE, STATE)
        return {key: body for key, body in found.items() if not key.startswith(f"{STATE}runs/")}

    @property
    def unproven(self) -> frozenset[str]:
        """The only object of the log with the highest number: nothing would notice its loss."""
        matches = [_ENTRY.fullmatch(key) or _CHECKPOINT.fullmatch(key) for key in self.state]
        numbers = {match[0]: match[1] for match in matches if match}
        highest = max(numbers.values(), default="")
        newest = frozenset(key for key, number in numbers.items() if number == highest)
        return newest if len(newest) == 1 else frozenset()

    def lose_log(self) -> str:
        """Delete the whole log of the partition."""
        for key in self.state:
            if "/commits/" in key:
                self.lose(key)
        return "somebody deletes the commit log"

    def lose(self, key: str) -> str:
        """Delete an object of the state."""
        self._damage(key)
        self.s3.remove(LAKE, key)
        return f"somebody deletes {thing(LAKE, key)}"

    def swap(self, key: str, other: str) -> str:
        """Swap two objects of the state."""
        bodies = self.state
        for one in (key, other):
            self._damage(one)
        self.s3.seed(LAKE, key, bodies[other])
        self.s3.seed(LAKE, other, bodies[key])
        return f"somebody swaps {thing(LAKE, key)} and {thing(LAKE, other)}"

    def _damage(self, key: str) -> None:
        self.spoiled = True
        self.damaged.add(key)

    def skew(self, seconds: float) -> None:
        """Set how many seconds the clocks of all machines are ahead of S3's."""
        self.machine_clock.off = seconds

    # Processes.

    def worker(
        self,
        *,
        twin_of: str | None = None,
        patience: float = inf,
    ) -> Process:
        """Return an invocation for the partition; a twin has the run id of another one."""
        run_id = twin_of or self.named("run")
        deadline = Patience(patience)
        # Half of the invocations are given the identity that an earlier one has read.
        self._workers += 1
        identity = self._identity if self._workers % 2 else None

        def work() -> Receipt:
            client = self.client(process, deadline)
            run = PartitionRun(
                PARTITION,
                self.settings,
                client,
                self.machine_clock,
                deadline,
                run_id,
                identity=identity,
            )
            return compact_partition(run, Counts())

        name = f"{self.named('worker')} ({run_id})"
        process = Process(name, work, self.choices.below)
        return process

    def reader(self) -> Process:
        """Return a query engine that lists the destination, then reads what it listed."""

        def read() -> None:
            client = self.client(process)
            found: Counter[int] = Counter()
            for page in client.list_objects(LAKE, DATA):
                for one in page:
                    found.update(records_in(self._read_output(client, one.key)))
            twice = sorted(number for number, count in found.items() if count > 1)
            if twice:
                raise Violation(f"a reader got records {twice} twice")

        process = Process(self.named("reader"), read)
        return process

    def _read_output(self, client: Client, key: str) -> bytes:
        try:
            return client.get(LAKE, key)
        except ObjectMissing:
            if key in self.tampered:
                return b""
            raise

    def client(self, process: Process, patience: Patience | None = None) -> Client:
        """Return the store's client for one process."""

        def ask(call: Call) -> Fault:
            if patience is not None:
                patience.spend()
            return process.ask(call)

        return Client(self.s3, ask, self._without)

    def judge(self, process: Process) -> str:
        """Return the story's line about how a process ended.

        Raises:
            Violation: it ended in a way that it must not.
        """
        error = process.error
        if error is None:
            status = getattr(process.answer, "status", "done")
            return f"{process.name} ends: {status}"
        if isinstance(error, Violation):
            raise error
        expected = isinstance(error, (Crashed, TransientStoreError))
        # A worker that may read nothing of its partition ends this way.
        denied = isinstance(error, InvalidInput) and error.field == "permission"
        expected |= denied and self.rights_changed
        if not expected and not (self.spoiled and isinstance(error, IntegrityError)):
            why = "" if isinstance(error, CompactorError) else " (no error of ours)"
            raise Violation(f"{process.name} ended with {error!r}{why}") from error
        if isinstance(error, Crashed):
            return f"{process.name} is dead"
        return f"{process.name} ends: {type(error).__name__}: {error}"

    def named(self, kind: str) -> str:
        """Return a name that no other process of the schedule has."""
        self._started[kind] += 1
        return f"{kind}-{self._started[kind]}"
