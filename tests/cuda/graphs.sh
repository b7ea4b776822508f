# graphs.sh - the calls of a program are recorded once and launched as one in every run, with the numbers of that run: its bits
# are those of calls made one by one, and further steps add no call of a kernel or of a product.
# When: slow. The tests of fake_cuda go the same ways.
. "$VWN_SOURCE/tests/cuda/small.inc"
# each step draws other numbers, and has another rate
sed -e 's/attention { /&dropout = 0.2, /' -e 's/activation = silu/&, dropout = 0.3/' \
    -e 's/lr = 1e-2/lr = constant(1e-2, warmup = 15 steps)/' small.vwn > drawn.vwn
[ "$(cmp -l small.vwn drawn.vwn 2> /dev/null | wc -l)" -gt 100 ] || fail "nothing is drawn"

# run NAME FLAGS...: its calls are in NAME.log, its events in NAME.json.
run() {
    name=$1
    shift
    expect 0 env FAKE_CUDA_LOG="$name.log" "$VWN" train drawn.vwn --device cuda --run "$name" --json "$@"
    cp out "$name.json"
    lacks err mistake
}
calls() { sed -n "s/^count $2 //p" "$1.log" | grep . || echo 0; }

run recorded
expect 0 "$VWN" train drawn.vwn --device cpu --run cpu --json
cp out cpu.json
near cpu recorded 20 1e-5
VWN_CUDA_SYNC=1 run single
same_weights recorded single 20
for order in eager shuffled:5; do
    FAKE_CUDA_ORDER=$order run "$order"
    same_weights recorded "$order" 20
done

# train, update, eval and what counts targets are recorded; each of 20 steps launches two graphs but for the first
run short --until '10 steps'
[ "$(calls single cuGraphLaunch)" -eq 0 ] || fail "what is waited for was recorded"
[ "$(calls single cublasLtMatmulDescCreate)" -eq "$(calls recorded cublasLtMatmulDescCreate)" ] || fail "products are described more than once"
[ "$(calls single cuLaunchKernel)" -gt $((5 * $(calls recorded cuLaunchKernel))) ] || fail "calls were made one by one"
for name in cuLaunchKernel cublasLtMatmul cuMemAlloc; do
    [ "$(calls short $name)" -eq "$(calls recorded $name)" ] || fail "$name: $(calls short $name) in 10 steps, $(calls recorded $name) in 20"
done
# tensors are one piece of memory, and what programs have in between another; beside these the library has one, and what comes
# up one here and one of the host's; what comes down has three of the host's, two of them of steps
[ "$(calls recorded cuMemAlloc)" -eq $(($(calls recorded cuMemHostAlloc) - 3 + 1 + 2)) ] || fail "$(calls recorded cuMemAlloc) allocations of a run"
for name in cuStreamBeginCapture cuGraphInstantiateWithFlags cuGraphExecDestroy; do
    [ "$(calls recorded $name)" -eq 4 ] || fail "$name: $(calls recorded $name) for 4 programs"
done
[ "$(calls recorded cuGraphLaunch)" -ge 38 ] || fail "$(calls recorded cuGraphLaunch) launches of graphs in 20 steps"
[ "$(calls recorded cuGraphLaunch)" -gt "$(calls short cuGraphLaunch)" ] || fail "later steps launch no graphs"

# a text that is sampled token by token, and measured
for flags in 'sample runs/recorded --tokens 30 --prompt abc --seed 5' 'eval runs/recorded'; do
    # shellcheck disable=SC2086
    expect 0 env FAKE_CUDA_LOG=all.log "$VWN" $flags --device cuda
    cp out all
    [ "$(calls all cuGraphLaunch)" -gt 1 ] || fail "$flags: nothing was recorded"
    # shellcheck disable=SC2086
    expect 0 env VWN_CUDA_SYNC=1 "$VWN" $flags --device cuda
    cmp -s all out || fail "$flags: calls one by one give $(cat out) for $(cat all)"
done

# keys and values stay on the device: a token moves as many bytes as any other, however many stand before it
expect 0 "$VWN" train small.vwn --device cuda --run wide -q --until '1 steps' --set model.context=32
for n in 8 16 24; do
    expect 0 env FAKE_CUDA_LOG=all.log "$VWN" sample runs/wide --device cuda --tokens $n --prompt abc --seed 5
    awk '$2 ~ /^cuMemcpy(HtoD|DtoH)Async$/ { n += $3 } END { print n }' all.log
done > moved
awk 'NR > 1 { each[NR] = $1 - before } { before = $1 } END { exit !(each[2] > 0 && each[3] == each[2] && each[2] < 8 * 2000) }' moved ||
    fail "bytes that 8, 16 and 24 tokens move: $(cat moved)"
finish
