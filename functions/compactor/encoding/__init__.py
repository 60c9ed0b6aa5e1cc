"""Encodings of whole objects, in bounded memory.

codecs          none, gzip and zstd: detects the encoding of sources and decodes them
encoders        encodes outputs
parquet_file    opens Parquet objects by ranges
output_encoding what keys show about sources; encoding and size of outputs
checksums       CRC32 of a whole object from those of its parts
"""
