"""The commit log as a fold: what counts, what is void, what a checkpoint stands for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from compactor.formats.framing import Edit
from compactor.log.digests import Digests
from compactor.log.encoding import (
    decode_checkpoint,
    decode_commit,
    encode_checkpoint,
    encode_commit,
)
from compactor.log.entries import Commit, Output
from compactor.log.manifest import ManifestRow, SliceFacts
from compactor.log.state import LogState, RunTotals
from compactor.model import Compression, Format, Quarantined, QuarantineReason, StoredPart
from tests.support.examples import source


def a_row(name: str, **facts) -> ManifestRow:
    one = source(name)
    stored = type(one)(one.bucket, one.key, one.etag, one.size, 0.0)
    return ManifestRow(stored, 0, 10, 10, 0, SliceFacts(records=1, **facts))


def a_commit(sequence: int, *names: str, replaces: int | None = None, **given) -> Commit:
    output = Output(
        "lake", f"out-{sequence}", "upload", (StoredPart(1, "e", 10),), 10, 5, 10, 1,
        Format.JSON_LINES, Compression.NONE,
    )  # fmt: skip
    return Commit(
        sequence=sequence,
        commit_id=f"id-{sequence}",
        run_id="run",
        created_at=1.5,
        source_bucket="source",
        group_id=f"group-{sequence}",
        output=given.pop("output", output),
        rows=tuple(a_row(name) for name in names),
        replaces=replaces,
        **given,
    )


def test_a_commit_reads_back_as_it_was_written():
    rows = (
        a_row("a", dropped_prefix=b"\xef\xbb\xbf", appended=1),
        a_row("b", dropped_prefix=b'{"Records":[', dropped_suffix=b"]}", newlines_stand_for=b","),
        a_row("c", edits=(Edit(3, 1, b""), Edit(9, 1, b", "))),
        ManifestRow(a_row("copied").source, 0, 10, None, None, None),
    )
    bad = Quarantined(a_row("bad").source, QuarantineReason.TRUNCATED, "ends early")
    commit = a_commit(7, quarantined=(bad,), replaces=3)
    commit = Commit(**{name: getattr(commit, name) for name in Commit.__slots__} | {"rows": rows})
    assert decode_commit(encode_commit(commit)) == commit


def test_equal_commits_have_equal_bytes():
    assert encode_commit(a_commit(1, "a")) == encode_commit(a_commit(1, "a"))


def test_a_replaced_commit_counts_for_nothing():
    state = LogState()
    state.add(a_commit(1, "a", "b"))
    state.add(a_commit(2, "b", replaces=1))
    assert set(state.committed) == {a_row("b").source.identity}
    assert list(state.unpublished) == [2]
    assert state.totals("run").sources == 1
    assert state.totals("run").outputs == 1


def test_a_commit_made_void_frees_its_sources():
    state = LogState()
    first = a_commit(1, "a")
    state.add(first)
    void = first.voided("later run")
    state.add(Commit(**{n: getattr(void, n) for n in Commit.__slots__} | {"sequence": 2}))
    assert not state.committed
    assert not state.unpublished


IDENTITIES = st.binary(min_size=16, max_size=16)


@given(st.sets(IDENTITIES), st.dictionaries(IDENTITIES, st.sampled_from(["", "d1", "d2"])))
def test_a_checkpoint_remembers_every_source_and_where_it_ends(committed, quarantined):
    runs = {"run": RunTotals(sources=3, records=7)}
    state = LogState(
        last=9,
        committed=Digests(committed),
        quarantined=quarantined,
        runs=runs,
    )
    read = decode_checkpoint(encode_checkpoint(state, "p/"), "p/")
    assert (read.last, read.checkpoint) == (9, 9)
    assert read.committed == committed
    assert read.quarantined == quarantined
    assert read.totals("run") == RunTotals(sources=3, records=7)
    assert encode_checkpoint(read, "p/") == encode_checkpoint(state, "p/")
