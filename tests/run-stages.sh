#!/bin/bash
# The stages of `make test` (everyday) and of `make test-deep` (deep), which between them run
# every test.  Stops at nothing; says at the end what failed.
set -u
cd "$(dirname "$0")/.." || exit 1
export WERROR=1
jobs=$(nproc)
passed=0
failed=0
failures=''
started=$SECONDS
REPROD_CACHE_DIR=$(mktemp -d) # stored choices of algorithms: not those of the user
export REPROD_CACHE_DIR
export NVCC_ARCHS=${NVCC_ARCHS-75} # with its PTX, which every GPU served can run
trap 'rm -rf "$REPROD_CACHE_DIR"' EXIT

stage() { # NAME COMMAND...
    local name=$1 from=$SECONDS
    shift
    echo "=== $name"
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        failures="$failures"$'\n'"  $name"
    fi
    echo "--- $name: $((SECONDS - from)) s"
}
build_and() { # TARGET MAKE-ARGUMENTS...
    local target=$1
    shift
    make --no-print-directory -j"$jobs" build-tests "$@" &&
        make --no-print-directory -j"$jobs" -Otarget "$target" "$@"
}

# Unit tests are built while system tests run.  A file's tests stay together: what they share is made once.
check_everyday() {
    make --no-print-directory -j"$jobs" build-system &&
        make --no-print-directory -j"$jobs" -Otarget check BESIDE=$((jobs * 5 / 2)) \
            PYTEST="-m 'not long' --dist loadfile"
}
everyday() {
    stage 'gcc: unit, system and web tests' check_everyday
}
deep() {
    make --no-print-directory get-slurm || echo 'skipped: real Slurm'
    make --no-print-directory get-prometheus || echo 'skipped: real Prometheus and Alertmanager'
    stage 'lint, without the analyzer' make --no-print-directory -j"$jobs" lint LINT=quick
    stage 'gcc: long tests' build_and check-system BESIDE=$((jobs * 2)) PYTEST='-m long'
    stage 'gcc: what an audit planted is noticed' build_and mutate MUTANTS=0
    stage "nvcc's PTX on a CPU, what is planted in it, and the machine code" build_and check-ptx-short
    stage "nvcc's host code and PTX, with imitations of libraries that fail" build_and check-ptx-libraries
    stage 'clang: every branch of what judges is taken' \
        make --no-print-directory -j"$jobs" coverage COVERAGE_RESULT=
    export REPROD_KILLS=10 # everyday killed the service more often; make soak: at 10,000 points
    # What another compiler and another OpenMP can change: bits, races, processes.  Unit tests of
    # these rooms are the same programs as those whose branches were counted.
    stage 'clang: unit and system tests' build_and check CC=clang WITHOUT='db evidence jobs run trace' \
        PYTEST="-m flavour -k 'golden or detection or processes or worker'"
    # Workloads run in its unit tests, each in a process of its own: without the three that
    # ask only for their bits.
    stage 'AddressSanitizer, UBSan: unit and system tests' \
        build_and check SAN=address,undefined CFLAGS="-O1 -g1" \
        PYTEST="-m flavour -k 'not real_workloads and not golden and not detection'"
    # The worker is not instrumented there (see the Makefile): its own tests would repeat others.
    local name worker_tests=''
    for name in worker processes detection golden; do
        worker_tests="$worker_tests --ignore=tests/system/test_$name.py"
    done
    stage 'ThreadSanitizer: unit and system tests' \
        build_and check SAN=thread CFLAGS="-O1 -g1" PYTEST="-m flavour $worker_tests"
}

case ${1-} in
everyday | deep)
    command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ] ||
        echo 'skipped: the CUDA worker, since there is no nvcc'
    "$1"
    ;;
*)
    echo 'run-stages.sh everyday|deep' >&2
    exit 2
    ;;
esac
echo "=== all stages: $((SECONDS - started)) s"
[ -z "$failures" ] || echo "failed stages:$failures"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
