"""Rewrites small files of tables on this machine, without Spark.

row_files      reads files concurrently, writes few, and compares the rows
iceberg, delta the rewrite of a partition, and its commit
"""
