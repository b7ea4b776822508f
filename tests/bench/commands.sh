#!/bin/sh
# commands.sh - how long the commands take that look at a file or a run.   sh tests/bench/commands.sh VWN [TEXT]
#
# In:  a program; a text to train a small run on (else kjv.txt of the build). An idle machine: wall-clock time is read.
# Out: for each command the best of five times on each example (the file that takes longest is named), then on a run.
#      The models of the examples have up to 7B weights.
set -eu
vwn=$(realpath "$1")
here=$(cd "$(dirname "$0")/../.." && pwd)
text=$(realpath "${2:-$here/build/data/kjv.txt}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

now() { date +%s%N; }
# best COMMAND...: milliseconds of the fastest of five, also where it refuses (a file without a model of its own, a
# sweep with a point that fails a check)
best() {
    least=
    for _ in 1 2 3 4 5; do
        from=$(now)
        "$vwn" "$@" > out 2>&1 < /dev/null || true
        took=$((($(now) - from) / 1000000))
        [ -n "$least" ] && [ "$least" -le "$took" ] || least=$took
    done
    echo "$least"
}
# worst NAME COMMAND...: over all examples, whose path stands where FILE does
worst() {
    name=$1
    shift
    most=0
    which=
    for file in "$here"/examples/[0-9]*.vwn; do
        # shellcheck disable=SC2046 # a command is words
        took=$(best $(printf '%s\n' "$@" | sed "s|^FILE\$|$file|"))
        [ "$took" -le "$most" ] || {
            most=$took
            which=$(basename "$file")
        }
    done
    printf '%5d ms  %-12s %s\n' "$most" "$name" "$which"
}

# on_run COMMAND...
on_run() { printf '%5d ms  %s\n' "$(best "$@")" "$*"; }

worst check check FILE
worst params params FILE
worst cost cost FILE
worst graph graph FILE -o graph.svg
worst plot plot FILE
worst resolve resolve FILE
for file in 12_sweep 36_sweep_bottleneck; do
    printf '%5d ms  %-12s %s\n' "$(best sweep "$here/examples/$file.vwn" --list)" "sweep --list" $file.vwn
done

# the quickstart's model, 2M weights, after a few steps
cp "$text" kjv.txt
sed 's/2000 steps/20 steps/; s/every = 500 steps/every = 20 steps/; s/warmup = 50 steps/warmup = 5 steps/' \
    "$here/examples/quickstart.vwn" > model.vwn
"$vwn" train model.vwn --run run -q
on_run plot runs/run loss
on_run compare runs/run runs/run
on_run diff runs/run runs/run
on_run export-log runs/run -o run.csv
on_run report runs/run -o run.html
echo "These compute the model, on text:"
on_run inspect runs/run
