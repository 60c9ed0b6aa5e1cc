"""A second check of every output that shares no code with what made it.

The framing in ``compactor.formats`` and the checksums in ``compactor.outputs.verify`` share one
definition of a record. If that is wrong, both are wrong in the same way. Here bytes are read as the
destination's readers read them: the csv module with the dialect that the bytes show, a JSON decoder
that must consume each line, the ``Records`` arrays of CloudTrail, the ``#Fields`` of W3C logs, else
lines. The type of a source is judged independently. Whether the first rows of tables are headers
was decided for their data set; the same decision is applied by another parser.

Nothing in ``compactor.formats``, ``codecs``, ``restoring`` or ``slice_facts`` may be
imported here, which import-linter enforces; decompression is that of gzip, bz2 and zstandard.

``sampling`` keeps what a run reads twice, ``comparing`` compares sources with their output,
``judging`` chooses the reader, ``reading`` has the readers.
"""

from __future__ import annotations

from compactor.second_reading.comparing import Difference, Frame, Kept, differences, header_of
from compactor.second_reading.judging import Declared, judge
from compactor.second_reading.kinds import HEADED, WHOLE, Kind, Reading, Seen, Tally, tally
from compactor.second_reading.reading import read
from compactor.second_reading.sampling import Sample
from compactor.second_reading.unpacking import NotReadable, plain_pieces

__all__ = [
    "HEADED",
    "WHOLE",
    "Declared",
    "Difference",
    "Frame",
    "Kept",
    "Kind",
    "NotReadable",
    "Reading",
    "Sample",
    "Seen",
    "Tally",
    "differences",
    "header_of",
    "judge",
    "plain_pieces",
    "read",
    "tally",
]
