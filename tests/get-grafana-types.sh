#!/bin/sh
# Unpacks the types that Grafana's own schemas generate (grafana-foundation-sdk of PyPI, Apache-2.0) into FOLDER/grafana,
# once.  Nothing is installed.
#   get-grafana-types.sh FOLDER
set -eu
folder=$1
[ ! -d "$folder/grafana" ] || exit 0
echo "  GET  the types of Grafana's dashboards into $folder"
mkdir -p "$folder"
work=$(mktemp -d "$folder/new.XXXXXX")
trap 'rm -rf "$work"' EXIT
python3 -m pip download -q --no-deps -d "$work" 'grafana-foundation-sdk==1769699998!10.1.0' >"$work/log" 2>&1 || {
    tail -n 5 "$work/log" >&2
    exit 1
}
python3 -m zipfile -e "$work"/*.whl "$work/grafana"
mv "$work/grafana" "$folder/grafana"
