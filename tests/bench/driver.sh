# driver.sh - the script behind the target `bench`: its own arithmetic, a short run of its parts, and,
# where PyTorch is there, that PyTorch's side of the race is the same model.
# When: quick, slow, optimised. It compiles another program, not vwn.
. "$VWN_SOURCE/tests/support/lib.inc"
command -v python3 > /dev/null || {
    echo "no python3 here"
    exit 77
}
run="python3 $VWN_SOURCE/tests/bench/run.py"

expect 0 $run --selftest
has out 'passed'
expect 2 $run --vwn "$VWN" --parts same,other
expect 0 "$VWN" fmt --check "$VWN_SOURCE/tests/bench/gpt.vwn" "$VWN_SOURCE/tests/bench/vwn23.vwn"
expect 0 "$VWN" check --deny warnings "$VWN_SOURCE/tests/bench/gpt.vwn" "$VWN_SOURCE/tests/bench/vwn23.vwn"

# raises unless weights and losses of both are the same
expect 0 $run --vwn "$VWN" --quick --layers 1 --parts same,sample
has out 'Sampling'
cat ./*.json > out 2> /dev/null || fail "no result"
has out '"schema": "vwn.bench.results"'
has out '"sampling"'
if /usr/bin/python3 -c 'import torch' 2> /dev/null; then
    has out '"peer_loss"'
else
    echo "no PyTorch here: the same-model check was left out"
fi
finish
