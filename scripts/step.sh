#!/bin/sh
# Runs one step of a make target: says what it is, then how long it took.
#
#   step.sh WHAT COMMAND...    "WHAT ... 12 s"; what the command prints is shown when it fails
#
# BESIDE=1 is for steps that run side by side: the end is a line of its own, again with WHAT.
set -eu

what=$1
shift
printf '%s ... ' "$what"
again=
if [ -n "${BESIDE:-}" ]; then
    printf '\n'
    again="$what ... "
fi
started=$(date +%s)
status=0
output=$("$@" 2>&1) || status=$?
seconds=$(($(date +%s) - started))
if [ "$status" -ne 0 ]; then
    printf '%sfailed after %d s\n%s\n' "$again" "$seconds" "$output"
    exit "$status"
fi
printf '%s%d s\n' "$again" "$seconds"
