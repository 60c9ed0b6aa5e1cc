"""Outputs that hold rows: many small Parquet objects into one, or records into Parquet.

    rounds        groups of a round, a few concurrently, each a Spark job of its own
      groups      picks the way for one group
        merge     Parquet sources: schemas -> one safe superset -> rows
        convert   JSON, CSV and TSV sources: records -> columns, or rejects
          records   on the executors: sources into records
          blocks    records as a frame, and what each source gave
          parse     records into columns of the schema
          pin       the schema, given or found out once (infer, sample)
          rejects   what does not fit
        replay    rejects of earlier commits -> columns, as far as they fit by now
        origins   where each row comes from, as columns of it, where a table's rows have a key
        output    rows -> staged Parquet -> read back -> parts of an upload
        staging   where sources and staged output lie (local, native)

The order of writes is that of every other group: parts at the final key that no reader sees,
then the commit, then publication. Spark itself writes where no query engine looks.
"""
