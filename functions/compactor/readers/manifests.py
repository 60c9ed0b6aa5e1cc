r"""Symlink manifests: text objects that name the objects of a partition, one URI per line.

Hive's ``SymlinkTextInputFormat`` reads every object below a partition's location as such a list.
Tests on Trino showed: two lists in one prefix, or a repeated line, return rows twice without an
error; a blank line, a missing object, or a name that ends in ``/`` fails the query; lists whose
names begin with ``_`` or a dot are ignored; an empty list returns no rows. So each list has its own
prefix and is never overwritten, and names that a list cannot represent are rejected.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from compactor.decoding import decoded
from compactor.errors import InvalidInput
from compactor.escaping import visible
from compactor.model import Partition
from compactor.settings.reader_table import manifests_of
from compactor.settings.settings import Settings

MANIFEST_NAME = "manifest"
_SWITCH = re.compile(r"[0-9a-f]{32}")
# Some reader ends a line at each of these characters, and strips trailing blanks.
_UNSAYABLE = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029\ud800-\udfff]|\s\Z|/\Z")


def manifest_prefix(settings: Settings, partition: Partition, switch: str) -> tuple[str, str]:
    """Return bucket and prefix of one list, which no other list shares.

    Args:
        settings: say where lists are stored.
        partition: of the list.
        switch: random id of the catalog change that the list is created for.
    """
    bucket, prefix = manifests_below(settings, partition)
    return bucket, f"{prefix}{switch}/"


def manifests_below(settings: Settings, partition: Partition) -> tuple[str, str]:
    """Return bucket and prefix of all lists of a partition; below it are the switch ids."""
    place = manifests_of(settings.destination)
    # "p-" first, because a partition's id may begin with a character that engines hide.
    return place.bucket, f"{place.prefix}p-{partition.id}/"


def is_switch(text: str) -> bool:
    """Return True for a text that has the form of a switch id."""
    return _SWITCH.fullmatch(text) is not None


def encode_manifest(names: Iterable[tuple[str, str]]) -> bytes:
    """Return the list's content, sorted.

    Args:
        names: bucket and key of each object.

    Raises:
        InvalidInput: a name cannot be represented in a line, or is given twice.
    """
    lines: list[str] = []
    for bucket, key in names:
        if not key or _UNSAYABLE.search(key):
            accepted = "keys without control characters that end in neither a blank nor /"
            raise InvalidInput("reader_table", visible(key), accepted)
        lines.append(f"s3://{bucket}/{key}")
    if len(set(lines)) < len(lines):
        raise InvalidInput("reader_table", "a list", "each object once in it")
    return "".join(f"{line}\n" for line in sorted(lines)).encode()


def decode_manifest(body: bytes, where: str) -> frozenset[tuple[str, str]]:
    """Return the names in a list.

    Args:
        body: content of the list.
        where: its URI, for messages.

    Raises:
        IntegrityError: this program did not write it.
    """
    return decoded(_decode, where, body)


def _decode(body: bytes) -> frozenset[tuple[str, str]]:
    lines = body.decode().split("\n")
    if lines.pop():
        raise ValueError("its last line does not end")
    named = [_named(line) for line in lines]
    if len(set(named)) < len(named):
        raise ValueError("it names an object twice, whose records are read twice")
    return frozenset(named)


def _named(line: str) -> tuple[str, str]:
    bucket, slash, key = line.removeprefix("s3://").partition("/")
    if not line.startswith("s3://") or not bucket or not slash or not key:
        raise ValueError(f"{visible(line)!r} is no URI")
    return bucket, key
