#!/bin/bash
# Runs unit test executables, two at a time; prints a failing one's output whole and one line
# for the others, with what they skipped and why ("skipped: REASON").
export OMP_WAIT_POLICY=passive # as in runs: two programs share the processors
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

run_one() { # LOGS TEST
    local name log
    name=$(basename "$2")
    log=$1/$name
    if "$2" >"$log" 2>&1; then
        printf '  ok   %-24s %s\n' "$name" "$(sed -n 's/.*\[ *PASSED *\] *//p' "$log" | tail -n 1)"
        sed -n 's/^skipped: /       &/p' "$log"
    else
        touch "$log.failed"
        printf '  FAIL %s\n%s\n' "$name" "$(cat "$log")"
    fi
}
export -f run_one

printf '%s\0' "$@" | xargs -0 -n 1 -P 2 bash -c 'run_one "$0" "$1"' "$logs"
failed=$(find "$logs" -name '*.failed' | wc -l)
echo "unit: $(($# - failed)) passed, $failed failed"
[ "$failed" = 0 ]
