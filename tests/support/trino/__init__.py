"""A local Trino, for tests of the readers' table.

build      the server and a Java for it, downloaded once by pinned digests
server     runs the server on a given Glue and S3, with a client
"""
