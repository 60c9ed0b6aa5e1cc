"""One group of sources, from its first GET to a published output.

compact           the verb: one group in, one pending output out; open_output: while it is written
group             read, store and verify one group, before its commit
group_reading     for how long sources are read, what may not be, and what is beside their bytes
plain_content     the decompressed content of one source, inflated in a thread of its own
detection         its format, by settings and first bytes; neighbours: by the sources around it
copies            sources whose bytes S3 copies
known_contents    sources whose content a commit has already
second_pass       what is read a second time; row_recount: the same for rows
pending           PendingOutput: stored, not readable
output_writer     writes an upload part by part; segments: how it is encoded, by several threads
verify            what went in came out, before the commit and after the publication
publish           the verb: a committed output becomes readable
restore           the verb: a source's content; slices, ranges: its part of an output
mapping           which output holds which source (pure)
"""
