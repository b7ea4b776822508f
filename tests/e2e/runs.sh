# runs.sh - what a run remembers, and `vwn runs`: records against sha256sum, git and the clock, and never in a checkpoint; the list
# against the runs' own events; sort, filter, tags, notes; what `rm` takes away and what it leaves.
. "$VWN_SOURCE/tests/support/lib.inc"
export GIT_CONFIG_NOSYSTEM=1 HOME="$PWD"
unset GIT_CEILING_DIRECTORIES

squares > text.txt
small_model 'let rate = 0.05' '  embed tokens { vocab = 256 }
  ffn { hidden = 24, activation = gelu }
  head lm { norm = rms_norm(eps = 1e-6) }' > model.vwn
small_train '  length = 6 steps
  optimizer sgd { lr = rate, momentum = 0, weight_decay = 0 }
  eval { every = 3 steps, batches = 1 }
  checkpoint { every = 3 steps, keep = 9 }' >> model.vwn
final=step_00000006.safetensors
# word KEY FILE: the value of each line
word() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p" "$2"; }

# ---- records ----
mkdir bin
for tool in sh cc gcc as ld; do ln -s "$(command -v $tool)" bin/; done
git init -q . 2> /dev/null && git -c user.name=n -c user.email=e commit -q --allow-empty -m none && echo runs > .gitignore && git add model.vwn .gitignore &&
    git -c user.name=n -c user.email=e commit -q -m model && commit=$(git rev-parse HEAD)
before=$(date -u +%Y-%m-%dT%H:%M:%SZ)
expect 0 "$VWN" train model.vwn --run a --threads 1 -q
after=$(date -u +%Y-%m-%dT%H:%M:%SZ)
json runs/a/record.jsonl
record=runs/a/record.jsonl
[ "$(word sha256 $record)" = "$(sha256sum model.vwn | cut -d' ' -f1)" ] || fail "the file has another hash"
date=$(word date $record)
[ "$(printf '%s\n' "$before" "$date" "$after" | sort -c 2>&1)" = '' ] || fail "$date is not between $before and $after"
[ "$(word host $record)" = "$(uname -n)" ] || fail "another host"
has $record '"device":"cpu","threads":1,"command":['
has $record '"train","model.vwn","--run","a","--threads","1","-q"]'
[ "$(word folder $record)" = "$PWD" ] || fail "another folder"
[ "$("$VWN" --version)" = "vwn $(word vwn $record) ($(word build $record))" ] || fail "another build"
if [ -n "${commit:-}" ]; then
    [ "$(word commit $record)" = "$commit" ] && has $record '"dirty":false' || fail "git says $commit"
    echo more >> .gitignore
fi
expect 0 "$VWN" train model.vwn --run b -q --until '3 steps'
[ -z "${commit:-}" ] || has runs/b/record.jsonl '"dirty":true'
expect 0 env PATH="$PWD/bin" "$VWN" train model.vwn --run b --resume -q --threads 1
[ "$(wc -l < runs/b/record.jsonl)" -eq 2 ] || fail "two starts are not two lines"
tail -n 1 runs/b/record.jsonl > second
lacks second commit
has second '"step":3'
# a git that does not come to an end is left behind, with what it has said
printf '%s\n' '#!/bin/sh' 'case "$*" in *rev-parse*) echo 0123456789012345678901234567890123456789 ;; *) sleep 60 ;; esac' > bin/git
chmod +x bin/git
ln -s "$(command -v sleep)" bin/
began=$(date +%s)
expect 0 env PATH="$PWD/bin" "$VWN" train model.vwn --run slow -q --until '1 steps'
[ $(($(date +%s) - began)) -lt 40 ] || fail "git is waited for"
has runs/slow/record.jsonl '"commit":"0123456789012345678901234567890123456789","file"'
rm -r runs/slow bin/git
# nothing of it is in a checkpoint, which is the same in a folder that lies elsewhere
expect 0 "$VWN" train model.vwn --run "$PWD/c" -q
cmp -s runs/a/ckpt/$final runs/b/ckpt/$final || fail "the same run has another checkpoint"
if grep -qF -e "$PWD" -e "$(uname -n)\"" c/ckpt/$final; then fail "a checkpoint names the folder or the host"; fi
# which finds its text again when all of it is moved
"$VWN" eval c --batches 1 > wanted
mkdir else
cp -r text.txt model.vwn c else/
mv text.txt away.txt
(cd / && "$VWN" eval "$OLDPWD/else/c" --batches 1) > out 2> err || fail "a run that was moved with its text cannot be evaluated"
cmp -s out wanted || fail "it is another loss there"
mv away.txt text.txt
# a record that is damaged is kept, and one that was cut off ends where it ends
printf '{"v":1,"ev' >> runs/a/record.jsonl
expect 0 "$VWN" train model.vwn --run a --resume -q "--set=train.length=7 steps"
[ "$(wc -l < runs/a/record.jsonl)" -eq 3 ] || fail "a cut line has taken the next one"
expect 0 "$VWN" train model.vwn --run a --overwrite -q
[ "$(wc -l < runs/a/record.jsonl)" -eq 1 ] || fail "a new run has the old one's record"

# ---- the list ----
expect 0 "$VWN" train model.vwn --run runs/deep/d -q --set rate=0.5 --set D=8 --until '4 steps'
expect 0 "$VWN" sweep model.vwn --vary D=8,24 --seeds 1,2 --run sizes -q
mkdir -p runs/e/ckpt
sed '/"event":"end"/d' runs/a/events.jsonl > runs/e/events.jsonl # killed before it could say so
cp runs/a/resolved.vwn runs/e/
expect 0 "$VWN" runs
empty err
tail -n +2 out | awk '{ print $1, $2 }' > names
printf '%s\n' 'a trained' 'b trained' 'deep/d stopped' 'e killed' 'sizes/ sweep,' 'sizes/D-8_seed-1 trained' 'sizes/D-8_seed-2 trained' \
    'sizes/D-24_seed-1 trained' 'sizes/D-24_seed-2 trained' | cmp -s - names || fail "other runs, or in another order: $(cat names)"
has out '4 of 4 points'
has out 'D=8 rate=0.5 train.seed=1'
lacks out 'momentum'
expect 0 "$VWN" runs --json
json out
cp out list
weights() { "$VWN" params model.vwn --set D="$1" --json | sed -n 's/.*"model":"[^"]*","stored":\([0-9]*\).*/\1/p'; }
grep '"path":"runs/deep/d"' list > one
has one "\"step\":4,\"steps\":6,\"tokens\":256,"
has one "\"weights\":$(weights 8),"
has one "\"loss\":$(sed -n 's/.*"event":"step".*"step":4,.*"loss":\([0-9.]*\),.*/\1/p' runs/deep/d/events.jsonl),"
has one "\"eval_loss\":$(evals runs/deep/d/events.jsonl | tail -n 1),"
has one '"settings":{"D":"8","rate":"0.5","train.seed":"1"}'
# sorted and filtered as sort and awk do
order() { sed -n 's/.*"event":"run".*"path":"\([^"]*\)".*/\1/p' "$1"; }
expect 0 "$VWN" runs --json --sort eval_loss --reverse --filter state!=killed
order out > sorted
grep -v killed list | sed -n 's/.*"path":"\([^"]*\)".*"eval_loss":\([0-9.]*\),.*/\2 \1/p' | sort -s -k1,1gr | cut -d' ' -f2 | cmp -s - sorted || fail "another order"
expect 0 "$VWN" runs --json --filter 'D<=8' --filter train.seed=1
[ "$(order out | tr '\n' ' ')" = 'runs/deep/d runs/sizes/D-8_seed-1 ' ] || fail "D<=8 with seed 1 are others"
expect 0 "$VWN" runs --filter 'loss<0'
has out 'no runs that pass in runs'
expect 2 "$VWN" runs --filter hidden=24
has err 'did you mean `ffn.hidden`'
expect 2 "$VWN" runs --filter D
for name in loss:loss run:name eval:eval_loss started:date; do # columns as the table calls them, too
    expect 0 "$VWN" runs --sort ${name%:*} --json
    cp out by_head
    expect 0 "$VWN" runs --sort ${name#*:} --json
    cmp -s out by_head || fail "${name%:*} is no other name of ${name#*:}"
done
expect 2 "$VWN" runs --filter eval=low
has err '`eval` is a number'
expect 2 "$VWN" runs --sort nothing
has err 'eval_loss'
expect 2 "$VWN" runs --sort=-loss
has err '`--sort loss --reverse`'
expect 2 "$VWN" runs --filter loss=low
has err "\`loss\` is a number, as in \`--filter 'loss<2'\`"
expect 2 "$VWN" runs --filter state=done,
has err 'a state is one of running, trained, stopped, interrupted, diverged, failed, killed'
expect 0 "$VWN" runs --filter state=done --filter name~sizes
has out 'sizes/'
expect 2 "$VWN" runs nowhere
has err '`vwn runs` alone lists'
expect 0 "$VWN" runs runs/b
[ "$(grep -c "    in $PWD: " out)" -eq 2 ] || fail "one run does not tell of its two starts"

# ---- by name: a run, a point of a sweep, several behind a label ----
expect 0 "$VWN" runs b
grep -q '^  b  ' out || fail "a run is not listed by its name"
expect 0 "$VWN" runs tag sizes/D-8_seed-1 small
expect 0 "$VWN" runs tag sizes/D-8_seed-1 small --remove
expect 0 "$VWN" compare x=a,sizes/D-8_seed-1 y=b
has out 'x (2)'
expect 2 "$VWN" compare x=a,nowhere
# another model's settings say nothing of a run
sed 's/^model [a-z]*/model other/' model.vwn > other.vwn
expect 0 "$VWN" train other.vwn --run zz -q --until '1 steps'
expect 0 "$VWN" runs --json
grep '"path":"runs/zz"' out | grep -q '"settings":{"model":"other"}' || fail "of the only run of its model settings are shown: $(grep runs/zz out)"
expect 0 "$VWN" runs rm zz

# ---- tags and notes, which stay when the run goes on ----
expect 0 "$VWN" runs tag runs/b good 'first!'
expect 0 "$VWN" runs tag runs/b good
expect 0 "$VWN" runs note runs/b 'said "once"'
expect 0 "$VWN" train model.vwn --run b --resume -q
expect 0 "$VWN" runs --filter tag=good --json
json out
has out '"path":"runs/b"'
has out '"tags":["good","first!"],"note":"said \"once\""'
[ "$(wc -l < out)" -eq 1 ] || fail "more runs have the tag"
expect 0 "$VWN" runs tag runs/b good --remove
has out 'runs/b: first! "said'
expect 2 "$VWN" runs tag runs/b 'two words'
expect 2 "$VWN" runs tag runs/none good
expect 0 "$VWN" runs tag runs/sizes whole
expect 0 "$VWN" runs tag runs/b first! --remove
expect 0 "$VWN" runs note runs/b ''
[ ! -e runs/b/labels.json ] || fail "nothing was said, and there is a file of it"

# ---- what is taken away ----
everything() { find . -path ./bin -prune -o -type f -print | grep -v '^\./\(out\|err\|all\|now\|verdict\)$' | sort; }
flock -F runs/a/lock sleep 20 &
holder=$!
sleep 0.2
everything > all
expect 2 "$VWN" runs rm runs/a
has err 'somebody trains there'
ln -s a runs/link
mkdir -p mine/ckpt
cp runs/a/ckpt/$final mine/ckpt/
printf 'my own events\n' > mine/events.jsonl
for folder in runs/link mine . runs /; do
    expect 2 "$VWN" runs rm $folder
    has err 'is not removed'
done
rm -r mine runs/link
# a list of points that names what is no point of it
mkdir runs/b/evil
echo '{"v":1,"event":"sweep","points":[{"name":"..","state":"done"},{"name":"","state":"done"},{"name":"../../a","state":"done"},{"name":".","state":"done"}]}' > runs/b/evil/sweep.json
expect 0 "$VWN" runs rm runs/b/evil
everything > now
cmp -s all now || fail "what was refused is gone"
kill $holder
echo notes > runs/a/ckpt/notes.txt
printf 'my own' > runs/a/ckpt/step_00000009.safetensors
cp runs/b/ckpt/$final kept
ln -s ../../../kept runs/a/ckpt/step_00000010.safetensors
ln -s ../../text.txt runs/a/labels.json
rm runs/a/origins.json && echo '{}' > runs/a/origins.json
expect 0 "$VWN" runs rm runs/a
find runs/a ! -type d | sort > left
printf '%s\n' runs/a/ckpt/notes.txt runs/a/ckpt/step_00000009.safetensors runs/a/ckpt/step_00000010.safetensors runs/a/labels.json runs/a/origins.json |
    cmp -s - left || fail "other files are left: $(cat left)"
for path in $(cat left); do has out "$path stays"; done
[ -s text.txt ] && [ -s kept ] || fail "a link was followed"
expect 2 "$VWN" runs rm runs/a
if [ "$(id -u)" -eq 0 ] && command -v setpriv > tool; then # what is another user's, not even for root; and its own file in a run
    chown -R 2002:2002 runs/e
    printf '{"v":1,"event":"record"}' > runs/b/record.jsonl
    chown 2002 runs/b/record.jsonl
    expect 2 "$VWN" runs rm runs/e
    has err 'it belongs to another user'
    expect 0 "$VWN" runs rm runs/b --json
    json out
    has out '"left":["runs/b/record.jsonl"]'
    [ "$(find runs/b -type f)" = runs/b/record.jsonl ] || fail "more or less is left"
fi
expect 0 "$VWN" runs rm runs/sizes runs/deep/d
[ ! -e runs/sizes ] && [ ! -e runs/deep/d ] && [ -d runs/deep ] || fail "a sweep or a run is left, or more is gone"
finish
