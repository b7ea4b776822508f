# report.py - one JSON of what kernels.sh has seen on a GPU.
#
# In:  FOLDER, with results/NN.jsonl (run_kernels.c) beside cases/NN/kernels.cu, results/NN.TOOL.status
#      (compute-sanitizer) and results/NAME.json (measure.c) beside models/NAME/calls.txt (make_model.c);
#      behind it the program that is the sanitizer, or nothing.
#      models/NAME/predicted.jsonl, where there is one: what `vwn ir --predict` says of its kernels.
# Out: FOLDER's report on stdout. Status 1 when a kernel is wrong, a tool complains, or something that is
#      in the folder was not seen.
# The one idea: a call's share is the time that its bytes take in a copy, or its operations in a
# product at their best, whichever is longer, by the time that it took.
import datetime
import fnmatch
import glob
import json
import os
import re
import sys

TOOLS = ["memcheck", "racecheck", "synccheck", "initcheck"]


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


# Cases of the folder, but those of another architecture ($foreign).
def cases_of(folder):
    names = [os.path.basename(p) for p in sorted(glob.glob(f"{folder}/cases/*"))]
    return [n for n in names if not fnmatch.fnmatch(n, os.environ.get("foreign", ""))]


# Kernels of the folder without a line.
def unseen(folder, cases):
    seen, out = {(c["case"], c["kernel"]) for c in cases}, []
    for case in cases_of(folder):
        with open(f"{folder}/cases/{case}/kernels.cu") as f:
            names = re.findall(r"\bCODE\((k_\w+)\)", f.read())
        out += [{"case": case, "kernel": name} for name in names if (case, name) not in seen]
    return out


# Milliseconds of a run of a program by (program, kernel), products as one, and the GPU that they are predicted for.
def predicted(folder, model):
    path, ms, gpu = f"{folder}/models/{model}/predicted.jsonl", {}, None
    if os.path.exists(path):
        with open(path) as f:
            for row in map(json.loads, f):
                if "kernel" in row:
                    gpu, key = row["gpu"], (row["program"], row["kernel"].split()[0])
                    ms[key] = ms.get(key, 0) + 1e3 * row["seconds"] * row["times"]
    return ms, gpu


def measured(folder, path):
    with open(path) as f:
        run = json.load(f)
    with open(f"{folder}/models/{stem(path)}/calls.txt") as f:
        plan = [line.split(maxsplit=6) for line in f]
    if [p[2] for p in plan] != [c["name"] for c in run["calls"]]:
        return {"model": stem(path), "wrong": "other calls than in calls.txt"}
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
    guess, run["predicted_for"] = predicted(folder, stem(path))
    for g in groups.values():
        alone = sum(o["name"] == g["name"] and o["program"] == g["program"] for o in groups.values()) == 1
        g["predicted_ms"] = guess.get((g["program"], g["name"])) if alone else None
    run["ms"] = {p: sum(g["ms"] for g in groups.values() if g["program"] == p) for p in ("train", "update")}
    run["predicted_ms"] = {p: sum(ms for at, ms in guess.items() if at[0] == p) for p in run["ms"]} if guess else None
    del run["calls"]
    run["kernels"] = sorted(groups.values(), key=lambda g: -g["ms"])
    return run


def main():
    folder, sanitizer = sys.argv[1], len(sys.argv) > 2 and sys.argv[2]
    cases = compared(folder)
    found = tools(folder)
    models = [measured(folder, p) for p in sorted(glob.glob(f"{folder}/results/*.json"))]
    gpu = f"{folder}/results/gpu.txt"
    wrong = [c for c in cases if not c["good"]]
    missing = unseen(folder, cases)
    folders = cases_of(folder)
    checked = {tool: {
        "cases": len(found.get(tool, {})),
        "complaints": [c for c, status in found.get(tool, {}).items() if status == 1],
        "not_done": [c for c in folders if found.get(tool, {}).get(c, 2) == 2]}
        for tool in TOOLS} if sanitizer else {}
    not_measured = sorted({os.path.basename(p) for p in glob.glob(f"{folder}/models/*")} -
                          {os.path.basename(p)[:-len(".json")] for p in glob.glob(f"{folder}/results/*.json")})
    print(json.dumps({
        "v": 1, "gpu": open(gpu).read().strip() if os.path.exists(gpu) else "emulated",
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "kernels": len(cases), "wrong": len(wrong), "missing": missing,
        "worst": max((c["worst"] for c in cases), default=None),
        "sanitizer": checked, "not_measured": not_measured, "models": models, "cases": cases}, indent=1))
    bad = any("wrong" in m for m in models) or any(c["complaints"] or c["not_done"] for c in checked.values())
    return 1 if wrong or missing or not_measured or bad or not cases else 0


sys.exit(main())
