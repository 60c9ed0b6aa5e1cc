"""Sources of many partitions and formats; every record is unlike every other."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Sequence
from random import Random

import zstandard

MIB = 1024 * 1024
Make = Callable[[Sequence[str]], bytes]


def _json_lines(names: Sequence[str]) -> bytes:
    return b"".join(json.dumps({"id": name, "n": 1.50}).encode() + b"\n" for name in names)


def _csv(names: Sequence[str]) -> bytes:
    return "\n".join(["id,name", *(f"{n},{name}" for n, name in enumerate(names))]).encode()


def _text(names: Sequence[str]) -> bytes:
    return "\r\n".join(f"2026-01-02 03:04:05 host {name}" for name in names).encode()


def _trail(names: Sequence[str]) -> bytes:
    events = [{"eventVersion": "1.08", "eventID": name} for name in names]
    return json.dumps({"Records": events}).encode()


def _undelimited(names: Sequence[str]) -> bytes:
    return "".join(json.dumps({"id": name}) for name in names).encode()


def _plain(body: bytes) -> bytes:
    return body


def _gzip(body: bytes) -> bytes:
    return gzip.compress(body, mtime=0)


_KINDS: tuple[tuple[str, Make, Callable[[bytes], bytes]], ...] = (
    ("events-{}.json", _json_lines, _plain),
    ("table-{}.csv", _csv, _plain),
    ("host-{}.log.gz", _text, _gzip),
    ("111122223333_CloudTrail_us-east-1_{}.json.gz", _trail, _gzip),
    ("stream-{}", _undelimited, _plain),
    ("host-{}.txt.zst", _text, zstandard.ZstdCompressor().compress),
)


def partitions(
    count: int, *, seed: int, name: str = "p", each: int = 3
) -> Iterator[tuple[str, bytes]]:
    """Keys and bodies of small sources.

    Args:
        count: partitions, one segment deep.
        seed: decides which formats a partition has, and how long its sources are.
        name: what the names of the partitions begin with.
        each: sources of a format.
    """
    for number in range(count):
        dice = Random(f"{seed}:{name}:{number}")
        for kind, (named, make, packed) in enumerate(dice.sample(_KINDS, 2)):
            for one in range(each):
                names = [
                    f"record-{name}-{number}-{kind}-{one}-{n}-{dice.randbytes(6).hex()}"
                    for n in range(dice.randint(1, 20))
                ]
                yield f"{name}-{number:02}/{named.format(one)}", packed(make(names))


def large_partition(*, seed: int) -> Iterator[tuple[str, bytes]]:
    """A partition whose output has two parts: 18 MiB of plain lines."""
    dice = Random(seed)
    for number in range(6):
        size = 0
        lines: list[str] = []
        while size < 3 * MIB:
            name = f"record-{seed}-large-{number}-{len(lines)}"
            line = f"2026-01-02 03:04:05 {name} {dice.randbytes(5_000).hex()}\n"
            lines.append(line)
            size += len(line)
        yield f"large/host-{number}.log", "".join(lines).encode()
