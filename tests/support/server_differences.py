"""Promises of S3 that the servers of the tests do not keep.

The contract suite runs every case on every server. A case listed here must fail on its server in
the listed way; otherwise the test run fails, so the table stays true.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

SERVERS = ("moto", "versitygw")


class Condition(StrEnum):
    """A promise of S3 that the order of writes or clean-up relies on."""

    READ = "a GET with If-Match, whole or a range, gives only what was listed"
    CREATE = "PutObject with If-None-Match never overwrites"
    PUBLISH = "CompleteMultipartUpload with If-None-Match never overwrites"
    RACE = "of several such writes at once, one wins"
    COPY = "UploadPartCopy with CopySourceIfMatch copies only what was listed"
    PART_CHECKSUM = "a part with another CRC32 than announced is refused"
    WHOLE_CHECKSUM = "so is an upload with another full-object CRC32, and HEAD returns it"
    COPIED_CHECKSUM = "the CRC32 kept of an output with copied parts is that of its bytes"
    PARTS = "parts out of order, unknown, changed or below 5 MiB are refused"
    GONE_UPLOAD = "an upload that is gone takes no part and cannot be completed"
    UPLOAD_LIST = "open uploads are listed by prefix, in pages"
    DELETE_ONE = "DeleteObject with If-Match deletes only what was listed"
    DELETE_MANY = "so does DeleteObjects with an ETag for each key"
    VERSIONS = "in a versioned bucket a delete puts a marker and keeps the version"
    KEYS = "any key of up to 1,024 bytes, listed in the order of its bytes"


@dataclass(frozen=True)
class Difference:
    """One way in which a server is not S3.

    Attributes:
        cases: names of tests, with ``[id]`` if only that parameter differs, and ``[way-id]`` if
            only that transport does.
        raises: names of the exceptions that the test fails with; ``Failed`` is pytest's for an
            expected exception that was not raised.
    """

    server: str
    condition: Condition
    instead: str
    cases: tuple[str, ...]
    raises: tuple[str, ...]


_DELETES = (
    "test_a_source_that_changed_is_not_deleted",
    "test_a_source_gone_or_changed_does_not_keep_the_others_from_being_deleted",
    "test_in_a_versioned_bucket_an_overwritten_source_is_not_deleted",
)
_MARKER = "test_in_a_versioned_bucket_a_source_under_a_marker_counts_as_gone"
_OUTPUT = "test_an_odd_key_may_be_that_of_an_output"
_OBJECT = "test_an_odd_key_is_listed_read_copied_and_deleted_as_it_is"
_LONG = "test_a_key_of_more_than_1024_bytes_is_refused"
_NO_PATHS = (
    "two slashes",
    "slash first",
    "dot",
    "dots",
    "dots first",
    "dots last",
    "slash last",
    "many levels",
    "900 bytes",
    "900 bytes of unicode",
    "bell",
)
_NO_CONTROLS = "takes longer keys; starts no upload for a key with a control character"

DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        "moto",
        Condition.COPY,
        "the condition is ignored, and a range beyond the end is cut",
        (
            "test_a_source_that_changed_cannot_be_copied",
            "test_a_range_beyond_the_end_of_a_source_is_not_copied",
        ),
        ("Failed",),
    ),
    Difference(
        "moto",
        Condition.PART_CHECKSUM,
        "not compared",
        ("test_a_part_whose_bytes_are_not_those_of_its_checksum_is_refused",),
        ("Failed",),
    ),
    Difference(
        "moto",
        Condition.WHOLE_CHECKSUM,
        "not compared",
        ("test_a_wrong_checksum_keeps_the_output_from_being_published",),
        ("Failed",),
    ),
    Difference(
        "moto",
        Condition.PARTS,
        "parts in any order; part 0 means that there is no upload",
        ("test_parts_out_of_order_are_refused", "test_part_numbers_go_from_1_to_10000[0]"),
        ("Failed", "ObjectMissing"),
    ),
    Difference(
        "moto",
        Condition.GONE_UPLOAD,
        "answers 500; an upload takes parts under another key",
        (
            "test_an_upload_that_is_gone_takes_no_part_and_cannot_be_completed",
            "test_an_upload_belongs_to_its_key",
        ),
        ("Failed", "TransientStoreError"),
    ),
    Difference("moto", Condition.DELETE_MANY, "ETags are ignored", _DELETES, ("AssertionError",)),
    Difference(
        "moto",
        Condition.VERSIONS,
        "a delete behind a marker puts another one",
        (_MARKER,),
        ("AssertionError",),
    ),
    Difference(
        "moto",
        Condition.KEYS,
        _NO_CONTROLS,
        # The answer to CreateMultipartUpload is then invalid XML.
        (_LONG, f"{_OUTPUT}[bell]"),
        ("Failed", "TransientStoreError"),
    ),
    Difference(
        "versitygw",
        Condition.COPIED_CHECKSUM,
        "a copied range gets that of its whole source",
        (
            "test_parts_may_be_ranges_of_a_source",
            "test_copied_and_uploaded_parts_make_one_output_with_one_checksum",
        ),
        ("FlexibleChecksumError",),
    ),
    Difference(
        "versitygw",
        Condition.UPLOAD_LIST,
        "the second page is refused",
        ("test_many_open_uploads_are_listed_page_by_page",),
        ("InvalidInput",),
    ),
    Difference(
        "versitygw", Condition.DELETE_MANY, "ETags are ignored", _DELETES, ("AssertionError",)
    ),
    Difference(
        "versitygw",
        Condition.VERSIONS,
        "a delete behind a marker puts another one, and the key cannot be created again",
        (_MARKER, "test_in_a_versioned_bucket_a_deleted_key_can_be_created_again"),
        ("AssertionError", "AlreadyExists"),
    ),
    Difference(
        "versitygw",
        Condition.KEYS,
        "keys are paths of files: no empty, `.` or `..` step, at most 255 bytes a step, none that "
        "ends in `/` or goes on where another ends; control characters are listed as others",
        (
            "test_a_key_may_go_on_where_another_ends",
            "test_a_changed_source_whose_key_no_xml_may_hold_is_not_deleted",
            *(f"{test}[{key}]" for test in (_OBJECT, _OUTPUT) for key in _NO_PATHS),
        ),
        ("AssertionError", "ClientError", "InvalidInput", "TransientStoreError"),
    ),
)


def strict(server: str) -> frozenset[Condition]:
    """Return the conditions that this server keeps like S3."""
    return frozenset(Condition) - {one.condition for one in DIFFERENCES if one.server == server}
