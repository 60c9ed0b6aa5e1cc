"""Reads the metadata of tables; no data file is opened.

measuring      measures a table: measured_iceberg, measured_delta
"""
