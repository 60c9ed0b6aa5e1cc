r"""Symlink manifests: a text object that names the objects of a partition, one URI a line.

Hive's ``SymlinkTextInputFormat`` reads every object below a partition's location as such a list.
What was tried on Trino: two lists in one prefix, or a line twice, give rows twice and no error; a
blank line, an object that is not there, and a name that ends in ``/`` end the query; names of lists
that begin with ``_`` or a dot are passed over; an empty list gives no rows. So each list has a
prefix of its own, is written once and never over, and what cannot be said in it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from compactor.errors import IntegrityError, InvalidInput
from compactor.escaping import visible
from compactor.model import Partition
from compactor.settings.reader_table import manifests_of
from compactor.settings.settings import Settings

MANIFEST_NAME = "manifest"
_SWITCH = re.compile(r"[0-9a-f]{32}")
# A line ends at any of the first ones for one reader or another, and is cut of blanks.
_UNSAYABLE = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029\ud800-\udfff]|\s\Z|/\Z")


def manifest_prefix(settings: Settings, partition: Partition, switch: str) -> tuple[str, str]:
    """Bucket and prefix of one list, which no other list shares.

    Args:
        settings: say where lists lie.
        partition: whose it is.
        switch: random id of the change of the catalog that it is made for.
    """
    bucket, prefix = manifests_below(settings, partition)
    return bucket, f"{prefix}{switch}/"


def manifests_below(settings: Settings, partition: Partition) -> tuple[str, str]:
    """Bucket and prefix of all lists of a partition, each below the id of its switch."""
    place = manifests_of(settings.destination)
    # After a letter: the id of a partition may begin with what engines hide.
    return place.bucket, f"{place.prefix}p-{partition.id}/"


def is_switch(text: str) -> bool:
    """True for what can be the id of a change of the catalog."""
    return _SWITCH.fullmatch(text) is not None


def encode_manifest(names: Iterable[tuple[str, str]]) -> bytes:
    """The list, sorted.

    Args:
        names: bucket and key of each object.

    Raises:
        InvalidInput: a name cannot be said in a line, or stands there twice.
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
    """The names in a list.

    Args:
        body: of the list.
        where: it lies, for a person.

    Raises:
        IntegrityError: this program did not write it.
    """
    try:
        lines = body.decode().split("\n")
    except UnicodeDecodeError:
        raise IntegrityError(f"{where} is damaged: not UTF-8") from None
    if lines.pop():
        raise IntegrityError(f"{where} is damaged: its last line does not end")
    named = [_named(line, where) for line in lines]
    if len(set(named)) < len(named):
        raise IntegrityError(f"{where} names an object twice: its records are read twice")
    return frozenset(named)


def _named(line: str, where: str) -> tuple[str, str]:
    bucket, slash, key = line.removeprefix("s3://").partition("/")
    if not line.startswith("s3://") or not bucket or not slash or not key:
        raise IntegrityError(f"{where} is damaged: {visible(line)!r} is no URI")
    return bucket, key
