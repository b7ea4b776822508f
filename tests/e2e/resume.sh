# resume.sh - going on: a run by its name, longer than it was to be, to a step, from a checkpoint that is there or not.
. "$VWN_SOURCE/tests/support/lib.inc"
squares > text.txt
{ small_model '' '  embed tokens { vocab = 256 }
  ffn { hidden = 24, activation = gelu }
  head lm { norm = rms_norm(eps = 1e-6) }'
  small_train '  length    = 6 steps
  optimizer adamw { lr = constant(peak = 1e-2, warmup = 3 steps), betas = [0.9, 0.99], eps = 1e-8, weight_decay = 0.1 }
  checkpoint { every = 2 steps, keep = 20 }
  eval { every = 3 steps, batches = 1 }'; } > model.vwn

# a run that is made longer has the bits of one that was so long from the start, where no schedule depends on the length
expect 0 "$VWN" train model.vwn --run whole --device reference "--set=train.length=9 steps"
expect 0 "$VWN" train model.vwn --run parts --device reference
expect 0 "$VWN" resume parts --device reference "--set=train.length=9 steps"
has err 'the run was to end at step 6, and now at step 9: no schedule depends on its length, so it is the run that it would have been'
for step in 4 8 9; do
    [ -s runs/whole/ckpt/step_0000000$step.safetensors ] || fail "no checkpoint of step $step"
done
cmp runs/whole/ckpt/step_00000009.safetensors runs/parts/ckpt/step_00000009.safetensors > said 2>&1 ||
    fail "another run than one that was longer from the start: $(cat said)"
cmp -s runs/whole/ckpt/step_00000009.safetensors runs/whole/ckpt/step_00000008.safetensors && fail "nothing is trained between steps 8 and 9"
# and of the model of the other kind, whose rate falls to the end, other ones; the run says which rate it is
sed 's/constant(peak = 1e-2, warmup = 3 steps)/linear(peak = 1e-2, floor = 0)/' model.vwn > falls.vwn
expect 0 "$VWN" train falls.vwn --run falls --device reference
expect 0 "$VWN" train runs/falls --resume --device reference "--set=train.length=9 steps"
has err 'schedules that depend on its length follow the new one from here on, and the rate of step 7 is 0.003333 instead of 0'
expect 0 "$VWN" train falls.vwn --run fallen --device reference "--set=train.length=9 steps"
cmp -s runs/falls/ckpt/step_00000009.safetensors runs/fallen/ckpt/step_00000009.safetensors && fail "rates that fall to another end make no difference"

# what is left to train is said
expect 0 "$VWN" resume parts --device reference
has err "nothing is left to train: the run ends at step 9; \`--set train.length='18 steps'\` goes on"
expect 0 "$VWN" resume parts --device reference --until '20 steps'
has err "\`--until '20 steps'\` lies beyond the end of the run, which has 9: \`--set train.length='20 steps'\` makes it longer"
expect 0 "$VWN" train model.vwn --run short --device reference --until '4 steps'
lacks err 'beyond the end'
expect 0 "$VWN" resume short --device reference --until '2 steps'
has err 'nothing is trained: the run is at step 4 already'
expect 0 "$VWN" resume runs/short --device reference
has out 'trained at step 6 of 6'

# what trains nothing leaves no settings behind, which a later start would go on with
cp -r runs/parts before
expect 0 "$VWN" resume parts --device reference --set train.optimizer.lr.peak=1
has err 'nothing is left to train'
for file in origins.json record.jsonl resolved.vwn; do
    cmp -s before/$file runs/parts/$file || fail "a start that trains nothing changes $file"
done
expect 1 "$VWN" resume parts --device reference "--set=train.length=5 steps"
has err 'is at step 9, but the run has only 5 steps'
lacks err 'nothing is left'
expect 2 "$VWN" resume parts --until '+5 steps'
has err "a count is needed, such as \`--until '8 steps'\`"
# a start that is killed before its first checkpoint has left its settings: the file is as it was
sed '/"set"/s/\[/["train.optimizer.lr.peak=0.02", /' runs/parts/origins.json > origins && mv origins runs/parts/origins.json
expect 0 "$VWN" resume parts --device reference "--set=train.length=10 steps"
has err 'step_00000009.safetensors was written under other settings: train.optimizer.lr.peak 1e-2 -> 0.02; going on with those of now'
lacks err 'has changed'

# by name, from everywhere, and when the file is gone
mkdir short elsewhere # a folder of this name is no run
for verb in 'sample --tokens 2' 'eval' 'plot' 'compare' 'export-log' 'watch --once' 'inspect'; do
    # shellcheck disable=SC2086
    set -- $verb
    word=$1
    shift
    expect 0 "$VWN" "$word" short "$@"
done
expect 6 "$VWN" diff short@2 short@4
cp -r runs/short runs/loss # what is plotted is no run
expect 0 "$VWN" plot short loss
expect 0 "$VWN" compare short loss
rm -r runs/loss
(cd elsewhere && "$VWN" resume ../runs/short --device reference > ../out 2>&1) || fail "from another folder: $(cat out)"
expect 2 "$VWN" train short
has err '`vwn resume runs/short` goes on with the run in it'
expect 2 "$VWN" resume model.vwn
has err 'vwn train FILE --resume'
mv model.vwn gone.vwn
expect 0 "$VWN" resume short --device reference "--set=train.length=7 steps"
has err 'was trained from model.vwn, which is there no more: it goes on with its own copy, runs/short/resolved.vwn'
has out 'trained at step 7 of 7'
(cd elsewhere && "$VWN" resume ../runs/short --device reference "--set=train.length=8 steps" > ../out 2>&1) || fail "from another folder: $(cat out)"
has out 'trained at step 8 of 8'
expect 0 "$VWN" runs runs/short
has out "model.vwn, sha256 $(sha256sum gone.vwn | cut -c1-12) (the run's copy)"
mv gone.vwn model.vwn # it is as it was
expect 0 "$VWN" resume short --device reference "--set=train.length=9 steps"
lacks err 'changed'
lacks err 'copy'
expect 2 "$VWN" train model.vwn --resume --kept
has err '`model.vwn` is no run'
mv model.vwn gone.vwn

# a text that came by a pipe has no name
expect 0 sh -c '"$0" train - --run piped --device reference --until "2 steps" < gone.vwn' "$VWN"
expect 0 "$VWN" resume piped --device reference
has err 'was trained from a text that had no name, which is there no more: it goes on with its own copy, runs/piped/resolved.vwn'
expect 0 "$VWN" runs runs/piped
has out "; a text that had no name (the run's copy)"

# weights and moments, without the text in front, which says of which file it is
same_numbers() {
    for checkpoint in "$1" "$2"; do tail -c 100000 "$checkpoint" | sha256sum; done | uniq | wc -l | grep -qx 1
}

# a variant whose base is gone, with data beside that; a run that has grown, with rates that know of the step
mkdir deep
sed 's/hidden = 24/hidden = W/; s/^let D = 16/&\nlet W = 16/' gone.vwn > deep/base.vwn
cp text.txt deep/
cat > grows.vwn << 'END'
variant "deep/base.vwn" { train.seed = 2 }
grow wider {
  when = step == 2
  let W = 24
  fill { entry = copy, exit = split }
  old { lr_scale = 0.5, warmup = 3 steps }
  new { lr_scale = 2 }
}
END
expect 0 "$VWN" train grows.vwn --run grown --device reference
for steps in 1 4; do
    expect 0 "$VWN" train grows.vwn --run grown$steps --device reference --until "$steps steps"
done
expect 0 "$VWN" runs runs/grown4
has out "reads deep/base.vwn, sha256 $(sha256sum deep/base.vwn | cut -c1-12)"
mv deep/base.vwn deep/gone.vwn
for steps in 1 4; do
    expect 1 "$VWN" resume grown$steps --device reference
    has err "Note \`vwn resume runs/grown$steps --kept\` goes on with the file as the run keeps it"
    expect 0 "$VWN" resume grown$steps --device reference --kept
    lacks err warning
    same_numbers runs/grown/ckpt/step_00000006.safetensors runs/grown$steps/ckpt/step_00000006.safetensors ||
        fail "another run than the one with its file"
done
expect 0 "$VWN" sample grown4 --tokens 1
mkdir moved # with its data, and run from there
cp -r deep runs moved/
expect 0 "$VWN" resume moved/runs/grown4 --device reference --kept '--set=train.length=7 steps'
mv deep/gone.vwn deep/base.vwn
expect 0 "$VWN" resume grown4 --device reference '--set=train.length=7 steps'
lacks err 'changed'
same_numbers runs/grown4/ckpt/step_00000007.safetensors moved/runs/grown4/ckpt/step_00000007.safetensors || fail "the moved one is another"
sed '/^grow/,/^}/d' grows.vwn > now.vwn && mv now.vwn grows.vwn # a file that grows no more is no longer kept as one that does
expect 0 "$VWN" train grows.vwn --run grown1 --overwrite --device reference --until '2 steps'
[ ! -e runs/grown1/grows.vwn ] || fail "the run keeps a file of another one"
mv grows.vwn gone_too.vwn
expect 0 "$VWN" resume grown1 --device reference
has err 'its own copy, runs/grown1/resolved.vwn'

# a checkpoint that is not there: those that are
expect 2 "$VWN" sample runs/short@3 --tokens 1
has err 'the run `runs/short` has no checkpoint of step 3; it has those of steps 2, 4, 6, 7, 8 and 9'
expect 2 "$VWN" eval short@
has err 'behind @ stands the step of a checkpoint, as in `runs/short@9`'
expect 0 "$VWN" train gone.vwn --run many --device reference "--set=train.length=30 steps" -q
expect 2 "$VWN" sample many@13
has err 'of 15 it has those of steps 2, 12, 14 and 30'
expect 5 "$VWN" sample shrt
has err 'there is no run or checkpoint `shrt`; did you mean `short`?'
for verb in 'resume' 'resume --dry-run' 'compare short' 'runs rm' 'runs tag' 'export-log'; do # all verbs that take a run
    for run in shrt runs/shrt; do
        words=
        [ "$verb" != 'runs tag' ] || words=one
        # shellcheck disable=SC2086
        expect 2 "$VWN" $verb $run $words
        has err "; did you mean \`${run%shrt}short\`?"
    done
done
expect 2 "$VWN" resume elsewhere_altogether
has err 'runs/ holds `fallen`, `falls`'
expect 5 "$VWN" sample elsewhere_altogether
has err 'runs/ holds `fallen`, `falls`'
finish
