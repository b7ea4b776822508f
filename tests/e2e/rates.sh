# rates.sh - `vwn doctor --measure` keeps what this machine does a second, `vwn cost` and `vwn bench` make an estimate of it, and
# without it there is none. How near the estimate comes is said within wide bounds: the machine has other work.
# When: whole, optimised.
. "$VWN_SOURCE/tests/support/lib.inc"
example="$VWN_SOURCE/examples/quickstart.vwn"
VWN_CACHE=$PWD/kernels
export VWN_CACHE

number() { sed -n "s/.*\"$1\":\([-0-9.e+]*\).*/\1/p" out; }
# within LOW HIGH A B: LOW <= A / B <= HIGH
within() { awk -v low="$1" -v high="$2" -v a="$3" -v b="$4" 'BEGIN { exit !(b > 0 && a / b >= low && a / b <= high) }'; }

expect 0 "$VWN" cost "$example"
has out 'no estimate; this machine has not been measured with'
has out 'vwn doctor --measure'
expect 0 "$VWN" cost "$example" --json
json out
lacks out 'time_step'
expect 0 "$VWN" doctor
has out 'rates: this machine has not been measured'

# a model that does not train has no steps
sed '/^train/,$d' "$example" > plain.vwn
expect 0 "$VWN" cost plain.vwn
lacks out 'time of training'

(ulimit -v 1500000; "$VWN" --version) > /dev/null 2>&1 && sanitized=false || sanitized=true
good=false
for _ in 1 2 3; do
    expect 0 "$VWN" doctor --measure --threads 1
    has out 'rate of products: '
    expect 0 "$VWN" bench "$example" --threads 1 --steps 10 --json -q --set L=1 --set train.batch='4 seqs'
    json out
    estimate=$(number estimate_ms)
    launches=$(number launches_ms)
    [ -n "$estimate" ] || fail "no estimate where rates are kept"
    if $sanitized || within 0.5 2 "$estimate" "$launches"; then
        good=true
        break
    fi
done
$good || fail "$estimate ms estimated for launches that take $launches ms at their best"

# cost says what bench says; its parts are the whole; other threads have not been measured
VWN_THREADS=1
export VWN_THREADS
expect 0 "$VWN" cost "$example" --json --set L=1 --set train.batch='4 seqs'
json out
within 0.999 1.001 "$(awk "BEGIN { print 1000 * $(number time_step) }")" "$estimate" ||
    fail "cost says $(number time_step) s, bench $estimate ms"
parts=$(awk "BEGIN { print $(number time_products) + $(number time_attention) + $(number time_kernels) }")
within 0.999 1.001 "$parts" "$(number time_step)" || fail "the parts are $parts s of $(number time_step)"
within 0.999 1.001 "$(awk "BEGIN { print 2000 * $(number time_step) }")" "$(number time_run)" || fail "2,000 steps: $(number time_run)"
expect 0 "$VWN" cost "$example"
has out ', 1 thread, estimated from its measured rates'
has out 'tokens per second'
VWN_THREADS=3 expect 0 "$VWN" cost "$example"
has out 'has not been measured with 3 threads'

# Kernels are made for the time alone: memory is what it is without them
for name in quickstart 07_vwn_x8_moe 10_tokenformer_growth 27_vit 20_mtp_chain 24_xformer_moe 29_dit; do
    draw 3 7 || continue
    file="$VWN_SOURCE/examples/$name.vwn"
    VWN_THREADS=1 expect 0 "$VWN" cost "$file" --json
    timed=$(number time_step)
    with="$(number bytes_arena) $(number bytes_arena_kept) $(number bytes_arena_recomputed) $(number bytes_total)"
    VWN_THREADS=3 expect 0 "$VWN" cost "$file" --json
    without="$(number bytes_arena) $(number bytes_arena_kept) $(number bytes_arena_recomputed) $(number bytes_total)"
    [ -n "$timed" ] && [ -z "$(number time_step)" ] || fail "$name: a time without rates, or none with them"
    [ "$with" = "$without" ] || fail "$name: arenas and total are $with with kernels, $without without"
done

# more work takes longer
short=$(expect 0 "$VWN" cost "$example" --json && number time_step)
expect 0 "$VWN" cost "$example" --json --set L=8
within 1.5 3 "$(number time_step)" "$short" || fail "twice the layers: $(number time_step) s, not $short"

# a file that is damaged is none
for file in "$VWN_CACHE"/rates-*.json; do printf '{"threads":1}\n' > "$file"; done
expect 0 "$VWN" cost "$example"
has out 'no estimate'
VWN_CACHE='' expect 5 "$VWN" doctor --measure
has err 'the rates could not be kept: '
finish
