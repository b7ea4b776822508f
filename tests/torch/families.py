"""Models of transformers with random weights, of every family: into a `.vwn` and a run, whose logits are transformers' own; out of the run
again, to the byte; after some training what transformers opens has the run's logits. What vwn does not know is refused, with its name."""
import json, os, re, struct, subprocess, sys

import torch
import transformers as T

VWN, LOGITS = os.environ["VWN"], os.environ["LOGITS"]
SIZES = dict(vocab_size=256, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             max_position_embeddings=32)
NO_ENDS = dict(bos_token_id=None, eos_token_id=None, pad_token_id=None)
LLAMA31 = {"rope_theta": 1e4, "rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
           "original_max_position_embeddings": 16}
FAMILIES = {  # a few models of each: what a flag of config.json turns on is on in one of them
    "llama": (T.LlamaConfig(**SIZES), T.LlamaConfig(**SIZES, rope_theta=5e5, head_dim=6, attention_bias=True, mlp_bias=True,
                                                    tie_word_embeddings=True, rms_norm_eps=1e-3, hidden_act="gelu"),
              T.LlamaConfig(**SIZES, rope_parameters=LLAMA31)),
    "qwen3": (T.Qwen3Config(**SIZES, head_dim=12), T.Qwen3Config(**SIZES, head_dim=8, attention_bias=True, tie_word_embeddings=True)),
    "mistral": (T.MistralConfig(**SIZES, sliding_window=5), T.MistralConfig(**SIZES, sliding_window=None, head_dim=6)),
    "qwen2": (T.Qwen2Config(**SIZES), T.Qwen2Config(**SIZES, tie_word_embeddings=True)),
    "qwen3_moe": (T.Qwen3MoeConfig(**SIZES, head_dim=12, num_experts=5, num_experts_per_tok=2, moe_intermediate_size=20),
                  T.Qwen3MoeConfig(**SIZES, num_experts=4, num_experts_per_tok=1, moe_intermediate_size=20, norm_topk_prob=True)),
    "olmoe": (T.OlmoeConfig(**SIZES, num_experts=5, num_experts_per_tok=3, **NO_ENDS),),
    "gemma": (T.GemmaConfig(**SIZES, head_dim=8), T.GemmaConfig(**SIZES, head_dim=10, attention_bias=True)),
    "phi3": (T.Phi3Config(**SIZES, **NO_ENDS), T.Phi3Config(**SIZES, **NO_ENDS, rope_parameters={"rope_theta": 1e3, "rope_type": "default", "partial_rotary_factor": 0.5})),
    "gpt2": (T.GPT2Config(vocab_size=256, n_positions=32, n_embd=32, n_layer=2, n_head=4, **NO_ENDS),
             T.GPT2Config(vocab_size=256, n_positions=32, n_embd=32, n_layer=1, n_head=2, n_inner=20, activation_function="relu", tie_word_embeddings=False, **NO_ENDS)),
    "olmo2": (T.Olmo2Config(**SIZES), T.Olmo2Config(**{**SIZES, "num_key_value_heads": 4}, attention_bias=True)),
}
IDS = [84, 104, 101, 32, 99, 97, 116, 32, 115, 97, 116, 46]
failed = 0


def say(good, what):
    global failed
    failed += not good
    if not good:
        print("FAILED:", what)


def vwn(*words, status=0):
    r = subprocess.run([VWN, *words], capture_output=True, text=True)
    say(r.returncode == status, f"vwn {' '.join(words)}: {r.returncode}, not {status}: {r.stdout[-500:]}{r.stderr[-800:]}")
    return r.stdout + r.stderr


def random_model(config, seed):
    torch.manual_seed(seed)
    model = T.AutoModelForCausalLM.from_config(config).float().eval()
    for p in model.parameters():
        p.data.normal_(0, 0.2) if p.ndim > 1 else p.data.uniform_(0.5, 1.5)
    return model


def of_torch(model):
    with torch.no_grad():
        return model(torch.tensor([IDS])).logits[0].double()


def of_run(run, device="reference"):
    r = subprocess.run([LOGITS, device, run, *map(str, IDS)], capture_output=True, text=True)
    say(r.returncode == 0, f"logits of {run}: {r.stderr}")
    return torch.tensor([[float(x) for x in line.split()] for line in r.stdout.splitlines()], dtype=torch.float64)


def close(a, b, what):
    apart = (a - b).abs().max() / b.abs().max() if a.shape == b.shape else float("inf")
    say(apart < 1e-4 and b.std() > 0.1, f"{what}: logits are {apart:.2g} of their scale apart")


def header(path):
    b = open(path, "rb").read()
    n = struct.unpack("<Q", b[:8])[0]
    return json.loads(b[8:8 + n]), b[8 + n:]


def give_bytes(name):
    """The models have no tokenizer: the file takes bytes here."""
    text = open(f"{name}/model.vwn").read()
    at = text.index("  data       = token_files")
    text = text[:at] + '  data = text_file("../text.txt", val = 10%)\n  tokenizer = bytes()\n' + text[text.index("\n", at) + 1:]
    for old, new in (("100 steps", "3 steps"), ("8 seqs", "2 seqs"), ("every = 50 steps", "every = 3 steps")):
        text = text.replace(old, new)
    open(f"{name}/model.vwn", "w").write(text)


def train(name, run, lr):
    vwn("train", f"{name}/model.vwn", "--run", run, "-q", "--device", "reference", "--set", f"train.optimizer.lr={lr}")


open("text.txt", "w").write("the cat sat on the mat. " * 200)
for family, configs in FAMILIES.items():
    for i, config in enumerate(configs):
        name = f"{family}{i}"
        model = random_model(config, i)
        model.save_pretrained(f"{name}_hf")
        vwn("new", name, "--from-hf", f"{name}_hf")
        give_bytes(name)
        train(name, f"runs/{name}_still", 0)
        close(of_run(f"runs/{name}_still"), of_torch(model), f"{name}, read")
        vwn("export", f"runs/{name}_still", "--hf", f"{name}_back")
        say(header(f"{name}_back/model.safetensors") == header(f"{name}_hf/model.safetensors"), f"{name}: other bytes come back")
        train(name, f"runs/{name}", 0.01)
        vwn("export", f"runs/{name}", "--hf", f"{name}_out")
        out, info = T.AutoModelForCausalLM.from_pretrained(f"{name}_out", output_loading_info=True)
        say(not any(info.values()), f"{name}, written: {info}")
        learned = of_torch(out.float().eval())
        close(of_run(f"runs/{name}"), learned, f"{name}, written")
        say((learned - of_torch(model)).abs().max() > 0.01, f"{name} has not learned")
        # what is written is read again, and written alike
        vwn("new", f"{name}_again", "--from-hf", f"{name}_out")
        a, b = (re.sub(" *#.*", "", vwn("ir", f"{n}/model.vwn", "--stage", "tensor", "--program", "predict")) for n in (name, f"{name}_again"))
        say(a == b, f"{name}: another model comes back")
print(len(FAMILIES), "families")

sys.exit(failed != 0)
