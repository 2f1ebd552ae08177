#!/bin/bash
# Every fuzz target in turn: run.sh PROGRAM SECONDS FOLDER [TARGET...]
# FOLDER keeps what was found: FOLDER/corpus/TARGET (inputs that reach new code, where the
# next run goes on) and FOLDER/crash-TARGET-… (inputs that broke something).
# FOLDER/results.tsv has a line for each target: its exit code, runs, edges and seconds.
# Exits 1 if anything broke.
cd "$(dirname "$0")/../.." || exit 1
program=$1
seconds=$2
folder=$3
shift 3
mkdir -p "$folder"
# shellcheck disable=SC2046 -- names without spaces
[ $# -gt 0 ] || set -- $(find tests/fuzz/corpus -mindepth 1 -maxdepth 1 -printf '%f\n' | sort)
failed=0
: >"$folder/results.tsv"

seeds() { # TARGET: folders of inputs that are in the repository
    echo "tests/fuzz/corpus/$1"
    case $1 in
    profile) echo workloads/profiles ;;
    gpu_report) echo tests/gpu/results ;;
    esac
}

for target; do
    mkdir -p "$folder/corpus/$target"
    log=$folder/$target.log
    dictionary=tests/fuzz/$target.dict
    # shellcheck disable=SC2046
    REPROD_FUZZ=$target "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
        -max_len=16384 -print_final_stats=1 -artifact_prefix="$folder/crash-$target-" \
        $([ -e "$dictionary" ] && echo "-dict=$dictionary") \
        "$folder/corpus/$target" $(seeds "$target") >"$log" 2>&1
    code=$?
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    cover=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
    printf '%s\t%s\t%s\t%s\t%s\n' "$target" "$code" "$runs" "$cover" "$seconds" >>"$folder/results.tsv"
    printf '  %-4s %-12s %10s runs, %5s edges\n' "$([ $code = 0 ] && echo ok || echo FAIL)" \
        "$target" "${runs:-?}" "${cover:-?}"
    if [ $code != 0 ]; then
        failed=$((failed + 1))
        grep -E 'ERROR|SUMMARY|does not hold|Test unit written|must be one of' "$log" | sed 's/^/       /'
    fi
done
[ $failed = 0 ] || echo "$failed failed; see $folder"
[ $failed = 0 ]
