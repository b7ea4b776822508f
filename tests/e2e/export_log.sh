# export_log.sh - `vwn export-log`: CSV and TensorBoard files, read by a reader of its own, against the events of runs that were
# stopped, have grown, are damaged or are still being written.
# When: checked.
. "$VWN_SOURCE/tests/support/lib.inc"

squares > text.txt
small_model 'let hidden = 24' '  embed tokens { vocab = 256 }
  ffn { hidden = hidden, activation = gelu }
  head lm { norm = rms_norm(eps = 1e-6) }' > model.vwn
small_train '  length = 12 steps
  optimizer adamw { lr = constant(peak = 1e-2), betas = [0.9, 0.999], eps = 1e-8, weight_decay = 0.1 }
  eval { every = 5 steps, batches = 2 }' >> model.vwn
cat >> model.vwn <<'EOT'

grow wider {
  when = step >= 8
  let hidden = 40
  check alive(none)
  check preserves(none)
}
EOT
expect 0 "$VWN" train model.vwn --run runs/a -q --until '6 steps'
expect 0 "$VWN" train model.vwn --run runs/a -q --resume
expect 0 "$VWN" train model.vwn --run runs/b -q --set train.seed=2 --until '3 steps'
events=runs/a/events.jsonl

expect 0 "$VWN" export-log runs/a runs/b --csv
cp out table.csv
[ "$(wc -l < out)" -eq $(($(cat runs/a/events.jsonl runs/b/events.jsonl | wc -l) + 1)) ] || fail "a row for each event"
column() { head -n 1 table.csv | tr ',' '\n' | tr -d '"' | grep -nx "$1" | cut -d: -f1; }
sed -n 's/.*"event":"step","step":\([0-9]*\),.*"loss":\([0-9.e+-]*\),.*"lr":\([0-9.e+-]*\),.*/\1,\2,\3/p' $events > wanted
grep '^"runs/a",step,' table.csv | cut -d, -f3,"$(column loss)","$(column lr)" > got
cmp -s got wanted || fail "losses of the table: $(head -n 1 got), wanted $(head -n 1 wanted)"
grep '^"runs/a",' table.csv | cut -d, -f5 | sort -g -c || fail "time goes back where the run went on"
grep -q '^"runs/a",growth,8,.*"wider: ' table.csv || fail "the growth step"
expect 0 "$VWN" export-log runs/a runs/b -o events.csv
cmp -s events.csv table.csv || fail "-o writes something else"
expect 0 "$VWN" export-log runs/b --json
json out
[ "$(wc -l < out)" -eq "$(wc -l < runs/b/events.jsonl)" ] || fail "a line for each event"

expect 0 "$VWN" export-log runs/a runs/b --tensorboard -o board
file=board/a/events.out.tfevents.0.vwn
filled board/b/events.out.tfevents.0.vwn
expect 0 "$EVENT_FILE" $file
cp out scalars
awk '$3 == "loss" { printf "%d %.6g\n", $2, $4 }' scalars > got
awk -F, '{ printf "%d %.6g\n", $1, $2 }' wanted > rounded
cmp -s got rounded || fail "losses of the event file: $(head -n 1 got), wanted $(head -n 1 rounded)"
[ "$(awk '$3 == "eval_loss"' scalars | wc -l)" -eq "$(grep -c '"event":"eval"' $events)" ] || fail "evaluations"
[ "$(awk '$3 == "loss.next"' scalars | wc -l)" -eq 12 ] || fail "losses of evaluations among those of steps"
# the settings of the run, and how it ended; what counts time, and what is the same in each step, is no curve
has scalars ' 0 hparam D 16'
has scalars ' 0 hparam train.seed 1'
has scalars ' 0 hparam train.optimizer "adamw"'
has scalars ' 0 hparam train.optimizer.lr "constant(peak = '
[ "$(grep -c ' ended 1 ' scalars)" -eq 1 ] || fail "the end: $(grep ended scalars)"
awk '$3 != "hparam" && $3 != "ended" { print $3 }' scalars | sort -u > curves
grep -E -x 'eta|seconds|.*/(eta|seconds|weights|steps|tokens|train_flops_per_token)|start/.*|end/.*' curves > clocks
empty clocks
for curve in loss lr grad_norm eval_loss tok_s; do grep -qx $curve curves || fail "no curve $curve: $(cat curves)"; done
expect 0 "$EVENT_FILE" board/b/events.out.tfevents.0.vwn
has out ' hparam train.seed 2'
awk '{ print $1 }' scalars | sort -g -c || fail "time goes back in the event file"
# the last event is as old as the file it was read from
awk -v at="$(stat -c %Y $events)" 'END { d = $1 - at; exit d < -1.5 || d > 1.5 }' scalars || fail "when the last event was"
# one flipped bit is found by the reader, so its checksums mean something
cp $file broken
printf '\001' | dd of=broken bs=1 seek=70 conv=notrunc 2> dd.err
expect 1 "$EVENT_FILE" broken

# damaged lines, and one that is being written
mkdir runs/c
cp runs/a/resolved.vwn runs/c/
{ head -n 4 $events; echo '{"v":1,"event":"step","st'; tail -n +5 $events; printf '{"v":1,"eve'; } > runs/c/events.jsonl
expect 0 "$VWN" export-log runs/c --tensorboard -o board -q
has err 'runs/c/events.jsonl:5: 1 damaged line is passed over'
expect 0 "$EVENT_FILE" board/c/events.out.tfevents.0.vwn
for file in out scalars; do cut -d' ' -f2- $file | sed 's/ ended 1 .*/ ended 1/' > $file.numbers; done # its file is of another date
mv out.numbers got
mv scalars.numbers wanted
cmp -s got wanted || fail "other numbers of a damaged file"

expect 2 "$VWN" export-log runs/none
has err 'is no run directory'
expect 2 "$VWN" export-log runs/a --tensorboard
has err 'say which with `-o DIR`'
expect 2 "$VWN" export-log runs/a --csv --json
expect 2 "$VWN" export-log runs/a ./runs/a --tensorboard -o board
has err 'would be one folder `a`'
: > taken
expect 5 "$VWN" export-log runs/a --tensorboard -o taken
expect 0 "$VWN" export-log runs/a
cp out shown
expect 0 "$VWN" export-log runs/a -o -
cmp -s out shown || fail "- is stdout"
[ ! -e ./- ] || fail "a file named -"
expect 0 "$VWN" export-log runs/a -o shown.csv
cmp -s shown shown.csv || fail "the file is what stdout is"
has err 'Written shown.csv'
expect 2 "$VWN" export-log runs/a -o model.vwn
has err 'must end in .csv, .json or .jsonl'

# what others have written into events: what a terminal acts on is not printed, by no verb and in no form
mkdir runs/evil
{
    cat runs/b/events.jsonl
    printf '{"v":1,"event":"step\\u001b]0;t\\u0007","step":3,"tokens":9,"seconds":9,"metric.a\\u001b[2J\\u202e\\"":1,"text":"\\u001b[31m\\u009b2J\\r\\u0000x\\ny\\tz"}\n'
} > runs/evil/events.jsonl
controls() { # FILE: has anything that a terminal acts on, but for new lines and tabs
    LC_ALL=C grep -qaP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xaa-\xae]|\xe2\x81[\xa6-\xa9]' "$1"
}
printf '\302\233' > sure
controls sure || fail "the test itself sees no control character"
for verb in 'export-log runs/evil' 'export-log runs/evil --json' 'export-log runs/evil -o evil.csv' 'watch runs/evil --once' \
    'watch runs/evil --once --json' 'compare runs/evil' 'compare runs/evil --csv' 'report runs/evil -o evil.html' \
    'plot runs/evil' 'plot runs/evil --csv loss'; do
    # shellcheck disable=SC2086 # words
    "$VWN" $verb > out 2> err < /dev/null
    for file in out err evil.csv evil.html; do
        [ ! -e $file ] || ! controls $file || fail "$verb: a control character in $file"
    done
done
grep -q 'metric.a.*2J' evil.csv || fail "the name is shown without them"
printf 'x\033[2Jy' > strange
expect 2 "$VWN" export-log "runs/$(cat strange)"
! controls err || fail "a control character of a name in a message"
finish
