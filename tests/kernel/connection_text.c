/* connection_text.c - see connections.h.
 *
 * The one idea: n slots of width w; a sublayer reads m w numbers. The grammar below picks how
 * slots are normalised, coefficients made, read, carried and written.
 */
#include "connections.h"

#include "cases.h"

#include <stdio.h>

typedef struct Text {
    Buf b;
    Dice d;
    int n, m, w; /* slots, slots that a sublayer reads, width of a slot */
    int names;
    int widest; /* a product with more columns than this is a library's (decompose.c) */
} Text;

static int pick(Text *t, int n) { return (int)dice(&t->d, (uint32_t)n); }

/* ---- pieces of a step; each prints statements and returns the name it binds ---- */

typedef struct Piece {
    char name[8];
} Piece;

static Piece fresh(Text *t, const char *letter)
{
    Piece p;
    snprintf(p.name, sizeof p.name, "%s%d", letter, t->names++);
    return p;
}

/* x [.., slots, w] made tame: normalised per slot, over all slots or across them, clamped */
static Piece normalised(Text *t, const char *x, int slots)
{
    Piece z = fresh(t, "z"), g = fresh(t, "g");
    Buf *b = &t->b;
    switch (pick(t, 8)) {
    case 0: buf_printf(b, "    let %s = rms_norm(eps = 1e-5)\n    %s = %s(%s)\n", g.name, z.name, g.name, x); break;
    case 1: buf_printf(b, "    let %s = layer_norm(eps = 1e-4)\n    %s = %s(%s)\n", g.name, z.name, g.name, x); break;
    case 2: /* a gain of each slot's own */
        buf_printf(b, "    param %s : [%d, %d] = ones\n", g.name, slots, t->w);
        buf_printf(b, "    %s = %s / sqrt(mean(%s * %s, over = -1, keep = true) + 1e-4) * %s\n", z.name, x, x, x,
                   g.name);
        break;
    case 3: buf_printf(b, "    %s = %s / (sqrt(sum(%s * %s, over = -1, keep = true)) + 0.1)\n", z.name, x, x, x); break;
    case 4: /* over all slots */
        buf_printf(b, "    let %s = rms_norm(eps = 1e-5)\n", g.name);
        buf_printf(b, "    %s = reshape(%s(reshape(%s, [.., %d])), [.., %d, %d])\n", z.name, g.name, x, slots * t->w,
                   slots, t->w);
        break;
    case 5: /* across slots */
        buf_printf(b, "    %s = %s / sqrt(mean(%s * %s, over = -2, keep = true) + 0.3)\n", z.name, x, x, x);
        break;
    case 6: buf_printf(b, "    %s = clamp(%s, -1.5, 1.5)\n", z.name, x); break;
    default:
        buf_printf(b, "    param %s : [%d, 1] = ones { group = static }\n", g.name, slots);
        buf_printf(b, "    %s = tanh(%s * %s)\n", z.name, x, g.name);
    }
    return z;
}

/* [.., n, k] from z [.., n, w] */
static Piece linear_of(Text *t, const char *z, int k)
{
    Piece u = fresh(t, "u"), W = fresh(t, "W");
    Buf *b = &t->b;
    switch (t->n * k > t->widest ? pick(t, 3) : pick(t, 4)) {
    case 0:
    case 1:
        buf_printf(b, "    param %s : [%d, %d] = normal(std = 0.1)\n", W.name, t->w, k);
        buf_printf(b, "    %s = %s @ %s / %d\n", u.name, z, W.name, 2 + pick(t, 3));
        break;
    case 2: /* of the mean: the same for all slots */
        buf_printf(b, "    param %s : [%d, %d] = normal(std = 0.1)\n", W.name, t->w, k);
        buf_printf(b, "    %s = broadcast(mean(%s, over = -2, keep = true) @ %s, [.., %d, %d])\n", u.name, z, W.name,
                   t->n, k);
        break;
    default: /* of all slots together */
        buf_printf(b, "    param %s : [%d, %d] = normal(std = 0.1)\n", W.name, t->n * t->w, t->n * k);
        buf_printf(b, "    %s = reshape(reshape(%s, [.., %d]) @ %s, [.., %d, %d])\n", u.name, z, t->n * t->w, W.name,
                   t->n, k);
    }
    return u;
}

/* Coefficients [.., n, k], or [n, k]: static, dynamic, or both. */
static Piece coefficient(Text *t, const char *z, int k, bool square)
{
    Piece c = fresh(t, "c"), a = fresh(t, "A"), s = fresh(t, "s");
    Buf *b = &t->b;
    int kind = pick(t, 5);
    buf_printf(b, "    param %s : [%d, %d] = normal(std = 0.4) { group = static }\n", a.name, t->n, k);
    if (kind == 0) {
        buf_printf(b, "    %s = %s\n", c.name, a.name);
    } else {
        Piece u = linear_of(t, z, k);
        static const char *const squash[] = {"tanh(%s)",
                                             "sigmoid(%s)",
                                             "softmax(%s, over = -2)",
                                             "softmax(%s)",
                                             "exp(clamp(%s, -2, 1)) / 3",
                                             "%s",
                                             "tanh(%s) * sigmoid(-1 * %s)"};
        char x[96];
        const char *how = squash[pick(t, COUNT_OF(squash))];
        snprintf(x, sizeof x, how, u.name, u.name);
        if (pick(t, 2))
            buf_printf(b, "    param %s : [] = fill(0.5) { group = static }\n", s.name);
        else
            buf_printf(b, "    param %s : [%d, %d] = fill(0.5) { group = static }\n", s.name, t->n, k);
        buf_printf(b, "    %s = %s + %s * %s\n", c.name, a.name, s.name, x);
    }
    if (!square || pick(t, 3) == 0)
        return c;
    Piece p = fresh(t, "P"); /* made nearly doubly stochastic */
    buf_printf(b, "    %s = exp(clamp(%s, -3, 2))\n", p.name, c.name);
    buf_printf(b, "    for i in 1..%d {\n", 1 + pick(t, 3));
    buf_printf(b, "      %s = %s / sum(%s, over = -1, keep = true)\n", p.name, p.name, p.name);
    buf_printf(b, "      %s = %s / sum(%s, over = -2, keep = true)\n    }\n", p.name, p.name, p.name);
    return p;
}

/* [.., m, w] of what the sublayer reads */
static Piece read_slots(Text *t, const char *z)
{
    Piece h = fresh(t, "h"), a = fresh(t, "a");
    Buf *b = &t->b;
    const char *of = pick(t, 3) ? "H" : z;
    switch (pick(t, 5)) {
    case 0: buf_printf(b, "    %s = first(%s, %d, axis = -2)\n", h.name, of, t->m); break;
    case 1: { /* one slot and a mixture of all */
        Piece c = coefficient(t, z, t->m, false);
        buf_printf(b, "    %s = first(H, %d, axis = -2) + %s.T @ %s\n", h.name, t->m, c.name, of);
        break;
    }
    case 2: { /* each number gated by itself */
        Piece c = coefficient(t, z, t->m, false);
        buf_printf(b, "    %s = %s.T @ %s\n", a.name, c.name, of);
        buf_printf(b, "    %s = %s * sigmoid(%s)\n", h.name, a.name, a.name);
        break;
    }
    default: {
        Piece c = coefficient(t, z, t->m, false);
        buf_printf(b, "    %s = %s.T @ %s\n", h.name, c.name, of);
    }
    }
    return h;
}

/* [.., n, w] of what the state keeps */
static Piece carry(Text *t, const char *z)
{
    Piece r = fresh(t, "r"), g = fresh(t, "g");
    Buf *b = &t->b;
    switch (pick(t, 7)) {
    case 0: buf_printf(b, "    %s = H\n", r.name); break;
    case 1: { /* a gate of each slot */
        Piece c = coefficient(t, z, 1, false);
        buf_printf(b, "    %s = sigmoid(%s) * H\n", r.name, c.name);
        break;
    }
    case 2: /* a gate of each number */
        buf_printf(b, "    param %s : [%d, %d] = normal(std = 0.5)\n", g.name, t->n, t->w);
        buf_printf(b, "    %s = sigmoid(%s + %s) * H\n", r.name, g.name, z);
        break;
    case 3: /* slots change places */
        if (t->n > 1) {
            buf_printf(b,
                       "    %s = 0.5 * H + 0.5 * concat(rest(H, 1, axis = -2), first(H, 1, "
                       "axis = -2), axis = -2)\n",
                       r.name);
            break;
        } /* fall through */
    default: {
        Piece c = coefficient(t, z, t->n, true);
        buf_printf(b, "    %s = %s.T @ H\n", r.name, c.name);
    }
    }
    return r;
}

/* [.., n, w] of what the sublayer's result y [.., m, w] adds */
static Piece write_slots(Text *t, const char *z, const char *h)
{
    Piece o = fresh(t, "o"), y = fresh(t, "y"), q = fresh(t, "q");
    Buf *b = &t->b;
    buf_printf(b, "    %s = reshape(f(reshape(%s, [.., %d])), [.., %d, %d])\n", y.name, h, t->m * t->w, t->m, t->w);
    switch (pick(t, 6)) {
    case 0: /* normalised once more */ y = normalised(t, y.name, t->m); break;
    case 1: /* gated by what was read */
        buf_printf(b, "    %s = %s * sigmoid(mean(%s * %s, over = -1, keep = true))\n", q.name, y.name, y.name, h);
        y = q;
        break;
    case 2: /* the difference to what was read */
        buf_printf(b, "    %s = %s - 0.5 * %s\n", q.name, y.name, h);
        y = q;
        break;
    default: break;
    }
    if (pick(t, 5) == 0 && t->n > t->m)
        buf_printf(b, "    %s = concat(%s, 0.3 * rest(H, %d, axis = -2), axis = -2)\n", o.name, y.name, t->m);
    else {
        Piece c = coefficient(t, z, t->m, false);
        buf_printf(b, "    %s = %s @ %s\n", o.name, c.name, y.name);
    }
    return o;
}

static void step_body(Text *t)
{
    Buf *b = &t->b;
    Piece z = normalised(t, "H", t->n);
    Piece h = read_slots(t, z.name);
    if (pick(t, 2)) /* coefficients of what is written may come from another norm */
        z = normalised(t, "H", t->n);
    Piece r = carry(t, z.name), o = write_slots(t, z.name, h.name);
    switch (pick(t, 4)) {
    case 0: buf_printf(b, "    return clamp(%s + %s, -8, 8)\n", o.name, r.name); break;
    case 1: { /* how much is written back */
        Piece c = coefficient(t, z.name, 1, false);
        buf_printf(b, "    return %s + sigmoid(%s) * (%s - %s)\n", r.name, c.name, o.name, r.name);
        break;
    }
    default: buf_printf(b, "    return %s + %s\n", o.name, r.name);
    }
}

/* ---- the file ---- */

const char *connection_text(Arena *arena, int seed, const Target *target)
{
    static const int widths[] = {33, 36, 40, 48, 52};
    Text t = {.b = buf_new(arena), .d = {(uint64_t)seed * 104729 + 71}, .widest = target->thin_product_max};
    Buf *b = &t.b;
    dice(&t.d, 2);
    t.n = 1 + pick(&t, 6);
    t.m = 1 + pick(&t, t.n < 3 ? t.n : 3);
    t.w = widths[pick(&t, COUNT_OF(widths))];
    int D = t.m * t.w, close = pick(&t, 3);
    buf_puts(b, "edition = 1\nimport \"std/transformer\"\n\nblock mixed() {\n");
    buf_printf(b, "  block open()(e: [.., E]) -> [.., %d, %d] { return reshape(e, [.., %d, %d]) }\n", t.n, t.w, t.n,
               t.w);
    buf_printf(b, "  block step(k: int)(H: [.., %d, %d], f: block) -> [.., %d, %d] {\n", t.n, t.w, t.n, t.w);
    step_body(&t);
    buf_puts(b, "  }\n");
    static const char *const closes[] = {"reshape(H, [.., %d])", "sum(H, over = -2)", "mean(H, over = -2)"};
    buf_printf(b, "  block close()(H: [.., %d, %d]) -> [.., _] { return ", t.n, t.w);
    buf_printf(b, closes[close], t.n * t.w);
    buf_puts(b, " }\n}\n\n");
    buf_printf(b, "model small {\n  context = 8, width = %d, mask = causal, connection = mixed()\n", D);
    buf_puts(b, "  pre_norm = rms_norm(eps = 1e-5), init = normal(std = 0.2), out_init = "
                "normal(std = 0.2)\n");
    buf_printf(b, "  embed tokens { vocab = 37, width = %d }\n", t.n * t.w);
    buf_puts(b, "  attention { heads = 2, head_dim = 20, position = rope(base = 100) }\n");
    buf_puts(b, "  ffn one { hidden = 40, activation = silu, gated = true }\n");
    buf_puts(b, "  ffn two { hidden = 40, activation = silu, gated = true }\n");
    buf_puts(b, "  head lm { norm = rms_norm(eps = 1e-5) }\n}\n\n");
    buf_puts(b, "train {\n  data = text_file(\"none.txt\"), tokenizer = chars(), batch = 4 "
                "seqs, length = 10 steps\n"
                "  seed = 1, precision = fp32\n"
                "  optimizer sgd { lr = 1e-2, momentum = 0, weight_decay = 0 }\n}\n");
    return b->s;
}
