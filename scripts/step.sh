#!/bin/sh
# Runs one step of a make target: says what it is, then how long it took.
#
#   step.sh WHAT COMMAND...    "WHAT ... 12 s"; what the command prints is shown when it fails
set -eu

what=$1
shift
printf '%s ... ' "$what"
started=$(date +%s)
status=0
output=$("$@" 2>&1) || status=$?
seconds=$(($(date +%s) - started))
if [ "$status" -ne 0 ]; then
    printf 'failed after %d s\n%s\n' "$seconds" "$output"
    exit "$status"
fi
printf '%d s\n' "$seconds"
