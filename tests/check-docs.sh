#!/bin/sh
# Every file and folder that a top-level document names in backticks exists.
cd "$(dirname "$0")/.." || exit 1
bad=0
for document in README.md ARCHITECTURE.md CONTRIBUTING.md; do
    for name in $(grep -o '`[a-zA-Z0-9_./-]*`' "$document" | tr -d '`' | sort -u); do
        case "$name" in
        /* | *.txt | *.csv | build/* | var/) continue ;; # paths of the API and of the build
        */* | *.md | *.sh) ;;
        *) continue ;;
        esac
        [ -e "$name" ] || [ -e "$(dirname "$document")/$name" ] || {
            echo "$document names $name, which does not exist"
            bad=1
        }
    done
done
[ "$bad" = 0 ] && echo "  ok   documents"
exit "$bad"
