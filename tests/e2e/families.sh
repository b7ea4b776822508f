# families.sh - models of transformers' formats without transformers: a run is written, read again and written alike; tensors that hold
# several weights, or a part of one; what is no such model, or a folder that lies, is refused before anything is there.
# tests/torch/families.sh compares numbers with transformers itself.
. "$VWN_SOURCE/tests/support/lib.inc"
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
squares > text.txt
cat > tensors.py <<'END'
import json, struct, sys
def read(path):
    b = open(path, "rb").read()
    n = struct.unpack("<Q", b[:8])[0]
    h = json.loads(b[8:8 + n])
    h.pop("__metadata__", None)
    return {k: (v["dtype"], v["shape"], b[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]]) for k, v in h.items()}
def write(path, tensors):
    head, data = {}, b""
    for k, (dtype, shape, b) in tensors.items():
        head[k] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(b)]}
        data += b
    h = json.dumps(head).encode()
    open(path, "wb").write(struct.pack("<Q", len(h)) + h + data)
END

# a model that nobody made for transformers
train='
train {
  data = text_file("text.txt", val = 10%)
  tokenizer = bytes()
  batch = 2 seqs
  length = 2 steps
  seed = 1
  precision = fp32
  optimizer sgd { lr = 0.5, momentum = 0, weight_decay = 0 }
}'
model() { # CONNECTION MORE_OF_ATTENTION
    cat <<END
edition = 1
import "std/transformer"
import "std/connections"
let D = 24
model own {
  context = 16
  width = D
  mask = causal
  init = normal(std = 0.2)
  out_init = normal(std = 0.2)
  pre_norm = rms_norm(eps = 1e-5)
  connection = $1
  embed tokens { vocab = 256 }
  for layer in 1..3 {
    attention { heads = 6, kv_heads = 2, position = rope(base = 500)$2 }
    ffn { hidden = 20, activation = silu, gated = true }
  }
  head lm { norm = rms_norm(eps = 1e-5) }
}
$train
END
}
model 'residual()' '' > own.vwn
expect 0 "$VWN" train own.vwn --run own -q
expect 0 "$VWN" export own --hf own_hf
has out 'own_hf/config.json'
has err 'ids are bytes'
for said in '"model_type": "llama"' '"num_hidden_layers": 3' '"num_key_value_heads": 2' '"head_dim": 4' '"rope_theta": 500' \
    '"rms_norm_eps": 1e-05' '"tie_word_embeddings": false'; do
    has own_hf/config.json "$said"
done
expect 0 "$VWN" export own --hf own_json --json
json out
has out '"family":"llama","tensors":30'
cmp -s own_hf/model.safetensors own_json/model.safetensors || fail "two exports differ"

# the same numbers, matrices with their axes swapped
cat > names.py <<'END'
from tensors import *
a, b = read("runs/own/ckpt/step_00000002.safetensors"), read("own_hf/model.safetensors")
def swapped(k):
    dtype, (r, c), x = a[k]
    x = [x[4 * i:4 * i + 4] for i in range(r * c)]
    return dtype, [c, r], b"".join(x[i * c + j] for j in range(c) for i in range(r))
assert b["model.embed_tokens.weight"] == a["embed.tokens.W"]
assert b["model.norm.weight"] == a["head.lm.norm.g"] and b["lm_head.weight"] == swapped("head.lm.W")
for l in range(3):
    own, there = f"layer[{l + 1}].", f"model.layers.{l}."
    assert b[there + "post_attention_layernorm.weight"] == a[own + "ffn.pre_norm.g"]
    assert b[there + "mlp.down_proj.weight"] == swapped(own + "ffn.down.W")
    assert b[there + "self_attn.k_proj.weight"] == swapped(own + "attention.k_proj.W")
assert len(b) == 30 and list(b) == sorted(b)
END
expect 0 python3 names.py

# of families that compute the same it is the one that is asked for
expect 0 "$VWN" export own --hf own_mistral --family mistral
has own_mistral/config.json '"sliding_window": null'
expect 1 "$VWN" export own --hf x --family qwen3
has err 'the model is no qwen3: '
expect 2 "$VWN" export own --hf x --family bert

# read again, and written alike
again() { # FOLDER NAME FLAGS...
    from=$1 name=$2
    shift 2
    expect 0 "$VWN" new "$name" --from-hf "$from"
    has err 'has no tokenizer.json'
    sed -e 's|data .*= token_files.*|data = text_file("../text.txt", val = 10%)\n  tokenizer = bytes()|' -e 's/100 steps/1 steps/' \
        -e 's/8 seqs/2 seqs/' -e '/eval  /d; /checkpoint  /d' "$name/model.vwn" > "$name/still.vwn"
    expect 0 "$VWN" train "$name/still.vwn" --run "$name" -q --device reference --set train.optimizer.lr=0
    expect 0 "$VWN" export "$name" --hf "${name}_hf" "$@"
}
again own_hf again
cmp -s own_hf/model.safetensors again_hf/model.safetensors || fail "other weights come back"
cmp -s own_hf/config.json again_hf/config.json || fail "another config.json comes back"
# in 16 bits: rounded once
for dtype in bfloat16 float16; do
    expect 0 "$VWN" export own --hf own_$dtype --dtype $dtype
    again own_$dtype again_$dtype --dtype $dtype
    cmp -s own_$dtype/model.safetensors again_${dtype}_hf/model.safetensors || fail "other weights come back in $dtype"
done
cat > rounded.py <<'END'
from tensors import *
a = read("own_hf/model.safetensors")
for name, word in (("bfloat16", "BF16"), ("float16", "F16")):
    b = read(f"own_{name}/model.safetensors")
    for k, (dtype, shape, x) in a.items():
        u = struct.unpack("<%dI" % (len(x) // 4), x)
        y = (b"".join(struct.pack("<H", i + 0x7fff + (i >> 16 & 1) >> 16) for i in u) if word == "BF16" else
             struct.pack("<%de" % len(u), *struct.unpack("<%df" % len(u), x)))
        assert b[k] == (word, shape, y), (name, k)
END
expect 0 python3 rounded.py

# what transformers would compute otherwise
refused() { # FILE SENTENCE
    expect 0 "$VWN" train "$1" --run refused -q --device reference --overwrite
    expect 1 "$VWN" export refused --hf refused_hf
    has err "$2"
    [ ! -e refused_hf ] || fail "a refused export has begun"
}
model 'hyper(n = 2, dynamic = false)' '' > hyper.vwn
refused hyper.vwn 'the model is of none of the families llama'
model 'residual()' ', softcap = 4' > softcap.vwn
refused softcap.vwn 'it is nearest to llama: `layer[1].attention` there is sdpa'
model 'residual(branch_scale = 0.5)' '' > scale.vwn
refused scale.vwn 'it is nearest to'
{
    model 'residual()' '' | sed '/^  head lm/q'
    echo '  head mtp { predict = 2, weight = 0.1, mix = linear(), norm = rms_norm(eps = 1e-5), layer { ffn { hidden = 20, activation = silu } } }'
    echo "}$train"
} > mtp.vwn
refused mtp.vwn 'its logits are made without `head.mtp.'
# one weight in two places would become two
{
    cat <<'END'
block ffn(hidden: dim, activation: fn, gated: bool = true)(x: [.., D]) -> [.., D] {
  let up   = t.linear(out = hidden)
  let down = t.linear(out = D, init = scope.out_init)
  return down(activation(up(x)) * up(x))
}
let attention    = t.attention
let rms_norm     = t.rms_norm
let rope         = t.rope
let embed_tokens = t.embed_tokens
let head_lm      = t.head_lm
END
    model 'residual()' ''
} | sed '/^edition/d; s|"std/transformer"|& as t|; 1i edition = 1' > shared.vwn
refused shared.vwn 'it is nearest to llama: `layer[1].ffn.up.W` there is ext'
expect 2 "$VWN" export own --hf own_hf
has err 'holds files'
expect 2 "$VWN" export own
expect 2 "$VWN" export own --hf x --dtype fp8
has err 'one of float32, bfloat16 or float16'

# a tokenizer's file travels
cat > tokenizer.json <<'END'
{"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "Ġ": 3}, "merges": ["a b"]}, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true}, "decoder": {"type": "ByteLevel"}}
END
awk 'BEGIN { for (i = 0; i < 900; i++) printf "ab a b" }' > letters.txt
sed 's/bytes()/file("tokenizer.json")/; s/text.txt/letters.txt/; s/vocab = 256/vocab = 4/' own.vwn > letters.vwn
expect 0 "$VWN" train letters.vwn --run letters -q --device reference
expect 0 "$VWN" export letters --hf letters_hf
cmp -s tokenizer.json letters_hf/tokenizer.json || fail "another tokenizer.json"
has letters_hf/tokenizer_config.json PreTrainedTokenizerFast
expect 0 "$VWN" new letters --from-hf letters_hf
has letters/model.vwn 'tokenizer  = file("'
cp letters.txt letters/text.txt
expect 0 "$VWN" train letters/model.vwn --run letters_on -q --device reference --set 'train.length=1 steps' --set 'train.batch=1 seqs' \
    --set 'train.eval.batches=1'

# folders that lie: each is refused, and nothing is made
cat > spoil.py <<'END'
from tensors import *
import os, shutil
def folder(name, change=None, tensors=None, text=None):
    shutil.copytree("own_hf", name)
    c = json.load(open("own_hf/config.json"))
    if change:
        change(c)
    with open(name + "/config.json", "w") as f:
        f.write(json.dumps(c) if text is None else text)
    if tensors:
        t = read("own_hf/model.safetensors")
        tensors(t)
        write(name + "/model.safetensors", t)
def setting(**k): return lambda c: c.update(k)
folder("bad_key", setting(attn_logit_softcapping=30.0))
folder("bad_type", setting(model_type="mamba"))
folder("bad_none", lambda c: c.pop("model_type"))
folder("bad_class", setting(architectures=["LlamaForSequenceClassification"]))
folder("bad_rope", setting(rope_scaling={"rope_type": "yarn", "factor": 4.0}))
folder("bad_twice", setting(rope_parameters={"rope_theta": 7.0, "rope_type": "default"}))
folder("bad_act", setting(hidden_act="xielu"))
folder("bad_count", setting(num_hidden_layers=-3))
folder("bad_real", setting(num_hidden_layers=2.5))
folder("bad_text", setting(hidden_size="24} let x = {1"))
folder("bad_huge", setting(vocab_size=1 << 39))
folder("bad_layers", setting(num_hidden_layers=1 << 30))
folder("bad_heads", setting(num_key_value_heads=3))
folder("bad_less", setting(num_hidden_layers=2))
folder("bad_quant", setting(quantization_config={"quant_method": "gptq"}))
folder("bad_deep", text="[" * 100000)
folder("bad_json", text='{"model_type": "llama",}')
folder("bad_empty", text="")
folder("bad_lacks", tensors=lambda t: t.pop("model.layers.1.mlp.up_proj.weight"))
folder("bad_more", tensors=lambda t: t.update({"model.layers.0.self_attn.q_proj.bias": ("F32", [24], bytes(96))}))
folder("bad_shape", tensors=lambda t: t.update({"model.norm.weight": ("F32", [23], bytes(92))}))
folder("bad_dtype", tensors=lambda t: t.update({"model.norm.weight": ("I32", [24], bytes(96))}))
b = open("own_hf/model.safetensors", "rb").read()
folder("bad_cut"); open("bad_cut/model.safetensors", "wb").write(b[:-1])
folder("bad_header"); open("bad_header/model.safetensors", "wb").write(b"\xff" * 64)
folder("bad_weights"); os.remove("bad_weights/model.safetensors")
folder("good_older", tensors=lambda t: t.update({f"model.layers.{i}.self_attn.rotary_emb.inv_freq": ("F32", [2], bytes(8)) for i in range(3)}))
folder("bad_older", tensors=lambda t: t.update({"model.layers.0.self_attn.rotary_emb.inv_freqs": ("F32", [2], bytes(8))}))
folder("bad_factor", setting(rope_scaling={"rope_type": "default", "factor": 4.0}))
folder("good_null", setting(sliding_thing=None, attention_dropout=0.1))
END
expect 0 python3 spoil.py
while IFS='|' read -r name status said; do
    expect "$status" "$VWN" new made --from-hf "bad_$name"
    has err "$said"
    [ ! -e made ] || fail "bad_$name: a folder was made"
done <<'END'
key|1|`attn_logit_softcapping` is 30: vwn does not know this key of llama
type|1|`model_type` is "mamba": vwn has no such family; it has llama
none|1|there is no `model_type`
class|1|of llama vwn has LlamaForCausalLM alone
rope|1|`rope_type` is "yarn": of llama vwn reads default llama3 alone
twice|1|the file has another value of it, too
factor|1|`factor` is given without the `rope_type`
act|1|`hidden_act` is "xielu"
count|1|`num_hidden_layers` is -3: a count is needed
real|1|`num_hidden_layers` is 2.5: a count is needed
text|1|a count is needed
huge|1|error
layers|1|error
heads|1|larger than in
less|1|would be left behind
quant|1|`quantization_config` is an object
deep|1|byte
json|1|byte 23
empty|5|config.json
lacks|1|1 tensor of the model are not in
more|1|would be left behind
shape|1|larger than in
dtype|1|is stored as I32
cut|5|model.safetensors
header|5|model.safetensors
weights|5|has neither model.safetensors nor model.safetensors.index.json
folder|5|there is no such folder
END
expect 0 "$VWN" new made --from-hf good_null
lacks made/model.vwn 'left = drop'
expect 0 "$VWN" new older --from-hf good_older
has older/model.vwn ', left = drop)'
has err '3 tensors of the folder, as `model.layers.'
expect 1 "$VWN" new none --from-hf bad_older
has err '1 tensor would be left behind'
expect 0 "$VWN" new made_again --from-hf good_null
has err '`attention_dropout` is 0.1'
expect 2 "$VWN" new made --from-hf own_hf
has err 'File exists'
expect 2 "$VWN" new other --from-hf own_hf --from nano

# tensors that hold several weights, and weights that lie in several: [out, in], an expert for each
cat > parts.vwn <<END
edition = 1
import "std/transformer"
import "std/connections"
model parts {
  context = 8
  width = 12
  mask = causal
  init = normal(std = 0.2)
  out_init = normal(std = 0.2)
  pre_norm = rms_norm(eps = 1e-5)
  connection = residual()
  embed tokens { vocab = 256 }
  for layer in 1..2 {
    attention { heads = 3, q_proj = linear(bias = true), k_proj = linear(bias = true), v_proj = linear(bias = true) }
    moe { experts = 4, active = 2, hidden = 10, activation = silu, scores = softmax, normalize = true, balance = 0 }
  }
  head lm { norm = rms_norm(eps = 1e-5), tie = tokens }
}
$train
END
expect 0 "$VWN" train parts.vwn --run parts -q
cat > parts.py <<'END'
from tensors import *
a = {k: v for k, v in read("runs/parts/ckpt/step_00000002.safetensors").items() if ":" not in k}
def rows(x, shape): # of a matrix
    return [[x[4 * (i * shape[1] + j):4 * (i * shape[1] + j) + 4] for j in range(shape[1])] for i in range(shape[0])]
def swap(m): return [list(r) for r in zip(*m)]
def flat(m): return ("F32", [len(m), len(m[0])], b"".join(b"".join(r) for r in m))
out = {}
for l in (1, 2):
    q, k, v = ((a.pop(f"layer[{l}].attention.{n}_proj.W"), a.pop(f"layer[{l}].attention.{n}_proj.b")) for n in "qkv")
    out[f"h.{l - 1}.qkv.weight"] = flat([r for w, _ in (q, k, v) for r in swap(rows(w[2], w[1]))])
    out[f"h.{l - 1}.qkv.bias"] = ("F32", [36], q[1][2] + k[1][2] + v[1][2])
    for n in ("gate", "up", "down"):
        _, (e, i, o), x = a.pop(f"layer[{l}].moe.{n}")
        for k in range(e):
            out[f"h.{l - 1}.{n}.{k}"] = flat(swap(rows(x[4 * k * i * o:4 * (k + 1) * i * o], (i, o))))
out.update(a)
write("parts.safetensors", out)
short = dict(out); short.pop("h.1.up.2"); write("short.safetensors", short)
wide = dict(out); wide["h.0.qkv.bias"] = ("F32", [35], bytes(140)); write("wide.safetensors", wide)
END
expect 0 python3 parts.py
cat > table.txt <<'END'

names there {
  layout = out_in
  "h.{layer-1}.qkv.weight" = concat(layer[*].attention.q_proj.W, layer[*].attention.k_proj.W, layer[*].attention.v_proj.W)
  "h.{layer-1}.qkv.bias" = concat(layer[*].attention.q_proj.b, layer[*].attention.k_proj.b, layer[*].attention.v_proj.b)
  if 1 + 1 == 2 {
    "h.{layer-1}.gate.{gate-1}" = layer[*].moe.gate[*]
    "h.{layer-1}.up.{up-1}" = layer[*].moe.up[*]
  } else {
    "never" = layer[*].moe.gate
  }
  "h.{layer-1}.down.{down-1}" = layer[*].moe.down[*]
}
END
for name in parts short wide; do
    sed "s|^  seed = 1|&\n  start_from = weights(\"$name.safetensors\")|; s/lr = 0.5/lr = 0/" parts.vwn | cat - table.txt > from_$name.vwn
done
expect 0 "$VWN" train from_parts.vwn --run from_parts
has err ' 0 new, 0 left behind'
cat > same.py <<'END'
from tensors import *
a, b = (read(f"runs/{r}/ckpt/step_00000002.safetensors") for r in ("parts", "from_parts"))
sys.exit([k for k in a if ":" not in k and a[k] != b[k]] or 0)
END
expect 0 python3 same.py
expect 1 "$VWN" train from_short.vwn --run refused_parts --device reference
has err 'a part of `layer[2].moe.up` is not in'
has err 'nothing for `h.1.up.2`'
expect 1 "$VWN" train from_wide.vwn --run refused_parts --device reference
has err '`h.0.qkv.bias` in ./wide.safetensors is [35], and the table makes it [36]'
[ ! -e runs/refused_parts/events.jsonl ] || fail "a refused run has begun"
finish
