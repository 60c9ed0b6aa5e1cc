"""What a kind of source is, and the list of all of them.

A kind is one function that writes a source as one piece of real software does, with the page
that documents its shape, the reader that its users read it with, and what must become of it:

    @kind(
        "nginx combined access log",
        page="Module ngx_http_log_module",
        url="https://nginx.org/en/docs/http/ngx_http_log_module.html",
        reader=lines,
        verdict=Verdict.JOINED,
        ending=".log",
    )
    def _nginx(chance):
        return chance.rows(lambda: f"...")

That is all: tests, table, fuzz and simulation find it in :data:`KINDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tests.zoo.chance import Chance
from tests.zoo.readers import Reader

SOURCES_EACH = 5


class Verdict(StrEnum):
    """What must become of the sources of a kind."""

    JOINED = "joined"
    """Several in one output, none left alone: it is what the product is for."""
    LEFT = "left alone"
    """Nothing may share its output, whatever it is that is left."""
    EITHER = "either"
    """Right as long as its reader sees the same records."""


@dataclass(frozen=True)
class Kind:
    """One kind of source.

    Attributes:
        name: as people call it.
        page, url: where its shape is documented.
        reader: what its users see in one object.
        verdict: what must become of it.
        ending: of its keys, behind what tells them apart.
        write: one source; it may look at ``chance.number`` and ``chance.count``.
        given: settings that its users give; none for the defaults.
        loose: the reader where its sources share an object with another kind.
    """

    name: str
    page: str
    url: str
    reader: Reader
    verdict: Verdict
    ending: str
    write: Callable[[Chance], str | bytes]
    given: Mapping[str, object] = field(default_factory=dict)
    loose: Reader | None = None

    def source(self, number: int, seed: int = 0, count: int = SOURCES_EACH) -> bytes:
        """The bytes of one of ``count`` sources; equal for equal arguments."""
        made = self.write(Chance(self.name, seed, number, count))
        return made.encode() if isinstance(made, str) else made

    def sources(self, seed: int = 0, count: int = SOURCES_EACH) -> list[bytes]:
        """Several sources, as one producer writes them."""
        return [self.source(number, seed, count) for number in range(count)]


_Write = Callable[[Chance], str | bytes]
_FOUND: dict[str, Kind] = {}


def kind(
    name: str,
    *,
    page: str,
    url: str,
    reader: Reader,
    verdict: Verdict,
    ending: str,
    given: Mapping[str, object] | None = None,
    loose: Reader | None = None,
) -> Callable[[_Write], _Write]:
    """Put the function below into the zoo; the arguments are those of :class:`Kind`."""

    def put(write: _Write) -> _Write:
        if name in _FOUND:
            raise ValueError(f"two kinds are called {name!r}")
        _FOUND[name] = Kind(name, page, url, reader, verdict, ending, write, given or {}, loose)
        return write

    return put


def found() -> dict[str, Kind]:
    """Every kind of the modules imported so far, by its name."""
    return _FOUND
