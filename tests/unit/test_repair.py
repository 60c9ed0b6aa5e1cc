"""`compactor repair`: what the version before lost is built again, or given back."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from compactor.errors import CommitConflict, SourceChanged
from compactor.log.entries import RULES
from compactor.model import Format
from compactor.outputs.undo import Undoing, undo
from compactor_cli.commands import main
from compactor_cli.commands import repair as command_module
from compactor_cli.old_outputs import Finding, examine
from tests.support.cleaning import DAY, commits, left
from tests.support.examples import NOW, PARTITION
from tests.support.memory_store import Crashed
from tests.support.old_commits import headed_commit, log_of
from tests.support.world import World

PLACES = ("s3://source/logs/", "s3://lake/compacted/")
HEALTH = {
    "a.csv": b"10.0.0.1,GET,/health\n10.0.0.1,GET,/a\n",
    "b.csv": b"10.0.0.1,GET,/health\n10.0.0.2,GET,/b\n",
}
HEADED = {"c.csv": b"id,name\n1,a\n", "d.csv": b"id,name\n2,b"}
UNCLEAR = {"e.csv": b"web-1,OK,healthy\n", "f.csv": b"web-1,OK,healthy\n"}
KEPT = "_compactor/compacted/partitions/2026/01/02/withdrawn/"


@pytest.fixture
def world(monkeypatch):
    made = World(clean_up="delete", retention_days=7)
    made.store.add_bucket("source")
    monkeypatch.setattr(command_module, "open_store", lambda *_: made.store)
    return made


@pytest.fixture
def repair(capsys):
    def run(*words: str) -> tuple[int, str, str]:
        code = main(["repair", *PLACES, *words])
        return code, *capsys.readouterr()

    return run


def outputs(world: World) -> dict[str, bytes]:
    return world.store.contents("lake", "compacted/")


def readable(world) -> Counter[bytes]:
    """Lines in the outputs and in the sources that no valid commit names."""
    named = {row.source.key for commit in commits(world) for row in commit.rows}
    found: Counter[bytes] = Counter()
    for body in outputs(world).values():
        found += Counter(body.splitlines())
    for key, body in world.store.contents("source").items():
        if key not in named:
            found += Counter(body.splitlines())
    return found


ROWS = Counter(line for body in HEALTH.values() for line in body.splitlines())


def test_rows_that_were_dropped_are_told_and_nothing_is_written_in_a_dry_run(world, repair):
    commit = headed_commit(world, HEALTH)
    headed_commit(world, HEADED)
    before = world.store.contents("lake")
    code, out, err = repair("--dry-run", "--json")
    document = json.loads(out)
    (case,) = document["findings"]
    assert code == 1
    assert err == "compactor: IntegrityError: 1 finding left\n"
    assert (case["sequence"], case["action"]) == (commit.sequence, "undo")
    assert case["finding"]["kind"] == "rows_dropped"
    assert (case["finding"]["records_in"], case["finding"]["records_out"]) == (4, 3)
    assert "10.0.0.1,GET,/health" in case["finding"]["detail"]
    assert (document["sound"], document["done"]) == (1, None)
    assert world.store.contents("lake") == before


def test_where_the_sources_stand_the_commit_is_taken_back_and_they_are_candidates(world, repair):
    headed_commit(world, HEALTH)
    assert readable(world) != ROWS
    assert repair("--yes")[0] == 0
    assert outputs(world) == {}
    assert commits(world) == [entry for entry in commits(world) if entry.freed]
    (entry,) = commits(world)
    assert (entry.replaces, entry.rules, entry.rows) == (1, RULES, ())
    assert entry.why.startswith("rows_dropped: 2 sources begin with")
    assert readable(world) == ROWS
    # What was taken away is kept, where no reader looks.
    (kept,) = world.store.contents("lake", KEPT).values()
    assert kept.startswith(b"10.0.0.1,GET,/health\n10.0.0.1,GET,/a\n")
    state = log_of(world).load()
    assert not state.committed
    assert repair("--yes")[0] == 0


def test_records_that_were_glued_are_told_and_taken_back(world, repair):
    arrays = {"a.json": b'[{"id": 1}, {"id": 2}]', "b.json": b'[{"id": 3}]'}
    headed_commit(world, arrays, format=Format.JSON_LINES, headed=False)
    (output,) = outputs(world).values()
    assert output == b'[{"id": 1}, {"id": 2}]\n[{"id": 3}]\n'
    code, out, _ = repair("--dry-run", "--json")
    (case,) = json.loads(out)["findings"]
    assert (code, case["finding"]["kind"], case["action"]) == (1, "records_glued", "undo")
    assert repair("--yes")[0] == 0
    assert outputs(world) == {}
    assert not log_of(world).load().committed


def test_sound_outputs_of_the_version_before_are_not_touched(world, repair):
    headed_commit(world, {"a.json": b'{"id": 1}'}, format=Format.JSON_LINES, headed=False)
    before = world.store.contents("lake")
    assert repair("--yes")[0] == 0
    assert world.store.contents("lake") == before


def test_the_next_run_compacts_them_again_and_sums_the_log_up(world, repair):
    headed_commit(world, HEALTH)
    repair("--yes")
    world.settings = World(format="text").settings
    world.run()
    assert readable(world) == ROWS
    assert [len(commit.rows) for commit in commits(world)] == [2, 0]
    assert len(log_of(world).load().committed) == 2
    before = outputs(world)
    world.run()
    assert outputs(world) == before


def test_a_header_is_recorded_as_sound_and_clean_up_goes_on(world, repair):
    headed_commit(world, HEADED)
    world.clock.advance(8 * DAY)
    assert world.clean_up().counts.deleted == 0
    code, out, _ = repair("--yes", "--json")
    assert (code, json.loads(out)["done"]["recorded"]) == (0, 1)
    assert world.clean_up().counts.deleted == 2
    assert json.loads(repair("--yes", "--json")[1])["sound"] == 0


@pytest.mark.parametrize(
    ("answer", "code", "outputs_left", "deleted"),
    [("leave", 1, 1, 0), ("headers", 0, 1, 2), ("rows", 0, 0, 0)],
)
def test_what_nobody_can_tell_is_left_alone_until_somebody_does(
    world, repair, answer, code, outputs_left, deleted
):
    headed_commit(world, UNCLEAR)
    world.clock.advance(8 * DAY)
    assert repair("--yes", "--first-lines", answer)[0] == code
    assert len(outputs(world)) == outputs_left
    assert world.clean_up().counts.deleted == deleted
    assert len(left(world)) == 2 - deleted


def test_rows_whose_sources_are_gone_are_given_back_from_the_manifest(world, repair, tmp_path):
    commit = headed_commit(world, {**HEALTH, "c.csv": b"10.0.0.1,GET,/health\n10.0.0.3,GET,/c\n"})
    world.store.delete_sources([commit.rows[0].source])
    before = world.store.contents("lake")
    code, out, _ = repair("--yes")
    assert code == 1
    assert "sources are gone: --lost-rows gives back" in out
    assert world.store.contents("lake") == before
    code, out, err = repair("--lost-rows", "-o", str(tmp_path), "--json")
    assert (code, err) == (0, "")
    ((path, body),) = [(p, p.read_bytes()) for p in tmp_path.rglob("*") if p.is_file()]
    assert body == b"10.0.0.1,GET,/health\n" * 2
    assert path.suffix == ".csv"
    assert path.parent == tmp_path / PARTITION.path
    assert json.loads(out)["lost_rows"] == [{"path": str(path), "rows": 2, "bytes": len(body)}]
    code, _, err = repair("--lost-rows", "-o", str(tmp_path))
    assert code == 2, "it is there already"


def test_commits_of_another_source_are_left_alone(world, repair, capsys):
    headed_commit(world, HEALTH)
    places = ("s3://source/other/", "s3://lake/compacted/")
    assert main(["repair", *places, "--yes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["examined"] == 0
    assert len(outputs(world)) == 1


def test_a_damaged_output_is_told_and_the_others_are_repaired(world, repair):
    first = headed_commit(world, HEADED)
    assert first.output is not None
    headed_commit(world, HEALTH)
    body = world.store.get("lake", first.output.key).swapcase()
    world.store.seed("lake", first.output.key, body, last_modified=NOW)
    code, _, err = repair("--yes")
    assert code == 1
    assert f"{PARTITION.path} commit 1: " in err
    assert list(outputs(world)) == [first.output.key]


def glued(commit, store, settings):
    """What an examination of other kinds of outputs finds."""
    assert commit.output is not None
    detail = "a line holds two records"
    return (Finding(commit.sequence, commit.output.key, "records_glued", 2, 4, 3, detail),)


def test_any_other_finding_is_undone_as_well_or_its_sources_can_be_restored(
    world, repair, monkeypatch
):
    monkeypatch.setattr(command_module, "examine", glued)
    commit = headed_commit(world, HEADED, rules=RULES)
    world.store.delete_sources([commit.rows[0].source])
    code, out, _ = repair("--yes")
    assert code == 1
    assert "records_glued" in out
    assert "compactor restore gives each of them back" in out
    world.put("c.csv", HEADED["c.csv"])
    assert repair("--yes")[0] == 0
    (entry,) = commits(world)
    assert entry.why == "records_glued: a line holds two records"


# The order of the writes


def undoing(world) -> Undoing:
    log = log_of(world)
    return Undoing(world.store, world.settings.state, PARTITION.path, log, log.load().last)


def killed_at(world, request: int) -> bool:
    """Undo a commit up to this request; True when it came to its end."""
    commit = headed_commit(world, HEALTH)
    calls = 0

    def crash(call):
        nonlocal calls
        calls += 1
        if calls >= request:
            raise Crashed
        # No reader of the destination sees a row twice, and none is in neither place.
        seen = Counter(line for body in outputs(world).values() for line in body.splitlines())
        assert all(count <= ROWS[line] for line, count in seen.items())
        assert seen or len(world.store.contents("source")) == 2

    work = undoing(world)
    world.store.hooks.before.append(crash)
    try:
        undo(commit, "rows", work, run_id="r", now=NOW)
    except Crashed:
        return False
    finally:
        world.store.hooks.before.clear()
    return True


def test_killed_at_any_request_a_repair_doubles_nothing_and_the_next_one_ends_it(
    repair, monkeypatch
):
    ended, request = False, 0
    while not ended:
        request += 1
        world = World(clean_up="delete", retention_days=7)
        world.store.add_bucket("source")
        monkeypatch.setattr(command_module, "open_store", lambda *_, w=world: w.store)
        ended = killed_at(world, request)
        # A clean-up in between changes nothing for the worse.
        world.clean_up()
        assert len(world.store.contents("source")) == 2
        assert repair("--yes")[0] == 0
        assert outputs(world) == {}
        assert readable(world) == ROWS
        assert not log_of(world).load().committed
    assert request > 8


def test_sources_that_go_meanwhile_bring_the_output_back(world):
    commit = headed_commit(world, HEALTH)
    before = outputs(world)

    def steal(call):
        if call.name == "delete_source" and not stolen:
            stolen.append(call)
            one = commit.rows[0].source
            world.store.remove("source", one.key)

    stolen: list[object] = []
    world.store.hooks.before.append(steal)
    with pytest.raises(SourceChanged):
        undo(commit, "rows", undoing(world), run_id="r", now=NOW)
    assert stolen
    assert outputs(world) == before
    assert len(log_of(world).load().committed) == 2


def test_of_two_repairs_at_once_one_is_told(world):
    commit = headed_commit(world, HEALTH)
    work, late = undoing(world), undoing(world)
    undo(commit, "rows", work, run_id="r", now=NOW)
    # Meanwhile the sources are compacted again, and the log is summed up.
    world.settings = World(format="text").settings
    world.run()
    before = outputs(world)
    with pytest.raises(CommitConflict):
        undo(commit, "rows", late, run_id="s", now=NOW)
    assert outputs(world) == before
    assert len(log_of(world).load().committed) == 2


def test_an_overwritten_source_keeps_the_output(world):
    commit = headed_commit(world, HEALTH)
    world.put("a.csv", b"other\n")
    with pytest.raises(SourceChanged):
        undo(commit, "rows", undoing(world), run_id="r", now=NOW)
    assert len(outputs(world)) == 1


@pytest.mark.parametrize("other", [False, True])
def test_what_is_compacted_after_it_was_taken_back_is_not_told_as_overwritten(world, other):
    for name in "ab":
        world.put(f"{name}.json", b'{"id": "%b"}\n' % name.encode())
    world.run()
    undo(next(log_of(world).every_commit()), "rows", undoing(world), run_id="r", now=NOW)
    if other:
        world.put("a.json", b'{"id": "c"}\n')
    receipt = world.run()
    counts = receipt.counts
    assert (counts.objects_in, counts.overwritten, counts.conflicts) == (2, 0, 0)
    world.put("b.json", b'{"id": "d"}\n')
    assert world.run().counts.overwritten == 1


# What is looked for


def test_one_source_that_dropped_its_first_line_lost_nothing(world):
    commit = headed_commit(world, {"a.csv": HEALTH["a.csv"]})
    assert examine(commit, world.store, world.settings) == ()


@pytest.mark.parametrize("again", [b"id,name\n", b"id,name\r\n", b"id,name"])
def test_a_first_line_that_occurs_again_below_is_a_row(world, again):
    commit = headed_commit(world, {**HEADED, "z.csv": b"id,name\n3,c\n" + again})
    (finding,) = examine(commit, world.store, world.settings)
    assert finding.kind == "rows_dropped"


@pytest.mark.parametrize(
    "words",
    [(), ("--lost-rows",), ("--yes", "-o", "back"), ("--yes", "--first-lines", "maybe")],
)
def test_what_is_not_to_be_decided_is_refused(world, repair, words):
    headed_commit(world, HEALTH)
    try:
        code = repair(*words)[0]
    except SystemExit as error:
        code = error.code
    assert code == 2
    assert len(outputs(world)) == 1
