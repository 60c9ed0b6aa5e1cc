"""One group of sources from its first GET to an output that readers see.

compact     the verb: one group in, one pending output out; open_output: while it is written
plain       the decompressed content of one source; detection: what format it is
copies      sources whose bytes S3 copies; again: those whose content is committed already
denied      sources that may not be read; twice: those that are read a second time
pending     an output that is stored and cannot be read yet, and its writer; parts: of its upload
reading_time  how long it is read for
group       what is done with one group before its commit
verify      what went in came out
publish     the verb: a committed output is made readable; confirm: and is what was hashed
restore     the verb: a source is given back; slices, ranges: from its output, or a part of it
"""
