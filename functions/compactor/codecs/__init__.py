"""Encodings of whole objects, in bounded memory.

codecs          none, gzip and zstd: names, suffixes, encoders
decoders        gzip members and zstd frames one by one
parquet_footer  what a Parquet object says of its rows and columns
checksums       CRC32 of a whole from those of its parts
"""
