"""Restored sources as files: names match the bytes, and nothing is overwritten unasked."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from compactor.attributes import Attributes
from compactor.encoding.encoders import encoder
from compactor.errors import InvalidInput
from compactor.log.manifest import ManifestRow
from compactor.model import Compression
from compactor.outputs.slices import is_as_stored
from compactor_cli.disk import naming
from compactor_cli.restored_names import escaped, fault_of

CONTENT_SUFFIX = ".content"
_COMPRESSED: Mapping[str, Compression] = {
    ".gz": Compression.GZIP,
    ".gzip": Compression.GZIP,
    ".zst": Compression.ZSTD,
    ".zstd": Compression.ZSTD,
}
_ENCODINGS = {"gzip": Compression.GZIP, "x-gzip": Compression.GZIP, "zstd": Compression.ZSTD}
_SHOWN_FAULTS = 10
_ESCAPE = "--escape-names gives it another name, a single KEY goes to standard output"


class Form(StrEnum):
    """What the bytes of a restored file are.

    ``STORED``: the source as it was on S3, byte for byte. ``CONTENT``: the decompressed content;
    the manifest does not say whether the source was compressed, and a gzip object may be as large
    as its content. ``COMPRESSED``: that content, compressed again.
    """

    STORED = "as_stored"
    CONTENT = "content"
    COMPRESSED = "compressed_again"


@dataclass(frozen=True, slots=True)
class Shape:
    """The file name of a restored source, and what its bytes are."""

    name: str
    form: Form
    compression: Compression = Compression.NONE

    @classmethod
    def of(cls, row: ManifestRow, name: str, *, compress: bool) -> Shape:
        """Return the shape of a source, with a name that matches its bytes.

        Args:
            row: of the source.
            name: last segment of its key.
            compress: compress content again if the name has a suffix of gzip or zstd, or the
                Content-Encoding is one of them.
        """
        if is_as_stored(row):
            return cls(name, Form.STORED)
        suffix = _suffix_of(name)
        encoding = row.attributes.encoding if row.attributes is not None else ""
        compression = suffix or _ENCODINGS.get(encoding)
        if compress and compression is not None:
            return cls(name, Form.COMPRESSED, compression)
        return cls(name if suffix is None else name + CONTENT_SUFFIX, Form.CONTENT)

    def attributes(self, row: ManifestRow) -> Attributes | None:
        """Return the S3 attributes; for decompressed content, without that Content-Encoding."""
        kept = row.attributes
        if kept is None or self.form is not Form.CONTENT:
            return kept
        encodings = (one.strip() for one in kept.encoding.split(","))
        left = ",".join(one for one in encodings if one.lower() not in _ENCODINGS)
        return Attributes(left, kept.metadata, kept.content_type)


@dataclass(frozen=True, slots=True)
class Written:
    """Where a source is now, of how many bytes, and in which form."""

    where: str
    bytes: int
    form: Form


class Places(Protocol):
    """A target of restored sources: all are added, then checked, then written one by one."""

    def add(self, row: ManifestRow) -> None:
        """Add a source; :meth:`check` reports what is wrong with its place."""
        ...

    def check(self) -> None:
        """Check that every source can be written, before anything is.

        Raises:
            InvalidInput: sources would overwrite each other or existing objects, or have invalid
                names.
        """
        ...

    def write(self, row: ManifestRow, pieces: Iterable[bytes]) -> Written:
        """Write a source, whole or not at all.

        Raises:
            InvalidInput: another writer has taken its place.
        """
        ...

    def finish(self) -> None:
        """Wait until everything is written.

        Raises:
            InvalidInput: as :meth:`write`.
        """
        ...


class Targets:
    """Writes restored sources below a directory.

    Args:
        directory: where to write. Nothing is written elsewhere, not even through symbolic links.
        compress: compress content again whose key ends in a suffix of gzip or zstd; otherwise
            ``.content`` is appended to such a name.
        overwrite: replace existing files.
        escape: escape invalid names; otherwise they are an error.
    """

    def __init__(
        self,
        directory: Path,
        *,
        compress: bool = False,
        overwrite: bool = False,
        escape: bool = False,
    ) -> None:
        self._directory = directory
        self._compress = compress
        self._overwrite = overwrite
        self._escape = escape
        self._keys: dict[Path, str] = {}
        self._faults: list[str] = []
        self._replaceable: set[tuple[int, int]] = set()
        # Files whose name a directory needs -> their new path.
        self._aside: dict[Path, Path] = {}

    def add(self, row: ManifestRow) -> None:
        """Add a source; :meth:`check` reports what is wrong with its path."""
        key = row.source.key
        path, faults = self._place(row)
        if faults and not self._escape:
            self._faults += [f"{key!r} {fault} ({_ESCAPE})" for fault in faults]
            return
        self._take(path, key)

    def check(self) -> None:
        """Check that every source can be written, before anything is.

        Raises:
            InvalidInput: sources would overwrite each other or existing files, be outside of the
                directory, or have invalid names.
        """
        if self._escape:
            self._step_aside()
        directories: dict[Path, bool] = {}
        for path in self._keys:
            self._check_parents(path, directories)
            self._check_existing(path)
        refuse("--output", str(self._directory), "a directory", "a file", self._faults)

    def write(self, row: ManifestRow, pieces: Iterable[bytes]) -> Written:
        """Write a source to a temporary file, and rename it after all of it was checked.

        Raises:
            InvalidInput: another process wrote a file at its path.
        """
        shape = self._shape(row)
        path, _ = self._place(row)
        path = self._aside.get(path, path)
        self._require_inside(path)
        size = _write(path, encoded(pieces, shape.compression), self._replaceable)
        return Written(str(path), size, shape.form)

    def finish(self) -> None:
        """Do nothing: files are written by :meth:`write`."""

    def _shape(self, row: ManifestRow) -> Shape:
        return Shape.of(row, row.source.key.rpartition("/")[2], compress=self._compress)

    def _place(self, row: ManifestRow) -> tuple[Path, list[str]]:
        """Return the path of a source, and what is wrong with the names in its key."""
        segments = [*row.source.key.split("/")[:-1], self._shape(row).name]
        faults = [fault_of(segment, self._directory) for segment in segments]
        names = (escaped(one, self._directory) if self._escape else one for one in segments)
        found = [fault for fault in faults if fault]
        # Unchecked names are never joined: they may lead out of the directory.
        path = self._directory if found and not self._escape else self._directory.joinpath(*names)
        return path, found

    def _take(self, path: Path, key: str) -> None:
        before = len(self._keys)
        other = self._keys.setdefault(path, key)
        if len(self._keys) == before:
            self._faults.append(f"{other!r} and {key!r} would both be {str(path)!r}")

    def _step_aside(self) -> None:
        """Rename files where other sources are below their key."""
        above = {parent for path in self._keys for parent in path.parents}
        for path in [path for path in self._keys if path in above]:
            self._aside[path] = path.with_name(escaped(path.name + "%", self._directory))
            self._take(self._aside[path], self._keys.pop(path))

    def _check_parents(self, path: Path, directories: dict[Path, bool]) -> None:
        for parent in path.parents:
            if parent in self._keys:
                key, below = self._keys[parent], self._keys[path]
                fault = f"{key!r} would be a file, and {below!r} is below it (--escape-names)"
                self._faults.append(fault)
            if parent in directories:
                return
            inside = parent != self._directory
            link = inside and parent.is_symlink()
            directories[parent] = (parent.is_dir() and not link) or not os.path.lexists(parent)
            if not directories[parent]:
                self._faults.append(f"{str(parent)!r} is {'a link' if link else 'not a directory'}")
            if not inside:
                return

    def _check_existing(self, path: Path) -> None:
        try:
            there = os.lstat(path)
        except OSError:
            return
        if stat.S_ISDIR(there.st_mode):
            self._faults.append(f"{str(path)!r} is a directory")
        elif not self._overwrite:
            self._faults.append(f"{str(path)!r} exists (--overwrite replaces it)")
        else:
            self._replaceable.add((there.st_dev, there.st_ino))

    def _require_inside(self, path: Path) -> None:
        """Check again: a directory may have been replaced by a link since :meth:`check`."""
        if not path.parent.resolve().is_relative_to(self._directory.resolve()):
            accepted = "a path without links; a directory above it has become one"
            raise InvalidInput("--output", str(path), accepted)


def refuse(field: str, value: str, place: str, thing: str, faults: Sequence[str]) -> None:
    """Raise an error if there are faults.

    Args:
        field: the option that names where to write.
        value: its value.
        place: what it is, such as ``a directory``.
        thing: what every source becomes in it, such as ``a file``.
        faults: short descriptions; the first ten are shown.

    Raises:
        InvalidInput: there are faults.
    """
    if not faults:
        return
    more = len(faults) - _SHOWN_FAULTS
    shown = "; ".join(faults[:_SHOWN_FAULTS]) + (f"; {more:,} more" * (more > 0))
    accepted = f"{place} in which every source has {thing} of its own, but {shown}"
    raise InvalidInput(field, value, accepted)


def row_bytes(row: ManifestRow) -> int:
    """Return the bytes of a restored source, before they are compressed again."""
    if row.plain_bytes is None:
        return row.source.size
    return row.plain_bytes


def _write(path: Path, pieces: Iterable[bytes], replaceable: Container[tuple[int, int]]) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Short, because the file's name may have the maximum length; and unique.
    partial = path.with_name(f".{secrets.token_hex(8)}.partial")
    with naming(path), partial.open("xb") as stream:
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
    """Rename the finished file; replaces only files that existed at :meth:`Targets.check`."""
    try:
        there = os.lstat(path)
    except OSError:
        there = None
    # Never a file written by this run: on case-insensitive file systems, `A` and `a` collide.
    if there is not None and (there.st_dev, there.st_ino) in replaceable:
        partial.replace(path)
        return
    try:
        os.link(partial, path)
    except FileExistsError:
        accepted = "a path that no other source or process has written"
        raise InvalidInput("--output", str(path), accepted) from None
    except OSError:
        # A file system without hard links: create the name exclusively, then replace it.
        with path.open("xb"):
            partial.replace(path)
    else:
        partial.unlink()


def _suffix_of(name: str) -> Compression | None:
    for suffix, compression in _COMPRESSED.items():
        if name.lower().endswith(suffix):
            return compression
    return None


def encoded(pieces: Iterable[bytes], compression: Compression) -> Iterator[bytes]:
    """Yield the pieces, compressed."""
    into = encoder(compression)
    for piece in pieces:
        yield into.write(piece)
    yield into.finish()
