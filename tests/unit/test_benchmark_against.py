from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from compactor.errors import CompactorError, IntegrityError, InvalidInput
from compactor_dev import REPOSITORY
from compactor_dev.benchmark import against, clients, command, datasets
from compactor_dev.benchmark.checkout import WORKERS, checked_out, resolve
from compactor_dev.benchmark.digests import of_output
from compactor_dev.benchmark.results import Measurement, SetResult
from compactor_dev.benchmark.session import environment_of
from compactor_dev.benchmark.task import Task

MEASURED = Measurement(
    data_set="json-4k",
    client="abc1234",
    lane="25 ms",
    round=1,
    objects=1_000,
    of_objects=1_000,
    bytes_in=4_000_000,
    outputs=1,
    bytes_out=4_000_000,
    seconds=1.0,
    user_seconds=0.15,
    kernel_seconds=0.05,
    start_seconds=0.0,
    start_user_seconds=0.0,
    start_kernel_seconds=0.0,
    peak_bytes=100_000_000,
    instructions=None,
    others=0.0,
    equal=True,
)
GIT = shutil.which("git") or "/usr/bin/git"
WORKER = WORKERS[0]
HANDLER = """
def handler(event, context):
    assert context.get_remaining_time_in_millis() > 0
    calls = event.get("counts", 0) + 1
    return {"status": "more" if calls < 3 else "done", "counts": calls}
"""


def git(repository: Path, *words: str) -> str:
    author = ["-c", "user.name=A", "-c", "user.email=a@example.com"]
    told = subprocess.run(
        [GIT, *author, *words], cwd=repository, check=True, capture_output=True, text=True
    )
    return told.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Two commits: one without a worker, and one with it, which is changed in the tree."""
    made = tmp_path / "repository"
    made.mkdir()
    git(made, "init", "--quiet")
    (made / "README").write_text("x", encoding="utf-8")
    git(made, "add", ".")
    git(made, "commit", "--quiet", "-m", "A beginning")
    (made / WORKER).parent.mkdir(parents=True)
    (made / WORKER).write_text(HANDLER, encoding="utf-8")
    # Without it, a package of this name further back in the path would be taken.
    (made / WORKER).with_name("__init__.py").touch()
    git(made, "add", ".")
    git(made, "commit", "--quiet", "-m", "The worker")
    (made / WORKER).write_text("of today", encoding="utf-8")
    return made


def pair(number: int, *, old: tuple[float, float], today: tuple[float, float]) -> list[Measurement]:
    """Seconds and CPU seconds of both versions, in the order of their round."""
    both = [
        replace(
            MEASURED,
            client=client,
            round=number,
            seconds=seconds,
            user_seconds=0.75 * cpu,
            kernel_seconds=0.25 * cpu,
        )
        for client, (seconds, cpu) in ((MEASURED.client, old), (against.TODAY, today))
    ]
    return both if number % 2 else both[::-1]


def result(*measured: Measurement) -> SetResult:
    return SetResult(
        "1,000 x 4 KB", 1_000, "2026-11-21T10:00:00+00:00", {}, measurements=[*measured]
    )


THREE = result(
    *pair(1, old=(1.0, 0.2), today=(2.0, 0.3)),
    *pair(2, old=(1.0, 0.2), today=(1.25, 0.22)),
    *pair(3, old=(4.0, 0.2), today=(4.0, 0.25)),
)


def test_a_commit_is_checked_out_as_it_was_and_its_tree_is_gone_afterwards(
    repository: Path,
) -> None:
    with checked_out(repository, "HEAD") as old:
        assert (old.tree / WORKER).read_text(encoding="utf-8") == HANDLER
        assert old.subject == "The worker"
        assert git(repository, "rev-parse", "HEAD").startswith(old.commit)
    assert not old.tree.parent.exists()
    assert len(git(repository, "worktree", "list").splitlines()) == 1
    assert (repository / WORKER).read_text(encoding="utf-8") == "of today"


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, CompactorError])
def test_an_interrupted_comparison_leaves_no_tree(
    repository: Path, interruption: type[BaseException]
) -> None:
    trees = []

    def interrupted() -> None:
        with checked_out(repository, "HEAD") as old:
            (old.tree / "left.txt").write_text("by a worker", encoding="utf-8")
            trees.append(old.tree)
            raise interruption

    with pytest.raises(interruption):
        interrupted()
    assert not trees[0].parent.exists()
    assert len(git(repository, "worktree", "list").splitlines()) == 1


@pytest.mark.parametrize("commit", ["nope", "", "--all", "HEAD~7", "HEAD:README"])
def test_what_is_no_commit_is_refused(repository: Path, commit: str) -> None:
    with pytest.raises(InvalidInput, match=r"--against: .* a commit of this repository"):
        resolve(repository, commit)


def test_a_commit_without_a_worker_is_refused_by_what_it_lacks(repository: Path) -> None:
    with pytest.raises(InvalidInput, match=f"--against: 'HEAD~1' .*{WORKER}"):
        resolve(repository, "HEAD~1")


def test_outside_a_repository_no_commit_is_known(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="--against"):
        resolve(tmp_path, "HEAD")


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (["--against", "no-such-commit"], "--against"),
        (["--against", "HEAD", "--format", "xml"], "--format"),
        (["--against", "HEAD", "--format", ""], "--format"),
        (["--against", "HEAD", "--format", "csv", "--sets", "json-4k"], "--format"),
        (["--against", "HEAD", "--clients", "worker"], "--clients"),
        (["--against", "HEAD", "--faults"], "--faults"),
        (["--against", "HEAD", "--rounds", "0"], "--rounds"),
        (["--format", "csv"], "--format"),
    ],
)
def test_a_comparison_that_cannot_be_made_ends_in_one_line_before_anything_is_fetched(
    options: Sequence[str], field: str, capsys: pytest.CaptureFixture
) -> None:
    assert command.main(options) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1
    assert said[0].startswith(f"bench: {field}: ")


def test_ratios_are_those_within_a_round_not_of_medians() -> None:
    speeds = [one.speed for one in against.pairs_of(THREE, "25 ms")]
    assert speeds == pytest.approx([0.5, 0.8, 1.0])
    told = against.summary_of(THREE, "25 ms", "abc1234")
    assert "1.250 (1.100 to 1.500) times the CPU of abc1234 an object, and" in told
    assert "0.800 (0.500 to 1.000) times its objects/s; 3 rounds" in told


def test_a_row_shows_which_version_was_first_and_begins_with_cpu() -> None:
    heads, rows = against.rows_of(THREE, "25 ms", "abc1234")
    assert heads[:3] == ["Round", "First", "CPU ms/object (user + kernel), abc1234"]
    assert rows[0] == [
        "1",
        "abc1234",
        "0.200 (0.150 + 0.050)",
        "0.300 (0.225 + 0.075)",
        "1.500",
        "1,000",
        "500",
        "0.500",
    ]
    assert rows[1][:2] == ["2", "today"]
    assert {len(row) for row in rows} == {len(heads)}


def test_instructions_are_compared_where_every_round_has_them() -> None:
    counted = [
        replace(one, instructions=4_000_000 if one.client == against.TODAY else 5_000_000)
        for one in THREE.measurements
    ]
    heads, rows = against.rows_of(result(*counted), "25 ms", "abc1234")
    assert heads[5] == "Instructions/object, abc1234"
    assert rows[0][5:8] == ["5,000", "4,000", "0.800"]
    told = against.summary_of(result(*counted), "25 ms", "abc1234")
    assert "0.800 (0.800 to 0.800) times its instructions, and" in told
    partly = [replace(counted[0], instructions=None), *counted[1:]]
    heads, rows = against.rows_of(result(*partly), "25 ms", "abc1234")
    assert len(heads) == len(rows[0]) == 8


def test_a_round_that_one_version_did_not_finish_counts_for_nothing() -> None:
    begun = result(*THREE.measurements, replace(MEASURED, round=4, seconds=0.001))
    assert [one.old.round for one in against.pairs_of(begun, "25 ms")] == [1, 2, 3]


def test_quick_takes_the_first_objects_and_says_so() -> None:
    few = against.first_of(datasets.FORMATS["csv"])
    assert few.objects == against.QUICK_OBJECTS
    assert few.title == "the first 5,000 of 20,000 x 4 KB CSV"


def test_any_version_s_handler_is_called_until_it_is_done_and_named(
    repository: Path, tmp_path: Path
) -> None:
    answer = tmp_path / "answer.json"
    (tmp_path / "elsewhere").mkdir()
    task = Task("http://x", "sources", "set/", "outputs", "old/", ".json", "/s", {}, str(answer))
    with checked_out(repository, "HEAD") as old:
        client = clients.version(old.commit, old.subject, old.tree / "functions")
        # As this process has it: what is in reach of today's version is not to be of the other's.
        base = {"PYTHONPATH": f"{REPOSITORY / 'functions'}", "PATH": "/bin"}
        environment = environment_of(client, base)
        words = client.command(task, None)  # type: ignore[arg-type]  # it needs none
        subprocess.run(words, env=environment, check=True, cwd=tmp_path / "elsewhere")
        told = answer.read_text(encoding="utf-8")
        assert '"counts": 3' in told
        found = replace(MEASURED, detail={"handler": str((old.tree / WORKER).resolve())})
        assert against.own(client, found) is found
        assert str((old.tree / WORKER).resolve()) in told


def test_a_handler_of_another_tree_is_no_measurement_of_this_one(tmp_path: Path) -> None:
    client = clients.version("abc1234", "old", tmp_path / "old" / "functions")
    found = replace(MEASURED, detail={"handler": str(tmp_path / "old" / "functions-2" / "h.py")})
    with pytest.raises(IntegrityError, match="the worker of abc1234 was imported from"):
        against.own(client, found)


def test_today_s_worker_starts_the_same_way(tmp_path: Path) -> None:
    # As far as to the task, which it lacks: all that the script itself imports is there.
    today = clients.version("today", "today", REPOSITORY / "functions")
    words = [*today.command(_no_task(), None)[:3], "not JSON"]  # type: ignore[arg-type]  # it needs none
    said = subprocess.run(
        words,
        env={**environment_of(today, {}), "AWS_DEFAULT_REGION": "us-east-1"},
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert said.stderr.splitlines()[-1].startswith("json.decoder.JSONDecodeError")
    assert words[0] == sys.executable


def _no_task() -> Task:
    return Task("http://x", "s", "p/", "o", "q/", ".json", "/s", {}, "/a")


@pytest.mark.parametrize("name", sorted(datasets.FORMATS))
def test_objects_of_every_format_are_about_4_kb_of_distinct_records(
    name: str, tmp_path: Path
) -> None:
    data_set = datasets.FORMATS[name].reduced(30)
    made = list(datasets.objects(data_set))
    sizes = [len(one.body) for one in made]
    assert all(3_600 < size < 4_800 for size in sizes)
    for one in made:
        copy = tmp_path / one.name
        copy.write_bytes(one.body)
        header = data_set.kind.header
        assert of_output(copy, trails=False, header=header) == one.records


def test_one_header_or_many_a_joined_csv_has_the_records_of_its_sources(tmp_path: Path) -> None:
    data_set = datasets.FORMATS["csv"].reduced(4)
    bodies = [one.body for one in datasets.objects(data_set)]
    header, _, _ = bodies[0].partition(b"\n")
    joined, kept = tmp_path / "joined.csv", tmp_path / "kept.csv"
    joined.write_bytes(bodies[0] + b"".join(body.partition(b"\n")[2] for body in bodies[1:]))
    kept.write_bytes(b"".join(bodies))
    assert header
    wanted = datasets.total(datasets.objects(data_set))
    for path in (joined, kept):
        assert of_output(path, trails=False, header=data_set.kind.header) == wanted
