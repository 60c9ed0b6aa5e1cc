"""Staged access: copies sources through the store to a directory shared with the executors."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from compactor.encoding.parquet_footer import ParquetFooter, read_footer
from compactor.errors import IntegrityError, UnreadableSource
from compactor.model import ObjectGroup, Quarantined, QuarantineReason, SourceObject
from compactor.ports import ObjectStore, SourceBody
from compactor_spark.columnar.staging import StagedSources

_PIECE_BYTES = 4 * 1024 * 1024


class LocalWorkspace:
    """A temporary directory; see :class:`compactor_spark.columnar.staging.Workspace`."""

    # Files are numbered in key order, in one directory per schema.
    order = "file_name"

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._root = Path(tempfile.mkdtemp(prefix="compactor-parquet-"))
        self._output = self._root / "output"

    @property
    def output_path(self) -> str:
        """See the protocol."""
        return self._output.as_uri()

    def stage(self, sources: Sequence[SourceObject]) -> StagedSources:
        """See the protocol."""
        staged = StagedSources()
        for number, body in enumerate(self._store.read_sources(sources)):
            if isinstance(body.error, UnreadableSource):
                _quarantine(body.source, body.error, staged)
                continue
            if body.error is not None:
                raise body.error
            self._take(number, body, staged)
        return staged

    def check(self, group: ObjectGroup) -> None:
        """Do nothing: every read was conditional on the listed ETag."""

    def output(self) -> Iterator[bytes]:
        """See the protocol."""
        found = sorted(self._output.glob("*.parquet"))
        if len(found) != 1:
            raise IntegrityError(f"Spark wrote {len(found)} Parquet files instead of one")
        with found[0].open("rb") as stream:
            yield from iter(partial(stream.read, _PIECE_BYTES), b"")

    def close(self) -> None:
        """See the protocol."""
        shutil.rmtree(self._root, ignore_errors=True)

    def _take(self, number: int, body: SourceBody, staged: StagedSources) -> None:
        path = self._root / f"{number:08d}.parquet"
        try:
            with path.open("wb") as stream:
                for piece in _pieces(body):
                    stream.write(piece)
            footer = _footer(path)
        except UnreadableSource as error:
            path.unlink()
            _quarantine(body.source, error, staged)
            return
        directory = self._root / f"schema-{footer.schema_digest}"
        directory.mkdir(exist_ok=True)
        path.rename(directory / path.name)
        staged.add(body.source, footer, directory.as_uri(), path.name)


def _pieces(body: SourceBody) -> Iterator[bytes]:
    if body.content is not None:
        yield body.content
    elif body.chunks is not None:
        yield from body.chunks()


def _quarantine(source: SourceObject, error: UnreadableSource, staged: StagedSources) -> None:
    reason = QuarantineReason(error.reason)
    staged.quarantined.append(Quarantined(source, reason, error.detail))


def _footer(path: Path) -> ParquetFooter:
    with path.open("rb") as stream:

        def read_range(start: int, length: int) -> bytes:
            stream.seek(start)
            return stream.read(length)

        return read_footer(read_range, path.stat().st_size)
