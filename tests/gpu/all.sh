#!/bin/bash
# all.sh - everything that a GPU is met with, in one go.
#
#     bash FOLDER/all.sh FOLDER [OUT.json] [SECONDS]
#
# In:  a folder of make.sh, carried to a machine with an NVIDIA GPU, its driver and the CUDA toolkit (nvcc, cuBLAS, NVRTC,
#      gcc, python3; compute-sanitizer and PyTorch where they are). Neither flex, bison nor oneDNN is needed. SECONDS: no
#      part is begun when so many are over; the report says what was left out.
# Out: JSON in OUT.json (FOLDER/all.json), written anew after each part:
#      kernels   every kernel beside the emulator's numbers, times, compute-sanitizer's four tools (kernels.sh)
#      losses    200 steps on the GPU beside 200 on the CPU, in float32 and bf16, and in bf16 with heads of 64, as warpgroups take them
#      resume    a run that is killed and goes on has the bytes of one that was not
#      memory    a batch that does not fit is refused in a sentence
#      sanitizer memcheck of a whole training run
#      bench     `vwn doctor --measure`, `vwn bench` of GPT and (2,3) in float32 and bf16, PyTorch's steps beside them, and what was
#                predicted of each kernel (`vwn ir --stage cubin --predict`), also as a table at the end
#      Each part: {ok, seconds, ...}, or {skipped: why}.
# Status 1: a part is not ok or was left out; 77: no GPU.
#
# EMULATED=ROOT rehearses it on the tests' fake driver (VWN_CUDA_LIBRARIES); then SMALL=1 takes sizes for that, and
# PyTorch computes on the CPU. PEER_PYTHON: a python with PyTorch, where that is not python3's.
set -u
folder=${1:?use: all.sh FOLDER [OUT.json] [SECONDS]}
folder=$(cd "$folder" && pwd) || exit 2
out=${2:-$folder/all.json}
case $out in /*) ;; *) out=$PWD/$out ;; esac
until=$((${3:-0} > 0 ? $(date +%s) + ${3:-0} : 0))
emulated=${EMULATED:-}
small=${SMALL:-}
if [ -z "$emulated" ]; then
    nvidia-smi > /dev/null 2>&1 || { echo "skipped: no GPU that nvidia-smi sees"; exit 77; }
fi
find "$folder" -name '*.gz' -exec gunzip -f {} +
vwn=$folder/vwn
work=$folder/work
parts=$folder/parts
rm -rf "$work" "$parts"
mkdir -p "$work" "$parts"
cp "$folder"/programs/* "$work"
cd "$work" || exit 2
VWN_CACHE=$work/cache
export VWN_CACHE
failed=0

late() { [ "$until" -gt 0 ] && [ "$(date +%s)" -ge "$until" ]; }
report() { python3 "$folder/src/all.py" "$parts" > "$out"; }
# part NAME FUNCTION: the function's last line is what it has seen, a JSON object without braces, or nothing.
part() {
    local began status
    if late; then
        echo '{"skipped": "no time was left"}' > "$parts/$1.json"
        failed=1
    else
        began=$(date +%s.%N)
        "$2" > "$parts/$1.out" 2> "$parts/$1.err"
        status=$?
        python3 "$folder/src/all.py" --part "$parts/$1" "$status" "$began" > "$parts/$1.json"
        [ "$status" -eq 0 ] || { failed=1; echo "$1: not ok: $(tail -n 1 "$parts/$1.err")"; }
    fi
    report
}

if [ -n "$small" ]; then
    size=(--set D=16 --set L=1 --set model.context=8 --set 'train.batch=2 seqs')
    peer=(--device cpu --width 16 --layers 1 --context 8 --batch 2 --steps 2 --warmup 1)
    steps=20 bench_steps=2 heads64=()
else
    size=(--set D=1024 --set 'train.batch=32 seqs') # heads of 128
    peer=(--width 1024 --layers 6 --context 256 --batch 32)
    steps=200 bench_steps=20 heads64=(--set D=512)
fi
losses_size=("${size[@]}")
[ -n "$small" ] || losses_size=(--set D=128 --set L=2 --set model.context=128 --set 'train.batch=8 seqs')
bf16='train.precision=mixed(compute = bf16, master = fp32)'
length=(--set "train.length=$steps steps" --set 'train.log.every=1 steps')

kernels() { bash "$folder/kernels.sh" "$folder" "$parts/kernels.report" "$((until > 0 ? until - $(date +%s) : 0))"; }

# both NAME BOUND [flags]: the largest relative distance of the losses
both() {
    local name=$1 bound=$2 device
    shift 2
    for device in cpu cuda:0; do
        "$vwn" train gpt.vwn --device $device --run "$name-${device%%:*}" --overwrite --json "${losses_size[@]}" "${length[@]}" "$@" \
            > "$name-${device%%:*}.jsonl" || return 1
    done
    python3 "$folder/src/all.py" --losses "$name" "$name-cpu.jsonl" "$name-cuda.jsonl" "$bound" "$steps"
}
losses() { both f32 1e-3 && both bf16 5e-2 --set "$bf16" && both heads64 5e-2 --set "$bf16" "${heads64[@]}"; }

resume() {
    local pid
    sed "s/log  *{/checkpoint { every = $((steps / 4)) steps }\n  &/" gpt.vwn > kept.vwn
    "$vwn" train kept.vwn --device cuda:0 --run whole --overwrite -q "${losses_size[@]}" "${length[@]}" || return 1
    "$vwn" train kept.vwn --device cuda:0 --run killed --overwrite -q "${losses_size[@]}" "${length[@]}" &
    pid=$!
    while kill -0 $pid 2> /dev/null && ! ls runs/killed/ckpt/step_*.safetensors > /dev/null 2>&1; do sleep 0.02; done
    kill -9 $pid 2> /dev/null
    wait $pid 2> /dev/null
    "$vwn" train kept.vwn --device cuda:0 --run killed --resume -q "${losses_size[@]}" "${length[@]}" || return 1
    cmp "$(ls runs/whole/ckpt/step_*.safetensors | tail -n 1)" "$(ls runs/killed/ckpt/step_*.safetensors | tail -n 1)" >&2
}

memory() {
    local status huge='1000000 seqs'
    "$vwn" train gpt.vwn --device cuda:0 --run huge --overwrite --set D=768 --set "train.batch=$huge" 2> sentence
    status=$?
    cat sentence >&2
    python3 "$folder/src/all.py" --sentence sentence
    [ "$status" -eq 5 ] && grep -q 'are available on the GPU' sentence
}

sanitizer() {
    local tool
    tool=${SANITIZER:-$(command -v compute-sanitizer)}
    [ -n "$tool" ] || { echo '"skipped": "there is no compute-sanitizer"'; return 0; }
    "$tool" --tool memcheck --error-exitcode 9 "$vwn" train gpt.vwn --device cuda:0 --run checked --overwrite -q "${losses_size[@]}" \
        --until '3 steps' >&2
}

# predict FILE [flags]: what is said of each kernel for the GPU that is here, or why nothing is.
predict() {
    local file=$1 name gpu=
    shift
    name=${emulated:+H100}
    name=${name:-$(nvidia-smi --query-gpu=name --format=csv,noheader -i 0)}
    case $name in *H100*) gpu=h100 ;; *H200*) gpu=h200 ;; *A100*) gpu=a100 ;; *B200*) gpu=b200 ;; esac
    [ -n "$gpu" ] || { echo "{\"skipped\": \"nothing is known of $name\"}"; return; }
    "$vwn" ir "$file" --stage cubin --predict "$gpu" --json -q "$@" 2> predict.err ||
        python3 -c 'import json, sys; print(json.dumps({"skipped": sys.stdin.read().strip()[-500:]}))' < predict.err
}

bench() {
    local model precision how
    "$vwn" doctor --measure --device cuda:0 --json > rates.json || return 1
    for model in gpt vwn23; do
        for precision in f32 bf16; do
            set -- --steps $bench_steps "${size[@]}"
            [ $precision = f32 ] || set -- "$@" --set "$bf16"
            "$vwn" bench $model.vwn --device cuda:0 --kernels --json -q "$@" > "$model-$precision-vwn.bench" || return 1
            shift 2
            predict $model.vwn "$@" > "$model-$precision.predicted"
            for how in eager sdpa compiled; do
                timeout 300 "${PEER_PYTHON:-python3}" "$folder/src/peer.py" --model $model --how $how --precision $precision "${peer[@]}" \
                    > "$model-$precision-$how.bench" || echo '{"skipped": "it ended with an error"}' > "$model-$precision-$how.bench"
            done
        done
    done
    python3 "$folder/src/all.py" --beside "$parts/predicted.txt" ./*.predicted || return 1
    python3 "$folder/src/all.py" --bench rates.json ./*.bench
}

report
part losses losses
part resume resume
part memory memory
part bench bench
part sanitizer sanitizer
part kernels kernels
[ ! -f "$parts/predicted.txt" ] || cat "$parts/predicted.txt"
echo "report: $out"
exit $failed
