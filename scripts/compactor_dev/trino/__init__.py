"""Trino on this machine, for the bench of queries and for the tests of the readers' table.

build      its server and a Java for it, fetched once by their pinned digests
server     the server while it runs, over a Glue and an S3 that are named, and what asks it
"""
