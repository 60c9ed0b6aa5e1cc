"""What a person sees: progress on standard error, tables and lines on standard output."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from compactor.escaping import visible

# Where the output is no terminal, rich would cut tables at 80 columns.
_PLAIN_WIDTH = 160
# Where no bar can be drawn, a line now and then says that a command is alive.
_LINE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Step:
    """How far one step of a command has come.

    Attributes:
        what: the step, such as ``compacting``.
        done: how much of it is done.
        total: of how much; None while that is not known.
        text: more, for a person.
    """

    what: str
    done: int
    total: int | None = None
    text: str = ""


OnStep = Callable[[Step], None]
"""Called with progress, perhaps by several threads."""

_listener: ContextVar[OnStep | None] = ContextVar("listener", default=None)


@contextmanager
def heard_by(listener: OnStep) -> Iterator[None]:
    """Within the block, progress goes to this function and is shown nowhere."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


class Bar:
    """One line of progress; does nothing where it would not be seen."""

    def __init__(self, progress: Progress | None = None, task: TaskID | None = None) -> None:
        self._progress = progress
        self._task = task

    def show(self, done: int, total: int | None = None, text: str = "") -> None:
        """Where the work stands; without a total there is no bar yet."""
        if self._progress is not None and self._task is not None:
            shown = visible(text)
            self._progress.update(self._task, completed=done, total=total or None, text=shown)

    def advance(self, amount: int = 1) -> None:
        """Advance by an amount."""
        if self._progress is not None and self._task is not None:
            self._progress.advance(self._task, amount)


class _ListenedBar(Bar):
    """Progress for a program."""

    def __init__(self, listener: OnStep, step: Step) -> None:
        super().__init__()
        self._listener = listener
        self._step = step
        self._lock = threading.Lock()

    def show(self, done: int, total: int | None = None, text: str = "") -> None:
        with self._lock:
            self._step = replace(self._step, done=done, total=total or None, text=text)
            self._listener(self._step)

    def advance(self, amount: int = 1) -> None:
        with self._lock:
            self._step = replace(self._step, done=self._step.done + amount)
            self._listener(self._step)


class _Lines(_ListenedBar):
    """Progress for a log: a line on standard error every ten seconds, and none before."""

    def __init__(self, step: Step) -> None:
        super().__init__(self._note, step)
        self._now = step
        self._began = time.monotonic()
        self._ended = threading.Event()
        self._writer = threading.Thread(target=self._write_on, name="progress", daemon=True)
        self._writer.start()

    def end(self) -> None:
        """Write no more."""
        self._ended.set()
        self._writer.join()

    def _note(self, step: Step) -> None:
        self._now = step

    def _write_on(self) -> None:
        while not self._ended.wait(_LINE_SECONDS):
            now = self._now
            of = f" of {now.total:,}" if now.total else ""
            count = f"{now.done:,}{of}" if now.done or now.total else ""
            how_far = now.text or count
            seconds = f"{time.monotonic() - self._began:.0f} s"
            print_error(f"{now.what}{': ' if how_far else ''}{how_far} ({seconds})")


@contextmanager
def progress(what: str, total: int | None = None) -> Iterator[Bar]:
    """A progress bar on standard error, gone at the end; a line now and then without a terminal.

    Where a program listens (:func:`heard_by`), it gets them instead.
    """
    listener = _listener.get()
    if listener is not None:
        begun = Step(what, 0, total)
        listener(begun)
        yield _ListenedBar(listener, begun)
        return
    if not sys.stderr.isatty():
        lines = _Lines(Step(what, 0, total))
        try:
            yield lines
        finally:
            lines.end()
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TextColumn("{task.fields[text]}", markup=False),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        yield Bar(shown, shown.add_task(what, total=total, text=""))


def print_table(
    title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], *, texts: Sequence[int] = (0,)
) -> None:
    """A table on standard output: columns of texts to the left, numbers to the right."""
    # Above the table, not as its title: rich would fold that to the width of a narrow table.
    print_line(title, "bold")
    table = Table(header_style="bold")
    for number, head in enumerate(heads):
        table.add_column(head, justify="left" if number in texts else "right", overflow="fold")
    for row in rows:
        # As Text, because rich would read [brackets] in keys as markup.
        table.add_row(*(Text(visible(cell)) for cell in row))
    _console().print(table)


def print_line(text: str, style: str = "") -> None:
    """One line on standard output, never wrapped or marked up; what is invisible is escaped."""
    _console().print(visible(text), style=style, markup=False, highlight=False, soft_wrap=True)


def instant(seconds: float) -> str:
    """UNIX seconds as ``2026-01-31T12:00:00Z``."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def print_error(text: str) -> None:
    """One line on standard error; what is invisible is escaped."""
    print(visible(text), file=sys.stderr)


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else _PLAIN_WIDTH)
