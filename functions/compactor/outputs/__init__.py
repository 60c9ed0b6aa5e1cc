"""One group of sources, from its first GET to a published output.

compact           the verb: one group in, one pending output out; open_output: while it is written
group             read, store and verify one group, before its commit
group_deadline    how long sources are read for one output
plain_content     the decompressed content of one source; inflation: in a thread of its own
detection         its format, by settings and first bytes
lone_documents    the same by its neighbours; shared_lines: first lines that several sources share
copies            sources whose bytes S3 copies
known_contents    sources whose content a commit has already
denied_prefixes   whether one source or a whole prefix may not be read
attribute_reads   Content-Encoding, user metadata and tags of sources
second_pass       what is read a second time; row_recount: the same for rows
pending           PendingOutput: stored, not readable; parts: of its upload
segments          how an output is encoded, by several threads
verify            what went in came out
publish           the verb: a committed output becomes readable; confirm: it is what was hashed
restore           the verb: a source's content; slices, ranges: its part of an output
mapping           which output holds which source (pure)
"""
