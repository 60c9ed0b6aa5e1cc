"""The commit log: what was committed of which sources, on S3 and in memory.

log             CommitLog: reads a partition's log, commits by one create-if-absent PUT
entries         Commit and the Output it names
state           the state of a log: a pure fold over its entries
encoding        entries and checkpoints as stored on S3
log_reader      finds the logs of a destination without knowing its partitions
log_search      finds the log and the commit of a key
log_objects     the objects of one log, from one LIST
identity        the id of a state, named by its log entries and outputs
completeness    checks that a log still has every entry
witness         keeps an entry's number taken even if the entry is deleted
process_cache   what a process has read of a state, to avoid reading it again
manifest        maps sources to places in the output; slice_facts: restores their bytes
columnar        what a commit keeps of a Parquet output and of its dead-letter records
content_index   which contents of which keys a log has; digests: compact sets of identities
schemes         how a destination's sources are divided into partitions
left_alone      sources left alone, counted by reason; size_counts: objects by size
resting         partitions with nothing left to do
"""
