"""Every parser of bytes or texts from outside, and what it may raise: nothing else, whatever comes.

Both the property tests and the fuzzer run these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from xml.parsers import expat

from compactor.encoding.codecs import decompress_stream, decompress_whole, detect_compression
from compactor.encoding.parquet_file import column_chunks, open_parquet
from compactor.errors import IntegrityError, InvalidInput, UnreadableSource
from compactor.formats import Declaration, detect, framer_for
from compactor.formats.framing import Framed
from compactor.log.log import CommitLog
from compactor.log.manifest import restore_slice
from compactor.model import Compression, Format
from compactor.outputs.verify import check_commit
from compactor.rows.hive_types import NoHiveType, hive_columns
from compactor.rows.parquet_types import columns_of
from compactor.s3.list_parser import page_of
from compactor.settings.settings import Settings
from compactor.settings.uris import S3Uri, parse_source
from tests.support.examples import NOW, PARTITION, settings
from tests.support.framing import facts_of
from tests.support.memory_store import ManualClock, MemoryStore

Parser = Callable[[bytes], None]
PARSERS: dict[str, Parser] = {}
_MOST_PLAIN_BYTES = 4 << 20
_KEYS = ("a.json", "a.csv", "a.tsv", "a", "x_CloudTrail_y.json", "x_vpcflowlogs_y.log")
_DECLARED = (
    None,
    *(Declaration("*", name, header=True) for name in ("csv", "tsv")),
    Declaration("*", "csv", header=False, quotes=False, backslash=True),
    *(Declaration("*", one) for one in Format if one.value not in ("csv", "tsv", "parquet")),
)


def parser(parse: Parser) -> Parser:
    PARSERS[parse.__name__] = parse
    return parse


@parser
def compressed(data: bytes) -> None:
    """Whole and in pieces of any size a source has the same content, or is refused both times."""
    for compression in (detect_compression(data), Compression.GZIP, Compression.ZSTD):
        found = _decompressed(data, compression, len(data) or 1)
        assert _decompressed(data, compression, 1 + len(data) % 7) == found


def _decompressed(data: bytes, compression: Compression, size: int) -> bytes | None:
    chunks = (data[at : at + size] for at in range(0, len(data), size))
    if size >= len(data) and compression is not Compression.NONE:
        whole = decompress_whole(
            data, compression, max_expansion=None, most_bytes=_MOST_PLAIN_BYTES
        )
        if whole is not None:
            return whole
    plain = bytearray()
    try:
        for piece in decompress_stream(chunks, compression):
            plain += piece
            if len(plain) > _MOST_PLAIN_BYTES:
                return None
    except UnreadableSource:
        return None
    return bytes(plain)


@parser
def content(data: bytes) -> None:
    """What is detected and framed is given back, and its records are counted right."""
    # The first bytes choose name and options, so that a fuzzer finds its way to all of them.
    chosen, body = data[:3].ljust(3, b"\0"), data[3:]
    key, declared = _KEYS[chosen[0] % len(_KEYS)], _DECLARED[chosen[1] % len(_DECLARED)]
    lines = bool(chosen[2] & 1)
    try:
        found = detect(body, key, complete=True, declaration=declared)
        if found is None:
            return
        framer = framer_for(found.signature(Compression.NONE), lines=lines)
        framed = framer.frame(body)
    except UnreadableSource:
        return
    _check_framed(framed, body)
    stream = framer.stream()
    if stream is not None:
        pieces = [p for at in range(0, len(body), 5) for p in stream.feed(body[at : at + 5])]
        end = stream.finish()
        assert b"".join((*pieces, *end.slice)) == b"".join(framed.slice)
        assert facts_of(end) == facts_of(framed)


def _check_framed(framed: Framed, body: bytes) -> None:
    joined = b"".join(framed.slice)
    facts = facts_of(framed)
    assert restore_slice(joined, facts) == body
    assert framed.records >= 0
    assert not (facts.edits and facts.newlines_stand_for is not None)
    if facts.appended:
        assert joined.endswith(b"\n")


@parser
def footer(data: bytes) -> None:
    """A Parquet footer and its columns are read, or its object is not readable."""
    try:
        file = open_parquet(lambda start, length: data[start : start + length], len(data))
        columns_of(file)
        for number in range(file.num_row_groups):
            for chunk in column_chunks(file, number):
                assert chunk.compression
        hive_columns(file.schema_arrow)
    except (UnreadableSource, NoHiveType):
        return


@parser
def log_entry(data: bytes) -> None:
    """An entry of a log is one, or the log is damaged; and so is its output, if it lies."""
    store, given = MemoryStore(ManualClock(NOW)), settings()
    store.add_bucket("lake")
    bucket, key = given.layout.commit(PARTITION.path, 1)
    store.seed(bucket, key, data)
    log = CommitLog(store, given, PARTITION)
    try:
        log.load()
        for commit in log.every_commit():
            if commit.output is not None:
                store.seed(commit.output.bucket, commit.output.key, b"a\nb\n" * 9)
            check_commit(commit, store)
    except IntegrityError:
        return


@parser
def checkpoint(data: bytes) -> None:
    """A checkpoint is one, or the log is damaged."""
    store, given = MemoryStore(ManualClock(NOW)), settings()
    store.add_bucket("lake")
    bucket, prefix = given.layout.commits(PARTITION.path)
    key = f"{prefix}{7:020d}.checkpoint.json.gz"
    store.seed(bucket, key, data)
    try:
        CommitLog(store, given, PARTITION).load()
    except IntegrityError:
        return


@parser
def listing(data: bytes) -> None:
    """A page of a listing says what an XML parser reads in it, or is none."""
    try:
        keys = [one.key for one in page_of(data, "bucket").objects]
    except (ValueError, KeyError, OverflowError):
        return
    if b"<EncodingType>" not in data:
        _compare_with_xml(data, keys)


def _compare_with_xml(data: bytes, keys: list[str]) -> None:
    """Only where entries are written as S3 writes them."""
    reference = XmlKeys()
    try:
        reference.read(data)
    except expat.ExpatError:
        return
    if reference.usual:
        assert keys == reference.keys


class XmlKeys:
    """The keys of a listing, read by expat."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.usual = True
        self._path: list[str] = []
        self._text = ""

    def read(self, data: bytes) -> None:
        self.usual = not any(odd in data for odd in (b"\r", b"<!", b"<?", b":"))
        read = expat.ParserCreate()
        read.StartElementHandler = self._start
        read.EndElementHandler = self._end
        read.CharacterDataHandler = self._add
        read.Parse(data, True)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self.usual &= not attributes
        self._path.append(name)
        self._text = ""

    def _add(self, text: str) -> None:
        self._text += text

    def _end(self, name: str) -> None:
        if self._path == ["ListBucketResult", "Contents", "Key"]:
            self.keys.append(self._text)
        self.usual &= self._path[:2] != ["ListBucketResult", "Key"] and len(self._path) < 4
        self._path.pop()


@parser
def uri(data: bytes) -> None:
    """A URI that is accepted is one that is accepted again, and names what S3 can hold."""
    try:
        text = data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        text = data.decode("utf-8", "replace")
    try:
        place = S3Uri.parse("field", text)
    except InvalidInput:
        pass
    else:
        assert S3Uri.parse("field", place.uri) == place
        assert len(place.prefix.encode()) <= 1024
    try:
        source = parse_source(text)
    except ValueError:
        return
    assert parse_source(source.uri) == source


def input_fields(given: Any) -> None:
    """A run's input is accepted, and then accepted again as it was understood; or refused."""
    try:
        understood = Settings.from_input(given)
    except InvalidInput:
        return
    assert Settings.from_input(understood.to_dict()) == understood
