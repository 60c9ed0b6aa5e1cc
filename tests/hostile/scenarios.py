"""Sources that try to make a worker outgrow its memory, by name: (name, stored bytes), settings."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from typing import Any

import zstandard
from zlib_ng import zlib_ng

from tests.hostile.zstd import frame
from tests.support.examples import ON_LINES, columns

Sources = list[tuple[str, bytes]]
Scenario = Callable[[], tuple[Sources, dict[str, Any]]]
SCENARIOS: dict[str, Scenario] = {}
MIB = 1 << 20
ENVELOPE = (b'{"Records":[', b"]}")
TRAIL = "_CloudTrail_x.json.gz"


def scenario(make: Scenario) -> Scenario:
    SCENARIOS[make.__name__] = make
    return make


def squeezed(*pieces: tuple[bytes, int], level: int = 6) -> bytes:
    """gzip of each piece so many times over, made without holding it."""
    packer = zlib_ng.compressobj(level, zlib_ng.DEFLATED, 31)
    return b"".join(_squeezed(packer, pieces))


def _squeezed(packer: Any, pieces: tuple[tuple[bytes, int], ...]) -> Iterator[bytes]:
    for piece, times in pieces:
        at_once = max(1, MIB // max(1, len(piece)))
        block = piece * min(at_once, times)
        for _ in range(times // at_once):
            yield packer.compress(block)
        yield packer.compress(piece * (times % at_once))
    yield packer.flush()


def numbered(name: str, body: bytes, count: int) -> Sources:
    return [(f"{n:05}{name}", body) for n in range(count)]


# What the lines of a log begin with.
_STAMP = b"2026-01-02T03:04:05Z "
_FINE = _STAMP + b"fine\n"
# Half of these bytes are as good as random: what expands less than 250 times is no bomb.
_NOISE = b"".join(b"%x" % (n * 2654435761 % 2**32) for n in range(1_200))


@scenario
def gzip_bomb() -> tuple[Sources, dict[str, Any]]:
    """A gibibyte in a megabyte, twice."""
    bomb = squeezed((_STAMP, 1), (b"t" * MIB, 1 << 10))
    return [*numbered(".log.gz", bomb, 2), ("z.log.gz", gzip.compress(_FINE, mtime=0))], {}


@scenario
def gzip_bomb_of_members() -> tuple[Sources, dict[str, Any]]:
    """The same in four thousand members of a mebibyte."""
    member = gzip.compress(b"t" * MIB, mtime=0)
    return [
        ("a.log.gz", gzip.compress(_STAMP, mtime=0) + member * 4096),
        ("z.log.gz", gzip.compress(_FINE, mtime=0)),
    ], {}


@scenario
def small_gzip_bombs() -> tuple[Sources, dict[str, Any]]:
    """Sources of 15 KB that become 15 MiB each: below what is asked about."""
    content = _STAMP + b"t" * (15 * MIB) + b"\n"
    return numbered(".log.gz", gzip.compress(content, mtime=0), 30), {}


@scenario
def zstd_windows() -> tuple[Sources, dict[str, Any]]:
    """Frames that ask for a window of 128 MiB, and fill it."""
    context = zstandard.ZstdCompressionParameters(window_log=27, write_content_size=False)
    packer = zstandard.ZstdCompressor(compression_params=context)
    line = _STAMP + _NOISE + b"\n"
    block = line * (MIB // len(line))
    body = packer.compressobj()
    stored = b"".join(body.compress(block) for _ in range(160)) + body.flush()
    return numbered(".log.zst", stored, 3), {"compression": "gzip", "max_expansion": 1_000_000}


@scenario
def zstd_lies() -> tuple[Sources, dict[str, Any]]:
    """Frames that claim windows and contents of any size."""
    lies = [frame(content_size=1 << exponent) for exponent in (27, 30, 40, 62)]
    lies += [frame(window_log=log) for log in (28, 31, 41)]
    sources = [(f"{n}.log.zst", lie) for n, lie in enumerate(lies)]
    return [*sources, ("z.log.zst", zstandard.compress(_FINE))], {}


@scenario
def one_long_line() -> tuple[Sources, dict[str, Any]]:
    """A gibibyte without a line break."""
    body = squeezed((_STAMP, 1), (_NOISE, (1 << 30) // len(_NOISE)), (b"\n", 1))
    return [("a.log.gz", body)], {}


@scenario
def one_long_plain_line() -> tuple[Sources, dict[str, Any]]:
    """The same as it is, 300 MB of it, to be encoded."""
    body = _STAMP + _NOISE * (300 * MIB // len(_NOISE)) + b"\n"
    return [("a.log", body)], {"compression": "gzip"}


@scenario
def one_long_json_line() -> tuple[Sources, dict[str, Any]]:
    """Not to be proven within what is held of a source: left alone."""
    body = squeezed((b'{"a":"', 1), (_NOISE, (200 * MIB) // len(_NOISE)), (b'"}\n', 1))
    return numbered(".json.gz", body, 2), {"format": "json_lines"}


@scenario
def one_long_csv_field() -> tuple[Sources, dict[str, Any]]:
    body = squeezed((b'id,name\n1,"', 1), (_NOISE, (256 * MIB) // len(_NOISE)), (b'"\n', 1))
    return numbered(".csv.gz", body, 2), {"formats": columns()}


@scenario
def documents_of_the_largest_size() -> tuple[Sources, dict[str, Any]]:
    """CloudTrail documents of 127 MiB, one behind the other."""
    record = b'{"a":{"b":"' + _NOISE + b'"}},'
    times = 127 * MIB // len(record)
    body = squeezed((ENVELOPE[0], 1), (record, times), (b'{"a":1}' + ENVELOPE[1], 1))
    return numbered(TRAIL, body, 2), {}


@scenario
def documents_of_the_largest_size_on_lines() -> tuple[Sources, dict[str, Any]]:
    sources, _ = documents_of_the_largest_size()
    return sources, {"formats": ON_LINES}


@scenario
def undelimited_of_the_largest_size() -> tuple[Sources, dict[str, Any]]:
    """Objects of a kilobyte or so with escapes in them, 127 MiB of them without a line break."""
    record = b'{"a":"\\"' + _NOISE[:1200] + b'"}'
    return numbered(".json.gz", squeezed((record, 127 * MIB // len(record))), 2), {}


@scenario
def tiny_records() -> tuple[Sources, dict[str, Any]]:
    """As many records as a document can hold."""
    body = squeezed((ENVELOPE[0], 1), (b"{},", 1_499_999), (b"{}" + ENVELOPE[1], 1))
    return numbered(TRAIL, body, 3), {}


@scenario
def tiny_records_on_lines() -> tuple[Sources, dict[str, Any]]:
    sources, _ = tiny_records()
    return sources, {"formats": ON_LINES}


@scenario
def spaced_records_on_lines() -> tuple[Sources, dict[str, Any]]:
    """Each of them stands on a line of its own already, which must be remembered."""
    body = squeezed((ENVELOPE[0], 1), (b'{"a":1} ,\n', 150_000), (b"{}" + ENVELOPE[1], 1))
    return numbered(TRAIL, body, 4), {"formats": ON_LINES}


@scenario
def tiny_undelimited() -> tuple[Sources, dict[str, Any]]:
    return numbered(".json.gz", squeezed((b"{}", 3 * MIB)), 1), {}


@scenario
def tiny_undelimited_with_line_breaks() -> tuple[Sources, dict[str, Any]]:
    return numbered(".json.gz", squeezed((b"{}{}\n{}", 130_000)), 3), {}


@scenario
def blanks_around_documents() -> tuple[Sources, dict[str, Any]]:
    """Blanks that no output has, different ones for each source."""
    sources = []
    for n in range(3_000):
        blanks = squeezed((b'{"Records":[{}]}', 1), (b" " * 997 + b"\n\t", 60), (b" ", n + 1))
        sources.append((f"{n:05}{TRAIL}", blanks))
    return sources, {}


@scenario
def headers_that_all_differ() -> tuple[Sources, dict[str, Any]]:
    """Each source is a misfit for each other, and its header is all that it has."""
    sources = []
    for n in range(12):
        header = squeezed((b"name,", 150_000), (b"n%05d\n" % n, 1))
        sources.append((f"{n:05}.csv.gz", header))
    return sources, {"formats": columns()}


@scenario
def one_long_header() -> tuple[Sources, dict[str, Any]]:
    """All have the same header of 60 KB, ended as Windows ends lines."""
    body = squeezed((b"name,", 12_000), (b"last\r\n", 1), (b"a,", 12_000), (b"b\r\n", 1))
    return numbered(".csv.gz", body, 600), {"formats": columns()}


@scenario
def blank_lines() -> tuple[Sources, dict[str, Any]]:
    """Nothing but line breaks: half a billion records."""
    return numbered(".log.gz", squeezed((b"\n", 15 * MIB)), 5), {"format": "text"}
