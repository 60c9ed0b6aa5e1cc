"""Every field of a run's input, declared once.

The attributes of :class:`compactor.settings.settings.Settings`, its checks, the table of settings
in the documentation and the help of the command line all come from :class:`RunFields`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Any, get_type_hints

from compactor.model import Compression, Format
from compactor.settings.listing_kinds import LISTING_ACCEPTED, parse_listing
from compactor.settings.partitioning import PARTITIONING_ACCEPTED, parse_partitioning
from compactor.settings.policies import checked_policies
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
    number,
    one_of,
    text,
    values_by_name,
    whole,
)
from compactor.settings.storage_classes import STORAGE_CLASSES
from compactor.settings.tables import TABLE_ACCEPTED, parse_table
from compactor.settings.units import days, real_seconds, seconds, size, whole_days
from compactor.settings.uris import SOURCE_ACCEPTED, URI_ACCEPTED, parse_location, parse_source
from compactor.settings.windows import (
    DATE_FORMAT_ACCEPTED,
    MOMENT_ACCEPTED,
    parse_date_format,
    parse_moment,
)
from compactor.sizes import MIB, TIB

_WHERE, _PARTITIONS, _WHICH = "Where", "Partitions", "Which objects"
_SIZES, _FORMATS = "Sizes", "Formats"
_RUN, _AFTER = "Execution", "After the commit"
_TABLE = "Table"
_READERS = "Readers"
_MONEY = "What it saves"
_REQUIRED = Required.REQUIRED
_SOURCE = Reader(SOURCE_ACCEPTED, lambda value: parse_source(value).uri)
_LOCATION = Reader(URI_ACCEPTED, lambda value: parse_location(value).uri)
_ADDRESS = Reader(TABLE_ACCEPTED, lambda value: parse_table(value).text)
_LISTING = Reader(LISTING_ACCEPTED, lambda value: parse_listing(value).text)
_READER_TABLE = Reader(READER_TABLE_ACCEPTED, lambda value: parse_reader_table(value).text)
_PARTITIONING = Reader(PARTITIONING_ACCEPTED, parse_partitioning)
_DATES = Reader(DATE_FORMAT_ACCEPTED, parse_date_format)
_MOMENT = Reader(MOMENT_ACCEPTED, parse_moment)
_SECONDS = seconds(0, 366 * 86_400)
_ENGINE = matching(
    r"emr|emr_serverless|none|j-[A-Za-z0-9]{1,64}",
    '"emr", "emr_serverless", "none", or the id of a running EMR cluster, such as j-2AXXXXXXGAPLF',
)


class CleanUpMode(StrEnum):
    """What becomes of sources whose commit is past retention."""

    KEEP = "keep"
    DELETE = "delete"


# Settings is made of them, and has the methods: none of a hundred fields is made twice.
@dataclass(frozen=True, slots=True, init=False, repr=False, eq=False)
class RunFields:
    """One run's input, checked. Names are those of the JSON input, in their documented order."""

    s3_source_uri: Annotated[
        str,
        Declared(
            _WHERE,
            _REQUIRED,
            _SOURCE,
            "Where the small objects are. The segments before the first wildcard are the source"
            " root; what follows it names a partition in the destination.",
        ),
    ]
    s3_destination_uri: Annotated[
        str,
        Declared(
            _WHERE,
            _REQUIRED,
            _LOCATION,
            "Where the outputs go, under the same paths. Source and destination must not contain"
            " each other.",
        ),
    ]
    s3_state_uri: Annotated[
        str,
        Declared(
            _WHERE,
            None,
            _LOCATION,
            "Where the commit log, the work items and the reports go; outside source and"
            " destination. By default _compactor/<destination prefix>/ in the destination's"
            " bucket.",
        ),
    ]
    date_format: Annotated[
        str | None,
        Declared(
            _PARTITIONS,
            None,
            _DATES,
            "How dates are written in the prefixes below the source. Partitions are the prefixes"
            " of the window that duration, or start and end, give.",
        ),
    ]
    duration: Annotated[
        int | None,
        Declared(
            _PARTITIONS,
            None,
            whole_days(1, 36_500),
            "How many whole days before today (UTC, today excluded) the window has. 1, which is"
            " yesterday, when date_format is given without duration and start.",
        ),
    ]
    start: Annotated[
        str | None,
        Declared(
            _PARTITIONS,
            None,
            _MOMENT,
            "Where the window starts, instead of duration. Every partition that overlaps the"
            " window is taken.",
        ),
    ]
    end: Annotated[
        str | None,
        Declared(
            _PARTITIONS,
            None,
            _MOMENT,
            "Where the window that start begins ends: a date is its last day, a date and time is"
            " excluded itself. By default the end of yesterday (UTC).",
        ),
    ]
    depth: Annotated[
        int,
        Declared(
            _PARTITIONS,
            0,
            whole(0, 32),
            "Without date_format: how many levels of / below the source name a partition. 0 makes"
            " the source (or each prefix its wildcards match) one partition.",
        ),
    ]
    listing: Annotated[
        str,
        Declared(
            _WHICH,
            "list",
            _LISTING,
            "Where the run learns which objects there are: LIST; the newest S3 Inventory of the"
            " source's bucket below a prefix, or the one that is named, or the newest snapshot of"
            " the live inventory table that S3 Metadata keeps, and then what is newer than that is"
            " left for a later run, and ages are counted back from it; or the events that are kept"
            " as a stream in a DynamoDB table, and then all is taken that is pending, without a"
            " window. An inventory is in CSV, with Size, LastModifiedDate and ETag, and covers the"
            " whole source.",
        ),
    ]
    include: Annotated[
        tuple[str, ...],
        Declared(
            _WHICH,
            (),
            globs(),
            "Globs on the key below the source root; * matches / too. Only matching objects are"
            " compacted; an empty list means all. Levels and names that begin with _ or . are"
            " left alone unless a pattern spells each of them out, as _raw/* does.",
        ),
    ]
    exclude: Annotated[
        tuple[str, ...],
        Declared(
            _WHICH, (), globs(), "Globs like those of include; matching objects are left alone."
        ),
    ]
    policies: Annotated[
        tuple[Mapping[str, Any], ...],
        Declared(
            _WHICH,
            (),
            Reader("a list of rules (docs/maintenance.md)", checked_policies),
            "Rules by patterns of objects such as s3://logs/app/*, as those of tables: what the"
            " first that matches says to leave is neither compacted nor deleted, and in its quiet"
            " hours nothing is.",
        ),
    ]
    settle_seconds: Annotated[
        int,
        Declared(
            _WHICH,
            600,
            _SECONDS,
            "Objects that arrived less than this many seconds ago are left for a later run.",
        ),
    ]
    open_partition_seconds: Annotated[
        int,
        Declared(
            _WHICH,
            3_600,
            _SECONDS,
            "While the newest object of a partition is younger than this many seconds, only full"
            " outputs are written there.",
        ),
    ]
    min_objects: Annotated[
        int,
        Declared(
            _WHICH,
            1,
            whole(1, 1_000_000),
            "A partition with fewer candidates than this is left alone.",
        ),
    ]
    retry_quarantined: Annotated[
        bool,
        Declared(
            _WHICH, False, flag(), "Try again the objects that an earlier run found unreadable."
        ),
    ]
    bucket_copies: Annotated[
        str,
        Declared(
            _WHICH,
            "refuse",
            one_of("refuse", "compact"),
            "What becomes of a partition with objects that were compacted already from another"
            " bucket, under the same key and with the same ETag, as after a bucket was copied:"
            " refuse it, or compact them as well.",
        ),
    ]
    target_bytes: Annotated[
        int | None,
        Declared(
            _SIZES,
            None,
            size(5 * MIB, 4 * TIB),
            "Aimed-at size of an output, in bytes. By default 128 MiB for compressed and 1 GiB"
            " for uncompressed outputs.",
        ),
    ]
    format: Annotated[
        str,
        Declared(
            _FORMATS,
            "auto",
            one_of("auto", *Format),
            "The format of all objects, when it shall not be found out from their keys and first"
            " bytes. parquet merges Parquet objects, by Spark.",
        ),
    ]
    encoding: Annotated[
        str,
        Declared(
            _FORMATS,
            "utf-8",
            one_of("utf-8", "single_byte", "any_bytes"),
            "How text is encoded. What is not UTF-8 is left alone; single_byte reads it as an"
            " encoding with one byte a character, such as Latin-1 or Windows-1252. any_bytes also"
            " accepts NUL bytes, as a crash leaves them in a log.",
        ),
    ]
    csv_header: Annotated[
        str,
        Declared(
            _FORMATS,
            "auto",
            one_of("auto", "present", "absent"),
            "Whether the first record of CSV and TSV objects names their columns. auto decides it"
            " for a data set from many of its objects, and leaves alone what these do not decide.",
        ),
    ]
    compression: Annotated[
        str,
        Declared(
            _FORMATS,
            "same",
            one_of("same", *Compression),
            "The compression of the outputs; same is that of their sources (of JSON and CSV that"
            " become Parquet: zstd).",
        ),
    ]
    output_format: Annotated[
        str,
        Declared(
            _FORMATS,
            "same",
            one_of("same", "parquet"),
            "parquet makes rows of JSON records, CSV and TSV. The sources cannot be restored from"
            " such outputs; records that do not fit the schema go to a rejects object.",
        ),
    ]
    parquet_schema: Annotated[
        str | None,
        Declared(
            _FORMATS,
            None,
            text(65_536, "a Spark DDL string such as 'id BIGINT, name STRING'"),
            "The columns of output_format parquet. By default found out from the first records, and"
            " kept for every later run of the destination.",
        ),
    ]
    documents: Annotated[
        str,
        Declared(
            _FORMATS,
            "as_is",
            one_of("as_is", "lines"),
            "JSON arrays of objects as one array and CloudTrail documents as one document with all"
            " Records; or one record per line of both.",
        ),
    ]
    second_reading: Annotated[
        str,
        Declared(
            _FORMATS,
            "sample",
            one_of("sample", "all", "none"),
            "What of every output is read again before its commit, by readers that share no code"
            " with what made it: of each group its first and last sources and one by its hash,"
            " with their neighbours, up to 2 MiB each; all sources up to 8 MiB; or none. Of"
            " sources that become rows the records are counted.",
        ),
    ]
    table: Annotated[
        str | None,
        Declared(
            _TABLE,
            None,
            _ADDRESS,
            "An Iceberg or Delta table that is given every output, each once, as a data file of"
            " its own. Sets output_format to parquet. A destination has one table for good.",
        ),
    ]
    schema_evolution: Annotated[
        str,
        Declared(
            _TABLE,
            "refuse",
            one_of("refuse", "add_columns"),
            "What becomes of outputs with columns that the table has not: none of them goes into"
            " it, or the columns are added to it, optional ones, in the same commit. Outputs that"
            " are converted to Parquet get columns for new fields, too, unless parquet_schema is"
            " given.",
        ),
    ]
    table_partitioning: Annotated[
        tuple[str, ...],
        Declared(
            _TABLE,
            (),
            _PARTITIONING,
            "Columns, and transforms of columns, by which an Iceberg table that is made here is"
            " partitioned. All rows of an output must lie in one partition.",
        ),
    ]
    upsert_key: Annotated[
        tuple[str, ...],
        Declared(
            _TABLE,
            (),
            names(),
            "Columns that are the key of a row: the table has the last record of each key, which"
            " Spark merges into it, instead of every output as a data file. For good.",
        ),
    ]
    order_by: Annotated[
        tuple[str, ...],
        Declared(
            _TABLE,
            (),
            names(),
            "Columns by which the later of two records of a key has the greater values, the most"
            " important first; what they leave open, the source's key and the place in the source"
            " decide. Only with upsert_key, and for good.",
        ),
    ]
    delete_when: Annotated[
        Mapping[str, tuple[str, ...]] | None,
        Declared(
            _TABLE,
            None,
            values_by_name(),
            "A record deletes its key when one of these columns has, as text, one of its values."
            " Only with upsert_key, and for good.",
        ),
    ]
    reader_table: Annotated[
        str | None,
        Declared(
            _READERS,
            None,
            _READER_TABLE,
            "The table in the Glue Data Catalog that shows query engines each record once, in a"
            " source or in an output. It is made where it is not there, with columns that are found"
            " in a sample, and every run switches the partitions that it worked on.",
        ),
    ]
    reader_mode: Annotated[
        str,
        Declared(
            _READERS,
            "exact",
            one_of("exact", "compacted"),
            "What that table shows: every record, also those that no output has yet; or the"
            " outputs alone.",
        ),
    ]
    reader_partitions: Annotated[
        tuple[str, ...],
        Declared(
            _READERS,
            (),
            names(),
            "What its partition columns are called, one for each wildcard, level of depth and"
            " segment of date_format. By default as the segments are (dt=…), year, month, day and"
            " hour, else level1, level2 and so on.",
        ),
    ]
    lambda_max_seconds: Annotated[
        float,
        Declared(
            _RUN,
            600,
            real_seconds(0, 7 * 86_400),
            "A partition that one worker would take longer for goes to Spark, and one with more"
            " than 1,000,000 candidates; estimated by objects, bytes and format from the measured"
            " table in discovery/speed.py. A Lambda function may run for 900. With 0 all go.",
        ),
    ]
    spark_engine: Annotated[
        str,
        Declared(
            _RUN,
            "emr",
            _ENGINE,
            "Where Spark runs: on an EMR cluster that is made for the run and terminated after it;"
            " on EMR Serverless; as a step on a running cluster, by its id; or nowhere (none), and"
            " what would go to Spark is left as it is and reported.",
        ),
    ]
    max_concurrency: Annotated[
        int,
        Declared(_RUN, 100, whole(1, 10_000), "How many partitions are compacted concurrently."),
    ]
    clean_up: Annotated[
        CleanUpMode,
        Declared(
            _AFTER,
            "keep",
            one_of("keep", "delete"),
            "Keep the sources for ever, or delete them once retention has passed and their output"
            " has been checked again.",
        ),
    ]
    retention_days: Annotated[
        float,
        Declared(
            _AFTER,
            30,
            days(0, 36_500),
            "Days from the commit until clean_up may delete its sources; fractions are accepted.",
        ),
    ]
    scans_per_month: Annotated[
        float,
        Declared(
            _MONEY,
            30,
            number(0, 1_000_000),
            "How often all of the data is read in a month, by which plans and reports estimate what"
            " a run saves.",
        ),
    ]
    target_class: Annotated[
        str,
        Declared(
            _MONEY,
            "STANDARD",
            one_of(*STORAGE_CLASSES),
            "The storage class to which lifecycle rules move the outputs, by which plans and"
            " reports estimate; nothing is moved by it.",
        ),
    ]
    pays_back_within_days: Annotated[
        float | None,
        Declared(
            _MONEY,
            None,
            days(0, 36_500),
            "A partition whose compaction would not save what it costs within so many days is left"
            " alone, and counted as skipped. Not when listing is events: what is left would start"
            " run after run.",
        ),
    ]


def _declared() -> dict[str, FieldSpec]:
    hints = get_type_hints(RunFields, include_extras=True)
    return {name: hint.__metadata__[0].named(name) for name, hint in hints.items()}


#: Every field by name, in the order in which they are documented.
FIELDS: Mapping[str, FieldSpec] = MappingProxyType(_declared())
