"""Rows: turns the records of a group, or its Parquet objects, into one Parquet output, in Arrow.

The same code runs in a worker and in a Spark task, so both write the same bytes. It is imported
only by runs whose outputs hold rows, as pyarrow takes a third of a second to import.
"""
