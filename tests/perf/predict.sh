# predict.sh - what the program predict says, and that no prediction of ours is better than the
# best kernel that others have published.
#
# In:  a small model, a GPT with heads of 64 and 128; NVRTC and nvdisasm (skipped where one is
#      missing, behind what is refused and what is fitted).
# Out: status 0 where attention forward and backward take at least the time of FlashAttention-3 on
#      an H100, products that of cuBLAS, and bytes that of a copy.
# The one idea: nothing is measured, so a figure above the best known one says that the model
# leaves something out.
# When: slow. It compiles for three architectures.
. "$VWN_SOURCE/tests/support/lib.inc"

expect 0 "$VWN" new nano --from nano
file=nano/model.vwn
expect 2 "$PREDICT"
has err 'there is no file'
expect 2 "$PREDICT" $file --gpu h101
has err 'known GPUs are h100, h200, a100 and b200'
expect 2 "$PREDICT" $file --batch 0
expect 2 "$PREDICT" $file --sat x=1
expect 1 "$PREDICT" none.vwn
has err 'none.vwn'
expect 1 "$PREDICT" $file --set no.such=1
expect 5 env VWN_CUDA_LIBRARIES= "$PREDICT" $file
has err 'the CUDA compiler NVRTC is not looked for'
empty out
# constants from measurements that are made of known ones: a copy at 2.7 TB/s and a ramp of 3.1 us
# among them (fit.c)
"$FIT" lines > lines
expect 0 "$PREDICT" --fit lines
has out 'H100 SXM: 180 kernels, '
has err 'warning: 1 kernels were measured and are not predicted'
expect 0 "$PREDICT" --fit lines --json
json out
[ "$(grep -c '"event":"residual"' out)" -eq 180 ] || fail "$last: a kernel is missing"
value='{"before":[^,]*,"value":\([^,]*\),'
sed -n 's/.*"copy":'"$value"'.*"ramp":'"$value"'.*/\1 \2/p' out |
    awk '{ ok = $1 > 2.65e12 && $1 < 2.75e12 && $2 > 3.0e-6 && $2 < 3.2e-6 } END { exit !ok }' ||
    fail "$last: other constants"
expect 2 "$PREDICT" $file --fit lines
has err '`--fit` reads what was measured, and no file'
expect 1 "$PREDICT" --fit none
echo '{"event":"measured","kernel":"k"}' > bad
expect 1 "$PREDICT" --fit bad
has err 'a measured kernel has no name or takes no time'
echo '{"event":"measured",' > bad
expect 1 "$PREDICT" --fit bad
echo '{"event":"measured","kernel":"k","seconds":1}' > bad
expect 1 "$PREDICT" --fit bad
has err 'no kernel is both measured and predicted'
"$VWN" doctor | grep -q '^CUDA compiler (NVRTC): [0-9]' || {
    [ "$failures" -eq 0 ] && echo "skipped: no CUDA compiler here" && exit 77
}
expect 5 env CUDA_HOME=/none CUDA_PATH=/none PATH=/none "$PREDICT" $file --program update
grep -q 'install the CUDA toolkit' err || [ -x /usr/local/cuda/bin/nvdisasm ] ||
    fail "$last: not said"
command -v nvdisasm > disassembler || [ -x /usr/local/cuda/bin/nvdisasm ] || {
    [ "$failures" -eq 0 ] && echo "skipped: no nvdisasm here" && exit 77
}
expect 0 "$PREDICT" $file --gpu a100
has out 'predicted for A100 80GB SXM (sm_80), not measured'
grep -Eq '^step: [0-9.]+ ms predicted: products [0-9.]+, kernels [0-9.]+, [0-9]+ launches' out ||
    fail "$last: no step"
lacks out 'is not known here'

# attention HEADS FORWARD BACKWARD: 4 sequences of 4,096, 2,048 wide; FlashAttention-3's TFLOP/s
# there with a causal mask (arXiv 2407.08608, figure 5), and backward without one (figure 6), which
# is as many or more.
attention() {
    sed 's|CONNECTION|residual|; s|WIDTH|D|' "$VWN_SOURCE/tests/perf/budget.vwn" > gpt.vwn
    expect 0 "$PREDICT" gpt.vwn --json --program train --batch '4 seqs' --set L=1 --set heads="$1"
    json out
    grep -q '"event":"predicted_step"' out || fail "$last: no step"
    awk -v forward="$2" -v backward="$3" -v heads="$1" '
        function number(name) {
            if (!match($0, "\"" name "\":[0-9.e+-]*")) return 0
            return substr($0, RSTART + length(name) + 3) + 0
        }
        !/"event":"predicted",/ { next }
        number("multiply_adds") > 0 && /"path":"layer\[1\].attention"/ { f += number("seconds") }
        number("multiply_adds") > 0 && /"path":"layer\[1\].attention.grad"/ {
            b += number("seconds")
        }
        number("peak_share") * 989 > 795.1 { print "beyond what cuBLAS reaches: " $0; bad++ }
        number("copy_share") > 1 { print "beyond a copy: " $0; bad++ }
        END { if (!(f > 0 && b > 0)) { print "no attention"; exit 1 }
              work = 2e-12 * 4 * 4096 * 4096 * 2048
              printf "%d heads: predicted %.0f TFLOP/s forward", heads, work / f
              printf ", %.0f backward; published %d, %d\n", 2.5 * work / b, forward, backward
              exit bad > 0 || work / f > forward || 2.5 * work / b > backward }' out > rates ||
        fail "$1 heads: faster than anybody has measured"
    cat rates
}
attention 16 579 542
attention 32 420 453
finish
