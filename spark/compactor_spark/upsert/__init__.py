"""Upserts: of each key the last record is in the table, by MERGE.

    merging       the end of a job: all that is committed is merged
    opening       the table that settings name: catalogs and extensions of the session
    tables        SparkUpserts: implements sinks.table_catalog.TableCatalog, so that the table log
                  and its publisher are those of every other table
      winners     outputs -> the winner of each key -> what it does to the table
      engines     what is asked of Iceberg and of Delta: one merge, conditional, with its number
        iceberg   a MERGE into a branch; then main moves to it and the number is set, in one commit
        delta     a MERGE whose transaction identifier is the number

``compactor.sinks.upserts`` has the rules: what wins, and why a merge may be done twice.
"""
