#!/bin/sh
# Unpacks Debian's packages of Slurm and munge into FOLDER, once, where they are not installed.  Needs neither root nor a
# change of the system; needs the lists of apt-get update.
#   get-slurm.sh FOLDER
set -eu
folder=$1
PATH=$PATH:/usr/sbin:/sbin
missing=''
for name in munged slurmctld slurmd srun; do
    command -v "$name" >/dev/null || missing=1
done
[ "$missing" ] && [ ! -x "$folder/bin/srun" ] || exit 0
if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
    echo 'no apt-get here: install Slurm and munge' >&2
    exit 1
fi
echo "  GET  Slurm and munge into $folder"
mkdir -p "$folder"
work=$(mktemp -d "$folder/new.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get -q download slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge libmunge2 libhwloc15 liblua5.1-0 >log 2>&1 || {
    tail -n 5 log >&2
    exit 1
}
for package in ./*.deb; do
    dpkg-deb -x "$package" unpacked
done
rm -rf "${folder:?}/lib" "${folder:?}/programs" "${folder:?}/bin"
mv unpacked/usr/lib/*/ "$folder/lib"
mkdir "$folder/programs" bin
for program in unpacked/usr/bin/* unpacked/usr/sbin/*; do
    name=${program##*/}
    mv "$program" "$folder/programs/${name%-wlm}" # they go by their own names
done
# They find their libraries here, and what they start finds its own.
loader=$(LC_ALL=C readelf -l "$folder/programs/srun" | sed -n 's/.*interpreter: \(.*\)]/\1/p')
for program in "$folder"/programs/*; do
    cat >"bin/${program##*/}" <<END
#!/bin/sh
exec $loader --library-path '$folder/lib:$folder/lib/slurm-wlm' '$program' "\$@"
END
    chmod +x "bin/${program##*/}"
done
mv bin "$folder/bin"
