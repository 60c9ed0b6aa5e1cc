"""How engines read the objects of a format: the ``StorageDescriptor`` of a table or partition.

Sources: "Supported SerDes and data formats" and "Query AWS CloudTrail logs" in the Athena user
guide; "StorageDescriptor structure" in the Glue API. What works with ``SymlinkTextInputFormat`` was
tested on Trino 476. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from compactor.errors import InvalidInput
from compactor.formats import spec_of
from compactor.formats.log_fields import LOGS, LogLines, name_of_log
from compactor.model import Format
from compactor.readers.states import Shown
from compactor.settings.settings import Settings

TEXT_INPUT = "org.apache.hadoop.mapred.TextInputFormat"
SYMLINK_INPUT = "org.apache.hadoop.hive.ql.io.SymlinkTextInputFormat"
_TEXT_OUTPUT = "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat"
_CLOUDTRAIL_INPUT = "com.amazon.emr.cloudtrail.CloudTrailInputFormat"
_PARQUET_INPUT = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat"
_PARQUET_OUTPUT = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat"
_OPENX = "org.openx.data.jsonserde.JsonSerDe"
_HCATALOG = "org.apache.hive.hcatalog.data.JsonSerDe"
_SIMPLE = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
_QUOTED = "org.apache.hadoop.hive.serde2.OpenCSVSerde"
_REGEX = "org.apache.hadoop.hive.serde2.RegexSerDe"
_PARQUET = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
_PATTERN, _ANY_LINE = "input.regex", "(.*)"
_DELIMITERS = {_SIMPLE: "field.delim", _QUOTED: "separatorChar"}
_HEADER_LINES = "skip.header.line.count"
_CLOUDFRONT_HEADER = 2
#: The only column of lines in an unknown format.
LINE = "line"


@dataclass(frozen=True, slots=True)
class Reading:
    """How engines read objects.

    Attributes:
        serde: class that parses lines into rows.
        parameters: of the SerDe.
        input_format, output_format: class names.
        table: table parameters that Hive and Athena evaluate.
        listed: objects may be named in a symlink manifest, whose input format replaces this one.
        raw: sources can be read in the same way as outputs.
    """

    serde: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    input_format: str = TEXT_INPUT
    output_format: str = _TEXT_OUTPUT
    table: Mapping[str, str] = field(default_factory=dict)
    listed: bool = True
    raw: bool = True

    @property
    def exact(self) -> bool:
        """True if a table can show both sources and outputs."""
        return self.listed and self.raw


def log_of(lines: Sequence[str]) -> LogLines | None:
    """Return the documented form that all lines have; None for any other lines."""
    log = LOGS.get(name_of_log(lines[0] if lines else ""))
    return log if log and all(re.fullmatch(log.pattern, line) for line in lines) else None


def reading_of(
    format: Format,
    settings: Settings,
    *,
    delimiter: str = ",",
    header_lines: int = 0,
    quoted: bool = False,
    lines: bool = False,
    log: LogLines | None = None,
) -> Reading:
    """Return how objects of a format are read.

    Args:
        format: of the outputs.
        settings: say whether outputs are rows.
        delimiter: of CSV.
        header_lines: number of header lines at the start of each object.
        quoted: the objects contain quotes.
        lines: records of documents are written one per line.
        log: the form of the lines of text.

    Raises:
        InvalidInput: no engine reads the outputs as rows.
    """
    if format is Format.PARQUET or settings.columnar:
        return Reading(_PARQUET, {"serialization.format": "1"}, _PARQUET_INPUT, _PARQUET_OUTPUT)
    if format in JSON_FORMATS:
        return _json(format, lines=lines)
    if format in (Format.VPC_FLOW, Format.CLOUDFRONT):
        tabs = format is Format.CLOUDFRONT
        count = _CLOUDFRONT_HEADER if tabs else 1
        return _simple("\t" if tabs else " ", count)
    if format is Format.TEXT:
        return Reading(_REGEX, {_PATTERN: log.pattern if log else _ANY_LINE})
    if format not in (Format.CSV, Format.TSV):
        raise AssertionError(f"nothing says how engines read {format}")
    if quoted:
        parameters = {"separatorChar": delimiter, "quoteChar": '"', "escapeChar": "\\"}
        # trino#21072: this SerDe returns wrong rows for objects named in a list.
        return Reading(_QUOTED, parameters, table=_skips(header_lines), listed=False)
    return _simple(delimiter, header_lines)


#: Whose columns have the names of members.
JSON_FORMATS = (
    Format.JSON_LINES,
    Format.UNDELIMITED_JSON,
    Format.JSON_ARRAY,
    Format.CLOUDTRAIL,
    Format.JSON_LIST,
)


def _json(format: Format, *, lines: bool) -> Reading:
    if format is Format.JSON_LINES:
        return Reading(_OPENX)
    spec = spec_of(format)
    if format is Format.UNDELIMITED_JSON or lines:
        return Reading(_OPENX, raw=False)
    if format is Format.CLOUDTRAIL:
        # A list's input format would replace CloudTrail's, which opens the documents.
        return Reading(_HCATALOG, input_format=_CLOUDTRAIL_INPUT, listed=False)
    accepted = "another format: engines read JSON of one object a line"
    if spec.lines:
        accepted = f"{format.value}_lines: engines read JSON of one object a line"
    raise InvalidInput("formats", format.value, accepted)


def _simple(delimiter: str, header_lines: int) -> Reading:
    parameters = {"field.delim": delimiter, "serialization.format": delimiter}
    return Reading(_SIMPLE, parameters, table=_skips(header_lines))


def _skips(header_lines: int) -> Mapping[str, str]:
    return {_HEADER_LINES: str(header_lines)} if header_lines else {}


def is_read_by(
    table: Mapping[str, Any], columns: Sequence[Mapping[str, str]], reading: Reading
) -> bool:
    """Return whether a table reads the values of an object as those of its own columns.

    Args:
        table: descriptor of the table.
        columns: of the object, in its order; it may have fewer or more at the end.
        reading: how the object would be read.
    """
    library = table["SerdeInfo"]["SerializationLibrary"]
    parameters = table["SerdeInfo"].get("Parameters") or {}
    if library != reading.serde and (library, reading.serde) != (_QUOTED, _SIMPLE):
        return False
    if library == _REGEX:
        return parameters.get(_PATTERN) in (reading.parameters[_PATTERN], _ANY_LINE)
    if library not in _DELIMITERS:
        return True
    delimiter = reading.parameters[_DELIMITERS[reading.serde]]
    named = zip(columns, table["Columns"], strict=False)
    return parameters.get(_DELIMITERS[library]) == delimiter and all(
        column["name"] == of_table["Name"] for column, of_table in named
    )


def require_exact(reading: Reading, format: Format, settings: Settings) -> None:
    """Reject an exact table if engines cannot read the sources, or lists of objects.

    Raises:
        InvalidInput: the settings ask for an exact table, which is not possible.
    """
    if settings.reader_mode == "exact" and not reading.exact:
        accepted = (
            f'"compacted": {"lists of objects" if reading.raw else "sources"} of format'
            f" {format.value} are not read by query engines as outputs are"
        )
        raise InvalidInput("reader_mode", settings.reader_mode, accepted)


def descriptor_of(table: Mapping[str, Any], shown: Shown, location: str) -> dict[str, Any]:
    """Return the ``StorageDescriptor`` of a partition.

    Args:
        table: descriptor of the table, as the catalog has it.
        shown: what the partition shows.
        location: of what it shows, ending in ``/``.
    """
    found = {name: value for name, value in table.items() if value is not None}
    found["Location"] = location
    if shown is Shown.LISTED:
        found["InputFormat"] = SYMLINK_INPUT
        # That of plain text: nothing is written with it.
        found["OutputFormat"] = _TEXT_OUTPUT
    return found


def table_descriptor(
    reading: Reading, columns: Sequence[Mapping[str, str]], location: str
) -> dict[str, Any]:
    """Return the ``StorageDescriptor`` of a table, whose own location no query reads.

    Args:
        reading: how its objects are read.
        columns: each with ``name`` and ``type``.
        location: ends in ``/``.
    """
    return {
        "Columns": [{"Name": one["name"], "Type": one["type"]} for one in columns],
        "Location": location,
        "InputFormat": reading.input_format,
        "OutputFormat": reading.output_format,
        "SerdeInfo": {
            "SerializationLibrary": reading.serde,
            "Parameters": dict(reading.parameters),
        },
    }
