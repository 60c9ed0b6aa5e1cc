"""Work that goes on beside other work, because both mostly wait for answers of the store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import TracebackType
from typing import Generic, Self, TypeVar

T = TypeVar("T")


class Background(Generic[T]):
    """Work in a thread of its own for the length of a block, which ends no sooner than that.

    What the work changes is its own until then. Of two errors that of the block is raised, unless
    :meth:`first` says otherwise.

    Args:
        work: called once.
        then: called after it, once it succeeded; its result is not waited for by :meth:`result`.
    """

    def __init__(self, work: Callable[[], T], then: Callable[[], None] = lambda: None) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="beside")
        self._work = self._pool.submit(work)
        self._after = self._pool.submit(self._then, then)

    def _then(self, then: Callable[[], None]) -> None:
        if self._work.exception() is None:
            then()

    def result(self) -> T:
        """What came of the work, as soon as that is known; raises what it raised."""
        return self._work.result()

    def join(self) -> None:
        """Wait for all of it; raises what it raised."""
        self._work.result()
        self._after.result()

    @contextmanager
    def first(self) -> Iterator[None]:
        """Where something of the block and the work fail, what the work raised is raised."""
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
