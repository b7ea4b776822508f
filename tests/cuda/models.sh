# models.sh - 8 steps of models beyond plain ones on a GPU have the losses of 8 steps on the CPU: chains of multi-token heads,
# projections that are not linear, (8,64) connections, images; a part of them in two bytes. What they sample is the CPU's text.
# When: first, slow. The tests of fake_cuda go the same ways.
. "$VWN_SOURCE/tests/cuda/small.inc"
command -v python3 > /dev/null || { echo "skipped: no python3"; exit 77; }

steps=8
# both NAME BOUND LOSS FILE PATH=EXPR...: LOSS is the result whose steps are compared.
both() {
    name=$1 bound=$2 loss=$3 file=$4
    shift 4
    for set in "$@"; do
        shift
        set -- "$@" --set "$set"
    done
    for device in cpu cuda; do
        expect 0 "$VWN" train "$file" --device $device --run "$name-$device" --json --set "train.length=$steps steps" "$@"
        lacks err mistake
        sed -n 's/.*"event":"step".*"'"$loss"'":\([-0-9.e+]*\).*/\1/p' out > "$name-$device.losses"
        [ "$(wc -l < "$name-$device.losses")" -eq $steps ] || fail "$name on $device: no $steps losses"
    done
    has out '"event":"device","text":"cuda:0, Fake GPU'
    paste "$name-cpu.losses" "$name-cuda.losses" | awk -v most="$bound" -v name="$name" '
        { d = ($1 - $2) / $1; if (d < 0) d = -d; if (d > worst) worst = d; if (NR == 1) first = $1; last = $1 }
        END { print name ": worst", worst, "loss", first, "to", last; exit !(NR > 0 && worst < most && last < first) }' || fail "$name: $(paste "$name-cpu.losses" "$name-cuda.losses" | tail -n 3)"
}

# text RUN: of the CPU's weights, sampled on both
text() {
    expect 0 "$VWN" sample "runs/$1-cpu" --device cpu --tokens 24 --prompt abc --seed 3
    cp out sampled
    expect 0 "$VWN" sample "runs/$1-cpu" --device cuda --tokens 24 --prompt abc --seed 3
    cmp -s sampled out || fail "$1: another text: $(cat out) for $(cat sampled)"
}

# matrices by momentum that is made orthogonal, the others by AdamW
sed 's/optimizer adamw.*/optimizer muon { lr = 1e-2, momentum = 0.9, weight_decay = 0.1\n    adamw { betas = [0.9, 0.95], eps = 1e-8 } }/' small.vwn > muon.vwn
if draw 3; then both muon 1e-5 loss.next muon.vwn 'train.micro_batch=2 seqs'; fi
sed 's/^  head lm .*/&\n  for depth in 1..2 {\n    head mtp { predict = depth + 1, weight = 0.3, norm = norm, mix = linear(), shared = true\n      layer { attention { heads = 2, position = rope(base = 100) }\n        sub } }\n  }/' small.vwn > mtp.vwn
both mtp 1e-5 loss.mtp mtp.vwn
text mtp
if draw 3; then both nexus 1e-5 loss.next small.vwn 'map=nexus_rank(M = 14, A = 16)'; fi
whole || steps=3 # a step of it takes the fake a second and more
both wide 1e-5 loss.next small.vwn D=16 wide=128 'conn=ghc(m = 8, n = 64, dynamic = true, reduce = linear(out = D))'
steps=8
text wide

cat > vit.vwn << 'END'
edition = 1
import "std/transformer"
import "std/connections"

model vit {
  context = 5, width = 12, mask = full, pre_norm = layer_norm(eps = 1e-6), connection = residual()
  init = normal(std = 0.1), out_init = normal(std = 0.1)
  embed patches  { image = 8, patch = 4, channels = 3, scale = 2 / 255, shift = -1 }
  embed class    {}
  embed position { size = 5 }
  for layer in 1..2 {
    attention { heads = 2 }
    ffn { hidden = 20, activation = gelu, bias = true }
  }
  head classify { norm = layer_norm(eps = 1e-6), pool = first, classes = 5, bias = true }
}

train {
  data = arrays(image = "image.npy", labels = "label.npy"), batch = 4 images, length = 8 steps, seed = 1
  precision = fp32, clip = 1
  optimizer adamw { lr = 1e-2, betas = [0.9, 0.999], eps = 1e-8, weight_decay = 0.1 }
}
END
# a class is a brightness
python3 - << 'END'
import random, struct
random.seed(1)
n = 40
def save(path, kind, shape, data):
    head = str({"descr": kind, "fortran_order": False, "shape": shape})
    head += " " * (64 - (11 + len(head)) % 64) + "\n"
    open(path, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data)
label = [i % 5 for i in range(n)]
save("image.npy", "|u1", (n, 3, 8, 8), bytes(50 * c + random.randrange(50) for c in label for _ in range(192)))
save("label.npy", "<i8", (n,), struct.pack(f"<{n}q", *label))
END
both vit 1e-5 loss vit.vwn

# in two bytes, each type with one of them: that anything was rounded shows in the losses
half() {
    name=$1 type=$2
    shift 2
    both "$name-$type" "$@" "train.precision=mixed(compute = $type, master = fp32)"
    shift 3
    for set in "$@"; do
        shift
        set -- "$@" --set "$set"
    done
    expect 0 "$VWN" train "$file" --device cpu --run "$name" --json --set "train.length=$steps steps" "$@"
    sed -n 's/.*"event":"step".*"'"$loss"'":\([-0-9.e+]*\).*/\1/p' out > "$name.losses"
    cmp -s "$name.losses" "$name-$type-cpu.losses" && fail "$name: nothing was rounded"
}
set -- D=64 'sub=ffn(hidden = 64, activation = silu, gated = true)' model.context=16 'train.batch=2 seqs'
if draw 3; then half mtp64 bf16 2e-2 loss.mtp mtp.vwn "$@"; fi
half nexus64 fp16 5e-3 loss.next small.vwn "$@" 'map=nexus_rank(M = 66, A = 72)'
finish
