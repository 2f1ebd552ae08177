#!/bin/sh
# Installs what reprod needs and this machine lacks.  Silent when nothing is missing.
#   install-deps.sh run     to build and serve
#   install-deps.sh test    also what the tests use
# Debian and Ubuntu: through apt-get (with sudo where not root).  Elsewhere: says what is
# missing and exits 1.
set -eu
what=${1:-run}
missing=''
optional=''

need() { # PACKAGE COMMAND...: PACKAGE is missing unless COMMAND succeeds
    package=$1
    shift
    "$@" >/dev/null 2>&1 || missing="$missing $package"
}
has() { command -v "$1" >/dev/null 2>&1; }
openmp() { echo 'int main(void){return 0;}' | "$1" -x c -fopenmp -o /dev/null -; }
sanitizer() {
    echo 'int LLVMFuzzerTestOneInput(void){return 0;}' |
        clang -x c -fsanitize=fuzzer,address -o /dev/null -
}
python_has() {
    for p in python3 /usr/bin/python3; do
        "$p" -c "import $1" 2>/dev/null && return 0
    done
    return 1
}
onednn() { PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null | grep -q 'libdnnl\.so\.2'; }
known() { [ -n "$1" ] && has apt-cache && apt-cache show "$1" >/dev/null 2>&1; }

need gcc has gcc
need libc6-dev sh -c 'echo "#include <stdio.h>" | gcc -E -x c -'
need make has make
need pkg-config has pkg-config
need libuv1-dev pkg-config --exists libuv
need libmicrohttpd-dev pkg-config --exists libmicrohttpd
need libgnutls28-dev pkg-config --exists gnutls
need libjansson-dev pkg-config --exists jansson
need libsqlite3-dev pkg-config --exists sqlite3
need zlib1g-dev pkg-config --exists zlib
if [ "$what" = test ]; then
    need g++ has g++
    need clang has clang
    has clang && need libclang-rt-dev sanitizer
    has clang && need libomp-dev openmp clang
    need llvm has llvm-cov
    need clang-format has clang-format
    need clang-tidy has clang-tidy
    need cppcheck has cppcheck
    need libcmocka-dev pkg-config --exists cmocka
    need curl has curl
    need jq has jq
    need python3 has python3
    need python3-pytest python_has pytest
    need python3-pytest-xdist python_has xdist
    need python3-pip python_has 'pytest, xdist, pip' # of the interpreter that runs the tests
    need python3-selenium python_has selenium
    need python3-yaml python_has yaml
    need chromium has chromium
    need chromium-driver has chromedriver
    # Without clang the two checks above could not run; its packages come together.
    case "$missing" in *' clang '* | *' clang') missing="$missing libclang-rt-dev libomp-dev" ;; esac
    # Its tests are skipped without it, so not getting it stops nothing.
    onednn || optional=libdnnl2
fi
[ -n "$missing" ] || known "$optional" || exit 0

if ! has apt-get; then
    echo "Missing on this system, named as Debian names them:$missing" >&2
    echo "Install them with your package manager, then try again." >&2
    exit 1
fi
as_root=''
if [ "$(id -u)" != 0 ]; then
    as_root=sudo
    if ! has sudo; then
        [ -n "$missing" ] || exit 0
        echo "Missing:$missing (not root, and there is no sudo)" >&2
        exit 1
    fi
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive
get='apt-get -o DPkg::Lock::Timeout=600 install -q -y --no-install-recommends'
if [ -n "$missing" ]; then
    echo "Installing:$missing"
    # shellcheck disable=SC2086 -- the list is meant to be split
    if ! { $as_root apt-get update -q && $as_root $get $missing; } >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        exit 1
    fi
fi
if known "$optional"; then
    echo "Installing: $optional"
    # Nobody is asked for a password for its sake.
    ${as_root:+sudo -n} $get "$optional" >"$log" 2>&1 ||
        echo "Could not install $optional; going on without it"
fi
