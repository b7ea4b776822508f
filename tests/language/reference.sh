#!/bin/sh
# The examples of grammar/README.md that are whole files are checked; the one of `train` behind the first of them.
# Blocks begin with ``` on a line of its own.

set -u
vwn=${1:-$VWN}
here=$(cd "$(dirname "$0")" && pwd)
source=$here/../../grammar/README.md
scratch=$(mktemp -d) || exit 2
trap 'rm -rf "$scratch"' EXIT
awk -v out="$scratch" '
    /^```$/ { if (inside) close(file); inside = !inside; first = 1; next }
    inside && first { n++; first = 0; file = out "/other" n
                      if ($0 ~ /^edition = 1/) file = out "/whole" n ".vwn"
                      if ($0 ~ /^train [{]/) file = out "/train" }
    inside { print > file }' "$source"
failed=0
checked=0
for file in "$scratch"/whole*.vwn; do
    checked=$((checked + 1))
    "$vwn" check -q "$file" || failed=$((failed + 1))
done
cat "$scratch"/whole1.vwn "$scratch/train" >"$scratch/trained.vwn"
"$vwn" check -q "$scratch/trained.vwn" || failed=$((failed + 1))
echo "$((checked + 1)) files, $failed failed"
test "$failed" -eq 0 && test "$checked" -ge 1
