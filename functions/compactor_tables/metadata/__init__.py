"""Reads the metadata of a table; no data file is opened.

measuring      measures a table: measured_iceberg, measured_delta
iceberg_writes which partitions a snapshot of an Iceberg table changed
delta_files    the objects of a Delta table, and the tags on them
"""
