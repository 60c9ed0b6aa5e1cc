"""Sources whose records are lost or glued if a rule of the formats is missing.

Real software wrote each of them.
"""

from __future__ import annotations

from collections.abc import Mapping

Sources = tuple[tuple[str, bytes], ...]


def _of(suffix: str, *contents: bytes) -> Sources:
    return tuple((f"{n}{suffix}", one) for n, one in enumerate(contents))


_LONG = b'{"text":"' + b"x" * 70_000 + b'"}'

MISREAD: Mapping[str, Sources] = {
    "health checks without a header": _of(
        ".csv",
        b"10.0.0.1,GET,/health\n10.0.0.1,GET,/a\n",
        b"10.0.0.1,GET,/health\n10.0.0.2,GET,/b\n",
    ),
    "one row in each object": _of(".csv", *[b"web-1,OK,healthy\n"] * 4),
    "rows of words": _of(
        ".csv",
        b"I,alice,paris\nU,bob,rome\n",
        b"I,alice,paris\nD,eve,oslo\n",
    ),
    "dates as Americans write them": _of(
        ".csv",
        b"01/02/2026,x,y\n01/02/2026,a,b\n",
        b"01/02/2026,x,y\n01/03/2026,c,d\n",
    ),
    "times of day": _of(".tsv", b"00:00:00\tup\n00:05:00\tup\n", b"00:00:00\tup\n00:05:00\tdown\n"),
    "UUIDs": _of(
        ".csv",
        b"6fa459ea-ee8a-3ca4-894e-db77e160355e,a\n16fd2706-8baf-433b-82eb-8c7fada847da,b\n",
        b"6fa459ea-ee8a-3ca4-894e-db77e160355e,a\n886313e1-3b8a-5372-9b90-0c9aee199e5d,c\n",
    ),
    "an S3 Inventory of two columns": _of(
        ".csv",
        b'"bucket","logs/2026/a.log"\n"bucket","logs/2026/b.log"\n',
        b'"bucket","logs/2026/a.log"\n"bucket","logs/2026/c.log"\n',
    ),
    "lines ended by CR": _of(".csv", b"host,count\rweb,1\r", b"host,count\rweb,2\r"),
    "lines ended by CR, the same row": _of(
        ".csv", b"host,count\rweb,up\r", b"host,count\rweb,up\r"
    ),
    "a separator line": _of(
        ".csv",
        b"sep=;\nhost;count\nweb;1\n",
        b"sep=;\nhost;count\nweb;2\n",
    ),
    "a comment before the header": _of(
        ".csv", b"# by cron\nhost,count\nweb,1\n", b"# by cron\nhost,count\nweb,2\n"
    ),
    "a blank line before the header": _of(
        ".csv", b"\nhost,count\nweb,1\n", b"\nhost,count\nweb,2\n"
    ),
    "years in the header": _of(
        ".csv",
        b"host,2024,2025\nweb,10,12\n",
        b"host,2024,2025\ndb,11,13\n",
    ),
    "columns numbered by pandas": _of(".csv", b",0,1\n0,a,b\n1,c,d\n", b",0,1\n0,e,f\n1,g,h\n"),
    "an open quote": _of(".csv", b'id,text\n1,5" disk\n2,"cut off here', b"id,text\n3,ok\n"),
    "an open quote without a header": _of(".csv", b'1,5" disk\n2,"cut off here', b"3,ok"),
    "an open quote behind a semicolon": _of(
        ".csv", b'id;text\n1;a\n2;"cut off here', b"id;text\n3;ok\n"
    ),
    "an open quote behind a tab": _of(
        ".tsv", b'id\ttext\n1\ta\n2\t"cut off here', b"id\ttext\n3\tok\n"
    ),
    "two open quotes": _of(
        ".csv",
        b'id,text\n1,"a"\n2,"cut',
        b'id,text\n3,"cut',
        b"id,text\n4,ok\n",
    ),
    "JSON arrays": _of(".json", b'[{"a":1},{"a":2}]', b'[{"a":3}]'),
    "pretty JSON": _of(".json", *[b'{\n  "a": %d\n}\n' % n for n in range(5)]),
    "long JSON without newlines": _of(".json", _LONG + b'{"b":1}', _LONG + b'{"b":2}'),
    "JSON that is cut off": _of(".json", b'{"a":1}\n{"b":"cut', b'{"c":1}\n'),
    "a document of records": _of(
        "_CloudTrail_.json", b'{"Records":[{"a":1}]}', b'{"Records":[{"a":2}]}'
    ),
    "MessagePack": _of(".bin", b"\x82\xa3key\xa5value\xa1n\x01", b"\x82\xa3key\xa5other\xa1n\x02"),
    "EBCDIC": _of(".dat", "a line\n".encode("cp500"), "two\n".encode("cp500")),
    "UTF-16": _of(".txt", "one".encode("utf-16"), "two".encode("utf-16")),
    "XML": _of(".xml", *[b'<?xml version="1.0"?>\n<a>%d</a>\n' % n for n in range(2)]),
    "SVG": _of(".svg", *[b'<svg xmlns="x"><g id="%d"/></svg>' % n for n in range(2)]),
    "INI": _of(".ini", b"[main]\na = 1\n", b"[main]\na = 2\n"),
    "a CR without its LF": _of(".log", b"one\r\ntwo\r", b"three\r\n"),
    "half a character": _of(".log", "one\ncaf\u00e9".encode()[:-1], b"two\n"),
}
