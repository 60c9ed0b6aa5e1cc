"""What software writes into its logs, drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(2026, 1, 2, tzinfo=UTC)
_TEXT = """
    alpha accounts api batch billing cache cart catalog checkout client config customer data
    delivery edge event export fleet gateway health image import index invoice item job ledger
    mail metrics monitor node notify order orders payment pool price profile queue region
    report request retry route search server service session shard ship stage stock store
    stream sync table task tenant token trace update upload user vault video web worker zone
"""
_WORDS = _TEXT.split()
_AGENTS = (
    "curl/8.5.0",
    "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko)",
    "ELB-HealthChecker/2.0",
    "aws-sdk-go-v2/1.30.1 os/linux lang/go#1.22.5",
    "kube-probe/1.29",
)


class Chance(random.Random):
    """A source of numbers that is the same for the same source in every process.

    Attributes:
        number: which of its kind's sources this is, from 0.
        count: how many there are.
    """

    def __init__(self, name: str, seed: int, number: int, count: int) -> None:
        # A str is hashed by SHA-512, the same in every process.
        super().__init__(f"{name}/{seed}/{number}")
        self.number = number
        self.count = count
        self._now = _EPOCH + timedelta(minutes=5 * number, seconds=self.randrange(200))

    def __reduce__(self) -> str:
        raise TypeError("a Chance is made anew, not copied")

    def time(self) -> datetime:
        """A little later than the last time."""
        self._now += timedelta(microseconds=self.randrange(1_000, 9_000_000))
        return self._now

    def at(self, form: str) -> str:
        """Such a time, written in a way of strftime; ``%3`` are milliseconds."""
        now = self.time()
        return now.strftime(form.replace("%3", f"{now.microsecond // 1000:03}"))

    def iso(self) -> str:
        """Such a time as AWS writes it."""
        return self.at("%Y-%m-%dT%H:%M:%SZ")

    def unix(self) -> int:
        """Such a time in seconds."""
        return int(self.time().timestamp())

    def ip(self) -> str:
        """An address that documentation may use, or a private one."""
        first = self.choice(("10.0", "172.31", "192.0", "203.0", "198.51"))
        return f"{first}.{self.randrange(256)}.{self.randrange(1, 255)}"

    def word(self) -> str:
        """A lower-case word."""
        return self.choice(_WORDS)

    def words(self, low: int = 2, high: int = 7) -> str:
        """Some words."""
        return " ".join(self.word() for _ in range(self.randint(low, high)))

    def path(self) -> str:
        """The path of a request."""
        return "/" + "/".join(self.word() for _ in range(self.randint(1, 3)))

    def agent(self) -> str:
        """A User-Agent."""
        return self.choice(_AGENTS)

    def hexes(self, digits: int) -> str:
        """Hexadecimal digits."""
        return f"{self.getrandbits(digits * 4):0{digits}x}"

    def id(self) -> str:
        """A UUID."""
        text = self.hexes(32)
        return "-".join((text[:8], text[8:12], "4" + text[13:16], "a" + text[17:20], text[20:]))

    def status(self) -> int:
        """A status of HTTP."""
        return self.choice((200, 200, 200, 204, 301, 304, 404, 500))

    def host(self) -> str:
        """A host's name."""
        return f"{self.word()}-{self.randrange(1, 30)}"

    def level(self) -> str:
        """How bad it is."""
        return self.choice(("INFO", "INFO", "WARN", "ERROR", "DEBUG"))

    def rows(self, row: Callable[[], str], low: int = 3, high: int = 12, *, end: str = "\n") -> str:
        """So many rows, each with its line end."""
        return "".join(row() + end for _ in range(self.randint(low, high)))

    def unended(self, text: str, end: str = "\n") -> str:
        """The text, in one of three sources without its last line end."""
        return text.removesuffix(end) if self.number % 3 == 2 else text

    def pick(self, options: Sequence[str]) -> str:
        """One of them, a different one for every source."""
        return options[self.number % len(options)]
