"""Parquet objects are opened as far as they go, and anything else is refused, not misread."""

from __future__ import annotations

import base64
import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow.parquet import encryption

from compactor.encoding.parquet_file import column_chunks, open_parquet
from compactor.errors import SourceChanged, UnreadableSource
from tests.support.parquet_example import PARQUET


def opened(body: bytes) -> pq.ParquetFile:
    return open_parquet(lambda start, length: body[start : start + length], len(body))


def test_the_footer_takes_one_read_and_a_long_one_a_second() -> None:
    names = [f"a column with a long name {number}" for number in range(2_000)]
    for columns, reads in ((["id"], 1), (names, 2)):
        stream = io.BytesIO()
        pq.write_table(pa.table({name: [1, 2, 3] for name in columns}), stream)
        body = stream.getvalue()
        asked: list[tuple[int, int]] = []

        def read_range(start: int, count: int, body: bytes = body, asked: list = asked) -> bytes:
            asked.append((start, count))
            return body[start : start + count]

        file = open_parquet(read_range, len(body))
        assert [len(list(column_chunks(file, 0))), file.metadata.num_rows] == [len(columns), 3]
        assert len(asked) == reads


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "truncated"),
        (b"PAR1", "truncated"),
        (PARQUET[:-1], "truncated"),
        (b"any other content that is long enough", "truncated"),
        (PARQUET[:-4] + b"PARE", "unknown_format"),
        (b"PAR1" + b"\0\0\0\0" + b"PAR1", "corrupt_compression"),
        (b"PAR1" + b"\xff\xff\xff\x7f" + b"PAR1", "corrupt_compression"),
        (b"PAR1" + b"\xff" * 400 + (400).to_bytes(4, "little") + b"PAR1", "corrupt_compression"),
        (b"PAR1" + b"\0" * 9 + (9).to_bytes(4, "little") + b"PAR1", "corrupt_compression"),
    ],
)
def test_what_is_no_whole_parquet_object_is_refused(body: bytes, reason: str) -> None:
    with pytest.raises(UnreadableSource) as refused:
        opened(body)
    assert refused.value.reason == reason


def test_an_error_of_the_store_is_passed_on() -> None:
    length = 1 << 20

    def read_range(start: int, count: int) -> bytes:
        if start + count < length + 12:
            raise SourceChanged("key", "etag", "gone")
        return bytes(count - 8) + length.to_bytes(4, "little") + b"PAR1"

    with pytest.raises(SourceChanged):
        open_parquet(read_range, length + 12)


class Keys(encryption.KmsClient):
    """Wraps no keys at all."""

    def __init__(self, config: object) -> None:
        super().__init__()

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:
        return base64.b64encode(key_bytes)

    def unwrap_key(self, wrapped_key: bytes, master_key_identifier: str) -> bytes:
        return base64.b64decode(wrapped_key)


def encrypted() -> bytes:
    """An object with a readable footer, of which one column is encrypted."""
    config = encryption.EncryptionConfiguration(
        footer_key="f", column_keys={"c": ["secret"]}, plaintext_footer=True
    )
    properties = encryption.CryptoFactory(Keys).file_encryption_properties(
        encryption.KmsConnectionConfig(), config
    )
    table = pa.table({"id": [1], "secret": ["x"]})
    stream = io.BytesIO()
    with pq.ParquetWriter(stream, table.schema, encryption_properties=properties) as writer:
        writer.write_table(table)
    return stream.getvalue()


def test_an_encrypted_column_is_refused_and_does_not_end_the_process() -> None:
    file = opened(encrypted())
    assert file.metadata.num_rows == 1
    with pytest.raises(UnreadableSource) as refused:
        list(column_chunks(file, 0))
    assert (refused.value.reason, refused.value.detail) == (
        "unknown_format",
        "it has encrypted columns",
    )


@pytest.mark.parametrize("body", [PARQUET, encrypted()], ids=["plain", "encrypted"])
@given(junk=st.binary(min_size=1, max_size=40), at=st.integers(0, 1_500))
def test_damaged_footers_are_read_or_refused_and_nothing_else(
    body: bytes, junk: bytes, at: int
) -> None:
    footer = len(body) - 8 - int.from_bytes(body[-8:-4], "little")
    start = footer + at % (len(body) - 8 - footer)
    damaged = bytearray(body)
    damaged[start : start + len(junk)] = junk[: len(body) - 8 - start]
    try:
        file = opened(bytes(damaged))
        for number in range(file.num_row_groups):
            for chunk in column_chunks(file, number):
                assert chunk.compression
                assert chunk.path_in_schema is not None
    except UnreadableSource:
        return
