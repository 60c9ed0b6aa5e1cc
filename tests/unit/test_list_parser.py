"""A page of ListObjectsV2, as different servers write it."""

from __future__ import annotations

from typing import Any

import pytest

from compactor.s3.list_parser import PAGE, ListedPage, install, page_of
from compactor.s3.store import make_client

AWS = (
    "<Contents><Key>{key}</Key><LastModified>2026-01-02T03:04:05.000Z</LastModified>"
    "<ETag>&quot;{etag}&quot;</ETag><ChecksumAlgorithm>CRC64NVME</ChecksumAlgorithm>"
    "<ChecksumType>FULL_OBJECT</ChecksumType><Size>7</Size>"
    "<StorageClass>GLACIER</StorageClass></Contents>"
)
WITHOUT_CLASS = (
    "<Contents>\n  <Key>{key}</Key>\n  <LastModified>2026-01-02T03:04:05.000Z</LastModified>\n"
    '  <ETag>"{etag}"</ETag>\n  <Size>7</Size>\n</Contents>'
)
OWNER_FIRST = (
    "<Contents><Owner><ID>1</ID></Owner><Size>7</Size><StorageClass>GLACIER</StorageClass>"
    "<ETag>&#34;{etag}&#34;</ETag><LastModified>2026-01-02T04:04:05+01:00</LastModified>"
    "<Key>{key}</Key></Contents>"
)


RESTORED = AWS.replace(
    "</StorageClass>",
    "</StorageClass><RestoreStatus><IsRestoreInProgress>false</IsRestoreInProgress>"
    "<RestoreExpiryDate>2026-03-02T00:00:00.000Z</RestoreExpiryDate></RestoreStatus>",
)


def written(*entries: str, rest: str = "") -> bytes:
    return f"<ListBucketResult>{rest}{''.join(entries)}</ListBucketResult>".encode()


def page(*entries: str, rest: str = "") -> ListedPage:
    return page_of(written(*entries, rest=rest), "logs")


@pytest.mark.parametrize("entry", [AWS, WITHOUT_CLASS, OWNER_FIRST])
def test_an_object_is_read_however_the_server_writes_it(entry):
    (one,) = page(entry.format(key="a/b.json", etag="e1")).objects
    assert (one.bucket, one.key, one.etag, one.size) == ("logs", "a/b.json", "e1", 7)
    assert one.last_modified == 1767323045.0
    assert one.storage_class == ("STANDARD" if entry is WITHOUT_CLASS else "GLACIER")


def test_entries_of_different_forms_on_one_page_are_all_read_in_order():
    forms = [AWS, WITHOUT_CLASS, OWNER_FIRST]
    entries = [form.format(key=f"{n}", etag="e") for n, form in enumerate(forms)]
    assert [one.key for one in page(*entries).objects] == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("raw", "rest", "key"),
    [
        ("a%2Bb%26c%0Ad+e", "<EncodingType>url</EncodingType>", "a+b&c\nd e"),
        ("a+b%41", "", "a+b%41"),
        ("a&amp;b&lt;c", "", "a&b<c"),
    ],
)
def test_keys_are_decoded_only_where_the_server_says_that_it_encoded_them(raw, rest, key):
    (one,) = page(AWS.format(key=raw, etag="e"), rest=rest).objects
    assert one.key == key


def test_a_token_counts_only_on_a_page_that_is_cut():
    token = "<NextContinuationToken>a&amp;b</NextContinuationToken>"
    assert page(rest=f"<IsTruncated>true</IsTruncated>{token}").token == "a&b"
    assert page(rest=f"<IsTruncated>false</IsTruncated>{token}").token == ""


def test_common_prefixes_are_distinguished_from_objects():
    level = "<CommonPrefixes><Prefix>a/</Prefix></CommonPrefixes>"
    both = page(AWS.format(key="x", etag="e"), level + level.replace("a/", "b/"))
    assert both.prefixes == ("a/", "b/")
    assert len(both.objects) == 1


@pytest.mark.parametrize(
    ("raw", "etag"),
    [
        ("&quot;e1&quot;", "e1"),
        ("&quot;a&amp;b&quot;", "a&b"),
        ("&quot;&#34;e1&#34;&quot;", "e1"),
        ("&quot;e1", "e1"),
        ("&#34;e1&quot;", "e1"),
        ("&quot;", ""),
        ("e1-2", "e1-2"),
    ],
)
def test_an_etag_loses_its_quotes_however_they_are_written(raw, etag):
    (one,) = page(AWS.replace("&quot;{etag}&quot;", raw).format(key="k")).objects
    assert one.etag == etag


@pytest.mark.parametrize("raw", ["&quot;e&nbsp;1&quot;", "&quot;e&#0;1&quot;"])
def test_an_etag_with_what_xml_does_not_know_is_an_error(raw):
    with pytest.raises(ValueError, match=r"entity|character"):
        page(AWS.replace("&quot;{etag}&quot;", raw).format(key="k"))


def test_of_archived_objects_the_page_shows_which_have_a_restored_copy_and_until_when():
    under_way = RESTORED.replace(">false<", ">true<").replace(
        "<RestoreExpiryDate>2026-03-02T00:00:00.000Z</RestoreExpiryDate>", ""
    )
    forms = {"a": RESTORED, "b": under_way, "c": AWS}
    entries = [form.format(key=key, etag="e") for key, form in forms.items()]
    found = page(*entries).objects
    assert [(one.key, one.restored_until) for one in found] == [
        ("a", 1772409600.0),
        ("b", 0.0),
        ("c", 0.0),
    ]


@pytest.mark.parametrize("moment", ["2026-02-30T00:00:00.000Z", "2026-13-01T00:00:00.000Z", "soon"])
def test_a_time_that_is_invalid_makes_the_page_unreadable(moment):
    entry = AWS.replace("2026-01-02T03:04:05.000Z", moment).format(key="k", etag="e")
    with pytest.raises(ValueError, match=r"day|month|isoformat"):
        page(entry)


def test_botocores_own_handlers_see_nothing_of_a_page_so_that_none_parses_it():
    client = make_client(connections=1, endpoint_url="http://127.0.0.1:1")
    install(client)
    body = written(AWS.format(key="k", etag="e"))
    seen = []

    def look(response_dict, **_):
        seen.append(response_dict["body"])

    client.meta.events.register_first("before-parse.s3.*", look)
    for sent in (body, b"<Error><Code>InternalError</Code></Error>"):
        answer: dict[str, Any] = {"status_code": 200, "body": sent}
        into: dict[str, Any] = {}
        client.meta.events.emit(
            "before-parse.s3.ListObjectsV2",
            operation_model=client.meta.service_model.operation_model("ListObjectsV2"),
            response_dict=answer,
            customized_response_dict=into,
        )
        assert (PAGE in into) == (sent == body)
    assert len(seen[0]) < 50
    assert seen[1].startswith(b"<Error>"), "errors are left to botocore"
