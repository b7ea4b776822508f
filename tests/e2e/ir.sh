# ir.sh - `vwn ir` and `vwn cost`: every stage of every program prints, always the same bytes.
# When: quick, released.
. "$VWN_SOURCE/tests/support/lib.inc"

"$VWN" new small --from vwn > /dev/null
file=small/model.vwn

for stage in ast resolved tensor; do
    expect 0 "$VWN" ir $file --stage $stage
    filled out
done
# every place that draws numbers has its own, also the second one of a line, in each layer
{ small_model 'block noise()(x: [B, T, D]) -> [B, T, D] { return x * bernoulli([B, T, D], 0.5) + x * bernoulli([B, T, D], 0.5) + drop(x, 0.5) }' \
    '  embed tokens { vocab = 256 }
  for layer in 1..2 {
    noise
    attention { heads = 2, dropout = 0.1 }
  }
  head lm { norm = rms_norm(eps = 1e-6) }'
small_train 'length = 1 steps
  optimizer sgd { lr = 0.1, momentum = 0, weight_decay = 0 }'; } > noise.vwn
expect 0 "$VWN" ir noise.vwn --stage tensor --program train
[ "$(grep -o 'site="[^"]*"' out | sort -u | wc -l)" -eq 8 ] || fail "2 x 4 places draw: $(grep -o 'site="[^"]*"' out | sort | uniq -c)"
# sizes that no machine has are a limit, whichever stage meets them
for stage in fuse kernel cuda plan; do
    for batch in 9007199254740991 90071992547409 9223372036854775807; do
        expect 1 "$VWN" ir $file --stage $stage --batch "$batch seqs"
        has err 'limit `tensor size` reached'
    done
done
for program in train update eval predict; do
    for stage in gradient simple fuse kernel threads c cuda plan; do
        expect 0 "$VWN" ir $file --stage $stage --program $program --batch '2 seqs'
        filled out
        empty err
        cp out $program.$stage
        expect 0 "$VWN" ir $file --stage $stage --program $program --batch '2 seqs'
        cmp -s out $program.$stage || fail "$program, $stage: other bytes in a second run"
    done
    # what is printed reads back: the same graph, and the same graph after simplification
    expect 0 "$VWN" ir --from $program.gradient --stage tensor
    cmp -s out $program.gradient || fail "$program: the graph does not read back"
    # nothing is left to differentiate in it
    expect 0 "$VWN" ir --from $program.gradient --stage gradient
    cmp -s out $program.gradient || fail "$program: differentiated twice"
    expect 0 "$VWN" ir --from $program.simple --stage simple
    cp out twice
    expect 0 "$VWN" ir --from twice --stage simple
    cmp -s out twice || fail "$program: simplifying twice changes the graph"
    # who does what on a GPU: what is mapped, and what each kernel of the text for GPUs was printed from
    has $program.threads ' by threads'
    [ "$(grep -c '^threads ' $program.threads)" -gt 2 ] || fail "$program: kernels without threads"
    expect 0 "$VWN" ir --from $program.threads --stage kernel
    cmp -s out $program.threads || fail "$program: other lines of threads from its kernels"
    expect 2 "$VWN" ir --from $program.threads --stage c
    has err 'for the threads of a GPU'
    # a pass of CPUs alone shows their kernels
    expect 0 "$VWN" ir $file --stage rest --program $program --batch '2 seqs'
    has out '    vectors of i'
    # kernels read back: the same lines, and the same C
    for stage in kernel c; do
        expect 0 "$VWN" ir --from $program.kernel --stage $stage
        cmp -s out $program.$stage || fail "$program: other bytes of $stage from its kernels"
    done
done
# passes: the list is that of either target, every pass with a text prints for either, and ends where a stage of today ends
expect 0 "$VWN" ir $file --passes --batch '2 seqs'
sed 's/, [0-9.]* ms$//' out > passes.cpu
expect 0 "$VWN" ir $file --passes --target gpu --batch '2 seqs'
sed 's/, [0-9.]* ms$//' out > passes.gpu
has passes.cpu ' map         does not run here'
has passes.gpu ' barriers'
expect 0 "$VWN" ir $file --passes --target gpu --batch '2 seqs'
sed 's/, [0-9.]* ms$//' out | cmp -s - passes.gpu || fail "other counts in a second run"
names=$(sed -n 's/^ \{0,1\}[0-9][0-9]* \([a-z]*\) .*/\1/p' passes.gpu)
[ "$(echo "$names" | wc -l)" -gt 30 ] || fail "hardly any passes: $names"
for pass in boundaries fuse unroll tiles map races print launch choose; do
    echo "$names" | grep -qx $pass || fail "no pass $pass in the list"
    "$VWN" ir $file --stage $pass --target gpu --batch '2 seqs' > of.$pass 2> err || has err 'has no text of its own'
done
for same in simplify:simple arguments:kernel print:c gather:plan; do
    expect 0 "$VWN" ir $file --stage ${same%:*} --target cpu --batch '2 seqs'
    grep -v '^ *# removed' out > left
    cmp -s left train.${same#*:} || fail "the pass ${same%:*} leaves something else than the stage ${same#*:} has"
done
sed 's/  # orders .*//' of.races > left
cmp -s left train.threads || fail "what is proved to have no races is not what threads run"
# a dump of a pass reads back, with what it says of barriers and of lines that are gone
for pass in check map lanes races; do
    expect 0 "$VWN" ir $file --stage $pass --target gpu --batch '2 seqs'
    sed -e '/^ *# removed/d' -e 's/  # orders .*//' out > left
    mv out dump
    expect 0 "$VWN" ir --from dump --stage kernel
    cmp -s out left || fail "the dump of $pass does not read back"
done
cmp -s of.print train.cuda || fail "the pass print of a GPU writes another text than the stage cuda has"
has of.map '  # orders '
grep -q '^ *# removed: ' of.map || fail "map removes nothing"
expect 0 "$VWN" ir $file --stage kernel --target gpu --batch '2 seqs'
lacks out ' by threads'
expect 2 "$VWN" ir $file --stage cuda --target gpu
has err '`--target` is for the stages fuse, kernel and plan'
expect 2 "$VWN" ir $file --passes --stage map
expect 2 "$VWN" ir $file --stage nonsense
has err 'there is no pass or stage `nonsense`'
expect 2 "$VWN" ir $file --stage choose
has err 'the pass `choose` has no text of its own'
expect 0 "$VWN" ir --json $file --stage nests
json out
has out '"stage":"nests"'
expect 0 "$VWN" ir --from train.simple --stage decompose
filled out
expect 0 "$VWN" ir --json $file --stage kernel
json out

# kernels: what is wrong has a place; sizes and stages that they do not have are refused
sed 's/store 0 b[0-9]*\[/&1 + /' train.kernel > bad.kernel
expect 1 "$VWN" ir --from bad.kernel --stage c
has err 'error[E0904]'
has err ' bad.kernel:'
has err '    store 0 b'
awk '!/^ *end$/ || done++' train.kernel > cut.kernel
expect 1 "$VWN" ir --from cut.kernel --stage kernel
expect 2 "$VWN" ir --from train.kernel --stage plan
has err 'kernel or c'
expect 2 "$VWN" ir --from train.kernel --stage kernel --batch '4 seqs'

# without `train` the program is predict
sed '/^train {/,/^}/d' $file > plain.vwn
expect 0 "$VWN" ir plain.vwn
has out 'out "logits"'
expect 1 "$VWN" ir plain.vwn --program train
has err 'no `train`'

# a graph written by hand
cat train.gradient > graph
"$VWN" ir --from - --stage plan --batch '3 seqs' --positions 5 < graph > out 2> err
[ $? -eq 0 ] || fail "ir --from -"
expect 0 "$VWN" ir $file --stage tensor
cp out whole
has whole 'out "objective"'
grep -v '^out "objective"' whole > forward
expect 1 "$VWN" ir --from forward --stage gradient
has err 'objective'
sed 's/^\(ext [0-9]* grad real \)\[[0-9]*,/\1[7,/' whole > misfit
expect 1 "$VWN" ir --from misfit --stage gradient
has err 'another shape'
printf 'this is no graph\n' > bad
expect 1 "$VWN" ir --from bad
filled err
expect 1 "$VWN" ir --from no-such-file
expect 2 "$VWN" ir --from graph --stage ast
expect 2 "$VWN" ir $file --from graph

expect 0 "$VWN" cost $file
for word in stored dead live 'flops_per_token' 'causal saving' 'per token' optimizer activations peak; do
    has out "$word"
done
expect 0 "$VWN" cost $file --json --batch '1 seq'
json out
small=$(sed 's/.*"bytes_arena":\([0-9]*\).*/\1/' out)
expect 0 "$VWN" cost $file --json --batch '16 seqs'
large=$(sed 's/.*"bytes_arena":\([0-9]*\).*/\1/' out)
[ "$large" -gt "$small" ] || fail "16 sequences take no more memory than 1"
# the node of a run-time number says where the number stands
cat > scaled.vwn << 'END'
edition = 1
import "std/transformer"
import "std/connections"
block scaled(by: float)(x: [.., D]) -> [.., D] {
  let up = linear(out = D)
  return up(x) * by
}
model scalars {
  context    = 8
  width      = 16
  init       = normal(std = 0.02)
  out_init   = normal(std = 0.02)
  pre_norm   = none
  connection = residual(branch_scale = 1)
  embed tokens { vocab = 12 }
  scaled { by = 2 * progress }
  head lm { norm = none }
}
END
expect 0 "$VWN" ir scaled.vwn
grep -q '= host i=0 : real \[\]  # scaled.* scaled.vwn:6:18$' out || fail "the number is at another place"
finish
