"""Commits as the version before wrote them, made by hand: the rules of today would not."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import replace

from compactor.log.entries import Commit, Output
from compactor.log.log import CommitLog
from compactor.log.manifest import ManifestRow
from compactor.log.slices import SliceFacts
from compactor.model import Compression, Format, SourceObject
from compactor.outputs.publish import publish
from compactor.planning.packing import make_group
from tests.support.examples import PARTITION
from tests.support.world import World


def log_of(world: World) -> CommitLog:
    """The log of the example partition."""
    return CommitLog(world.store, world.settings, PARTITION)


def headed_commit(
    world: World,
    contents: Mapping[str, bytes],
    *,
    format: Format = Format.CSV,
    rules: int = 1,
    headed: bool = True,
) -> Commit:
    """Sources whose first line was taken for their header, if any, in one published output."""
    for name, content in contents.items():
        world.put(name, content)
    sources = [one for one in _listed(world) if one.key.rpartition("/")[2] in contents]
    plain, rows = b"", []
    for source in sources:
        content = contents[source.key.rpartition("/")[2]]
        cut = content.index(b"\n") + 1 if headed else 0
        plain = plain or content[:cut]
        body = content[cut:]
        added = b"" if body.endswith(b"\n") or not body else b"\n"
        facts = SliceFacts(
            (body + added).count(b"\n"), dropped_prefix=content[:cut], appended=len(added)
        )
        crc32, length = zlib.crc32(content), len(body + added)
        rows.append(ManifestRow(source, len(plain), length, len(content), crc32, facts))
        plain += body + added
    group = make_group(sources, world.settings)
    key = f"compacted/{PARTITION.path}compacted-{group.id}.{format.value}"
    upload_id = world.store.create_upload("lake", key)
    part = world.store.upload_part("lake", key, upload_id, 1, plain)
    output = Output(
        bucket="lake",
        key=key,
        upload_id=upload_id,
        parts=(part,),
        size=len(plain),
        crc32=zlib.crc32(plain),
        plain_bytes=len(plain),
        records=sum(row.facts.records or 0 for row in rows if row.facts is not None),
        format=format,
        compression=Compression.NONE,
    )
    draft = Commit(
        sequence=0,
        commit_id=f"old-{group.id}",
        run_id="old-run",
        created_at=world.clock.now(),
        source_bucket="source",
        group_id=group.id,
        output=output,
        rows=tuple(rows),
    )
    log = log_of(world)
    state = log.load()
    commit = log.append(state, replace(draft, rules=rules))
    publish(commit, world.store)
    state.mark_published(commit)
    log.checkpoint(state)
    return commit


def _listed(world: World) -> list[SourceObject]:
    return [one for page in world.store.list_objects("source", PARTITION.prefix) for one in page]
