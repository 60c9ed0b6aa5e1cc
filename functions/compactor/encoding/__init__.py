"""Encodings of whole objects, in bounded memory.

codecs          none, gzip and zstd: what a source is encoded in, and its plain bytes
decoders        gzip members and zstd frames one by one, or from a point within
encoders        the same for outputs, with points at which decoding can begin
parquet_footer  what a Parquet object says of its rows and columns
output_encoding what keys show of sources, how outputs are written, and how large they are
checksums       CRC32 of a whole from those of its parts
"""
