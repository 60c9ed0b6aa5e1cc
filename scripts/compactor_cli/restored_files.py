"""Restored sources as files: names that are true of their bytes, and nothing ever written over."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from compactor.codecs.encoders import encoder
from compactor.errors import InvalidInput
from compactor.log.manifest import ManifestRow
from compactor.model import Compression
from compactor.outputs.slices import is_as_stored

CONTENT_SUFFIX = ".content"
_COMPRESSED: Mapping[str, Compression] = {
    ".gz": Compression.GZIP,
    ".gzip": Compression.GZIP,
    ".zst": Compression.ZSTD,
    ".zstd": Compression.ZSTD,
}
_SHOWN_FAULTS = 10
# POSIX has no longer names on any file system in use; a smaller limit is asked for.
_LONGEST_NAME_BYTES = 255


class Form(StrEnum):
    """What the bytes of a restored file are.

    ``STORED`` ones are what the source was on S3, byte for byte. ``CONTENT`` is the source once
    decompressed, where it was compressed at all: the manifest does not tell, and a gzip object may
    be as large as its content. ``COMPRESSED`` is that content, compressed again.
    """

    STORED = "as_stored"
    CONTENT = "content"
    COMPRESSED = "compressed_again"


@dataclass(frozen=True, slots=True)
class Target:
    """Where one source goes, and in which form."""

    path: Path
    form: Form
    compression: Compression = Compression.NONE


class Targets:
    """Everything that is to be restored below one directory.

    Args:
        directory: where to.
        compress: compress content again whose key ends in a suffix of gzip or zstd; otherwise
            ``.content`` is added to such a name.
        overwrite: replace files that are there already.
    """

    def __init__(self, directory: Path, *, compress: bool = False, overwrite: bool = False) -> None:
        self._directory = directory
        self._compress = compress
        self._overwrite = overwrite
        self._keys: dict[Path, str] = {}
        self._faults: list[str] = []
        self._replaceable: set[tuple[int, int]] = set()

    def add(self, row: ManifestRow) -> None:
        """Take a source in; what is wrong with its path is told by :meth:`check`.

        Raises:
            InvalidInput: its key is no path.
        """
        key, path = row.source.key, self.target(row).path
        before = len(self._keys)
        other = self._keys.setdefault(path, key)
        if len(self._keys) == before:
            self._faults.append(f"{other!r} and {key!r} would both be {str(path)!r}")

    def check(self) -> None:
        """Do nothing when every source can be written; nothing has been until now.

        Raises:
            InvalidInput: sources would be written over each other or over what is there, or a
                name is longer than the file system takes.
        """
        directories: dict[Path, bool] = {}
        for path in self._keys:
            self._check_parents(path, directories)
            self._check_name(path)
            self._check_existing(path)
        if self._faults:
            more = len(self._faults) - _SHOWN_FAULTS
            shown = "; ".join(self._faults[:_SHOWN_FAULTS]) + (f"; {more} more" * (more > 0))
            accepted = "a directory in which every source has a file of its own"
            raise InvalidInput("--output", str(self._directory), f"{accepted}, but {shown}")

    def write(self, row: ManifestRow, pieces: Iterable[bytes]) -> tuple[Target, int]:
        """Write a source, whole or not at all; returns where, and how many bytes.

        Raises:
            InvalidInput: somebody else wrote a file at its path meanwhile.
        """
        target = self.target(row)
        encoded = _encoded(pieces, target.compression)
        return target, _write(target.path, encoded, self._replaceable)

    def target(self, row: ManifestRow) -> Target:
        """Where a source goes.

        Raises:
            InvalidInput: its key is no path.
        """
        key = row.source.key
        segments = key.split("/")
        if any(segment in ("", ".", "..") for segment in segments) or "\0" in key:
            accepted = "a key that is a path, or a single KEY to standard output"
            raise InvalidInput("KEY", key, accepted)
        name, path = segments[-1], self._directory / key
        if is_as_stored(row) or row.stored_at is not None:
            return Target(path, Form.STORED)
        compression = _suffix_of(name)
        if compression is None:
            return Target(path, Form.CONTENT)
        if self._compress:
            return Target(path, Form.COMPRESSED, compression)
        return Target(path.with_name(name + CONTENT_SUFFIX), Form.CONTENT)

    def _check_parents(self, path: Path, directories: dict[Path, bool]) -> None:
        for parent in path.parents:
            if parent in self._keys:
                key, below = self._keys[parent], self._keys[path]
                self._faults.append(f"{key!r} would be a file, and {below!r} lie below it")
            if parent in directories:
                return
            directories[parent] = parent.is_dir() or not os.path.lexists(parent)
            if not directories[parent]:
                self._faults.append(f"{str(parent)!r} is no directory")
            if parent == self._directory:
                return

    def _check_name(self, path: Path) -> None:
        for segment in path.relative_to(self._directory).parts:
            try:
                size = len(os.fsencode(segment))
            except UnicodeEncodeError:
                self._faults.append(f"{segment!r} cannot be a name in this locale")
                continue
            if size > _LONGEST_NAME_BYTES:
                self._faults.append(
                    f"a name of {self._keys[path]!r} would have {size} bytes, the most are"
                    f" {_LONGEST_NAME_BYTES} (restore it to standard output)"
                )

    def _check_existing(self, path: Path) -> None:
        try:
            there = os.lstat(path)
        except OSError:
            return
        if stat.S_ISDIR(there.st_mode):
            self._faults.append(f"{str(path)!r} is a directory")
        elif not self._overwrite:
            self._faults.append(f"{str(path)!r} is there already (--overwrite replaces it)")
        else:
            self._replaceable.add((there.st_dev, there.st_ino))


def write_new(path: Path, pieces: Iterable[bytes]) -> int:
    """Write a file that was not there, whole or not at all; returns its bytes.

    Raises:
        InvalidInput: something is at its path.
    """
    return _write(path, pieces, frozenset())


def _write(path: Path, pieces: Iterable[bytes], replaceable: Container[tuple[int, int]]) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Short, because the name itself may be as long as a name can be; and nobody else's.
    partial = path.with_name(f".{secrets.token_hex(8)}.partial")
    with partial.open("xb") as stream:
        try:
            size = sum(map(stream.write, pieces))
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
    try:
        _put_in_place(partial, path, replaceable)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    return size


def _put_in_place(partial: Path, path: Path, replaceable: Container[tuple[int, int]]) -> None:
    """Give the finished file its name; only what was there at the beginning is replaced."""
    try:
        there = os.lstat(path)
    except OSError:
        there = None
    # A file of ours is a new one: on file systems that know no case, `A` and `a` are one name.
    if there is not None and (there.st_dev, there.st_ino) in replaceable:
        partial.replace(path)
        return
    try:
        os.link(partial, path)
    except FileExistsError:
        accepted = "a path that no other source and nobody else has taken"
        raise InvalidInput("--output", str(path), accepted) from None
    except OSError:
        # A file system without links: take the name first, so that nobody else can have it.
        with path.open("xb"):
            partial.replace(path)
    else:
        partial.unlink()


def _suffix_of(name: str) -> Compression | None:
    for suffix, compression in _COMPRESSED.items():
        if name.lower().endswith(suffix):
            return compression
    return None


def _encoded(pieces: Iterable[bytes], compression: Compression) -> Iterator[bytes]:
    into = encoder(compression)
    for piece in pieces:
        yield into.write(piece)
    yield into.finish()
