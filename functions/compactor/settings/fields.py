"""Every field of a run's input, declared once.

The attributes of :class:`compactor.settings.settings.Settings`, its checks, the table of settings
in the documentation and the help of the command line all come from :class:`RunFields`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, get_type_hints

from compactor.formats.declaration import FORMATS_ACCEPTED, Declaration, parse_formats
from compactor.model import Compression
from compactor.settings.partitioning import PARTITIONING_ACCEPTED, parse_partitioning
from compactor.settings.reader_table import READER_TABLE_ACCEPTED, parse_reader_table
from compactor.settings.specs import (
    Declared,
    FieldSpec,
    Reader,
    Required,
    flag,
    globs,
    matching,
    names,
    one_of,
    text,
    values_by_name,
    whole,
)
from compactor.settings.tables import TABLE_ACCEPTED, parse_table
from compactor.settings.units import period, seconds, size
from compactor.settings.uris import SOURCE_ACCEPTED, URI_ACCEPTED, parse_location, parse_source
from compactor.settings.windows import (
    DATE_FORMAT_ACCEPTED,
    WINDOW_ACCEPTED,
    parse_date_format,
    parse_window,
)
from compactor.sizes import GIB, MIB, TIB

_WHERE, _PARTITIONS, _WHICH = "Where", "Partitions", "Which objects"
_SIZES, _FORMATS = "Sizes", "Formats"
_RUN, _AFTER = "Execution", "After the commit"
_TABLE = "Table"
_READERS = "Readers"
_REQUIRED = Required.REQUIRED
_SOURCE = Reader(SOURCE_ACCEPTED, lambda value: parse_source(value).uri)
_LOCATION = Reader(URI_ACCEPTED, lambda value: parse_location(value).uri)
_ADDRESS = Reader(TABLE_ACCEPTED, lambda value: parse_table(value).text)
_LISTING = matching(
    r"list|events:[A-Za-z0-9_.-]{3,255}/[A-Za-z0-9][A-Za-z0-9_-]{0,39}",
    '"list" or events:TABLE/STREAM',
)
_READER_TABLE = Reader(READER_TABLE_ACCEPTED, lambda value: parse_reader_table(value).text)
_PARTITIONING = Reader(PARTITIONING_ACCEPTED, parse_partitioning)
_DATES = Reader(DATE_FORMAT_ACCEPTED, parse_date_format)
_WINDOW = Reader(WINDOW_ACCEPTED, parse_window)
_SECONDS = seconds(0, 366 * 86_400)
_ENGINE = matching(
    r"emr_serverless|none|j-[A-Za-z0-9]{1,64}",
    '"emr_serverless", "none", or the id of a running EMR cluster, such as j-2AXXXXXXGAPLF',
)


# Without methods: Settings inherits the fields and generates the methods once.
@dataclass(frozen=True, slots=True, init=False, repr=False, eq=False)
class RunFields:
    """One run's input, checked. Fields are named and ordered as in the documented JSON input."""

    s3_source_uri: Annotated[
        str,
        Declared(
            _WHERE,
            _REQUIRED,
            _SOURCE,
            "Where the small objects are. The part before the first wildcard is the source root;"
            " what follows it names partitions in the destination.",
        ),
    ]
    s3_destination_uri: Annotated[
        str,
        Declared(
            _WHERE,
            _REQUIRED,
            _LOCATION,
            "Where outputs are written, under the same paths. Source and destination must not"
            " contain each other.",
        ),
    ]
    s3_state_uri: Annotated[
        str,
        Declared(
            _WHERE,
            None,
            _LOCATION,
            "Where the commit log, work items and reports are stored, outside source and"
            " destination. Default: _compactor/<destination prefix>/ in the destination's bucket.",
        ),
    ]
    date_format: Annotated[
        str | None,
        Declared(
            _PARTITIONS,
            None,
            _DATES,
            "How dates are written in the prefixes below the source. Partitions are the prefixes"
            " whose dates lie in the window.",
        ),
    ]
    window: Annotated[
        str | None,
        Declared(
            _PARTITIONS,
            None,
            _WINDOW,
            "The dates of the partitions; every partition that overlaps the window is compacted. 7d"
            " are the seven days before today (UTC). An END that is a date is the last day, a date"
            " and time is excluded. Default: 1d, yesterday, if date_format is given.",
        ),
    ]
    depth: Annotated[
        int,
        Declared(
            _PARTITIONS,
            0,
            whole(0, 32),
            "Without date_format: the number of prefix levels below the source that form a"
            " partition. 0 makes the source, or each prefix that its wildcards match, one"
            " partition.",
        ),
    ]
    listing: Annotated[
        str,
        Declared(
            _WHICH,
            "list",
            _LISTING,
            "How the run finds objects. list: LIST. events: the objects pending in a stream of a"
            " DynamoDB table, without a window.",
        ),
    ]
    include: Annotated[
        tuple[str, ...],
        Declared(
            _WHICH,
            (),
            globs(),
            "Globs matched against the key below the source root; * also matches /. Only matching"
            " objects are compacted; an empty list matches all. Names and levels that begin with _"
            " or . are left alone unless a pattern spells them out, such as _raw/*.",
        ),
    ]
    exclude: Annotated[
        tuple[str, ...],
        Declared(_WHICH, (), globs(), "Globs as in include; matching objects are left alone."),
    ]
    settle_seconds: Annotated[
        int,
        Declared(
            _WHICH,
            600,
            _SECONDS,
            "Objects younger than this are left for a later run. While the newest object of a"
            " partition is younger than six times this, only full outputs are written there.",
        ),
    ]
    min_objects: Annotated[
        int,
        Declared(
            _WHICH,
            1,
            whole(1, 1_000_000),
            "Partitions with fewer candidates are left alone.",
        ),
    ]
    retry_quarantined: Annotated[
        bool,
        Declared(_WHICH, False, flag(), "Try objects again that an earlier run could not read."),
    ]
    target_bytes: Annotated[
        int | None,
        Declared(
            _SIZES,
            None,
            size(5 * MIB, 4 * TIB),
            "Target size of an output, in bytes. By default 128 MiB for compressed and 1 GiB for"
            " uncompressed outputs.",
        ),
    ]
    formats: Annotated[
        tuple[Declaration, ...],
        Declared(
            _FORMATS,
            (),
            Reader(FORMATS_ACCEPTED, parse_formats),
            "The formats of objects by globs as in include; the first match counts. csv and tsv"
            " need header (true or false), and take delimiter, quote (none) and escape (backslash);"
            " text, csv and tsv take encoding (single_byte). A name alone declares all objects."
            " Undeclared objects are compacted only if their name, their first lines or parsing"
            " proves what they are; CSV and TSV never.",
        ),
    ]
    compression: Annotated[
        str,
        Declared(
            _FORMATS,
            "same",
            one_of("same", *Compression),
            "Compression of the outputs. same keeps that of their sources (zstd for JSON and CSV"
            " that become Parquet).",
        ),
    ]
    output_format: Annotated[
        str,
        Declared(
            _FORMATS,
            "same",
            one_of("same", "parquet"),
            "parquet writes JSON records, CSV and TSV as Parquet rows. Sources cannot be restored"
            " from such outputs; what does not fit the schema is kept as dead-letter records.",
        ),
    ]
    parquet_schema: Annotated[
        str | None,
        Declared(
            _FORMATS,
            None,
            text(65_536, "a Spark DDL string such as 'id BIGINT, name STRING'"),
            "Columns for output_format parquet. By default inferred from the first records, and"
            " kept for all later runs of the destination.",
        ),
    ]
    table: Annotated[
        str | None,
        Declared(
            _TABLE,
            None,
            _ADDRESS,
            "An Iceberg or Delta table that receives every output once, as a data file. Sets"
            " output_format to parquet. It cannot be changed later for this destination.",
        ),
    ]
    schema_evolution: Annotated[
        str,
        Declared(
            _TABLE,
            "refuse",
            one_of("refuse", "add_columns"),
            "What to do with outputs that have columns which the table lacks. refuse: they are not"
            " added to the table. add_columns: the columns are added as optional ones, in the same"
            " commit. Outputs converted to Parquet also get columns for new fields, unless"
            " parquet_schema is given.",
        ),
    ]
    table_partitioning: Annotated[
        tuple[str, ...],
        Declared(
            _TABLE,
            (),
            _PARTITIONING,
            "Columns, or transforms of columns, that partition an Iceberg table created by a run."
            " All rows of an output must lie in one partition.",
        ),
    ]
    upsert_key: Annotated[
        tuple[str, ...],
        Declared(
            _TABLE,
            (),
            names(),
            "Key columns: the table holds the last record of each key, merged by Spark, instead of"
            " every output as a data file. It cannot be changed later.",
        ),
    ]
    order_by: Annotated[
        tuple[str, ...],
        Declared(
            _TABLE,
            (),
            names(),
            "Columns that order the records of a key, most important first: the record with the"
            " greater values is the later one. Ties are decided by source key and position. Only"
            " with upsert_key; it cannot be changed later.",
        ),
    ]
    delete_when: Annotated[
        Mapping[str, tuple[str, ...]] | None,
        Declared(
            _TABLE,
            None,
            values_by_name(),
            "A record deletes its key if one of these columns, as text, has one of the given"
            " values. Only with upsert_key; it cannot be changed later.",
        ),
    ]
    reader_table: Annotated[
        str | None,
        Declared(
            _READERS,
            None,
            _READER_TABLE,
            "A table in the Glue Data Catalog that shows each record once, from its source or from"
            " an output. A run creates it if it does not exist, with columns inferred from a"
            " sample, and switches the partitions that it worked on.",
        ),
    ]
    reader_mode: Annotated[
        str,
        Declared(
            _READERS,
            "exact",
            one_of("exact", "compacted"),
            "What that table shows. exact: every record, including those in no output yet."
            " compacted: outputs only.",
        ),
    ]
    reader_partitions: Annotated[
        tuple[str, ...],
        Declared(
            _READERS,
            (),
            names(),
            "Names of its partition columns, one for each wildcard, level of depth and segment of"
            " date_format. By default taken from the segments (dt=…), else year, month, day and"
            " hour, else level1, level2 and so on.",
        ),
    ]
    engine: Annotated[
        str,
        Declared(
            _RUN,
            "auto",
            one_of("auto", "worker", "spark"),
            "What compacts the partitions. auto: a worker each, and Spark those that are too large"
            " for one (lambda_max_bytes). worker: workers, called again until the largest is"
            " done. spark: Spark, whatever their size.",
        ),
    ]
    lambda_max_bytes: Annotated[
        int,
        Declared(
            _RUN,
            20 * GIB,
            size(0, 4 * TIB),
            "With engine auto, the most that a worker takes of one partition in a run, as stored;"
            " and it takes 1,000,000 objects at most. Spark takes the rest. 20 GiB take a worker 3"
            " minutes uncompressed, and 16 of gzip: two calls.",
        ),
    ]
    spark_engine: Annotated[
        str,
        Declared(
            _RUN,
            "emr_serverless",
            _ENGINE,
            "Where Spark runs. emr_serverless: on EMR Serverless. The id of a cluster: as a step on"
            " that running cluster. none: nowhere; partitions that need Spark are left alone and"
            " reported.",
        ),
    ]
    max_concurrency: Annotated[
        int,
        Declared(_RUN, 100, whole(1, 10_000), "How many partitions are compacted concurrently."),
    ]
    delete_after: Annotated[
        str | None,
        Declared(
            _AFTER,
            None,
            period(36_500),
            "How long after their commit sources are deleted, once their output has been verified"
            " again. null: they are never deleted.",
        ),
    ]


def _declared() -> dict[str, FieldSpec]:
    hints = get_type_hints(RunFields, include_extras=True)
    return {name: hint.__metadata__[0].named(name) for name, hint in hints.items()}


#: Every field by name, in the order in which they are documented.
FIELDS: Mapping[str, FieldSpec] = MappingProxyType(_declared())
