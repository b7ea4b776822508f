# codes.sh - the codes of grammar/codes.def against the sources, which file them, and the cases of this folder.
# When: quick.
. "$VWN_SOURCE/tests/support/lib.inc"

codes='[EW][0-9][0-9][0-9][0-9]'
filed() { grep -oh "\"$codes\"" "$@" | tr -d '"' | sort -u; }
none() { [ ! -s "$2" ] || fail "$1: $(tr '\n' ' ' < "$2")"; }

cd "$VWN_SOURCE" || exit 1
work=$OLDPWD
sed -n "s/^X(\"\\($codes\\)\".*/\\1/p" grammar/codes.def > "$work/rows"
filed compiler/*/*.c runtime/*.c runtime/*/*.c grammar/*.[cly] grammar/std/*.vwn > "$work/filed"
filed compiler/front/*.c compiler/file/*.c grammar/*.[cly] grammar/std/*.vwn > "$work/checked"
grep -oh "^[a-z]*\\[$codes\\]" tests/errors/*.txt | sed 's/.*\[\(.*\)\]/\1/' | sort -u > "$work/tested"
cd "$work" || exit 1

sort rows | cmp -s - rows || fail "grammar/codes.def is not sorted"
comm -13 rows filed > unexplained
none "codes without an explanation" unexplained
comm -23 rows filed > idle
none "explanations of codes that nothing files" idle
comm -23 checked tested > untested
none "codes without a case" untested
finish
