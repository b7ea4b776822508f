# tensors.sh - `vwn inspect --stats` and `vwn diff`: numbers of a checkpoint against those that od and awk find in its bytes; two
# checkpoints, two runs, two files; numbers that are not finite; files of others; exit statuses.
# When: quick, checked.
. "$VWN_SOURCE/tests/support/lib.inc"

squares > text.txt
small_model '' '  embed tokens { vocab = 256 }
  for layer in 1..2 {
    ffn { hidden = 24, activation = gelu }
  }
  head lm { norm = rms_norm(eps = 1e-6) }' > model.vwn
small_train '  length = 6 steps
  optimizer adamw { lr = constant(peak = 1e-2), betas = [0.9, 0.999], eps = 1e-8, weight_decay = 0.1 }
  checkpoint { every = 2 steps, keep = 9 }' >> model.vwn
expect 0 "$VWN" train model.vwn --run runs/a -q
expect 0 "$VWN" train model.vwn --run runs/b -q --set train.seed=2 --until '4 steps'

# numbers FILE TENSOR: its float32 numbers, one a line
numbers() {
    header=$(od -An -v -t u8 -N 8 "$1" | tr -d ' ')
    range=$(head -c $((8 + header)) "$1" | tail -c +9 | sed 's/},*/\n/g' | grep -F "\"$2\":{" | sed 's/.*"data_offsets":\[\([0-9]*\),\([0-9]*\).*/\1 \2/')
    od -An -v -w4 -t f4 -j $((8 + header + ${range% *})) -N $((${range#* } - ${range% *})) "$1" | tr -d ' '
}
# near GOT WANTED WHAT [ABSOLUTE]: comma-separated numbers that agree; od prints eight digits
near() {
    echo "$1;$2" | awk -F';' -v least="${4:-1e-12}" '{ n = split($1, a, ","); m = split($2, b, ","); for (i = 1; i <= n; i++) { d = a[i] - b[i]; if (d < 0) d = -d
        if (d > least + 1e-6 * (b[i] < 0 ? -b[i] : b[i])) exit 1 } exit n != m }' || fail "$3 is $1, wanted $2"
}
newest=runs/a/ckpt/step_00000006.safetensors

expect 0 "$VWN" inspect runs/a --stats --csv
[ "$(head -n 1 out)" = tensor,shape,elements,mean,std,min,max,mean_abs,norm,zeros,not_finite ] || fail "the head of the table"
[ "$(wc -l < out)" -eq 10 ] || fail "nine weights"
cp out stats
for tensor in embed.tokens.W 'layer[1].ffn.down.W' 'layer[2].ffn.pre_norm.g' head.lm.W; do
    wanted=$(numbers $newest "$tensor" | awk '{ x[NR] = $1; s += $1; a += $1 < 0 ? -$1 : $1; q += $1 * $1; z += $1 == 0; if (NR == 1 || $1 < lo) lo = $1; if (NR == 1 || $1 > hi) hi = $1 }
        END { m = s / NR; for (i = 1; i <= NR; i++) v += (x[i] - m) ^ 2; printf "%d,%.10g,%.10g,%.10g,%.10g,%.10g,%.10g,%.10g,0", NR, m, sqrt(v / NR), lo, hi, a / NR, sqrt(q), z / NR }')
    near "$(grep -F "\"$tensor\"," stats | sed 's/.*"\[[0-9, ]*\]",//')" "$wanted" "$tensor"
done
expect 0 "$VWN" inspect runs/a@2 --stats --json --tensors 'layer[*].ffn.up'
json out
[ "$(wc -l < out)" -eq 2 ] || fail "two tensors are selected"
expect 0 "$VWN" inspect $newest --stats --states
has out 'layer[1].ffn.up.W:m'
expect 0 "$VWN" inspect runs/a@2 --stats
lacks out ':m'

# a file of others: NaN, infinity, zeros of both signs, an empty tensor
head='{"odd":{"dtype":"F32","shape":[6],"data_offsets":[0,24]},"none":{"dtype":"F32","shape":[0],"data_offsets":[24,24]},"half":{"dtype":"BF16","shape":[1,2],"data_offsets":[24,28]}}'
{
    printf "$(printf '\\%03o' ${#head})\\0\\0\\0\\0\\0\\0\\0%s" "$head"
    printf '\0\0\300\177\0\0\200\177\0\0\0\0\0\0\0\200\0\0\200\77\0\0\100\300\200\77\0\300'
} > odd.safetensors
expect 0 "$VWN" inspect odd.safetensors --stats --csv
near "$(grep odd out | sed 's/.*",//')" "6,-0.5,1.5,-3,1,1,$(awk 'BEGIN { printf "%.12g", sqrt(10) }'),$(awk 'BEGIN { printf "%.12g", 2 / 6 }'),2" "numbers that are not finite"
near "$(grep half out | sed 's/.*",//')" "2,-0.5,1.5,-2,1,1.5,$(awk 'BEGIN { printf "%.12g", sqrt(5) }'),0,0" "bf16"
expect 0 "$VWN" inspect odd.safetensors --stats
expect 0 "$VWN" diff odd.safetensors odd.safetensors
has out '= 3 tensors are equal'

# more numbers than are read at once, of two sizes
large='{"large":{"dtype":"F32","shape":[40000],"data_offsets":[0,160000]}}'
{
    printf "$(printf '\\%03o' ${#large})\\0\\0\\0\\0\\0\\0\\0%s" "$large"
    head -c 60000 /dev/zero | tr '\0' A
    head -c 100000 /dev/zero | tr '\0' B
} > large.safetensors
expect 0 "$VWN" inspect large.safetensors --stats --csv
wanted=$(numbers large.safetensors large | awk '{ s += $1; q += $1 * $1; x[NR] = $1 } END { m = s / NR; for (i = 1; i <= NR; i++) v += (x[i] - m) ^ 2; printf "40000,%.10g,%.10g,%.10g,%.10g,%.10g,%.10g,0,0", m, sqrt(v / NR), x[1], x[NR], m, sqrt(q) }')
near "$(grep large out | sed 's/.*",//')" "$wanted" "a large tensor"

# two checkpoints
expect 6 "$VWN" diff runs/a@2 runs/a@6 --json
json out
for tensor in embed.tokens.W head.lm.norm.g; do
    numbers runs/a/ckpt/step_00000002.safetensors $tensor > x
    numbers $newest $tensor > y
    wanted=$(paste -d ' ' x y | awk '{ d = $2 - $1; q += d * d; d = d < 0 ? -d : d; if (d > m) m = d; a += $1 * $1; b += $2 * $2; p += $1 * $2 } END { printf "%.10g,%.10g,%.10g", m, sqrt(q / a), p / sqrt(a) / sqrt(b) }')
    near "$(grep -o "\"name\":\"$tensor\"[^}]*" out | sed 's/.*"max":\(.*\),"relative":\(.*\),"cosine":\(.*\)/\1,\2,\3/')" "$wanted" "$tensor" 2e-7
done
expect 0 "$VWN" diff runs/a $newest
expect 0 "$VWN" diff runs/a runs/a --checkpoints
expect 6 "$VWN" diff runs/b runs/a --checkpoints
has out 'embed.tokens.W'
expect 6 "$VWN" diff runs/b runs/a --tensors 'layer[*].ffn' --json
json out
grep -o '"name":"[^"]*"' out | grep -qv '"layer\[[12]\].ffn' && fail "other tensors than those asked for: $(cat out)"
grep -q '"name":"layer\[2\].ffn' out || fail "tensors that were asked for"
expect 2 "$VWN" diff runs/b runs/a --tensors layer.nothing
has err 'selects no tensor'
expect 0 "$VWN" train model.vwn --run runs/wide -q --set D=24 --until '2 steps'
expect 6 "$VWN" diff runs/a@2 runs/wide@2
has out '[256, 16] -> [256, 24]'
expect 6 "$VWN" diff odd.safetensors $newest
has out '-  tensor  odd'
has out '+  tensor  embed.tokens.W'

# two runs
expect 0 "$VWN" diff runs/a runs/a
expect 6 "$VWN" diff runs/a runs/b
has out 'setting    train.seed  2'
has out 'attribute  train.seed  1 -> 2'
has out 'steps       6 -> 4'
want=$(grep '"event":"step"' runs/b/events.jsonl | tail -n 1 | sed 's/.*"loss":\([0-9.e+-]*\).*/\1/')
has out "-> $want"

# a file of another version: its bytes are compared, and nobody says that there is no difference where these differ
cp -r runs/a runs/later
cp -r runs/a runs/latest
echo 'a language that is yet to come' > runs/later/resolved.vwn
expect 6 "$VWN" diff runs/a runs/later
has out '~  file  resolved.vwn'
has out 'no file of this version'
has err 'byte by byte'
lacks out 'no difference'
expect 6 "$VWN" diff runs/later runs/a --json
json out
has out '"same":false'
cp runs/later/resolved.vwn runs/latest
expect 0 "$VWN" diff runs/later runs/latest
rm runs/latest/resolved.vwn
expect 6 "$VWN" diff runs/later runs/latest
has out 'is missing'

# two files: form does not count, content does
"$VWN" fmt - < model.vwn | sed 's/^let D = 16/let D = 8 * 2  # as before/' > other.vwn
expect 0 "$VWN" diff model.vwn other.vwn
has out 'no difference'
for example in 07_vwn_x8_moe 09_nexus_growth; do
    "$VWN" resolve "$VWN_SOURCE/examples/$example.vwn" > resolved.vwn
    expect 0 "$VWN" diff "$VWN_SOURCE/examples/$example.vwn" resolved.vwn
done
sed 's/for layer in 1..2/for layer in 1..3/; s/hidden = 24/hidden = 32/; s/optimizer adamw/optimizer lion/; s/, eps = 1e-8//' model.vwn > other.vwn
expect 6 "$VWN" diff model.vwn other.vwn
has out 'model.layer[*].ffn.hidden'
has out '24 -> 32'
has out '~  loop       model.layer[*]'
has out 'adamw -> lion'
has out '+  weight     layer[3].ffn.up.W'
has out 'layer[*].ffn.up.W x 2'
key() { "$VWN" cost $1 --json | grep -o "\"$2\":[0-9]*" | head -n 1 | sed 's/.*://' | awk '{ s = $1; while (s ~ /[0-9][0-9][0-9][0-9]/) s = gensub_(s); print s } function gensub_(t) { match(t, /[0-9]+/); return substr(t, 1, RLENGTH - 3) "," substr(t, RLENGTH - 2) }'; }
has out "$(key model.vwn stored) -> $(key other.vwn stored)"
has out "$(key model.vwn flops_per_token) -> $(key other.vwn flops_per_token)"
expect 6 "$VWN" diff model.vwn other.vwn --json
json out
expect 1 "$VWN" diff model.vwn none.vwn
expect 2 "$VWN" diff model.vwn runs/a
has err '`vwn diff model.vwn runs/a/resolved.vwn`'
expect 2 "$VWN" diff model.vwn $newest
has err 'compare two of a kind'
expect 5 "$VWN" diff runs/a none.safetensors
expect 2 "$VWN" inspect runs/a --stats --growth
expect 2 "$VWN" inspect runs/a --stats --tensors layer.nothing
has err 'selects no tensor'
printf 'x' | dd of=$newest bs=1 seek=$(($(wc -c < $newest) - 5)) conv=notrunc 2> dd.err
expect 5 "$VWN" inspect $newest --stats
expect 2 "$VWN" diff runs/b runs/a --states
has err 'give `--checkpoints`, too'
expect 2 "$VWN" inspect runs/a --tensors 'layer[*]'
has err '`--tensors` belongs to `vwn inspect RUN --stats` or `--growth`'
finish
