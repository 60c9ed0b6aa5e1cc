"""Columnar outputs: merges many small Parquet objects, or converts records to Parquet.

    rounds        runs the groups of a round, a few concurrently, each as a separate Spark job
      groups      selects merge, convert or replay for one group
        merge     Parquet sources: schemas -> one safe superset -> rows
        convert   JSON, CSV and TSV sources: records -> columns, or rejects
          records   on the executors: splits sources into records
          blocks    records as a frame, and the result for each source
          parse     parses records into columns of the schema
          pin       the schema, given or inferred once (infer, sample)
          rejects   records that do not fit
        replay    rejects of earlier commits -> columns, if they fit by now
        origins   adds columns with each row's source, if a table's rows have a key
        output    rows -> staged Parquet -> read back -> parts of an upload
        staging   locations of sources and staged output (local, native)

The order of writes is that of every other group: parts at the final key that no reader sees,
then the commit, then publication. Spark itself writes to a location that query engines do not read.
"""
