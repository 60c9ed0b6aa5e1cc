"""A few sources of every format, and what becomes of them: keys, bytes and requests.

    python -m tests.golden.play            what differs from golden.json; 1 when anything does
    python -m tests.golden.play --write    write golden.json again, on purpose

Whatever depends on the version or the processor of a compressing library is left out: sources are
stored in gzip and zstd without being compressed, and of compressed outputs the content counts.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import struct
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import zstandard

from tests.support.world import World

GOLDEN = Path(__file__).with_name("golden.json")
#: What writes it anew.
COMMAND = "python -m tests.golden.play --write"
_SOURCES = 5
_RECORDS = 20
_WORDS = ("alpha", "bravo", "charlie", "naïve", "東京", "a b", "")
Found = Mapping[str, Mapping[str, Mapping[str, Any]]]


def _stored_gzip(plain: bytes) -> bytes:
    """One member with one stored block, the same on every machine."""
    block = struct.pack("<BHH", 1, len(plain), len(plain) ^ 0xFFFF) + plain
    trailer = struct.pack("<II", zlib.crc32(plain), len(plain))
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + block + trailer


def _stored_zstd(plain: bytes) -> bytes:
    """One frame with its size and one raw block."""
    frame = struct.pack("<IBI", 0xFD2FB528, 0xA0, len(plain))
    return frame + (1 | len(plain) << 3).to_bytes(3, "little") + plain


# One source of each kind; the number tells sources apart.


def _values(random: Random) -> dict[str, Any]:
    return {
        "id": random.getrandbits(40),
        "word": random.choice(_WORDS),
        "share": random.randrange(1_000) / 8,
        "deep": {"flag": random.random() < 0.5, "none": None},
    }


def _dumped(values: Any) -> str:
    return json.dumps(values, ensure_ascii=False)


def _json_lines(random: Random, number: int) -> str:
    # Every other one ends within its last line.
    return "\n".join(_dumped(_values(random)) for _ in range(_RECORDS)) + "\n" * (number % 2)


def _crlf(random: Random, number: int) -> str:
    return _json_lines(random, number).replace("\n", "\r\n")


def _text(random: Random, number: int) -> str:
    return "".join(
        f"2026-01-02T03:{number:02}:{n:02}Z INFO request {random.getrandbits(32):08x}"
        f" took {random.randrange(900)} ms\n"
        for n in range(_RECORDS)
    )


def _rows(random: Random, mark: str) -> str:
    header = mark.join(("id", "name", "amount"))
    rows = (
        mark.join((str(random.getrandbits(30)), f"name-{n}", f"{random.randrange(99)}.5"))
        for n in range(_RECORDS)
    )
    return "\n".join((header, *rows)) + "\n"


def _flow(random: Random, number: int) -> str:
    fields = (
        "version account-id interface-id srcaddr dstaddr srcport dstport protocol packets bytes"
        " start end action log-status"
    )
    rows = (
        f"2 123456789012 eni-0a1b2c3d 10.0.{number}.{n} 10.0.0.9 {random.randrange(1024, 65536)}"
        f" 443 6 {n + 1} {random.randrange(9_000)} 1767322800 1767322860 ACCEPT OK"
        for n in range(_RECORDS)
    )
    return "\n".join((fields, *rows)) + "\n"


def _front(random: Random, number: int) -> str:
    head = "#Version: 1.0\n#Fields: date time x-edge-location sc-bytes c-ip cs-method\n"
    return head + "".join(
        f"2026-01-02\t03:{number:02}:{n:02}\tFRA2-C1\t{random.randrange(9_000)}\t10.0.0.{n}\tGET\n"
        for n in range(_RECORDS)
    )


def _trail(random: Random, number: int) -> str:
    events = [
        {
            "eventVersion": "1.08",
            "eventTime": f"2026-01-02T03:{number:02}:{n:02}Z",
            "eventSource": "s3.amazonaws.com",
            "eventName": "GetObject",
            "awsRegion": "us-east-1",
            "eventID": f"{random.getrandbits(64):016x}",
        }
        for n in range(_RECORDS)
    ]
    return json.dumps({"Records": events}, separators=(",", ":"))


def _undelimited(random: Random, _: int) -> str:
    return "".join(_dumped(_values(random)) for _ in range(_RECORDS))


def _array(random: Random, _: int) -> str:
    return _dumped([_values(random) for _ in range(_RECORDS)])


def _list(random: Random, _: int) -> str:
    return _dumped({"items": [_values(random) for _ in range(_RECORDS)]})


def _large(random: Random, number: int) -> str:
    # One of them is large enough to be copied whole.
    text = _text(random, number)
    return text * (6_000_000 // len(text)) if number == 1 else text


def _half(random: Random, _: int) -> str:
    # Two of them are as much as one output takes.
    return (_dumped(_values(random)) + "\n") * (2_500_000 // 100)


@dataclass(frozen=True)
class Case:
    """Sources of one kind.

    Attributes:
        ending: of their keys.
        plain: writes one of them.
        given: settings.
        stored: how they are stored.
    """

    ending: str
    plain: Callable[[Random, int], str]
    given: Mapping[str, object] = field(default_factory=dict)
    stored: Callable[[bytes], bytes] = bytes

    def sources(self, name: str) -> Iterator[tuple[str, bytes]]:
        """Names and contents, the same each time."""
        random = Random(name)
        for number in range(_SOURCES):
            body = self.plain(random, number).encode()
            yield f"source-{number}{self.ending}", self.stored(body)


_SMALL_TARGET = {"target_bytes": 5_242_880, "small_object_bytes": 5_242_880}

CASES: Mapping[str, Case] = {
    "json_lines": Case(".json", _json_lines),
    "json_lines with CRLF": Case(".json", _crlf),
    "json_lines in several outputs": Case(".json", _half, _SMALL_TARGET),
    "json_lines stored in gzip": Case(".json.gz", _json_lines, stored=_stored_gzip),
    "json_lines stored in zstd": Case(".json.zst", _json_lines, stored=_stored_zstd),
    "json_lines to gzip": Case(".json", _json_lines, {"compression": "gzip"}),
    "json_lines to zstd": Case(".json", _json_lines, {"compression": "zstd"}),
    "text": Case(".log", _text),
    "text stored in gzip": Case(".log.gz", _text, stored=_stored_gzip),
    "text that S3 copies": Case(".log", _large, _SMALL_TARGET),
    "csv": Case(".csv", lambda random, _: _rows(random, ",")),
    "tsv": Case(".tsv", lambda random, _: _rows(random, "\t")),
    "vpc_flow": Case(".log", _flow),
    "cloudfront": Case(".gz", _front, stored=_stored_gzip),
    "cloudtrail": Case(".json.gz", _trail, stored=_stored_gzip),
    "undelimited_json": Case("", _undelimited),
    "json_array": Case(".json", _array),
    "json_list": Case(".json", _list),
}
"""What is played, by the format it is about: all but Parquet, whose bytes depend on Arrow."""


def played(name: str) -> dict[str, dict[str, Any]]:
    """What becomes of the sources of a case.

    Returns:
        SHA-256 of each output's content by key, how often each kind of request was made, and how
        many sources were left alone.
    """
    case = CASES[name]
    world = World(**case.given)
    for source, body in case.sources(name):
        world.put(source, body)
    receipt = world.run()
    outputs = world.store.contents("lake", "compacted/")
    return {
        "outputs": {key: _digest(key, body) for key, body in outputs.items()},
        "requests": dict(sorted(Counter(call.name for call in world.store.calls).items())),
        "counts": {"sources": receipt.counts.objects_in},
    }


def _digest(key: str, body: bytes) -> str:
    if key.endswith(".gz"):
        body = gzip.decompress(body)
    elif key.endswith(".zst"):
        with zstandard.ZstdDecompressor().stream_reader(body, read_across_frames=True) as stream:
            body = stream.read()
    return hashlib.sha256(body).hexdigest()


def differences(name: str, before: Found, now: Found) -> list[str]:
    """What differs of a case, a line each.

    Args:
        name: of the case.
        before: what golden.json has, by name.
        now: what was played, by name.
    """
    then = before.get(name, {})
    found = []
    for what, values in now[name].items():
        old = then.get(what, {})
        found += [
            f"{name}: {what} {key}: was {old.get(key, 'not there')}, is {values.get(key, 'gone')}"
            for key in sorted({*old, *values})
            if old.get(key) != values.get(key)
        ]
    return found


def golden() -> Found:
    """What golden.json has."""
    found: Found = json.loads(GOLDEN.read_text(encoding="utf-8"))
    return found


def main() -> int:
    """Play all, then compare or write."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden.play", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--write", action="store_true", help="write golden.json anew")
    args = parser.parse_args()
    now = {name: played(name) for name in CASES}
    if args.write:
        GOLDEN.write_text(json.dumps(now, indent=2) + "\n", encoding="utf-8")
        return 0
    before = golden()
    lines = [line for name in now for line in differences(name, before, now)]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main())
