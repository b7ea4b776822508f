# variant.sh - a file that is another one with changes: what it is, is what the text with the changes written in it is, in every verb;
# its base may lie in another folder and be a variant, too; a run of it needs no base to be sampled, and says when one has changed.
. "$VWN_SOURCE/tests/support/lib.inc"
mkdir -p base/inner data
squares > data/text.txt
head -n 200 data/text.txt > base/inner/held.txt
items() {
    printf '  embed tokens { vocab = 256 }\n  for layer in 1..2 { ffn { hidden = hidden, activation = %s } }\n  head lm { norm = none }\n' "$1"
}
small_model 'import "blocks.vwn" as my
let hidden = 24' "$(items gelu)" > base/small.vwn
small_train '  length = 8 steps
  optimizer adamw { lr = 1e-2, betas = [0.9, 0.95], eps = 1e-8, weight_decay = 0.1 }' | sed 's/"text.txt"/"..\/data\/text.txt"/' >> base/small.vwn
echo 'check params < 10k "of the base alone"' >> base/small.vwn
echo 'let twice = 2' > base/blocks.vwn
cat > base/inner/mid.vwn << 'END'
edition = 1
# what the middle says
variant "../small.vwn" {
  model middle { init = normal(std = 0.1 * my.twice) }
  train {
    eval { every = 4 steps, batches = 2, data = text_file("held.txt") }
    optimizer sgd { lr = rate, momentum = 0, weight_decay = 0 }
  }
}
let rate = 0.05
sweep rates { vary { rate = [0.1, 0.2] } }
END
cat > top.vwn << 'END'
edition = 1
import "std/vision"
variant "base/inner/mid.vwn" {
  D      = 32
  hidden = D + 8
  rate   = 0.2
  layer[2].ffn.activation = silu
  train {
    clip = 1.0
    eval { batches = 1 }
    checkpoint { every = 4 steps }
  }
}
check params > 10k
grow wider { when = step >= 6, let hidden = 48 }
END
# the same by hand
small_model 'import "std/vision"
let hidden = D + 8
let rate = 0.2' "$(items 'if layer == 2 then silu else gelu')" |
    sed 's/^let D = .*/let D = 32/; s/^model small/model middle/; s/^  init .*/  init = normal(std = 0.1 * 2)/' > flat.vwn
small_train '  length = 8 steps
  optimizer sgd { lr = rate, momentum = 0, weight_decay = 0 }
  clip = 1.0
  eval { every = 4 steps, batches = 1, data = text_file("base/inner/held.txt") }
  checkpoint { every = 4 steps }' | sed 's/"text.txt"/"data\/text.txt"/' >> flat.vwn
cat >> flat.vwn << 'END'
check params > 10k
grow wider { when = step >= 6, let hidden = 48 }
sweep rates { vary { rate = [0.1, 0.2] } }
END
expect 0 "$VWN" check flat.vwn
expect 0 "$VWN" check top.vwn
has out "base/inner/mid.vwn, base/small.vwn"
has out "ok check params > 10k"
has out "off base/small.vwn:33:1 check params < 10k"
lacks out "check failed"
expect 0 "$VWN" diff top.vwn flat.vwn
expect 6 "$VWN" diff base/small.vwn top.vwn
expect 0 "$VWN" fmt base/inner/mid.vwn

# one file of it, which needs no other, says where its values are from, and resolves to itself
expect 0 "$VWN" resolve top.vwn
cp out resolved.vwn
has resolved.vwn 'text_file("base/inner/held.txt"'
has resolved.vwn 'text_file("data/text.txt"'
has resolved.vwn '# top.vwn:6:3; was 0.05'
has resolved.vwn '# what the middle says'
lacks resolved.vwn variant
expect 0 "$VWN" diff resolved.vwn flat.vwn
expect 0 "$VWN" resolve resolved.vwn
cmp -s out resolved.vwn || fail "a resolved variant does not resolve to itself"

# settings and sweeps come behind what the variant changes
expect 0 "$VWN" resolve top.vwn --set rate=0.3
has out 'let rate = 0.3'
expect 0 "$VWN" sweep top.vwn --list
has out rate-0.1
expect 1 "$VWN" check top.vwn --set model.widht=3
has err 'did you mean `--set model.width=3`?'

# a file may import a variant
cat > both.vwn << 'END'
import "top.vwn" as t
import "top.vwn" as small (D = 16)
import "base/inner/mid.vwn" as m
check t.D == 32 and small.D == 16 and m.D == 16
check t.params > small.params
check m.rate == 0.05
END
expect 0 "$VWN" check both.vwn

# what a variant takes away is not there, what it replaces stands where that of the base did, whatever was changed on the way
{
    cat flat.vwn
    echo 'grow widest { when = step >= 7, let hidden = 56 }'
    echo 'names old { "emb" = embed.tokens.W }'
} > many.vwn
cat > less.vwn << 'END'
variant "many.vwn" {
  sweep = none
  names.old = none
  train.eval.batches = 1
  train { checkpoint = none }
  grow wider { when = step >= 5, let hidden = 52 }
}
END
cat > least.vwn << 'END'
variant "less.vwn" {
  train.eval = none
  grow wider { when = step >= 4, let hidden = 44 }
  grow.widest = none
}
grow last { when = step >= 7, let hidden = 60 }
names new { "embedding" = embed.tokens.W }
END
grep -v '^sweep\|^names\|^check\|checkpoint {' many.vwn |
    sed 's/^grow wider .*/grow wider { when = step >= 5, let hidden = 52 }/' > less_flat.vwn
{
    sed 's/^grow wider .*/grow wider { when = step >= 4, let hidden = 44 }/' less_flat.vwn | grep -v '^grow widest\|eval {'
    sed -n '6,$p' least.vwn
} > least_flat.vwn
for name in less least; do
    expect 0 "$VWN" check $name.vwn
    has out "off many.vwn:$(grep -n '^sweep' many.vwn | cut -d: -f1):1 sweep rates"
    expect 0 "$VWN" diff $name.vwn ${name}_flat.vwn
    expect 6 "$VWN" diff many.vwn $name.vwn
    has out 'sweep.rates'
    expect 0 "$VWN" resolve $name.vwn
    cp out resolved.vwn
    lacks resolved.vwn variant
    expect 0 "$VWN" diff resolved.vwn ${name}_flat.vwn
    expect 0 "$VWN" resolve resolved.vwn
    cmp -s out resolved.vwn || fail "a variant that takes away does not resolve to itself"
done
expect 0 "$VWN" resolve less.vwn
[ "$(grep -o '^grow [a-z]*' out | tr '\n' ' ')" = 'grow wider grow widest ' ] || fail "growth steps in another order"
expect 1 "$VWN" sweep less.vwn
has err 'has no `sweep`'
# nodes of a model, also by --set
grep -v '^check' flat.vwn > plain.vwn
sed 's/^  for layer in 1..2 { ffn/  embed position { size = 1024 }\n  for layer in 1..2 { ffn second { hidden = 8, activation = gelu }, ffn/' plain.vwn > more.vwn
expect 6 "$VWN" diff more.vwn plain.vwn
printf 'variant "more.vwn" {\n  embed.position = none\n  model.layer[*].ffn.second = none\n}\n' > fewer.vwn
expect 0 "$VWN" diff fewer.vwn plain.vwn
expect 0 "$VWN" resolve more.vwn --set embed.position=none --set 'layer[*].ffn.second=none' --set sweep=none
has out '/- embed position'
has out '/- sweep rates'
cp out resolved.vwn
expect 0 "$VWN" resolve resolved.vwn
cmp -s out resolved.vwn || fail "what --set takes away does not resolve to itself"
printf 'variant "plain.vwn" { sweep = none }\n' > fewer.vwn
expect 0 "$VWN" diff resolved.vwn fewer.vwn
expect 1 "$VWN" check more.vwn --set 'layer[2].ffn.second=none'
has err 'in one of them by a condition'
expect 1 "$VWN" check more.vwn --set grow.widr=none
has err 'did you mean `grow.wider`?'
expect 0 "$VWN" train least.vwn --device reference --run taken
[ "$(grep -c '"event":"grow' runs/taken/events.jsonl)" -ge 2 ] || fail "not the steps of the variant"
lacks runs/taken/events.jsonl '"event":"eval"'

# the run is that of the text, bit for bit; it goes on, and says when a base has changed; what is made of it needs no base
expect 0 "$VWN" train top.vwn --device reference --run a
expect 0 "$VWN" train flat.vwn --device reference --run b
losses runs/a/events.jsonl > losses.a
losses runs/b/events.jsonl > losses.b
{ [ "$(wc -l < losses.a)" -eq 8 ] && cmp -s losses.a losses.b; } || fail "other losses than those of the text"
expect 0 "$VWN" train top.vwn --device reference --run c --until '4 steps'
expect 0 "$VWN" train top.vwn --device reference --run c --resume
losses runs/c/events.jsonl | cmp -s losses.a - || fail "a variant that is resumed is another run"
expect 2 "$VWN" diff runs/c top.vwn
has err '`vwn diff runs/c/resolved.vwn top.vwn`'
expect 2 "$VWN" diff top.vwn runs/c/
has err '`vwn diff top.vwn runs/c/resolved.vwn`'
# What a variant gives wrongly is told at its own line; a path of several layers, with what to write, which works.
printf 'variant "base/small.vwn" {\n  D = "48"\n}\n' > wrong.vwn
expect 1 "$VWN" check wrong.vwn
has err ' wrong.vwn:2:7'
has err 'base/small.vwn:'
expect 0 "$VWN" check wrong.vwn --fix
has wrong.vwn 'D = 48'
printf 'variant "base/small.vwn" {\n  layer[1..1].ffn.hidden = 40\n}\n' > one.vwn
expect 1 "$VWN" check one.vwn
written=$(sed -n 's/.*help: write `\(.*\)`$/\1/p' err)
[ -n "$written" ] || fail "nothing is proposed"
printf 'variant "base/small.vwn" {\n  %s\n}\n' "$written" > one.vwn
expect 0 "$VWN" params one.vwn --by tensor
grep -q '^ *layer\[1\]\.ffn\.up\.W .* 40' out && grep -q '^ *layer\[2\]\.ffn\.up\.W .* 24' out || fail "not layer 1 alone"
sed -i 's/= gelu/= relu/' base/small.vwn
expect 0 "$VWN" train top.vwn --device reference --run c --resume --set train.length='10 steps'
has err 'base/small.vwn has changed since runs/c/ckpt/step_00000008.safetensors was written: '
has err 'model.layer[*].ffn.activation if layer == 2 then silu else gelu -> if layer == 2 then silu else relu; going on'
# what was read is in the record, by name and hash, wherever it lies; the library is that of the build
tail -n 1 runs/c/record.jsonl > last
json last
for file in base/inner/mid.vwn base/small.vwn base/blocks.vwn; do
    has last "{\"file\":\"$file\",\"sha256\":\"$(sha256sum $file | cut -d' ' -f1)\"}"
done
lacks last 'std/'
# comments and layout are no change; a let of a file that a base imports is one, and so is the variant's own text, beside it
sed -i 's/^let hidden = 24/let  hidden  =  24 # as ever/' base/small.vwn
echo '# a last word' >> top.vwn
expect 0 "$VWN" resume c --device reference
lacks err changed
lacks err 'other settings'
sed -i 's/= 2/= 3/' base/blocks.vwn
sed -i 's/clip = 1.0/clip = 0.5/' top.vwn
expect 0 "$VWN" resume c --device reference --set train.length='12 steps'
has err 'top.vwn, base/small.vwn and base/blocks.vwn have changed since runs/c/ckpt/step_00000010.safetensors was written: '
has err ': model.init.std 0.1 * 2 -> 0.1 * 3, train.clip 1.0 -> 0.5; going on'
mv base/small.vwn away.vwn
expect 1 "$VWN" train top.vwn --device reference --run c --resume
has err "base/inner/mid.vwn:3:9"
has err "the path is relative to the folder of base/inner/mid.vwn"
expect 0 "$VWN" eval runs/a
expect 0 "$VWN" sample runs/a -n 8
finish
