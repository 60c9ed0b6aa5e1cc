"""The second reading of a group by another reader, as the settings require it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compactor.formats.csv_evidence import CsvDialect
from compactor.formats.first_record import Begin
from compactor.formats.spec import Decide
from compactor.model import Format, Signature, TableDialect
from compactor.outputs.pending import PendingOutput
from compactor.second_reading import Declared, Frame, Sample
from compactor.settings.settings import Settings

_SHOWN = 3


def declared_by(settings: Settings) -> Declared:
    """Return what the settings declare about sources and outputs, for the second reading."""
    return Declared(
        format=settings.format,
        csv_header=settings.csv_header if isinstance(settings.csv_header, str) else "auto",
        single_byte=settings.characters.single_byte,
        nul_bytes=settings.characters.keep_nuls,
        document_lines=settings.documents == "lines",
    )


def table_of(signature: Signature, key: str, decide: Decide) -> TableDialect | None:
    """Return the dialect of CSV and TSV sources of a signature; None for other formats.

    It is the dialect declared or decided for their data set, not the one they were read with, so
    that the second reading detects if the first one deviated from it.

    Args:
        signature: the sources' signature.
        key: the key of one of them.
        decide: returns what is decided for their data set.
    """
    if signature.format not in (Format.CSV, Format.TSV):
        return None
    begin = Begin.of(signature.header, signature.dialect)
    if begin.columns:
        decided = decide(key, begin.delimiter, begin.columns)
        has_header = isinstance(decided, CsvDialect) and bool(decided.header)
        return TableDialect(begin.delimiter.decode(), header=has_header)
    # If no headers are declared, sources with different delimiters are joined.
    delimiter = begin.delimiter.decode() if begin.header else ""
    return TableDialect(delimiter, header=bool(begin.header))


def sample_for(frame: Frame, settings: Settings, table: TableDialect | None) -> Sample | None:
    """Return the sample that takes an output's sources; None if there is no second reading."""
    if settings.second_reading == "none":
        return None
    everything = settings.second_reading == "all"
    declared = replace(declared_by(settings), table=table)
    return Sample(frame, declared, everything=everything, limits=settings.limits)


def read_again(pending: PendingOutput) -> str:
    """Compare the kept sources of a group with its output, using another reader; wait for it.

    Returns:
        The sources that differ with both counts, in one line; empty if there is no difference.
    """
    if pending.sample is None or pending.output is None:
        return ""
    return shown([one.line for one in pending.sample.differences()])


def shown(differences: Sequence[str]) -> str:
    """Return the first differences and the number of the others, in one line."""
    more = len(differences) - _SHOWN
    more_text = f"; and {more} more" if more > 0 else ""
    return "; ".join(differences[:_SHOWN]) + more_text
