# emit_grown.sh - weights of a run that grew, and began its schedule anew there, in a folder of `vwn emit c` of the model behind the
# step: it goes on at the same learning rates, evaluates and ends with the same step as the run, with its losses. What is
# damaged in such a file is told.
. "$VWN_SOURCE/tests/support/lib.inc"
command -v make cc > /dev/null || exit 77

squares > text.txt
body='  embed tokens { vocab = 256 }
  ffn  { hidden = hidden, activation = gelu }
  head lm { norm = rms_norm(eps = 1e-6) }'
rate='lr = cosine(peak = 1e-2, floor = 1e-3, warmup = 2 steps, total = length)'
train="length = 5 steps
  eval { every = 4 steps, batches = 2 }
  checkpoint { every = 4 steps, keep = 9 }
  optimizer sgd { $rate, momentum = 0.9, weight_decay = 0 }"
{
    small_model 'let hidden = 8' "$body"
    small_train "$train"
    cat <<'EOT'

grow wider {
  when = step >= 4
  let hidden = 12
  fill { exit = zeros }
  train { length = 6 steps }
}
EOT
} > grows.vwn
{
    small_model 'let hidden = 12' "$body"
    small_train "$train" | sed 's/length = 5 steps/length = 6 steps/'
} > grown.vwn

expect 0 "$VWN" train grows.vwn --run run --json
# events EVENT NUMBERS: what the run says of the steps behind 8
events() { sed -n 's/.*"event":"'"$1"'","step":\(9\|10\),.*"'"$2"'":\([-0-9.e+]*\)[,}].*/\1 \2/p' out; }
events step loss > losses
events step lr > rates
events eval eval_loss > evals
[ "$(wc -l < losses)" -eq 2 ] || fail "the run has not 10 steps"
[ "$(wc -l < evals)" -eq 1 ] || fail "the run has not evaluated behind its last step"

expect 0 "$VWN" emit c grown.vwn -o folder
expect 0 make -s -C folder
expect 0 folder/model train text.txt --weights runs/run/ckpt/step_00000008.safetensors --out last.safetensors
cp out printed
# near WHAT SED FILE TOLERANCE
near() {
    sed -n "$2" printed > ours
    paste -d ' ' "$3" ours | awk -v share="$4" '
        { d = $2 - $4; if (d < 0) d = -d; if (NF != 4 || $1 != $3 || !(d <= share * $2 + 1e-12)) bad = 1 }
        END { exit bad || !NR }' || fail "$1: $(tr '\n' ' ' < "$3") and $(tr '\n' ' ' < ours) differ"
}
near losses 's|^step \([0-9]*\)/10 loss \([0-9.]*\) .*|\1 \2|p' losses 1e-4
near rates 's|^step \([0-9]*\)/10 .* lr \([-0-9.e]*\) .*|\1 \2|p' rates 2e-3
near evals 's|^step \([0-9]*\)/10 eval_loss \([0-9.]*\)$|\1 \2|p' evals 1e-4
# what it wrote is at the end
expect 0 folder/model train text.txt --weights last.safetensors
empty out

# a NUL within a field, as six bytes of the same file: no schedule then began at step 0
LC_ALL=C sed 's/"checksum"/"was_here"/; s/"time_from_step":"4"/"time_from_step":"4\\u0000"/
    s/"recent_losses":"\([0-9.]*\)[0-9]\{6\} /"recent_losses":"\1 /' last.safetensors > same.safetensors
LC_ALL=C sed 's/"checksum"/"was_here"/; s/"format":"vwn folder 1"/"format":"vwn fo\\u0000"/' last.safetensors > format.safetensors
for file in same format; do
    [ "$(wc -c < $file.safetensors)" -eq "$(wc -c < last.safetensors)" ] || fail "$file: another length"
done
expect 1 folder/model train text.txt --weights same.safetensors
has err 'the metadata `time_from_step` is not a number of the right kind'
expect 1 folder/model eval text.txt --weights format.safetensors
has err 'the metadata `format` holds a NUL: it is damaged'
finish
