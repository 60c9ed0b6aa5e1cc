"""Sound documents for every parser, from which property tests and the fuzzer set out."""

from __future__ import annotations

import gzip

import zstandard

from tests.hostile.zstd import frame
from tests.support.examples import ON_LINES, PARTITION, settings
from tests.support.parquet_example import PARQUET
from tests.support.sources import Sources, of

TRAIL = b'{"Records":[{"a":"\\ud83d","b":[1,{}]} ,\n{"c":"}{"}]}\n'
UNDELIMITED = b'{"a":"}{\\""}{"b":[{}]} {"c":1}\n{"d":2}'
LINES = b'\xef\xbb\xbf{"a":1}\r\n\n{"b":2}'
TABLE = b'id,"na""me"\r\n1,"x\ny"\r\n2,z'
FLOW = b"version account-id srcaddr dstaddr\n2 1 10.0.0.1 -\n"
FRONT = b"#Version: 1.0\n#Fields: date time\n2026-01-02\t03:04:05\n"
LOG = b"2026-01-02T03:04:05Z a\n  b\n2026-01-02T03:04:06Z c"
MORE = b'{"\xff":1,"Records":[{"a":1}]}'
CONTENTS = (
    *(TRAIL, UNDELIMITED, LINES, TABLE, TABLE.replace(b",", b"\t"), FLOW, FRONT, LOG, MORE),
    b"text\n",
)

ENTRY = (
    "<Contents><Key>{key}</Key><LastModified>2026-01-02T03:04:05.000Z</LastModified>"
    "<ETag>&quot;0123&quot;</ETag><Size>7</Size><StorageClass>STANDARD</StorageClass></Contents>"
)
OTHER = (
    "<Contents>\n<Size>7</Size><ETag>0123</ETag><Key>{key}</Key>"
    "<LastModified>2026-01-02T03:04:05Z</LastModified>\n</Contents>"
)
# What a document is made of, to be put where it does not belong.
TOKENS = (
    *(b'{"Records":[', b"]}", b"}{", b'"', b'\\"', b"\\", b"\xef\xbb\xbf", b"\n", b"\r\n", b"\0"),
    *(
        b"#Fields:",
        b"\x1f\x8b\x08",
        b"\x28\xb5\x2f\xfd",
        b"\x50\x2a\x4d\x18",
        b"PAR1",
        b"<Contents>",
    ),
    *(b"</Contents>", b"<Key>", b"&amp;", b"&#", b"null", b"-1", b"1e999", b"[]", b"s3://", b"*"),
    *(b"../", b"\xff\xff\xff\xff", b"\xed\xa0\x80"),
)
PREFIX = "<CommonPrefixes><Prefix>p/</Prefix></CommonPrefixes>"


def listing(*keys: str, entry: str = ENTRY) -> bytes:
    """A page with these keys, written as they are."""
    entries = "".join(entry.replace("{key}", key) for key in keys)
    return f"<ListBucketResult><Name>b</Name>{entries}</ListBucketResult>".encode()


def _content_seeds() -> list[bytes]:
    """Each content under each name, forced format and option it may meet."""
    return [
        bytes([name, forced, option]) + body
        for body in CONTENTS
        for name, forced in ((0, 0), (1, 0), (4, 0), (5, 0), (0, 7), (0, 8), (1, 3))
        for option in (0, 1)
    ]


def _state() -> tuple[list[bytes], list[bytes]]:
    """Entries of a log and a checkpoint, as a run leaves them."""
    sources = [of(".json", LINES), of(".json", UNDELIMITED), of(".log", LOG), of(".csv", TABLE)]
    world = Sources([*sources, of("_CloudTrail_x.json", TRAIL)], formats=ON_LINES)
    world.put("broken.log.gz", gzip.compress(b"cut", mtime=0)[:-3])
    world.run()
    stored = world.store.contents("lake", "_compactor/")
    last = world.log.load().last
    names = [settings().layout.commit(PARTITION.path, n)[1] for n in range(1, last + 1)]
    # Alone in a log, each must be the first entry.
    entries = [gzip.decompress(stored[name]) for name in names]
    first = [
        body.replace(b'"sequence":%d,' % (n + 1), b'"sequence":1,')
        for n, body in enumerate(entries)
    ]
    checkpoint = gzip.decompress(stored[names[-1].replace(".json.gz", ".checkpoint.json.gz")])
    return [gzip.compress(body, 1, mtime=0) for body in first], [
        gzip.compress(checkpoint, 1, mtime=0)
    ]


_ENTRIES, _CHECKPOINTS = _state()
SEEDS: dict[str, list[bytes]] = {
    "compressed": [
        gzip.compress(TRAIL, mtime=0),
        gzip.compress(b"one\n", mtime=0) + gzip.compress(b"", mtime=0) + bytes(9),
        b"\x1f\x8b\x08\x1c"
        + bytes(6)
        + b"\2\0xxname\0comment\0"
        + gzip.compress(b"two\n", mtime=0)[10:],
        zstandard.ZstdCompressor(write_checksum=True).compress(TRAIL),
        b"\x50\x2a\x4d\x18\3\0\0\0abc" + zstandard.compress(b"three\n") + frame(content_size=5),
        b"plain\n",
    ],
    "content": _content_seeds(),
    "footer": [PARQUET],
    "log_entry": _ENTRIES,
    "checkpoint": _CHECKPOINTS,
    "listing": [
        listing("a/b.json", "c&amp;d"),
        listing("a/b.json", "&#233;&#x1F600;", entry=OTHER),
        listing("a%2Bb+c%00").replace(b"<Name>", b"<EncodingType>url</EncodingType><Name>"),
        listing("a").replace(b"<Name>", PREFIX.encode() + b"<Name>"),
    ],
    "uri": [
        b"s3://bucket/a/b/",
        b"s3://bucket/a*/b=*/c/",
        b"s3://b.c-d/",
        b"s3://bucket/" + b"x" * 512,
        "s3://bucket/\u00e9 \u65e5/".encode(),
    ],
}
