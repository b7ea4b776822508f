# losses.sh - 8 steps on a GPU have the losses of 8 steps on the CPU: in float32 but for rounding, in bf16 and fp16 within
# what these round.
# When: first, slow. The tests of fake_cuda go the same ways.
. "$VWN_SOURCE/tests/cuda/small.inc"

# evals A B BOUND: what both have measured on held-out data, by averaged weights where there are some.
evals() {
    for run in "$1" "$2"; do
        sed -n 's/.*"event":"eval".*"eval_loss":\([-0-9.e+]*\),.*/\1/p' "$run.json" > "$run.evals"
    done
    paste "$1.evals" "$2.evals" | awk -v most="$3" '{ d = $1 / $2 - 1; bad += !(d < most && d > -most) } END { exit bad || NR != 2 }' ||
        fail "$1 and $2 measure: $(paste "$1.evals" "$2.evals")"
}

# variant NAME BOUND PATH=EXPR...
variant() {
    name=$1 bound=$2
    shift 2
    case $name in bf16 | fp16 | mhc | moe-bf16) ;; *) draw 7 || return 0 ;; esac
    for set in "$@"; do
        shift
        set -- "$@" --set "$set"
    done
    set -- "$@" --set 'train.length=8 steps' --set 'train.eval.every=4 steps'
    train cpu "$name-cpu" "$@"
    train cuda "$name-gpu" "$@"
    has out '"event":"device","text":"cuda:0, Fake GPU'
    evals "$name-cpu" "$name-gpu" "$bound"
    near "$name-cpu" "$name-gpu" 8 "$bound"
}

variant gpt 1e-5
variant parts 1e-5 'train.micro_batch=1 seqs'
variant recompute 1e-5 'train.recompute=[attention, sub]' 'train.micro_batch=2 seqs' 'train.average=ema(decay = 0.5)'
variant ghc 1e-5 'conn=ghc(m = 2, n = 3, dynamic = true, reduce = linear(out = D))' wide=18
variant mhc 1e-5 'conn=mhc(n = 2, iterations = 2)'
variant moe 1e-5 'sub=moe(experts = 5, active = 2, hidden = 7, activation = silu, scores = softmax, normalize = true, balance = 0.01)'
variant widths 1e-5 'widths=[8, 16]' 'conn=carried(widths = widths, head = D, norm = norm)' head.lm.norm=none
wider='sub=ffn(hidden = 64, activation = silu, gated = true)'
variant bf16 2e-2 D=64 "$wider" model.context=16 "train.batch=2 seqs" 'train.precision=mixed(compute = bf16, master = fp32)'
variant fp16 5e-3 D=64 "$wider" model.context=16 "train.batch=4 seqs" 'train.precision=mixed(compute = fp16, master = fp32)'
has out 'rounded to fp16 and their products added in float32; what lies between kernels is of that type, too, and all else is computed in float32; the loss is scaled'
# all experts of a token: one that is chosen another time would lead to other losses
experts='sub=moe(experts = 3, active = 3, hidden = 72, activation = silu, scores = softmax, normalize = true, balance = 0.01)'
variant moe-bf16 2e-2 D=64 "$experts" model.context=16 "train.batch=2 seqs" 'train.precision=mixed(compute = bf16, master = fp32)'
variant moe-fp16 5e-3 D=64 "$experts" model.context=16 "train.batch=2 seqs" 'train.precision=mixed(compute = fp16, master = fp32)'
has fp16-cpu.json 'rounded to fp16 and multiplied in float32; all else is computed in float32; the loss is scaled'
cmp -s bf16-gpu.losses fp16-gpu.losses && fail "nothing was rounded"

finish
