"""Every field of a run's input, described once.

The checks of :meth:`compactor.settings.Settings.from_input`, the table in README.md and the
help of the command line all come from :data:`FIELDS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from compactor.field_spec import (
    FieldSpec,
    Reader,
    Required,
    flag,
    globs,
    number,
    one_of,
    stem,
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

MIB = 1024 * 1024
GIB = 1024 * MIB
TIB = 1024 * GIB

_WHERE, _PARTITIONS, _WHICH = "Where", "Partitions", "Which objects"
_SIZES, _FORMATS, _RUN, _AFTER = "Sizes", "Formats", "Execution", "After the commit"
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
        "Aimed-at size of an output, in bytes. By default 128 MiB for compressed and 512 MiB"
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
        " bytes.",
    ),
    FieldSpec(
        "compression",
        _FORMATS,
        "same",
        one_of("same", *Compression),
        "The compression of the outputs; same is that of their sources.",
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
        "lambda_max_objects",
        _RUN,
        500_000,
        whole(1, 100_000_000),
        "A partition with more candidates than this goes to Spark.",
    ),
    FieldSpec(
        "lambda_max_bytes",
        _RUN,
        64 * GIB,
        whole(1, 1024 * TIB),
        "A partition with more bytes of candidates than this goes to Spark.",
    ),
    FieldSpec(
        "max_concurrency",
        _RUN,
        100,
        whole(1, 10_000),
        "How many partitions are compacted at once.",
    ),
    FieldSpec(
        "read_concurrency",
        _RUN,
        256,
        whole(1, 1_024),
        "How many objects one worker reads at once at most; fewer when S3 asks to slow down.",
    ),
    FieldSpec(
        "memory_budget_bytes",
        _RUN,
        64 * MIB,
        whole(1 * MIB, 8 * GIB),
        "How many bytes one worker may have read ahead.",
    ),
    FieldSpec(
        "clean_up",
        _AFTER,
        "keep",
        one_of("keep", "delete"),
        "Keep the sources for ever, or delete them once retention has passed and their output"
        " has been checked again.",
    ),
    FieldSpec(
        "retention_days",
        _AFTER,
        30,
        number(0, 36_500),
        "Days from the commit until clean_up may delete its sources; fractions are accepted.",
    ),
)

#: Every field by name, in the order in which they are documented.
FIELDS: Mapping[str, FieldSpec] = MappingProxyType({spec.name: spec for spec in _SPECS})
