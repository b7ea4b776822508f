# train.sh - a folder made by `vwn new` trains, evaluates, samples, resumes and can be interrupted.
# When: quick, first, released, optimised.
. "$VWN_SOURCE/tests/support/lib.inc"

for kind in nano vwn; do
    draw 1 2 || continue
    expect 0 "$VWN" new $kind --from $kind
    expect 0 "$VWN" check $kind/model.vwn --deny warnings
    expect 0 "$VWN" fmt --check $kind/model.vwn
    expect 0 "$VWN" train $kind/model.vwn --dry-run
    expect 0 "$VWN" train $kind/model.vwn --until '2 steps' --set 'train.log.every=1 steps'
    has err 'step      2/400'
    has err '[>                   ]'
    filled out
    expect 0 "$VWN" eval runs/$kind --batches 1
    has out 'loss'
    expect 0 "$VWN" eval runs/$kind --batches 1 --json
    json out
    expect 0 "$VWN" sample runs/$kind --prompt '1 + 1' --tokens 8 --seed 3
    cp out first
    filled first
    expect 0 "$VWN" sample runs/$kind --prompt '1 + 1' --tokens 8 --seed 3
    cmp -s first out || fail "$kind: the same seed samples another text"
done
expect 2 "$VWN" new nano
expect 2 "$VWN" new other --from olmo
expect 5 "$VWN" new nano/model.vwn/below
has err 'cannot make the folder'
expect 2 "$VWN" train nano/model.vwn
has err '--resume'
expect 0 "$VWN" train nano/model.vwn --resume --until '4 steps' --json
json out
has out '"event":"end"'
expect 0 "$VWN" check runs/nano/resolved.vwn
expect 5 "$VWN" eval no-such-run
sed 's/text.txt/no-such-text.txt/' nano/model.vwn > nano/other.vwn
expect 5 "$VWN" train nano/other.vwn --run other
has err "no-such-text.txt: No such file or directory; it is named in nano/other.vwn:$(grep -n 'text.txt' nano/other.vwn | cut -d: -f1), and its path is relative"
head -c 50 nano/text.txt > nano/short.txt
sed 's/text.txt/short.txt/' nano/model.vwn > nano/other.vwn
expect 5 "$VWN" train nano/other.vwn --run other
has err 'the training part of nano/short.txt has 48 tokens, fewer than the context of 64'
sed 's/^train {/check params == 3\n\n&/' nano/model.vwn > nano/false.vwn
expect 3 "$VWN" train nano/false.vwn --run false

# Interrupted (SIGTERM and SIGINT are one; jobs in the background ignore the latter), or its terminal closed, of
# which the shell and the system both tell: a checkpoint, status 130, and the run goes on from there
for signals in TERM 'HUP HUP'; do
    last="a run interrupted by $signals"
    rm -rf runs/stopped out # the last run's steps are not this one's
    "$VWN" train nano/model.vwn --run stopped --json > out 2> err &
    run=$!
    tries=0
    while ! grep -qs '"event":"step"' out && [ $tries -lt 300 ]; do
        sleep 0.2
        tries=$((tries + 1))
    done
    for signal in $signals; do kill -$signal $run; done
    wait $run
    status=$?
    [ $status -eq 130 ] || fail "status $status after an interrupt"
    ls runs/stopped/ckpt/*.safetensors > /dev/null 2>&1 || fail "no checkpoint"
done
expect 0 "$VWN" sample runs/stopped --tokens 4

# Without a library of products (files of their names that are none stand before them) a run says once that it is
# slow, and what to install; with one it does not.
expect 0 "$VWN" doctor
grep -q 'products: plain' out && there=false || there=true
mkdir hidden
for library in libdnnl.so.3 libdnnl.so.2 libdnnl.so libopenblas.so.0 libopenblas.so; do : > hidden/$library; done
expect 0 env LD_LIBRARY_PATH="$PWD/hidden" "$VWN" train nano/model.vwn --set D=16 --set L=1 --run slow --until '2 steps' --json
json out
[ "$(grep -c '"event":"warning".*libdnnl2' out)" -eq 1 ] || fail "no word of libdnnl2, or more than one"
if $there; then
    expect 0 "$VWN" train nano/model.vwn --set D=16 --set L=1 --run fast --until '2 steps' --json
    lacks out libdnnl2
fi
# a run that keeps no checkpoint has one as long as it goes on
sed 's/length *= .*/length = 6 steps/; s/checkpoint *{[^}]*}/checkpoint { every = 2 steps, keep = 0 }/' nano/model.vwn > nano/none.vwn
grep -q 'keep = 0' nano/none.vwn || sed -i 's/^train {/train {\n  checkpoint { every = 2 steps, keep = 0 }/' nano/none.vwn
none="$VWN train nano/none.vwn --run none -q --set D=16 --set L=1"
expect 0 $none --until '5 steps'
[ "$(ls runs/none/ckpt)" = step_00000005.safetensors ] || fail "stopped before its end: $(ls runs/none/ckpt)"
expect 0 $none --resume
[ -z "$(ls runs/none/ckpt)" ] || fail "after its end: $(ls runs/none/ckpt)"
# without `every` nothing is written on the way; stopped before its end it has one
sed 's/every = 2 steps, keep = 0/keep = 0/' nano/none.vwn > nano/end.vwn
expect 0 "$VWN" train nano/end.vwn --run end --set D=16 --set L=1 --until '5 steps' --json
[ "$(grep -c '"event":"checkpoint"' out)" -eq 1 ] && [ "$(ls runs/end/ckpt)" = step_00000005.safetensors ] || fail "one, where it stopped: $(ls runs/end/ckpt)"
expect 0 "$VWN" train nano/end.vwn --run end --set D=16 --set L=1 --resume --json
lacks out '"event":"checkpoint"'
[ -z "$(ls runs/end/ckpt)" ] || fail "after its end: $(ls runs/end/ckpt)"
cp runs/none/events.jsonl events
expect 0 "$VWN" train nano/none.vwn --run none --set D=16 --set L=1 --resume
has err 'has reached its end, and keeps no checkpoint'
cmp -s events runs/none/events.jsonl || fail "a finished run is begun again"
# killed behind the last step, before the loss behind it was measured: the events alone do not make it a whole run
grep -n '"event":"eval"' events | tail -n 1 | cut -d: -f1 > last_eval
if [ -s last_eval ]; then
    head -n "$(($(cat last_eval) - 1))" events > runs/none/events.jsonl
    grep -q '"event":"step","step":6,' runs/none/events.jsonl || fail "the last step is in what is left"
    expect 0 $none --resume
    [ "$(grep -o '"eval_loss":[0-9.]*' runs/none/events.jsonl | tail -n 1)" = "$(grep -o '"eval_loss":[0-9.]*' events | tail -n 1)" ] ||
        fail "the loss behind the last step: $(cat runs/none/events.jsonl)"
fi
expect 0 "$VWN" train nano/none.vwn --run kept -q --set D=16 --set L=1 --set train.checkpoint.keep=1
loss() { sed 's/"seconds":.*//' "$1" | grep '"event":"step"' | grep -o '"loss":[0-9.]*' | tail -n 1; }
[ "$(loss runs/none/events.jsonl)" = "$(loss runs/kept/events.jsonl)" ] || fail "it learns something else"
expect 5 "$VWN" eval runs/none
has err 'has no checkpoint'
expect 1 "$VWN" check nano/none.vwn --set train.checkpoint.keep=1.5
has err 'a whole number from 0'
finish
