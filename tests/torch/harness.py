"""A random model of transformers and its tokenizer, as a run: `vwn eval --task` has the log-likelihoods, accuracies and standard errors that
lm-evaluation-harness (lm_eval 0.4.13 on PyPI, `pip install lm_eval[api] accelerate`) has of the model itself, offline, for contexts that
are short, end in blanks, or do not fit. An unmodified harness that scores the model through `vwn serve` has them, too."""
import json, os, random, subprocess, sys

import lm_eval
import torch
import transformers as T
from lm_eval.models.huggingface import HFLM
from lm_eval.models.openai_completions import LocalCompletionsAPI
from lm_eval.tasks import TaskManager
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

VWN = os.environ["VWN"]
WORDS = "the cat dog sat on a mat and ran to his house where she was not what they said it is big red blue green".split()
failed = 0


def say(good, what):
    global failed
    failed += not good
    if not good:
        print("FAILED:", what)


def vwn(*words):
    r = subprocess.run([VWN, *words], capture_output=True, text=True)
    say(r.returncode == 0, f"vwn {' '.join(words)}: {r.returncode}: {r.stdout[-500:]}{r.stderr[-800:]}")
    return r.stdout


def text(n):
    return " ".join(random.choice(WORDS) for _ in range(n))


def make_model(folder):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=["<|endoftext|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator([text(12) for _ in range(400)], trainer)
    fast = T.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|endoftext|>")
    torch.manual_seed(0)
    config = T.LlamaConfig(vocab_size=len(fast), hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
                           num_key_value_heads=2, max_position_embeddings=64, bos_token_id=None, eos_token_id=0, pad_token_id=None)
    model = T.AutoModelForCausalLM.from_config(config).float().eval()
    for p in model.parameters():
        p.data.normal_(0, 0.3) if p.ndim > 1 else p.data.uniform_(0.5, 1.5)
    model.save_pretrained(folder)
    fast.save_pretrained(folder)


def make_documents():
    documents = [{"context": text(random.choice([1, 4, 9, 20, 40])), "gold": random.choice([0, 1]),
                  "choices": [text(random.choice([1, 2, 5])) for _ in range(random.choice([2, 4]))]} for _ in range(24)]
    with open("documents.jsonl", "w") as file:
        file.writelines(json.dumps(d) + "\n" for d in documents)
    with open("task.jsonl", "w") as file:
        file.writelines(json.dumps({"id": i, "context": d["context"], "continuations": [" " + c for c in d["choices"]], "gold": d["gold"]}) + "\n"
                        for i, d in enumerate(documents))
    return documents


TASK = {"task": "local", "dataset_path": "json", "dataset_kwargs": {"data_files": {"test": "documents.jsonl"}}, "test_split": "test",
        "output_type": "multiple_choice", "doc_to_text": "{{context}}", "doc_to_target": "{{gold}}", "doc_to_choice": "{{choices}}",
        "metric_list": [{"metric": "acc"}, {"metric": "acc_norm"}]}


def harness(model):
    """Per document the log-likelihoods and whether each is the greedy text; the task's numbers."""
    r = lm_eval.simple_evaluate(model=model, tasks=[dict(TASK)], task_manager=TaskManager(include_defaults=False), bootstrap_iters=1, log_samples=True)
    samples = sorted(r["samples"]["local"], key=lambda s: s["doc_id"])
    each = [[(float(x[0]), str(x[1]) == "True") for (x,) in s["resps"]] for s in samples]
    return each, r["results"]["local"]


def compare(name, harness_has, each, whole):
    """`whole` None: documents that do not fit are left out, of which the harness sends one token less to a server."""
    theirs, numbers = harness_has
    if not whole:
        fits = [max(len(hf.tok_encode(d["context"] + " " + c)) for c in d["choices"]) <= 64 for d in documents]
        say(sum(fits) > 10, f"{name}: {sum(fits)} documents fit")
        theirs, each = ([x for x, fit in zip(all_, fits) if fit] for all_ in (theirs, each))
    worst = max(abs(a - b) for t, e in zip(theirs, each) for (a, _), b in zip(t, e["logprob"]))
    say(worst < 2e-4, f"{name}: log-likelihoods differ by {worst}")
    say([[g for _, g in t] for t in theirs] == [e["greedy"] for e in each], f"{name}: other texts are greedy")
    for key, value in (("acc,none", "acc"), ("acc_norm,none", "acc_norm"), ("acc_stderr,none", "acc_stderr"), ("acc_norm_stderr,none", "acc_norm_stderr")) if whole else ():
        say(abs(numbers[key] - whole[value]) < 1e-9, f"{name}: {value} is {whole[value]}, theirs {numbers[key]}")
    return worst


random.seed(1)
make_model("hf")
documents = make_documents()
vwn("new", "m", "--from-hf", "hf")
with open("m/text.txt", "w") as file:
    file.writelines(text(12) + "\n" for _ in range(200))
vwn("train", "m/model.vwn", "--run", "still", "-q", "--set", "train.length=1 steps", "--set", "train.optimizer.lr=0")
whole = json.loads(vwn("eval", "still", "--task", "task.jsonl", "-o", "each.jsonl", "--json"))
with open("each.jsonl") as file:
    each = [json.loads(line) for line in file]
say(len(each) == len(documents) and whole["left_out"] > 0, f"{len(each)} requests, {whole['left_out']} too long")
hf = HFLM(pretrained="hf", tokenizer="hf", device="cpu", dtype="float32", batch_size=4)
worst = compare("hf", harness(hf), each, whole)

# contexts that end in blanks, and none at all; a token that is the greedy one
odd = [("the cat ", "sat"), ("a dog\n", " ran"), ("on  \t ", "x"), ("", "the mat"), ("the", "\u00e4\u00f6")]
with torch.no_grad():
    for context in (text(n) for n in range(1, 12)):
        ids = hf.tok_encode(context)
        best = int(hf.model(torch.tensor([ids])).logits[0, -1].argmax())
        if hf.tok_encode(context + hf.tok_decode([best])) == ids + [best]:
            odd.append((context, hf.tok_decode([best])))
theirs = hf.loglikelihood([lm_eval.api.instance.Instance("loglikelihood", {}, pair, 0) for pair in odd])
with open("odd.jsonl", "w") as file:
    file.writelines(json.dumps({"context": a, "continuation": b}) + "\n" for a, b in odd)
vwn("eval", "still", "--task", "odd.jsonl", "-o", "odd.out")
with open("odd.out") as file:
    for pair, (sum_, greedy), line in zip(odd, theirs, file):
        ours = json.loads(line)
        say(abs(sum_ - ours["logprob"][0]) < 1e-4 and greedy == ours["greedy"][0], f"{pair}: {ours}, theirs {sum_} {greedy}")
say(any(g for _, g in theirs), "no text is greedy")

# through a server: the harness makes ids by its tokenizer, and sends several prompts at a time
server = subprocess.Popen([VWN, "serve", "still", "--port", "0", "--json"], stdout=subprocess.PIPE, text=True)
try:
    listens = json.loads(server.stdout.readline())
    served = LocalCompletionsAPI(base_url=listens["url"] + "/v1/completions", model=listens["model"], max_length=65, batch_size=8)
    say(served.tokenizer_backend == "remote", "the server's tokenizer is not taken")
    compare("served", harness(served), each, None)
    generated = served.generate_until([lm_eval.api.instance.Instance("generate_until", {}, ("the cat", {"until": ["\n"], "max_gen_toks": 8, "temperature": 0}), 0)])
    with torch.no_grad():
        ids = hf.model.generate(torch.tensor([hf.tok_encode("the cat")]), max_new_tokens=8, do_sample=False, pad_token_id=0)[0].tolist()
    greedy = hf.tok_decode(ids[len(hf.tok_encode("the cat")):]).split("<|endoftext|>")[0].split("\n")[0]
    say(generated[0] == greedy, f"the greedy text is {generated[0]!r}, theirs {greedy!r}")
finally:
    server.terminate()
    say(server.wait(20) == 0, f"the server ends with {server.returncode}")
print(f"{len(documents)} documents, log-likelihoods differ by {worst:.1e}; {failed} failed")
sys.exit(failed != 0)
