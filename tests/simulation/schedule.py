"""Schedules of one partition: who continues at each step, what fails, what else happens; the end.

The end has no faults: every process finishes, a worker does what is left, retention passes, and
clean-up deletes. Then the world must be at rest: every record in one output, every compacted
source and every unfinished upload gone, and nothing left for another run.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from functools import partial

from compactor.cleaning.clean_up_receipts import CleanUpReceipt
from compactor.errors import IntegrityError
from compactor.limits import WorkerLimits
from compactor.log.entries import Commit
from compactor.log.log import CommitLog
from compactor.outputs.slices import is_unproven
from compactor.outputs.verify import check_commit
from compactor.partition.receipts import Receipt
from tests.simulation.choices import Choices
from tests.simulation.cleaning import cleaner
from tests.simulation.faults import SPOILED, Fault, Guard
from tests.simulation.ledger import DATA, LAKE, SOURCE, Violation, plain_bytes
from tests.simulation.processes import Process
from tests.simulation.turns import Outcome, Schedule, played
from tests.simulation.world import DAY, NAMES, RETENTION_DAYS, World
from tests.support.examples import PARTITION
from tests.support.memory_store import Call

# How far clocks jump, in seconds.
JUMP = 400 * DAY
_WINDOWS = (50_000, 2, 4)
# Probability that another process starts after all have ended.
_MORE_RATE = 0.85
# Requests of a worker that has planned, and of one that has read what it is about to commit.
_STORING = frozenset({"create_upload", "upload_part", "create", "copy_part"})
_HOLDING = _STORING - {"create_upload"}
_SELDOM_POSSIBLE = frozenset({"two workers with one plan", "delivered again between two plans"})
# After this many calls a run that is not at rest will never be.
_CALLS_TO_REST = 6


def play(
    seed: int,
    *,
    replay: Sequence[int] | None = None,
    without: frozenset[Guard] = frozenset(),
    tell: bool = False,
) -> Outcome:
    """Run one schedule to its end, or to the first broken promise."""
    choices = Choices(seed, replay)
    limits = WorkerLimits(window_objects=choices.one_of(_WINDOWS))

    def make(outcome: Outcome) -> _Schedule:
        return _Schedule(World(choices, without, limits), choices, outcome, tell=tell)

    return played(choices, make)


def _asks_for(process: Process, names: frozenset[str]) -> bool:
    return process.waiting is not None and process.waiting.name in names


class _Schedule(Schedule):
    TURNS = 160
    EVENT_RATE = 0.07
    SWITCH_RATE = 0.25
    MOST_PROCESSES = 5
    WRITES = frozenset({"put", "create", "complete_upload", "delete_source"})

    def __init__(self, world: World, choices: Choices, outcome: Outcome, *, tell: bool) -> None:
        self.world = world
        super().__init__(world.clock, choices, outcome, tell=tell)
        self._zero = world.clock.now()

    def _stamp(self) -> str:
        day, seconds = divmod(self.world.clock.now() - self._zero, DAY)
        return f"day {day:.0f} {seconds:>6.0f} s  "

    def _begin(self) -> None:
        names = NAMES[: 3 + self._choices.below(len(NAMES) - 2)]
        for name in names:
            self.tell(self.world.arrive(name))
        if names == NAMES:
            self.tell(self.world.make_table())
        self._start_worker()

    def _more(self) -> bool:
        if not self._choices.chance(_MORE_RATE):
            return False
        self._damage()
        self._start_worker()
        return True

    # Turns.

    def _fault_for(self, process: Process) -> Fault:
        fault = super()._fault_for(process)
        self.world.spoiled |= fault in SPOILED
        return fault

    def _faults_of(self, call: Call) -> Sequence[Fault]:
        found = super()._faults_of(call)
        of_sources = call.name == "list_objects" and call.bucket == SOURCE
        return (*found, Fault.REPEATED) if of_sources else found

    def _look(self) -> None:
        self.world.ledger.look()

    def _judge(self, process: Process) -> None:
        self.tell(self.world.judge(process))

    # Events.

    def _likely(self, events: Sequence[str]) -> Sequence[str]:
        # These events are rarely possible, so they are more likely when they are.
        return [*events, *[name for name in events if name in _SELDOM_POSSIBLE] * 5]

    def _events(self) -> dict[str, Callable[[], object]]:
        world = self.world
        events: dict[str, Callable[[], object]] = {
            "another worker": self._start_worker,
            "invocation repeated": self._start_twin,
            "worker with little time": self._start_hurried,
            "clean-up": self._start_cleaner,
            "reader": lambda: self._start(world.reader()),
            "late arrival": lambda: self.tell(world.arrive(f"late-{len(world.names)}.json")),
            "an hour passes": partial(self._pass, 3_600.0),
            "retention passes": partial(self._pass, (RETENTION_DAYS + 1) * DAY),
            "clock jumps": self._jump,
            "delivered again": self._deliver_again,
            "uploads dropped": lambda: self.tell(world.drop_uploads()),
        }
        if world.names:
            events |= {
                "source overwritten": lambda: self.tell(world.arrive(self._some_source())),
                "rights changed": self._change_rights,
                "source delivered again": lambda: self.tell(
                    world.deliver_again(self._some_source())
                ),
                "source put again": lambda: self.tell(world.repeat(self._some_source())),
                "source deleted": lambda: self.tell(world.withdraw(self._some_source())),
            }
            if self._holds_sources():
                events["two workers with one plan"] = self._overtake
                events["delivered again between two plans"] = self._deliver_between
        if world.outputs:
            events["output tampered with"] = self._tamper
        return events

    def _some_source(self) -> str:
        return self._choices.one_of(self.world.names)

    def _deliver_again(self) -> None:
        self.tell(self.world.deliver_again(self._choices.one_of(self.world.delivered)))

    def _change_rights(self) -> None:
        self.tell(self.world.change_rights(self._some_source()))

    def _start_worker(self) -> None:
        self._start(self.world.worker())

    def _start_twin(self) -> None:
        names = [process.name for process in self._processes if "(" in process.name]
        if names:
            run_id = self._choices.one_of(names).partition("(")[2].rstrip(")")
            self._start(self.world.worker(twin_of=run_id), ", the same invocation once more")

    def _start_hurried(self) -> None:
        requests = 5 + self._choices.below(25)
        self._start(self.world.worker(patience=requests), f" with time for {requests} requests")

    def _start_cleaner(self) -> None:
        self._start(cleaner(self.world))

    def _holds_sources(self) -> bool:
        return any(_asks_for(one, _HOLDING) for one in self._workers)

    @property
    def _workers(self) -> list[Process]:
        """Return the workers that have not ended."""
        return [one for one in self._processes if "(" in one.name]

    def _deliver_between(self) -> None:
        """Deliver a source again with another ETag while a worker has it but did not commit."""
        done = self.world.ledger.compacted_sources()
        held = [name for name in self.world.names if PARTITION.prefix + name not in done]
        if held and len(self._processes) < self.MOST_PROCESSES:
            self.tell(self.world.deliver_again(self._choices.one_of(held)))
            self._overtake()

    def _overtake(self) -> None:
        """Run another worker until it is about to store as well; either may commit first."""
        if len(self._processes) < self.MOST_PROCESSES:
            process = self.world.worker()
            self._start(process, ", and plans without what the other one holds")
            while not process.ended and not _asks_for(process, _STORING):
                self._turn(process)

    def _pass(self, seconds: float) -> None:
        self.world.clock.advance(seconds)
        self.tell(f"{seconds / 3_600:.0f} hours pass")

    def _jump(self) -> None:
        off = self._choices.one_of((JUMP, -JUMP, 3_600.0))
        self.world.skew(off)
        self.tell(f"the clocks of all machines but S3's are {off / DAY:.2f} days off now")

    def _tamper(self) -> None:
        # Rare, because less can be checked at the end. And there is no protection against deleting
        # an output just after it was proven.
        proven = any(one.waiting and one.waiting.name == "delete_source" for one in self._processes)
        if self._choices.chance(0.2) and not proven:
            key = self._choices.one_of(self.world.outputs)
            body = self._choices.one_of((None, b"other bytes", b""))
            if body == b"":
                body = bytes(len(self.world.s3.contents(LAKE)[key]))
            self.tell(self.world.tamper(key, body))

    def _damage(self) -> None:
        """Delete or swap objects of the state between two calls, so that the next one notices."""
        world = self.world
        # Rare, because less can be checked at the end.
        if not world.state or not self._choices.chance(0.15):
            return
        self.outcome.faults["state damaged"] += 1
        keys = list(world.state)
        key, other = self._choices.one_of(keys), self._choices.one_of(keys)
        if key != other and self._choices.chance(0.4):
            self.tell(world.swap(key, other))
        elif self._choices.chance(0.2):
            self.tell(world.lose_log())
        elif key not in world.unproven:
            self.tell(world.lose(key))
        world.ledger.look()

    # The end.

    def end(self) -> None:
        """Run without faults until everything is at rest, and check the final state.

        Raises:
            Violation: the final state is wrong.
        """
        self.tell("no more faults from here on, and everything may be read")
        self.world.give_rights_back()
        while self._processes:
            self._turn(self._processes[-1])
        self.world.skew(0.0)
        self.world.clock.advance(DAY)
        self._come_to_rest()
        self._verify()
        # Commits by a clock ahead of S3's are kept for longer.
        self.world.clock.advance((RETENTION_DAYS + 4) * DAY + JUMP)
        cleaned = self._clean_up()
        self._verify()
        if not self._changed_by_hand:
            self._check_rest(cleaned)
            self._bring_back()

    def _bring_back(self) -> None:
        """Put sources that clean-up deleted with their old ETags; their records stay single."""
        for name in sorted(set(self.world.delivered) - set(self.world.names)):
            self.tell(self.world.bring_back(name))
        self.world.clock.advance(DAY)
        self._come_to_rest()

    def _committed_sources(self) -> set[str]:
        """Return the keys of sources that are as a valid commit names them."""
        s3 = self.world.s3
        log = CommitLog(s3, self.world.settings, PARTITION)
        named = {
            (row.source.key, row.source.etag)
            for commit in log.every_commit()
            for row in commit.rows
        }
        heads = {key: s3.head(SOURCE, key) for key in self.world.ledger.compacted_sources()}
        return {key for key, head in heads.items() if head and (key, head.etag) in named}

    @property
    def _changed_by_hand(self) -> bool:
        """True if outputs or state were changed: the partition may stop, but must lose nothing."""
        return bool(self.world.tampered or self.world.damaged)

    def _come_to_rest(self) -> None:
        for _ in range(_CALLS_TO_REST):
            receipt = self._worker_at_the_end()
            if receipt is not None and receipt.status == "done" and not receipt.counts.objects_in:
                break
        else:
            if not self._changed_by_hand:
                raise Violation(f"still not at rest after {_CALLS_TO_REST} calls")
        if self._changed_by_hand:
            return
        missing = self.world.ledger.missing()
        if missing:
            raise Violation(f"records {sorted(missing)} were left in the source")
        before = self.world.s3.count("read_source"), self.world.s3.contents(LAKE, DATA)
        self._worker_at_the_end()
        if before != (self.world.s3.count("read_source"), self.world.s3.contents(LAKE, DATA)):
            raise Violation("a run with nothing to do read a source or changed an output")

    def _worker_at_the_end(self) -> Receipt | None:
        process = self.world.worker()
        self._finish(process)
        if isinstance(process.error, IntegrityError):
            # What the alarm's description asks the operator to do.
            self.tell("an operator aborts the spoiled upload")
            self.world.drop_uploads()
        return process.answer if isinstance(process.answer, Receipt) else None

    def _clean_up(self) -> CleanUpReceipt:
        process = cleaner(self.world)
        self._finish(process)
        if self.world.damaged and isinstance(process.error, IntegrityError):
            return CleanUpReceipt(PARTITION.path, process.name)
        if not isinstance(process.answer, CleanUpReceipt):
            raise Violation(f"clean-up came to no end: {process.error!r}")
        return process.answer

    def _verify(self) -> None:
        """Check that every valid commit's output has its sources, unless it was changed."""
        if self.world.damaged:
            return
        s3 = self.world.s3
        outputs = s3.contents(LAKE, DATA)
        log = CommitLog(s3, self.world.settings, PARTITION)
        for commit in log.every_commit():
            key = commit.output.key if commit.output else ""
            # A rebuilt output may have only some of the sources, if time was short.
            spoiled = key in self.world.tampered and outputs.get(key) == self.world.forged[key]
            self._require_contents(commit)
            try:
                check_commit(commit, s3)
            except IntegrityError as error:
                # A partition with a changed output is not repaired.
                if not self.world.tampered:
                    raise Violation(f"verify: {error}") from error
            else:
                if spoiled and not self._beyond_proof(commit):
                    raise Violation(f"verify does not see what was done to {key}")

    def _require_contents(self, commit: Commit) -> None:
        """Check that a manifest has the content that each source had under its ETag."""
        for row in commit.rows:
            plain = plain_bytes(self.world.stored[row.source.key, row.source.etag])
            if row.crc32 is not None and zlib.crc32(plain) != row.crc32:
                raise Violation(f"the manifest has other content of {row.source.key}")

    def _beyond_proof(self, commit: Commit) -> bool:
        """Return whether a change of equal length hit a source that S3 copied without an MD5."""
        key = commit.output.key if commit.output else ""
        there, before = self.world.s3.contents(LAKE)[key], self.world.tampered[key]
        return len(there) == len(before) and any(is_unproven(row, commit) for row in commit.rows)

    def _check_rest(self, cleaned: CleanUpReceipt) -> None:
        left = self._committed_sources() - self.world.earlier_etag
        if left or cleaned.unsafe or cleaned.counts.refused:
            raise Violation(f"clean-up left {sorted(left)}: {cleaned.unsafe or cleaned.refusals}")
        uploads = self.world.s3.unfinished_uploads(LAKE)
        if uploads:
            raise Violation(f"uploads {sorted(uploads)} are left for ever")
        before = self.world.s3.count("delete_source")
        self._clean_up()
        if self.world.s3.count("delete_source") != before:
            raise Violation("a second clean-up tried again what the first one deleted")
