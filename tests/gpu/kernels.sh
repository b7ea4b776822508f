#!/bin/bash
# kernels.sh - the first meeting of the kernels with a GPU.
#
#     bash kernels.sh FOLDER [OUT.json]
#
# In:  a folder of make.sh, carried to a machine with an NVIDIA GPU and the CUDA toolkit (nvcc, cuBLAS,
#      gcc, python3; compute-sanitizer where it is).
# Out: every kernel launched again on the GPU and compared with the emulator's numbers; the same under
#      memcheck, racecheck, synccheck and initcheck; the time of every call of a training step beside a
#      copy and products measured there: JSON in OUT.json (FOLDER/report.json).
# Status 1: a kernel is wrong, a tool complains, or something did not compile; 77: no GPU or no nvcc.
#
# EMULATED=ROOT runs it all on the CPU with the emulator of ROOT/tests/gpu/emulated: a test of this script.
set -u
folder=${1:?use: kernels.sh FOLDER [OUT.json]}
folder=$(cd "$folder" && pwd) || exit 2
out=${2:-$folder/report.json}
results=$folder/results
emulated=${EMULATED:-}
rm -rf "$results"
mkdir -p "$results"
export folder results emulated

if [ -z "$emulated" ]; then
    PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin
    command -v nvcc > /dev/null || { echo "skipped: no nvcc"; exit 77; }
    capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2> /dev/null | head -n 1)
    [ -n "$capability" ] || { echo "skipped: no GPU that nvidia-smi sees"; exit 77; }
    arch=sm_${capability/./}
    [ "$arch" = sm_90 ] && arch=sm_90a
    export arch
    nvidia-smi --query-gpu=name,driver_version,compute_cap,memory.total --format=csv,noheader |
        tee "$results/gpu.txt"
fi

# build FOLDER PROGRAM FILE...: the program from C files and kernels.cu
build() {
    local at=$1 program=$2
    shift 2
    cd "$at" || return 1
    if [ -n "$emulated" ]; then
        make -s -f "$emulated/tests/gpu/emulated/Makefile" SOURCE="$emulated" OUT="$program" MAIN="$*" \
            CFLAGS=-O1 INCLUDES="-I$folder/src"
    else
        nvcc -O2 -std=c++17 -arch="$arch" --threads 0 -I"$folder/src" -I. -o "$program" "$@" kernels.cu \
            -lcublas -lm
    fi > build.log 2>&1 || { echo "$at: does not compile:"; head -n 5 build.log; return 1; }
}

one_case() {
    local name
    name=$(basename "$1")
    build "$1" run_kernels "$folder"/src/{run_kernels,compute_cuda,common}.c || return 1
    ./run_kernels cases.bin > "$results/$name.jsonl" 2> "$results/$name.log"
    case $? in
    0) ;;
    1) echo "$name: $(grep -c '"good":false' "$results/$name.jsonl") kernels differ; $(head -n 1 "$results/$name.log")" ;;
    *) echo "$name: ended with $?: $(head -n 1 "$results/$name.log")"; return 1 ;;
    esac
}

# The measured program has a plan.c whose calls go through measure.c.
one_model() {
    local name
    name=$(basename "$1")
    sed 's/\bblocks(run/measured_blocks(run/; s/\bproduct(run/measured_product(run/
        s/^#include "plan.h"/&\n#include "measured.h"/' "$1/plan.c" > "$1/measured_plan.c"
    build "$1" measure measured_plan.c "$folder/src/measure.c" compute_cuda.c common.c || return 1
    ./measure ${MEASURE:-} > "$results/$name.json" 2> "$results/$name.log" && return
    echo "$name: not measured: $(head -n 1 "$results/$name.log")"
    rm -f "$results/$name.json"
    return 1
}

sanitize() {
    local name
    name=$(basename "$1")
    cd "$1" || return 1
    for tool in memcheck racecheck synccheck initcheck; do
        compute-sanitizer --tool $tool --error-exitcode 9 ./run_kernels cases.bin > "$results/$name.$tool.log" 2>&1
        code=$?
        [ $code -eq 9 ] && echo "$name: $tool complains: $results/$name.$tool.log"
        echo $((code == 9)) > "$results/$name.$tool.status"
    done
}
export -f build one_case one_model sanitize

failed=0
jobs=$(nproc)
ls -d "$folder"/cases/*/ | sed 's,/$,,' | xargs -P "$jobs" -I{} bash -c 'one_case {}' || failed=1
if [ -z "$emulated" ] && command -v compute-sanitizer > /dev/null; then
    ls -d "$folder"/cases/*/ | sed 's,/$,,' | xargs -P 4 -I{} bash -c 'sanitize {}' || failed=1
else
    echo "without compute-sanitizer"
fi
for model in "$folder"/models/*/; do # one at a time: they measure
    [ -d "$model" ] && { (one_model "${model%/}") || failed=1; }
done
python3 "$folder/src/report.py" "$folder" > "$out" || failed=1
echo "report: $out"
exit $failed
