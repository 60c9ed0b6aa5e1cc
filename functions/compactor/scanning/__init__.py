"""A first look at a bucket: what is below a prefix, and which settings suit it. Read-only.

listing_sums  sizes, storage classes and arrivals, in constant memory
date_levels   dates in the levels of a key, in date_format's directives
layouts       counts for each possible layout of the keys
choosing      the layout that the keys have, or the two best if that is not clear
proposals     the input of a run for a layout
savings       what that run would cost and save
sample        formats and compressions of a few objects
scan          the command: a listing -> all of the above
survey        estimates how many keys follow those that were listed
"""
