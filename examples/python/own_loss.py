"""own_loss.py - trains a small model, looks at a value inside it, and goes on with a loss that the file has not.

    pip install ./runtime/python && python3 examples/python/own_loss.py FILE.vwn [STEPS]

Nothing but the standard library is used. With PyTorch the gradient below is loss.backward() and logits.grad: see
runtime/python/README.md.
"""
import math
import sys

import vwn

path, steps = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20

for event in vwn.train(path, {"train.length": f"{steps} steps"}, run="runs/own_loss", overwrite=True):
    if event.kind == "end":
        print(event.text)

run = vwn.Run("runs/own_loss")
tokens = [run.encode("In the beginning God created the heaven and the earth")[:run.context]]
for name in [n for n in run.nodes if n.endswith(".ffn.state")]:
    state = run.tensors([name], tokens)[name]  # [B, T, width]
    print(f"{name:24} {math.sqrt(sum(x * x for x in state[0, -1]) / state.shape[-1]):.3f} at the last position")


def smoothed(logits, labels, share=0.1):
    """Cross entropy with `share` of each target spread over all tokens, and its gradient: [B, T, vocabulary] each."""
    loss, gradient, n = 0.0, [], sum(map(len, labels))
    for rows, targets in zip(logits, labels):
        gradient.append([])
        for row, target in zip(rows, targets):
            top = max(row)
            total = sum(math.exp(x - top) for x in row)
            p = [math.exp(x - top) / total for x in row]
            want = [share / len(row)] * len(row)
            want[target] += 1 - share
            loss -= sum(w * math.log(max(q, 1e-30)) for w, q in zip(want, p)) / n
            gradient[-1].append([(q - w) / n for w, q in zip(want, p)])
    return loss, gradient


trainer = vwn.Trainer(path)
tokens, labels = (t.tolist()[:1] for t in trainer.batch())  # one text of the file's batch, again and again
for i in range(5):
    logits = trainer.forward(tokens)["logits"]
    loss, gradient = smoothed(logits.tolist(), labels)
    trainer.backward({"logits": gradient}, tokens)
    step = trainer.update(loss)
    print(f"step {step.step}: own loss {loss:.4f}, gradient {step.grad_norm:.3f}")
