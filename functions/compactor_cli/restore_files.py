"""Restored sources: what their bytes are, and files of them below a directory.

Every source keeps its key. Of a compressed source the manifest proves the content, not the stored
bytes, so content whose key or Content-Encoding says gzip or zstd is compressed again.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cache
from pathlib import Path

from compactor.errors import InvalidInput
from compactor.log.manifest import ManifestRow
from compactor.model import Compression
from compactor.outputs.slices import is_as_stored
from compactor_cli.failures import naming

_SUFFIXES: Mapping[str, Compression] = {
    ".gz": Compression.GZIP,
    ".gzip": Compression.GZIP,
    ".zst": Compression.ZSTD,
    ".zstd": Compression.ZSTD,
}
ENCODINGS = {"gzip": Compression.GZIP, "x-gzip": Compression.GZIP, "zstd": Compression.ZSTD}
_SHOWN_FAULTS = 10
_UNNAMEABLE = "restore to an S3 URI, where any key is allowed, or a single KEY to standard output"
# The limit of most file systems; some have a lower one.
_LONGEST_NAME_BYTES = 255
# Characters that separate names on Windows, besides "/", which ends segments.
_SEPARATORS = frozenset("\\:") if os.name == "nt" else frozenset()


class Form(StrEnum):
    """What restored bytes are: the stored ones, the content, or the content compressed again."""

    STORED = "as_stored"
    CONTENT = "content"
    COMPRESSED = "compressed_again"


def form_of(row: ManifestRow) -> tuple[Form, Compression]:
    """Return what the restored bytes of a source are, and how its content is compressed for it."""
    if is_as_stored(row):
        return Form.STORED, Compression.NONE
    name = row.source.key.lower()
    suffix = next((one for end, one in _SUFFIXES.items() if name.endswith(end)), None)
    encoding = row.attributes.encoding if row.attributes is not None else ""
    compression = suffix or ENCODINGS.get(encoding)
    if compression is None:
        return Form.CONTENT, Compression.NONE
    return Form.COMPRESSED, compression


def plain_bytes(row: ManifestRow) -> int:
    """Return the bytes of a restored source, before they are compressed again."""
    return row.source.size if row.plain_bytes is None else row.plain_bytes


def refuse(target: str, place: str, thing: str, faults: Sequence[str]) -> None:
    """Raise an error if there are faults, of which the first ten are shown.

    Args:
        target: where to restore to.
        place: what it is, such as ``a directory``.
        thing: what every source becomes in it, such as ``a file``.
        faults: short descriptions.

    Raises:
        InvalidInput: there are faults.
    """
    if not faults:
        return
    more = len(faults) - _SHOWN_FAULTS
    shown = "; ".join(faults[:_SHOWN_FAULTS]) + (f"; {more:,} more" * (more > 0))
    accepted = f"{place} in which every source has {thing} of its own, but {shown}"
    raise InvalidInput("--output", target, accepted)


class FileTargets:
    """Writes restored sources below a directory, and nowhere else, not even through links.

    Args:
        directory: where to write.
        overwrite: replace existing files.
    """

    def __init__(self, directory: Path, *, overwrite: bool = False) -> None:
        self._directory = directory
        self._overwrite = overwrite
        self._keys: dict[Path, str] = {}
        self._faults: list[str] = []
        self._replaceable: set[tuple[int, int]] = set()

    def add(self, row: ManifestRow) -> None:
        """Add a source; :meth:`check` reports what is wrong with its path."""
        key = row.source.key
        faults = [_name_fault(segment, self._directory) for segment in key.split("/")]
        if any(faults):
            self._faults += [f"{key!r} {fault} ({_UNNAMEABLE})" for fault in faults if fault]
            return
        path = self._path(row)
        if path in self._keys:
            self._faults.append(f"two buckets have a source {key!r}: restore it by its URI")
        self._keys[path] = key

    def check(self) -> None:
        """Check that every source can be written, before anything is.

        Raises:
            InvalidInput: sources would overwrite each other or existing files, be outside of the
                directory, or have invalid names.
        """
        directories: dict[Path, bool] = {}
        for path in self._keys:
            self._check_parents(path, directories)
            self._check_existing(path)
        refuse(str(self._directory), "a directory", "a file", self._faults)

    def write(self, row: ManifestRow, pieces: Iterable[bytes]) -> tuple[str, int]:
        """Write a source to a temporary file, and rename it after all of it was checked.

        Raises:
            InvalidInput: another process wrote a file at its path.
        """
        path = self._path(row)
        # A directory may have been replaced by a link since the check.
        if not path.parent.resolve().is_relative_to(self._directory.resolve()):
            accepted = "a path without links; a directory above it has become one"
            raise InvalidInput("--output", str(path), accepted)
        path.parent.mkdir(parents=True, exist_ok=True)
        # Short, because the file's name may have the maximum length; and unique.
        partial = path.with_name(f".{secrets.token_hex(8)}.partial")
        try:
            with naming(path), partial.open("xb") as stream:
                size = sum(map(stream.write, pieces))
            self._put_in_place(partial, path)
        finally:
            partial.unlink(missing_ok=True)
        return str(path), size

    def finish(self) -> None:
        """Do nothing: files are written by :meth:`write`."""

    def _path(self, row: ManifestRow) -> Path:
        return self._directory.joinpath(*row.source.key.split("/"))

    def _check_parents(self, path: Path, directories: dict[Path, bool]) -> None:
        for parent in path.parents:
            if parent in self._keys:
                file, below = self._keys[parent], self._keys[path]
                self._faults.append(f"{file!r} would be a file, and {below!r} is below it")
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

    def _put_in_place(self, partial: Path, path: Path) -> None:
        """Rename the finished file; replaces only files that existed at :meth:`check`."""
        try:
            there = os.lstat(path)
        except OSError:
            there = None
        # Never a file written by this run: on case-insensitive file systems, `A` and `a` collide.
        if there is not None and (there.st_dev, there.st_ino) in self._replaceable:
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


def _name_fault(segment: str, directory: Path) -> str:
    """Return why a segment of a key is not a valid file name; empty if it is."""
    if segment in ("", ".", ".."):
        return f"has the segment {segment!r}, which is not a name"
    if "\0" in segment or _SEPARATORS.intersection(segment):
        return f"has the segment {segment!r}, which is not a valid file name"
    try:
        size = len(os.fsencode(segment))
    except UnicodeEncodeError:
        return f"has the segment {segment!r}, which cannot be encoded in this locale"
    longest = _longest_name(directory)
    return f"would have a name of {size} bytes; the limit is {longest}" if size > longest else ""


@cache
def _longest_name(directory: Path) -> int:
    """Return the maximum bytes of a file name in a directory."""
    parents = (directory, *directory.absolute().parents)
    there = next((path for path in parents if path.is_dir()), None)
    try:
        limit = os.pathconf(there, "PC_NAME_MAX") if there is not None else _LONGEST_NAME_BYTES
    except (AttributeError, OSError, ValueError):
        # Windows and some file systems do not report it.
        limit = _LONGEST_NAME_BYTES
    return min(limit, _LONGEST_NAME_BYTES) if limit > 0 else _LONGEST_NAME_BYTES
