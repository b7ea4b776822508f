"""run.py - the figures of README.md beside this file, measured in one go.

In:  the program vwn, a text. QUICK=1 or --quick: fewer and shorter runs, to try the machinery.
Out: tables on stdout; everything that was measured, with date, machine and command, as JSON, and two
     plots as SVG, in --results (QUICK: in the folder it runs in).

The one idea: what is compared is measured in turns, A B A B, in the same minutes on the same machine,
and the best of all steps stands beside the median: the best is what a busy machine disturbs least.
"""
import argparse
import datetime
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = ("gpt", "vwn23")
BF16 = "train.precision=mixed(compute = bf16, master = fp32)"
GOALS = {("gpt", "f32"): 1.25, ("vwn23", "f32"): 1.7, ("gpt", "bf16"): 1.1, ("vwn23", "bf16"): 1.3}
PARTS = ("same", "race", "start", "layers", "tokens", "sample")


class Failed(Exception):
    pass


# ---- small things ----

def say(text=""):
    print(text, flush=True)


def table(rows, header):
    """Rows of texts and numbers in columns; numbers to the right."""
    cells = [[str(c) for c in row] for row in [header] + rows]
    wide = [max(len(row[i]) for row in cells) for i in range(len(header))]
    for row in cells:
        say("  " + "  ".join(c.rjust(w) if re.match(r"^[-\d.<>,%]+( %)?$", c) else c.ljust(w)
                             for c, w in zip(row, wide)).rstrip())


def line_fit(xs, ys):
    """Least squares a + b x, and the largest deviation from it as a share of the fit there."""
    mean_x, mean_y = statistics.fmean(xs), statistics.fmean(ys)
    b = (sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys)) /
         sum((x - mean_x) ** 2 for x in xs))
    a = mean_y - b * mean_x
    return {"a": a, "b": b, "deviation": max(abs(y / (a + b * x) - 1) for x, y in zip(xs, ys))}


def plot(path, title, x_label, y_label, xs, ys, fit):
    """Points and their line, from zero on."""
    width, height, left, bottom, top = 480, 300, 60, 45, 30
    most_x, most_y = 1.05 * max(xs), 1.1 * max(ys)
    place_x = lambda x: left + (width - left - 15) * x / most_x
    place_y = lambda y: height - bottom - (height - bottom - top) * y / most_y
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
           f'font-family="sans-serif" font-size="11">',
           f'<rect width="{width}" height="{height}" fill="white"/>',
           f'<text x="{left}" y="18" font-size="13">{title}</text>']
    for i in range(5):
        y = most_y * i / 4
        out.append(f'<path d="M{left} {place_y(y):.1f}H{width - 15}" stroke="#ddd"/>')
        out.append(f'<text x="{left - 6}" y="{place_y(y) + 4:.1f}" text-anchor="end">{y:.3g}</text>')
    for x in xs:
        out.append(f'<text x="{place_x(x):.1f}" y="{height - bottom + 16}" '
                   f'text-anchor="middle">{x:g}</text>')
    out.append(f'<path d="M{place_x(0):.1f} {place_y(fit["a"]):.1f}L{place_x(max(xs)):.1f} '
               f'{place_y(fit["a"] + fit["b"] * max(xs)):.1f}" stroke="#888" fill="none"/>')
    out += [f'<circle cx="{place_x(x):.1f}" cy="{place_y(y):.1f}" r="3.5" fill="#1f5fa8"/>'
            for x, y in zip(xs, ys)]
    out.append(f'<text x="{(left + width) / 2:.0f}" y="{height - 8}" '
               f'text-anchor="middle">{x_label}</text>')
    out.append(f'<text x="14" y="{height / 2:.0f}" text-anchor="middle" '
               f'transform="rotate(-90 14 {height / 2:.0f})">{y_label}</text></svg>')
    with open(path, "w") as f:
        f.write("\n".join(out) + "\n")


def summary(times):
    return {"best_ms": min(times), "median_ms": statistics.median(times), "times_ms": times}


# ---- the two sides ----

class Bench:
    def __init__(self, args):
        self.vwn, self.threads, self.quick = os.path.abspath(args.vwn), args.threads, args.quick
        self.work = tempfile.mkdtemp(prefix="vwn-bench-")
        self.cache = os.path.join(self.work, "cache")
        for name in MODELS:
            shutil.copy(os.path.join(HERE, name + ".vwn"), self.work)
        shutil.copy(os.path.join(HERE, "../../examples/quickstart.vwn"), self.work)
        if args.text and os.path.exists(args.text):
            shutil.copy(args.text, os.path.join(self.work, "kjv.txt"))
        else:
            self.write_text(os.path.join(self.work, "kjv.txt"))
        self.python = self.find_torch()
        self.layers = args.layers

    @staticmethod
    def write_text(path):
        """Any text will do for measuring: the sources, where the Bible is not installed."""
        with open(path, "wb") as out:
            for folder, _, files in sorted(os.walk(os.path.join(HERE, "../../compiler"))):
                for name in sorted(files):
                    with open(os.path.join(folder, name), "rb") as f:
                        out.write(f.read())

    @staticmethod
    def find_torch():
        """A Python that has PyTorch, or None."""
        for python in (os.environ.get("PEER_PYTHON"), "/usr/bin/python3", sys.executable):
            if python and subprocess.run([python, "-c", "import torch"], stdout=subprocess.DEVNULL,
                                         stderr=subprocess.DEVNULL, check=False).returncode == 0:
                return python
        return None

    def call(self, command, cache=None):
        env = dict(os.environ, VWN_CACHE=cache or self.cache, VWN_THREADS=str(self.threads))
        done = subprocess.run(command, cwd=self.work, env=env, capture_output=True, text=True,
                              check=False)
        if done.returncode:
            raise Failed(f"{' '.join(command)}: status {done.returncode}\n{done.stderr.strip()}")
        return done

    def measure(self, file, steps, sets=(), cache=None):
        """One `vwn bench`; what it remarked is in the field `remarks`."""
        command = [self.vwn, "bench", file + ".vwn", "--json", "--steps", str(steps)]
        for s in sets:
            command += ["--set", s]
        done = self.call(command, cache)
        return dict(json.loads(done.stdout), remarks=done.stderr)

    def peer(self, what, model, *flags):
        done = self.call([self.python, os.path.join(HERE, "peer.py"), what, "--model", model,
                          "--threads", str(self.threads), *flags])
        return json.loads(done.stdout)


# ---- the parts ----

def same_model(b):
    """Trains a little with vwn, and compares losses of the same weights on the same text."""
    out, rows = {}, []
    steps, windows = (3, 16) if b.quick else (30, 32)
    for name in MODELS:
        sets = ["--set", f"L={b.layers}"]
        b.call([b.vwn, "train", name + ".vwn", "--run", "same-" + name, "--overwrite",
                "--until", f"{steps} steps"] + sets)
        ours = json.loads(b.call([b.vwn, "eval", "runs/same-" + name, "--batches",
                                  str(windows // 16), "--json"]).stdout)
        if not b.python:
            continue
        folder = os.path.join(b.work, "runs/same-" + name, "ckpt")
        checkpoint = os.path.join(folder, sorted(os.listdir(folder))[-1])
        peer = b.peer("loss", name, "--checkpoint", checkpoint, "--text", "kjv.txt",
                      "--windows", str(windows), "--layers", str(b.layers))
        weights = json.loads(b.call([b.vwn, "params", name + ".vwn", "--json"] + sets)
                             .stdout.splitlines()[0])["stored"]
        apart = abs(ours["loss"] - peer["loss"]) / ours["loss"]
        out[name] = {"weights": weights, "peer_weights": peer["weights"], "loss": ours["loss"],
                     "peer_loss": peer["loss"], "windows": windows}
        rows.append([name, f"{weights:,}", f"{peer['weights']:,}", f"{ours['loss']:.6f}",
                     f"{peer['loss']:.6f}"])
        if weights != peer["weights"] or apart > 1e-4:
            raise Failed(f"{name}: the peer is another model: {out[name]}")
    if rows:
        say("\nThe same model: weights, and the loss of the same weights on the same text")
        table(rows, ["model", "vwn", "PyTorch", "loss", "PyTorch's"])
    return out


def ours_once(b, model, precision, steps, skipped):
    try:
        m = b.measure(model, steps, [f"L={b.layers}"] + ([BF16] if precision == "bf16" else []))
    except Failed as e:
        skipped[precision] = f"vwn refuses {precision}: {str(e).splitlines()[-1]}"
        return None
    computed = re.search(r"^ *Note (.*comput\w+ in float32.*)$", m["remarks"], re.M)
    if precision == "bf16" and computed:
        skipped[precision] = "vwn was asked for bf16 and said: " + computed.group(1)
        return None
    return m


def race(b):
    """Rounds of ours, PyTorch, ours, PyTorch for each model and precision."""
    rounds, steps = (1, 2) if b.quick else (4, 8)
    ours, peer, skipped = {}, {}, {}
    if not b.python:
        say("\nNo PyTorch here (Debian: python3-torch): only vwn is measured.")
    for _ in range(rounds):
        for precision in ("f32", "bf16"):
            for model in MODELS:
                key = (model, precision)
                if precision not in skipped:
                    m = ours_once(b, model, precision, steps, skipped)
                    if m:
                        ours.setdefault(key, []).append(m)
                if b.python:
                    peer.setdefault(key, []).append(
                        b.peer("time", model, "--precision", precision, "--steps", str(steps),
                               "--layers", str(b.layers)))
    out = {"rounds": rounds, "steps": steps, "skipped": skipped, "runs": [], "ratios": []}
    rows = []
    for precision in ("f32", "bf16"):
        for model in MODELS:
            rows.append(race_row(out, model, precision, ours.get((model, precision)),
                                 peer.get((model, precision))))
    say("\nTraining: D = 256, batch 16 x 256; ms a step, best and median")
    table(rows, ["model", "precision", "vwn", "median", "PyTorch", "median", "ratio", "of medians"])
    for text in skipped.values():
        say("  " + text)
    if all((m, "f32") in ours for m in MODELS):
        best, median = ([min_or_median([t for r in ours[(m, "f32")] for t in r["step"]["times_ms"]])
                         for m in MODELS] for min_or_median in (min, statistics.median))
        add_ratio(out, "VWN over GPT, cost of a step", best[1] / best[0] - 1,
                  median[1] / median[0] - 1, 0.12, below=True)
    return out


def race_row(out, model, precision, ours, peer):
    row = [model, precision, "-", "-", "-", "-", "-", "-"]
    run = {"model": model, "precision": precision}
    if ours:
        run["vwn"] = summary([t for r in ours for t in r["step"]["times_ms"]])
        run["vwn"]["arena_bytes"] = ours[0]["memory"]["arena_bytes"]
        run["vwn"]["resident_peak_bytes"] = max(r["memory"]["resident_peak_bytes"] for r in ours)
        run["vwn"]["roofline_share"] = max(r["roofline"]["share_best"] for r in ours)
        run["vwn"]["machine"] = [r["machine"] for r in ours]
        row[2:4] = [f"{run['vwn'][k]:.0f}" for k in ("best_ms", "median_ms")]
    if peer:
        run["peer"] = summary([t for r in peer for t in r["times_ms"]])
        run["peer"]["resident_peak_bytes"] = max(r["resident_peak_bytes"] for r in peer)
        run["peer"]["torch"] = peer[0]["torch"]
        row[4:6] = [f"{run['peer'][k]:.0f}" for k in ("best_ms", "median_ms")]
    if ours and peer:
        best, median = (run["peer"][k] / run["vwn"][k] for k in ("best_ms", "median_ms"))
        row[6:8] = [f"{best:.2f}", f"{median:.2f}"]
        add_ratio(out, f"tokens/s of {model}, {precision}", best, median,
                  GOALS[model, precision])
        add_ratio(out, f"memory of {model}, {precision}: arena / PyTorch's resident peak",
                  run["vwn"]["arena_bytes"] / run["peer"]["resident_peak_bytes"],
                  run["vwn"]["resident_peak_bytes"] / run["peer"]["resident_peak_bytes"], 1 / 3,
                  below=True)
    out["runs"].append(run)
    return row


def add_ratio(out, name, best, median, goal, below=False):
    """`median` of a ratio of memory is that of the resident peaks."""
    out["ratios"].append({"name": name, "best": best, "median": median, "goal": goal,
                          "below": below, "met": best <= goal if below else best >= goal})


def show_ratios(ratios):
    if not ratios:
        return
    say("\nRatios against their goals (the second figure: of medians; of memory: both resident)")
    table([[r["name"], f"{r['best']:.3f}", f"{r['median']:.3f}",
            ("<= " if r["below"] else ">= ") + f"{r['goal']:.2f}", "met" if r["met"] else "missed"]
           for r in ratios], ["what", "ratio", "second", "goal", ""])


def first_step(b, cache):
    """Milliseconds from the start of `vwn train` to the end of its first step."""
    command = [b.vwn, "train", "quickstart.vwn", "--run", "start", "--overwrite", "--json", "-q",
               "--until", "1 steps", "--set", "train.log.every=1 steps"]
    env = dict(os.environ, VWN_CACHE=cache, VWN_THREADS=str(b.threads))
    began, at = time.perf_counter(), None
    with subprocess.Popen(command, cwd=b.work, env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True) as p:
        for line in p.stdout:
            if at is None and json.loads(line).get("event") == "step":
                at = 1e3 * (time.perf_counter() - began)
    if p.returncode or at is None:
        raise Failed(f"{' '.join(command)}: status {p.returncode}")
    return at


def start_up(b):
    """Cold: with an empty cache; warm: the kernels are there."""
    cold, warm = [], []
    for i in range(1 if b.quick else 3):
        cache = os.path.join(b.work, f"cold-{i}")
        cold.append(first_step(b, cache))
        warm += [first_step(b, cache) for _ in range(2 if b.quick else 5)]
    out = {"cold_ms": cold, "warm_ms": warm, "ratios": []}
    add_ratio(out, "quickstart: warm start to first step, s", min(warm) / 1e3,
              statistics.median(warm) / 1e3, 0.3, below=True)
    add_ratio(out, "quickstart: cold start to first step, s", min(cold) / 1e3,
              statistics.median(cold) / 1e3, 5, below=True)
    return out


def series(b, title, name, xs, sets_of, x_label, results):
    """Step time over xs, with its line; kernels are compiled anew for every x."""
    points, rows = [], []
    for x in xs:
        cache = os.path.join(b.work, f"{name}-{x}")
        m = b.measure("vwn23", 2 if b.quick else 8, sets_of(x), cache)
        shutil.rmtree(cache, ignore_errors=True)
        points.append({"x": x, "tokens": m["tokens_per_step"], "weights": m["weights"],
                       "best_ms": m["step"]["best_ms"], "median_ms": m["step"]["median_ms"],
                       "check_ms": m["startup"]["check_ms"], "plan_ms": m["startup"]["plan_ms"],
                       "compile_ms": m["startup"]["kernels_ms"],
                       "kernels": m["startup"]["compiled"],
                       "arena_bytes": m["memory"]["arena_bytes"]})
    ys = [p["best_ms"] for p in points]
    fit = line_fit(xs, ys)
    for p in points:
        on_line = fit["a"] + fit["b"] * p["x"]
        rows.append([p["x"], f"{p['best_ms']:.1f}", f"{p['median_ms']:.1f}",
                     f"{100 * (p['best_ms'] / on_line - 1):.1f} %", f"{p['check_ms']:.0f}",
                     f"{p['plan_ms']:.0f}", f"{p['compile_ms']:.0f}", p["kernels"],
                     f"{p['arena_bytes'] / 2 ** 20:.0f}"])
    say(f"\n{title}")
    table(rows, [x_label, "best ms", "median", "off the line", "check ms", "plan ms", "compile ms",
                 "kernels", "arena MiB"])
    say(f"  line {fit['a']:.2f} + {fit['b']:.4f} x ms; largest deviation "
        f"{100 * fit['deviation']:.1f} %")
    svg = f"{results}-{name}.svg"
    plot(svg, title, x_label, "ms a step, best", xs, ys, fit)
    say(f"  plot in {svg}")
    return {"points": points, "fit": fit}


def layers(b, results):
    xs = [1, 2, 3] if b.quick else [2, 4, 8, 16, 32, 48]
    return series(b, "Depth: vwn23, 2 sequences, kernels compiled anew", "layers", xs,
                  lambda x: [f"L={x}", "train.batch=2 seqs"], "layers", results)


def tokens(b, results):
    xs = [256, 512, 1024] if b.quick else [256, 512, 1024, 2048, 4096, 8192]
    return series(b, f"Tokens a step: vwn23, {b.layers} layers", "tokens", xs,
                  lambda x: [f"L={b.layers}", f"train.batch={x // 256} seqs"], "tokens", results)


def sampling(b):
    """Tokens per second of `vwn sample`: the difference of two lengths, so without its start."""
    few, many = (20, 120) if b.quick else (20, 220)
    out, rows = {}, []
    for name in MODELS:
        run = "runs/same-" + name
        if not os.path.isdir(os.path.join(b.work, run)):
            b.call([b.vwn, "train", name + ".vwn", "--run", "same-" + name, "--until", "1 steps",
                    "--set", f"L={b.layers}"])
        took = {few: [], many: []}
        for _ in range(2 if b.quick else 5):
            for n in (few, many):
                began = time.perf_counter()
                b.call([b.vwn, "sample", run, "--tokens", str(n), "--temperature", "0"])
                took[n].append(time.perf_counter() - began)
        more = min(took[many]) - min(took[few])  # less than nothing on a machine too busy to tell
        rate = (many - few) / more if more > 0 else None
        out[name] = {"tokens_s": rate, "start_s": min(took[few]), "seconds": took}
        rows.append([name, f"{rate:.0f}" if rate else "cannot be told"])
    say("\nSampling, one sequence")
    table(rows, ["model", "tokens/s"])
    return out


# ---- all of it ----

def machine():
    name = platform.processor() or platform.machine()
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as f:
            found = re.search(r"^model name\s*:\s*(.*)$", f.read(), re.M)
        name = found.group(1).strip() if found else name
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {"cpu": name, "cores": len(os.sched_getaffinity(0)), "memory_bytes": pages,
            "system": platform.platform()}


def selftest():
    fit = line_fit([1, 2, 4], [5, 7, 11])
    assert abs(fit["a"] - 3) < 1e-12 and abs(fit["b"] - 2) < 1e-12 and fit["deviation"] < 1e-12
    assert abs(line_fit([0, 1, 2], [1, 1.3, 1])["deviation"] - (1.3 / 1.1 - 1)) < 1e-12
    assert summary([3, 1, 2])["best_ms"] == 1 and summary([3, 1, 2])["median_ms"] == 2
    out = {"ratios": []}
    add_ratio(out, "a", 1.2, 1, 1.25)
    add_ratio(out, "b", 0.1, 1, 0.12, below=True)
    assert [r["met"] for r in out["ratios"]] == [False, True]
    import xml.etree.ElementTree as tree
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "p.svg")
        plot(path, "t", "x", "y", [1, 2, 4], [5, 7, 11], fit)
        circles = [e for e in tree.parse(path).getroot() if e.tag.endswith("circle")]
    assert len(circles) == 3
    assert float(circles[0].get("cx")) < float(circles[2].get("cx"))
    assert float(circles[0].get("cy")) > float(circles[2].get("cy"))
    say("passed")


def measure_all(b, parts, base):
    out = {}
    if "same" in parts:
        out["same_model"] = same_model(b)
    if "race" in parts:
        out["race"] = race(b)
    if "start" in parts:
        out["start_up"] = start_up(b)
    show_ratios([r for p in ("race", "start_up") for r in out.get(p, {}).get("ratios", [])])
    if "layers" in parts:
        out["layers"] = layers(b, base)
    if "tokens" in parts:
        out["tokens"] = tokens(b, base)
    if "sample" in parts:
        out["sampling"] = sampling(b)
    return out


def rows(x, indent=""):
    """JSON in lines of 100 characters: what fits stands in one, numbers of a list stand in rows."""
    line = json.dumps(x)
    if len(indent) + len(line) < 100 or not isinstance(x, (dict, list, tuple)):
        return line
    inner = indent + " "
    if isinstance(x, dict):
        items = [json.dumps(k) + ": " + rows(v, inner) for k, v in x.items()]
        return "{\n" + ",\n".join(inner + i for i in items) + "\n" + indent + "}"
    if all(isinstance(v, (int, float)) for v in x):
        return textwrap.fill(line, 100, subsequent_indent=inner)
    return "[\n" + ",\n".join(inner + rows(v, inner) for v in x) + "\n" + indent + "]"


def main():
    parser = argparse.ArgumentParser(description="measures vwn, beside PyTorch where it is there")
    parser.add_argument("--vwn", help="the program")
    parser.add_argument("--text", help="a text to train on; else the sources")
    parser.add_argument("--results", default=os.path.join(HERE, "results"))
    parser.add_argument("--parts", default=",".join(PARTS), help="of " + ",".join(PARTS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--quick", action="store_true",
                        default=os.environ.get("QUICK", "") not in ("", "0"))
    parser.add_argument("--selftest", action="store_true", help="of this script alone")
    args = parser.parse_args()
    if args.selftest:
        return selftest()
    parts = args.parts.split(",")
    if not args.vwn or set(parts) - set(PARTS):
        parser.error("--vwn PROGRAM is needed, and --parts are of " + ",".join(PARTS))
    folder = os.getcwd() if args.quick else args.results
    os.makedirs(folder, exist_ok=True)
    found, now = machine(), datetime.datetime.now()
    slug = re.sub(r"[^a-z0-9]+", "-", found["cpu"].lower()).strip("-")
    base = os.path.join(folder, f"{now:%Y-%m-%d}-{slug}")
    head = {"schema": "vwn.bench.results", "v": 1, "date": now.isoformat(timespec="seconds"),
            "command": " ".join(sys.argv), "quick": args.quick, "threads": args.threads,
            "machine": found, "load_before": os.getloadavg()}
    head["vwn"] = subprocess.run([args.vwn, "--version"], capture_output=True, text=True,
                                 check=True).stdout.strip()
    say(f"{head['vwn']} on {found['cpu']}, {args.threads} threads of {found['cores']}, load "
        f"{head['load_before'][0]:.1f}")
    if head["load_before"][0] > 0.5:
        say("The machine is busy: these figures are no benchmark.")
    b = Bench(args)
    try:
        head.update(measure_all(b, parts, base))
    except Failed as e:
        sys.exit(f"run.py: {e}")
    finally:
        shutil.rmtree(b.work, ignore_errors=True)
    head["load_after"] = os.getloadavg()
    with open(base + ".json", "w") as f:
        f.write(rows(head) + "\n")
    say(f"\nAll figures are in {base}.json")
    return None


if __name__ == "__main__":
    main()
