#!/bin/sh
# Unpacks Debian's packages of Prometheus and Alertmanager into FOLDER, once, where they are not installed.
# Needs neither root nor a change of the system; needs the lists of apt-get update.
#   get-prometheus.sh FOLDER
set -eu
folder=$1
programs='prometheus promtool prometheus-alertmanager amtool'
missing=''
for name in $programs; do
    command -v "$name" >/dev/null || missing=1
done
[ "$missing" ] && [ ! -r "$folder/usr/share/alertmanager/default.tmpl" ] || exit 0
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || {
    echo 'no apt-get here: install Prometheus and Alertmanager' >&2
    exit 1
}
echo "  GET  Prometheus and Alertmanager into $folder"
mkdir -p "$folder"
work=$(mktemp -d "$folder/new.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get -q download prometheus prometheus-alertmanager >log 2>&1 || {
    tail -n 5 log >&2
    exit 1
}
for package in ./*.deb; do
    dpkg-deb -x "$package" unpacked
done
mkdir -p "$folder/usr/bin" "$folder/usr/share"
for name in $programs; do
    mv "unpacked/usr/bin/$name" "$folder/usr/bin/"
done
# Its own templates, which it looks for in /usr/share/prometheus.
rm -rf "$folder/usr/share/alertmanager"
mv unpacked/usr/share/prometheus/alertmanager "$folder/usr/share/"
