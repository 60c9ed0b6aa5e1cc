"""Upserts: MERGE keeps the last record of each key in the table.

    merging       merges all committed outputs at the end of a job
    opening       opens the table that settings name: catalogs and extensions of the session
    tables        SparkUpserts: implements sinks.table_catalog.TableCatalog, so that tables with a
                  key share the table log and its publisher with all others
      winners     outputs -> the winner of each key -> its effect on the table
      engines     protocol for Iceberg and Delta: one conditional merge with its entry number
        iceberg   a MERGE into a branch; then one commit moves main to it and sets the number
        delta     a MERGE whose transaction identifier is the number

``compactor.sinks.upserts`` has the rules: which record wins, and why a merge is idempotent.
"""
