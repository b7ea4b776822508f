# kinds.sh - of a small file of each form: every place, and what stands there with its fault; and that a draw stays when other
# functions change; and that known.txt and map.txt name places, tests and files that are there.
# When: quick, released.
. "$VWN_SOURCE/tests/support/lib.inc"

mkdir -p root/compiler/texts
cat > root/compiler/small.c << 'END'
#include "small.h"
#define LEAST(a, b) ((a) < (b) ? (a) : (b))
struct Small { int count[4]; };
enum { ROOM = 8 };
static const int table[2] = {1, 20};
_Static_assert(ROOM == 8, "1 == 2");
static bool within(int a, const int *b, double x)
{
    int list[3] = {0};
    if (a <= -b[0] && x < 0.5) /* 1 < 2 */
        return true;
    for (int i = 0; i < 3; i++)
        list[i] += a * 2;
    show(a, list, "a < b");
    free(list);
    while (a)
        switch (b[1]) {
        case 1: a--; break;
        default: return a == 3;
        }
    return false;
}
END
cat > root/compiler/texts/piece.cu << 'END'
#if WIDE
for (int i = 0; i < n; i++) {
#else
for (int i = 1; i < n; i++) {
#endif
    out[i] = in[i];
}
END
echo 'ROW(FIRST, "one, two", 1, false) /* 2 */' > root/compiler/rows.def
printf 'let a = 1_000 # 5\nblock two(n: int)(x: [n]) -> [n] {\n  return if n == 1 and not x then -x else x + a\n}\n' > root/compiler/two.vwn
printf '%%{\nint a = 1;\n%%}\n%%%%\nsum\n    : sum "1" sum  { $$ = add($1, $3); }\n    ;\n%%%%\nint two(void)\n{\n    return 2;\n}\n' > root/compiler/rules.y
printf '%s\n' compiler/rows.def compiler/rules.y compiler/small.c compiler/texts/piece.cu compiler/two.vwn > files

# Every place, with the lines that its fault makes of the file.
"$MUTATE" draw root 1 1000 < files | sort > drawn
while read -r place rest; do
    "$MUTATE" write root "$place" < files > changed
    echo "$place $(diff "root/${place%%:*}" changed | sed -n 's/^> *//p')"
done < drawn > places
cat > wanted << 'END'
compiler/rows.def:FIRST:args:1 ROW("one, two", FIRST, 1, false) /* 2 */
compiler/rows.def:FIRST:args:2 ROW(FIRST, 1, "one, two", false) /* 2 */
compiler/rows.def:FIRST:args:3 ROW(FIRST, "one, two", false, 1) /* 2 */
compiler/rows.def:FIRST:constant:1 ROW(FIRST, "one, two", 2, false) /* 2 */
compiler/rows.def:FIRST:constant:2 ROW(FIRST, "one, two", 1, true) /* 2 */
compiler/rules.y:rules:args:1 : sum "1" sum  { $$ = add($3, $1); }
compiler/rules.y:rules:constant:1 : sum "1" sum  { $$ = add($2, $3); }
compiler/rules.y:rules:constant:2 : sum "1" sum  { $$ = add($1, $4); }
compiler/rules.y:two:constant:1 return 3;
compiler/small.c:LEAST:choice:1 #define LEAST(a, b) ((a) < (b) || 1 ? (a) : (b))
compiler/small.c:LEAST:choice:2 #define LEAST(a, b) ((a) < (b) && 0 ? (a) : (b))
compiler/small.c:LEAST:edge:1 #define LEAST(a, b) ((a) <= (b) ? (a) : (b))
compiler/small.c:LEAST:turn:1 #define LEAST(a, b) ((a) > (b) ? (a) : (b))
compiler/small.c:enum:constant:1 enum { ROOM = 9 };
compiler/small.c:table:constant:1 static const int table[2] = {2, 20};
compiler/small.c:table:constant:2 static const int table[2] = {1, 21};
compiler/small.c:within:args:1 show(list, a, "a < b");
compiler/small.c:within:args:2 show(a, "a < b", list);
compiler/small.c:within:call:1 (void)0;
compiler/small.c:within:constant:1 int list[3] = {1};
compiler/small.c:within:constant:10 default: return a == 4;
compiler/small.c:within:constant:11 return true;
compiler/small.c:within:constant:2 if (a <= -b[1] && x < 0.5) /* 1 < 2 */
compiler/small.c:within:constant:3 if (a <= -b[0] && x < 0.75) /* 1 < 2 */
compiler/small.c:within:constant:4 return false;
compiler/small.c:within:constant:5 for (int i = 1; i < 3; i++)
compiler/small.c:within:constant:6 for (int i = 0; i < 4; i++)
compiler/small.c:within:constant:7 list[i] += a * 3;
compiler/small.c:within:constant:8 switch (b[2]) {
compiler/small.c:within:constant:9 case 2: a--; break;
compiler/small.c:within:edge:1 if (a < -b[0] && x < 0.5) /* 1 < 2 */
compiler/small.c:within:edge:2 if (a <= -b[0] && x <= 0.5) /* 1 < 2 */
compiler/small.c:within:edge:3 for (int i = 0; i <= 3; i++)
compiler/small.c:within:leave:1 case 1: a--; (void)0;
compiler/small.c:within:logic:1 if (a <= -b[0] || x < 0.5) /* 1 < 2 */
compiler/small.c:within:negate:1 if (!(a <= -b[0] && x < 0.5)) /* 1 < 2 */
compiler/small.c:within:negate:2 while (!(a))
compiler/small.c:within:return:1 default: return !(a == 3);
compiler/small.c:within:sign:1 if (a <=  b[0] && x < 0.5) /* 1 < 2 */
compiler/small.c:within:sign:2 list[i] -= a * 2;
compiler/small.c:within:sign:3 list[i] += a / 2;
compiler/small.c:within:store:1 (void)0;
compiler/small.c:within:store:2 case 1: (void)0; break;
compiler/small.c:within:turn:1 if (a >= -b[0] && x < 0.5) /* 1 < 2 */
compiler/small.c:within:turn:2 if (a <= -b[0] && x > 0.5) /* 1 < 2 */
compiler/small.c:within:turn:3 for (int i = 0; i > 3; i++)
compiler/small.c:within:turn:4 default: return a != 3;
compiler/texts/piece.cu:-:constant:1 for (int i = 1; i < n; i++) {
compiler/texts/piece.cu:-:constant:2 for (int i = 2; i < n; i++) {
compiler/texts/piece.cu:-:edge:1 for (int i = 0; i <= n; i++) {
compiler/texts/piece.cu:-:edge:2 for (int i = 1; i <= n; i++) {
compiler/texts/piece.cu:-:store:1 (void)0;
compiler/texts/piece.cu:-:turn:1 for (int i = 0; i > n; i++) {
compiler/texts/piece.cu:-:turn:2 for (int i = 1; i > n; i++) {
compiler/two.vwn:-:constant:1 let a = 1_001 # 5
compiler/two.vwn:two:constant:1 return if n == 2 and not x then -x else x + a
compiler/two.vwn:two:logic:1 return if n == 1 or not x then -x else x + a
compiler/two.vwn:two:sign:1 return if n == 1 and not x then  x else x + a
compiler/two.vwn:two:sign:2 return if n == 1 and not x then -x else x - a
compiler/two.vwn:two:turn:1 return if n != 1 and not x then -x else x + a
END
cmp -s wanted places || {
    failures=$((failures + 1))
    echo "FAILED: the places of small files, and what stands there with a fault (< wanted, > found):"
    diff wanted places
}

# What is drawn does not move when a function goes in front of it, but for those of that function.
"$MUTATE" draw root 7 20 < files | cut -d ' ' -f 1 | grep -v :added: > before
sed 's/^static bool within/static int added(int a)\n{\n    return a + 5;\n}\n&/' root/compiler/small.c > changed
mv changed root/compiler/small.c
"$MUTATE" draw root 7 20 < files | cut -d ' ' -f 1 | grep -v :added: > after
[ "$(grep -cxFf before after)" -ge 18 ] || fail "a new function moves what is drawn: $(diff before after)"
expect 1 "$MUTATE" write root compiler/small.c:within:turn:99 < files

# What known.txt says of a place that is gone is of no fault, and would be read as one.
(cd "$VWN_SOURCE" && find compiler runtime grammar tests/perf/tool -name '*.[chly]' -o -name '*.def' -o -name '*.cu' -o -name '*.vwn') | grep -v '^grammar/editors/' > files
"$MUTATE" draw "$VWN_SOURCE" 1 9999999 < files | cut -d ' ' -f 1 > there
sed -n 's/^[-+=] \([^ ]*\) .*/\1/p' "$VWN_SOURCE/tests/mutants/known.txt" > known
[ -s known ] || fail "known.txt names no place"
gone=$(awk 'NR == FNR { there[$1] = 1; next } !($1 in there)' there known)
[ -z "$gone" ] || fail "places of tests/mutants/known.txt that the sources no longer have: $gone"
twice=$(sort known | uniq -d)
[ -z "$twice" ] || fail "places that tests/mutants/known.txt has twice: $twice"
odd=$(grep -vE '^(#.*|[-+=] [^ ]+:[^ ]+:[a-z]+:[0-9]+ +[^ ].*)?$' "$VWN_SOURCE/tests/mutants/known.txt")
[ -z "$odd" ] || fail "lines of tests/mutants/known.txt that are no place with a reason: $odd"
while read -r path tests; do
    [ -e "$VWN_SOURCE/$path" ] || fail "tests/mutants/map.txt has $path, which is not there"
    for test in $tests; do
        name=${test#*.}
        set -- "$VWN_SOURCE/tests/${test%%.*}/$name".*
        [ -e "$1" ] || fail "tests/mutants/map.txt has the test $test for $path, which is not there"
    done
done < "$VWN_SOURCE/tests/mutants/map.txt"
finish
