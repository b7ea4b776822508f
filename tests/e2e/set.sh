# set.sh - a setting is an edit: what `--set PATH=VALUE` gives is what the text with that value written in it gives, for every kind of
# path, and all verbs take and refuse the same ones.
. "$VWN_SOURCE/tests/support/lib.inc"
cat > model.vwn << 'END'
edition = 1
import "std/transformer"
import "std/connections"
let D = 32
let conn = ghc(m = 2, n = 3, dynamic = true, reduce = linear(out = D))
let ws = [64, 96]
model tiny {
  context    = 8
  width      = D
  mask       = causal
  init       = normal(0.02)
  out_init   = if D > 100 then normal(std = 0.5) else normal(std = 0.01)
  pre_norm   = rms_norm(eps = 1e-6)
  connection = conn
  embed tokens { vocab = 256, width = D * 3 / 2 }
  for layer in 1..2 {
    attention { heads = 4, position = rope(base = 10_000) }
    ffn       { hidden = ws[layer], activation = silu, gated = true }
  }
  head lm { norm = rms_norm(eps = 1e-5) }
}
train {
  data      = text_file("text.txt", val = 5%)
  tokenizer = bytes()
  batch     = 4 seqs
  length    = 10 steps
  seed      = 1
  precision = fp32
  optimizer adamw {
    lr           = cosine(peak = 3e-3, floor = 3e-4, warmup = 2 steps)
    betas        = [0.9, 0.95]
    eps          = 1e-8
    weight_decay = 0.1
    group "layer[*].ffn.*" { lr_scale = 0.5 }
  }
  eval { every = 5 steps, batches = 1 }
}
END
squares > text.txt

# PATH=VALUE, and the same by hand. The text that `resolve` writes and the edited one are the same model and training.
same() { # setting, s-command of sed
    setting=$1
    sed "$2" model.vwn > edited.vwn
    cmp -s model.vwn edited.vwn && fail "nothing is edited by $2"
    expect 0 "$VWN" resolve model.vwn --set "$1"
    cp out resolved.vwn
    expect 0 "$VWN" diff resolved.vwn edited.vwn
    expect 6 "$VWN" diff model.vwn edited.vwn --json
    # what differs, put behind `--set`, makes the one file the other
    sed 's/{"kind"/\n&/g' out | sed -n 's/^{"kind":"\(let\|attribute\)","name":"\(.*\)","a":.*,"b":"\(.*\)"}.*/\2=\3/p' | sed 's/\\"/"/g' > pasted
    set --
    while IFS= read -r line; do
        set -- "$@" --set "$line"
    done < pasted
    filled pasted
    expect 0 "$VWN" resolve model.vwn "$@"
    cp out pasted.vwn
    expect 0 "$VWN" diff pasted.vwn edited.vwn
    printf 'edition = 1\nvariant "model.vwn" { %s }\n' "$setting" > variant.vwn # as a variant has it
    expect 0 "$VWN" diff variant.vwn edited.vwn
}
same train.optimizer.lr.peak=1e-3 's/peak = 3e-3/peak = 1e-3/'
same train.optimizer.lr.total='20 steps' 's/warmup = 2 steps/warmup = 2 steps, total = 20 steps/'
same 'train.optimizer.betas[2]=0.99' 's/0\.95\]/0.99]/'
same 'train.optimizer.group["layer[*].ffn.*"].lr_scale=2' 's/lr_scale = 0.5/lr_scale = 2/'
same train.data.val=20% 's/val = 5%/val = 20%/'
same 'layer[*].attention.position.base=500' 's/base = 10_000/base = 500/'
same 'model.layer[*].attention.heads=2' 's/heads = 4/heads = 2/'
same 'layer[2].ffn.hidden=16*layer' 's/hidden = ws.layer./hidden = if layer == 2 then 16 * layer else ws[layer]/'
same model.head.lm.norm.eps=1e-3 's/eps = 1e-5/eps = 1e-3/'
same model.init.std=0.3 's/normal(0\.02)/normal(0.3)/'
same model.out_init.std=0.25 's/std = 0.5/std = 0.25/; s/std = 0.01/std = 0.25/'
same model.out_norm='rms_norm(eps = 1e-6)' 's/connection = conn/connection = conn, out_norm = rms_norm(eps = 1e-6)/'
same conn.reduce.bias=true 's/linear(out = D)/linear(out = D, bias = true)/'
same model.connection.dynamic=false 's/connection = conn/connection = ghc(m = 2, n = 3, dynamic = false, reduce = linear(out = D))/'
same 'ws[1]=3*D' 's/\[64, 96\]/[3 * D, 96]/'

# one elaboration for all verbs: each takes the path, and each refuses a wrong one with the right one
for verb in check params cost plot resolve graph 'ir --stage ast' 'emit c -o folder --infer' 'train --dry-run --device reference' 'sweep --vary D=32 --list' 'bench --steps 1'; do
    # shellcheck disable=SC2086
    set -- $verb
    first=$1 file=model.vwn
    shift
    [ "$first" != emit ] || { shift; set -- "$@" --force; file="c model.vwn"; }
    # shellcheck disable=SC2086
    expect 0 "$VWN" "$first" $file "$@" --set 'layer[*].attention.position.base=500' --set train.optimizer.lr.peak=1e-3
    # shellcheck disable=SC2086
    expect 1 "$VWN" "$first" $file "$@" --set 'layer[*].attention.position.bas=500'
    has err "did you mean \`--set 'layer[*].attention.position.base=500'\`?"
done
expect 0 "$VWN" diff model.vwn model.vwn --set train.optimizer.lr.peak=1e-3
expect 1 "$VWN" diff model.vwn model.vwn --set train.optimizer.lr.peek=1e-3
has err 'did you mean `--set train.optimizer.lr.peak=1e-3`?'

# what is typed by mistake gets the right command
meant() { # the flag that is proposed, then a command
    command=$1
    shift
    expect 2 "$VWN" "$@"
    has err "did you mean \`$command\`"
}
meant '--set D=256' check model.vwn --set D 256
meant '--set D=256' train model.vwn --set D = 256
meant '--set D=256' params model.vwn --set D= 256
meant '--set D=256' cost model.vwn D=256
meant '--set D=256' check model.vwn 'D = 256'
meant '--set D=256' ir model.vwn --D 256
meant '--set train.optimizer.lr.peak=1e-3' train model.vwn lr=1e-3
has err 'or `--set train.optimizer.lr=1e-3`?'
meant '--set train.optimizer.lr.peak=1e-3' train --lr 1e-3 model.vwn
meant "--set 'layer[*].attention.heads=2'" bench model.vwn --heads=2
meant "--set 'train.batch=8 seqs'" train model.vwn --batch '8 seqs'
meant '--vary train.optimizer.lr.peak=1e-3,3e-3' sweep model.vwn lr=1e-3,3e-3
meant '--vary D=64,128' sweep model.vwn --vary D 64,128
meant '--threads' train model.vwn --thread 1
expect 2 "$VWN" train model.vwn --unheard-of 1
lacks err 'did you mean'

# axes are the same paths; a point is named by the last word, and one that leads nowhere is one message and no row of failures
expect 0 "$VWN" sweep model.vwn --vary train.optimizer.lr.peak=1e-3,3e-3 --vary 'layer[*].attention.position.base=100,200' --list --csv
has out 'peak-0.001_base-100'
[ "$(grep -c '^"peak-' out)" -eq 4 ] || fail "no four points: $(cat out)"
expect 1 "$VWN" sweep model.vwn --vary conn.nn=3,4 --list
has err 'did you mean `conn.n`?'
[ "$(grep -c '^error' err)" -eq 1 ] || fail "a wrong axis is said more than once"
expect 1 "$VWN" sweep model.vwn --set train.optimizer.lr.peak=1 --vary train.optimizer.lr=1e-3,3e-3 --list
has err 'values of the axis `train.optimizer.lr` take the place of `train.optimizer.lr.peak`'
finish
