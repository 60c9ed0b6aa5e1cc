"""What is shown of progress: a bar in a terminal, a line every ten seconds where there is none."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from compactor_cli import console
from compactor_cli.console import Step, heard_by, progress


def lines_of(capsys: pytest.CaptureFixture[str], work: Callable[[], None]) -> list[str]:
    """What a piece of work shows on standard error, which is no terminal."""
    work()
    out, err = capsys.readouterr()
    assert out == ""
    return err.splitlines()


class Told:
    """The lines so far, which are printed all the same."""

    def __init__(self, prints: Callable[[str], None]) -> None:
        self._prints = prints
        self._lines: list[str] = []
        self._more = threading.Condition()

    def __call__(self, line: str, **_: object) -> None:
        self._prints(line)
        with self._more:
            self._lines.append(line)
            self._more.notify_all()

    def wait_for(self, line: str) -> None:
        """Go on when it was told."""
        with self._more:
            assert self._more.wait_for(lambda: line in self._lines, 60), self._lines


@pytest.fixture
def often(monkeypatch) -> Told:
    """A line each twentieth of a second, by a clock that stands, instead of every ten seconds."""
    told = Told(console.print_note)
    monkeypatch.setattr(console, "_LINE_SECONDS", 0.05)
    monkeypatch.setattr(console, "print_note", told)
    monkeypatch.setattr(console, "time", SimpleNamespace(monotonic=lambda: 1_000.0))
    return told


def test_without_a_terminal_a_line_comes_every_ten_seconds():
    assert console._LINE_SECONDS == 10


def test_without_a_terminal_a_line_now_and_then_says_how_far_it_is(often, capsys):
    def work() -> None:
        with progress("compacting") as bar:
            often.wait_for("compacting (0 s)")
            bar.show(3, 24, "3/24 partitions, 1,000 objects, Spark: starting")
            often.wait_for(how_far)

    how_far = "compacting: 3/24 partitions, 1,000 objects, Spark: starting (0 s)"

    lines = lines_of(capsys, work)
    assert lines[0] == "compacting (0 s)"
    assert lines[-1] == how_far


def test_steps_that_only_count_are_reported_by_their_count(often, capsys):
    def work() -> None:
        with progress("planning", 2_000) as bar:
            for _ in range(1_500):
                bar.advance()
            often.wait_for(counted)

    counted = "planning: 1,500 of 2,000 (0 s)"
    assert lines_of(capsys, work)[-1] == counted


def test_what_takes_less_is_silent_and_no_line_comes_after_the_end(capsys, monkeypatch):
    def work() -> None:
        with progress("planning"):
            pass

    assert lines_of(capsys, work) == []
    assert not any(one.name == "progress" for one in threading.enumerate())


def test_where_the_work_fails_no_line_comes_after_it(often):
    def work() -> None:
        with progress("planning"):
            raise KeyError

    with pytest.raises(KeyError):
        work()
    assert not any(one.name == "progress" for one in threading.enumerate())


def test_a_terminal_gets_a_bar_and_no_lines(often, monkeypatch):
    class Terminal:
        def __init__(self) -> None:
            self.text = ""

        def isatty(self) -> bool:
            return True

        def write(self, text: str) -> int:
            self.text += text
            return len(text)

        def flush(self) -> None:
            pass

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress("planning", 5):
        time.sleep(0.2)
    assert "planning" in terminal.text
    assert "(0 s)" not in terminal.text


def test_a_program_that_listens_gets_progress_and_nothing_is_printed(often, capsys):
    heard: list[Step] = []

    def work() -> None:
        with heard_by(heard.append), progress("planning", 5) as bar:
            bar.advance()
            time.sleep(0.2)

    assert lines_of(capsys, work) == []
    assert [one.done for one in heard] == [0, 1]
