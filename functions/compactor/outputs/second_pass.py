"""What of a group is read a second time, as the settings say, and what a difference means."""

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
    """What the settings say of sources and outputs, as the second reading wants to know it."""
    return Declared(
        format=settings.format,
        csv_header=settings.csv_header,
        single_byte=settings.characters.single_byte,
        nul_bytes=settings.characters.keep_nuls,
        document_lines=settings.documents == "lines",
    )


def table_of(signature: Signature, key: str, decide: Decide) -> TableDialect | None:
    """How CSV and TSV sources of a signature are written; None for others.

    It says what was declared or decided for their data set, not what they were read as: so a
    second reading by it shows where the first one did not keep to that.

    Args:
        signature: theirs.
        key: of one of them.
        decide: what is decided of their data set.
    """
    if signature.format not in (Format.CSV, Format.TSV):
        return None
    begin = Begin.of(signature.header, signature.dialect)
    if begin.columns:
        decided = decide(key, begin.delimiter, begin.columns)
        has_header = isinstance(decided, CsvDialect) and bool(decided.header)
        return TableDialect(begin.delimiter.decode(), header=has_header)
    # Under a declared absence of headers, any delimiter is joined with any other.
    delimiter = begin.delimiter.decode() if begin.header else ""
    return TableDialect(delimiter, header=bool(begin.header))


def sample_for(frame: Frame, settings: Settings, table: TableDialect | None) -> Sample | None:
    """What takes the sources of one output as they are placed; None where none is read twice."""
    if settings.second_reading == "none":
        return None
    everything = settings.second_reading == "all"
    declared = replace(declared_by(settings), table=table)
    return Sample(frame, declared, everything=everything, limits=settings.limits)


def read_again(pending: PendingOutput) -> str:
    """Compare what was kept of a group, by another reader, with its output; waits for the result.

    Returns:
        The sources that differ and both counts, in one line; empty where nothing differs.
    """
    if pending.sample is None or pending.output is None:
        return ""
    return shown([one.line for one in pending.sample.differences()])


def shown(differences: Sequence[str]) -> str:
    """The first differences in one line, and the number of the others."""
    more = len(differences) - _SHOWN
    more_text = f"; and {more} more" if more > 0 else ""
    return "; ".join(differences[:_SHOWN]) + more_text
