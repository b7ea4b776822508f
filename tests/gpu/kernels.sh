#!/bin/bash
# kernels.sh - the first meeting of the kernels with a GPU.
#
#     bash kernels.sh FOLDER [OUT.json] [SECONDS]
#
# In:  a folder of make.sh, carried to a machine with an NVIDIA GPU and the CUDA toolkit (nvcc, cuBLAS,
#      gcc, python3; compute-sanitizer where it is). SECONDS: nothing is begun when so many are over;
#      the report says what was left out. None: everything is done.
# Out: every kernel launched again on the GPU and compared with the emulator's numbers; the time of every
#      call of a training step beside a copy and products measured there; the kernels again under
#      memcheck, racecheck, synccheck and initcheck: JSON in OUT.json (FOLDER/report.json), written anew
#      after each of these, so that what is known is there when the machine is taken away.
# Status 1: a kernel is wrong, a tool complains, something did not compile or was left out; 77: no GPU or
#      no nvcc.
#
# EMULATED=ROOT runs it all on the CPU with the emulator of ROOT/tests/gpu/emulated: a test of this script.
# Then SANITIZER is a program in place of compute-sanitizer.
set -u
folder=${1:?use: kernels.sh FOLDER [OUT.json] [SECONDS]}
folder=$(cd "$folder" && pwd) || exit 2
out=${2:-$folder/report.json}
results=$folder/results
emulated=${EMULATED:-}
sanitizer=${SANITIZER:-}
until=$((${3:-0} > 0 ? $(date +%s) + ${3:-0} : 0))
find "$folder" -name '*.gz' -exec gunzip -f {} +
rm -rf "$results"
mkdir -p "$results"

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
    sanitizer=$(command -v compute-sanitizer)
fi
export folder results emulated sanitizer until

late() { [ "$until" -gt 0 ] && [ "$(date +%s)" -ge "$until" ]; }

# build FOLDER PROGRAM FILE...: the program from C files and kernels.cu
build() {
    local at=$1 program=$2
    shift 2
    cd "$at" || return 1
    if [ -n "$emulated" ]; then
        make -s -f "$emulated/tests/gpu/emulated/Makefile" SOURCE="$emulated" OUT="$program" MAIN="$*" \
            CFLAGS=-O1 INCLUDES="-I$folder/src"
    else
        nvcc -O2 -std=c++17 -arch="$arch" -I"$folder/src" -I. -o "$program" "$@" kernels.cu \
            -L"$(dirname "$(command -v nvcc)")/../lib64/stubs" -lcublas -lcuda -lm
    fi > build.log 2>&1 || { echo "$at: does not compile:"; head -n 5 build.log; return 1; }
}

# A launch that ends the program leaves a line without an end; the cases behind it run without it.
one_case() {
    local name lines status=0
    name=$(basename "$1")
    late && return
    build "$1" run_kernels "$folder"/src/{run_kernels,compute_cuda,common}.c || return 1
    : > "$results/$name.jsonl"
    for ((;;)); do
        lines=$(wc -l < "$results/$name.jsonl")
        timeout 300 ./run_kernels cases.bin --from "$lines" >> "$results/$name.jsonl" 2> "$results/$name.log"
        status=$?
        [ -n "$(tail -c 1 "$results/$name.jsonl")" ] || break
        echo "$name: $(tail -n 1 "$results/$name.jsonl" | cut -d '"' -f 4) ended the program with $status: $(head -n 1 "$results/$name.log")"
        echo '"numbers":0,"worst":1e30,"integers":0,"ended":true,"good":false}' >> "$results/$name.jsonl"
    done
    grep -q '"good":false' "$results/$name.jsonl" &&
        echo "$name: $(grep -c '"good":false' "$results/$name.jsonl") kernels differ"
    case $status in
    0 | 3) return $((status > 0)) ;;
    *) echo "$name: ended with $status: $(head -n 1 "$results/$name.log")"; return 1 ;;
    esac
}

# The measured program has a plan.c whose calls go through measure.c.
build_model() {
    late && return
    sed 's/\bblocks(run/measured_blocks(run/; s/\bproduct(run/measured_product(run/
        s/\bcopy_parts(run/measured_copy_parts(run/
        s/^#include "plan.h"/&\n#include "measured.h"/' "$1/plan.c" > "$1/measured_plan.c"
    rm -f "$1/measure"
    build "$1" measure measured_plan.c "$folder/src/measure.c" compute_cuda.c common.c
}

one_model() {
    local name
    name=$(basename "$1")
    cd "$1" || return 1
    { late || [ ! -x measure ]; } && return
    timeout 300 ./measure ${MEASURE:-} > "$results/$name.json" 2> "$results/$name.log" && return
    echo "$name: not measured: $(head -n 1 "$results/$name.log")"
    rm -f "$results/$name.json"
    return 1
}

# 0: nothing to say, 1: it complains, 2: it did not get to the end
sanitize() {
    local name code=0
    name=$(basename "$1")
    cd "$1" || return 1
    { late || [ ! -x run_kernels ]; } && return
    timeout 300 "$sanitizer" --tool "$2" --error-exitcode 9 ./run_kernels cases.bin > "$results/$name.$2.log" 2>&1
    case $? in
    0 | 3) ;;
    9) code=1; echo "$name: $2 complains: $results/$name.$2.log" ;;
    *) code=2; echo "$name: $2 did not get to the end: $results/$name.$2.log" ;;
    esac
    echo $code > "$results/$name.$2.status"
    return $((code > 0))
}
export -f late build one_case build_model one_model sanitize

failed=0
jobs=$(nproc)
report() { python3 "$folder/src/report.py" "$folder" "$sanitizer" > "$out"; }
export foreign= # cases that this architecture has not
[ -n "$emulated" ] || [ "$arch" = sm_90a ] || foreign='*-sm_90a'
each() { # FOLDER JOBS FUNCTION [ARGUMENT]: of all folders in it, some at one time
    find "$folder/$1" -mindepth 1 -maxdepth 1 -type d ! -name "$foreign" | sort |
        xargs -r -P "$2" -I{} bash -c "$3 {} ${4:-}" || failed=1
}
each cases "$jobs" one_case
report
each models "$jobs" build_model
each models 1 one_model
report
if [ -n "$sanitizer" ]; then
    for tool in memcheck racecheck synccheck initcheck; do
        each cases $((jobs < 8 ? jobs : 8)) sanitize $tool
        report
    done
else
    echo "without compute-sanitizer"
fi
report || failed=1
echo "report: $out"
exit $failed
