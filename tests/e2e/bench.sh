# bench.sh - `vwn bench`: text, JSON, a comparison with itself, errors; nothing is left behind.
. "$VWN_SOURCE/tests/support/lib.inc"
nano=$PWD/quickstart.vwn
sed 's/^\( *batch *=\) .*/\1 4 seqs/' "$VWN_SOURCE/examples/quickstart.vwn" > "$nano"

# the text of the example is not beside it; nothing is kept of what was compiled
expect 0 env VWN_CACHE= "$VWN" bench "$nano" --steps 2 --set D=48 --set L=1
has out 'quickstart: '
has out ', random data'
has out '  tokens/s   best '
has out '  roofline   bound '
has out '  start-up   check '
lacks out 'launches'
has err 'random data'
lacks err 'Compiling'
lacks err ' 0 compiled'

expect 0 "$VWN" bench "$nano" --steps 2 --set D=48 --set L=1 --kernels --threads 1
has out 'launches'
has out '1 threads'
has out ' left transposed'

expect 0 "$VWN" bench "$nano" --steps 2 --set D=48 --set L=1 --kernels --json -q
json out
empty err
has out '"schema":"vwn.bench"'
has out '"data":"synthetic"'
lacks out '*"' # the ends of comments that kernels begin with
[ "$(wc -l < out)" -eq 1 ] || fail "more than one line of JSON"
cp out old.json
# a machine that copied faster by far is told of
sed 's/"copy_gb_s":/&2/' old.json > fast.json && mv fast.json old.json
expect 0 "$VWN" bench "$nano" --steps 2 --set D=48 --set L=1 --against old.json --kernels
has out 'as much of a ratio may be its doing'
has out 'against    old.json: best step was'
has out 'noise hides '
has out 'ratio'
expect 0 "$VWN" bench "$nano" --steps 2 --set D=48 --set L=1 --against old.json --kernels --json
json out
has out '"against":{"name":"old.json"'

# a terminal shows that kernels are being compiled, and forgets it; a file is not told
first="$VWN bench $nano --steps 1 --set D=48 --set L=1"
if script -qec true typed > out 2> err < /dev/null; then
    expect 0 env VWN_CACHE="$PWD/cold" TERM=xterm script -qec "$first" typed
    has out 'Compiling'
    grep -q "kernels$(printf '\r\033')\[K.*Compiled" out || fail "the line of what is compiled stays"
    expect 0 env VWN_CACHE="$PWD/cold" TERM=xterm script -qec "$first" typed
    lacks out 'Compiling'
else
    echo "not tested: there are no pseudo-terminals here"
fi

# data that is there is used
head -c 20000 "$nano" > kjv.txt
for i in 1 2 3; do cat kjv.txt kjv.txt > 'more' && mv 'more' kjv.txt; done
cp "$nano" here.vwn
expect 0 "$VWN" bench here.vwn --steps 1 --set D=48 --set L=1 --json
has out '"data":"file"'
has out '"spread":0'
lacks out '"spread":-'
lacks err 'random data'

expect 2 "$VWN" bench "$nano" --set D=96 --set L=1 --against old.json
has err 'old.json cannot be compared with: it has '
empty out
expect 2 "$VWN" bench "$nano" --against here.vwn
has err 'it is not JSON'
expect 5 "$VWN" bench "$nano" --against absent.json
has err 'cannot read absent.json'
expect 2 "$VWN" bench "$nano" --steps 0
has err 'a whole number from 1'
expect 1 "$VWN" bench absent.vwn
printf 'edition = 1\n' > empty.vwn
expect 1 "$VWN" bench empty.vwn
has err 'no `model`'
[ ! -e runs ] || fail "a run was left behind"
finish
