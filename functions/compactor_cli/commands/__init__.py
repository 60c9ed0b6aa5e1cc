"""``compactor``: the command line. A module of this package is a command, read top to bottom.

``../parameters.py`` says how commands are made of actions and their options. Only the module of the
requested command is imported, to keep ``--help`` fast.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module

import click

from compactor import __version__
from compactor.errors import InvalidInput
from compactor_cli.command_line import Command, Group
from compactor_cli.failures import (
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_USAGE,
    Failure,
    print_failure,
    region_of_environment,
    report_error,
)
from compactor_cli.messages import own_form, write

_COMPLETE = "_COMPACTOR_COMPLETE"
_SUMMARY = (
    "Rewrites many small S3 objects into a few large ones, without losing or doubling a record."
)
_EPILOG = """
a first look, then your own data:
  compactor demo                              needs the extra local; names what to install
  compactor scan s3://logs/raw/ s3://lake/compacted/ --save logs
  compactor plan logs; compactor run logs; compactor verify logs --deep

exit codes: 0 done, 1 failed, 2 wrong usage or input, 3 time limit reached,
  130 interrupted; errors go to standard error: what happened, then what to do
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """One command.

    Attributes:
        action: module of this package, and the name of its action.
    """

    section: str
    action: str
    summary: str
    examples: str


COMMANDS: Mapping[str, Entry] = {
    "demo": Entry(
        "first steps",
        "demo:run",
        "run the whole workflow on an embedded S3",
        """\
  compactor demo                             2,000 generated objects of four kinds
  compactor demo --source ~/logs             the same on your own logs; they are only read
""",
    ),
    "scan": Entry(
        "first steps",
        "scan:run",
        "describe the objects below a prefix, and print the commands for it",
        """\
  compactor scan s3://my-logs/raw/
  compactor scan s3://my-logs/raw/ s3://my-lake/compacted/ --save logs     then: compactor run logs
  compactor scan s3://my-logs/raw/ --set '*.csv=csv,header=true'
""",
    ),
    "plan": Entry(
        "first steps",
        "plan:run",
        "show what a run would compact, skip and cost",
        """\
  compactor plan s3://my-logs/raw/ s3://my-lake/compacted/ --date-format %Y/%m/%d --window 30d
  compactor plan s3://my-logs/raw/ s3://my-lake/compacted/ --depth 2 --json
""",
    ),
    "run": Entry(
        "first steps",
        "run:run",
        "compact on this machine, against AWS or another S3",
        """\
  compactor run s3://my-logs/raw/ s3://my-lake/compacted/ --date-format %Y/%m/%d --window 7d
  compactor run --input input.json --endpoint-url http://127.0.0.1:9000 --workers 8
""",
    ),
    "verify": Entry(
        "trust",
        "verify:run",
        "read every output again and check it against its commit",
        """\
  compactor verify s3://my-logs/raw/ s3://my-lake/compacted/ --deep --sources
""",
    ),
    "explain": Entry(
        "trust",
        "explain:run",
        "show what became of a source, an output or a record",
        """\
  compactor explain s3://my-lake/compacted/ s3://my-logs/raw/2026/01/31/a.json
  compactor explain s3://my-lake/compacted/ compacted/2026/01/31/x.json --record 17
""",
    ),
    "ls": Entry(
        "trust",
        "ls:run",
        "list the sources that restore can return",
        """\
  compactor ls s3://my-lake/compacted/ raw/2026/01/31/ --since 7d
  compactor ls s3://my-lake/compacted/ 'raw/*/error-*.log.gz' --json | jq -r '.[].key'
  compactor ls s3://my-lake/compacted/ --json --long > sources.json
""",
    ),
    "restore": Entry(
        "trust",
        "restore:run",
        "rebuild sources from the outputs that contain them",
        """\
  compactor restore s3://my-lake/compacted/ raw/2026/01/31/a.json > a.json
  compactor restore s3://my-lake/compacted/ --glob 'raw/*/error-*' --since 7d -o back/
""",
    ),
    "clean-up": Entry(
        "trust",
        "clean_up:run",
        "delete sources past retention whose outputs are proven",
        """\
  compactor clean-up s3://my-logs/raw/ s3://my-lake/compacted/ --dry-run
  compactor clean-up s3://my-logs/raw/ s3://my-lake/compacted/ --delete-after 30d
""",
    ),
    "runs start": Entry(
        "runs",
        "runs:start",
        "start a run of the deployed state machine",
        """\
  compactor runs start --window 30d --wait  the schedule's input, for 30 days
  compactor runs start --input input.json --stack my-stack
""",
    ),
    "runs list": Entry(
        "runs",
        "runs:list_runs",
        "list runs, of this machine or of a deployed stack",
        """\
  compactor runs list                        those of the stack
  compactor runs list s3://my-lake/compacted/
""",
    ),
    "runs show": Entry(
        "runs",
        "runs:show",
        "show the state of a run, and its report",
        """\
  compactor runs show                        the last run of the stack; exit code 1 if it failed
  compactor runs show s3://my-lake/compacted/ --html report.html
  compactor runs show logs 20261121T060102Z-1a2b3c --json | jq .report.totals
""",
    ),
    "table show": Entry(
        "tables",
        "table:show",
        "show what query engines see of each partition",
        """\
  compactor table show logs --partition 2026/01/31/
""",
    ),
    "table refresh": Entry(
        "tables",
        "table:refresh",
        "let query engines see each record once, as it is now",
        """\
  compactor table refresh s3://my-logs/raw/ s3://my-lake/compacted/ --date-format %Y/%m/%d \\
      --reader-table glue:lake.logs
""",
    ),
    "maintain plan": Entry(
        "tables",
        "maintain:plan",
        "show what maintenance of tables that others write would do",
        """\
  compactor maintain plan glue:bronze.events
  compactor maintain plan --glue-tables 'bronze.*' --policies policies.json --json
""",
    ),
    "maintain run": Entry(
        "tables",
        "maintain:run",
        "maintain them with Spark here, or by a deployed stack",
        """\
  compactor maintain run --delta-prefixes s3://my-lake/gold/ --state-uri s3://my-state/tables/
  compactor maintain run --stack my-stack    with the input of its schedule, to its end
""",
    ),
    "doctor": Entry(
        "repair",
        "doctor:run",
        "check the store, the credentials and the account's limits",
        """\
  compactor doctor s3://my-lake/compacted/ --endpoint-url http://127.0.0.1:9000
""",
    ),
    "repair events": Entry(
        "repair",
        "repair:events",
        "register objects for which no event arrived",
        """\
  compactor repair events --stack my-stack   every stream of a deployed stack
  compactor repair events s3://my-logs/raw/ s3://my-lake/compacted/ --depth 1 \\
      --listing events:my-table/logs
""",
    ),
    "repair table": Entry(
        "repair",
        "repair:table",
        "resume with a table that was rolled back or recreated",
        """\
  compactor repair table logs                shows the differences, changes nothing
  compactor repair table logs --add-missing
""",
    ),
}
_GROUPS = {
    "runs": "Runs of this machine, and of a deployed stack.",
    "table": "The table from which query engines read each record once.",
    "maintain": "Tables that others write.",
    "repair": "What no run does by itself.",
}


def command(path: str) -> Command:
    """Return a command with its options, by its whole name."""
    entry = COMMANDS[path]
    module, _, name = entry.action.partition(":")
    action = getattr(import_module(f"compactor_cli.commands.{module}"), name)
    return Command(path.rpartition(" ")[2], action, entry.summary, entry.examples)


def root() -> Group:
    """Return the whole command line; each command is loaded when it is asked for."""
    sections: dict[str, list[tuple[str, str]]] = {}
    for path, entry in COMMANDS.items():
        sections.setdefault(entry.section, []).append((path, entry.summary))

    def load(name: str) -> click.Command:
        return _group(name) if name in _GROUPS else command(name)

    group = Group("compactor", sections, load, help=_SUMMARY, epilog=_EPILOG)
    option = click.version_option(__version__, "-V", "--version", message="compactor %(version)s")
    return option(group)


def _group(name: str) -> Group:
    rows = [
        (path.rpartition(" ")[2], entry.summary)
        for path, entry in COMMANDS.items()
        if path.startswith(f"{name} ")
    ]
    sections = {"commands": rows}
    return Group(name, sections, lambda verb: command(f"{name} {verb}"), help=_GROUPS[name])


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code. SIGTERM interrupts it as Ctrl-C does."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    with own_form(), interrupted_by_sigterm():
        code = _carry_out(arguments)
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        _drop_output()
        if not code and not isinstance(error, BrokenPipeError):
            print_failure(f"standard output: {error}")
        return code or EXIT_FAILED
    return code


def _carry_out(arguments: Sequence[str]) -> int:
    code: int | None
    try:
        _require_streams()
        _require_text(arguments)
        if instruction := os.environ.get(_COMPLETE):
            return _complete(instruction)
        with region_of_environment():
            context = root().make_context("compactor", list(arguments or ["--help"]))
            with context:
                code = context.command.invoke(context)
    except KeyboardInterrupt:
        print_failure("interrupted; committed work is kept")
        code = EXIT_INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        code = EXIT_FAILED
    except Exception as raised:
        code = _report(raised)
        if code is None:
            raise
    return code or 0


def _report(raised: Exception) -> int | None:
    """Report an error; returns the exit code, and None for a bug, which is not reported."""
    if isinstance(raised, click.exceptions.Exit):
        return raised.exit_code
    if isinstance(raised, OSError) and not _can_print():
        # The end of main() reports it.
        return 0
    if not isinstance(raised, click.UsageError):
        return report_error(raised)
    path = raised.ctx.command_path if raised.ctx else "compactor"
    write("error", f"{path}: {' '.join(raised.format_message().split())} (try {path} --help)")
    return EXIT_USAGE


def _can_print() -> bool:
    try:
        sys.stdout.flush()
    except OSError:
        return False
    return True


def _complete(instruction: str) -> int:
    """Print a shell's completions, or the script that asks for them."""
    from click.shell_completion import shell_complete  # noqa: PLC0415 - only to complete

    return shell_complete(root(), {}, "compactor", _COMPLETE, instruction)


@contextmanager
def interrupted_by_sigterm() -> Iterator[None]:
    """Treat SIGTERM as Ctrl-C within the block; another thread may not set handlers."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _require_streams() -> None:
    """Open ``/dev/null`` in place of closed standard streams, which are None in Python.

    Raises:
        Failure: standard output is closed.
    """
    # A file opened later would otherwise get the descriptor and receive printed output.
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_RDONLY), encoding="utf-8")
    closed = sys.stdout is None
    if closed:
        os.open(os.devnull, os.O_WRONLY)
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")
    if closed:
        raise Failure("standard output is closed; nothing was done")


def _require_text(arguments: Sequence[str]) -> None:
    """Refuse arguments that cannot be stored in S3 or JSON.

    Raises:
        InvalidInput: an argument is not UTF-8 or contains NUL.
    """
    for word in arguments:
        if "\0" in word or any("\ud800" <= character <= "\udfff" for character in word):
            raise InvalidInput("argument", word, "UTF-8 without NUL characters")


def _drop_output() -> None:
    """Discard unwritten output after a broken pipe; Python would try to flush it at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        # Standard output has no file descriptor.
        return
