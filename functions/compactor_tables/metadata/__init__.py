"""Reads the metadata of tables; no data file is opened.

measuring      measures a table: measured_iceberg, measured_delta
iceberg_writes finds the partitions that a snapshot of an Iceberg table changed
"""
