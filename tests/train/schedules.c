/* schedules.c - see schedules.h. */
#include "schedules.h"

#include <stdint.h>
#include <stdio.h>

enum { BASE = 64, ROUND = 32 };

const char schedule_model[] =
    "edition = 1\n"
    "import \"std/transformer\"\n"
    "import \"std/connections\"\n"
    "let d = 64\n"
    "let L = 16\n"
    "let width = constant(layers = L, width = d)\n"
    "model points {\n"
    "  context = 16\n  mask = causal\n  pre_norm = rms_norm(eps = 1e-5)\n"
    "  connection = carried(head = d, widths = width, final = after_slice, expand = carry)\n"
    "  allow = [dead_weights]\n"
    "  embed tokens { vocab = 256, width = d, init = normal(std = 0.02) }\n"
    "  for layer in 1..L {\n"
    "    width = width[layer]\n    init = normal(std = 1 / sqrt(fan_in))\n"
    "    out_init = normal(std = 1 / sqrt(2 * L * fan_in))\n"
    "    attention { heads = 2, position = rope(base = 10_000) }\n"
    "    ffn { hidden = 4 * width[layer], activation = silu, gated = true }\n"
    "  }\n"
    "  head lm { norm = rms_norm(eps = 1e-5), init = normal(std = 0.02) }\n"
    "}\n"
    "train {\n"
    "  data = text_file(\"text\", val = 10%)\n  tokenizer = bytes()\n  batch = 2 seqs\n  micro_batch = 1 seqs\n"
    "  length = 3 steps\n  seed = 1\n  precision = fp32\n  clip = 1.0\n"
    "  optimizer adamw { lr = 1e-3, betas = [0.9, 0.95], eps = 1e-8, weight_decay = 0.1 }\n"
    "  eval { every = 3 steps, batches = 1 }\n  log { every = 1 steps }\n"
    "}\n";

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

void make_schedule(Schedule *p, int i)
{
    uint64_t state = (uint64_t)i * 77777 + 5;
    next_random(&state);
    int layers = 16 + (int)(next_random(&state) % 9), n = 0;
    snprintf(p->layers, sizeof p->layers, "L=%d", layers);
    for (int k = 0; k < layers; k++) {
        double x = 0.2 + 1.8 * (double)(next_random(&state) % 1000) / 1000;
        int width = ((int)(x * BASE) + ROUND - 1) / ROUND * ROUND;
        n += snprintf(p->widths + n, sizeof p->widths - (size_t)n, "%s%d", k ? ", " : "width=[", width);
    }
    snprintf(p->widths + n, sizeof p->widths - (size_t)n, "]");
    p->set[0] = p->layers;
    p->set[1] = p->widths;
}
