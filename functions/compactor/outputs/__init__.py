"""One group of sources, from its first GET to a published output.

compact           compacts one group into one pending output; open_output: the output in progress
group             reads, stores and verifies one group, before its commit
group_reading     the time limit for reading, and unreadable sources
plain_content     the decompressed content of one source, inflated in a separate thread
detection         its format by settings and first bytes; neighbours: by the sources around it
copies            sources whose bytes S3 copies
pending           PendingOutput: stored, but not readable
output_writer     encodes an output in a thread and uploads it part by part
verify            checks outputs against manifests, before the commit and after publication
publish           makes a committed output readable
restore           returns a source's content; slices: its part of an output
"""
