"""The terminal: progress on standard error, tables and lines on standard output, questions."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from compactor.errors import InvalidInput
from compactor.escaping import visible
from compactor_cli.messages import form, write

# Without a terminal, rich would cut tables at 80 columns.
_PLAIN_WIDTH = 160
# Without a terminal, a line at this interval shows progress.
_LINE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Step:
    """Progress of one step of a command.

    Attributes:
        what: name of the step, such as ``compacting``.
        done: amount done.
        total: total amount; None while unknown.
        text: details.
    """

    what: str
    done: int
    total: int | None = None
    text: str = ""


OnStep = Callable[[Step], None]
"""Called with each progress, perhaps by several threads."""

_listener: ContextVar[OnStep | None] = ContextVar("listener", default=None)


@contextmanager
def heard_by(listener: OnStep) -> Iterator[None]:
    """Pass progress to a function within the block, instead of showing it."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


class Bar:
    """One line of progress; without a display it does nothing."""

    def __init__(self, progress: Progress | None = None, task: TaskID | None = None) -> None:
        self._progress = progress
        self._task = task

    def show(self, done: int, total: int | None = None, text: str = "") -> None:
        """Show how much is done; without a total there is no bar yet."""
        if self._progress is not None and self._task is not None:
            shown = visible(text)
            self._progress.update(self._task, completed=done, total=total or None, text=shown)

    def advance(self, amount: int = 1) -> None:
        """Add to the amount done."""
        if self._progress is not None and self._task is not None:
            self._progress.advance(self._task, amount)


class _ListenerBar(Bar):
    """Passes progress to a function."""

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


class _Lines(_ListenerBar):
    """Prints progress on standard error every ten seconds."""

    def __init__(self, step: Step) -> None:
        super().__init__(self._note, step)
        self._now = step
        self._began = time.monotonic()
        self._ended = threading.Event()
        self._printer = threading.Thread(target=self._print, name="progress", daemon=True)
        self._printer.start()

    def end(self) -> None:
        """Stop printing."""
        self._ended.set()
        self._printer.join()

    def _note(self, step: Step) -> None:
        self._now = step

    def _print(self) -> None:
        while not self._ended.wait(_LINE_SECONDS):
            now = self._now
            of = f" of {now.total:,}" if now.total else ""
            count = f"{now.done:,}{of}" if now.done or now.total else ""
            how_far = now.text or count
            seconds = f"{time.monotonic() - self._began:.0f} s"
            text = f"{now.what}{': ' if how_far else ''}{how_far} ({seconds})"
            print_note(text, step=now.what, done=now.done, total=now.total)


@contextmanager
def progress(what: str, total: int | None = None) -> Iterator[Bar]:
    """Show a progress bar on standard error, removed at the end; lines without a terminal.

    Lines are also shown with ``--log-format json``, and nothing with ``-q``.

    Within :func:`heard_by`, progress goes to its function instead.
    """
    listener = _listener.get()
    if listener is not None:
        begun = Step(what, 0, total)
        listener(begun)
        yield _ListenerBar(listener, begun)
        return
    if form().is_quiet:
        yield Bar()
        return
    if form().as_json or not sys.stderr.isatty():
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
    """Print a table on standard output, with text columns left-aligned and numbers right.

    Without a terminal, one line for each row, without frames.
    """
    # A line above, because rich would wrap a title to the width of a narrow table.
    print_line(title, "bold")
    if not sys.stdout.isatty():
        _print_plain([heads, *rows], texts)
        return
    table = Table(header_style="bold")
    for number, head in enumerate(heads):
        table.add_column(head, justify="left" if number in texts else "right", overflow="fold")
    for row in rows:
        # As Text, because rich would read [brackets] in keys as markup.
        table.add_row(*(Text(visible(cell)) for cell in row))
    _console().print(table)


def _print_plain(rows: Sequence[Sequence[str]], texts: Sequence[int]) -> None:
    shown = [[visible(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    for row in shown:
        cells = (
            cell.ljust(width) if number in texts else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        print("  ".join(cells).rstrip())


def print_line(text: str, style: str = "") -> None:
    """Print one line on standard output without wrapping; invisible characters are escaped."""
    _console().print(visible(text), style=style, markup=False, highlight=False, soft_wrap=True)


def counted(lines: Iterable[str]) -> list[str]:
    """Return each different text once, as one line, with how often it occurs if repeatedly."""
    counts = Counter(" ".join(line.split()) for line in lines)
    return [line + (f" ({count:,} times)" if count > 1 else "") for line, count in counts.items()]


def print_error(text: str) -> None:
    """Print an error on standard error; invisible characters are escaped."""
    write("error", text)


def print_note(text: str, **fields: Any) -> None:
    """Print on standard error what is not an error; ``fields`` are shown in JSON only."""
    write("info", text, **fields)


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else _PLAIN_WIDTH)


def require_answer(args: Any, *, dry_run: bool = False) -> None:
    """Check that the command can ask for confirmation, or need not.

    Args:
        args: with ``yes`` and ``json``.
        dry_run: no confirmation is needed.

    Raises:
        InvalidInput: there is no terminal to ask on.
    """
    asks = not args.json and sys.stdin.isatty() and sys.stderr.isatty()
    if not (dry_run or args.yes or asks):
        other = ", or --dry-run to see what would be done" if hasattr(args, "dry_run") else ""
        advice = f"give --yes{other}"
        message = f"confirmation is needed, and there is no terminal to ask on: {advice}"
        raise InvalidInput("--yes", None, advice, message=message)


def is_agreed(args: Any, question: str) -> bool:
    """Ask for confirmation unless ``--yes`` was given; returns the answer."""
    if args.yes:
        return True
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
