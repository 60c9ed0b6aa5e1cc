"""Clean up: long after the commit, delete exactly the sources it names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from compactor.columnar import Columnar
from compactor.commit_log import Commit, Output
from compactor.errors import IntegrityError
from compactor.model import SourceObject
from compactor.ports import ObjectStore
from compactor.settings import CleanUpMode, Settings

_DAY_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class CleanUpResult:
    """What one clean-up did to one partition.

    Attributes:
        deleted: sources that are gone now.
        refused: (key, reason) of sources the store did not delete.
        unsafe: one line for each commit whose output did not check out.
    """

    deleted: int = 0
    deleted_bytes: int = 0
    refused: tuple[tuple[str, str], ...] = ()
    unsafe: tuple[str, ...] = ()


def due(commit: Commit, settings: Settings, now: float) -> bool:
    """True when clean-up is on, retention has passed, and the commit names sources."""
    if settings.clean_up is not CleanUpMode.DELETE or not commit.rows:
        return False
    return commit.created_at + settings.retention_days * _DAY_SECONDS <= now


def clean_up(
    commits: Iterable[Commit], settings: Settings, store: ObjectStore, now: float
) -> CleanUpResult:
    """Delete the sources of due commits, by key and ETag, after looking at each output.

    A source that changed since it was listed has another ETag and stays. An output that is
    missing, or differs from its commit, keeps all its sources.
    """
    deleted = deleted_bytes = 0
    refused: list[tuple[str, str]] = []
    unsafe: list[str] = []
    for commit in commits:
        if not due(commit, settings, now):
            continue
        try:
            _require_output(commit, store)
        except IntegrityError as error:
            unsafe.append(str(error))
            continue
        sources = [row.source for row in commit.rows]
        kept = list(store.delete_sources(sources))
        refused.extend(kept)
        gone = _without(sources, {key for key, _ in kept})
        deleted += len(gone)
        deleted_bytes += sum(source.size for source in gone)
    return CleanUpResult(deleted, deleted_bytes, tuple(refused), tuple(unsafe))


def _require_output(commit: Commit, store: ObjectStore) -> None:
    output = commit.output
    if output is None:
        # Sources without any content have no output; nothing of them can be lost.
        return
    if output.columnar is not None:
        _require_rows(output, output.columnar, store)
    head = store.head(output.bucket, output.key)
    if head is None:
        raise IntegrityError(f"s3://{output.bucket}/{output.key} is missing; its sources stay")
    if head.size != output.size:
        raise IntegrityError(
            f"s3://{output.bucket}/{output.key} has {head.size} bytes, "
            f"its commit says {output.size}; its sources stay"
        )
    if None not in (head.crc32, output.crc32) and head.crc32 != output.crc32:
        raise IntegrityError(
            f"s3://{output.bucket}/{output.key} has CRC32 {head.crc32}, "
            f"its commit says {output.crc32}; its sources stay"
        )


def _require_rows(output: Output, columnar: Columnar, store: ObjectStore) -> None:
    """Sources whose bytes nothing holds go only when every row of them was accounted for."""
    where = f"s3://{output.bucket}/{output.key}"
    if columnar.fault or output.records != columnar.rows_out:
        fault = columnar.fault or f"{output.records} records, {columnar.rows_out} rows"
        raise IntegrityError(f"{where}: {fault}; its sources stay")
    rejects = columnar.rejects
    if rejects is None:
        return
    head = store.head(rejects.bucket, rejects.key)
    if head is None or head.size != rejects.size:
        found = "missing" if head is None else f"{head.size} bytes long, not {rejects.size}"
        raise IntegrityError(
            f"s3://{rejects.bucket}/{rejects.key}, the rejects of {where}, is {found};"
            " its sources stay"
        )


def _without(sources: Sequence[SourceObject], keys: set[str]) -> list[SourceObject]:
    return [source for source in sources if source.key not in keys]
