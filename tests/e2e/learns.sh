# learns.sh - the first model learns: what `vwn new` prints is done, at the length that its file has, and at least 95 of all 100 sums of
# two digits are answered right, each the likeliest text behind its prompt.
# When: optimised.
. "$VWN_SOURCE/tests/support/lib.inc"
export VWN_THREADS=1 # threads that wait for each other take long where others compute, and change no number

for kind in nano vwn; do
    [ $kind = nano ] || [ "${VWN_TEST_WHOLE:-0}" = 1 ] || continue
    expect 0 "$VWN" new first_$kind --from $kind
    has out 's on two cores'
    cp out said
    for what in "next" "then"; do
        line=$(sed -n "s/^$what: vwn \([^#]*[^# ]\).*/\1/p" said)
        [ -n "$line" ] || fail "no line \`$what:\`"
        eval "expect 0 \"\$VWN\" $line"
    done
    # what the sample is to be stands behind it
    wanted=$(sed -n 's/^then: .*# //p' said)
    [ "$(head -n 1 out)" = "$wanted" ] || fail "the sample is $(head -n 1 out), not $wanted"
    i=0
    while [ $i -lt 100 ]; do
        echo "$((i / 10)) + $((i % 10)) ="
        i=$((i + 1))
    done > prompts
    expect 0 "$VWN" sample $kind --temperature 0 --tokens 4 --prompts prompts --json
    right=$(sed -n 's/.*"prompt":"\([0-9]\) + \([0-9]\) =","text":" \([0-9]*\)\\n.*/\1 \2 \3/p' out | awk '$1 + $2 == $3' | wc -l)
    [ "$right" -ge 95 ] || fail "$right of 100 sums are right"
    [ "$(wc -l < out)" -eq 100 ] || fail "$(wc -l < out) answers"
done
finish
