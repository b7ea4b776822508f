# rehearsal.sh - all.sh from its first to its last line on the fake driver: every part is ok, and says what it saw.
. "$VWN_SOURCE/tests/support/lib.inc"
[ "$(uname -m)" = x86_64 ] && command -v bash g++ cc make python3 > /dev/null || exit 77

# Machine code is predicted for, so the compiler is the real one.
expect 0 env -u VWN_CUDA_LIBRARIES sh "$VWN_SOURCE/tests/gpu/make.sh" "$BUILD" carried --tiny gpt 'heads of 64'
cp out made
export EMULATED="$VWN_SOURCE" SMALL=1 MEASURE='--runs 2 --copy 1 --matrix 64' FAKE_CUDA_DEVICE='sms=1 memory=2000'
cat > sanitizer << 'END'
#!/bin/sh
shift 4
exec "$@"
END
chmod +x sanitizer
export SANITIZER="$PWD/sanitizer"
expect 0 bash carried/all.sh carried report.json
empty err
python3 - > verdict 2>&1 << 'END' || fail "report.json: $(cat verdict)"
import json, shutil
p = json.load(open("report.json"))["parts"]
assert set(p) == {"losses", "resume", "memory", "bench", "sanitizer", "kernels"}, set(p)
assert all(x["ok"] for x in p.values()), {k: x.get("said") for k, x in p.items()}
for name in ("f32", "bf16", "heads64"):
    x = p["losses"][name]
    assert x["ok"] and x["steps"] == 20 and x["worst"] < x["bound"] and x["last"] < x["first"], x
assert "are available on the GPU" in p["memory"]["sentence"]
assert p["kernels"]["report"]["wrong"] == 0 and p["kernels"]["report"]["kernels"] >= 10
models = p["kernels"]["report"]["models"]
assert len(models) == 2, models
not_predicted = open("made").read().count("not predicted: ")
assert not_predicted == 0 or not shutil.which("nvdisasm"), open("made").read()
for m in models if not not_predicted else []:
    assert m["predicted_for"] == "h100" and all(m["predicted_ms"][x] > 0 and m["ms"][x] > 0 for x in ("train", "update")), m["model"]
    alone = [g for g in m["kernels"] if g["name"] != "product"]
    assert len(alone) > 15 and all(g["predicted_ms"] > 0 for g in alone), m["model"] # every kernel that ran was predicted
print("predicted beside measured:", models[0]["predicted_for"] or "no nvdisasm")
steps = p["bench"]["steps"]
assert {s["what"] for s in steps} == {"gpt-f32", "gpt-bf16", "vwn23-f32", "vwn23-bf16"}
assert all(s["vwn_ms"] > 0 and (s["eager_ms"] and s["sdpa_ms"] and s["compiled_ms"] or s["peer"]) for s in steps), steps
print("PyTorch:", steps[0].get("peer", "measured"))
beside = p["bench"]["predicted"]
assert set(beside) == {s["what"] for s in steps}, set(beside)
for what, x in beside.items():
    assert len(x["kernels"]) >= 5 and all(k["measured_ms"] > 0 for k in x["kernels"]), what
    assert x["skipped"] or any(k["predicted_ms"] for k in x["kernels"]), what
END
cat verdict

grep -q 'kernel  *launches  *measured ms  *predicted ms  *ratio' out || fail 'no table of predicted times beside measured ones'

# What is predicted of a kernel is that of its launches in all programs of a step.
cat > y-vwn.bench << 'END'
{"kernels": [{"kind": "kernel", "name": "k_1", "path": "a", "launches": 6, "best_ms": 3.0},
             {"kind": "product", "name": "p", "path": "b", "launches": 1, "best_ms": 9.0},
             {"kind": "kernel", "name": "k_2", "path": "c", "launches": 1, "best_ms": 5.0}]}
END
cat > y.predicted << 'END'
{"event": "predicted", "kernel": "k_1", "seconds": 1e-4, "times": 2, "runs": 2}
{"event": "predicted", "kernel": "k_1", "seconds": 4e-4, "times": 2, "runs": 1}
{"event": "predicted", "kernel": "p", "seconds": 1, "times": 1, "runs": 1}
END
expect 0 python3 carried/src/all.py --beside table ./y.predicted
has out '"measured_ms": 3.0, "predicted_ms": 1.2'
has out '"ratio": 2.5}'
has out '"measured_ms": 5.0, "predicted_ms": null, "ratio": null'
grep -q 'k_1 .* 3.0000 .* 1.2000 .* 2.50  a' table || fail "table: $(cat table)"
lacks out '"kernel": "p"'
echo '{"skipped": "no nvdisasm"}' > y.predicted
expect 0 python3 carried/src/all.py --beside table ./y.predicted
has table 'no prediction: no nvdisasm'

# A GPU's clock is read from events, and not before the device has passed the second one.
python3 - > verdict 2>&1 << 'END' || fail "peer.py: $(cat verdict)"
import sys
sys.path.insert(0, "carried/src")
from peer import Clock

class Event:
    def __init__(self, enable_timing):
        self.at = self.seen = None
        events.append(self)
    def record(self):
        self.at = next(ticks)
    def elapsed_time(self, end):
        assert self.seen and end.seen
        return end.at - self.at

class torch:
    class cuda:
        Event = Event
        def synchronize():
            for e in events:
                e.seen = e.at is not None

events, ticks = [], iter((10, 17, 30, 42))
clock = Clock(torch, True)
for expected in (7, 12):
    clock.start()
    assert clock.stop() == expected
END

# PyTorch's model is vwn's, and learns.
peers() { # WEIGHTS LOSS
    for how in eager sdpa compiled; do
        echo "{\"weights\": $1, \"first\": 5.5, \"loss\": $2, \"median_ms\": 1}" > "x-$how.bench"
    done
    echo '{"weights": 100, "step": {"median_ms": 2}}' > x-vwn.bench
    echo '{}' > rates.json
}
peers 100 5.4
expect 0 python3 carried/src/all.py --bench rates.json ./x-*.bench
peers 101 5.4
expect 1 python3 carried/src/all.py --bench rates.json ./x-*.bench
peers 100 5.5
expect 1 python3 carried/src/all.py --bench rates.json ./x-*.bench

# without time, and with a GPU that computes something else
expect 1 bash carried/all.sh carried report.json 1
has report.json 'no time was left'
unset EMULATED
if [ ! -e /dev/nvidia0 ]; then
    expect 77 bash carried/all.sh carried
    has out 'skipped: no GPU'
fi
finish
