# rehearsal.sh - meet.sh's folder and three calls on the tests' fake driver, from the first to the last line; and with faults planted: kernels
# that hang, that lose the device, that are wrong in one element; a driver that is missing, one in an odd place, one of another
# card; a full disk. Under `whole` with every kernel of every example.
# When: first, slow, at most 3600 s. Whole it takes 20 minutes of two cores. It compiles another program, not vwn.
. "$VWN_SOURCE/tests/support/lib.inc"
[ "$(uname -m)" = x86_64 ] && command -v g++ cc timeout tar > /dev/null || exit 77

meet="$VWN_SOURCE/tests/gpu/meet.sh"
export MEET_SMALL=1 MEET_FOLDER="$PWD/folder" MEET_MADE="$PWD/made" FAKE_CUDA_DEVICE='sms=1 memory=2000' MEET_PATIENCE=9 MEET_EACH=60
hang=5 # seconds that a kernel may take where one hangs
if whole; then
    # what folder.sh has made is as good: the fake compiler makes other code of it
    [ ! -d "$BUILD/gpu_folder/made/cases" ] || { mkdir made && cp -r "$BUILD/gpu_folder/made/cases" made; }
    export MEET_PATIENCE=60 MEET_EACH=300
    hang=60
else
    export MEET_NAMES=gpt
fi
# call N STATUS: lines in back/meet_N.jsonl, all of them JSON. What its processes ask of the driver is in calls/.
export FAKE_CUDA_LOG="$PWD/calls/%q{MEET_PART}.%p"
mkdir calls
call() {
    rm -rf back calls
    mkdir calls
    expect "$2" sh "$meet" "$1" back
    json "back/meet_$1.jsonl"
    lines=back/meet_$1.jsonl
}
count() { grep -c "$1" "$lines"; }
# kernels_of BENCH FILE: the names of a step's kernels
kernels_of() { grep "^{\"bench\":\"$1\",.*\"result\"" "$2" | tail -n 1 | grep -o 'k_[0-9a-f]\{8,\}' | awk '!seen[$0]++'; }
# counted N LEAST: of each part of call N, how many processes had the driver, what they launched and how many bytes they copied; LEAST
# parts had some. On a card a process is there after 2 s, a launch takes 20 us and a second copies 2 GB: half of a part's time is left.
counted() {
    find calls -name '*[a-z].[0-9]*' | sort > logs
    # shellcheck disable=SC2046 # names of files, in which is no space
    awk -v call="$1" -v least="$2" '
        function of_part(path) { sub(/.*\//, "", path); sub(/\..*/, "", path); return path }
        FILENAME ~ /call_[0-9].inc$/ { if ($1 == "part") most[$2] = $3; next }
        FNR == 1 { part = of_part(FILENAME); processes[part]++ }
        $2 == "cuLaunchKernel" { launches[part]++ }
        $2 == "cuGraphLaunch" { launches[part] += $3 }
        $2 ~ /^cuMemcpy/ { bytes[part] += $4 == "x" ? $3 * $5 : $3 }
        END { for (part in processes) {
                  seconds = 2 * processes[part] + 2e-5 * launches[part] + bytes[part] / 2e9
                  printf "call %s, %s: %d processes, %d launches, %.1f MiB, some %.1f s of %d on a card\n", call, part, processes[part], launches[part],
                         bytes[part] / 1048576, seconds, most[part]
                  parts++; bad += seconds > most[part] / 2 }
              exit bad || parts < least }' "$VWN_SOURCE/tests/gpu/call_$1.inc" $(cat logs) > parts || fail "parts of call $1: $(cat parts)"
    sort parts
}

# ---- the parts of a call fit into its time, with what it takes to end the last process ----
ends_in=$(sed -n 's/^ends_in=\([0-9]*\).*/\1/p' "$meet")
for n in 1 2 3; do
    awk -v call=$n -v ends_in="$ends_in" '$1 == "begin" { most = $4 } $1 == "part" { sum += $3 } END { if (sum + ends_in > most || !sum || ends_in < 5) print "call", call, sum, "s of", most }' \
        "$VWN_SOURCE/tests/gpu/call_$n.inc"
done > out
empty out

# ---- the folder ----
expect 0 sh "$meet" make "$BUILD"
has out ', with the tree '
kernels=$(sed -n 's/.* failed, \([0-9]*\) kernels$/\1/p' out)
[ "${kernels:-0}" -ge 30 ] || fail "$kernels kernels"
expect 0 sh "$meet" make "$BUILD"
has out '0 made, '
lacks out 'steps on the CPU'
[ ! -e folder/vwn ] && [ -s folder/vwn.packed ] || fail 'the program is carried packed'

# ---- the first call: all is well ----
call 1 0
[ "$(count '"good":true')" -eq "$kernels" ] || fail "$(count '"good":true') kernels of $kernels"
for part in machine kernels losses again speed; do
    has "$lines" "{\"part\":\"$part\",\"ok\":true"
done
[ "$(count '"losses":.*"steps":5,.*"ok":true')" -eq 2 ] || fail "$(grep losses "$lines")"
[ "$(count '"same_bits":.*"ok":true')" -eq 2 ] || fail "$(grep same "$lines")"
[ "$(count '"bench":"[a-z0-9-]*","settings":.*"result":{.*"kernels":\[')" -eq 1 ] || fail "benches: $(grep -c bench "$lines")"
has "$lines" '"doctor":"vwn: '
has "$lines" "\"wrong\":0,\"ended\":0,"
grep -q "\"processes\":1,\"launches\":$kernels,\"bytes\":[1-9]" "$lines" || fail "launches are not counted"
counted 1 5
grep -q "^call 1, kernels: 1 processes, $kernels launches, " parts || fail "launches that the driver counts: $(cat parts)"

# ---- the second call; what comes back becomes tables ----
mv back first
export MEET_RESULTS="$PWD/results" MEET_README="$PWD/readme"
printf 'before\n<!-- gpu -->\nold\n<!-- /gpu -->\nbehind\n' > readme
# what ncu prints with --csv --page raw: its words, a row of names, one of units, one for each launch
cat > ncu << 'END_OF_TOOL'
#!/bin/sh
echo '==PROF== Connected to process 7 (vwn)'
echo "$*" | grep -o 'k_[0-9a-f]\{8,\}' > ncu.names
echo "$*" | grep -o '[a-z0-9]*__[a-z0-9_.]*' | sort | awk '
    { name = name ",\"" $0 "\""
      unit = unit ",\"" (/duration/ ? "ns" : /bytes.*sum/ ? "byte" : /pct/ ? "%" : "inst") "\""
      value = value ",\"" (/duration/ ? "12,340" : /bytes.*sum/ ? "2,097,152" : /pct/ ? "50.50" : /long_score/ ? "3.25" : "0.5") "\"" }
    END { print "\"ID\",\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel Name\",\"Context\",\"Stream\",\"Block Size\",\"Grid Size\",\"Device\",\"CC\"" name
          print "\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\"" unit
          while ((getline kernel < "ncu.names") > 0) print "\"" id++ "\",\"7\",\"vwn\",\"127.0.0.1\",\"" kernel "\",\"1\",\"7\",\"(256, 1, 1)\",\"(132, 1, 1)\",\"0\",\"9.0\"" value }'
echo '==PROF== Disconnected from process 7'
END_OF_TOOL
chmod +x ncu
if whole; then
    PATH="$PATH:$PWD" MEET_PARTS='benches peers profiled rates models' call 2 0
    [ "$(count '"bench":"[a-z0-9-]*",.*"kernels":\[')" -eq 5 ] || fail "benches: $(grep -c bench "$lines")"
    has "$lines" '{"profiled":"gpt-bf16","kernels":10,'
    has "$lines" '{"peer": "'
else
    MEET_PARTS=rates call 2 0
    ./ncu "$(kernels_of gpt-bf16 first/meet_1.jsonl | head -n 10)" gpu__time_duration.sum dram__bytes_read.sum dram__bytes_write.sum \
        dram__throughput.avg.pct_of_peak_sustained_elapsed sm__throughput.avg.pct_of_peak_sustained_elapsed \
        sm__warps_active.avg.pct_of_peak_sustained_active smsp__average_warps_issue_stalled_wait_per_issue_active.ratio \
        smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio > first/ncu-gpt-bf16.csv
fi
counted 2 1
[ "$(count '"copy_mib":.*"gb_s":[1-9]')" -eq 2 ] && [ "$(count '"graph_nodes":')" -eq 3 ] || fail "rates: $(cat "$lines")"
cp back/* first
# the third: each connection for the plain one's steps, then for its seconds
head -c 20000 "$VWN_DATA/kjv.txt" > corpus.txt
MEET_CALL=3 MEET_CORPUS=corpus.txt MEET_FOLDER="$PWD/pays" expect 0 sh "$meet" make "$BUILD"
whole || export MEET_PAYS=residual
MEET_SEEDS=$(if whole; then echo 1 2; else echo 1; fi) MEET_FOLDER="$PWD/pays" call 3 0
each=$(if whole; then echo 4; else echo 1; fi) runs=$(if whole; then echo 14; else echo 1; fi)
[ "$(count '"pays":"[a-z0-9_]*","ms":[0-9]')" -eq $each ] && [ "$(count '"held":.*"status":0,"tokens":160,"seconds":[0-9.]*,"eval_loss":[0-9]')" -eq $runs ] ||
    fail "connections: $(cat "$lines")"
[ "$(grep -o '\[[0-9]*,[0-9.]*\]' "$lines" | wc -l)" -eq $((10 * runs)) ] || fail "ten losses of each run: $(grep curve "$lines")"
expect 0 sh "$meet" facts first back
[ "$(grep -c '^| [a-z0-9_]* | st*e[a-z]* | 10 | 160 | ' results/*-fake-gpu.md)" -eq $((2 * each - 1)) ] || fail "$(cat results/*-fake-gpu.md)"
has readme '| gpt-bf16 | '
lacks readme old
has readme behind
tr -d '\n' < "$(echo results/*-fake-gpu.json)" > facts
json facts
json "$(echo results/*-kernels.jsonl)"
[ "$(grep -c '"event":"measured","bench":"gpt-bf16","kernel":"k_[0-9a-f]*",.*"seconds":[0-9.e-]*,"launches":[1-9]' results/*-kernels.jsonl)" -ge 10 ] || fail 'kernels that were measured'
grep -q '"event":"measured","bench":"gpt-bf16","kernel":"[^"]*",.*"product":\[[0-9]*,[0-9]*,[0-9]*,[0-9]*\],"half":true' results/*-kernels.jsonl || fail 'products that were measured'
[ "$(grep -c '"event":"profiled","bench":"gpt-bf16","kernel":"k_[0-9a-f]*",.*"gpu__time_duration.sum":1.234e-05' results/*-kernels.jsonl)" -eq 10 ] &&
    [ "$(grep -c '^| k_[0-9a-f]* | 12.34 | [0-9.]* | 4.00 | [-0-9.]* | 50.5 | 50.5 | 50.5 | long_scoreboard 3.25 |$' results/*.md)" -ge 10 ] ||
    fail "what ncu counted: $(grep profiled results/*-kernels.jsonl) $(cat results/*.md)"
has first/meet_1.jsonl '"bench":"gpt-bf16","settings":["D=16","L=1","model.context=8","train.batch=2 seqs","train.precision=mixed(compute = bf16, master = fp32)"],'
has "$(echo results/*.md)" "$kernels kernels as they should be, 0 not."
# with the predictor, each kernel and product that was measured has its prediction, and constants are fitted
if env -u VWN_CUDA_LIBRARIES "$VWN" doctor 2> /dev/null | grep -q '^CUDA compiler (NVRTC): [1-9]' &&
    { command -v nvdisasm > /dev/null || [ -x /usr/local/cuda/bin/nvdisasm ]; }; then
    MEET_GPU=h100 expect 0 env -u VWN_CUDA_LIBRARIES sh "$meet" facts first
    lacks out 'not predicted'
    measured=$(grep -c '"event":"measured"' results/*-kernels.jsonl)
    [ "$(grep -c "^$measured of $measured were predicted" results/*.md)" -eq 1 ] || whole || fail "$(grep ' were predicted' results/*.md) $measured"
    [ "$(grep -c '^ *gpt-bf16 .* %$' results/*.md)" -ge 20 ] && grep -q '^      ramp ' results/*.md || fail "no constants: $(cat results/*.md)"
fi

# ---- kernels that are wrong ----
cp -r made/cases spoilt
wrong=$(for file in $(grep -l '= vwn_cos(x[0-9]*);' spoilt/*/k_*.cu); do ! grep -q 'int32_t i1 = ' "$file" || echo "$file"; done | head -n 1)
sed -i 's/= vwn_cos(\(x[0-9]*\));/= vwn_cos(\1) + (r == 3 \&\& i1 == 1 ? 0.01f : 0.0f);/' "$wrong"
grep -L '= vwn_cos(' spoilt/*/k_*.cu > others
hangs=$(sed -n 2p others) loses=$(sed -n 5p others)
sed -i '/enum { THREADS/a for (volatile int w = 1; w;) ;' "$hangs"
sed -i '/enum { THREADS/a *(volatile int *)64 = 1;' "$loses"
name() { basename "$1" .cu; }
cmp -s "$wrong" "made/cases/${wrong#spoilt/}" || cmp -s "$hangs" "made/cases/${hangs#spoilt/}" || cmp -s "$loses" "made/cases/${loses#spoilt/}" &&
    fail "a fault is not planted"
for item in $(dirname "$wrong" "$hangs" "$loses" | sort -u); do
    expect 0 "$MAKE_CASES" --compile "$item" sm_90a
done
mv folder/truth/code.pack .
sh "$meet" pack_code spoilt folder/truth/code.pack
cat > sanitizer << 'END_OF_TOOL'
#!/bin/sh
echo "checked with $2"
END_OF_TOOL
chmod +x sanitizer
SANITIZER="$PWD/sanitizer" MEET_EACH=$hang MEET_PARTS='kernels' call 1 3
[ "$(count '"good":true')" -eq $((kernels - 3)) ] || fail "$(count '"good":true') good kernels of $kernels"
grep "\"kernel\":\"$(name "$wrong")\".*\"good\":false.*\"wrong\":1,\"places\":\[{\"region\":.*\"at\":.*\"got\":.*\"want\":" "$lines" > verdict ||
    fail "the wrong element is not told"
grep -q "\"kernel\":\"$(name "$hangs")\",\"good\":false,\"ended\":\"it hangs" "$lines" || fail "the kernel that hangs is not told"
grep -q "\"kernel\":\"$(name "$loses")\",\"good\":false,\"ended\":\".*computing: " "$lines" || fail "the kernel that loses the device is not told"
has "$lines" '"wrong":1,"ended":2,'
grep -q "\"processes\":3,\"launches\":$kernels," "$lines" || fail "one process for each kernel that ends one, and one more"
[ "$(count '"checked":.*checked with')" -eq 6 ] || fail "checkers: $(grep checked "$lines")"
expect 3 sh "$meet" facts back
[ "$(grep -c "^[^ ]* [0-9]* k_.* numbers, \|^[^ ]* [0-9]* k_.* ended: " results/*-wrong.txt)" -eq 3 ] || fail "$(cat results/*-wrong.txt)"
tar tzf back/wrong.tar.gz > packed
for file in prelude.cu list; do has packed "wrong/$file"; done
for kernel in "$wrong" "$hangs" "$loses"; do has packed "wrong/$(name "$kernel").cu"; done
[ "$(grep -c '\.bin$' packed)" -eq 3 ] || fail "inputs do not come back: $(cat packed)"

# ---- the same launches by the interpreter of PTX, where the real NVRTC is: what is good, and the three that are not. tests/ptx takes
# others through it in every run ----
fakes=$VWN_CUDA_LIBRARIES
unset VWN_CUDA_LIBRARIES
if whole && "$VWN" doctor 2> /dev/null | grep -q '^CUDA compiler (NVRTC): [1-9]'; then
    expect 0 "$PTX_RUN_KERNELS" made/cases --out ptx.jsonl
    has out "$kernels kernels of $kernels compared, 0 wrong, 0 ended"
    # NVRTC compiles all of a folder anew behind each that ends: those with faults are enough
    mkdir faulty
    ln -s "$PWD/spoilt/prelude.cu" faulty
    for item in $(dirname "$wrong" "$hangs" "$loses" | sort -u); do ln -s "$PWD/$item" faulty; done
    expect 3 "$PTX_RUN_KERNELS" faulty --out spoilt.jsonl
    has out ' compared, 1 wrong, 2 ended'
    grep "\"kernel\":\"$(name "$wrong")\".*\"wrong\":1," spoilt.jsonl > out || fail "the wrong element is not told: $(cat spoilt.jsonl)"
fi
export VWN_CUDA_LIBRARIES="$fakes"

# ---- a machine that is not as it should be ----
mv code.pack folder/truth
mkdir empty
VWN_CUDA_LIBRARIES="$PWD/empty" call 1 3
[ "$(count '"part":.*"ok":false.*"said":"[^"]*libcuda')" -ge 3 ] || fail "a missing driver: $(cat "$lines")"
FAKE_CUDA_DEVICE='sms=1 memory=2000 capability=100' MEET_PARTS='machine kernels' call 1 3
has "$lines" 'Fake GPU (sm_100) runs neither the code for sm_80 nor that for sm_90a'
has "$lines" '{"part":"machine","ok":true'

mkdir -p site/nvidia/cu13/lib
cp "$VWN_CUDA_LIBRARIES"/lib* site/nvidia/cu13/lib
unset VWN_CUDA_LIBRARIES
if command -v python3 > /dev/null; then
    PYTHONPATH="$PWD/site" MEET_PARTS='machine kernels' call 1 0
    has "$lines" "{\"library\":\"libcuda.so.1\",\"path\":\"$PWD/site/nvidia/cu13/lib\"}"
    [ "$(count '"good":true')" -eq "$kernels" ] || fail "libraries in an odd place"
    if whole; then
        PYTHONPATH="$PWD/site" MEET_PARTS=rates call 2 0
        has "$lines" "{\"library\":\"libcuda.so.1\",\"path\":\"$PWD/site/nvidia/cu13/lib\"}"
        [ "$(count '"copy_mib":')" -eq 2 ] || fail "libraries in an odd place, in the second call: $(cat "$lines")"
    fi
fi
export VWN_CUDA_LIBRARIES="$fakes"

rm -rf back
mkdir back
ln -s /dev/full back/meet_1.jsonl
MEET_PARTS='machine kernels' expect 0 sh "$meet" 1 back
lines=out
[ "$(count '"good":true')" -eq "$kernels" ] || fail "a full disk takes lines away"
ln -s /dev/full back/meet_2.jsonl
MEET_PARTS=rates expect 0 sh "$meet" 2 back
[ "$(count '"copy_mib":')" -eq 2 ] || fail "a full disk takes lines of the second call away: $(cat out)"
MEET_SECONDS=12 MEET_PARTS='losses again' expect 3 sh "$meet" 1 late
# the second call without a driver: each model and rate says so; with a program that hangs and cannot be asked to end: what comes behind it is
# begun, as long as there is time
VWN_CUDA_LIBRARIES="$PWD/empty" MEET_PARTS='benches rates models' call 2 3
[ "$(count '"bench":"[a-z0-9-]*","ok":false')" -eq 5 ] && [ "$(count '"part":.*"ok":false.*"said":"[^"]*libcuda')" -eq 3 ] ||
    fail "no driver in the second call: $(cat "$lines")"
if whole; then
    # the second call on a card of another kind is one as any other: kernels are compiled for it there. A kernel that loses the device takes the
    # others of its process along, and no other process
    FAKE_CUDA_DEVICE='sms=1 memory=2000 capability=100' MEET_PARTS=rates call 2 0
    has "$lines" 'Fake GPU, compute capability 10.0'
    PATH="$PATH:$PWD" FAKE_CUDA_FAIL='cuLaunchKernel:9>700' MEET_PARTS='benches profiled models' call 2 3
    [ "$(count '"bench":"[a-z0-9-]*","ok":false')" -eq 5 ] && [ "$(count '"profiled":"[a-z0-9-]*","left_out":')" -eq 2 ] ||
        fail "a kernel that loses the device in the second call: $(cat "$lines")"
    grep -q '"part":"benches","ok":false.*"said":"[^"]*CUDA_ERROR_ILLEGAL_ADDRESS' "$lines" || fail "it is not said how: $(cat "$lines")"
    # a kernel of one model that never ends: its process is ended, the other models and parts are done
    kernels_of gpt-bf16 first/meet_2.jsonl | sort > its
    for name in gpt-f32 vwn23-bf16 vwn23-f32 quickstart; do kernels_of $name first/meet_2.jsonl; done | sort > others
    PATH="$PATH:$PWD" FAKE_CUDA_HANGS=$(comm -23 its others | head -n 1) bench_seconds=10 MEET_PATIENCE=6 MEET_PARTS='benches profiled rates models' call 2 3
    grep -q '{"bench":"gpt-bf16","ok":false,"status":1[23][47]}' "$lines" || fail "the kernel that hangs is not told: $(cat "$lines")"
    [ "$(count '"bench":"[a-z0-9-]*",.*"kernels":\[')" -eq 4 ] && [ "$(count '"profiled":"vwn23-bf16","kernels":10,')" -eq 1 ] &&
        [ "$(count '"part":"[a-z]*","ok":true')" -eq 3 ] || fail "a kernel that hangs in the second call: $(cat "$lines")"
    has "$lines" '{"profiled":"gpt-bf16","left_out":'
    # checkers and profilers that find no driver say so, and take no time
    printf '#!/bin/sh\necho "==ERROR== no driver"\nexit 1\n' > ncu
    MEET_PARTS='benches profiled sanitized' SANITIZER="$PWD/ncu" PATH="$PATH:$PWD" call 2 3
    for part in profiled sanitized; do
        grep -q "\"part\":\"$part\",\"ok\":false,\"seconds\":[0-9],.*\"said\":\"==ERROR== no driver" "$lines" || fail "$part: $(grep "$part" "$lines")"
    done
    has "$lines" '{"profiled":"gpt-bf16","kernels":0,"said":"==ERROR== no driver '
    cp -r folder hung
    printf '#!/bin/sh\ntrap "" TERM\nwhile :; do sleep 1; done\n' | gzip > hung/vwn.packed
    MEET_FOLDER="$PWD/hung" MEET_PATIENCE=1 MEET_SECONDS=30 MEET_PARTS='rates sanitized emitted models' call 2 3
    [ "$(count '"copy_mib":')" -eq 2 ] && [ "$(count '"part":"[a-z]*","ok":false')" -ge 2 ] || fail "a program that hangs: $(cat "$lines")"
fi
finish
