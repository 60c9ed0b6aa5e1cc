"""Runs work in a background thread, for work that mostly waits for the store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import TracebackType
from typing import Generic, Self, TypeVar

T = TypeVar("T")


class Background(Generic[T]):
    """Runs work in a thread during a ``with`` block, which waits for it at its end.

    The block must not use what the work changes before then. If both fail, the block's error is
    raised, except within :meth:`first`.

    Args:
        work: called once.
        then: called after ``work`` succeeded. :meth:`result` does not wait for it.
    """

    def __init__(self, work: Callable[[], T], then: Callable[[], None] = lambda: None) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="beside")
        self._work = self._pool.submit(work)
        self._after = self._pool.submit(self._then, then)

    def _then(self, then: Callable[[], None]) -> None:
        if self._work.exception() is None:
            then()

    def result(self) -> T:
        """Wait for the work and return its result; raises what it raised."""
        return self._work.result()

    def join(self) -> None:
        """Wait for ``work`` and ``then``; raises what they raised."""
        self._work.result()
        self._after.result()

    @contextmanager
    def first(self) -> Iterator[None]:
        """Within this block, the work's error takes precedence over the block's."""
        try:
            yield
        except Exception:
            self._work.result()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        self._pool.shutdown()
        if kind is None:
            self.join()
