"""Lines of text are joined by default: what is certain of one source, and what takes several."""

from __future__ import annotations

import pytest

from compactor.errors import UnreadableSource
from compactor.formats import detect
from compactor.model import Format
from compactor.outputs.neighbours import SharedLines
from tests.support.examples import source
from tests.support.world import World

# What fourteen ordinary applications logged; eight of them were refused.
LOGS = {
    "sentence": b"user alice logged in\nuser bob logged out\n",
    "thread": b"[worker-3] started\n[worker-3] stopped\n",
    "logfmt": b"level=info msg=hello\nlevel=warn msg=bye\n",
    "epoch": b"1767312096 alice logged in\n1767312099 bob logged in\n",
    "epoch in milliseconds": b"1767312096123 GET /health\n1767312097123 GET /a\n",
    "rows of Zeek": b"1767312115.123456\tC0065f9\t198.51.12.219\n1767312117.1\tC1\t10.0.0.1\n",
    "URLs": b"https://example.com/a/17\nhttps://example.com/b\n",
    "colours": b"\x1b[32malice\x1b[0m connected from 10.0.0.7\n",
    "level first": b"INFO alice did it\nERROR bob failed\n",
    "container": b"web-1  | listening on port 80\nweb-1  | GET / 200\n",
    "commas": b"job 17 done, 3 left\njob 18 done, 2 left\n",
    "banner": b"=== RUN   TestLogin\n--- PASS: TestLogin (0.00s)\n",
    "stack trace within": b"ERROR failed\njava.io.IOException: disk\n\tat a.B.c(B.java:1)\n",
    "Ruby": b"I, [2026-01-31T12:00:00.0 #1]  INFO -- : a\nW, [2026-01-31T12:00:01.0 #1]  -- : b\n",
    "CRLF": b"user carol logged in\r\nuser bob logged out\r\n",
    "other scripts": "Größe 17 überschritten\n利用者 3 ログイン\n".encode(),
}  # fmt: skip
# Those of text, a rotation and a compression behind them.
NAMES = (
    *("x", "x.log", "x.txt", "x.out", "x.err", "x.LOG", "x.log.1", "x.log-20260101", "x.log.gz"),
    *("x.1.log.gz", "x.log.2026-01-01T00.zst", "x.log.1.gz", "part-00000", "i-0ab.10.0.0.7"),
)
OTHER_NAMES = ("x.conf", "x.dat.gz", "x.log.json", "x.xyz.1", "x.md-20260101")
# A table that names its columns, as it is found under names of text.
TABLES = {
    "comma": b"name,city\nalice,Rome\nbob,Oslo\n",
    "numbers below": b"host;load;free\nweb;0.5;7\ndb;0.7;9\n",
    "numbers above": b"station\t2019\t2020\nnorth\t17\t18\nsouth\t16\t12\n",
    "header alone": b"order_id,customer\n",
    "ragged": b'name,note\nalice,"a, b"\nbob,c\n',
    "numbers above, delimiters in quotes": (
        b'site,2,3\n"edge customer, report; api.", store ,data\n"job retry task; stock.",video,1\n'
    ),
    "line breaks in quotes": (
        b'897,9.60e-01,/search,-23\n176,a=0,"node\nnode",INFO\n177,b=4,"config\ntenant",INFO\n'
    ),
    "long names": b"event_time client_ip status\n17 10.0.0.1 200\n",
    "one column": b"email\nalice@example.com\n",
    "psql": b" id | name\n----+------\n  1 | a\n",
    "blanks behind commas": b"id, name, total_2026\n1, alice, 7\n2, bob, 9\n",
    "aligned": b"NAME      AMOUNT1   CITY\nalice     3142      Rome\nbob       77        Oslo\n",
    "processes": b"USER PID %CPU COMMAND\nroot 17 0.1 init\nbin 18 0.2 sh\n",
}

# Documents as they are found under names of text.
DOCUMENTS = {
    "settings named as levels are": b"DB_HOST=10.0.0.1\nDB_PORT=3899\nDEBUG=1\n",
    "settings in blocks": b"worker_processes 4;\nevents {\n  worker_connections 17;\n}\n",
    "a directory": b"total 17\n-rw-r--r-- 1 root root 7 Jan  1 00:00 a\n",
    "processes": b"top - 10:01:01 up 3 days,  1 user\nTasks: 7 total,   1 running\n",
    "a tune": b"X:1\nT:Tune\nM:4/4\nK:C\nCDEF GABc|\n",
    "a formula": b"p cnf 3 2\n1 -2 0\n2 3 -1 0\n",
    "a matrix below its size": b"3 4\nseq1 ACGT\nseq2 ACGA\nseq3 TCGA\n",
    "EDIFACT": b"UNH+7+ORDERS:D:96A'\nBGM+220+9895'\nUNT+3'\n",
    "mounts": b"/dev/sda1 / ext4 defaults 0 1\n/dev/sdb1 /x ext4 defaults 0 2\n",
    "name servers": b"nameserver 10.0.0.1\nnameserver 8.8.8.8\nsearch example.com\n",
    "a specification": b"Feature: Login\n  Scenario: ok\n    Given a user\n",
}


def told(content: bytes, key: str) -> str:
    try:
        found = detect(content, key, complete=True, forced=None)
    except UnreadableSource as error:
        return error.detail if 'set format: "text"' in error.detail else ""
    assert found is not None
    return found.format


@pytest.mark.parametrize("name", LOGS)
def test_lines_are_text_under_names_that_say_nothing_else(name: str) -> None:
    for key in NAMES:
        assert told(LOGS[name], f"logs/{key}") == Format.TEXT, key
    for key in OTHER_NAMES:
        assert "its name ends in " in told(LOGS[name], f"logs/{key}"), key


@pytest.mark.parametrize("key", OTHER_NAMES)
def test_a_date_at_its_start_makes_a_log_of_text_whatever_its_name(key: str) -> None:
    assert told(b"2026-01-31 12:00:00 started\nanything\n", key) == Format.TEXT


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("key", ["x", "x.log", "x.txt"])
def test_what_may_be_a_table_below_a_header_is_no_text(name: str, key: str) -> None:
    for end in (b"\n", b"\r\n"):
        assert "looks like" in told(TABLES[name].replace(b"\n", end), key)


@pytest.mark.parametrize(
    "control", [b"\x01", b"\x0c", b"\x1a", b"\x1b[2J", b"\x1b]0;x\x07", b"\x7f"]
)
def test_controls_other_than_colours_are_no_text(control: bytes) -> None:
    content = b"a line of a log\n" * 20 + b"and %b\n" % control
    assert "control characters" in told(content, "x.log")


@pytest.mark.parametrize(
    "content",
    [b"\tat a.B.c(B.java:1)\nERROR failed\n", b"started\n2026-01-31 12:00:00 ready\n", b" \na b\n"],
)
def test_what_begins_within_an_entry_is_left_alone(content: bytes) -> None:
    assert "begins within an entry" in told(content, "x.log")


@pytest.mark.parametrize(
    "key",
    ["etc/hosts", "LICENSE", "web-1/Dockerfile", "sshd_config", "requirements.txt", "README-2"],
)
def test_names_of_documents_without_an_extension_say_something_else(key: str) -> None:
    assert "its name ends in " in told(b"user alice logged in\nuser bob logged out\n", key)


def test_one_value_without_a_line_end_is_no_line() -> None:
    assert "without a line end" in told(b"user alice logged in", "x.log")
    assert told(b"user alice logged in\nuser bob", "x.log") == Format.TEXT


# Several sources.


def run(*contents: bytes, **given: object) -> tuple[list[bytes], list[str]]:
    """The outputs of a run over these sources, and what is said of those left alone."""
    world = World(**given)
    for number, content in enumerate(contents):
        world.put(f"{number}.log", content)
    receipt = world.run()
    left = [one.detail for one in receipt.quarantined]
    return sorted(world.store.contents("lake", "compacted/").values()), left


def test_sources_that_begin_differently_are_joined() -> None:
    outputs, left = run(*LOGS.values())
    assert left == []
    assert len(outputs) == 1
    lines = [line for one in LOGS.values() for line in one.split(b"\n") if line]
    assert sorted(filter(None, outputs[0].split(b"\n"))) == sorted(lines)


def test_sources_that_begin_with_the_same_line_are_left_alone_and_the_others_joined() -> None:
    headed = [b"host load\nweb %d\ndb 7\n" % n for n in range(3)]
    plain = [b"alice did %d\n" % n for n in range(3)]
    outputs, left = run(headed[0], plain[0], headed[1], plain[1], plain[2], headed[2])
    assert outputs == [b"".join(plain)]
    assert len(left) == 3
    assert left[0] == (
        "3 sources begin with the same line, which may be a header; it starts with 'host load';"
        ' set format: "text" to join such sources line by line'
    )


def test_where_all_begin_with_the_same_line_nothing_is_stored() -> None:
    world = World()
    for number in range(3):
        world.put(f"{number}.log", b"host load\nweb %d\n" % number)
    receipt = world.run()
    assert len(receipt.quarantined) == 3
    assert world.store.contents("lake", "compacted/") == {}
    assert world.store.unfinished_uploads("lake") == {}


def test_a_header_of_dates_is_left_alone_where_all_sources_begin_with_it() -> None:
    header = b"2026-01-31 12:00:00,2026-01-31 18:00:00\n"
    outputs, left = run(*(header + b"%d.5,17\n7,8\n" % n for n in range(3)))
    assert not outputs
    assert len(left) == 3
    # Programs that start together begin with the same line, too.
    line = b"2026-01-31 12:00:00,017 started\n"
    outputs, left = run(*(line * (n < 2) + b"2026-01-31 12:00:0%d,1 x\n" % n for n in range(4)))
    assert not left


@pytest.mark.parametrize("end", [b"", b"\n", b"\n\n"])
def test_a_shared_first_line_that_comes_again_as_the_last_one_may_be_a_header(end: bytes) -> None:
    outputs, left = run(b"host load\nweb 1\n", b"host load\ndb 7\nhost load" + end)
    assert not outputs
    assert len(left) == 2
    # Amid the others it is one of the lines.
    outputs, left = run(b"host load\nweb 1\n", b"host load\ndb 7\nhost load\nweb 2\n")
    assert not left


def test_first_lines_of_which_one_has_more_columns_may_be_headers() -> None:
    outputs, left = run(b"host,load\nweb,1\n", b"host,load,more\nweb,1,2\n", b"alice left\n")
    assert outputs == [b"alice left\n"]
    assert len(left) == 2
    # Lines of a log go on after a blank.
    outputs, left = run(b"server started\n", b"server started again\n")
    assert not left


def test_what_the_setting_says_is_not_held_against_others() -> None:
    headed = [b"host load\nweb %d\n" % n for n in range(3)]
    assert run(*headed, format="text") == ([b"".join(headed)], [])


@pytest.mark.parametrize(
    "same",
    [
        # The line itself; one of its kind; two that begin with its word.
        b"server started\nalice came\nserver started\n",
        b"[worker-3] started\n[worker-5] started\n",
        b"user alice logged in\nuser bob logged in\nuser carol logged in\n",
        # A time at its start.
        b"2026-01-31 12:00:00 started\nalice came\n",
    ],
)
def test_a_shared_first_line_that_is_like_the_lines_below_is_no_header(same: bytes) -> None:
    contents = [same + b"%d\n" % n for n in range(3)] + [b"another one\n"]
    assert run(*contents) == ([b"".join(contents)], [])


def test_where_all_begin_alike_nothing_less_than_that_line_again_shows_it_is_no_header() -> None:
    alike = [b"job 1 took 5\njob %d took 7\n" % n for n in (2, 3)]
    assert run(*alike)[0] == []
    again = [one + b"job 1 took 5\n" for one in alike]
    assert run(*again) == ([b"".join(again)], [])


def test_single_lines_are_joined_where_they_differ_at_all() -> None:
    contents = [b"user alice left\n", b"user alice left\n", b"user bob left\n"]
    assert run(*contents) == ([b"".join(contents)], [])
    outputs, left = run(*contents[:2])
    assert outputs == []
    assert len(left) == 2


def test_evidence_takes_bounded_memory_and_what_was_not_kept_is_doubt() -> None:
    shared = SharedLines()
    for number in range(4_000):
        shared.see(source(f"{number}"), b"line %d\n" % number + b"x" * (16 << 10))
    assert shared._held <= 16 << 20
    for number in range(2):
        shared.see(source(f"again {number}"), b"line %d\n" % 3_999 + b"y\n")
    assert len(list(shared.left_alone())) == 3
