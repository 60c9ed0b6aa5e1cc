"""What is no text, or not in an encoding that bytes can be searched in."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import marshal
import pickle
import struct
import tarfile
import wave
import zipfile
import zlib

from tests.zoo.families.text import EITHER, LEFT, js, kind
from tests.zoo.readers import blob, document, lines, nothing

_UNICODE = "The Unicode Standard: encoding schemes and byte order marks"
_UNICODE_URL = "https://www.unicode.org/faq/utf_bom.html"
_RFC = "https://www.rfc-editor.org/rfc/"


def _binary(name, page, url, ending):
    return kind(name, page=page, url=url, reader=blob, verdict=LEFT, ending=ending)


def _logs(chance):
    return chance.rows(lambda: f"{chance.iso()} INFO {chance.words()}").encode()


# Columns and rows.


@_binary("Parquet", "Parquet file format", "https://parquet.apache.org/docs/file-format/",
         ".parquet")  # fmt: skip
def _parquet(chance):
    return b"PAR1" + chance.randbytes(80) + struct.pack("<I", 40) + b"PAR1"


@_binary("Parquet without its name", "Parquet file format",
         "https://parquet.apache.org/docs/file-format/", "")  # fmt: skip
def _parquet_bare(chance):
    return b"PAR1" + chance.randbytes(80) + struct.pack("<I", 40) + b"PAR1"


@_binary("ORC", "ORC Specification v1", "https://orc.apache.org/specification/ORCv1/", ".orc")
def _orc(chance):
    return b"ORC" + chance.randbytes(80) + b"\x03ORC\x18"


@_binary("ORC whose first bytes are text", "ORC Specification v1",
         "https://orc.apache.org/specification/ORCv1/", ".orc")  # fmt: skip
def _orc_text(chance):
    return b"ORC" + chance.words(9, 12).encode() + b"\x03ORC\x18"


@_binary("Avro", "Avro Specification: object container files",
         "https://avro.apache.org/docs/1.12.0/specification/", ".avro")  # fmt: skip
def _avro(chance):
    schema = b'{"type":"string"}'
    head = b"Obj\x01\x02\x16avro.schema" + bytes([2 * len(schema)]) + schema + b"\x00"
    return head + chance.randbytes(16) + b"\x02\x0a\x08" + chance.randbytes(20)


@_binary("Avro without a container", "Avro Specification: single-object encoding",
         "https://avro.apache.org/docs/1.12.0/specification/", ".bin")  # fmt: skip
def _avro_single(chance):
    return b"\xc3\x01" + chance.randbytes(8) + b"\x0c" + chance.word()[:6].encode()


@_binary("Arrow stream", "Arrow Columnar Format: IPC",
         "https://arrow.apache.org/docs/format/Columnar.html", ".arrows")  # fmt: skip
def _arrow(chance):
    return b"\xff\xff\xff\xff" + struct.pack("<I", 64) + chance.randbytes(64)


@_binary("Arrow file", "Arrow Columnar Format: IPC",
         "https://arrow.apache.org/docs/format/Columnar.html", ".arrow")  # fmt: skip
def _arrow_file(chance):
    return b"ARROW1\0\0" + chance.randbytes(64) + b"ARROW1"


@_binary("Hadoop sequence file", "SequenceFile (Hadoop)",
         "https://hadoop.apache.org/docs/stable/api/org/apache/hadoop/io/SequenceFile.html",
         ".seq")  # fmt: skip
def _sequence_file(chance):
    return b"SEQ\x06\x19org.apache.hadoop.io.Text" + chance.randbytes(60)


@_binary("MessagePack", "MessagePack specification",
         "https://github.com/msgpack/msgpack/blob/master/spec.md", ".msgpack")  # fmt: skip
def _msgpack(chance):
    def one():
        host, text = chance.word().encode(), chance.words(2, 3).encode()
        return (
            b"\x83\xa4host" + bytes([0xA0 | len(host)]) + host
            + b"\xa1n" + bytes([chance.randint(1, 127)])
            + b"\xa3msg\xd9" + bytes([len(text)]) + text
        )  # fmt: skip

    return b"".join(one() for _ in range(4))


@_binary("MessagePack of short strings", "MessagePack specification",
         "https://github.com/msgpack/msgpack/blob/master/spec.md", "")  # fmt: skip
def _msgpack_short(chance):
    words = [chance.word().encode() for _ in range(12)]
    return bytes([0x9C]) + b"".join(bytes([0xA0 | len(one)]) + one for one in words)


@_binary("CBOR", "RFC 8949: Concise Binary Object Representation (CBOR)", _RFC + "rfc8949", ".cbor")
def _cbor(chance):
    word = chance.word().encode()
    return b"\xd9\xd9\xf7\xa2\x61a" + bytes([0x60 | len(word)]) + word + b"\x61b\x18\x2a"


@_binary("CBOR sequence", "RFC 8742: CBOR Sequences", _RFC + "rfc8742", ".cborseq")
def _cbor_sequence(chance):
    def one():
        word = chance.word().encode()
        return b"\xa1\x64name" + bytes([0x60 | len(word)]) + word

    return b"".join(one() for _ in range(5))


@_binary("Protobuf", "Encoding (Protocol Buffers)",
         "https://protobuf.dev/programming-guides/encoding/", ".pb")  # fmt: skip
def _protobuf(chance):
    word = chance.words().encode()[:100]
    return (
        b"\x08\x96\x01\x12" + bytes([len(word)]) + word + b"\x18" + bytes([chance.randint(1, 99)])
    )


@_binary("Protobuf, delimited", "Techniques: streaming multiple messages (Protocol Buffers)",
         "https://protobuf.dev/programming-guides/techniques/", ".pb")  # fmt: skip
def _protobuf_delimited(chance):
    def one():
        word = chance.words(3, 5).encode()
        body = b"\x0a" + bytes([len(word)]) + word + b"\x10" + bytes([chance.randint(1, 99)])
        return bytes([len(body)]) + body

    return b"".join(one() for _ in range(6))


@_binary("Protobuf of one long string", "Encoding (Protocol Buffers)",
         "https://protobuf.dev/programming-guides/encoding/", ".bin")  # fmt: skip
def _protobuf_text(chance):
    word = chance.words(12, 15).encode()[:100]
    return b"\x0a" + bytes([len(word)]) + word


@_binary("Thrift compact", "Thrift Compact protocol encoding",
         "https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md",
         ".thrift")  # fmt: skip
def _thrift(chance):
    word = chance.word().encode()
    return b"\x82\x21\x01\x04call\x18" + bytes([len(word)]) + word + b"\x00"


@_binary("Kinesis Producer Library record", "KPL Aggregated Record Format",
         "https://github.com/awslabs/amazon-kinesis-producer/blob/master/aggregation-format.md",
         "")  # fmt: skip
def _kpl(chance):
    return b"\xf3\x89\x9a\xc2\x0a\x011\x1a\x08" + chance.randbytes(40)


@_binary("Amazon Ion binary", "Amazon Ion Binary Encoding",
         "https://amazon-ion.github.io/ion-docs/docs/binary.html", ".10n")  # fmt: skip
def _ion(chance):
    word = chance.word().encode()
    return b"\xe0\x01\x00\xea" + bytes([0x80 | len(word)]) + word + b"\x21\x2a"


@_binary(
    "Python pickle", "pickle (Python)", "https://docs.python.org/3/library/pickle.html", ".pkl"
)
def _pickle(chance):
    return pickle.dumps({"a": chance.word(), "b": [1, 2.5]})


@_binary("Python pickle, protocol 0", "pickle (Python)",
         "https://docs.python.org/3/library/pickle.html", ".pkl")  # fmt: skip
def _pickle_text(chance):
    return pickle.dumps({"a": chance.word(), "b": [1, 2.5]}, protocol=0)


@_binary("Java serialization", "Java Object Serialization Specification",
         "https://docs.oracle.com/en/java/javase/21/docs/specs/serialization/protocol.html",
         ".ser")  # fmt: skip
def _java(chance):
    word = chance.word().encode()
    return b"\xac\xed\x00\x05t\x00" + bytes([len(word)]) + word


@_binary("NumPy array", "numpy.lib.format", "https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html", ".npy")  # fmt: skip
def _numpy(chance):
    head = b"{'descr': '<f8', 'fortran_order': False, 'shape': (4,), }".ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + chance.randbytes(32)


@_binary("HDF5", "HDF5 File Format Specification",
         "https://support.hdfgroup.org/documentation/hdf5/latest/_f_m_t3.html", ".h5")  # fmt: skip
def _hdf5(chance):
    return b"\x89HDF\r\n\x1a\n" + chance.randbytes(80)


@_binary("LevelDB table", "LevelDB table format",
         "https://github.com/google/leveldb/blob/main/doc/table_format.md", ".ldb")  # fmt: skip
def _leveldb(chance):
    return chance.randbytes(90) + b"\x57\xfb\x80\x8b\x24\x75\x47\xdb"


@_binary("TFRecord", "TFRecord and tf.train.Example",
         "https://www.tensorflow.org/tutorials/load_data/tfrecord", ".tfrecord")  # fmt: skip
def _tfrecord(chance):
    body = chance.randbytes(30)
    return struct.pack("<Q", 30) + chance.randbytes(4) + body + chance.randbytes(4)


# Archives and compressions.


@_binary("zip", "APPNOTE.TXT: .ZIP File Format Specification",
         "https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT", ".zip")  # fmt: skip
def _zip(chance):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(zipfile.ZipInfo("a.log"), _logs(chance))
    return out.getvalue()


@_binary("zip, empty", "APPNOTE.TXT: .ZIP File Format Specification",
         "https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT", ".zip")  # fmt: skip
def _zip_empty(chance):
    del chance
    return b"PK\x05\x06" + bytes(18)


@_binary("tar", "pax: ustar Interchange Format (POSIX)",
         "https://pubs.opengroup.org/onlinepubs/9699919799/utilities/pax.html", ".tar")  # fmt: skip
def _tar(chance):
    out, body = io.BytesIO(), _logs(chance)
    with tarfile.open(fileobj=out, mode="w") as archive:
        member = tarfile.TarInfo("a.log")
        member.size = len(body)
        archive.addfile(member, io.BytesIO(body))
    return out.getvalue()


@_binary("tar.gz", "pax: ustar Interchange Format (POSIX)",
         "https://pubs.opengroup.org/onlinepubs/9699919799/utilities/pax.html", ".tgz")  # fmt: skip
def _tgz(chance):
    return gzip.compress(_tar(chance), mtime=0)


@_binary("ar", "ar(5): archive file format", "https://man.freebsd.org/cgi/man.cgi?query=ar&sektion=5",
         ".a")  # fmt: skip
def _ar(chance):
    body = _logs(chance)
    return (
        b"!<arch>\n"
        + b"a.log/          0           0     0     644     %-10d`\n" % len(body)
        + body
    )


@_binary("cpio", "cpio(5)", "https://man.freebsd.org/cgi/man.cgi?query=cpio&sektion=5", ".cpio")
def _cpio(chance):
    return b"070701" + chance.hexes(104).encode() + b"a.log\0" + _logs(chance)


@_binary("7z", "7z Format (7-Zip)", "https://py7zr.readthedocs.io/en/latest/archive_format.html",
         ".7z")  # fmt: skip
def _seven(chance):
    return b"7z\xbc\xaf\x27\x1c\x00\x04" + chance.randbytes(80)


@_binary("RAR", "RAR 5.0 archive format", "https://www.rarlab.com/technote.htm", ".rar")
def _rar(chance):
    return b"Rar!\x1a\x07\x01\x00" + chance.randbytes(80)


@_binary("xz", "The .xz File Format", "https://tukaani.org/xz/xz-file-format.txt", ".log.xz")
def _xz(chance):
    return lzma.compress(_logs(chance))


@_binary("lzma alone", "The .lzma File Format",
         "https://svn.python.org/projects/external/xz-5.0.3/doc/lzma-file-format.txt",
         ".log.lzma")  # fmt: skip
def _lzma(chance):
    return lzma.compress(_logs(chance), format=lzma.FORMAT_ALONE)


@_binary("bzip2", "bzip2 and libbzip2", "https://sourceware.org/bzip2/manual/manual.html",
         ".log.bz2")  # fmt: skip
def _bzip2(chance):
    return bz2.compress(_logs(chance))


@_binary("lz4", "LZ4 Frame Format Description",
         "https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md", ".log.lz4")  # fmt: skip
def _lz4(chance):
    body = _logs(chance)
    size = struct.pack("<I", len(body) | 1 << 31)
    return b"\x04\x22\x4d\x18\x60\x70\x73" + size + body + bytes(4)


@_binary("lz4, legacy frames", "LZ4 Frame Format Description: legacy frame",
         "https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md", ".log.lz4")  # fmt: skip
def _lz4_legacy(chance):
    return b"\x02\x21\x4c\x18" + struct.pack("<I", 60) + chance.randbytes(60)


@_binary("snappy", "Snappy framing format",
         "https://github.com/google/snappy/blob/main/framing_format.txt", ".log.snappy")  # fmt: skip
def _snappy(chance):
    body = _logs(chance)[:200]
    chunk = b"\x01" + (len(body) + 4).to_bytes(3, "little") + chance.randbytes(4) + body
    return b"\xff\x06\x00\x00sNaPpY" + chunk


@_binary("snappy, raw", "Snappy compressed format description",
         "https://github.com/google/snappy/blob/main/format_description.txt", ".snappy")  # fmt: skip
def _snappy_raw(chance):
    body = chance.words(6, 7).encode()[:60]
    return bytes([len(body), (len(body) - 1) << 2]) + body


@_binary("zlib", "RFC 1950: ZLIB Compressed Data Format", _RFC + "rfc1950", ".zz")
def _zlib(chance):
    return zlib.compress(_logs(chance))


@_binary("deflate", "RFC 1951: DEFLATE Compressed Data Format", _RFC + "rfc1951", ".deflate")
def _deflate(chance):
    return zlib.compress(_logs(chance))[2:-4]


@_binary("compress (.Z)", "compress(1)", "https://pubs.opengroup.org/onlinepubs/9699919799/utilities/compress.html",
         ".log.Z")  # fmt: skip
def _compress(chance):
    return b"\x1f\x9d\x90" + chance.randbytes(80)


@_binary("Brotli", "RFC 7932: Brotli Compressed Data Format", _RFC + "rfc7932", ".log.br")
def _brotli(chance):
    # An uncompressed meta-block, as the quality for incompressible data gives it.
    body = _logs(chance)[:150]
    return bytes([0x0B, len(body) - 1 & 0xFF, 0x80]) + body + b"\x03"


@_binary("gzip in gzip", "RFC 1952: GZIP file format specification", _RFC + "rfc1952", ".log.gz")
def _gzip_twice(chance):
    return gzip.compress(gzip.compress(_logs(chance), mtime=0), mtime=0)


@_binary("zstd of a dictionary", "RFC 8878: Zstandard dictionaries", _RFC + "rfc8878", ".zdict")
def _dictionary(chance):
    return b"\x37\xa4\x30\xec" + chance.randbytes(80)


# Media, programs, captures.


@_binary("PDF", "ISO 32000-2 (PDF 2.0)", "https://pdfa.org/resource/iso-32000-2/", ".pdf")
def _pdf(chance):
    return f"%PDF-1.7\n1 0 obj\n<< /Title ({chance.word()}) >>\nendobj\n%%EOF\n"


@_binary(
    "PNG", "Portable Network Graphics (PNG) Specification", "https://www.w3.org/TR/png-3/", ".png"
)
def _png(chance):
    return b"\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR" + chance.randbytes(60)


@_binary("JPEG", "JPEG File Interchange Format (ITU-T T.871)", "https://www.itu.int/rec/T-REC-T.871",
         ".jpg")  # fmt: skip
def _jpeg(chance):
    return b"\xff\xd8\xff\xe0\x00\x10JFIF\x00" + chance.randbytes(60) + b"\xff\xd9"


@_binary("GIF", "Graphics Interchange Format 89a", "https://www.w3.org/Graphics/GIF/spec-gif89a.txt",
         ".gif")  # fmt: skip
def _gif(chance):
    return b"GIF89a" + chance.randbytes(60) + b";"


@_binary("PSD", "Adobe Photoshop File Formats Specification",
         "https://www.adobe.com/devnet-apps/photoshop/fileformatashtml/", ".psd")  # fmt: skip
def _psd(chance):
    return b"8BPS\x00\x01" + bytes(6) + chance.randbytes(60)


@_binary("TIFF", "TIFF Revision 6.0", "https://www.itu.int/itudoc/itu-t/com16/tiff-fx/docs/tiff6.pdf",
         ".tif")  # fmt: skip
def _tiff(chance):
    return b"II*\x00" + chance.randbytes(60)


@_binary("WAV", "Multimedia Programming Interface: RIFF WAVE (wave, Python)",
         "https://docs.python.org/3/library/wave.html", ".wav")  # fmt: skip
def _wav(chance):
    out = io.BytesIO()
    with wave.open(out, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(1)
        sound.setframerate(8000)
        sound.writeframes(chance.randbytes(50))
    return out.getvalue()


@_binary("MP3", "ID3 tag version 2.3.0", "https://id3.org/id3v2.3.0", ".mp3")
def _mp3(chance):
    return b"ID3\x03\x00\x00\x00\x00\x00\x0a" + bytes(10) + b"\xff\xfb" + chance.randbytes(60)


@_binary("MP4", "ISO/IEC 14496-12: ISO base media file format", "https://www.iso.org/standard/83102.html",
         ".mp4")  # fmt: skip
def _mp4(chance):
    return b"\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isomiso2" + chance.randbytes(60)


@_binary("ELF", "ELF(5)", "https://man7.org/linux/man-pages/man5/elf.5.html", "")
def _elf(chance):
    return b"\x7fELF\x02\x01\x01" + bytes(9) + chance.randbytes(60)


@_binary("Windows executable", "PE Format", "https://learn.microsoft.com/en-us/windows/win32/debug/pe-format",
         ".exe")  # fmt: skip
def _exe(chance):
    return b"MZ\x90\x00\x03\x00" + chance.randbytes(60)


@_binary("Java class", "The class File Format (JVMS 4)",
         "https://docs.oracle.com/javase/specs/jvms/se21/html/jvms-4.html", ".class")  # fmt: skip
def _class(chance):
    return b"\xca\xfe\xba\xbe\x00\x00\x00\x41" + chance.randbytes(60)


@_binary("WebAssembly", "WebAssembly Core Specification: binary format",
         "https://webassembly.github.io/spec/core/binary/modules.html", ".wasm")  # fmt: skip
def _wasm(chance):
    return b"\x00asm\x01\x00\x00\x00" + chance.randbytes(40)


@_binary("Python byte code", "marshal (Python)", "https://docs.python.org/3/library/marshal.html",
         ".pyc")  # fmt: skip
def _pyc(chance):
    code = compile(f"a = {chance.randrange(9)}", "a", "exec")
    return b"\xa7\x0d\x0d\x0a" + bytes(12) + marshal.dumps(code)


@_binary("pcap", "PCAP Capture File Format", "https://datatracker.ietf.org/doc/draft-ietf-opsawg-pcap/",
         ".pcap")  # fmt: skip
def _pcap(chance):
    head = b"\xd4\xc3\xb2\xa1\x02\x00\x04\x00" + bytes(8) + b"\x00\x00\x04\x00\x01\x00\x00\x00"
    return head + struct.pack("<IIII", chance.unix(), 0, 20, 20) + chance.randbytes(20)


@_binary("pcapng", "PCAP Next Generation Capture File Format",
         "https://datatracker.ietf.org/doc/draft-ietf-opsawg-pcapng/", ".pcapng")  # fmt: skip
def _pcapng(chance):
    return b"\x0a\x0d\x0d\x0a\x1c\x00\x00\x00\x4d\x3c\x2b\x1a" + chance.randbytes(40)


@_binary("Windows event log", "MS-EVEN6: BinXml; EVTX files",
         "https://learn.microsoft.com/en-us/openspecs/windows_protocols/ms-even6/", ".evtx")  # fmt: skip
def _evtx(chance):
    return b"ElfFile\x00" + bytes(16) + chance.randbytes(60)


@_binary(
    "systemd journal", "Journal File Format", "https://systemd.io/JOURNAL_FILE_FORMAT/", ".journal"
)
def _journal(chance):
    return b"LPKSHHRH" + bytes(8) + chance.randbytes(60)


@_binary("NetFlow v9 datagrams", "RFC 3954: Cisco Systems NetFlow Services Export Version 9",
         _RFC + "rfc3954", ".nfcapd")  # fmt: skip
def _netflow(chance):
    return b"\x00\x09\x00\x01" + chance.randbytes(60)


@_binary("DER certificate", "ITU-T X.690: DER", "https://www.itu.int/rec/T-REC-X.690", ".der")
def _der(chance):
    return b"\x30\x82\x01\x0a\x30\x82\x00\xf2" + chance.randbytes(90)


@_binary("OpenPGP", "RFC 9580: OpenPGP", _RFC + "rfc9580", ".gpg")
def _pgp(chance):
    return b"\x85\x01\x0c\x03" + chance.randbytes(90)


@_binary("AWS Encryption SDK", "AWS Encryption SDK message format reference",
         "https://docs.aws.amazon.com/encryption-sdk/latest/developer-guide/message-format.html",
         ".encrypted")  # fmt: skip
def _encrypted(chance):
    return b"\x02\x04\x78" + chance.randbytes(90)


@_binary("Random bytes, 48 of them", "random.randbytes (Python)",
         "https://docs.python.org/3/library/random.html", ".bin")  # fmt: skip
def _random(chance):
    return chance.randbytes(48)


@_binary("Random bytes without NULs", "random.randbytes (Python)",
         "https://docs.python.org/3/library/random.html", "")  # fmt: skip
def _random_bare(chance):
    return chance.randbytes(60).replace(b"\0", b"\x80")[:48]


@_binary("Random bytes above 127", "random.randbytes (Python)",
         "https://docs.python.org/3/library/random.html", ".log")  # fmt: skip
def _random_high(chance):
    return bytes(byte | 0x80 for byte in chance.randbytes(48))


# Text in other encodings.


def _wide(name, encoding, bom, ending):
    page = f"{_UNICODE}"

    @_binary(name, page, _UNICODE_URL, ending)
    def _write(chance):
        return bom + chance.rows(lambda: f"{chance.iso()} {chance.words()} ü", 2, 5).encode(
            encoding
        )

    return _write


_wide("UTF-16 with a BOM, little-endian", "utf-16-le", b"\xff\xfe", ".log")
_wide("UTF-16 with a BOM, big-endian", "utf-16-be", b"\xfe\xff", ".log")
_wide("UTF-16 without a BOM", "utf-16-le", b"", ".txt")
_wide("UTF-16 without a BOM, big-endian", "utf-16-be", b"", ".csv")
_wide("UTF-32 with a BOM", "utf-32-le", b"\xff\xfe\x00\x00", ".log")
_wide("UTF-32 without a BOM", "utf-32-be", b"", ".log")
_wide("EBCDIC", "cp037", b"", ".txt")


@_binary("UTF-16 of Chinese alone", _UNICODE, _UNICODE_URL, ".txt")
def _chinese(chance):
    text = "".join(chance.choice("日志服务器记录错误信息请求") for _ in range(40))
    return text.encode("utf-16-le")


@kind("UTF-16 JSON lines", page=_UNICODE, url=_UNICODE_URL, reader=blob, verdict=LEFT,
      ending=".json")  # fmt: skip
def _wide_json(chance):
    return b"\xff\xfe" + chance.rows(lambda: js(id=chance.randrange(99))).encode("utf-16-le")


@kind("Shift JIS", page="JIS X 0208 in Shift_JIS (Encoding Standard)",
      url="https://encoding.spec.whatwg.org/", reader=lines, verdict=EITHER, ending=".log")  # fmt: skip
def _shift_jis(chance):
    return chance.rows(lambda: f"{chance.iso()} 表示 ソフト {chance.word()}").encode("shift_jis")


@kind("GB18030", page="GB18030 decoder (Encoding Standard)",
      url="https://encoding.spec.whatwg.org/", reader=lines, verdict=EITHER, ending=".log")  # fmt: skip
def _gb(chance):
    return chance.rows(lambda: f"{chance.iso()} 日志 错误 {chance.word()}").encode("gb18030")


@kind(
    "UTF-7",
    page="RFC 2152: UTF-7",
    url=_RFC + "rfc2152",
    reader=lines,
    verdict=EITHER,
    ending=".eml",
)
def _seven_bits(chance):
    return "+/v8-" + chance.rows(lambda: f"{chance.iso()} {chance.words()} +APw-")


@kind("ISO-2022-JP", page="ISO-2022-JP decoder (Encoding Standard)",
      url="https://encoding.spec.whatwg.org/", reader=lines, verdict=EITHER, ending=".txt")  # fmt: skip
def _iso_2022(chance):
    return chance.rows(lambda: f"件名 表示 {chance.word()}").encode("iso-2022-jp")


@kind("Latin-1 application log", page="ISO 8859-1 (Encoding Standard: windows-1252)",
      url="https://encoding.spec.whatwg.org/", reader=lines, verdict=EITHER, ending=".log")  # fmt: skip
def _latin(chance):
    return chance.rows(
        lambda: f"{chance.at('%Y-%m-%d %H:%M:%S')} INFO Grüße {chance.words()}"
    ).encode("latin-1")


@kind("UTF-8 log that ends within a character", page="RFC 3629: UTF-8", url=_RFC + "rfc3629",
      reader=lines, verdict=EITHER, ending=".log")  # fmt: skip
def _cut_character(chance):
    text = chance.rows(lambda: f"{chance.at('%Y-%m-%d %H:%M:%S')} INFO {chance.words()} ü").encode()
    return text[:-2] if chance.number == 1 else text


@kind("Log with a NUL", page="logrotate: copytruncate leaves NULs",
      url="https://man7.org/linux/man-pages/man8/logrotate.8.html", reader=lines, verdict=EITHER,
      ending=".log")  # fmt: skip
def _nul(chance):
    text = chance.rows(lambda: f"{chance.at('%Y-%m-%d %H:%M:%S')} INFO {chance.words()}")
    return "\0" * 64 + text if chance.number == 2 else text


@kind("Log with NULs kept by setting", page="logrotate: copytruncate leaves NULs",
      url="https://man7.org/linux/man-pages/man8/logrotate.8.html", reader=lines, verdict=EITHER,
      ending=".log", given={"encoding": "any_bytes"})  # fmt: skip
def _nul_kept(chance):
    text = chance.rows(lambda: f"{chance.at('%Y-%m-%d %H:%M:%S')} INFO {chance.words()}")
    return text.replace("INFO", "IN\0FO") if chance.number == 2 else text


@kind("Latin-1 log by setting", page="ISO 8859-1 (Encoding Standard: windows-1252)",
      url="https://encoding.spec.whatwg.org/", reader=lines, verdict=EITHER, ending=".log",
      given={"encoding": "single_byte"})  # fmt: skip
def _latin_declared(chance):
    return chance.rows(
        lambda: f"{chance.at('%Y-%m-%d %H:%M:%S')} INFO Grüße {chance.words()}"
    ).encode("latin-1")


@kind("Log of Classic Mac OS line ends", page="Newline Guidelines (Unicode Standard 5.8)",
      url="https://www.unicode.org/versions/latest/core-spec/chapter-5/", reader=document,
      verdict=LEFT, ending=".log")  # fmt: skip
def _carriage_returns(chance):
    return chance.rows(lambda: f"{chance.at('%Y-%m-%d %H:%M:%S')} INFO {chance.words()}", end="\r")


@kind("Log with CRLF, cut between CR and LF", page="Newline Guidelines (Unicode Standard 5.8)",
      url="https://www.unicode.org/versions/latest/core-spec/chapter-5/", reader=lines,
      verdict=EITHER, ending=".log")  # fmt: skip
def _cut_line_end(chance):
    text = chance.rows(
        lambda: f"{chance.at('%Y-%m-%d %H:%M:%S')} INFO {chance.words()}", end="\r\n"
    )
    return text[:-1] if chance.number == 1 else text


@kind("Log by EBCDIC next-line characters", page="Newline Guidelines (Unicode Standard 5.8)",
      url="https://www.unicode.org/versions/latest/core-spec/chapter-5/", reader=lines,
      verdict=EITHER, ending=".log")  # fmt: skip
def _next_line(chance):
    return chance.rows(lambda: f"{chance.at('%Y-%m-%d %H:%M:%S')} {chance.words()}", end="\x85")


# Next to nothing.


@kind("Empty objects", page="PutObject (Amazon S3)",
      url="https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObject.html", reader=document,
      verdict=EITHER, ending=".log")  # fmt: skip
def _empty(chance):
    del chance
    return b""


@kind("A byte order mark alone", page=_UNICODE, url=_UNICODE_URL, reader=document, verdict=EITHER,
      ending=".csv")  # fmt: skip
def _bom_alone(chance):
    del chance
    return b"\xef\xbb\xbf"


@kind("One byte", page="PutObject (Amazon S3)",
      url="https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObject.html", reader=document,
      verdict=EITHER, ending="")  # fmt: skip
def _one_byte(chance):
    return chance.pick(("{", "a", "1", '"', "\0"))


@kind("Line ends alone", page="PutObject (Amazon S3)",
      url="https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObject.html", reader=nothing,
      verdict=EITHER, ending=".log")  # fmt: skip
def _line_ends(chance):
    return chance.pick(("\n", "\n\n", "\r\n", " \n", "\n"))


@kind("_SUCCESS markers", page="Committing work to S3 with the S3A Committers (Hadoop)",
      url="https://hadoop.apache.org/docs/stable/hadoop-aws/tools/hadoop-aws/committers.html",
      reader=document, verdict=EITHER, ending="_SUCCESS")  # fmt: skip
def _success(chance):
    return b"" if chance.number % 2 else b'{\n  "name" : "committer/1",\n  "success" : true\n}'
