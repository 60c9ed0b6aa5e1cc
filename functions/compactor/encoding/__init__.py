"""Encodings of whole objects, in bounded memory.

codecs          none, gzip and zstd: what a source is encoded in, and its plain bytes
decoders        gzip members and zstd frames one by one, or from a point within
encoders        the same for outputs, with points at which decoding can begin
parquet_footer  what a Parquet object says of its rows and columns
source_class    what the key of a source shows of its content and compression
output_encoding how outputs are compressed, and how large they are meant to be
checksums       CRC32 of a whole from those of its parts
"""
