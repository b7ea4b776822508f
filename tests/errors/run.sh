#!/bin/sh
# Messages: `vwn check NAME.vwn` prints exactly NAME.err on its error output and ends with the status that
# follows from it, for every NAME.vwn of this folder, under the sanitizers for every fourth. Further arguments of a case stand in
# NAME.args.
# Files of lib/ are imported by cases. The list of codes is checked against the sources, too.
#
#     run.sh [--bless] [path of vwn]      (default: $VWN; --bless writes the .err files instead)

bless=0
if [ "$1" = "--bless" ]; then
    bless=1
    shift
fi
vwn=${1:-$VWN}
if [ ! -x "$vwn" ]; then
    echo "usage: run.sh [--bless] VWN" >&2
    exit 2
fi
case $vwn in
/*) ;;
*) vwn=$(pwd)/$vwn ;;
esac
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
scratch=$(mktemp -d) || exit 2
trap 'rm -rf "$scratch"' EXIT
# Where a link can be made: not every way that sources travel keeps one.
mkdir "$scratch/folder" && cp -R "$here/." "$scratch/folder" && cd "$scratch/folder" || exit 2
ln -s ../run.sh lib/link.vwn || exit 2
passed=0
failed=0

verdict() { # status, text when it failed
    if [ "$1" -eq 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $2"
    fi
}

# The status that these messages ask for: errors 1, false checks alone 3, else 0.
status_of() {
    if grep '^error\[E' "$1" | grep -qv '^error\[E0801\]'; then
        echo 1
    elif grep -q '^error\[E0801\]' "$1"; then
        echo 3
    else
        echo 0
    fi
}

every=1 number=0
if [ "${VWN_BUILD_TYPE:-}" = Sanitize ] && [ "${VWN_TEST_WHOLE:-0}" != 1 ]; then every=4; fi
for file in *.vwn; do
    number=$((number + 1))
    [ $((number % every)) -eq 0 ] || continue
    name=${file%.vwn}
    set --
    if [ -f "$name.args" ]; then
        eval "set -- $(cat "$name.args")"
    fi
    env NO_COLOR=1 LC_ALL=C.UTF-8 "$vwn" check "$@" "$file" >"$scratch/out" 2>"$scratch/err"
    status=$?
    if [ $bless -eq 1 ]; then
        cp "$scratch/err" "$name.err"
        cp "$scratch/err" "$here/$name.err"
    fi
    if [ ! -f "$name.err" ]; then
        verdict 1 "$name has no .err file"
    elif ! diff -u "$name.err" "$scratch/err" >"$scratch/diff"; then
        cat "$scratch/diff"
        verdict 1 "$name"
    elif [ $status -ne "$(status_of "$name.err")" ]; then
        verdict 1 "$name ends with status $status"
    else
        verdict 0
    fi
done

# ---- the codes ----
codes='[EW][0-9][0-9][0-9][0-9]'
sed -n "s/^X(\"\\($codes\\)\".*/\\1/p" "$root/grammar/codes.def" >"$scratch/rows"
filed() {
    cat "$@" | grep -o "\"$codes\"" | tr -d '"' | sort -u
}
filed "$root"/compiler/*/*.c "$root"/runtime/*.c "$root"/runtime/*/*.c "$root"/grammar/*.[cly] "$root"/grammar/std/*.vwn >"$scratch/filed"
filed "$root"/compiler/front/*.c "$root"/compiler/file/*.c "$root"/grammar/*.[cly] "$root"/grammar/std/*.vwn >"$scratch/checked"
sort "$scratch/rows" | cmp -s - "$scratch/rows"
verdict $? "grammar/codes.def is not sorted"
missing=$(comm -13 "$scratch/rows" "$scratch/filed" | tr '\n' ' ')
test -z "$missing"
verdict $? "codes without an explanation: $missing"
idle=$(comm -23 "$scratch/rows" "$scratch/filed" | tr '\n' ' ')
test -z "$idle"
verdict $? "explanations of codes that nothing files: $idle"
cat ./*.err | grep -o "^[a-z]*\\[$codes\\]" | sed 's/.*\[\(.*\)\]/\1/' | sort -u >"$scratch/tested"
untested=$(comm -23 "$scratch/checked" "$scratch/tested" | tr '\n' ' ')
test -z "$untested"
verdict $? "codes without a case: $untested"

echo "$passed passed, $failed failed"
test $failed -eq 0
