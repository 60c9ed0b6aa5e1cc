"""Parquet: already rows, merged with others; known by its name or a declaration."""

from __future__ import annotations

from compactor.errors import InvalidInput
from compactor.formats.declaration import Declaration
from compactor.formats.framing import Framer
from compactor.formats.spec import Detected, FormatSpec, Look
from compactor.model import Format, Signature

_MAGIC = b"PAR1"
_PARQUET = Detected(Format.PARQUET)


def _no_framer(_: Signature, __: bool) -> Framer:
    raise InvalidInput("formats", "parquet", "another format: its bytes do not join")


def is_named(key: str) -> bool:
    """Return whether a key ends as Parquet objects do."""
    return key.endswith(".parquet")


def is_merged(key: str, declaration: Declaration | None) -> bool:
    """Return whether a source is Parquet, as declared or, if nothing is, by its name."""
    return is_named(key) if declaration is None else declaration.format is Format.PARQUET


def _recognise(look: Look) -> Detected | None:
    return _PARQUET if is_named(look.key) and look.head.startswith(_MAGIC) else None


SPEC = FormatSpec(
    format=Format.PARQUET,
    extension="parquet",
    media_type="application/vnd.apache.parquet",
    framer=_no_framer,
    recognise=_recognise,
    begins=_MAGIC[:1],
    proven=True,
    rows="parquet",
)
