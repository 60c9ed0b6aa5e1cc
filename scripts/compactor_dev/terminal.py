"""The output of a command in a terminal, as an SVG."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shlex
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence
from io import StringIO

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

COLUMNS = 114
_FONT_FACE = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)
_LINES = 400
# A dark theme with legible colours.
_THEME = TerminalTheme(
    (22, 27, 34),
    (222, 228, 236),
    [
        (120, 130, 142),
        (255, 139, 128),
        (120, 214, 150),
        (224, 186, 92),
        (122, 178, 255),
        (205, 160, 255),
        (92, 200, 224),
        (222, 228, 236),
    ],
)


class CommandFailed(Exception):
    """A command failed; the message has its exit code and output."""


def run_in_terminal(words: Sequence[str]) -> str:
    """Return what ``compactor`` writes to a terminal, with control sequences.

    Progress bars are not included, as they are removed at the end.

    Args:
        words: arguments of ``compactor``.

    Raises:
        CommandFailed: its exit code is not 0.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", _LINES, COLUMNS, 0, 0))
    given = {**os.environ, "TERM": "xterm-256color"}
    given.pop("NO_COLOR", None)
    with subprocess.Popen(
        [sys.executable, "-m", "compactor", *words],
        stdout=theirs,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        env=given,
    ) as process:
        os.close(theirs)
        written = _all_of(ours)
        errors = process.stderr.read() if process.stderr else b""
    if process.returncode:
        said = (written + errors).decode(errors="replace")
        raise CommandFailed(f"{shlex.join(words)}: exit code {process.returncode}: {said}")
    return written.decode()


def as_svg(words: Sequence[str], written: str) -> str:
    """Return an SVG of a terminal after a command.

    Args:
        words: arguments of ``compactor``.
        written: its output, with control sequences.
    """
    console = Console(record=True, width=COLUMNS, file=StringIO(), color_system="truecolor")
    console.print(Text(f"$ {_typed(words)}", style="bold cyan"), soft_wrap=True)
    console.print(Text.from_ansi(written.replace("\r\n", "\n")), soft_wrap=True)
    drawn = console.export_svg(title="", theme=_THEME, unique_id="terminal")
    # Documents must not load fonts from other hosts.
    return _FONT_FACE.sub("", drawn)


def _typed(words: Sequence[str]) -> str:
    """Return the command as a user would type it, wrapped to the terminal."""
    lines, line = [], "compactor"
    # Keeps an option and its value on one line.
    for part in re.split(r" (?=--|s3:|'s3:)", shlex.join(words)):
        if len(line) + len(part) + 5 > COLUMNS:
            lines.append(f"{line} \\")
            line = "   "
        line += f" {part}"
    return "\n".join([*lines, line])


def _all_of(terminal: int) -> bytes:
    """Read until every writer has closed the terminal."""
    read = b""
    try:
        while more := os.read(terminal, 1 << 16):
            read += more
    except OSError:
        # Linux reports the end of a terminal by an error.
        pass
    finally:
        os.close(terminal)
    return read
