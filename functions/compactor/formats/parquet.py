"""Parquet: already rows, merged if the caller declares it; never detected as text."""

from __future__ import annotations

from compactor.errors import InvalidInput
from compactor.formats.framing import Framer
from compactor.formats.spec import FormatSpec
from compactor.model import Format, Signature


def _no_framer(_: Signature, __: bool) -> Framer:
    raise InvalidInput("format", "parquet", "the Spark step for it: its bytes do not join")


SPEC = FormatSpec(
    format=Format.PARQUET,
    extension="parquet",
    media_type="application/vnd.apache.parquet",
    framer=_no_framer,
    proven=True,
    rows="parquet",
)
