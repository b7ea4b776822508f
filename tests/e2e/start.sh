# start.sh - runs that begin with other weights: fine-tuning, an adapter beside frozen matrices, a residual model turned
# into hyper-connections, files of others in four number types; what would be lost without a word is refused with both sides.
. "$VWN_SOURCE/tests/support/lib.inc"

squares > text.txt
for name in 33_fine_tune 34_lora 35_convert; do
    sed 's|"kjv.txt"|"text.txt"|' "$VWN_SOURCE/examples/$name.vwn" > $name.vwn
    lacks $name.vwn '"kjv'
done
small='--set updates=4'

# the base: the first file without a beginning
sed '/start_from/d' 33_fine_tune.vwn > base.vwn
expect 0 "$VWN" train base.vwn --run base -q $small
expect 0 "$VWN" eval runs/base --json
loss=$(sed 's/.*"loss":\([0-9.]*\).*/\1/' out)

# all weights are taken, the run's own events have the table, and the first evaluation is that of the base
expect 0 "$VWN" train 33_fine_tune.vwn --run fine --json $small
json out
[ "$(grep -c '"event":"tensor"' runs/fine/events.jsonl)" -eq 11 ] || fail "the account has a row for each kind of tensor"
has out '"output":"logits","compared":'
has out '"max_change":0,'
has out 'taken, 0 grown, 0 cut, 0 new, 0 left behind'

# an adapter: the product of zeros adds nothing, new matrices learn, frozen ones keep every bit
expect 0 "$VWN" train 34_lora.vwn --run lora $small
has err '8 new, 0 left behind'
has err 'layer[*].attention.q_proj.A (2): gradient norm 0 at once,'
cat > tensors.py <<'END'
import json, struct, sys
def read(path):
    b = open(path, "rb").read()
    n = struct.unpack("<Q", b[:8])[0]
    h = json.loads(b[8:8 + n])
    h.pop("__metadata__", None)
    return {k: (v, b[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]]) for k, v in h.items()}
def write(path, tensors):
    head, data = {}, b""
    for k, (dtype, shape, b) in tensors.items():
        head[k] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(b)]}
        data += b
    h = json.dumps(head).encode()
    open(path, "wb").write(struct.pack("<Q", len(h)) + h + data)
END
cat > frozen.py <<'END'
from tensors import *
a, b = read(sys.argv[1]), read(sys.argv[2])
moved = [k for k in a if ":" not in k and a[k][1] != b[k][1]]
sys.exit(print("moved:", moved) or 1 if moved else 0)
END
PYTHONDONTWRITEBYTECODE=1 expect 0 python3 frozen.py runs/base/ckpt/step_00000004.safetensors runs/lora/ckpt/step_00000004.safetensors

# a residual model becomes one with hyper-connections, which is the same function at first
expect 0 "$VWN" train 35_convert.vwn --run hyper $small
has err 'max |new - old| is 0: the same bits'
has err '32 new, 0 left behind'

# files of others: other names, axes swapped, float64, float32, bfloat16, float16, two shards; numbers that all four
# types have give the same run, to the bit
cat > foreign.py <<'END'
from tensors import *
dtype = {"F64": "d", "F32": "f", "F16": "e"}
a = {k: v for k, v in read("runs/base/ckpt/step_00000004.safetensors").items() if ":" not in k}
def name(k): return "model." + k.replace("[", ".").replace("]", "")
for t in ("F64", "F32", "BF16", "F16"):
    out = {}
    for k, (v, b) in a.items():
        x = [round(y * 64) / 64 for y in struct.unpack("<%df" % (len(b) // 4), b)]  # few enough bits for all
        shape = list(v["shape"])
        if k.endswith(".W") and "embed" not in k:
            r, c = shape
            x = [x[i * c + j] for j in range(c) for i in range(r)]
            shape = [c, r]
        if t == "BF16":
            d = b"".join(struct.pack("<f", y)[2:] for y in x)
        else:
            d = struct.pack("<%d%s" % (len(x), dtype[t]), *x)
        out[name(k)] = (t, shape, d)
    write(t + ".safetensors", out)
keys = sorted(out)
write("a.safetensors", {k: out[k] for k in keys[::2]})
write("b.safetensors", {k: out[k] for k in keys[1::2]})
json.dump({"weight_map": {k: "ab"[i % 2] + ".safetensors" for i, k in enumerate(keys)}}, open("all.index.json", "w"))
END
PYTHONDONTWRITEBYTECODE=1 expect 0 python3 foreign.py
cat > table.txt <<'END'

names other {
  "model.embed.tokens.W"                  = embed.tokens.W
  "model.layer.{layer}.attention.pre_norm.g" = layer[*].attention.pre_norm.g
  "model.layer.{layer}.attention.q_proj.W"   = layer[*].attention.q_proj.W.T
  "model.layer.{layer}.attention.k_proj.W"   = layer[*].attention.k_proj.W.T
  "model.layer.{layer}.attention.v_proj.W"   = layer[*].attention.v_proj.W.T
  "model.layer.{layer}.attention.o_proj.W"   = layer[*].attention.o_proj.W.T
  "model.layer.{layer}.ffn.pre_norm.g"       = layer[*].ffn.pre_norm.g
  "model.layer.{layer}.ffn.up.W"             = layer[*].ffn.up.W.T
  "model.layer.{layer}.ffn.down.W"           = layer[*].ffn.down.W.T
  "model.head.lm.norm.g"                   = head.lm.norm.g
  "model.head.lm.W"                        = head.lm.W.T
}
END
for from in F64.safetensors F32.safetensors BF16.safetensors F16.safetensors all.index.json; do
    sed "s|start_from = .*|start_from = \"$from\"|" 33_fine_tune.vwn | cat - table.txt > foreign.vwn
    expect 0 "$VWN" train foreign.vwn --run $from --json $small
    losses out > $from.losses
    [ "$(wc -l < $from.losses)" -eq 4 ] || fail "$from: four losses"
    cmp -s $from.losses F64.safetensors.losses || fail "$from is another beginning"
done
has out 'axes swapped'

# an emitted program would begin with drawn weights
expect 1 "$VWN" emit c 33_fine_tune.vwn -o emitted
has err 'begins with other weights'

# what the file does not allow is refused before anything is there
refused() {
    expect 1 "$VWN" train "$1" --run refused $small
    has err 'error[E0614]'
    [ ! -e runs/refused/events.jsonl ] || fail "a refused run has begun"
}
sed 's|\(= layer\[\*\].ffn.up.W\).T|\1|' foreign.vwn > swapped.vwn
refused swapped.vwn
has err '`layer[1].ffn.up.W` has its axes swapped in ./all.index.json'
has err '[24, 16], the model needs [16, 24]'
sed '/ffn.up.W/d' foreign.vwn > missing.vwn
refused missing.vwn
has err '2 tensors of the model are not in'
has err '2 tensors would be left behind'
sed 's/new = draw, //' 34_lora.vwn > adapter.vwn
refused adapter.vwn
has err '`new = draw` in `run(...)` allows it'
sed 's/hidden = 24/hidden = 20/' 33_fine_tune.vwn > cut.vwn
refused cut.vwn
has err '[16, 24] there, [16, 20] in the model'
sed 's/hidden = 24/hidden = 40/' 33_fine_tune.vwn > grown.vwn
refused grown.vwn
sed 's/run("runs\/base")/run("runs\/base", grown = draw)/' grown.vwn > allowed.vwn
expect 0 "$VWN" train allowed.vwn --run allowed $small
has err 'grown layer[*].ffn.up.W [16, 24] -> [16, 40] (2 tensors)'
sed 's/preserves = 1e-4/preserves = 1e-9/; s/collapse = mean/collapse = sum/' 35_convert.vwn > sum.vwn
expect 4 "$VWN" train sum.vwn --run refused $small
has err 'changed the output `logits` by up to'
[ ! -e runs/refused/events.jsonl ] || fail "a beginning that was refused has begun a run"
head -c 20000 runs/base/ckpt/step_00000004.safetensors > runs/damaged.safetensors
sed 's|start_from = .*|start_from = "runs/damaged.safetensors"|' 33_fine_tune.vwn > damaged.vwn
expect 5 "$VWN" train damaged.vwn --run refused $small
has err 'runs/damaged.safetensors: byte'
sed 's|start_from = .*|start_from = "runs/base"|' 33_fine_tune.vwn > folder.vwn
expect 5 "$VWN" train folder.vwn --run refused $small
has err 'error[E0106]: cannot read ./runs/base: Is a directory'
has err "folder.vwn:$(grep -n start_from folder.vwn | cut -d: -f1)"
has err 'a run is written `run("runs/base")`'

# a growth step at the start, of the weights of a run: `from`
sed '/start_from/d' 33_fine_tune.vwn > grow.vwn
sed -i 's/^let updates.*/&\nlet hidden = 24/; s/hidden = 24, activation/hidden = hidden, activation/' grow.vwn
cat >> grow.vwn <<'END'

grow wider {
  when = start
  from = run("runs/base")
  let hidden = 48
  fill { exit = zeros }
  check preserves(1e-6)
}
END
expect 0 "$VWN" train grow.vwn --run grow $small
has err 'Output `logits`: max |new - old| is'
has err 'wider: '

# the same beside the run: a checkpoint of the grown model, which is the model before the next step
sed 's/when = start/when = step >= 4/; /from = run/d' grow.vwn > later.vwn
before=$(ls -lR runs/base)
expect 6 "$VWN" grow runs/base later.vwn wider --plan
has out 'all 19 tensors are those of the model before'
expect 0 "$VWN" grow runs/base later.vwn wider --apply -o wide.safetensors
lacks err ' nan'
[ "$(ls -lR runs/base)" = "$before" ] || fail "--apply changes the run"
expect 0 "$VWN" eval wide.safetensors --json
grown=$(sed 's/.*"loss":\([0-9.]*\).*/\1/' out)
awk "BEGIN { d = $grown - $loss; exit !(d < 1e-5 && d > -1e-5) }" || fail "eval of the grown checkpoint: $grown, before $loss"
expect 0 "$VWN" sample wide.safetensors --tokens 3
sed 's|start_from = .*|start_from = run("wide.safetensors")|; s/hidden = 24/hidden = 48/' 33_fine_tune.vwn > wide.vwn
expect 0 "$VWN" train wide.vwn --run wide $small
expect 1 "$VWN" grow wide.safetensors later.vwn wider --plan
has err 'has all growth steps'
sed 's/heads = 2, head_dim = 8/heads = 1, head_dim = 8/' later.vwn > other.vwn
expect 1 "$VWN" grow runs/base other.vwn wider --plan
has err 'another shape of `layer[1].attention.q_proj.W`, [16, 16], which is [16, 8] there'
expect 1 "$VWN" grow runs/base other.vwn wider --apply -o never.safetensors
[ ! -e never.safetensors ] || fail "a refused step has written a file"
expect 2 "$VWN" grow runs/base later.vwn wider --apply
finish
