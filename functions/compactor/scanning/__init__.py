"""What lies below a prefix, for a first look at a bucket: reads, decides nothing.

listing_sums  sizes, storage classes, arrivals: sums in constant memory
date_levels  dates in the levels of a key, in the words of date_format
layouts    what is counted of each way to read the keys
choosing   which of these ways the keys fit, or the two best where that is not clear
advice     settings that follow from how late objects arrive
proposals  the input of a run over it
savings    what that would cost and save
sample     a few objects looked at: formats and compressions
scan       the verb: a listing -> all of that
"""
