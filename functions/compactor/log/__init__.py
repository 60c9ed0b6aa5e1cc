"""The commit log: what was committed of which sources, on S3 and in memory.

log             CommitLog: reads a partition's log, commits by one create-if-absent PUT
entries         Commit and the Output it names
state           what a log says: a pure fold over its entries
encoding        entries and checkpoints as they lie on S3
log_reader      the logs of a destination, found without knowing its partitions
log_search      the log, and the commit, that a key belongs to
log_objects     the objects of one log, by one LIST
identity        which log a state is
completeness    whether a log has every entry it ever had
witness         keeps the number of an entry taken if the entry is deleted
process_cache   what a process has read of a state, so that it need not ask again
manifest        where each source lies in its output; slice_facts: how its bytes come back
columnar        what a commit keeps of an output of rows; rejects: records that fit no column
content_index   which contents a log has of which keys; digests: the sources it names
schemes         how a destination's sources are divided into partitions
left_alone      sources left alone, counted by reason; size_counts: objects by size
resting         partitions in which nothing was left to do
"""
