"""A whole run over all partitions, wherever their work is done.

run       the loop: discover, compact each partition, clean up, report
begin     its first step, which the workflow's discover handler shares
here      workers that are this very process
orders    what is asked of a worker, and its answer; a desk carries them out
ports     who does the work: workers, Spark; who looks on
again     which failures are tried again, and when
progress  how far the run has come
reconcile what no event told of is registered, by LIST or an inventory: beside runs
rounds    reconciling a whole source by as many calls as it takes
"""
