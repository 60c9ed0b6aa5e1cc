"""Application events as JSON: one per line, or concatenated as Firehose writes them."""

from __future__ import annotations

import json
from random import Random

from compactor_cli.generator.drawing import Draw, address, clock

_POOL = 2_048
_NAMES = ("Ana García", "Jürgen Groß", "Zoë O'Neil", "李雷", "John Smith", "Aïcha Diallo", "Bo Ek")
_SERVICES = ("checkout", "cart", "search", "catalog", "payment", "session", "shipping")
_PATHS = ("/", "/cart", "/api/v2/orders", "/api/v2/search?q=red%20shoes", "/login", "/p/48213")
_LEVELS = ("DEBUG", "INFO", "INFO", "INFO", "INFO", "INFO", "WARN", "ERROR")
# Braces, quotes and newlines within strings, which a naive splitter mistakes for a record's end.
_MESSAGES = (
    "request served",
    "cache miss, fetched from origin",
    'template "{{name}}" rendered }{ twice',
    'retrying after 503: {"code":"SlowDown"}{"attempt":2}',
    "java.net.SocketTimeoutException: Read timed out\n\tat shop.Client.call(Client.java:71)\n",
    "Zahlung über 12,50 € bestätigt \u2013 danke",
    "path C:\\temp\\upload.bin removed",
    "user signed in",
)


class EventRenderer:
    """Events of a web shop, about 340 bytes each.

    Every record has a unique ``event_id``; the rest is drawn from a pool rendered once, which makes
    thousands of objects per second possible.
    """

    def __init__(self, seed: int, *, delimited: bool) -> None:
        rng = Random(f"events:{seed}")
        self._tails = [_tail(rng) for _ in range(_POOL)]
        self.separator = self.epilogue = "\n" if delimited else ""

    def prologue(self, draw: Draw) -> str:
        """These objects have no header."""
        return ""

    def records(self, draw: Draw, rows: int) -> list[str]:
        """Events of the object's five minutes, in order of time."""
        rng, day, times = draw.rng, draw.day, clock()
        digits = rng.randbytes(16 * rows).hex()
        records = []
        for row, (second, tail) in enumerate(
            zip(draw.seconds(rows), rng.choices(self._tails, k=rows), strict=True)
        ):
            d = digits[32 * row : 32 * row + 32]
            records.append(
                f'{{"event_id":"{d[:8]}-{d[8:12]}-4{d[13:16]}-a{d[17:20]}-{d[20:]}",'
                f'"timestamp":"{day}T{times[second]}.{row * 37 % 1000:03d}Z",{tail}'
            )
        return records


def _tail(rng: Random) -> str:
    level = rng.choice(_LEVELS)
    status = rng.choice((500, 502, 503)) if level == "ERROR" else rng.choice((200, 200, 201, 304))
    event = {
        "level": level,
        "service": rng.choice(_SERVICES),
        "host": f"ip-{address(rng).replace('.', '-')}",
        "duration_ms": round(rng.lognormvariate(3.0, 1.0), 3),
        "user": _user(rng),
        "http": {
            "method": rng.choice(("GET", "GET", "GET", "POST", "PUT")),
            "path": rng.choice(_PATHS),
            "status": status,
            "bytes": int(rng.lognormvariate(7.0, 1.5)),
        },
        "tags": rng.sample(("web", "mobile", "beta", "eu", "us", "batch"), k=rng.randrange(4)),
        "message": rng.choice(_MESSAGES),
    }
    return json.dumps(event, ensure_ascii=False, separators=(",", ":"))[1:]


def _user(rng: Random) -> dict[str, object] | None:
    if rng.random() < 0.2:
        return None
    return {
        "id": rng.randrange(1, 10**7),
        "name": rng.choice(_NAMES),
        "premium": rng.random() < 0.1,
    }
