"""What is certainly the lines of a log or of JSON, and what must be left alone, kind by kind."""

from __future__ import annotations

import json
import plistlib
import random
import struct

import pytest

from compactor.errors import UnreadableSource
from compactor.formats import Reading, characters, detect
from compactor.formats.passing import PassingCheck
from compactor.model import Format, QuarantineReason

LOGS = {
    "iso with zone": b"2026-01-31T12:00:00.123Z INFO started\n2026-01-31T12:00:01+01:00 done\n",
    "iso with blank": b"2026-01-31 12:00:00 started\n2026-01-31 12:00:01 done\n",
    "python logging": b"2026-01-31 12:00:00,123 - root - INFO - started\n",
    "python basic": b"INFO:root:started\nWARNING:urllib3.pool:retrying\n",
    "bracketed": b"[2026-01-31 12:00:00] local.ERROR: broken\n[2026-01-31 12:00:01] x\n",
    "elasticsearch": b"[2026-01-31T12:00:00,123][INFO ][o.e.n.Node] [node-1] started\n",
    "jvm": b"[0.012s][info][gc] Using G1\n[0.034s][info][gc,init] Version\n",
    "rfc3164": b"Jan 31 12:00:00 web-1 sshd[123]: Accepted\nFeb  1 00:00:00 web-1 cron: x\n",
    "rfc3164 with priority": b"<34>Oct 11 22:14:15 mymachine su: 'su root' failed\n",
    "rfc5424": b"<165>1 2003-10-11T22:14:15.003Z host app - ID47 - message\n",
    "common": b'127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.0" 200 2326\n',
    "combined": b'::1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 1 "-" "curl/8"\n',
    "virtual host": b'www:443 10.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET / H" 200 1\n',
    "s3 access": b'79a5 logs [06/Feb/2019:00:00:38 +0000] 192.0.2.3 79a5 3E57 X - "GET /"\n',
    "alb": b'h2 2018-07-02T22:23:00.186641Z app/lb/50dc 10.0.1.252:48160 10.0.0.66:90 0 "GET"\n',
    "nlb": b"tls 2.0 2018-12-20T02:59:40 net/my-nlb/c6e7 g3d4 72.21.218.154:51341 172.1.1.1\n",
    "clb": b'2015-05-13T23:39:43.945958Z lb 192.168.131.39:2817 10.0.0.1:80 0.000073 "GET"\n',
    "nginx error": b"2026/01/31 12:00:00 [error] 12#12: *1 open() failed\n",
    "apache error": b"[Fri Jan 31 12:00:00.123456 2026] [core:error] [pid 1] File\n",
    "klog": b"I0131 12:00:00.000000       1 main.go:42] started\nE0131 12:00:00.1 2 a.go:1] x\n",
    "bind": b"31-Jan-2026 12:00:00.000 queries: info: client\n",
    "tomcat": b"31-Jan-2026 12:00:00.000 INFO [main] org.apache started\n",
    "redis": b"1:M 31 Jan 2026 12:00:00.000 * Ready\n1:C 31 Jan 2026 12:00:00.000 # oO0\n",
    "squid": b"1462345678.123    145 10.0.0.1 TCP_MISS/200 4231 GET http://x/ - DIRECT/1 text\n",
    "auditd": b'type=SYSCALL msg=audit(1364481363.243:24287): arch=c000003e exe="/bin/cat"\n',
    "logfmt": b'ts=2026-01-31T12:00:00Z level=info msg="started"\nlevel=warn ts=1706700000 a=1\n',
    "logfmt logrus": b'time="2026-01-31T12:00:00Z" level=info msg="started at \\"x\\""\n',
    "cri": b"2026-01-31T12:00:00.123456789Z stdout F a line\n2026-01-31T12:00:01Z stderr P b\n",
    "level first": b"ERROR [2026-01-31 12:00:00] broken\nINFO 2026-01-31T12:00:00Z fine\n",
    "cassandra": b"INFO  [main] 2026-01-31 12:00:00,123 Daemon.java:1 - started\n",
    "logback": b"12:00:00.123 [main] INFO  com.foo.Bar - started\n",
    "spark": b"26/01/31 12:00:00 INFO SparkContext: Running\n",
    "ruby": b"I, [2026-01-31T12:00:00.000000 #123]  INFO -- : started\n",
    "ltsv": b"time:[31/Jan/2026:12:00:00 +0000]\thost:10.0.0.1\tstatus:200\n",
    "cef": b"CEF:0|Security|threatmanager|1.0|100|worm stopped|10|src=10.0.0.1\n",
    "leef": b"LEEF:1.0|QRadar|QRM|1.0|NEW_PORT| src=172.5.6.67\n",
    "lambda": b"START RequestId: 8f507cfc-1111-4222-8333-a94a5f7ab1f2 Version: 1\n"
    b"2026-01-31T12:00:00.000Z\t8f507cfc\tINFO\tx\n"
    b"END RequestId: 8f507cfc-1111-4222-8333-a94a5f7ab1f2\n",
    "flow records": b"2 123456789010 eni-1235b8ca123456789 10.0.0.1 10.0.0.2 1 2 6 20 ACCEPT OK\n",
    "us date": b"01/31/2026 12:00:00 PM started\n",
    "java.util.logging": b"Jan 31, 2026 12:00:00 PM com.foo.Bar main\nINFO: started\nSEVERE: x\n",
    "dmesg": b"[    0.000000] Linux version\n[   12.345678] eth0: up\n",
    "logcat": b"01-31 12:00:00.123  1234  1235 I ActivityManager: Start\n",
    "vsftpd": b"Fri Jan 31 12:00:00 2026 [pid 2] CONNECT: Client\n",
    "java trace": b"2026-01-31 12:00:00 ERROR x\njava.lang.IllegalStateException: no\n"
    b"\tat a.B.c(B.java:1)\nCaused by: java.io.IOException: disk\n\t... 3 more\n",
    "python trace": b"2026-01-31 12:00:00,123 ERROR x\nTraceback (most recent call last):\n"
    b'  File "a.py", line 1, in <module>\n    x()\nValueError: no\n',
    "go panic": b"2026/01/31 12:00:00 serving\npanic: runtime error\n\ngoroutine 1 [running]:\n"
    b"main.main()\n\t/a.go:1 +0x1\n",
    "postgres": b"2026-01-31 12:00:00.000 UTC [1] LOG:  statement: select\n\t1\n",
    "crlf": b"2026-01-31 12:00:00 a\r\n2026-01-31 12:00:01 b\r\n",
    "colours": b"2026-01-31 12:00:00 \x1b[31mERROR\x1b[0m broken\n",
    "no last newline": b"2026-01-31 12:00:00 a",
    "mysql slow log": b"# Time: 2026-01-31T12:00:00.000000Z\n# User@Host: root[root]\nselect 1;\n",
    "prometheus samples": b'http_requests_total{method="post"} 1027 1395066363000\n',
    "influx": b"cpu,host=a usage=0.5 1465839830100400200\n",
    "graphite": b"servers.a.cpu 0.5 1465839830\n",
    "todo.txt": b"2026-01-31 call +home @phone\n",
    "timestamped csv": b'2026-01-31 12:00:00,5,"a\nb"\n',
    "timestamped csv of two columns": b"2026-01-31 12:00:00,5\n2026-01-31 12:00:01,6\n",
    "postgres csvlog": b'2026-01-31 12:00:00.000 UTC,"u","d",1,"c",1,"x",2026-01-31 12:00:00\n',
    "log then prose": b"2026-01-31 12:00:00 started\nthis is no line of a log\n",
    "log then xml": b"2026-01-31 12:00:00 started\n<a>\n",
    "log then json": b"2026-01-31 12:00:00 started\n{\n",
}  # fmt: skip

WHOLE = b'{"a": 1, "b": [{"c": "}{"}]}\n'
OTHERS = {
    "toml": b'title = "x"\n\n[owner]\nname = "Tom"\ndob = 1979-05-27T07:32:00Z\n',
    "sql dump": b"-- MySQL dump 10.13\n\nDROP TABLE IF EXISTS `a`;\nINSERT INTO `a` VALUES (1);\n",
    "sql": b"INSERT INTO a VALUES (1);\nINSERT INTO a VALUES (2);\n",
    "pem": b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
    "vcard": b"BEGIN:VCARD\r\nVERSION:4.0\r\nFN:A B\r\nEND:VCARD\r\n",
    "icalendar": b"BEGIN:VCALENDAR\r\nDTSTART:20260131T120000Z\r\nEND:VCALENDAR\r\n",
    "diff": b"--- a/x\t2026-01-31 12:00:00\n+++ b/x\t2026-01-31 12:00:00\n@@ -1 +1 @@\n-a\n+b\n",
    "git diff": b"diff --git a/x b/x\nindex 1..2 100644\n",
    "git log": b"commit 1234\nAuthor: A <a@b>\nDate:   Fri Jan 31 12:00:00 2026 +0000\n\n    x\n",
    "markdown": b"# Title\n\n- 2026-01-31 12:00:00 a\n- b\n",
    "prose": b"It was a dark and stormy night;\nthe rain fell in torrents.\n",
    "python": b"import os\n\ndef f() -> None:\n    pass\n",
    "c": b"#include <stdio.h>\nint main(void) { return 0; }\n",
    "html": b"<!doctype html>\n<html></html>\n",
    "xml": b'<?xml version="1.0"?>\n<a><b/></a>\n',
    "xml fragment": b"<Event><System/></Event>\n<Event><System/></Event>\n",
    "svg": b'<svg xmlns="http://www.w3.org/2000/svg"/>\n',
    "mbox": b"From a@b Fri Jan 31 12:00:00 2026\nFrom: a@b\nSubject: x\n\nbody\n",
    "mail": b"Received: from a by b; Fri, 31 Jan 2026 12:00:00 +0000\nFrom: a@b\n\nbody\n",
    "ldif": b"version: 1\ndn: cn=a,dc=b\nobjectClass: person\ncn: a\n",
    "properties": b"# x\na.b=1\nc.d=2\n",
    "env": b"TIME=1\nLEVEL=2\n",
    "ini": b"[core]\na = 1\n[remote]\nb = 2\n",
    "prometheus": b"# HELP a b\n# TYPE a counter\na 1 1395066363000\n",
    "statsd": b"gorets:1|c\nglork:320|ms\n",
    "zeek": b"#separator \\x09\n#fields\tts\tuid\n1462345678.123\tC1\n#close\t2026-01-31\n",
    "journald export": b"__CURSOR=s=1\n__REALTIME_TIMESTAMP=1\nMESSAGE=x\n\n__CURSOR=s=2\n",
    "yaml": b"a: 1\nb:\n  - c\n",
    "yaml documents": b"---\na: 1\n---\na: 2\n",
    "sdp": b"v=0\no=- 1 1 IN IP4 10.0.0.1\ns=-\nt=0 0\n",
    "g-code": b"G21 ; mm\nG90\nG1 X1 Y2\n",
    "fasta": b">seq1\nACGT\n>seq2\nACGT\n",
    "fastq": b"@seq1\nACGT\n+\nIIII\n",
    "vcf": b"##fileformat=VCFv4.2\n#CHROM\tPOS\n1\t2\n",
    "srt": b"1\n00:00:01,000 --> 00:00:02,000\nHello\n",
    "webvtt": b"WEBVTT\n\n00:01.000 --> 00:02.000\nHello\n",
    "beancount": b'2026-01-31 * "Shop" "x"\n  Assets:Cash  -1 EUR\n',
    "changelog": b"2026-01-31  A B  <a@b>\n\n\t* x.c: new\n",
    "csv": b"a,b\n1,2\n",
    "semicolons": b"host;status\na;1\n",
    "markdown table": b"| time | x |\n|---|---|\n| 2026-01-31 12:00:00 | 1 |\n",
    "journalctl": b"-- Logs begin at Fri 2026-01-31 12:00:00 UTC. --\nJan 31 12:00:00 a b: c\n",
    "octet-counted syslog": b"35 <34>1 2003-10-11T22:14:15.003Z a b - - -",
    "prose then log": b"started\n2026-01-31 12:00:00 started\n",
    "graphql": b"query { a { b } }\n",
    "protobuf text": b'name: "x"\nid: 1\n',
    "dockerfile": b"FROM python:3\nRUN true\n",
    "makefile": b"all: x\n\tcc x\n",
    "shell": b"#!/bin/sh\necho x\n",
    "latex": b"\\documentclass{article}\n\\begin{document}\n",
    "rtf": b"{\\rtf1 x}",
    "base64": b"SGVsbG8gd29ybGQsIHRoaXMgaXMgYmFzZTY0\n",
    "uuid lines": b"0a1b2c3d-0000-4000-8000-000000000000\n",
    "numbers": b"1\n2\n3\n",
    "one byte": b"x",
    "blank line": b"\n",
    "array": b"[1,2,3]\n",
    "array of objects and others": b'[{"a":1},2]x\n',
    "pretty array, cut off": b'[\n  {"a":1}\n\n',
    "lines of arrays": b'[1,"a"]\n[2,"b"]\n',
    "empty array and more": b"[] a\n",
    "pretty json": b'{\n  "a": 1\n}\n',
    "pretty json lines": b'{\n  "a": 1\n}\n{\n  "a": 2\n}\n',
    "one line, then pretty": b'{"a":1}\n{\n"a":2\n}\n',
    "objects that hide in the count": b'{"a":[\n{}]}{"b":1}\n',
    "json sequence": b'\x1e{"a":1}\n\x1e{"a":2}\n',
    "json5": b"{a: 1, // x\n}\n",
    "json with comments": b'// x\n{"a":1}\n',
    "json with a comment inside": b'{"a":1 /* x */}\n',
    "json strings": b'"a"\n"b"\n',
    "json and text": b'{"a":1}\nstarted\n',
    "json and a comma": b'{"a":1},\n{"a":2}\n',
    "har": b'{\n"log": {"version": "1.2"}}\n',
    "rows of php": b"a:1:{i:0;i:1;}\n",
    "template": b"{mustache}{template} said",
    "cr alone": b"2026-01-31 12:00:00 a\r2026-01-31 12:00:01 b\r2026-01-31",
    "plist": plistlib.dumps({"a": 1}),
    "comment": b"; registry\n[a]\n",
    "percent": b"%YAML 1.2\n---\na: 1\n",
    "at": b"@prefix a: <b> .\n",
    "n-triples": b"<a> <b> <c> .\n",
    "binary coded as hex": b"00000000  7f 45 4c 46\n",
    "uuencoded": b"begin 644 x\n#0V%T\n`\nend\n",
    "gtfs": b"stop_id,stop_name\n1,a\n",
    "nmea": b"$GPGGA,123519,4807.038,N,01131.000,E,1*47\n",
    "hl7": b"MSH|^~\\&|A|B|C|D|20260131120000||ADT^A01|1|P|2.3\rPID|1\r",
    "edifact": b"UNA:+.? 'UNB+UNOA:1+A+B+260131:1200+1'",
    "x12": b"ISA*00*          *00*          *ZZ*A~GS*X~",
    "fix": b"8=FIX.4.2\x019=12\x0135=A\x0110=1\x01",
    "swift": b"{1:F01BANKBEBBAXXX}{2:I103}{4:\n:20:X\n-}",
    "cypher": b"CREATE (a:B {c: 1})\n",
}  # fmt: skip

BINARY = {
    "bson": struct.pack("<i", 22) + b"\x02hello\x00\x06\x00\x00\x00world\x00\x00",
    "messagepack": b"\x82\xa1a\x01\xa1b\xa5hello" * 3,
    "messagepack array": b"\x93\xa1a\xa1b\xa1c",
    "cbor": b"\xa2aa\x01ab\x82\x02\x03" * 3,
    "protobuf": b"\x0a\x05hello\x10\x96\x01" * 4,
    "pickle": b"\x80\x04\x95\x0b}\x94",
    "ebcdic": "2026-01-31 12:00:00 INFO started".encode("cp500"),
    "tar": b"a.txt".ljust(100, b"\0") + b"0000644\0" + b"\0" * 149 + b"ustar\x0000" + b"\0" * 248,
    "sqlite": b"SQLite format 3\x00\x10\x00",
    "wasm": b"\x00asm\x01\x00\x00\x00",
    "class": b"\xca\xfe\xba\xbe\x00\x00\x00\x34",
    "pcap": b"\xd4\xc3\xb2\xa1\x02\x00\x04\x00",
    "tiff": b"II\x2a\x00\x08\x00\x00\x00",
    "bitmap": b"BM\x36\x00\x0c\x00\x00\x00\x00\x00",
    "arrow stream": b"\xff\xff\xff\xff\x10\x01\x00\x00\x10\x00",
    "riff": b"RIFF\x24\x00\x00\x00WAVEfmt ",
}  # fmt: skip


PLAIN = Reading()


def told(content: bytes, key: str = "logs/x", reading: Reading = PLAIN) -> str:
    """The format, or why the source is left alone."""
    try:
        found = detect(content, key, complete=True, forced=None, reading=reading)
    except UnreadableSource as error:
        return error.reason if "; it starts with " in error.detail else "unexplained"
    return "" if found is None else found.format


def test_lines_of_logs_are_text() -> None:
    for name, content in LOGS.items():
        assert told(content) == Format.TEXT, name
        assert told(b"\xef\xbb\xbf" + content) == Format.TEXT, name
        if content.endswith(b"\n"):
            assert told(content * 300) == Format.TEXT, name


@pytest.mark.parametrize("key", ["logs/x", "logs/x.log", "logs/x.json", "a/1_vpcflowlogs_b.log"])
def test_documents_and_tables_are_left_alone_whatever_they_are_called(key: str) -> None:
    for name, content in OTHERS.items():
        assert told(content, key) in set(QuarantineReason), name
        assert told(content.replace(b"\n", b"\r\n"), key) in set(QuarantineReason), name


def test_binary_formats_are_left_alone() -> None:
    allowed = {QuarantineReason.BINARY, QuarantineReason.UNKNOWN_FORMAT, QuarantineReason.ENCODING}
    for name, content in BINARY.items():
        assert told(content) in allowed, name
        for reading in (Reading(single_byte=True), Reading(keep_nuls=True)):
            assert told(content, reading=reading) in set(QuarantineReason), name


def test_no_random_bytes_are_taken_for_anything() -> None:
    chance = random.Random(7)
    for size in (1, 2, 8, 48, 200):
        for _ in range(400):
            content = chance.randbytes(size)
            for reading in (Reading(), Reading(single_byte=True, keep_nuls=True)):
                assert told(content, reading=reading) in set(QuarantineReason)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\n\n", b" \n"])
def test_every_line_of_json_lines_is_one_whole_object(end: bytes) -> None:
    lines = [b'{"n":%d,"text":"a \\"b\\" }{ \xc3\xa9"}' % n for n in range(2000)]
    assert told(end.join(lines)) == Format.JSON_LINES
    for at in (0, 1, 1000, 1999):
        for odd in (b'{"n":1', b"[1]", b"x", b'{"n":\n1}', b'{"n":01}', b'{"n":1},'):
            broken = end.join([*lines[:at], odd, *lines[at + 1 :]])
            assert told(broken) in {QuarantineReason.UNKNOWN_FORMAT, QuarantineReason.OPEN_END}


@pytest.mark.parametrize(
    ("content", "state"),
    [
        (b'{"a":1}\n{"a":"cut off', "a JSON string"),
        (b'{"a":1}\n{"a":{"b":1}', "a JSON object"),
        (b'{"a":1}\n{"a":[1', "a JSON object"),
        (b'{"a":"\\"}', "a JSON string"),
        (b'{"a":1}\n{', "a JSON object"),
    ],
)
def test_json_that_ends_within_a_value_is_not_joined(content: bytes, state: str) -> None:
    for forced in (None, Format.JSON_LINES):
        with pytest.raises(UnreadableSource, match=f"open_end: it ends within {state}"):
            detect(content, "x", complete=True, forced=forced)


@pytest.mark.parametrize("forced", [None, Format.TEXT])
@pytest.mark.parametrize(
    ("end", "seen"),
    [
        (b" caf\xc3", "within a UTF-8 character"),
        (b" \xe2\x82", "within a UTF-8 character"),
        (b" \xf0\x9f\x98", "within a UTF-8 character"),
        (b"\r", "between CR and LF"),
    ],
)
def test_a_source_that_ends_within_a_character_is_not_joined(
    end: bytes, seen: str, forced: Format | None
) -> None:
    content = b"2026-01-31 12:00:00 a\r\n2026-01-31 12:00:01 b"
    with pytest.raises(UnreadableSource, match=f"open_end: it ends {seen}"):
        detect(content + end, "x", complete=True, forced=forced)
    assert told(content + " café €".encode()) == Format.TEXT


@pytest.mark.parametrize(
    "content",
    [
        b'10.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET /a HT',
        b'h2 2018-07-02T22:23:00.186641Z app/lb/50dc 10.0.1.252:48160 "GET /a',
        b'2026-01-31 12:00:00\ta\t"b\n2026-01-31 12:00:01\tc\td\n',
        b'2026-01-31 12:00:00 x,"y z\n2026-01-31 12:00:01 x,y\n',
    ],
)
def test_lines_that_end_within_quotes_are_not_joined(content: bytes) -> None:
    assert told(content) == QuarantineReason.OPEN_QUOTE
    assert told(content.rstrip(b"\n").replace(b'"', b"'")) == Format.TEXT


def test_another_encoding_is_text_by_structure_or_by_setting() -> None:
    access = LOGS["s3 access"] + LOGS["s3 access"].replace(b"GET /", b"GET /caf\xe9 \xff")
    assert told(access) == Format.TEXT
    line = b"2026-01-31 12:00:00 caf\xe9 latin-1\n"
    assert told(line) == QuarantineReason.ENCODING
    assert told(line, reading=Reading(single_byte=True)) == Format.TEXT
    record = b'{"name":"caf\xe9"}\n'
    assert told(record) == QuarantineReason.ENCODING
    assert told(record, reading=Reading(single_byte=True)) == Format.JSON_LINES
    with pytest.raises(UnreadableSource, match='set encoding: "single_byte"'):
        detect(line, "x", complete=True, forced=None)


def test_a_nul_in_a_log_is_kept_by_setting_alone() -> None:
    line = b"2026-01-31 12:00:00 a\n" * 9 + b"\0" * 5 + b"\n"
    with pytest.raises(UnreadableSource, match=r'it has 5 NUL bytes.*encoding: "any_bytes"'):
        detect(line, "x", complete=True, forced=None)
    line = b"2026-01-31 12:00:00 a\n2026-01-31 12:00:00 b\0c\n"
    assert told(line) == QuarantineReason.BINARY
    assert told(line, reading=Reading(keep_nuls=True)) == Format.TEXT
    wide = "2026-01-31 12:00:00 a\n".encode("utf-16-le")
    assert told(wide, reading=Reading(keep_nuls=True)) == QuarantineReason.ENCODING


def test_no_magic_begins_as_most_logs_do() -> None:
    """What is passed over for the sake of speed is what no pattern could have matched."""
    chance = random.Random(7)
    for first in characters._NO_MAGIC:
        for _, pattern in characters._MAGIC:
            for one in pattern.split(b"|"):
                literal = one.lstrip(b"(?:")[:1]
                assert literal != bytes([first]), (pattern, first)
        for _ in range(200):
            head = bytes([first]) + chance.randbytes(40)
            assert head[4:8] == b"ftyp" or characters._ANY_MAGIC.match(head) is None
    assert told(b"1234ftypisom" + bytes(range(1, 32))) == QuarantineReason.BINARY


def test_few_control_characters_are_borne_and_many_are_not() -> None:
    line = b"2026-01-31 12:00:00 a line of a log with some text in it, and a bell\n" * 20
    assert told(line[:-1] + b"\x07\n") == Format.TEXT
    assert told(line.replace(b"bell", b"\x07\x07\x01\x02")) == QuarantineReason.BINARY


def test_a_format_that_is_given_is_not_questioned() -> None:
    for name, content in OTHERS.items():
        if content[-1:] == b"\r":
            continue
        found = detect(content, "x", complete=True, forced=Format.TEXT)
        assert found is not None, name
        assert found.format is Format.TEXT


def test_one_object_on_one_line_is_a_record_of_json_lines() -> None:
    assert told(WHOLE) == told(WHOLE * 3) == Format.JSON_LINES
    snapshot = {"fileVersion": "1.0", "configurationItems": []}
    assert told(json.dumps(snapshot).encode()) == Format.JSON_LINES


@pytest.mark.parametrize(
    ("document", "kind"),
    [
        ('{"type": "FeatureCollection", "features": []}', "a GeoJSON document"),
        ('{"features":[{"type":"Feature"}],"type":"FeatureCollection"}', "a GeoJSON document"),
        ('{"type":"Topology","objects":{},"arcs":[]}', "a TopoJSON document"),
        ('{"cells":[],"metadata":{},"nbformat":4}', "a Jupyter notebook"),
        ('{"log":{"version":"1.2","creator":{},"entries":[]}}', "an HTTP archive"),
        ('{"openapi":"3.1.0","info":{},"paths":{}}', "an OpenAPI document"),
        ('{"bomFormat":"CycloneDX","specVersion":"1.5"}', "a CycloneDX bill of materials"),
        ('{"version":"2.1.0","runs":[]}', "a SARIF log"),
        ('{"@context":{},"@graph":[]}', "a JSON-LD document"),
        ('{"version":4,"terraform_version":"1.9.0","resources":[]}', "a Terraform state"),
        ('{"Resources":{"B":{"Type": "AWS::S3::Bucket"}}}', "a CloudFormation template"),
        ('{"kind":"List","apiVersion":"v1","items":[]}', "a manifest of Kubernetes"),
        ('{"$schema":"http://json-schema.org/draft-07/schema#"}', "a JSON Schema"),
        ('{"type":"object","properties":{}}', "a JSON Schema"),
        ('{"name":"h","type":"fixed","size":16}', "an Avro schema"),
        ('{"version":3,"mappings":"AAAA","sources":[],"file":"a.js"}', "a source map"),
        ('{"private":true,"name":"a","devDependencies":{}}', "a package.json"),
        ('{"name":"a","version":"1.0.0","license":"MIT"}', "a package.json"),
        ('{"Version":"2012-10-17","Statement":[{"Effect":"Deny"}]}', "a policy of IAM"),
        ('{"StartAt":"A","States":{"A":{"Type":"Pass"}}}', "a state machine of Step Functions"),
        ('{"imageLayoutVersion":"1.0.0"}', "an OCI image layout"),
        ('{"schemaVersion":1,"name":"a","fsLayers":[]}', "an image manifest of Docker"),
        ('{"protocol":{"minReaderVersion":1}}', "a commit of a Delta table"),
        ('{"remove":{"path":"a","dataChange":true}}', "a commit of a Delta table"),
    ],
)
def test_a_document_on_one_line_is_no_line_of_json(document, kind):
    for end in ("", "\n"):
        with pytest.raises(UnreadableSource, match=f"unknown_format: it is {kind}"):
            detect((document + end).encode(), "a.json", complete=True, forced=None)


@pytest.mark.parametrize(
    "line",
    [
        '{"type":"Feature","geometry":null,"properties":{"layer":"FeatureCollection"}}',
        '{"message":"\\"nbformat\\": 4","level":"info"}',
        '{"entries":[1],"log":"x"}',
        '{"event":{"runs":[],"version":"1"}}',
        '{"Resources":[{"Type":"AWS::S3::Bucket"}]}'.replace("Type", "type"),
        '{"apiVersion":"audit.k8s.io/v1","kind":"Event","metadata":{},"auditID":"1"}',
        '{"apiVersion":"2","kind":"sale","amount":1}',
        '{"$schema":"/mediawiki/recentchange/1.0.0","id":1}',
        '{"type":"track","properties":{},"event":"x"}',
        '{"type":"object","properties":"none"}',
        '{"type":"record","id":1,"fields":[]}',
        '{"type":"enumeration","name":"a","symbols":[]}',
        '{"name":"build","scripts":3,"dependencies":[]}',
        '{"version":3,"mappings":1}',
        '{"schemaVersion":2,"layers":[]}',
        '{"add":{"path":"/a","user":1}}',
        '{"add":{"path":"a","dataChange":true},"at":1}',
        '{"txn":{"id":1,"version":2}}',
    ],
)
def test_a_record_that_only_names_such_a_document_is_a_line_of_json(line):
    found = detect(line.encode(), "a.json", complete=True, forced=None)
    assert found is not None
    assert found.format is Format.JSON_LINES


def test_such_documents_line_by_line_are_lines_of_json():
    lines = b'{"bomFormat":"CycloneDX"}\n{"bomFormat":"CycloneDX"}\n'
    found = detect(lines, "a.json", complete=True, forced=None)
    assert found is not None
    assert found.format is Format.JSON_LINES


LONG_LINE = b'{"a":[' + b'{"b":"}\\"{ \\\\"},' * 9_000 + b"{}]}"


@pytest.mark.parametrize("size", [97, 50_021])
@pytest.mark.parametrize(
    ("source", "state"),
    [
        (b'{"x":"\n' + LONG_LINE, ""),
        (LONG_LINE + b"\n", ""),
        (LONG_LINE + b"\r\n \n", ""),
        (LONG_LINE + b"\n\n" + LONG_LINE[:-2], "a JSON object"),
        (LONG_LINE + b'\n{"a":"b\\', "a JSON string"),
        (LONG_LINE[:-3] + b'"c' + b"d" * 99_000 + b" \n", "a JSON string"),
        (LONG_LINE[6:] + b"\n[" + LONG_LINE + b"," + b" " * 99_000, "a JSON array"),
    ],
)
def test_a_last_line_longer_than_the_tail_is_looked_at_from_its_start(
    source: bytes, state: str, size: int
) -> None:
    check = PassingCheck(Format.JSON_LINES, b"", forced=True, reading=Reading())
    for at in range(0, len(source), size):
        check.feed(source[at : at + size])
    if not state:
        check.finish()
        return
    with pytest.raises(UnreadableSource, match=f"open_end: it ends within {state}"):
        check.finish()
