# growth_story.sh - examples/growth.sh at a tenth of its size: the step changes nothing and pays, zeros everywhere stay the
# small model to the last bit, every run has its curve.
# When: whole, optimised.
. "$VWN_SOURCE/tests/support/lib.inc"
[ -f "$VWN_DATA/kjv.txt" ] || exit 77
cp "$VWN_DATA/kjv.txt" .
export FOLDER="$PWD" STEPS=120
expect 0 sh "$VWN_SOURCE/examples/growth.sh"
cp out story
has err 'error[E0702]: 60 of 60 new blocks can never learn'
preserved story 5 2e-6
has story 'are those of its small model to the last bit'
[ "$(wc -l < tiny_dead.txt)" -eq 8 ] || fail "eight losses of the tiny model"
grep 'losses of `dead` differ' story | sed 's/.*at most \([0-9.e-]*\);.*/\1/' | awk '{ exit !($1 < 1e-4) }' || fail "zeros learn"
[ "$(grep -c '<path class="c s' curves.svg)" -eq 5 ] || fail "five curves"
# loss NAME: the held-out loss at the end
loss() { "$VWN" compare "runs/$1" --json | sed 's/.*"last":\([0-9.]*\).*/\1/'; }
echo "$(loss grown) $(loss small)" | awk '{ exit !($1 < $2 - 0.005) }' || fail "growth does not pay: $(loss grown), small $(loss small)"
flops() { "$VWN" compare "runs/$1" --json | sed 's/.*"flops":\([0-9.]*\).*/\1/'; }
echo "$(flops grown) $(flops scratch)" | awk '{ exit !($2 <= $1 && $2 > 0.97 * $1) }' || fail "the runs have not taken the same FLOPs"
finish
