# folder.sh - make.sh makes a folder and kernels.sh, emulated, compares and measures what is in it; a
# wrong kernel is told; without a GPU kernels.sh says that it is skipped.
. "$VWN_SOURCE/tests/e2e/lib.inc"
[ "$(uname -m)" = x86_64 ] && command -v bash g++ cc make python3 > /dev/null || exit 77
gpu="$VWN_SOURCE/tests/gpu"

expect 0 sh "$gpu/make.sh" "$BUILD" carried --tiny gpt
export EMULATED="$VWN_SOURCE" MEASURE='--runs 2 --copy 1 --matrix 64'
expect 0 bash carried/kernels.sh carried report.json
empty err
has report.json '"wrong": 0'
python3 - > verdict 2>&1 << 'END' || fail "report.json: $(cat verdict)"
import json
r = json.load(open("report.json"))
assert r["kernels"] == len(r["cases"]) >= 10 and r["worst"] < 1e-9
m = r["models"][0]
assert m["model"] == "gpt" and m["copy"] > 0 and m["f32"] > 0 and 4 < m["loss"] < 7 and m["step_ms"] > 0
assert {k["program"] for k in m["kernels"]} == {"train", "update"}
assert any(k["name"] == "product" for k in m["kernels"])
assert all(k["share"] > 0 and k["ms"] > 0 for k in m["kernels"])
END

sed -i 's/x += __shfl_xor_sync/x -= __shfl_xor_sync/' carried/cases/*/kernels.cu
rm -r carried/models/*
expect 1 bash carried/kernels.sh carried report.json
has out 'kernels differ'
lacks report.json '"wrong": 0,'

unset EMULATED
if [ ! -e /dev/nvidia0 ]; then
    expect 77 bash carried/kernels.sh carried
    has out 'skipped: no '
fi
finish
