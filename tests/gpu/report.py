# report.py - one JSON of what kernels.sh has seen on a GPU.
#
# In:  FOLDER, with results/NN.jsonl (run_kernels.c), results/NN.TOOL.status (compute-sanitizer) and
#      results/NAME.json (measure.c) beside models/NAME/calls.txt (make_model.c).
# Out: FOLDER's report on stdout. Status 1 when a kernel is wrong, a tool complains or nothing was seen.
# The one idea: a call's share is the time that its bytes take in a copy, or its operations in a
# product at their best, whichever is longer, by the time that it took.
import datetime
import glob
import json
import os
import sys


def stem(path):
    return os.path.basename(path).split(".")[0]


def compared(folder):
    rows = []
    for path in sorted(glob.glob(f"{folder}/results/*.jsonl")):
        with open(path) as f:
            rows += [dict(json.loads(line), case=stem(path)) for line in f]
    return rows


def tools(folder):
    out = {}
    for path in sorted(glob.glob(f"{folder}/results/*.status")):
        case, tool, _ = os.path.basename(path).split(".")
        with open(path) as f:
            out.setdefault(tool, {})[case] = int(f.read())
    return out


def measured(folder, path):
    with open(path) as f:
        run = json.load(f)
    with open(f"{folder}/models/{stem(path)}/calls.txt") as f:
        plan = [line.split(maxsplit=6) for line in f]
    if [p[2] for p in plan] != [c["name"] for c in run["calls"]]:
        sys.exit(f"{path}: other calls than in calls.txt")
    groups = {}
    for (program, _, name, size, flops, kind, where), call in zip(plan, run["calls"]):
        by_bytes, by_flops = float(size) / run["copy"], float(flops) / run[kind]
        g = groups.setdefault((program, name, kind if name == "product" else ""), {
            "program": program, "name": name, "first": where.strip(), "calls": 0, "ms": 0.0,
            "bytes": 0.0, "flops": 0.0, "bound_ms": 0.0})
        g["calls"] += 1
        g["ms"] += call["ms"]
        g["bytes"] += float(size)
        g["flops"] += float(flops)
        g["bound_ms"] += 1e3 * max(by_bytes, by_flops)
    for g in groups.values():
        g["share"] = g["bound_ms"] / g["ms"] if g["ms"] > 0 else None
        g["bytes_per_s"] = g["bytes"] / (1e-3 * g["ms"]) if g["ms"] > 0 else None
    del run["calls"]
    run["kernels"] = sorted(groups.values(), key=lambda g: -g["ms"])
    return run


def main():
    folder = sys.argv[1]
    cases = compared(folder)
    complaints = tools(folder)
    models = [measured(folder, p) for p in sorted(glob.glob(f"{folder}/results/*.json"))]
    gpu = f"{folder}/results/gpu.txt"
    wrong = [c for c in cases if not c["good"]]
    bad = {t: [c for c, status in r.items() if status] for t, r in complaints.items()}
    print(json.dumps({
        "v": 1, "gpu": open(gpu).read().strip() if os.path.exists(gpu) else "emulated",
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), "kernels": len(cases), "wrong": len(wrong),
        "worst": max((c["worst"] for c in cases), default=None),
        "sanitizer": {t: {"cases": len(r), "complaints": bad[t]} for t, r in complaints.items()},
        "models": models, "cases": cases}, indent=1))
    return 1 if wrong or any(bad.values()) or not cases else 0


sys.exit(main())
