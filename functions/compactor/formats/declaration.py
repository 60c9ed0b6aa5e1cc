"""What a person declares about sources: their format, by a pattern of keys."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from fnmatch import translate
from functools import cached_property
from typing import Any

from compactor.model import Format

#: Formats of documents whose records are written one per line.
LINES_OF = {
    "cloudtrail_lines": Format.CLOUDTRAIL,
    "json_array_lines": Format.JSON_ARRAY,
}
_NAMES = (*(one.value for one in Format), *LINES_OF)
_COLUMNS = (Format.CSV, Format.TSV)
_OPTIONS = ("match", "format", "header", "delimiter", "quote", "escape", "encoding")
# A printable separator, a tab, or the Ctrl-A of Hive.
_DELIMITER = re.compile(r"[\t\x01 -~](?<![A-Za-z0-9\"\\])")
FORMATS_ACCEPTED = (
    "the name of a format, or a list such as"
    ' [{"match": "*/orders/*.csv", "format": "csv", "header": true}]'
)


class Declaration:
    """The format of the sources whose keys match a pattern.

    Attributes:
        match: a glob for the key below the source root; ``*`` also matches ``/``.
        name: the format's name, as declared.
        format: of the sources.
        lines: whether records of documents are written one per line.
        header: for CSV and TSV, whether the first record names the columns.
        delimiter: for CSV and TSV, one character.
        quotes: for CSV and TSV, whether ``"`` quotes fields.
        backslash: for CSV and TSV, whether a backslash escapes the next character.
        single_byte: for text, whether each byte above 127 is a character, as in Latin-1.
    """

    def __init__(
        self,
        match: str,
        name: str,
        *,
        header: bool | None = None,
        delimiter: str = "",
        quotes: bool = True,
        backslash: bool = False,
        single_byte: bool = False,
    ) -> None:
        self.match = match
        self.name = name
        self.format = LINES_OF.get(name) or Format(name)
        self.lines = name in LINES_OF
        self.header = header
        self.delimiter = delimiter or ("\t" if self.format is Format.TSV else ",")
        self.quotes = quotes
        self.backslash = backslash
        self.single_byte = single_byte

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Declaration) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.match, self.text))

    def __repr__(self) -> str:
        return f"Declaration({self.text})"

    def matches(self, relative: str) -> bool:
        """Return whether a key below the source root matches."""
        return self.match == "*" or self._pattern.match(relative) is not None

    @property
    def covers_directories(self) -> bool:
        """Whether it covers all sources below a directory, whatever their names."""
        return self.match.rpartition("/")[2] == "*"

    def may_cover(self, directory: str) -> bool:
        """Return whether it covers sources in a directory, if they have the right names."""
        above, slash, _ = self.match.rpartition("/")
        return not slash or re.match(translate(f"{above}/*"), f"{directory}/") is not None

    def to_dict(self) -> dict[str, Any]:
        """Return the declaration as in a run's input, without defaults."""
        options: dict[str, Any] = {} if self.match == "*" else {"match": self.match}
        options["format"] = self.name
        if self.header is not None:
            options["header"] = self.header
            if self.delimiter != ("\t" if self.format is Format.TSV else ","):
                options["delimiter"] = self.delimiter
            if not self.quotes:
                options["quote"] = "none"
            if self.backslash:
                options["escape"] = "backslash"
        if self.single_byte:
            options["encoding"] = "single_byte"
        return options

    @cached_property
    def text(self) -> str:
        """The declaration without its pattern, as JSON."""
        options = self.to_dict()
        options.pop("match", None)
        return json.dumps(options, separators=(",", ":"))

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(translate(self.match))


def parse_formats(value: object) -> tuple[Declaration, ...]:
    """Return the declarations of the setting ``formats``.

    Raises:
        ValueError: names the declaration, and says what is accepted.
    """
    if isinstance(value, str):
        value = [{"format": value}]
    if isinstance(value, Mapping):
        raise ValueError(f"a list around it: {FORMATS_ACCEPTED}")
    if not isinstance(value, Sequence) or isinstance(value, bytes):
        raise ValueError(FORMATS_ACCEPTED)
    return tuple(_declaration(options, number) for number, options in enumerate(value, 1))


def _declaration(options: object, number: int) -> Declaration:
    if isinstance(options, Declaration):
        return options
    where = f"in declaration {number}"
    if not isinstance(options, Mapping):
        raise ValueError(f'an object {where}, such as {{"match": "*.log*", "format": "text"}}')
    unknown = [name for name in options if name not in _OPTIONS]
    if unknown:
        raise ValueError(f"{where} only {', '.join(_OPTIONS)}, not {unknown[0]}")
    match, name = options.get("match", "*"), options.get("format")
    if not isinstance(match, str) or not match:
        raise ValueError(f"{where} a glob as match, such as *.csv")
    if name not in _NAMES:
        raise ValueError(f"{where} as format one of {', '.join(_NAMES)}")
    format = LINES_OF.get(name) or Format(name)
    _check_belongs(options, format, where)
    header = options.get("header")
    if format in _COLUMNS and not isinstance(header, bool):
        example = f'[{{"format": "{name}", "header": true}}]'
        raise ValueError(f"{where} header: true or false (no text) for {name}, as in {example}")
    delimiter = options.get("delimiter", "")
    if delimiter != "" and not (isinstance(delimiter, str) and _DELIMITER.fullmatch(delimiter)):
        raise ValueError(f"{where} as delimiter one character, such as , ; | or a tab")
    _one_of(options, "quote", ('"', "none"), where)
    _one_of(options, "escape", ('"', "backslash"), where)
    _one_of(options, "encoding", ("utf-8", "single_byte"), where)
    return Declaration(
        match,
        name,
        header=header,
        delimiter=delimiter,
        quotes=options.get("quote") != "none",
        backslash=options.get("escape") == "backslash",
        single_byte=options.get("encoding") == "single_byte",
    )


def _check_belongs(options: Mapping[str, Any], format: Format, where: str) -> None:
    """Check that no option is given that says nothing about this format."""
    options_of_columns = ("header", "delimiter", "quote", "escape")
    for name in options:
        if name in options_of_columns and format not in _COLUMNS:
            raise ValueError(f"{where} {name} only with format csv or tsv")
        if name == "encoding" and format not in (*_COLUMNS, Format.TEXT):
            raise ValueError(f"{where} encoding only with format text, csv or tsv")


def _one_of(options: Mapping[str, Any], name: str, accepted: tuple[str, ...], where: str) -> None:
    if name in options and options[name] not in accepted:
        raise ValueError(f"{where} as {name} {' or '.join(accepted)}")
