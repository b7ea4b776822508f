"""file.py - what the package says of files, and training as a generator of events.

In:  small files.   Out: status 0, or the test that failed.
Oracles: the program's own output, and events.jsonl of the same run.
"""
import _thread
import json
import os
import subprocess
import sys
import threading
import time

import vwn
from common import MODEL, OF_PYTHON, model, raised, run

PROGRAM = os.environ["VWN"]


def said_by_program(*arguments):
    out = subprocess.run([PROGRAM, *arguments, "--json"], capture_output=True, text=True)
    return [json.loads(line) for line in out.stdout.splitlines()]


def diagnostics():
    path = model()
    assert vwn.check(path) == []
    with open("wrong.vwn", "w") as f:
        f.write(MODEL.replace("width  ", "widht  ").replace("heads = 2", "heads = 5") % ("residual()", "", "text.txt"))
    mine = vwn.check("wrong.vwn")
    theirs = [d for d in said_by_program("check", "wrong.vwn") if d["event"] == "diagnostic"]
    assert len(mine) == len(theirs) > 0
    for a, b in zip(mine, theirs):
        place = next(s for s in b["spans"] if s["primary"])
        assert (a.level, a.code, a.message, a.file, a.line, a.column) == \
            (b["level"], b["code"], b["message"], place["file"], place["line"], place["column"])
        assert list(a.help) == [h["text"] for h in b["help"]] and list(a.notes) == b["notes"]
    first = mine[0]
    assert first.code == "E0101" and any("width" in h for h in first.help), first
    assert f"{first.file}:{first.line}:{first.column}: error[E0101]" in str(first)
    # a text is one by its line breaks
    of_text = vwn.check("model m {\n  widht = 3\n}\n")
    assert [(d.code, d.line, d.column) for d in of_text][0] == ("E0101", 2, 3)
    assert vwn.check(path, {"D": 32}) == [] and vwn.check(path, ["D=32"]) == []
    assert vwn.check(path, {"D": 33})[0].level == "error"
    raised(vwn.UsageError, "there is no lint", vwn.check, path, deny=["nothing"])
    assert "cannot read no-such-file.vwn" in vwn.check("no-such-file.vwn")[0].message
    raised(vwn.InputError, "cannot read no-such-file.vwn", vwn.params, "no-such-file.vwn")
    raised(TypeError, "file is a string", vwn.check, 3)
    raised(TypeError, "set is a mapping", vwn.check, path, "D=3")
    raised(TypeError, "the setting 'D'", vwn.check, path, {"D": [1]})
    raised(ValueError, "character 0", vwn.check, "a\0b")
    false = vwn.check(MODEL % ("residual()", "", "text.txt") + 'check params == 1\n')
    assert any(d.level == "error" for d in false), false


def reports():
    path = model()
    assert vwn.params(path) == said_by_program("params", path)[0]
    assert vwn.params(path, by="tensor", set={"D": 32}) == said_by_program("params", path, "--by", "tensor", "--set", "D=32")[0]
    mine, theirs = vwn.cost(path), said_by_program("cost", path)[0]
    assert mine.keys() == theirs.keys() and mine["flops_per_token"] == theirs["flops_per_token"] > 0
    assert mine["bytes_arena"] == theirs["bytes_arena"]
    error = raised(vwn.InputError, "E0101", vwn.params, "model m {\n  widht = 3\n}\n")
    assert error.diagnostics[0].line == 2
    raised(vwn.UsageError, "by is one of", vwn.params, path, by="colour")
    raised(TypeError, "batch is an integer", vwn.cost, path, batch="3")


def events():
    path = model()
    seen = list(vwn.train(path, run="events"))
    with open("events/events.jsonl") as f:
        written = [json.loads(line) for line in f]
    assert [e.fields for e in seen] == written
    steps = [e for e in seen if e.kind == "step"]
    assert [e.step for e in steps] == [1, 2, 3, 4, 5, 6] and steps[0].steps == 6
    assert [e.loss for e in steps] == [w["loss"] for w in written if w["event"] == "step"]
    assert seen[-1].kind == "end" and seen[-1].text.startswith("trained at step 6 of 6")
    # the same run by the program
    subprocess.run([PROGRAM, "train", path, "--run", "./program", "-q"], check=True, capture_output=True)
    with open("program/events.jsonl") as f:
        theirs = [json.loads(line) for line in f]
    assert [w["loss"] for w in theirs if w["event"] == "step"] == [e.loss for e in steps]
    raised(vwn.UsageError, "already holds a run", list, vwn.train(path, run="events"))
    raised(vwn.InputError, "E0", vwn.train, "model m {\n  widht = 3\n}\n")
    assert [e.step for e in vwn.train(path, {"train.seed": 4}, run="events", overwrite=True, until=2) if e.kind == "step"] == [1, 2]
    assert [e.step for e in vwn.train(path, run="events", resume=True) if e.kind == "step"] == [3, 4, 5, 6]
    raised(TypeError, "until is an integer", vwn.train, path, until=1.5)


def checkpoints(folder):
    return sorted(f for f in os.listdir(f"{folder}/ckpt") if f.endswith(".safetensors"))


def stopped():
    """Whoever leaves the loop stops the run, with a checkpoint that goes on to the same end."""
    path = model()
    long = {"train.length": "100000 steps", "train.checkpoint.every": "1000000 steps", "train.eval.every": "1000000 steps"}
    for event in vwn.train(path, long, run="broken"):
        if event.kind == "step":
            break
    del event
    assert len(checkpoints("broken")) == 1
    with open("broken/events.jsonl") as f:
        assert json.loads(f.readlines()[-1])["status"] == "interrupted"
    going_on = vwn.train(path, long, run="closed")
    assert next(going_on).kind
    going_on.close()
    assert len(checkpoints("closed")) == 1

    def interrupt():
        time.sleep(0.5)
        _thread.interrupt_main()

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        for event in vwn.train(path, long, run="interrupted"):
            pass
    except KeyboardInterrupt:
        pass
    else:
        raise AssertionError("nobody was interrupted")
    thread.join()
    assert len(checkpoints("interrupted")) == 1
    # an exception in the loop is the caller's, and ends the run, too
    try:
        for event in vwn.train(path, long, run="raised"):
            raise KeyError("mine")
    except KeyError:
        assert len(checkpoints("raised")) == 1
    # two at a time, each with a context of its own
    both = [vwn.train(path, run=f"both{i}") for i in range(2)]
    assert [e.kind for e in both[0]][-1] == [e.kind for e in both[1]][-1] == "end"


def silent():
    """The library never prints, and an interpreter with a run under way ends."""
    path = model()
    out = subprocess.run([sys.executable, "-c", f"""
import vwn
try:
    vwn.Run("no-such-run")
except vwn.MachineError as e:
    assert "no-such-run" in str(e), e
vwn.check("model m {{\\n  widht = 3\\n}}\\n")
events = vwn.train({path!r}, {{"train.length": "100000 steps"}}, run="left")
next(events)
"""], capture_output=True, text=True, timeout=100, env=OF_PYTHON)
    assert (out.returncode, out.stdout, out.stderr) == (0, "", ""), out


run([diagnostics, reports, events, stopped, silent])
