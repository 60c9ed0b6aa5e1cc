"""Where Spark finds sources and leaves outputs: through the store, or on S3 itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compactor import layout
from compactor.destination import Destination
from compactor.errors import SourceChanged
from compactor.model import SourceObject
from compactor.planning.packing import make_group
from compactor.settings.settings import Settings
from compactor_spark.columnar import staging
from compactor_spark.columnar.context import ColumnarContext
from compactor_spark.columnar.native import NativeWorkspace
from tests.spark.row_world import JARS_VARIABLE, RowWorld
from tests.support.examples import NOW, PARTITION, settings
from tests.support.memory_store import ManualClock, MemoryStore
from tests.support.parquet_example import PARQUET

Rows = Callable[..., RowWorld]


class Native:
    """A workspace on S3 for a few sources, of which Spark has not read any yet."""

    def __init__(self, *names: str) -> None:
        self.store = MemoryStore(ManualClock(NOW))
        self.store.add_bucket("lake")
        self.settings: Settings = settings(format="parquet")
        for name in names:
            self.put(name)
        (page,) = self.store.list_objects("source", PARTITION.prefix)
        self.group = make_group(page, self.settings)
        destination = Destination("lake", "compacted/2026/01/02/")
        self.context = ColumnarContext(
            self.settings, self.store, destination, "run-1", lambda: self.store
        )
        self.workspace = NativeWorkspace("s3a", self.group, self.context)

    def put(self, name: str, body: bytes = PARQUET, at: float = NOW) -> SourceObject:
        return self.store.seed("source", PARTITION.prefix + name, body, last_modified=at)

    def staged(self) -> list[str]:
        bucket, prefix = layout.staging_prefix(self.settings, "run-1", self.group.id)
        return list(self.store.contents(bucket, prefix.removesuffix("/")))


def test_sources_are_read_where_they_are_and_what_hadoop_cannot_name_is_copied() -> None:
    names = ("a.parquet", "k=1/b c.parquet", "what?.parquet", "x//y", "_hidden", "{1}.parquet")
    native = Native(*names)
    staged = native.workspace.stage(native.group.sources)
    (paths,) = staged.paths.values()
    plain = [path for path in paths if path.startswith("s3a://source/")]
    assert plain == [f"s3a://source/{PARTITION.prefix}{name}" for name in names[:2]]
    assert staged.rows == 3 * len(names)
    assert len(native.staged()) == len(names) - len(plain)
    native.workspace.close()
    assert not native.staged()
    assert len(native.store.contents("source")) == len(names)


def test_sources_that_are_what_was_listed_pass_among_others() -> None:
    native = Native("b.parquet", "d.parquet")
    for name in ("a.parquet", "c.parquet", "e.parquet"):
        native.put(name)
    native.workspace.check(native.group)
    listed = [call for call in native.store.calls if call.name == "list_objects"]
    assert len(listed) == 2


@pytest.mark.parametrize("fate", ["other bytes", "same bytes, written again", "gone"])
def test_sources_that_changed_while_spark_read_them_are_found(fate: str) -> None:
    native = Native("a.parquet", "b.parquet")
    if fate == "gone":
        native.store.remove("source", f"{PARTITION.prefix}b.parquet")
    else:
        native.put("b.parquet", PARQUET if fate.startswith("same") else b"other", at=NOW + 9)
    with pytest.raises(SourceChanged, match=r"b\.parquet"):
        native.workspace.check(native.group)


def test_rows_are_the_same_when_spark_reads_and_writes_s3_itself(
    rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = rows().session
    if not staging._Known(session)("s3a"):
        pytest.skip(f"no hadoop-aws among Spark's jars ({JARS_VARIABLE} names a directory of them)")
    world = rows(format="parquet")
    world.put_sql("1.parquet", "select id, 'old' as name from range(3)")
    world.put_sql("2 with blanks.parquet", "select id from range(3, 5)")
    world.put_sql("3?.parquet", "select id from range(5, 7)")
    monkeypatch.setattr("compactor_spark.columnar.groups.access_of", lambda _: "s3a")
    (commit,) = world.run()
    assert [row.id for row in world.output().collect()] == [5, 6, 0, 1, 2, 3, 4]
    assert commit.output is not None
    assert commit.output.records == 7
    bucket, prefix = layout.run_key(world.settings, "run-1", "")
    assert world.keys(bucket, prefix) == []
