"""One thin module per Lambda function of maintenance: decode, call one verb, encode."""

from compactor.process.memory import collect_rarely

# Before anything else is imported: 5 % of the time that takes.
collect_rarely()
