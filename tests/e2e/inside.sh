# inside.sh - `vwn inspect RUN`: matrices of trained connections, the kernels' numbers beside the reference evaluator's, the
# lens beside `vwn eval`, pictures and their page, what cannot be looked at.
. "$VWN_SOURCE/tests/support/lib.inc"

squares > text.txt
cat > model.vwn <<'EOF'
edition = 1
import "std/transformer"
import "std/connections"

let D = 16
let conn = residual()

model small {
  context    = 16
  width      = D
  mask       = causal
  init       = normal(std = 0.1)
  out_init   = normal(std = 0.1)
  connection = conn
  pre_norm   = rms_norm(eps = 1e-6)

  embed tokens { vocab = 256 }
  attention { heads = 2, position = rope(base = 100) }
  ffn { hidden = 24, activation = gelu }
  head lm { norm = rms_norm(eps = 1e-6) }
}

train {
  data      = text_file("text.txt", val = 25%)
  tokenizer = bytes()
  batch     = 8 seqs
  length    = 12 steps
  seed      = 1
  precision = fp32
  optimizer adamw { lr = constant(peak = 2e-2), betas = [0.9, 0.999], eps = 1e-8, weight_decay = 0.1 }
  eval       { every = 6 steps, batches = 2 }
  checkpoint { every = 12 steps, keep = 9 }
}
EOF
export PYTHONDONTWRITEBYTECODE=1
slow='--device reference' # where no kernels need to be compiled
expect 0 "$VWN" train model.vwn --run plain -q $slow
expect 0 "$VWN" train model.vwn --run hyper -q --set 'conn=hyper(n = 2, dynamic = true, factor = 0.5)' $slow

# ---- a state that is longer behind each sublayer: what is in it, and no lens ----
expect 0 "$VWN" train model.vwn --run longer -q --set 'conn=depth_weighted(sublayers = 1)' $slow
expect 0 "$VWN" inspect runs/longer --tokens 256 --json $slow
has err 'nothing of `lens`: its connection changes the shape of the state'
cp out longer.json
cat > longer.py <<'EOF2'
import json, glob, struct
file = open(glob.glob("runs/longer/ckpt/*.safetensors")[-1], "rb").read()
n = struct.unpack("<Q", file[:8])[0]
head = json.loads(file[8:8 + n])
def weight(name):
    begin, end = head[name]["data_offsets"]
    return struct.unpack("<%dd" % ((end - begin) // 8), file[8 + n + begin:8 + n + end])
w, v = weight("attention.connection.weight"), weight("ffn.connection.weight")
# x1 = e + f1, the next reads y1 = w0 e + w1 x1; x2 = y1 + f2, the head reads v0 e + v1 x1 + v2 x2
want = [[1], [w[0] + w[1], w[1]], [v[0] + v[1] + v[2] * (w[0] + w[1]), v[1] + v[2] * w[1], v[2]]]
reads = json.load(open("longer.json"))["connections"]["reads"]
for r, x in zip(reads, want):
    assert len(r["mean"]) == len(x) and all(abs(m[0][0] - y) < 1e-5 for m, y in zip(r["mean"], x)), (r, x)
assert len(set(w)) == 2 and len(set(v)) == 3
EOF2
expect 0 python3 longer.py

# ---- a residual model: ones, and a sentence for what it has not ----
expect 0 "$VWN" inspect runs/plain --tokens 2048 $slow
has out 'after step 12, on 2,048 tokens that are held out'
has out 'nothing else is in it'
lacks err 'nothing of `weights`'
expect 0 "$VWN" inspect runs/plain --tokens 2048 --json $slow
cp out plain.json
expect 0 "$VWN" eval runs/plain --json --batches 16 $slow
cp out eval.json
cat > plain.py <<'EOF'
import json, math
d, e = json.load(open("plain.json")), json.load(open("eval.json"))
assert d["positions"] == 2048 and d["windows"] == 128 and e["windows"] == 128 and "weights" not in d
reads = d["connections"]["reads"]
assert [r["path"] for r in reads] == ["attention", "ffn", "head"]
for i, r in enumerate(reads):
    assert len(r["mean"]) == i + 1 and abs(r["unexplained"]) < 1e-10
    for k in "mean", "gain":
        assert all(abs(x[0][0] - 1) < 1e-6 for x in r[k]), r
    assert all(x[0][0] < 1e-3 for x in r["std"])
last = d["states"][-1]
assert abs(last["target_log_probability"] + e["loss"]) < 1e-4, (last, e)
assert last["target_log_probability"] > d["states"][0]["target_log_probability"] and last["divergence"] > 0
c = d["inputs"]["cosine"]
assert len(c) == 2 and abs(c[0][0] - 1) < 1e-6 and abs(c[0][1] - c[1][0]) < 1e-6
assert abs(c[0][1] - d["inputs"]["next"][0]["mean"]) < 1e-5
a, = d["activations"]
assert a["path"] == "ffn" and len(a["used"]) == 24 and abs(sum(a["used"]) / 24 - a["density"][3]) < 1e-6
en = a["energy"]
assert abs(sum(en) ** 2 / sum(x * x for x in en) - a["participation"]) < 1e-3
assert all(0 < s["entropy"] < 1 and 1 <= s["rank"] <= 16 and 1 <= s["participation"] <= 16 for s in d["states"])
EOF
expect 0 python3 plain.py

# ---- one sublayer, with biases behind it and no activation; units that nothing uses ----
sed '/^  ffn/d' model.vwn > alone.vwn
expect 0 "$VWN" train alone.vwn --run alone -q --set 'conn=post_norm(norm = layer_norm(eps = 1e-6))' $slow
expect 0 "$VWN" inspect runs/alone --tokens 256 $slow
has out 'of the square of what head reads comes from no source'
lacks err 'nothing of `activations`'
lacks out 'Cosine'
lacks out 'Activations'
expect 0 "$VWN" train model.vwn --run dead -q --set 'ffn.init=zeros' --set 'train.optimizer.lr=constant(peak = 1e-4)' --until '1 steps' $slow
expect 0 "$VWN" inspect runs/dead --what activations --tokens 256 --json $slow
has out '"unused":24'

# ---- more impulses than are sent at once ----
sed 's/context    = 16/context    = 1024/; s/^  attention.*/  for layer in 1..9 { ffn { hidden = 8, activation = gelu } }/; s/^  ffn.*/  for part in 1..9 { ffn { hidden = 8, activation = gelu } }/; s/batch     = 8/batch     = 1/' model.vwn > deep.vwn
expect 0 "$VWN" train deep.vwn --run deep -q --set D=512 --set 'conn=residual(branch_scale = 0.5)' --until '1 steps'
expect 0 "$VWN" inspect runs/deep --what connections --tokens 1024 --json
cp out deep.json
cat > deep.py <<'EOF'
import json
reads = json.load(open("deep.json"))["connections"]["reads"]
assert len(reads) == 19 and all(len(r["mean"]) == i + 1 for i, r in enumerate(reads))
assert all(abs(x[0][0] - (0.5 if j else 1)) < 1e-5 for r in reads for j, x in enumerate(r["mean"]))
EOF
expect 0 python3 deep.py

# ---- dynamic connections: the kernels and the reference evaluator agree ----
expect 0 "$VWN" inspect runs/hyper --tokens 256 --json
cp out kernels.json
expect 0 "$VWN" inspect runs/hyper --tokens 256 --json --device reference
cp out reference.json
cat > agree.py <<'EOF'
import json
numbers = 0
def same(a, b, path):
    global numbers
    if isinstance(a, dict):
        assert a.keys() == b.keys(), path
        for k in a:
            same(a[k], b[k], path + "." + k)
    elif isinstance(a, list):
        assert len(a) == len(b), path
        for i, (x, y) in enumerate(zip(a, b)):
            same(x, y, "%s[%d]" % (path, i))
    elif isinstance(a, float) and path[-5:] != ".rank" and ".share" not in path:
        numbers += 1
        assert abs(a - b) <= 2e-3 * max(1, abs(b)), (path, a, b)
x, y = (json.load(open(n)) for n in ("kernels.json", "reference.json"))
same(x, y, "")
assert numbers > 200, numbers
w = x["weights"]
assert [p["path"] for p in w[:3]] == ["attention.connection.A_m", "attention.connection.B", "attention.connection.A_r"], w[:3]
assert all(len(p["fixed"]) == len(p["entries"]) and p["all"]["std"] > 0 for p in w)
for h in x["weight_histograms"]:
    p, = (p for p in w if p["path"] == h["path"])
    i = [int(n) for n in h["entry"].split("[")[1][:-1].split(",")]
    columns = {"A_m": 1, "A_r": 2, "B": 2}[p["path"].split(".")[-1]]
    e = p["entries"][(i[0] - 1) * columns + i[1] - 1]
    assert h["path"].startswith("ffn.") and abs(sum(h["share"]) - 1) < 1e-9
    step = (h["high"] - h["low"]) / 40
    mean = sum(s * (h["low"] + (k + 0.5) * step) for k, s in enumerate(h["share"]))
    assert abs(mean - e["mean"]) <= step, (h, e)
assert len(x["weight_histograms"]) == 8
s = x["connections"]["states"]
assert len(s) == 3 and s[0]["segments"] == 2 and s[0]["mean"] == [[[1, 1]]]
EOF
expect 0 python3 agree.py
expect 0 "$VWN" inspect runs/hyper --what weights --tokens 256 $slow
has out 'attention.connection.A_r'
lacks out 'Cosine'

# ---- pictures ----
expect 0 "$VWN" inspect runs/hyper --tokens 256 -o pictures
cat > pictures.py <<'EOF'
import json, os, re
import xml.etree.ElementTree as tree
page = open("pictures/index.html").read()
shown = re.findall(r'src="([a-z_]+\.svg)"', page)
assert sorted(shown + ["index.html", "inspect.json"]) == sorted(os.listdir("pictures")), os.listdir("pictures")
headings = re.findall("<h2([^>]*)>([^<]*)</h2><img src=\"([^\"]*)\"", page)
assert len(headings) == len(shown), headings
for mark, title, name in headings: # a picture that says its title is not headed by it a second time
    assert ("drawn" in mark) == (">" + title + "<" in open("pictures/" + name).read().split("</title>")[1]), (mark, title)
assert {"connections.svg", "streams.svg", "weights.svg", "weights_distribution.svg", "cosine.svg", "activations_used.svg", "participation.svg",
        "state_entropy.svg", "lens_target.svg"} <= set(shown)
d = json.load(open("pictures/inspect.json"))
svg = "{http://www.w3.org/2000/svg}"
for name in shown:
    root = tree.parse("pictures/" + name).getroot()
    w, h = map(float, root.get("viewBox").split()[2:])
    text = open("pictures/" + name).read()
    assert "prefers-color-scheme:dark" in text and "nan" not in text and "inf" not in text.replace("info", ""), name
    for r in root.iter(svg + "rect"):
        x, y = float(r.get("x", 0)), float(r.get("y", 0))
        assert 0 <= x and x + float(r.get("width")) <= w + 1 and 0 <= y and y + float(r.get("height")) <= h + 1, name
def drawn(name):
    return [float(r[0].text) for r in tree.parse("pictures/" + name).getroot().iter(svg + "rect") if len(r)]
cosine = drawn("cosine.svg")
assert len(cosine) == 4 and all(abs(cosine[i] - 1) < 1e-2 for i in (0, 3)) and cosine[1] == cosine[2], cosine
cells = drawn("connections.svg")
want = [x[0][0] for r in d["connections"]["reads"] for x in r["mean"]]
assert len(cells) == len(want) == 6 and all(abs(a - b) <= 1e-3 * max(1, abs(b)) for a, b in zip(cells, want)), (cells, want)
EOF
expect 0 python3 pictures.py
mkdir site
echo 'a page of mine' > site/index.html
expect 2 "$VWN" inspect runs/plain --tokens 64 --what inputs -o site $slow
has err 'the folder site holds files that `vwn inspect` has not written'
has site/index.html 'a page of mine'
[ "$(ls site)" = index.html ] || fail "a refused folder was written to: $(ls site)"
expect 0 "$VWN" inspect runs/plain --tokens 64 --what inputs -o site --force $slow
expect 0 "$VWN" inspect runs/plain --tokens 64 --what inputs -o site $slow # now it is one of its own
lacks site/index.html 'a page of mine'
rm site/index.html # what is left is not told from a user's pictures
expect 2 "$VWN" inspect runs/plain --tokens 64 --what inputs -o site $slow
expect 2 "$VWN" inspect runs/plain --stats --force

# What stands in pictures: of matrices their size, cells, and lines between the segments of sources; the words of all.
words() {
    for f in "$@"; do
        cells=$(grep -o '<rect class="[pn][0-9]*"[^>]*><title>' "$f" | wc -l)
        printf '%s' "${f##*/}"
        [ "$cells" -eq 0 ] || printf ' %s, %s cells, %s lines' "$(sed -n 's/.*viewBox="0 0 \([0-9]*\) \([0-9]*\)".*/\1 x \2/p' "$f" | head -n 1)" \
            "$cells" "$(grep -o '<path class="l"' "$f" | wc -l)"
        sed 's/<title>[^<]*<\/title>//g' "$f" | grep -o '>[^<>]*[A-Za-z][^<>]*</text>' | sed 's/^>/; /; s/<.text>//' | tr -d '\n'
        echo
    done
}
sed 's/vocab = 256 }/vocab = 256, width = 24 }/' model.vwn > ghc.vwn
expect 0 "$VWN" train ghc.vwn --run ghc -q --set 'conn=ghc(m = 2, n = 3, dynamic = true, reduce = linear(out = D))' --until '1 steps' $slow
expect 0 "$VWN" inspect runs/ghc --what connections --tokens 64 -o ghc $slow
expect 0 "$VWN" inspect runs/plain --tokens 64 -o plain $slow
{ words ghc/*.svg && echo && words plain/*.svg && echo && words pictures/*.svg; } > shown
cat > wanted <<'EOF'
connections.svg 663 x 396, 30 cells, 4 lines; What each sublayer reads of what earlier ones wrote; C(0); attention  1; ffn  2; head; columns: what wrote it, 0 the embedding; what reads
streams.svg 999 x 247, 24 cells, 6 lines; What the streams of the state hold of what earlier sublayers wrote; C(1); C(2); C(3); columns: what wrote it, 0 the embedding; behind the mixing of sublayer

activations_density.svg; Density of activations; log10 of the threshold; share above it; ffn
activations_used.svg 711 x 157, 24 cells, 0 lines; How often dimensions of activations are used; ffn; columns: dimensions, the most used first
connections.svg 663 x 264, 6 cells, 0 lines; What each sublayer reads of what earlier ones wrote; C(0); attention  1; ffn  2; head; columns: what wrote it, 0 the embedding; what reads
cosine.svg 509 x 220, 4 cells, 0 lines; How alike the inputs of sublayers are; cosine; attention  1; ffn  2; columns: sublayer; sublayer
cosine_next.svg; Cosine of consecutive inputs; sublayer; cosine with the next one's input; median, 5 to 95 %
lens_divergence.svg; How much a sublayer changes the prediction; sublayers behind the embedding; nats; small
lens_entropy.svg; Entropy of the prediction, from each state; sublayers behind the embedding; nats; small
lens_target.svg; Log probability of the target, from each state; sublayers behind the embedding; nats; small
participation.svg; Participation ratio of activations; activation; dimensions; dimensions
participation_share.svg; Participation ratio of activations, by width; activation; share of dimensions; share
state_entropy.svg; Normalized matrix entropy of the state; sublayers behind the embedding; entropy; small

activations_density.svg; Density of activations; log10 of the threshold; share above it; ffn
activations_used.svg 711 x 157, 24 cells, 0 lines; How often dimensions of activations are used; ffn; columns: dimensions, the most used first
connections.svg 663 x 264, 6 cells, 0 lines; What each sublayer reads of what earlier ones wrote; C(0); attention  1; ffn  2; head; columns: what wrote it, 0 the embedding; what reads
connections_deviation.svg 663 x 264, 6 cells, 0 lines; How much that varies from token to token; deviation; attention  1; ffn  2; head; columns: what wrote it, 0 the embedding; what reads
cosine.svg 509 x 220, 4 cells, 0 lines; How alike the inputs of sublayers are; cosine; attention  1; ffn  2; columns: sublayer; sublayer
cosine_next.svg; Cosine of consecutive inputs; sublayer; cosine with the next one's input; median, 5 to 95 %
lens_divergence.svg; How much a sublayer changes the prediction; sublayers behind the embedding; nats; small
lens_entropy.svg; Entropy of the prediction, from each state; sublayers behind the embedding; nats; small
lens_target.svg; Log probability of the target, from each state; sublayers behind the embedding; nats; small
participation.svg; Participation ratio of activations; activation; dimensions; dimensions
participation_share.svg; Participation ratio of activations, by width; activation; share of dimensions; share
state_entropy.svg; Normalized matrix entropy of the state; sublayers behind the embedding; entropy; small
streams.svg 622 x 247, 6 cells, 0 lines; What the streams of the state hold of what earlier sublayers wrote; C(1); C(2); columns: what wrote it, 0 the embedding; behind the mixing of sublayer
weights.svg; Weights of connections; sublayer; value; A_m; B; A_r
weights_distribution.svg; Distribution of weights in the last sublayer; value; share of tokens; A_m[1,1]; A_m[2,1]; B[1,1]; B[1,2]; A_r[1,1]; A_r[1,2]; A_r[2,1]; A_r[2,2]
EOF
cmp -s wanted shown || fail "what stands in pictures (< wanted, > found): $(diff wanted shown)"
expect 0 "$VWN" inspect runs/plain --tokens 256 --what inputs -o cosine.svg $slow
has cosine.svg 'How alike the inputs of sublayers are'

# ---- what cannot be looked at ----
expect 2 "$VWN" inspect runs/plain --what weight
has err 'one of connections, weights, inputs, activations, states or lens'
expect 1 "$VWN" inspect runs/plain --what weights
has err 'no weight of its connections depends on the data'
expect 5 "$VWN" inspect nowhere
expect 2 "$VWN" inspect runs/plain runs/hyper
has err '--growth'
expect 5 "$VWN" inspect runs/plain --data nowhere.txt
has err 'nowhere.txt'
expect 0 "$VWN" inspect runs/plain --data text.txt --tokens 64 --what lens $slow
expect 5 "$VWN" inspect runs/plain --tokens 64 --what inputs -o nowhere/x.svg $slow
has err 'cannot write nowhere/x.svg'
: > taken
expect 5 "$VWN" inspect runs/plain --tokens 64 --what inputs -o taken $slow
has err 'cannot write taken'

# sublayers of heads are left out, and that is said
sed 's/^  head lm.*/&\n  head mtp {\n    predict = 2\n    weight = 0.3\n    mix = linear()\n    norm = rms_norm(eps = 1e-6)\n    layer {\n      attention { heads = 2 }\n      ffn { hidden = 24, activation = gelu }\n    }\n  }/' model.vwn > heads.vwn
expect 0 "$VWN" train heads.vwn --run heads -q --until '2 steps' $slow
expect 0 "$VWN" inspect runs/heads --tokens 64 --what inputs $slow
has out '2 sublayers of heads are left out: '
expect 0 "$VWN" inspect runs/heads --tokens 64 --what inputs --json $slow
json out
has out '"left_out":["'
expect 0 "$VWN" inspect runs/plain --tokens 64 --what inputs --json $slow
has out '"left_out":[]'

# a sublayer that cannot be told from its input: what is left is measured
sed 's/^model/block same()(x: [.., E]) -> [.., E] { return x }\n&/; s/^  ffn.*/&\n  same { pre_norm = none }/' model.vwn > same.vwn
expect 0 "$VWN" train same.vwn --run same -q --until '2 steps' $slow
expect 0 "$VWN" inspect runs/same --tokens 64 $slow
has err 'nothing of `connections`: a sublayer returns what it reads as it is'
has out 'ln p(target)'
expect 1 "$VWN" inspect runs/same --tokens 64 --what inputs $slow
# predictions that see what they predict; a text of which nothing is held out
expect 0 "$VWN" train model.vwn --run full -q --set model.mask=full $slow
expect 0 "$VWN" inspect runs/full --tokens 64 --what lens $slow
has err 'depend on later tokens'
sed 's/, val = 25%//; /^  eval /d' model.vwn > all.vwn
expect 0 "$VWN" train all.vwn --run all -q --until '2 steps' $slow
expect 2 "$VWN" inspect runs/all $slow
has err 'keeps no validation text; name some with --data'
expect 2 "$VWN" inspect runs/full -o picture.png $slow
has err 'a picture ends in .svg'
[ ! -e picture.png ] || fail "a folder picture.png"
finish
