"""`ls` and `restore`: what a person is shown, what lies in the directory, what is refused."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace

import pytest
import zstandard

from compactor.log.encoding import encode_commit
from compactor.log.entries import Columnar
from compactor.log.log import CommitLog
from compactor.model import Compression, Format
from compactor_cli import restore_files
from compactor_cli.commands import ls, main
from compactor_cli.commands import restore as restore_command
from tests.support.examples import NOW, PARTITION
from tests.support.world import World

LINE = b'{"id": 1}\n'
LOG_LINE = b"2026-01-02T03:04:05Z line %d\n"
DEST = "s3://lake/compacted/"
KEY = PARTITION.prefix


@pytest.fixture
def world(monkeypatch):
    made = World()
    for module in (ls, restore_command):
        monkeypatch.setattr(module, "open_store", lambda *_: made.store)
    monkeypatch.setattr("time.time", lambda: made.clock.time)
    return made


@pytest.fixture
def command(capsys):
    def run(*words: str) -> tuple[int, str, str]:
        code = main([*words])
        return code, *capsys.readouterr()

    return run


def files_below(directory) -> dict[str, bytes]:
    found = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in found}


def put_logs(world) -> dict[str, bytes]:
    """The same name plain, as gzip and as zstd, with different content."""
    plain = {suffix: b'{"of": "%b"}\n' % suffix.encode() for suffix in ("", ".gz", ".zst")}
    world.put("a.log", plain[""])
    world.put("a.log.gz", gzip.compress(plain[".gz"], mtime=0))
    world.put("a.log.zst", zstandard.compress(plain[".zst"]))
    world.run()
    return {f"a.log{suffix}": content for suffix, content in plain.items()}


def test_one_source_of_a_small_state_costs_a_list_its_entry_and_a_range(world, capfdbinary):
    for number in range(50):
        world.put(f"{number:03d}.json", LINE * (number + 1))
    world.run()
    before = len(world.store.calls)
    assert main(["restore", DEST, f"{KEY}030.json"]) == 0
    assert capfdbinary.readouterr().out == LINE * 31
    assert [call.name for call in world.store.calls[before:]] == [
        "list_objects",
        "get",
        "get_range",
    ]


def gzip_member(n: int) -> bytes:
    return gzip.compress(LOG_LINE % n, n + 1, mtime=n)


def zstd_frame(n: int) -> bytes:
    return zstandard.compress(LOG_LINE % n, n + 1)


def test_a_source_and_its_compressed_namesakes_become_three_files(world, command, tmp_path):
    logs = put_logs(world)
    keys = [KEY + name for name in logs]
    code, out, err = command("restore", DEST, *keys, "-o", str(tmp_path), "--json")
    assert (code, err) == (0, "")
    found = files_below(tmp_path)
    assert found.keys() == set(keys)
    assert found[f"{KEY}a.log"] == logs["a.log"]
    assert gzip.decompress(found[f"{KEY}a.log.gz"]) == logs["a.log.gz"]
    opened = zstandard.ZstdDecompressor().decompressobj()
    assert opened.decompress(found[f"{KEY}a.log.zst"]) == logs["a.log.zst"]
    assert [one["form"] for one in json.loads(out)].count("compressed_again") == 2


def test_a_gzip_object_as_large_as_its_content_becomes_a_gzip_file_again(world, command, tmp_path):
    content = LINE * 40
    packed = gzip.compress(content, mtime=0)
    # A comment of the member, as some tools write one, makes up the difference.
    comment = b"c" * (len(content) - len(packed) - 1) + b"\0"
    packed = packed[:3] + b"\x10" + packed[4:10] + comment + packed[10:]
    assert len(packed) == len(content)
    world.put("same.json.gz", packed)
    world.put("other.json.gz", gzip.compress(LINE, mtime=0))
    world.run()
    key = f"{KEY}same.json.gz"
    assert command("restore", DEST, key, "-o", str(tmp_path))[0] == 0
    assert gzip.decompress(files_below(tmp_path)[key]) == content


def test_what_s3_copied_whole_keeps_its_name_and_its_bytes(monkeypatch, command, tmp_path):
    world = World(small_object_bytes=1)
    monkeypatch.setattr(restore_command, "open_store", lambda *_: world.store)
    packed = gzip.compress(LINE * 9, mtime=0)
    world.put("a.json.gz", packed)
    world.run()
    (commit,) = CommitLog(world.store, world.settings, PARTITION).every_commit()
    assert commit.output is not None
    assert commit.output.copied
    code, out, _ = command("restore", DEST, f"{KEY}a.json.gz", "-o", str(tmp_path), "--json")
    assert code == 0
    assert files_below(tmp_path) == {f"{KEY}a.json.gz": packed}
    assert json.loads(out)[0]["form"] == "as_stored"


def test_files_that_are_there_are_named_and_stay_unless_they_may_be_replaced(
    world, command, tmp_path
):
    world.put("a.json", LINE)
    world.put("b.json", LINE)
    world.run()
    mine = tmp_path / KEY / "b.json"
    mine.parent.mkdir(parents=True)
    mine.write_bytes(b"mine")
    words = ("restore", DEST, "--prefix", KEY, "-o", str(tmp_path))
    code, out, err = command(*words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "b.json' exists" in err
    assert files_below(tmp_path) == {f"{KEY}b.json": b"mine"}
    assert command(*words, "--overwrite")[0] == 0
    assert files_below(tmp_path) == {f"{KEY}a.json": LINE, f"{KEY}b.json": LINE}


def test_a_key_that_others_lie_below_is_refused_before_anything_is_written(
    world, command, tmp_path
):
    world.put("a", LINE)
    world.put("a/b/c", LINE)
    world.run()
    code, _, err = command("restore", DEST, "--prefix", "logs/", "-o", str(tmp_path))
    assert code == 2
    assert f"'{KEY}a' would be a file, and '{KEY}a/b/c' is below it" in err
    assert not [*tmp_path.iterdir()]


def test_a_file_where_a_directory_is_needed_is_named(world, command, tmp_path):
    world.put("a", LINE)
    world.run()
    (tmp_path / "logs").write_bytes(b"mine")
    code, _, err = command("restore", DEST, f"{KEY}a", "-o", str(tmp_path))
    assert code == 2
    assert f"{str(tmp_path / 'logs')!r} is not a directory" in err


@pytest.mark.parametrize("length", [254, 255])
def test_the_longest_names_are_restored(world, command, tmp_path, length):
    key = KEY + "n" * length
    world.put("n" * length, LINE)
    world.run()
    assert command("restore", DEST, key, "-o", str(tmp_path))[0] == 0
    assert files_below(tmp_path) == {key: LINE}


def test_a_longer_name_is_refused_by_name_before_anything_is_written(world, command, tmp_path):
    world.put("a", LINE)
    world.put("ü" * 128, LINE)
    world.run()
    code, _, err = command("restore", DEST, "--prefix", "logs/", "-o", str(tmp_path))
    assert code == 2
    assert "would have a name of 256 bytes; the limit is 255" in err
    assert not [*tmp_path.iterdir()]


def test_a_partial_file_of_another_writer_stays_as_it_is(world, command, tmp_path):
    world.put("x.log", LINE)
    world.run()
    other = tmp_path / KEY / ".x.log.partial"
    other.parent.mkdir(parents=True)
    other.write_bytes(b"theirs")
    assert command("restore", DEST, f"{KEY}x.log", "-o", str(tmp_path))[0] == 0
    found = files_below(tmp_path)
    assert found == {f"{KEY}x.log": LINE, f"{KEY}.x.log.partial": b"theirs"}


def test_a_file_that_appears_meanwhile_is_not_written_over(world, command, tmp_path, monkeypatch):
    world.put("a", LINE)
    world.run()
    mine = tmp_path / KEY / "a"
    honest = restore_files.FileTargets.write

    def late(targets, row, pieces):
        mine.parent.mkdir(parents=True)
        mine.write_bytes(b"mine")
        return honest(targets, row, pieces)

    monkeypatch.setattr(restore_files.FileTargets, "write", late)
    code, _, err = command("restore", DEST, f"{KEY}a", "-o", str(tmp_path), "--overwrite")
    assert (code, err.count("\n")) == (2, 1)
    assert files_below(tmp_path) == {f"{KEY}a": b"mine"}


def test_on_a_file_system_without_links_nothing_is_written_over_either(
    world, command, tmp_path, monkeypatch
):
    def no_links(source, target):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.link", no_links)
    world.put("a", LINE)
    world.run()
    assert command("restore", DEST, f"{KEY}a", "-o", str(tmp_path))[0] == 0
    assert files_below(tmp_path) == {f"{KEY}a": LINE}
    assert command("restore", DEST, f"{KEY}a", "-o", str(tmp_path))[0] == 2


def make_columnar(world, name: str) -> None:
    """Let the newest commit say that its output holds rows."""
    log = CommitLog(world.store, world.settings, PARTITION)
    commit = next(iter(log.every_commit()))
    assert commit.output is not None
    columnar = Columnar(1, 1, "0", "0", "snappy", "{}")
    output = replace(
        commit.output, columnar=columnar, format=Format.PARQUET, compression=Compression.NONE
    )
    key = f"_compactor/compacted/partitions/{PARTITION.path}commits/{commit.sequence:020d}.json.gz"
    world.store.seed("lake", key, encode_commit(replace(commit, output=output)), last_modified=NOW)


def test_sources_whose_rows_alone_are_kept_are_marked_and_left_out(world, command, tmp_path):
    world.put("a.json", LINE)
    world.run()
    world.put("b.json", LINE)
    world.run()
    make_columnar(world, "b.json")
    listed = json.loads(command("ls", DEST, "--json")[1])
    assert {one["key"]: one["restorable"] for one in listed} == {
        f"{KEY}a.json": True,
        f"{KEY}b.json": False,
    }
    code, _, err = command("restore", DEST, "--prefix", KEY, "-o", str(tmp_path))
    assert code == 1
    assert f"1 source cannot be restored, such as {KEY}b.json" in err
    assert files_below(tmp_path) == {f"{KEY}a.json": LINE}
    keys = (f"{KEY}a.json", f"{KEY}b.json")
    assert command("restore", DEST, *keys, "-o", str(tmp_path / "2"))[0] == 2
    assert not (tmp_path / "2").exists()


# ls


def test_ls_lists_what_restore_takes_with_its_etag_sizes_and_place(world, command):
    logs = put_logs(world)
    world.put("broken.gz", gzip.compress(LINE * 50, mtime=0)[:-9])
    world.run()
    code, out, err = command("ls", DEST, "--json")
    assert (code, err) == (0, "")
    listed = {one["key"]: one for one in json.loads(out)}
    # What is quarantined is in no output, and cannot be given back.
    assert listed.keys() == {KEY + name for name in logs}
    sources = world.store.contents("source")
    outputs = {f"s3://lake/{key}" for key in world.store.contents("lake", "compacted/")}
    for key, one in listed.items():
        assert one["bytes"] == len(sources[key])
        assert one["records"] == 1
        assert one["output"] in outputs
        assert one["committed_at"].startswith("2027-01-15T")
        assert one["restorable"]
    lines = command("ls", DEST)[1].splitlines()
    assert len(lines) == len(listed)
    assert all(
        any(one["etag"] in line and key in line for line in lines) for key, one in listed.items()
    )


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("", {"a.log", "a.log.gz", "a.log.zst"}),
        (KEY, {"a.log", "a.log.gz", "a.log.zst"}),
        (f"{KEY}a.log.", {"a.log.gz", "a.log.zst"}),
        ("*.log", {"a.log"}),
        ("logs/*/a.log.[gz]*", {"a.log.gz", "a.log.zst"}),
        ("other/", set()),
    ],
)
def test_ls_takes_the_beginning_of_keys_or_a_glob(world, command, pattern, names):
    put_logs(world)
    code, out, _ = command("ls", DEST, pattern, "--json")
    assert code == 0
    assert {one["key"] for one in json.loads(out)} == {KEY + name for name in names}


@pytest.mark.parametrize(
    ("since", "names"),
    [
        ("1h", {"new"}),
        ("30d", {"old", "new"}),
        ("2027-01-16", {"new"}),
        ("today", {"new"}),
        ("today-1", {"old", "new"}),
        ("2027-01-15T08:00:00Z", {"old", "new"}),
    ],
)
def test_ls_can_leave_out_what_was_committed_before_and_does_not_read_it(
    world, command, since, names
):
    world.put("old", LINE)
    world.run()
    world.clock.time = NOW + 86_400
    world.put("new", LINE)
    world.run()
    before = world.store.count("get")
    code, out, _ = command("ls", DEST, "--since", since, "--json")
    assert code == 0
    assert {one["key"] for one in json.loads(out)} == {KEY + name for name in names}
    assert world.store.count("get") - before == len(names)


@pytest.mark.parametrize("since", ["yesterday", "7", "-1d", "2026-13-01", "9" * 30 + "d"])
def test_ls_refuses_what_is_no_time(world, command, since):
    code, _, err = command("ls", DEST, f"--since={since}")
    assert (code, err.count("\n")) == (2, 1)
    assert "InvalidInput: --since" in err


def test_what_ls_lists_can_be_given_to_restore(world, command, tmp_path):
    logs = put_logs(world)
    listed = json.loads(command("ls", DEST, "--json")[1])
    keys = [one["key"] for one in listed]
    assert command("restore", DEST, *keys, "-o", str(tmp_path))[0] == 0
    assert len(files_below(tmp_path)) == len(logs)


def test_restore_reports_a_prefix_that_no_source_has(world, command, tmp_path):
    world.put("a", LINE)
    world.run()
    code, _, err = command("restore", DEST, "--prefix", "other/", "-o", str(tmp_path))
    assert code == 2
    assert "InvalidInput: --prefix: 'other/'" in err
