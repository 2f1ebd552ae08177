#!/bin/sh
# The layer rule of ARCHITECTURE.md: who may include what.  Prints each violation.
cd "$(dirname "$0")/.." || exit 1
bad=0

only_in() { # HEADER-PATTERN ALLOWED-PATH-PATTERN
    found=$(grep -rnE "^ *# *include *[<\"]($1)[>\"]" --include='*.[ch]' --include='*.cu' --include='*.cuh' \
        daemon workloads cuda api db | grep -vE "^($2)")
    [ -z "$found" ] || { echo "<$1> is allowed only in $2:"; echo "$found"; bad=1; }
}
never_in() { # FOLDER INCLUDED-PATH-PATTERN
    found=$(grep -rnE "^ *# *include *\"($2)" --include='*.[ch]' --include='*.cu' --include='*.cuh' $1)
    [ -z "$found" ] || { echo "$1 must not include $2:"; echo "$found"; bad=1; }
}

only_in 'uv\.h' 'daemon/'
only_in 'microhttpd\.h' 'api/'
only_in 'sqlite3\.h' 'db/'
only_in 'cuda[a-z_]*\.h|cudnn[a-z_]*\.h|cublas[a-z_0-9]*\.h|nccl\.h|nvml\.h' 'cuda/'
only_in 'zlib\.h' 'workloads/evidence/'
only_in 'jansson\.h' 'api/|daemon/|workloads/evidence/'
never_in daemon/base '(daemon/[^b]|api/|db/|workloads/|cuda/)'
never_in db '(api/|daemon/[^b]|cuda/|workloads/(worker|workload))'
never_in api '(daemon/[^b]|cuda/|workloads/worker)'
never_in daemon 'cuda/'
never_in cuda '(daemon|api|db|workloads/evidence)/'
never_in workloads/instruments '(daemon|api|db|cuda|workloads/(worker|evidence))/'
never_in workloads/worker '(daemon|api|db|cuda|workloads/evidence)/'
never_in 'workloads/evidence' '(api|db|cuda|workloads/worker)/'
# shellcheck disable=SC2046 -- file names without spaces
never_in "$(echo $(ls workloads/*.c workloads/*.h))" '(daemon|api|db|cuda|workloads/evidence)/'
[ "$bad" = 0 ] && echo "  ok   layers"
exit "$bad"
