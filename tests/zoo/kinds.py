"""What a kind of source is: how software writes it, who reads it, and what becomes of it.

The kinds are data, one entry each in the tables of :mod:`tests.zoo.families`:

    Kind("nginx combined", ".log", lines, "https://nginx.org/en/docs/http/ngx_http_log_module.html",
         rows(lambda c: f"{c.ip()} - - [{c.at('%d/%b/%Y:%H:%M:%S +0000')}] ...")),
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.zoo.chance import Chance
from tests.zoo.readers import Reader

SOURCES_EACH = 5
JOINED = "joined"
TEXT: Mapping[str, Any] = {"format": "text"}
HEADED: Mapping[str, Any] = {"format": "csv", "header": True}
ROWS: Mapping[str, Any] = {"format": "csv", "header": False}
Write = Callable[[Chance], str | bytes]


@dataclass(frozen=True)
class Kind:
    """One kind of source.

    Attributes:
        name: as people call it.
        ending: of its keys, after the number.
        reader: what its users see in one object.
        url: the page that documents its shape.
        write: writes one source; it may use ``c.number`` and ``c.count``.
        declared: its entry in ``formats``, without the pattern; None for the defaults.
        expected: "joined", or the reasons for which all of its sources are left alone, or both.
        loose: the reader of an object that it shares with another kind.
    """

    name: str
    ending: str
    reader: Reader
    url: str
    write: Write
    declared: Mapping[str, Any] | None = None
    expected: str = JOINED
    loose: Reader | None = None

    def source(self, number: int, seed: int = 0, count: int = SOURCES_EACH) -> bytes:
        """The bytes of one of ``count`` sources; equal for equal arguments."""
        text = self.write(Chance(self.name, seed, number, count))
        return text.encode() if isinstance(text, str) else text


def rows(row: Callable[[Chance], str]) -> Write:
    """Sources of such rows."""
    return lambda c: c.rows(lambda: row(c))


def printed(row: Callable[[Chance], str]) -> Write:
    """Sources of at least two such lines, some without their last line end."""
    return lambda c: c.unended(c.rows(lambda: row(c), 2))


def js(**members: Any) -> str:
    """An object on one line without blanks, as most software writes it."""
    return json.dumps(members, separators=(",", ":"))


def spaced(**members: Any) -> str:
    """An object on one line as Python writes it."""
    return json.dumps(members)
