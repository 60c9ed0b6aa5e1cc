"""``make bench ARGS="worker|queries …"``: one harness, two scenarios.

    worker     a worker compared with a bare loop (``loop``), or with the worker of another commit
               (``handler`` runs either)
    queries    DuckDB (``reader``) on the same records, before and after compaction
    datasets   the sources, and digests of the records that outputs must contain
    front      an S3 with latency: sources from memory, everything else from moto's server
    measure    measured processes, rounds, figures

Each candidate is a separate process; candidates take turns within a round, and ratios are computed
within a round. Candidates and servers share the machine.
"""
