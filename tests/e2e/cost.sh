# cost.sh - `vwn cost`: its figures are those of the plan, and the largest examples are counted and planned in a moment,
# without a tensor of theirs.
. "$VWN_SOURCE/tests/support/lib.inc"
examples=$VWN_SOURCE/examples

# number KEY: a figure of the JSON in out
number() { sed -n "s/.*\"$1\":\([-0-9.e+]*\).*/\1/p" out; }

# Both figures of recompute are what the plan says when it is asked for, also where a step has parts, of which some add to
# gradients. both FILE ARGUMENT...
quick() { expect 0 "$VWN" cost "$file" --json "$@"; json out; }
both() {
    file=$1
    shift
    quick "$@"
    kept=$(number bytes_arena_kept)
    again=$(number bytes_arena_recomputed)
    [ "$kept" = "$(number bytes_arena)" ] || fail "without recompute: $kept, planned $(number bytes_arena)"
    quick --set 'train.recompute=[layer]' "$@"
    [ "$again" = "$(number bytes_arena)" ] || fail "with recompute: $again, planned $(number bytes_arena)"
    [ "$kept" = "$(number bytes_arena_kept)" ] || fail "the file asks for recompute: $(number bytes_arena_kept) without, not $kept"
    [ "$again" = "$(number bytes_arena_recomputed)" ] || fail "the file asks for recompute: $(number bytes_arena_recomputed), not $again"
    [ "$again" -lt "$kept" ] || fail "recompute saves nothing"
}
both "$examples/quickstart.vwn" --set 'train.micro_batch=4 seqs'
both "$examples/15_olmoe_1b_7b.vwn" --set L=2 --set D=512 --set V=1024 --set 'train.micro_batch=2 seqs'
both "$examples/29_dit.vwn" --set L=6
both "$examples/quickstart.vwn"
# a petaflop day is 1e15 FLOP in each of 86,400 seconds; 2,000 steps of 16 sequences of 128 positions
awk -v flop="$(number flop_training)" -v days="$(number run_pf_days)" -v tokens="$(number run_tokens)" 'BEGIN {
    d = days / (flop * 2000 * 16 * 128 / 86400 / 1e15) - 1
    exit tokens != 2000 * 16 * 128 || d > 1e-9 || d < -1e-9 }' || fail "the run takes $(number run_pf_days) petaflop days for $(number run_tokens) tokens"

expect 0 "$VWN" cost "$examples/quickstart.vwn" --batch '3 seqs'
has out 'memory of training, float32, 3 sequences at once'

# What a part adds to gradients is added where it comes about: a step of parts needs no more than one part alone
part() {
    file=$examples/15_olmoe_1b_7b.vwn
    quick --set L=4 --set D=512 --set V=1024 --set 'train.recompute=[layer]' "$@"
}
part --set 'train.batch=4 seqs'
one=$(number bytes_arena)
part --set 'train.batch=8 seqs' --set 'train.micro_batch=4 seqs'
two=$(number bytes_arena)
[ "$two" -le $((one + one / 50)) ] || fail "a step of two parts: $two, one part $one"

file=$examples/quickstart.vwn
# 34 D bytes a block; a (2,3) state on top, half of it kept: 3 D, 8.82 %
quick
[ "$(number paper_sublayers)" = $((4 * 34 * 192)) ] || fail "34 D: $(number paper_sublayers)"
[ "$(number paper_state)" = $((4 * 3 * 192)) ] || fail "3 D: $(number paper_state)"
case $(number paper_percent) in 8.8235*) ;; *) fail "8.82 %: $(number paper_percent)" ;; esac
# the sum at hand, and one for each doubling of the lanes that one process adds up
alone=$(number bytes_gradients)
for lanes in 2 4 16; do
    quick "--set=train.lanes=$lanes"
    copies=$(echo $lanes | awk '{ print 1 + log($1) / log(2) }')
    [ "$(number bytes_gradients)" -eq $((alone * copies)) ] || fail "$lanes lanes keep $(number bytes_gradients) bytes of gradients, not $copies times $alone"
done
expect 0 "$VWN" cost "$examples/quickstart.vwn"
has out '8.82 %'
expect 0 "$VWN" cost "$examples/01_nano.vwn"
has out 'part of the 34 D'

# Three processor seconds, of which the slowest takes one where pages are slow to come, and no memory for tensors: sanitizers
# need more of both
seconds=3
memory=1500000
(ulimit -v $memory; "$VWN" --version) > /dev/null 2>&1 || { seconds=40; memory=unlimited; }
for file in "$examples"/*.vwn; do
    draw 2 5 || continue
    for verb in check params cost; do
        (ulimit -t $seconds; ulimit -v $memory; exec "$VWN" $verb "$file") > out 2> err < /dev/null
        got=$?
        last="$verb $file"
        case $got in 0 | 1 | 3) ;; *) fail "$last: status $got within $seconds s and $memory KiB" ;; esac
        [ $verb != check ] || [ $got -eq 0 ] || fail "$last: status $got"
    done
done
finish
