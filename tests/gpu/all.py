# all.py - the report of all.sh, and the small computations in it.
#
#     all.py PARTS                                  one JSON of PARTS/*.json
#     all.py --part PARTS/NAME STATUS BEGAN         that of one part: its .out, its .report where there is one
#     all.py --losses NAME A B BOUND N              two runs' events: N losses that differ by less than BOUND of them
#     all.py --sentence FILE                        the error that a program wrote
#     all.py --bench RATES FILE...                  measurements; PyTorch's beside vwn's, of a model of as many weights
#                                                   that learns; else status 1
#     all.py --beside TABLE FILE...                 each kernel's predicted time beside its measured one, of X-vwn.bench and X.predicted;
#                                                   a text of the same in TABLE
#
# All but the first print members of a JSON object, one to a line, without braces.
import datetime
import glob
import json
import os
import sys
import time


def member(key, value):
    print(json.dumps({key: value})[1:-1])


def one_part(stem, status, began):
    with open(stem + ".out") as f:
        lines = [line for line in f.read().splitlines() if line.startswith('"')]
    part = {"ok": status == 0, "seconds": round(time.time() - began, 1)}
    for line in lines:
        part.update(json.loads("{" + line + "}"))
    if os.path.exists(stem + ".report"):
        with open(stem + ".report") as f:
            part["report"] = json.load(f)
    if status:
        with open(stem + ".err") as f:
            part["said"] = f.read()[-2000:]
    print(json.dumps(part))


def losses(path):
    with open(path) as f:
        events = [json.loads(line) for line in f if line.startswith("{")]
    return [e["loss"] for e in events if e.get("event") == "step"]


def compare(name, a, b, bound, n):
    x, y = losses(a), losses(b)
    worst = max((abs(p - q) / abs(p) for p, q in zip(x, y)), default=None)
    ok = len(x) == len(y) == n and worst is not None and worst < bound and x[-1] < x[0]
    member(name, {"ok": ok, "steps": len(y), "worst": worst, "bound": bound, "first": y[0] if y else None,
                  "last": y[-1] if y else None, "last_cpu": x[-1] if x else None})
    if not ok:
        print(f"{name}: {len(x)} and {len(y)} losses, the worst {worst} apart", file=sys.stderr)
    return 0 if ok else 1


def sentence(path):
    with open(path) as f:
        said = [line.strip() for line in f if "error" in line]
    member("sentence", said[-1] if said else None)


def bench(rates, paths):
    with open(rates) as f:
        member("rates", json.load(f))
    found, rows, ok = {}, [], True
    for path in sorted(paths):
        with open(path) as f:
            found[os.path.basename(path)[:-len(".bench")]] = json.load(f)
    for name, ours in found.items():
        if not name.endswith("-vwn"):
            continue
        stem = name[:-len("-vwn")]
        row = {"what": stem, "weights": ours["weights"], "vwn_ms": ours["step"]["median_ms"]}
        for how in ("eager", "sdpa", "compiled"):
            peer = found[f"{stem}-{how}"]
            row[how + "_ms"] = peer.get("median_ms")
            if "skipped" in peer:
                row["peer"] = peer["skipped"]
            elif peer["weights"] != ours["weights"] or not peer["loss"] < peer["first"]:
                print(f"{stem}-{how}: {peer['weights']} weights beside {ours['weights']}, loss from {peer['first']} to {peer['loss']}",
                      file=sys.stderr)
                ok = False
        rows.append(row)
    member("steps", rows)
    member("measurements", found)
    return 0 if ok else 1


# ms of a step by kernel, or the reason why there are none
def predicted(path):
    with open(path) as f:
        events = [json.loads(line) for line in f if line.startswith("{")]
    ms = {}
    for e in events:
        if e.get("event") == "predicted":
            ms[e["kernel"]] = ms.get(e["kernel"], 0) + 1e3 * e["seconds"] * e["times"] * e["runs"]
    return ms, next((e["skipped"] for e in events if "skipped" in e), None if ms else "nothing was predicted")


def beside(table, paths):
    every, text = {}, []
    for path in sorted(paths):
        stem = os.path.basename(path)[:-len(".predicted")]
        ms, reason = predicted(path)
        with open(f"{stem}-vwn.bench") as f:
            kernels = [k for k in json.load(f)["kernels"] if k["kind"] == "kernel"]
        rows = []
        for k in kernels:
            of = ms.get(k["name"])
            rows.append({"kernel": k["name"], "path": k["path"], "launches": k["launches"], "measured_ms": k["best_ms"],
                         "predicted_ms": of and round(of, 6), "ratio": round(k["best_ms"] / of, 4) if of else None})
        every[stem] = {"kernels": rows, "skipped": reason}
        text += ["", stem + (f": no prediction: {reason}" if reason else ""),
                 f"{'kernel':20} {'launches':>8} {'measured ms':>12} {'predicted ms':>12} {'ratio':>7}  computes"]
        for r in rows:
            known = [f"{r[c]:12.4f}" if r[c] is not None else f"{'-':>12}" for c in ("measured_ms", "predicted_ms")]
            ratio = f"{r['ratio']:7.2f}" if r["ratio"] is not None else f"{'-':>7}"
            text.append(f"{r['kernel']:20} {r['launches']:8} {known[0]} {known[1]} {ratio}  {r['path']}")
    with open(table, "w") as f:
        f.write("\n".join(text) + "\n")
    member("predicted", every)


def main():
    what, rest = sys.argv[1], sys.argv[2:]
    if what == "--part":
        one_part(rest[0], int(rest[1]), float(rest[2]))
    elif what == "--losses":
        return compare(rest[0], rest[1], rest[2], float(rest[3]), int(rest[4]))
    elif what == "--sentence":
        sentence(rest[0])
    elif what == "--bench":
        return bench(rest[0], rest[1:])
    elif what == "--beside":
        beside(rest[0], rest[1:])
    else:
        parts = {}
        for path in sorted(glob.glob(what + "/*.json")):
            with open(path) as f:
                parts[os.path.basename(path)[:-len(".json")]] = json.load(f)
        print(json.dumps({"v": 1, "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
                          "parts": parts}, indent=1))
    return 0


sys.exit(main())
