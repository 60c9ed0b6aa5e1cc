"""What is left alone: documents, binaries, other encodings; and what ends oddly."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
import zipfile

from tests.zoo.kinds import HEADED, ROWS, TEXT, Kind, js, rows
from tests.zoo.readers import blob, document, json_lines, lines

_UNICODE_URL = "https://www.unicode.org/faq/utf_bom.html"
_RFC = "https://www.rfc-editor.org/rfc/"


def _logs(c):
    return c.rows(lambda: f"{c.iso()} INFO {c.words()}").encode()


def _avro(c):
    schema = b'{"type":"string"}'
    head = b"Obj\x01\x02\x16avro.schema" + bytes([2 * len(schema)]) + schema + b"\x00"
    return head + c.randbytes(16) + b"\x02\x0a\x08" + c.randbytes(20)


def _zip(c):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(zipfile.ZipInfo("a.log"), _logs(c))
    return out.getvalue()


def _tar(c):
    out, body = io.BytesIO(), _logs(c)
    with tarfile.open(fileobj=out, mode="w") as archive:
        member = tarfile.TarInfo("a.log")
        member.size = len(body)
        archive.addfile(member, io.BytesIO(body))
    return out.getvalue()


def _snappy_raw(c):
    body = c.words(6, 7).encode()[:60]
    return bytes([len(body), (len(body) - 1) << 2]) + body


def _cut_character(c):
    text = c.rows(lambda: f"{c.at('%Y-%m-%d %H:%M:%S')} INFO {c.words()} ü").encode()
    return text[:-2] if c.number == 1 else text


def _nul(c):
    text = c.rows(lambda: f"{c.at('%Y-%m-%d %H:%M:%S')} INFO {c.words()}")
    return "\0" * 64 + text if c.number == 2 else text


def _cut_line_end(c):
    text = c.rows(lambda: f"{c.at('%Y-%m-%d %H:%M:%S')} INFO {c.words()}", end="\r\n")
    return text[:-1] if c.number == 1 else text


_XML_URL = "https://www.w3.org/TR/xml/"


def _pem(c):
    import base64

    body = base64.encodebytes(c.randbytes(100)).decode()
    return f"-----BEGIN CERTIFICATE-----\n{body}-----END CERTIFICATE-----\n"


# fmt: off
KINDS = (
    Kind("Parquet", ".parquet", blob, "https://parquet.apache.org/docs/file-format/",
         lambda c: b"PAR1" + c.randbytes(80) + struct.pack("<I", 40) + b"PAR1",
         expected="corrupt_compression, binary, unknown_encoding"),
    Kind("Parquet without its name", "", blob, "https://parquet.apache.org/docs/file-format/",
         lambda c: b"PAR1" + c.randbytes(80) + struct.pack("<I", 40) + b"PAR1",
         expected="binary, unknown_encoding"),
    Kind("ORC whose first bytes are text", ".orc", blob,
         "https://orc.apache.org/specification/ORCv1/",
         lambda c: b"ORC" + c.words(9, 12).encode() + b"\x03ORC\x18", expected="unknown_format"),
    Kind("Avro", ".avro", blob, "https://avro.apache.org/docs/1.12.0/specification/", _avro,
         expected="binary"),
    Kind("zip", ".zip", blob, "https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT", _zip,
         expected="binary"),
    Kind("tar.gz", ".tgz", blob,
         "https://pubs.opengroup.org/onlinepubs/9699919799/utilities/pax.html",
         lambda c: gzip.compress(_tar(c), mtime=0), expected="binary"),
    Kind("snappy, raw", ".snappy", blob,
         "https://github.com/google/snappy/blob/main/format_description.txt", _snappy_raw,
         expected="unknown_encoding"),
    Kind("PDF", ".pdf", blob, "https://pdfa.org/resource/iso-32000-2/",
         lambda c: f"%PDF-1.7\n1 0 obj\n<< /Title ({c.word()}) >>\nendobj\n%%EOF\n",
         expected="unknown_format"),
    Kind("Random bytes, 48 of them", ".bin", blob, "https://docs.python.org/3/library/random.html",
         lambda c: c.randbytes(48), expected="binary, unknown_encoding"),
    Kind("UTF-16 JSON lines", ".json", blob, _UNICODE_URL,
         lambda c: b"\xff\xfe" + c.rows(lambda: js(id=c.randrange(99))).encode("utf-16-le"),
         expected="unknown_encoding"),
    Kind("Shift JIS", ".log", lines, "https://encoding.spec.whatwg.org/",
         lambda c: c.rows(lambda: f"{c.iso()} 表示 ソフト {c.word()}").encode("shift_jis"),
         expected="unknown_encoding"),
    Kind("Latin-1 application log", ".log", lines, "https://encoding.spec.whatwg.org/",
         lambda c: c.rows(lambda: f"{c.at('%Y-%m-%d %H:%M:%S')} INFO Grüße {c.words()}"
         ).encode("latin-1"), expected="unknown_encoding"),
    Kind("UTF-8 log that ends within a character", ".log", lines, _RFC + "rfc3629", _cut_character,
         expected="joined, open_end"),
    Kind("Log with a NUL", ".log", lines, "https://man7.org/linux/man-pages/man8/logrotate.8.html",
         _nul, expected="joined, binary"),
    Kind("Log of Classic Mac OS line ends", ".log", document,
         "https://www.unicode.org/versions/latest/core-spec/chapter-5/",
         lambda c: c.rows(lambda: f"{c.at('%Y-%m-%d %H:%M:%S')} INFO {c.words()}", end="\r"),
         expected="open_end"),
    Kind("Log with CRLF, cut between CR and LF", ".log", lines,
         "https://www.unicode.org/versions/latest/core-spec/chapter-5/", _cut_line_end,
         expected="joined, open_end"),
    Kind("Log by EBCDIC next-line characters", ".log", lines,
         "https://www.unicode.org/versions/latest/core-spec/chapter-5/",
         lambda c: c.rows(lambda: f"{c.at('%Y-%m-%d %H:%M:%S')} {c.words()}", end="\x85")),
    Kind("Empty objects", ".log", document,
         "https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObject.html", lambda c: b"",
         expected=""),
    Kind("A byte order mark alone", ".csv", document, _UNICODE_URL, lambda c: b"\xef\xbb\xbf",
         expected=""),
    Kind("Line ends alone", ".log", lines,
         "https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObject.html",
         lambda c: c.pick(("\n", "\n\n", "\r\n", " \n", "\n"))),
    Kind("XML", ".xml", document, _XML_URL,
         lambda c: f'<?xml version="1.0" encoding="UTF-8"?>\n<r>\n  <a n="1">{c.word()}</a>\n</r>\n',
         expected="unknown_format"),
    Kind("YAML", ".yaml", document, "https://yaml.org/spec/1.2.2/",
         lambda c: f"apiVersion: v1\nkind: Pod\nmetadata:\n  name: {c.word()}\n  labels: {{a: b}}\n",
         expected="unknown_format"),
    Kind("PEM", ".pem", document, "https://www.rfc-editor.org/rfc/rfc7468", _pem,
         expected="unknown_format"),
    Kind("Prose", ".txt", document, "https://www.rfc-editor.org/rfc/rfc2046",
         lambda c: c.rows(lambda: c.words(6, 12).capitalize() + ".", 3, 6),
         expected="unknown_format"),
    Kind("E-mail", ".eml", document, "https://www.rfc-editor.org/rfc/rfc5322",
         lambda c: f"Received: from {c.host()} by mx; {c.at('%a, %d %b %Y %H:%M:%S +0000')}\r\n"
         f"From: a@example.com\r\nSubject: {c.words()}\r\n\r\n{c.words()}\r\n",
         expected="unknown_format"),
    Kind("N-Triples", ".nt", lines, "https://www.w3.org/TR/n-triples/",
         rows(lambda c: f'<http://a/{c.word()}> <http://p> "{c.word()}" .'), declared=TEXT),
    Kind("RTF", ".rtf", document,
         "https://www.loc.gov/preservation/digital/formats/fdd/fdd000473.shtml",
         lambda c: f"{{\\rtf1\\ansi {c.words()}\\par}}", expected="unknown_format"),
    Kind("sha256sum", "SHA256SUMS", lines,
         "https://www.gnu.org/software/coreutils/manual/html_node/sha2-utilities.html",
         rows(lambda c: f"{c.hexes(64)}  {c.word()}.tar.gz"), expected="unknown_format"),
    Kind("/etc/hosts", "hosts", lines, "https://man7.org/linux/man-pages/man5/hosts.5.html",
         lambda c: "127.0.0.1 localhost\n" + c.rows(lambda: f"{c.ip()} {c.host()}", 1, 4),
         expected="unknown_format"),
    Kind("UTF-16 without a BOM", ".txt", blob, _UNICODE_URL,
         lambda c: _logs(c).decode().encode("utf-16-le"), expected="binary"),
    Kind("UTF-16, declared", ".log", blob, _UNICODE_URL,
         lambda c: _logs(c).decode().encode("utf-16"), declared=TEXT, expected="unknown_encoding"),
    Kind("UTF-32 with a BOM", ".log", blob, _UNICODE_URL,
         lambda c: b"\xff\xfe\0\0" + _logs(c).decode().encode("utf-32-le"),
         expected="unknown_encoding"),
    Kind("EBCDIC", ".txt", blob, "https://www.unicode.org/reports/tr16/",
         lambda c: _logs(c).decode().encode("cp037"), expected="unknown_encoding"),
    Kind("Binary, declared as text", ".bin", blob, _RFC + "rfc8949",
         lambda c: b"\xa1dname\0" + c.randbytes(40), declared=TEXT, expected="binary"),
    Kind("Log, declared as JSON", ".out", lines, _RFC + "rfc8259",
         _logs, declared={"format": "json_lines"}, expected="unknown_format"),
    Kind("Log, declared as CSV", ".out", lines, _RFC + "rfc4180",
         rows(lambda c: f"{c.iso()} " + ", ".join(c.word() for _ in range(c.randint(1, 9)))),
         declared=ROWS, expected="malformed_document"),
    Kind("JSON lines, declared as CSV", ".json", json_lines, _RFC + "rfc4180",
         rows(lambda c: js(id=c.randrange(99), name=c.word())),
         declared=HEADED, expected="malformed_document"),
    Kind("Title with a date above a table", ".txt", document, _RFC + "rfc2046",
         lambda c: f"{c.at('%Y-%m-%d %H:%M:%S')} report\nhost count\n" + c.rows(
             lambda: f"{c.host()} {c.randrange(99)}"), expected="unknown_format"),
    Kind("Table with a trailer", ".txt", document, _RFC + "rfc2046",
         lambda c: c.rows(lambda: f"{c.word()} {c.randrange(99)}") + "TOTAL 99\n",
         expected="unknown_format"),
    Kind("git log", ".txt", document, "https://git-scm.com/docs/git-log",
         lambda c: f"commit {c.hexes(40)}\nAuthor: A <a@example.com>\n"
         f"Date:   {c.at('%a %b %d %H:%M:%S %Y')} +0000\n\n    {c.words()}\n",
         expected="unknown_format"),
)
# fmt: on
