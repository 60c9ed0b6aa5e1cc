"""Writes generated objects to S3 or to a local directory, many at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice

from compactor.errors import InvalidInput
from compactor_cli.generator.destinations import Store, destination
from compactor_cli.generator.objects import GeneratedObject

MAX_WORKERS = 1_024
DEFAULT_WORKERS = 32

_BATCH = 16


@dataclass(frozen=True, slots=True)
class Written:
    """What was written so far: bytes as stored, seconds of wall time."""

    objects: int = 0
    records: int = 0
    bytes: int = 0
    seconds: float = 0.0

    @property
    def objects_per_second(self) -> float:
        """Mean rate."""
        return self.objects / self.seconds if self.seconds else 0.0


def write(
    objects: Iterable[GeneratedObject],
    output_uri: str,
    *,
    workers: int = DEFAULT_WORKERS,
    endpoint_url: str | None = None,
    on_progress: Callable[[Written], None] | None = None,
) -> Written:
    """Store objects below an output URI and return the totals.

    Memory holds a few objects per worker. A local directory is created and keeps the times of
    the objects; S3 sets its own. Objects of the same key are overwritten.

    Args:
        objects: taken lazily, by one worker at a time.
        output_uri: ``s3://BUCKET/PREFIX``, ``file://`` or a path.
        workers: threads, 1 to 1024.
        endpoint_url: an S3-compatible endpoint; None for what boto3 is configured with.
        on_progress: called with the totals so far, by one thread at a time.

    Raises:
        InvalidInput: for a wrong output, endpoint or number of workers.
        TransientStoreError: the store does not answer.
    """
    if not 1 <= workers <= MAX_WORKERS:
        raise InvalidInput("workers", workers, f"a whole number from 1 to {MAX_WORKERS}")
    store = destination(output_uri, endpoint_url, workers=workers)
    ledger = _Ledger(iter(objects), on_progress)
    with ThreadPoolExecutor(workers, thread_name_prefix="generate") as pool:
        futures = [pool.submit(_work, ledger, store) for _ in range(workers)]
        try:
            for future in futures:
                future.result()
        except BaseException:
            # Leaving the pool waits for its threads: on Ctrl-C they must know to end.
            ledger.stop()
            raise
    return ledger.totals()


class _Ledger:
    """Hands out objects and adds up what was stored; shared by all workers."""

    def __init__(
        self, objects: Iterator[GeneratedObject], on_progress: Callable[[Written], None] | None
    ) -> None:
        self._objects = objects
        self._on_progress = on_progress
        self._taking = threading.Lock()
        self._counting = threading.Lock()
        self._stopped = threading.Event()
        self._started = time.monotonic()
        self._sums = Written()

    def take(self) -> list[GeneratedObject]:
        """The next few objects; none when all are taken or a worker failed."""
        with self._taking:
            return [] if self._stopped.is_set() else list(islice(self._objects, _BATCH))

    def stop(self) -> None:
        """Let no worker take any more."""
        self._stopped.set()

    @property
    def stopped(self) -> bool:
        """True once a worker failed."""
        return self._stopped.is_set()

    def stored(self, taken: list[GeneratedObject]) -> None:
        """Count these objects as stored."""
        with self._counting:
            sums = self._sums
            self._sums = Written(
                objects=sums.objects + len(taken),
                records=sums.records + sum(one.records for one in taken),
                bytes=sums.bytes + sum(len(one.content) for one in taken),
                seconds=time.monotonic() - self._started,
            )
            if self._on_progress is not None:
                self._on_progress(self._sums)

    def totals(self) -> Written:
        """All that was stored."""
        return self._sums


def _work(ledger: _Ledger, store: Store) -> None:
    try:
        while taken := ledger.take():
            for one in taken:
                if ledger.stopped:
                    return
                store(one)
            ledger.stored(taken)
    except BaseException:
        ledger.stop()
        raise
