"""Every field of a run's input, described once.

The checks of :meth:`compactor.settings.Settings.from_input`, the table in README.md and the
help of the command line all come from :data:`FIELDS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from compactor.execution_fields import EXECUTION_FIELDS
from compactor.field_spec import (
    GIB,
    MIB,
    TIB,
    FieldSpec,
    Reader,
    Required,
    flag,
    globs,
    one_of,
    stem,
    text,
    whole,
)
from compactor.model import Compression, Format
from compactor.partitioning import (
    DATE_FORMAT_ACCEPTED,
    MOMENT_ACCEPTED,
    parse_date_format,
    parse_moment,
)
from compactor.uris import SOURCE_ACCEPTED, URI_ACCEPTED, parse_location, parse_source

_WHERE, _PARTITIONS, _WHICH = "Where", "Partitions", "Which objects"
_SIZES, _FORMATS = "Sizes", "Formats"
_REQUIRED = Required.REQUIRED
_SOURCE = Reader(SOURCE_ACCEPTED, lambda value: parse_source(value).uri)
_LOCATION = Reader(URI_ACCEPTED, lambda value: parse_location(value).uri)
_DATES = Reader(DATE_FORMAT_ACCEPTED, parse_date_format)
_MOMENT = Reader(MOMENT_ACCEPTED, parse_moment)
_SECONDS = whole(0, 366 * 86_400)

_SPECS = (
    FieldSpec(
        "s3_source_uri",
        _WHERE,
        _REQUIRED,
        _SOURCE,
        "Where the small objects are. The segments before the first wildcard are the source"
        " root; what follows it names a partition in the destination.",
    ),
    FieldSpec(
        "s3_destination_uri",
        _WHERE,
        _REQUIRED,
        _LOCATION,
        "Where the outputs go, under the same paths. Source and destination must not contain"
        " each other.",
    ),
    FieldSpec(
        "s3_state_uri",
        _WHERE,
        None,
        _LOCATION,
        "Where the commit log, the work items and the reports go; outside source and"
        " destination. By default _compactor/<destination prefix>/ in the destination's bucket.",
    ),
    FieldSpec(
        "date_format",
        _PARTITIONS,
        None,
        _DATES,
        "How dates are written in the prefixes below the source. Partitions are the prefixes"
        " of the window that duration, or start and end, give.",
    ),
    FieldSpec(
        "duration",
        _PARTITIONS,
        None,
        whole(1, 36_500),
        "How many whole days before today (UTC, today excluded) the window has. 1, which is"
        " yesterday, when date_format is given without duration and start.",
    ),
    FieldSpec(
        "start",
        _PARTITIONS,
        None,
        _MOMENT,
        "Where the window starts, instead of duration. Every partition that overlaps the"
        " window is taken.",
    ),
    FieldSpec(
        "end",
        _PARTITIONS,
        None,
        _MOMENT,
        "Where the window that start begins ends: a date is its last day, a date and time is"
        " excluded itself. By default the end of yesterday (UTC).",
    ),
    FieldSpec(
        "depth",
        _PARTITIONS,
        0,
        whole(0, 32),
        "Without date_format: how many levels of / below the source name a partition. 0 makes"
        " the source (or each prefix its wildcards match) one partition.",
    ),
    FieldSpec(
        "include",
        _WHICH,
        (),
        globs(),
        "Globs on the key below the source root; * matches / too. Only matching objects are"
        " compacted; an empty list means all.",
    ),
    FieldSpec(
        "exclude",
        _WHICH,
        (),
        globs(),
        "Globs like those of include; matching objects are left alone.",
    ),
    FieldSpec(
        "settle_seconds",
        _WHICH,
        600,
        _SECONDS,
        "Objects that arrived less than this many seconds ago are left for a later run.",
    ),
    FieldSpec(
        "open_partition_seconds",
        _WHICH,
        3_600,
        _SECONDS,
        "While the newest object of a partition is younger than this many seconds, only full"
        " outputs are written there.",
    ),
    FieldSpec(
        "min_objects",
        _WHICH,
        1,
        whole(1, 1_000_000),
        "A partition with fewer candidates than this is left alone.",
    ),
    FieldSpec(
        "retry_quarantined",
        _WHICH,
        False,
        flag(),
        "Try again the objects that an earlier run found unreadable.",
    ),
    FieldSpec(
        "target_bytes",
        _SIZES,
        None,
        whole(5 * MIB, 4 * TIB),
        "Aimed-at size of an output, in bytes. By default 128 MiB for compressed and 1 GiB"
        " for uncompressed outputs.",
    ),
    FieldSpec(
        "small_object_bytes",
        _SIZES,
        None,
        whole(1, 4 * TIB),
        "Objects of at least this many bytes are copied by S3 itself instead of being packed;"
        " at most target_bytes. By default half of the target.",
    ),
    FieldSpec(
        "output_stem",
        _SIZES,
        "compacted",
        stem(),
        "What the last segment of every output's key starts with.",
    ),
    FieldSpec(
        "format",
        _FORMATS,
        "auto",
        one_of("auto", *Format),
        "The format of all objects, when it shall not be found out from their keys and first"
        " bytes. parquet merges Parquet objects, by Spark.",
    ),
    FieldSpec(
        "encoding",
        _FORMATS,
        "utf-8",
        one_of("utf-8", "single_byte"),
        "How text is encoded. What is not UTF-8 is left alone; single_byte takes it for an"
        " encoding with one byte a character, such as Latin-1 or Windows-1252.",
    ),
    FieldSpec(
        "nul_bytes",
        _FORMATS,
        "refuse",
        one_of("refuse", "keep"),
        "Text with NUL bytes in it, as a crash leaves them in a log, is left alone; keep takes"
        " NUL for a character like others.",
    ),
    FieldSpec(
        "csv_header",
        _FORMATS,
        "auto",
        one_of("auto", "present", "absent"),
        "Whether the first record of CSV and TSV objects names their columns. auto leaves alone"
        " the objects of which that is not certain.",
    ),
    FieldSpec(
        "compression",
        _FORMATS,
        "same",
        one_of("same", *Compression),
        "The compression of the outputs; same is that of their sources (of JSON and CSV that"
        " become Parquet: zstd).",
    ),
    FieldSpec(
        "output_format",
        _FORMATS,
        "same",
        one_of("same", "parquet"),
        "parquet makes rows of JSON records, CSV and TSV. The sources cannot be restored from"
        " such outputs; records that do not fit the schema go to a rejects object.",
    ),
    FieldSpec(
        "parquet_schema",
        _FORMATS,
        None,
        text(65_536, "a Spark DDL string such as 'id BIGINT, name STRING'"),
        "The columns of output_format parquet. By default found out from the first records, and"
        " kept for every later run of the destination.",
    ),
    FieldSpec(
        "cloudtrail_output",
        _FORMATS,
        "document",
        one_of("document", "lines"),
        "CloudTrail outputs as one document with all Records, or one record per line.",
    ),
    FieldSpec(
        "undelimited_output",
        _FORMATS,
        "lines",
        one_of("lines", "as_is"),
        "JSON objects without newlines between them (Firehose): one per line, or as they are.",
    ),
    FieldSpec(
        "max_expansion",
        _FORMATS,
        250,
        whole(1, 1_000_000),
        "An object that decompresses to more than this many times its size is quarantined.",
    ),
    FieldSpec(
        "max_document_bytes",
        _FORMATS,
        128 * MIB,
        whole(1, 4 * GIB),
        "Largest decompressed object, in bytes, of a format that must be held whole in memory;"
        " larger ones are quarantined.",
    ),
    FieldSpec(
        "second_reading",
        _FORMATS,
        "sample",
        one_of("sample", "all", "none"),
        "What of every output is read again before its commit, by readers that share no code with"
        " what made it: of each group its first and last sources and one by its hash, with their"
        " neighbours, up to 2 MiB each; all sources up to 8 MiB; or none. Of"
        " sources that become rows the records are counted.",
    ),
    *EXECUTION_FIELDS,
)

#: Every field by name, in the order in which they are documented.
FIELDS: Mapping[str, FieldSpec] = MappingProxyType({spec.name: spec for spec in _SPECS})
