"""One thin module per Lambda function: decode, call one verb, encode."""
