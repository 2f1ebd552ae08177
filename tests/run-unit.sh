#!/bin/sh
# Runs unit test executables; prints a failing one's output whole and one line for the others.
failed=0
passed=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for t in "$@"; do
    if "$t" >"$log" 2>&1; then
        passed=$((passed + 1))
        printf '  ok   %-24s %s\n' "$(basename "$t")" "$(sed -n 's/.*\[ *PASSED *\] *//p' "$log" | tail -n 1)"
    else
        failed=$((failed + 1))
        printf '  FAIL %s\n' "$(basename "$t")"
        cat "$log"
    fi
done
echo "unit: $passed passed, $failed failed"
[ "$failed" = 0 ]
