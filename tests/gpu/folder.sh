# folder.sh - make.sh makes a folder and kernels.sh, emulated, compares and measures what is in it; a
# wrong kernel is told; without a GPU kernels.sh says that it is skipped.
. "$VWN_SOURCE/tests/support/lib.inc"
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
assert len(r["models"]) == 2
for m in r["models"]: # in float32 and in bf16
    assert m["model"] == "gpt" and m["copy"] > 0 and m["f32"] > 0 and m["bf16"] > 0 and 4 < m["loss"] < 7 and m["step_ms"] > 0
    assert {k["program"] for k in m["kernels"]} == {"train", "update"}
    assert any(k["name"] == "product" for k in m["kernels"])
    assert all(k["share"] > 0 and k["ms"] > 0 for k in m["kernels"])
END
# a measurement of other calls is told, and hides no other
sed -i '$d' carried/models/gpt_bf16/calls.txt
expect 1 python3 carried/src/report.py carried
cp out report.json
python3 - > verdict 2>&1 << 'END' || fail "report.json: $(cat verdict)"
import json
r = json.load(open("report.json"))
assert r["wrong"] == 0 and [m.get("wrong") for m in r["models"]] == [None, "other calls than in calls.txt"], r["models"]
END

# a tool that complains, and one that does not get to the end
cat > sanitizer << 'END'
#!/bin/sh
case $2 in
racecheck) exit 9 ;;
synccheck) exit 255 ;;
esac
END
chmod +x sanitizer
rm -r carried/models/*
export SANITIZER="$PWD/sanitizer"
expect 1 bash carried/kernels.sh carried report.json
unset SANITIZER
python3 - > verdict 2>&1 << 'END' || fail "report.json: $(cat verdict)"
import json
r = json.load(open("report.json"))
tools = r["sanitizer"]
assert r["wrong"] == 0 and not r["missing"]
assert all(t["cases"] == 1 for t in tools.values()) and len(tools) == 4
assert [t for t in tools if tools[t]["complaints"]] == ["racecheck"]
assert [t for t in tools if tools[t]["not_done"]] == ["synccheck"]
END

# kernels that end the program are told, and do not hide those behind them
cp carried/cases/*/kernels.cu right.cu
sed -i 's/x += __shfl_xor_sync/if (threadIdx.x) x += __shfl_xor_sync/' carried/cases/*/kernels.cu
expect 1 bash carried/kernels.sh carried report.json
has out 'ended the program with 1: emulated CUDA: threads '
python3 - > verdict 2>&1 << 'END' || fail "report.json: $(cat verdict)"
import json
r = json.load(open("report.json"))
ended = [c for c in r["cases"] if c.get("ended")]
assert not r["missing"] and 0 < len(ended) == r["wrong"] < r["kernels"]
END
cp right.cu "$(echo carried/cases/*/)kernels.cu"

# what there was no time for
mkdir carried/models/late
touch carried/models/late/plan.c
expect 1 bash carried/kernels.sh carried report.json 1
python3 - > verdict 2>&1 << 'END' || fail "report.json: $(cat verdict)"
import json
assert json.load(open("report.json"))["not_measured"] == ["late"]
END
rm -r carried/models/*

sed -i 's/x += __shfl_xor_sync/x -= __shfl_xor_sync/' carried/cases/*/kernels.cu
expect 1 bash carried/kernels.sh carried report.json
has out 'kernels differ'
lacks report.json '"wrong": 0,'

unset EMULATED
if [ ! -e /dev/nvidia0 ]; then
    expect 77 bash carried/kernels.sh carried
    has out 'skipped: no '
fi
finish
