#!/bin/sh
# meet.sh - a GPU is met in three calls: is it right, how fast is it, what pays?
#
#     sh tests/gpu/meet.sh make [BUILD]      fills scratch_gpu/: what the calls need beside the tree (call_make.inc)
#     sh tests/gpu/meet.sh 1 OUT             there: does it compute what it should? at most 300 s (call_1.inc)
#     sh tests/gpu/meet.sh 2 OUT             there: how fast? at most 480 s (call_2.inc)
#     sh tests/gpu/meet.sh 3 OUT             there: does a connection pay? at most 480 s (call_3.inc)
#     sh tests/gpu/meet.sh facts OUT...      here: what came back as files and tables of the repository (call_facts.inc)
#
# In:  the tree and scratch_gpu/ ($MEET_FOLDER), a machine with a GPU's driver; what else is missing there is told and left out.
# Out: OUT/meet_N.jsonl, a line for each thing that was seen, written at once; OUT/log_N.txt, what programs said; files that a part
#      names. What a full disk does not take stands on stdout.
# Status 3: something is wrong; 1: a part was not done.
#
# Each process has a limit, each part a deadline, and a part that fails hides no other. $MEET_SMALL: sizes for the tests' fake
# driver; $MEET_SECONDS: another limit of a whole call; $MEET_PARTS: names of parts, no others;
# $MEET_PATIENCE: all limits are so many times as long, on a machine that does other things, too.
# shellcheck disable=SC2034,SC1090 # what the calls read; which call
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
folder=${MEET_FOLDER:-$root/scratch_gpu}
small=${MEET_SMALL:-}
patience=${MEET_PATIENCE:-1}
processes=0
ends_in=8 # of a call: what its last process takes to be ended, and its last line to be written
status=0
LC_ALL=C
export LC_ALL

now() { date +%s; }
# A line of JSON, kept; on a full disk on stdout.
line() {
    printf '%s\n' "$1" 2> /dev/null >> "$lines" || printf '%s\n' "$1"
}
# What a program said, as a text of JSON: its last lines.
text() { tail -c "${2:-600}" "$1" 2> /dev/null | tr '\n\t\r"\\' '   '"''" | tr -d '\000-\037'; }

# limited SECONDS COMMAND...: what is left of the part is a limit, too.
limited() {
    most=$(($1 * patience))
    shift
    left=$((part_until - $(now)))
    [ "$left" -ge 1 ] || return 124
    [ "$most" -le "$left" ] || most=$left
    processes=$((processes + 1))
    timeout -k 5 "$most" "$@"
}

# part NAME SECONDS FUNCTION: its words go to the log; its line says whether it came to its end.
part() {
    case " ${MEET_PARTS:-$1} " in *" $1 "*) ;; *) return ;; esac
    part_began=$(now)
    part_until=$((part_began + $2 * patience))
    [ "$part_until" -le "$until" ] || part_until=$until
    if [ "$part_until" -le "$part_began" ]; then
        line "{\"part\":\"$1\",\"ok\":false,\"left_out\":\"no time was left\"}"
        echo "$1: left out, no time was left"
        [ $status -ne 0 ] || status=1
        return
    fi
    processes=0
    said=$work/said.$1
    : > "$said"
    MEET_PART=$1 # of its processes
    export MEET_PART
    "$3" 2> "$said"
    got=$?
    { echo "==== $1: what was said" && tail -c 200000 "$said"; } 2> /dev/null >> "$log"
    seconds=$(($(now) - part_began))
    if [ $got -eq 0 ]; then
        line "{\"part\":\"$1\",\"ok\":true,\"seconds\":$seconds,\"processes\":$processes}"
        echo "$1: ok, $seconds s, $processes processes"
    else
        line "{\"part\":\"$1\",\"ok\":false,\"seconds\":$seconds,\"status\":$got,\"said\":\"$(text "$said")\"}"
        echo "$1: NOT OK ($got), $seconds s: $(text "$said" 200)"
        status=3
    fi
}
# squeeze XZ_OPTION..., opened FILE: as small as may be; what is packed with xz Python unpacks, too.
squeeze() { if has xz; then xz -c "$@"; else gzip -9n; fi; }
opened() {
    case $(head -c 6 "$1" | od -An -c | tr -d ' ') in
    375*) if has xz; then xz -dc "$1"; else
        python3 -c 'import lzma, shutil, sys; shutil.copyfileobj(lzma.open(sys.argv[1]), sys.stdout.buffer)' "$1"; fi ;;
    *) gzip -dc "$1" ;;
    esac
}
# pack_numbers CASES ITEM FILE: what a source's kernels read and write, words of four bytes.
pack_numbers() { tar cf - -C "$1" "$2/cases.bin" | squeeze --lzma2=preset=9e,lc=0,lp=2,pb=2 > "$3"; }
# pack_code CASES FILE: texts and machine code of all sources, kind by kind, since they are much alike.
pack_code() {
    (cd "$1" && for kind in cu list cubin; do find . -name "*.$kind" -not -path '*.new/*' | sort; done) |
        tar cf - -C "$1" --no-recursion --owner=0 --group=0 --mtime=@0 -T - | squeeze --lzma2=preset=6,dict=96MiB > "$2"
}
unpack() { opened "$1" | tar xf - -C "$2"; }
# Something that this machine has not.
missing() { line "{\"missing\":\"$1\",\"for\":\"$2\"}"; echo "missing: $1 ($2)"; }
has() { command -v "$1" > /dev/null 2>&1; }

# Where libraries of CUDA may lie: with Python's packages, a toolkit, a driver. The system's own places stay.
find_libraries() {
    [ -z "${VWN_CUDA_LIBRARIES+set}" ] || return 0
    torch_path=${LD_LIBRARY_PATH:-}
    sites=$(limited 10 python3 -c 'import sys; print("\n".join(sys.path))' 2> /dev/null)
    for name in libcuda.so.1 libnvrtc.so.13 libnvrtc.so.12 libcublasLt.so.13 libcublasLt.so.12; do
        for at in $(for site in $sites /opt/*/.venv/lib/python3*/site-packages /opt/*/lib/python3*/site-packages \
                        /usr/local/lib/python3*/dist-packages; do ls -d "$site"/nvidia/*/lib 2> /dev/null; done) \
                  "${CUDA_HOME:-/usr/local/cuda}/lib64" /usr/local/cuda/lib64 /usr/local/cuda-*/lib64 /usr/local/cuda/targets/*/lib \
                  /usr/local/nvidia/lib64 /usr/local/nvidia/lib /usr/lib/wsl/lib /usr/lib64; do
            if [ -e "$at/$name" ]; then
                case ":${LD_LIBRARY_PATH:-}:" in *":$at:"*) ;; *) LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$at ;; esac
                line "{\"library\":\"$name\",\"path\":\"$at\"}"
                break
            fi
        done
    done
    export LD_LIBRARY_PATH
}

# begin CALL SECONDS: where lines and words go, when it ends.
begin() {
    out=$2
    mkdir -p "$out" || exit 2
    out=$(cd "$out" && pwd)
    lines=$out/meet_$1.jsonl
    log=$out/log_$1.txt
    until=$(($(now) + ${MEET_SECONDS:-$(($3 * patience))} - ends_in))
    part_until=$until # of what comes before the first part
    work=$(mktemp -d "${TMPDIR:-/tmp}/vwn_meet.XXXXXX") || exit 2
    trap 'rm -rf "$work"' EXIT
    trap 'exit 130' INT TERM
    for at in "${CUDA_HOME:-/usr/local/cuda}/bin" /usr/local/cuda/bin /usr/local/cuda/compute-sanitizer /opt/nvidia/nsight-compute/*; do
        [ ! -d "$at" ] || PATH=$PATH:$at
    done
    VWN_CACHE=$work/cache
    export PATH VWN_CACHE
    cp "$folder"/run_kernels "$folder"/rates "$work" 2> /dev/null
    [ ! -e "$folder/vwn.packed" ] || { opened "$folder/vwn.packed" > "$work/vwn" && chmod +x "$work/vwn"; }
    cp "$root"/tests/bench/gpt.vwn "$root"/tests/bench/vwn23.vwn "$folder/kjv.txt" "$work" 2> /dev/null
    vwn=$work/vwn
    cd "$work" || exit 2
    line "{\"call\":$1,\"v\":1,\"date\":\"$(date -u +%Y-%m-%dT%H:%M:%SZ)\",\"folder\":\"$(cat "$folder/made" 2> /dev/null)\"}"
    find_libraries
    card=$(limited 10 nvidia-smi --query-gpu=name --format=csv,noheader -i 0 2> /dev/null | head -n 1)
    line "{\"card\":\"$card\",\"cores\":$(nproc)}"
}

bf16='train.precision=mixed(compute = bf16, master = fp32)'
# losses NAME DEVICE RUN [FLAGS]: a run whose losses the CPU has told beforehand. Names stand in `losses_of`.
losses_of='f32 heads64 heads128 vwn23'
[ -z "$small" ] || losses_of='f32 heads64'
loss_steps=$([ -n "$small" ] && echo 5 || echo 50)
loss_seconds=25
losses() {
    file=gpt.vwn
    name=$1
    device=$2
    run=$3
    shift 3
    case $name in
    f32) width=512 ;;
    heads64) width=512 && set -- "$@" --set "$bf16" ;;
    heads128) width=1024 && set -- "$@" --set "$bf16" ;;
    vwn23) width=512 file=vwn23.vwn && set -- "$@" --set "$bf16" ;;
    esac
    if [ -n "$small" ]; then
        set -- "$@" --set D=$((width / 32)) --set L=1 --set model.context=8 --set 'train.batch=2 seqs'
    else
        set -- "$@" --set D=$width --set L=2 --set 'train.batch=4 seqs'
    fi
    limited $loss_seconds "$vwn" train "${losses_file:-$file}" --device "$device" --run "$run" --overwrite --json --set "train.length=$loss_steps steps" \
        --set 'train.log.every=1 steps' "$@"
}
# bench NAME FILE [FLAGS]: a measured step as a line, with the settings that it was measured with; kernels have not been compiled
# before the first of its name.
bench() {
    name=$1 settings=
    shift
    for word in "$@"; do
        [ "${before:-}" != --set ] || settings="$settings${settings:+,}\"$(printf '%s' "$word" | sed 's/["\\]/\\&/g')\""
        before=$word
    done
    limited "${bench_seconds:-45}" "$vwn" bench "$@" --device cuda:0 --kernels --json -q > "$name.bench" || {
        line "{\"bench\":\"$name\",\"ok\":false,\"status\":$?}" # 124 or 137: it was ended
        return 1
    }
    line "{\"bench\":\"$name\",\"settings\":[$settings],\"result\":$(tr -d '\n' < "$name.bench")}"
    echo "$name: $(sed -n 's/.*"step":{[^}]*"best_ms":\([0-9.]*\),"median_ms":\([0-9.]*\).*/\1 ms at best, \2 in the middle/p' "$name.bench")"
}
# The losses of a run's events, one a line.
loss_lines() { sed -n 's/.*"event":"step".*"loss":\([-0-9.e+]*\).*/\1/p' "$1"; }

case "${1:-}" in
make) shift && . "$here/call_make.inc" ;;
1 | 2 | 3)
    [ $# -eq 2 ] || { echo "use: meet.sh $1 OUT" >&2 && exit 2; }
    . "$here/call_$1.inc" ;;
facts) shift && . "$here/call_facts.inc" ;;
pack_code) pack_code "$2" "$3" ;; # for its test, and for a pool of processes
unpack) unpack "$2" "$3" ;;
*) echo "use: meet.sh make [BUILD] | 1 OUT | 2 OUT | 3 OUT | facts OUT..." >&2 && exit 2 ;;
esac
exit $status
