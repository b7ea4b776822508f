"""common.py - what the tests share: small models, and what a call raises."""
import os

# Of this process, and of others that run Python: not of the program and of compilers.
PRELOAD = os.environ.pop("LD_PRELOAD", None)
OF_PYTHON = {**os.environ, "LD_PRELOAD": PRELOAD} if PRELOAD else dict(os.environ)

TEXT = "".join(f"line {i} says that {i * i} is the square of {i}\n" for i in range(400))

MODEL = """edition = 1
import "std/transformer"
import "std/connections"

let D = 16

model small {
  context    = 16
  width      = D
  mask       = causal
  init       = normal(std = 0.05)
  out_init   = normal(std = 0.05)
  pre_norm   = rms_norm(eps = 1e-6)
  connection = %s

  embed tokens { vocab = 256 }
  for layer in 1..2 {
    attention { heads = 2, position = rope(base = 10_000) }
    ffn       { hidden = 32, activation = silu, gated = true%s }
  }
  head lm { norm = rms_norm(eps = 1e-6) }
}

train {
  data      = text_file("%s", val = 10%%)
  tokenizer = bytes()
  batch     = 4 seqs
  length    = 6 steps
  seed      = 3
  precision = fp32
  clip      = 1.0
  optimizer adamw { lr = 3e-3 * min(1, (step + 1) / 4), betas = [0.9, 0.95], eps = 1e-8, weight_decay = 0.1 }
  checkpoint { every = 3 steps, keep = 4 }
  eval       { every = 3 steps, batches = 2 }
}
"""


def model(name="small.vwn", connection="residual()", ffn="", text="text.txt", more=""):
    """Writes the model and its text; returns the model's path."""
    with open("text.txt", "w") as f:
        f.write(TEXT)
    with open(name, "w") as f:
        f.write(MODEL % (connection, ffn, text) + more)
    return name


def raised(kind, text, function, *arguments, **named):
    """It raises exactly that, and says so."""
    try:
        result = function(*arguments, **named)
    except kind as e:
        assert text in str(e), f"{text!r} is not in {str(e)!r}"
        return e
    except Exception as e:
        raise AssertionError(f"{type(e).__name__} ({e}) in the place of {kind.__name__}") from e
    raise AssertionError(f"no {kind.__name__}, but {result!r}")


def run(tests):
    """Runs functions by name, in order."""
    for test in tests:
        try:
            test()
        except BaseException:
            print(f"FAILED: {test.__name__}", flush=True)
            raise
    print(f"{len(tests)} passed in {os.path.basename(os.getcwd())}")
