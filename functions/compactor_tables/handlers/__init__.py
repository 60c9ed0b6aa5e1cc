"""One thin module per Lambda function of maintenance: decode, call one verb, encode."""

from compactor.process.memory import collect_rarely

# Called before the other imports, which it makes 5 % faster.
collect_rarely()
