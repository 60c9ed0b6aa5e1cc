"""The output and the sources of one commit, as files that other readers can read."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, cast

import zstandard

from compactor.errors import ObjectMissing, SourceChanged, damaged, object_gone
from compactor.log.entries import Commit, Output
from compactor.model import Format
from compactor.outputs.slices import restored
from compactor.ports import ObjectStore
from compactor.sizes import MIB

#: The number of the output; sources have their numbers in the manifest.
OUTPUT = -1
PARQUET = b"PAR1"
_BOM = b"\xef\xbb\xbf"
_ERRORS = (OSError, EOFError, zlib.error, zstandard.ZstdError)


class NotCompared(Exception):
    """The records of a commit cannot be compared; the message says why."""


class PlainFiles:
    """The files of one commit, without compression and byte order marks, named by their numbers.

    Bytes outside of ASCII become characters of their own, so that text of any encoding is UTF-8.

    Args:
        commit: a commit with an output.
        home: an empty directory.

    Attributes:
        sources: numbers of the sources with content.
    """

    def __init__(self, commit: Commit, output: Output, home: Path) -> None:
        self.commit = commit
        self.output = output
        self.sources = [n for n, row in enumerate(commit.rows) if row.source.size]
        self._home = home

    def path(self, number: int) -> Path:
        """Return the path of a file."""
        return self._home / str(number)

    def head(self, number: int, size: int) -> bytes:
        """Return the first bytes of a file."""
        with self.path(number).open("rb") as file:
            return file.read(size)

    def fetch(self, store: ObjectStore) -> None:
        """Fetch the output and the sources; restore those that changed or are gone.

        Raises:
            IntegrityError: the output is gone, or does not decompress.
            NotCompared: a source does not decompress, or is gone and cannot be restored.
        """
        output = self.output
        stored = self._home / "output"
        try:
            _write(stored, store.open(output.bucket, output.key))
            self._take(OUTPUT, _opened(stored))
        except ObjectMissing as error:
            raise object_gone(output.uri) from error
        except _ERRORS as error:
            raise damaged(output.uri, error) from error
        gone = self._fetch_sources(store)
        if gone and output.columnar is not None:
            raise NotCompared(
                f"{len(gone):,} of its sources are gone, and rows do not restore them"
            )
        if gone:
            self._restore(stored, gone)

    def _fetch_sources(self, store: ObjectStore) -> set[int]:
        """Fetch the sources, and return the numbers of those that cannot be read."""
        rows, stored = self.commit.rows, self._home / "source"
        gone = set(self.sources)
        bodies = store.read_sources([rows[number].source for number in self.sources])
        for number, body in zip(self.sources, bodies, strict=True):
            if body.error is not None:
                continue
            try:
                with suppress(SourceChanged):
                    _write(stored, body.chunks() if body.chunks else (body.content or b"",))
                    self._take(number, _opened(stored))
                    gone.remove(number)
            except _ERRORS as error:
                raise NotCompared(f"{rows[number].source.key}: {error}") from error
        return gone

    def _restore(self, stored: Path, gone: set[int]) -> None:
        original = self._home / "source"
        with stored.open("rb") as file:
            for number, (_, pieces) in enumerate(restored(self.commit, _pieces(file))):
                if number in gone:
                    _write(original, pieces)
                    self._take(number, original.open("rb"))
                for _ in pieces:
                    continue

    def _take(self, number: int, content: IO[bytes]) -> None:
        with content, self.path(number).open("wb") as file:
            head = content.read(len(PARQUET))
            is_parquet = self.output.format is Format.PARQUET and head == PARQUET
            for piece in chain((head.removeprefix(_BOM),), _pieces(content)):
                as_is = is_parquet or piece.isascii()
                file.write(piece if as_is else piece.decode("latin-1").encode())


def _write(path: Path, pieces: Iterable[bytes]) -> None:
    with path.open("wb") as file:
        file.writelines(pieces)


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    return iter(partial(file.read, MIB), b"")


def _opened(path: Path) -> IO[bytes]:
    """Open a file through the standard decompressor of its first bytes."""
    with path.open("rb") as file:
        magic = file.read(4)
    if magic.startswith(b"\x1f\x8b"):
        return cast(IO[bytes], gzip.open(path))
    stored = path.open("rb")
    if magic == b"\x28\xb5\x2f\xfd" or magic[1:] == b"\x2a\x4d\x18":
        context = zstandard.ZstdDecompressor(max_window_size=1 << 27)
        return cast(IO[bytes], context.stream_reader(stored, read_across_frames=True))
    return stored
