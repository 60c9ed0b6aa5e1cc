"""The argument parser of every command: one-line errors, and a help that fits one screen."""

from __future__ import annotations

import argparse
import copy
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from itertools import zip_longest
from pathlib import Path
from typing import Any, NoReturn

from compactor.settings.fields import FIELDS
from compactor_cli.commands.failures import EXIT_USAGE
from compactor_cli.jobs import JOB_FILE, is_name, no_job, read_job

#: Lines of a help that still fit one screen of 80 columns.
SCREEN_LINES = 40
_COLUMNS = 80
_HELP_AT = 30
_SHOWN_EXAMPLES = 2
# The form in which argparse reports an unknown choice.
_CHOICE = re.compile(r"invalid choice: '(.*)' \(choose from (.*)\)$")
_SWITCHES = frozenset({"true", "false"})
_FIRST_CLAUSE = re.compile(r"(?s)(.+?)(?:\.\s|; |: | \(|$)")
_FEWEST_WORDS = re.compile(r"(?s)(.+?)(?:[,;:] |$)")
# Short help for the most used options, by field of a run or by argument.
_FIELDS: Mapping[str, str] = {
    "s3_source_uri": "where the small objects are, or a job",
    "s3_destination_uri": "where the outputs go, under the same paths",
    "date_format": "partitions are dates: %Y/%m/%d or dt=%Y-%m-%d",
    "duration": "number of whole days before today",
    "start": "first day instead, such as 2026-01-31",
    "end": "last day",
    "depth": "without dates: levels of a partition's path",
    "include": "only keys below the source that match",
    "exclude": "no keys that match",
    "settle_seconds": "skip objects younger than this",
    "open_partition_seconds": "write full outputs only while younger",
    "target_bytes": "size of an output, such as 128MiB",
    "output_format": "same, or parquet",
    "clean_up": "keep sources, or delete them after retention",
    "retention_days": "days until a source may be deleted",
    "listing": "list or events:TABLE/STREAM",
    "reader_table": "for query engines: glue:DATABASE.TABLE",
    "reader_mode": "exact, or compacted: outputs only",
}
_ARGUMENTS: Mapping[str, str] = {
    "input": "the whole input as JSON; - reads standard input",
    "workers": "number of workers",
    "explain": "show each figure with its formula and prices",
    "prices": "price list to use instead of the built-in one",
    "time_limit": "stop before this time is over, with exit code 3",
}
_PARTITIONS = frozenset({"date_format", "duration", "start", "end", "depth"})
_OF_READERS = _PARTITIONS | {"reader_table", "reader_mode"}
_OF_RUNS = frozenset(_FIELDS) - {"listing", "reader_table", "reader_mode"}
_PLACES = frozenset({"s3_source_uri", "s3_destination_uri"})
_WINDOW = frozenset({"duration", "start", "end"})
_SHOWN_FIELDS: Mapping[str, frozenset[str]] = {
    "plan": _OF_RUNS,
    "run": _OF_RUNS,
    "start": _OF_RUNS - {"open_partition_seconds"},
    "reconcile": _PARTITIONS | {"listing"},
    "table": _OF_READERS,
    "clean-up": frozenset({"retention_days"}),
    "restore": frozenset(),
}
# Options that the short help leaves out.
_SELDOM: Mapping[str, frozenset[str]] = {
    # Of the program itself; --help-all lists them.
    "": frozenset({"help", "help_all", "version"}),
    "run": frozenset({"engine", "log", "metrics_file"}),
    "start": frozenset({"name", "region"}),
    "restore": frozenset({"etag", "source_bucket"}),
    "tables": frozenset({"log", "name", "region"}),
}


# Options of every command, which `compactor --help-all` describes.
_COMMON = frozenset({"quiet", "verbose", "log_format"})


class Parser(argparse.ArgumentParser):
    """Reports errors in one line, with the nearest known name; ``--help`` is short.

    ``--help-all`` prints what argparse would: every option, with what it accepts. Where a command
    takes ``--job-file``, the name of a job stands for SOURCE and DEST.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.add_argument("--help-all", action=_HelpAll, nargs=0, help="show every option, in full")
        # Without defaults, so that an action of a command keeps what was given before its name.
        is_program = " " not in self.prog
        for names, what in (
            (("-q", "--quiet"), "no progress and no notes on standard error, only errors"),
            (("-v", "--verbose"), "errors in full, with their causes"),
        ):
            self.add_argument(
                *names,
                action="store_true",
                default=argparse.SUPPRESS,
                help=what if is_program else argparse.SUPPRESS,
            )
        self.add_argument(
            "--log-format",
            choices=("text", "json"),
            default=argparse.SUPPRESS,
            help="form of progress and errors on standard error; json prints an object a line"
            if is_program
            else argparse.SUPPRESS,
        )

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, and report unknown options here.

        A subparser returns them to its parent, which knows none of the subparser's options.
        """
        words = self._with_job(args or ())
        self._require_no_values(words)
        found, unknown = super().parse_known_args(words, namespace)
        for one in unknown:
            option = one.partition("=")[0]
            if option.startswith("--"):
                self.error(f"unknown option {option}{meant(option, self._option_string_actions)}")
        return found, unknown

    def _with_job(self, words: Sequence[str]) -> Sequence[str]:
        """Replace the name of a job by its URIs; its other fields become defaults.

        Raises:
            InvalidInput: there is no such job, or it is invalid.
        """
        places = [one.dest for one in self._actions if not one.option_strings]
        places = [one for one in places if one in _PLACES]
        given, at = self._read_words(words)
        if "job_file" not in self._known or at is None or not is_name(words[at]):
            return words
        file, name = Path(given.get("job_file") or JOB_FILE), words[at]
        job = read_job(file, name) if file.exists() or given.get("job_file") else None
        if job is None:
            if "run_id" in self._known:
                return words
            raise no_job(file, name, places[0])
        # A window or depth of the command line replaces the job's.
        replaced = _WINDOW if given.keys() & _WINDOW else frozenset()
        replaced |= _PARTITIONS if "depth" in given else frozenset()
        defaults = job.keys() & self._known - replaced - _PLACES
        self.set_defaults(**{one: job[one] for one in defaults})
        return [*words[:at], *(job[one] for one in places), *words[at + 1 :]]

    @property
    def _known(self) -> frozenset[str]:
        return frozenset(one.dest for one in self._actions)

    def _read_words(self, words: Sequence[str]) -> tuple[dict[str, str], int | None]:
        """Return the given options with their values, and where the first positional word is."""
        given: dict[str, str] = {}
        found, waiting = None, ""
        for at, word in enumerate(words):
            option, _, value = word.partition("=")
            if waiting:
                given[waiting], waiting = word, ""
            elif not word.startswith("-"):
                found = at if found is None else found
            elif action := self._option_string_actions.get(option):
                given[action.dest] = value
                waiting = action.dest if action.nargs != 0 and "=" not in word else ""
            else:
                # The following word may be its value.
                return given, found
        return given, found

    def _require_no_values(self, words: Sequence[str]) -> None:
        """Reject ``--option true`` and ``--option=false`` with the flags to use instead."""
        for word, following in zip_longest(words, words[1:]):
            option, equals, value = word.partition("=")
            value = value if equals else following
            action = self._option_string_actions.get(option)
            if isinstance(action, argparse.BooleanOptionalAction) and value in _SWITCHES:
                names = sorted(action.option_strings, key=lambda name: name.startswith("--no-"))
                on, off = names[0], names[-1]
                self.error(f"{option} takes no value: {on} is true, {off} is false")

    def error(self, message: str) -> NoReturn:
        """End with one line and the exit code of wrong usage."""
        if choice := _CHOICE.search(message):
            message += meant(choice[1], choice[2].replace("'", "").split(", "))
        self.exit(EXIT_USAGE, f"{self.prog}: {message} (try {self.prog} --help)\n")

    def format_help(self) -> str:
        """Return the full help where it fits one screen, else the common options."""
        full = self.format_full_help()
        if full.count("\n") <= SCREEN_LINES:
            return full
        return _Brief(self).text()

    def format_full_help(self) -> str:
        """Return the help with every option in full."""
        return super().format_help()


class _HelpAll(argparse.Action):
    """Prints every option and exits."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        if isinstance(parser, Parser):
            parser._print_message(parser.format_full_help(), sys.stdout)
        parser.exit()


class _Brief:
    """The short help of a command with many options: the common ones, a line or two each."""

    def __init__(self, parser: Parser) -> None:
        self._parser = parser
        command = (*parser.prog.split(), "")[1]
        self._fields = _SHOWN_FIELDS.get(command, _PARTITIONS)
        self._seldom = _SELDOM.get(command, frozenset())

    def text(self) -> str:
        parser = self._parser
        actions = [_brief(one) for one in parser._actions if self._is_shown(one)]
        places = [one for one in actions if not one.option_strings]
        options = [one for one in actions if one.option_strings]
        rows = [one for place in places for one in _commands_of(place)]
        width = min(_COLUMNS, shutil.get_terminal_size().columns) - 2
        formatter = argparse.RawDescriptionHelpFormatter(parser.prog, 2, _HELP_AT, width)
        words = " ".join(formatter._format_args(one, one.dest) for one in places)
        formatter.add_usage(f"{parser.prog} [options] {words}", [], [])
        formatter.add_text(textwrap.fill(parser.description or "", width))
        for title, some in ((None, rows), ("common options", options)):
            formatter.start_section(title)
            formatter.add_arguments(some)
            formatter.end_section()
        formatter.add_text(f"all options, and what each accepts: {parser.prog} --help-all")
        formatter.add_text(_fewer_examples(parser.epilog or ""))
        return formatter.format_help()

    def _is_shown(self, action: argparse.Action) -> bool:
        if _is_field(action):
            return action.dest in self._fields | _PLACES
        seldom = self._seldom | _COMMON | {"job_file"}
        return action.dest not in seldom and action.help is not argparse.SUPPRESS


def _is_field(action: argparse.Action) -> bool:
    """Return whether an action is a field of a run; some arguments share a field's name."""
    spec = FIELDS.get(action.dest)
    return spec is not None and (action.help or "").startswith(spec.meaning.replace("%", "%%"))


def _brief(action: argparse.Action) -> argparse.Action:
    """Return a copy with a short help, its default, and at most two option names."""
    shown = copy.copy(action)
    clause = _FIRST_CLAUSE.match(action.help or "")
    words = (_FIELDS if _is_field(action) else _ARGUMENTS).get(action.dest, "")
    shown.help = words.replace("%", "%%") or (clause[1] if clause else "")
    spec = FIELDS[action.dest] if _is_field(action) else None
    if spec is not None and isinstance(spec.default, int | float):
        shown.help += f" ({spec.default_text})"
    shown.option_strings = sorted(action.option_strings, key=len)[:2]
    return shown


def _commands_of(place: argparse.Action) -> list[argparse.Action]:
    """Return the subcommands with short summaries; for any other argument, the argument."""
    if not isinstance(place, argparse._SubParsersAction):
        return [place]
    found = [copy.copy(one) for one in place._choices_actions]
    for one in found:
        fewest = _FEWEST_WORDS.match(one.help or "")
        one.help = fewest[1] if fewest else ""
    return found


def _fewer_examples(epilog: str) -> str:
    """Return the first examples and the exit codes."""
    examples, _, codes = epilog.partition("\n\n")
    head, *lines = examples.split("\n")
    shown: list[str] = []
    for line in lines:
        # An indented line continues the previous example.
        is_next = not line.startswith("    ")
        if is_next and sum(not one.startswith("    ") for one in shown) == _SHOWN_EXAMPLES:
            break
        shown.append(line)
    return "\n".join((head, *shown, "", codes))


def meant(word: str, known: Iterable[str]) -> str:
    """Return "; did you mean X?" for the nearest known word; empty where none is close."""
    found = get_close_matches(word, known, n=1)
    return f"; did you mean {found[0]}?" if found else ""
