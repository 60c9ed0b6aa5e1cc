"""One Parquet output: rows go to a temporary file, are read back, and stored as an upload."""

from __future__ import annotations

import shutil
import tempfile
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from compactor.destination import Destination
from compactor.encoding.encoders import encoder
from compactor.encoding.row_digest import RowDigest
from compactor.errors import IntegrityError, InvalidInput
from compactor.formats import content_type
from compactor.log.entries import Columnar, DeadLetters, Output
from compactor.model import Compression, Format, ObjectGroup
from compactor.outputs.output_writer import OutputWriter
from compactor.ports import ObjectStore
from compactor.rows.schema import leaves, simple, to_spark_json
from compactor.sizes import MIB

#: Codec of outputs whose sources have no Parquet codec, or one that few readers support.
USUAL_CODEC = "zstd"
#: Codecs that every Parquet reader supports.
KNOWN_CODECS = frozenset({"none", "snappy", "gzip", "zstd"})
#: Size of a row group in memory, before it is encoded.
ROW_GROUP_BYTES = 64 * MIB
_PIECE_BYTES = 4 * MIB
_READ_BYTES = 8 * MIB
# Arrays in memory: each takes some hundred bytes besides its values.
_MOST_ARRAYS = 20_000
# Column chunks of one output, whose metadata is held until its end.
_MOST_CHUNKS = 250_000


class RowsOutput:
    """The rows of one output, in the order in which they are appended.

    What is written depends on the rows alone, so a retry, or another engine, writes the same bytes.

    Args:
        schema: columns of the output.
        codec: compression inside it.
    """

    def __init__(self, schema: pa.Schema, codec: str) -> None:
        self._schema = schema
        self._codec = codec
        self._directory = Path(tempfile.mkdtemp(prefix="compactor-rows-"))
        self._path = self._directory / "rows.parquet"
        self._writer: pq.ParquetWriter | None = None
        self._held: list[pa.Table] = []
        self._held_bytes = 0
        self._written = RowDigest()
        self._leaves = leaves(schema)
        self._chunks = 0

    @property
    def rows(self) -> int:
        """Number of rows appended."""
        return self._written.rows + sum(int(one.num_rows) for one in self._held)

    def append(self, table: pa.Table) -> None:
        """Append rows of the output's columns.

        Raises:
            InvalidInput: the columns are so many that memory would not suffice.
        """
        if not table.num_rows:
            return
        self._held.append(table)
        self._held_bytes += table.nbytes
        if self._held_bytes >= ROW_GROUP_BYTES:
            self._write()
        elif len(self._held) * self._leaves > _MOST_ARRAYS:
            self._held = [pa.concat_tables(self._held).combine_chunks()]

    def store(
        self,
        group: ObjectGroup,
        store: ObjectStore,
        destination: Destination,
        *,
        counted: int,
        dead_letters: DeadLetters | None = None,
    ) -> Output:
        """Read the rows back, and store the file as parts of an upload that no reader sees yet.

        Args:
            group: that the output is of.
            store: where it goes.
            destination: of the partition's outputs.
            counted: rows, or records, counted in the sources.
            dead_letters: the records that are no rows.

        Raises:
            IntegrityError: the rows read back are not those appended.
            TransientStoreError: the store did not answer; nothing is stored.
        """
        self._write()
        self._open().close()
        self._writer = None
        found = self._read_back()
        columnar = Columnar(
            rows_in=counted,
            rows_out=found.rows,
            hash_in=self._written.hash,
            hash_out=found.hash,
            codec=self._codec,
            schema=to_spark_json(self._schema),
            dead_letters=dead_letters,
        )
        if columnar.fault:
            raise IntegrityError(columnar.fault)
        return self._upload(group, store, destination, columnar)

    def close(self) -> None:
        """Remove the temporary file."""
        self._held.clear()
        if self._writer is not None:
            self._writer.close()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _write(self) -> None:
        """Write the rows held as one row group."""
        if not self._held:
            return
        self._chunks += self._leaves
        if self._chunks > _MOST_CHUNKS:
            accepted = f"fewer than {self._leaves:,} columns and members for as many records"
            raise InvalidInput("parquet_schema", None, accepted)
        # Digest and writer take each column of each piece by itself.
        table = pa.concat_tables(self._held).combine_chunks()
        self._held.clear()
        self._held_bytes = 0
        self._written.add(table)
        self._open().write_table(table, row_group_size=table.num_rows)

    def _open(self) -> pq.ParquetWriter:
        """Return the file's writer. Without rows the file still has its columns."""
        if self._writer is None:
            # Without Arrow's own schema beside Parquet's, which only pyarrow would prefer.
            self._writer = pq.ParquetWriter(
                self._path, self._schema, compression=self._codec, store_schema=False
            )
        return self._writer

    def _read_back(self) -> RowDigest:
        found = RowDigest()
        buffer = _READ_BYTES // max(8, self._leaves)
        with pq.ParquetFile(self._path, pre_buffer=False, buffer_size=buffer) as file:
            if file.schema_arrow.types != self._schema.types:
                columns, wanted = (
                    ", ".join(map(simple, one.types)) for one in (file.schema_arrow, self._schema)
                )
                raise IntegrityError(f"the output has columns of {columns}, not {wanted}")
            for number in range(file.num_row_groups):
                found.add(file.read_row_group(number, use_threads=False))
        return found

    def _upload(
        self,
        group: ObjectGroup,
        store: ObjectStore,
        destination: Destination,
        columnar: Columnar,
    ) -> Output:
        key = destination.key(group, ".parquet")
        writer = OutputWriter(
            store,
            destination.bucket,
            key,
            encoder(Compression.NONE),
            content_type=content_type(Format.PARQUET, Compression.NONE),
            metadata=partial(destination.metadata, group),
        )
        try:
            with self._path.open("rb") as stream:
                for piece in iter(partial(stream.read, _PIECE_BYTES), b""):
                    writer.write(piece)
            upload_id, parts = writer.finish()
        except BaseException:
            writer.abort()
            raise
        return Output(
            bucket=destination.bucket,
            key=key,
            upload_id=upload_id,
            parts=parts,
            size=writer.size,
            crc32=writer.crc32,
            plain_bytes=None,
            records=columnar.rows_out,
            format=Format.PARQUET,
            compression=Compression.NONE,
            columnar=columnar,
        )


def codec_for(compression: str, found: str = USUAL_CODEC) -> str:
    """Return the compression inside an output.

    Args:
        compression: the setting.
        found: that of its sources.
    """
    if compression != "same":
        return compression
    return found if found in KNOWN_CODECS else USUAL_CODEC
