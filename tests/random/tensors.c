/* tensors.c - see generate.h: blocks of random operations on tensors.
 *
 * The one idea: a pool of named values with their extents grows by operations that fit; what
 * comes last is brought back to the shape of the input. Numbers stay of order one, and nothing
 * jumps at a value that rounding can reach: what is rounded down or compared is moved off the
 * round numbers first.
 */
#include "generate.h"

#include <string.h>

enum { DIM_BATCH = -1, DIM_TIME = -2, RANK_MOST = 6, VALUES_MOST = 24, ELEMENTS_MOST = 600 };

typedef struct Value {
    char name[12];
    int rank, d[RANK_MOST]; /* extents, or one of the above */
} Value;

typedef struct Pool {
    Writer *w;
    Value v[VALUES_MOST];
    int n, vocab; /* vocab 0: no tokens are read */
} Pool;

static Value *pick(Pool *p) { return &p->v[one_in(p->w, 2) ? p->n - 1 : (int)roll(p->w, (uint32_t)p->n)]; }

/* One with B and T in front, which shifts and heads need. */
static Value *pick_sequence(Pool *p)
{
    for (int i = 0; i < 20; i++) {
        Value *v = pick(p);
        if (v->rank >= 3 && v->d[0] == DIM_BATCH && v->d[1] == DIM_TIME && v->d[2] > 0)
            return v;
    }
    return &p->v[0];
}

static const char *dim_text(char to[16], int d)
{
    if (d >= 0)
        snprintf(to, 16, "%d", d);
    else
        strcpy(to, d == DIM_BATCH ? "B" : "T");
    return to;
}

static void put_shape(Writer *w, const int *d, int rank)
{
    char one[16];
    buf_puts(&w->b, "[");
    for (int i = 0; i < rank; i++)
        buf_printf(&w->b, "%s%s", i ? ", " : "", dim_text(one, d[i]));
    buf_puts(&w->b, "]");
}

static int64_t elements(const Value *v) /* of a position, where T counts 8 */
{
    int64_t n = 1;
    for (int i = 0; i < v->rank; i++)
        n *= v->d[i] >= 0 ? v->d[i] : v->d[i] == DIM_TIME ? 8 : 1;
    return n;
}

static Value fresh(Pool *p, const Value *like)
{
    Value v = *like;
    snprintf(v.name, sizeof v.name, "v%d", p->w->names++);
    return v;
}

static void keep(Pool *p, const Value *v)
{
    if (elements(v) <= 8 * ELEMENTS_MOST)
        p->v[p->n < VALUES_MOST ? p->n++ : 1 + (int)roll(p->w, VALUES_MOST - 1)] = *v;
}

static int axis_text(Pool *p, const Value *v, int axis) /* from the front, or from the end */
{
    return one_in(p->w, 2) ? axis + 1 : axis - v->rank;
}

static int static_axis(Pool *p, const Value *v) /* or -1 */
{
    for (int i = 0; i < 8; i++) {
        int a = (int)roll(p->w, (uint32_t)v->rank);
        if (v->d[a] > 0)
            return a;
    }
    return -1;
}

/* ---- operations; each prints statements ---- */

static void unary(Pool *p)
{
    static const char *const how[] = {"tanh(%s)",
                                      "sigmoid(%s)",
                                      "silu(%s)",
                                      "relu(%s)",
                                      "gelu(%s)",
                                      "gelu_tanh(%s)",
                                      "softplus(%s)",
                                      "erf(%s)",
                                      "sin(%s)",
                                      "cos(%s)",
                                      "abs(%s)",
                                      "exp(clamp(%s, -2, 1))",
                                      "log(abs(%s) + 0.3)",
                                      "sqrt(%s * %s + 0.1)",
                                      "clamp(%s, -0.75, 0.6)",
                                      "0.7 * %s + 0.1",
                                      "-%s",
                                      "%s ^ 2 / 3",
                                      "1 / (1 + %s ^ 2)",
                                      "floor(3 * tanh(%s) + 0.137) / 3",
                                      "%s * (%s > 0.113)",
                                      "max(%s, 0.051)",
                                      "min(%s, 0.3)",
                                      "sign(%s + 0.0371)",
                                      "where(%s < 0.271, 0.5 * %s, 0.1)",
                                      "tanh(%s) ^ 3",
                                      "logit(0.1 + 0.8 * sigmoid(%s))",
                                      "stop_gradient(%s)",
                                      "(%s + 0.0371) mod 1.71",
                                      "2 ^ clamp(%s, -2, 1)"};
    const Value *a = pick(p);
    Value v = fresh(p, a);
    buf_printf(&p->w->b, "  %s = ", v.name);
    for (const char *c = ANY(p->w, how); *c; c++)
        if (c[0] == '%' && c[1] == 's') {
            buf_puts(&p->w->b, a->name);
            c++;
        } else {
            buf_printf(&p->w->b, "%c", *c);
        }
    buf_puts(&p->w->b, "\n");
    keep(p, &v);
}

/* Whether b broadcasts to the shape of a. */
static bool spreads(const Value *a, const Value *b)
{
    for (int i = 1; i <= b->rank; i++)
        if (b->rank > a->rank || (b->d[b->rank - i] != a->d[a->rank - i] && b->d[b->rank - i] != 1))
            return false;
    return true;
}

static void binary(Pool *p)
{
    static const char *const how[] = {"%s + %s",
                                      "%s - 0.8 * %s",
                                      "%s * %s",
                                      "tanh(%s) * %s",
                                      "max(%s, %s + 0.013)",
                                      "%s / (abs(%s) + 0.7)",
                                      "where(%s > 0.217, %s, 0.2)",
                                      "min(%s - 0.019, %s)",
                                      "0.5 * (%s + %s)",
                                      "sigmoid(%s) * %s"};
    for (int i = 0; i < 12; i++) {
        const Value *a = pick(p), *b = pick(p);
        if (!spreads(a, b) && spreads(b, a)) {
            const Value *c = a;
            a = b;
            b = c;
        }
        if (!spreads(a, b) || a == b)
            continue;
        bool swapped = one_in(p->w, 2);
        Value v = fresh(p, a);
        buf_printf(&p->w->b, "  %s = ", v.name);
        buf_printf(&p->w->b, ANY(p->w, how), swapped ? b->name : a->name, swapped ? a->name : b->name);
        buf_puts(&p->w->b, "\n");
        keep(p, &v);
        return;
    }
    unary(p);
}

/* A weight that broadcasts over the last axes of a value. */
static void gain(Pool *p)
{
    static const char *const attributes[] = {"",
                                             "",
                                             " { group = static }",
                                             " { group = vector }",
                                             " { lr_scale = 0.5 }",
                                             " { lr_scale = 0 }",
                                             " { group = mine }",
                                             " { decay = 0.01 }",
                                             " { frozen = true }",
                                             " { group = token }"};
    static const char *const init[] = {"ones",
                                       "zeros",
                                       "normal(std = 0.4)",
                                       "fill(0.3)",
                                       "uniform(low = -0.5, high = 0.6)",
                                       "trunc_normal(std = 0.5, cutoff = 2)",
                                       "scope.init"};
    const Value *a = pick(p);
    int from = a->rank;
    while (from > 0 && a->d[from - 1] >= 0 && (from == a->rank || one_in(p->w, 2)))
        from--;
    Value v = fresh(p, a), g = fresh(p, a);
    bool buffer = one_in(p->w, 10);
    buf_printf(&p->w->b, "  %s %s : ", buffer ? "buffer" : "param", g.name);
    put_shape(p->w, a->d + from, a->rank - from);
    buf_printf(&p->w->b, " = %s%s\n", ANY(p->w, init), buffer ? "" : ANY(p->w, attributes));
    buf_printf(&p->w->b, one_in(p->w, 2) ? "  %s = %s * %s\n" : "  %s = %s + %s\n", v.name, a->name, g.name);
    keep(p, &v);
}

static void weigh(Pool *p) /* a product with a weight */
{
    const Value *a = pick(p);
    if (a->rank < 2 || a->d[a->rank - 1] < 1) {
        gain(p);
        return;
    }
    int k = range(p->w, 1, 9), in = a->d[a->rank - 1];
    Value v = fresh(p, a), W = fresh(p, a);
    v.d[v.rank - 1] = k;
    switch (roll(p->w, 4)) {
    case 0:
        buf_printf(&p->w->b, "  let %s = linear(out = %d%s)\n  %s = %s(%s)\n", W.name, k,
                   one_in(p->w, 2) ? ", bias = true" : "", v.name, W.name, a->name);
        break;
    case 1: /* the same weights twice */
        v.d[v.rank - 1] = in;
        buf_printf(&p->w->b, "  let %s = linear(out = %d)\n  %s = %s(%s(%s) / 2)\n", W.name, in, v.name, W.name, W.name,
                   a->name);
        break;
    case 2:
        buf_printf(&p->w->b, "  param %s : [%d, %d] = scope.init\n  %s = %s @ %s.T\n", W.name, k, in, v.name, a->name,
                   W.name);
        break;
    default:
        buf_printf(&p->w->b, "  param %s : [%d, %d] = normal(std = 1 / sqrt(fan_in))\n  %s = %s @ %s\n", W.name, in, k,
                   v.name, a->name, W.name);
    }
    keep(p, &v);
}

static bool same_lead(const Value *a, const Value *b)
{
    if (a->rank != b->rank || a->rank < 3)
        return false;
    for (int i = 0; i < a->rank - 2; i++)
        if (a->d[i] != b->d[i])
            return false;
    return true;
}

/* A product of two values, either of them transposed. */
static void product(Pool *p)
{
    for (int i = 0; i < 24; i++) {
        const Value *a = pick(p), *b = pick(p);
        if (!same_lead(a, b))
            continue;
        int turned_a = (int)roll(p->w, 2), turned_b = (int)roll(p->w, 2), last = a->rank - 1;
        int inner = a->d[last - turned_a];
        if (inner != b->d[last - 1 + turned_b])
            continue;
        Value v = fresh(p, a);
        v.d[last - 1] = a->d[last - 1 + turned_a];
        v.d[last] = b->d[last - turned_b];
        if (elements(&v) > ELEMENTS_MOST)
            continue;
        buf_printf(&p->w->b, "  %s = 0.3 * (%s%s @ %s%s)\n", v.name, a->name, turned_a ? ".T" : "", b->name,
                   turned_b ? ".T" : "");
        keep(p, &v);
        return;
    }
    weigh(p);
}

static void along(Pool *p) /* what keeps the shape and looks along an axis */
{
    const Value *a = pick(p);
    int axis = a->rank > 1 ? 1 + (int)roll(p->w, (uint32_t)a->rank - 1) : 0, k = axis_text(p, a, axis);
    Value v = fresh(p, a);
    Buf *b = &p->w->b;
    bool nothing = a->d[axis] == 0; /* there is no mean of it, and no softmax */
    uint32_t how = roll(p->w, nothing ? 5 : 6);
    switch (nothing && how == 0 ? 1 : how) {
    case 0: buf_printf(b, "  %s = softmax(%s, over = %d)\n", v.name, a->name, k); break;
    case 1:
        buf_printf(b, "  %s = 0.2 * cumsum(%s, over = %d%s)\n", v.name, a->name, k,
                   one_in(p->w, 3) ? ", reverse = true" : "");
        break;
    case 2:
    case 3:
        buf_printf(b, "  %s = shift(%s, %d, axis = %d%s)\n", v.name, a->name, range(p->w, -2, 3), k,
                   one_in(p->w, 3) ? ", fill = 0.25" : "");
        break;
    case 4: buf_printf(b, "  %s = roll(%s, %d, axis = %d)\n", v.name, a->name, range(p->w, -3, 3), k); break;
    default:
        buf_printf(b, "  %s = %s / sqrt(mean(%s * %s, over = %d, keep = true) + 0.1)\n", v.name, a->name, a->name,
                   a->name, k);
    }
    keep(p, &v);
}

static void reduce(Pool *p)
{
    static const char *const how[] = {"mean", "max", "min", "sum", "logsumexp"};
    const Value *a = pick(p);
    if (a->rank < 2)
        return;
    int axis = 1 + (int)roll(p->w, (uint32_t)a->rank - 1);
    bool stays = a->rank < 4 || one_in(p->w, 2);
    const char *of = a->d[axis] == 0 ? "sum" : ANY(p->w, how);
    Value v = fresh(p, a);
    buf_printf(&p->w->b, "  %s = %s%s(%s, over = %d%s)\n", v.name, *of == 's' ? "0.2 * " : "", of, a->name,
               axis_text(p, a, axis), stays ? ", keep = true" : "");
    if (stays) {
        v.d[axis] = 1;
    } else {
        memmove(v.d + axis, v.d + axis + 1, (size_t)(v.rank - axis - 1) * sizeof *v.d);
        v.rank--;
    }
    keep(p, &v);
}

static void cut(Pool *p) /* slices, pads, splits */
{
    const Value *a = pick(p);
    int axis = static_axis(p, a);
    if (axis < 0)
        return;
    int n = a->d[axis], k = axis_text(p, a, axis), m = one_in(p->w, 16) ? 0 : range(p->w, 1, n);
    Value v = fresh(p, a);
    Buf *b = &p->w->b;
    v.d[axis] = m;
    switch (roll(p->w, 6)) {
    case 0: buf_printf(b, "  %s = first(%s, %d, axis = %d)\n", v.name, a->name, m, k); break;
    case 1:
        v.d[axis] = m ? n - m + 1 : 0;
        buf_printf(b, "  %s = rest(%s, %d, axis = %d)\n", v.name, a->name, n - v.d[axis], k);
        break;
    case 2:
        buf_printf(b, "  %s = slice(%s, from = %d, count = %d, axis = %d)\n", v.name, a->name,
                   range(p->w, 1, m ? n - m + 1 : n), m, k);
        break;
    case 3:
        v.d[axis] = n + m % 4;
        buf_printf(b, "  %s = pad(%s, %d, axis = %d)\n", v.name, a->name, v.d[axis], k);
        break;
    case 4: { /* parts of sizes of their own */
        if (m == n)
            return;
        bool second = one_in(p->w, 2);
        v.d[axis] = second ? n - m : m;
        buf_printf(b, "  let %s_parts = split(%s, [%d, %d], axis = %d)\n  %s = %s_parts[%d]\n", v.name, a->name, m,
                   n - m, k, v.name, v.name, second ? 2 : 1);
        break;
    }
    default: { /* equal parts, added up in another order */
        int parts = n % 3 == 0 ? 3 : n % 2 == 0 ? 2 : 1;
        v.d[axis] = n / parts;
        buf_printf(b,
                   "  let %s_parts = split(%s, %d, axis = %d)\n  %s = %s_parts[%d] - 0.5 * "
                   "%s_parts[1]\n",
                   v.name, a->name, parts, k, v.name, v.name, parts, v.name);
    }
    }
    keep(p, &v);
}

static void join(Pool *p)
{
    for (int i = 0; i < 12; i++) {
        const Value *a = pick(p), *b = pick(p);
        int axis = static_axis(p, a);
        bool fits = axis >= 0 && a->rank == b->rank && b->d[axis] > 0;
        for (int k = 0; fits && k < a->rank; k++)
            fits = k == axis || a->d[k] == b->d[k];
        if (!fits)
            continue;
        Value v = fresh(p, a);
        int times = one_in(p->w, 4) ? 2 : 1;
        v.d[axis] = a->d[axis] * times + b->d[axis];
        buf_printf(&p->w->b, "  %s = concat(%s, %s%s%s, axis = %d)\n", v.name, a->name, b->name, times > 1 ? ", " : "",
                   times > 1 ? a->name : "", axis_text(p, a, axis));
        keep(p, &v);
        return;
    }
}

static void reshape(Pool *p)
{
    const Value *a = pick(p);
    Value v = fresh(p, a);
    Buf *b = &p->w->b;
    int last = a->rank - 1;
    switch (roll(p->w, 6)) {
    case 0: /* the last two axes as one */
        if (a->rank < 4 || a->d[last] < 1 || a->d[last - 1] < 1)
            return;
        v.d[last - 1] *= v.d[last];
        v.rank--;
        buf_printf(b, "  %s = reshape(%s, ", v.name, a->name);
        put_shape(p->w, v.d, v.rank);
        buf_puts(b, ")\n");
        break;
    case 1: { /* the last axis as two */
        int n = a->d[last], by = n % 2 == 0 ? 2 : n % 3 == 0 ? 3 : 1;
        if (n < 1 || a->rank > 4)
            return;
        v.d[last] = one_in(p->w, 2) ? by : n / by;
        v.d[v.rank++] = n / v.d[last];
        buf_printf(b, "  %s = reshape(%s, ", v.name, a->name);
        put_shape(p->w, v.d, v.rank);
        buf_puts(b, ")\n");
        break;
    }
    case 2: { /* axes behind B in another order */
        int order[RANK_MOST] = {0};
        for (int i = 1; i < a->rank; i++)
            order[i] = i;
        for (int i = a->rank - 1; i > 1; i--) {
            int j = 1 + (int)roll(p->w, (uint32_t)i), was = order[i];
            order[i] = order[j];
            order[j] = was;
        }
        buf_printf(b, "  %s = permute(%s, [", v.name, a->name);
        for (int i = 0; i < a->rank; i++) {
            buf_printf(b, "%s%d", i ? ", " : "", order[i] + 1);
            v.d[i] = a->d[order[i]];
        }
        buf_puts(b, "])\n");
        break;
    }
    case 3: {
        int n = one_in(p->w, 20) ? 0 : range(p->w, 1, 3);
        if (a->rank > 4)
            return;
        memmove(v.d + last + 1, v.d + last, sizeof *v.d);
        v.d[last] = n;
        v.rank++;
        buf_printf(b, "  %s = repeat(%s, %d)\n", v.name, a->name, n);
        break;
    }
    case 4:
        if (a->rank > 4)
            return;
        v.d[v.rank++] = 1;
        buf_printf(b, "  %s = unsqueeze(%s)\n", v.name, a->name);
        break;
    default:
        if (a->d[last] != 1 || a->rank < 3)
            return;
        v.d[last] = range(p->w, 2, 5);
        buf_printf(b, "  %s = broadcast(%s, ", v.name, a->name);
        put_shape(p->w, v.d, v.rank);
        buf_puts(b, ")\n");
    }
    keep(p, &v);
}

static void index(Pool *p) /* tables, choices, masks */
{
    const Value *a = pick(p);
    Value v = fresh(p, a), t = fresh(p, a);
    Buf *b = &p->w->b;
    int last = a->rank - 1, n = a->d[last];
    switch (roll(p->w, 6)) {
    case 0:
        if (!p->vocab)
            return;
        n = range(p->w, 1, 7);
        v.rank = 3, v.d[0] = DIM_BATCH, v.d[1] = DIM_TIME, v.d[2] = range(p->w, 1, 6);
        buf_printf(b,
                   "  param %s : [%d, %d] = normal(std = 0.5) { group = embedding }\n  %s = "
                   "gather(%s, input.tokens mod %d)\n",
                   t.name, n, v.d[2], v.name, t.name, n);
        break;
    case 1:
        if (!p->vocab)
            return;
        v.rank = 3, v.d[0] = DIM_BATCH, v.d[1] = DIM_TIME, v.d[2] = range(p->w, 1, p->vocab < 6 ? p->vocab : 6);
        buf_printf(b, "  %s = one_hot(shift(input.tokens, 1), %d) * 0.5\n", v.name, v.d[2]);
        break;
    case 2: {
        if (n < 1 || a->rank < 2)
            return;
        int k = range(p->w, 1, n < 4 ? n : 4);
        v.d[last] = k;
        buf_printf(b, "  let %s = top_k(%s, %d)\n  %s = %s.values\n", t.name, a->name, k, v.name, t.name);
        break;
    }
    case 3:
        if (n < 1 || a->rank < 3)
            return;
        buf_printf(b, "  let %s = top_k(%s, 1)\n  %s = 0.3 * cast(%s.index, real) / %d + 0 * %s\n", t.name, a->name,
                   v.name, t.name, n, a->name);
        break;
    case 4: /* positions */
        if (n < 1)
            return;
        buf_printf(b, "  %s = %s + sin(cast(arange(%d), real) / 3)\n", v.name, a->name, n);
        break;
    default: { /* experts by the largest of a few logits */
        const Value *x = pick_sequence(p);
        int experts = one_in(p->w, 4) ? 1 : range(p->w, 1, 4);
        int k = one_in(p->w, 3) ? 1 : range(p->w, 1, experts), out = range(p->w, 1, 6);
        if (x->rank != 3)
            return;
        v.rank = 4, v.d[0] = DIM_BATCH, v.d[1] = DIM_TIME, v.d[2] = k, v.d[3] = out;
        buf_printf(b,
                   "  param %s : [%d, %d] = normal(std = 0.5) { group = router }\n  let %s_top "
                   "= top_k(%s @ %s, %d)\n",
                   t.name, x->d[2], experts, t.name, x->name, t.name, k);
        buf_printf(b,
                   "  param %s_w : [%d, %d, %d] = normal(std = 0.4)\n  %s = expert_matmul(%s, "
                   "%s_w, %s_top.index)",
                   t.name, experts, x->d[2], out, v.name, x->name, t.name, t.name);
        static const char *const gates[] = {
            "\n", " * unsqueeze(softmax(%s_top.values))\n", " * unsqueeze(sigmoid(%s_top.values))\n",
            " * unsqueeze(sigmoid(%s_top.values) / sum(sigmoid(%s_top.values), over = -1, keep = "
            "true))\n"};
        buf_printf(b, ANY(p->w, gates), t.name, t.name);
    }
    }
    keep(p, &v);
}

static void chance(Pool *p)
{
    static const char *const how[] = {"  %s = drop(%s, p = 0.3)\n", "  %s = %s + 0.2 * randn(",
                                      "  %s = %s * bernoulli(", "  %s = %s - 0.4 * rand("};
    const Value *a = pick(p);
    Value v = fresh(p, a);
    uint32_t k = roll(p->w, 4);
    buf_printf(&p->w->b, how[k], v.name, a->name);
    if (k) {
        put_shape(p->w, a->d, a->rank);
        buf_puts(&p->w->b, k == 2 ? ", p = 0.7)\n" : ")\n");
    }
    keep(p, &v);
}

/* Blocks of the library, and attention in its parts. */
static void module(Pool *p)
{
    Value *a = pick_sequence(p);
    Value v = fresh(p, a), f = fresh(p, a);
    Buf *b = &p->w->b;
    int last = a->d[a->rank - 1];
    if (last < 1)
        return;
    switch (roll(p->w, 6)) {
    case 0:
        buf_printf(b, "  let %s = rms_norm(eps = 1e-2%s)\n", f.name, one_in(p->w, 2) ? ", gain = false" : "");
        break;
    case 1:
        buf_printf(b, "  let %s = layer_norm(eps = 1e-1%s)\n", f.name, one_in(p->w, 2) ? ", bias = false" : "");
        break;
    case 2:
        buf_printf(b, "  let %s = ffn(hidden = %d, activation = silu, gated = %s)\n", f.name, range(p->w, 1, 7),
                   one_in(p->w, 2) ? "true" : "false");
        break;
    case 3:
        if (a->rank != 3)
            return;
        buf_printf(b, "  let %s = attention(heads = %d, head_dim = %d, mask = %s)\n", f.name, range(p->w, 1, 2),
                   range(p->w, 1, 4), one_in(p->w, 2) ? "causal" : "full");
        break;
    case 4: buf_printf(b, "  let %s = group_norm(size = %d, eps = 1e-1)\n", f.name, last % 2 ? last : last / 2); break;
    default: {
        if (a->rank != 3)
            return;
        int heads = range(p->w, 1, 3), d = 2 * range(p->w, 1, 2);
        v.rank = 4, v.d[2] = heads, v.d[3] = d;
        buf_printf(b, "  let %s_p = linear(out = %d)\n  %s_h = reshape(%s_p(%s), [B, T, %d, %d])\n", f.name, heads * d,
                   f.name, f.name, a->name, heads, d);
        buf_printf(b,
                   "  %s = sdpa(rotary(%s_h, base = 50, dims = %d), %s_h, tanh(%s_h), mask = "
                   "causal, scale = 0.4%s)\n",
                   v.name, f.name, one_in(p->w, 2) ? d : 2, f.name, f.name, one_in(p->w, 3) ? ", window = 3" : "");
        keep(p, &v);
        return;
    }
    }
    buf_printf(b, "  %s = %s(%s)\n", v.name, f.name, a->name);
    if (one_in(p->w, 3)) /* the module again */
        buf_printf(b, "  %s = %s + 0.5 * %s(%s)\n", v.name, v.name, f.name, v.name);
    keep(p, &v);
}

static bool is_empty(const Value *v)
{
    for (int i = 0; i < v->rank; i++)
        if (v->d[i] == 0)
            return true;
    return false;
}

static void put_filled(Pool *p, const char *text, const Value *a)
{
    for (const char *c = text; *c; c++)
        if (*c == '$')
            buf_puts(&p->w->b, a->name);
        else if (*c == '@')
            put_shape(p->w, a->d, a->rank);
        else
            buf_printf(&p->w->b, "%c", *c);
}

/* Losses and metrics of the block's own: sums over the batch, of which some are divided by others, with
 * numbers drawn at random in every place, and some that are no sums of what each sequence adds. */
static void own_loss(Pool *p)
{
    static const char *const weights[] = {"sigmoid($)",
                                          "drop(1 + 0 * $, p = 0.3)",
                                          "bernoulli(@, p = 0.6)",
                                          "rand(@)",
                                          "($ > 0.1171)",
                                          "(1 + 0 * $)",
                                          "where($ > 0.217, 1, drop(0.5 + 0 * $, p = 0.4))"};
    static const char *const how[] = {
        "0.1 * sum($ ^ 2 * w) / (sum(w) + 0.5)",      "0.1 * sum($ ^ 2 * w / (sum(w) + 0.5))",
        "0.1 * sum($ * w) / max(sum(w), 1)",          "0.05 * mean(w * $) + 0.01 * mean($ ^ 2)",
        "0.02 * mean(($ + 0.1 * randn(@)) ^ 2 * w)",  "0.01 * log(1 + sum(w * $ ^ 2))",
        "0.01 * sqrt(mean($ ^ 2) + 0.1) * mean(w)",   "0.1 * mean(drop($, p = 0.25) ^ 2) - 0.01 * mean(w)",
        "(0.5 + 0.1 * step) * 0.01 * mean(w * $ ^ 2)"};
    static const char *const names[] = {"small", "tiny", "own", "other"};
    const Value *a = pick(p);
    Buf *b = &p->w->b;
    int n = p->w->names++;
    if (is_empty(a) || a->d[0] != DIM_BATCH)
        return;
    buf_printf(b, "  w%d = ", n);
    put_filled(p, ANY(p->w, weights), a);
    if (one_in(p->w, 6))
        buf_printf(b, "\n  metric.w%d[%d] = ", n, range(p->w, 1, 3));
    else
        buf_printf(b, one_in(p->w, 4) ? "\n  metric.%s = " : "\n  loss.%s = ", ANY(p->w, names));
    for (const char *c = ANY(p->w, how), *end = c + strlen(c); c < end; c++)
        if (*c == 'w' && (c[1] == ' ' || c[1] == ')'))
            buf_printf(b, "w%d", n);
        else
            put_filled(p, (char[]){*c, 0}, a);
    buf_puts(b, "\n");
}

static void statement(Pool *p) /* what a body has besides tensors */
{
    const Value *a = pick(p);
    Value v = fresh(p, a);
    Buf *b = &p->w->b;
    switch (roll(p->w, 9)) {
    case 7:
    case 8: own_loss(p); return;
    case 0:
        buf_printf(b, "  %s = %s\n  for i in 1..%d {\n    %s = %s + tanh(%s) / (i + 1)\n  }\n", v.name, a->name,
                   range(p->w, 1, 3), v.name, v.name, v.name);
        break;
    case 1:
        buf_printf(b, "  %s = %s\n  if %d > 2 {\n    %s = 0.5 * %s\n  } else {\n    %s = %s + 0.1\n  }\n", v.name,
                   a->name, range(p->w, 1, 4), v.name, v.name, v.name, v.name);
        break;
    case 2:
        if (!is_empty(a))
            buf_printf(b, "  metric.m%d = mean(%s)\n", p->w->names++, a->name);
        return;
    case 3:
        if (!is_empty(a))
            buf_printf(b, "  loss.%s = 0.01 * mean(%s ^ 2)\n", one_in(p->w, 2) ? "small" : "tiny", a->name);
        return;
    case 4:
        buf_printf(b,
                   "  block %s_f(s: float = %g)(y: [..]) -> [..] { return tanh(s * y) }\n  %s "
                   "= %s_f()(%s)\n",
                   v.name, 0.1 * range(p->w, 3, 12), v.name, v.name, a->name);
        break;
    case 5:
        buf_printf(b, "  let %s_s = [0.3 * i for i in 1..3]\n  %s = %s_s[%d] * %s\n", v.name, v.name, v.name,
                   range(p->w, 1, 3), a->name);
        break;
    default: buf_printf(b, "  %s = %s * (1 / (1 + 0.1 * step))\n", v.name, a->name);
    }
    keep(p, &v);
}

/* ---- the block ---- */

static const Value *last_sequence(const Pool *p)
{
    for (int i = p->n - 1; i > 0; i--) {
        const Value *v = &p->v[i];
        bool good = v->rank >= 3 && v->d[0] == DIM_BATCH && v->d[1] == DIM_TIME;
        for (int k = 2; k < v->rank; k++)
            good = good && v->d[k] >= 0;
        if (good)
            return v;
    }
    return &p->v[0];
}

void write_block(Writer *w, const char *name, int width, int vocab, int most)
{
    static void (*const how[])(Pool *) = {unary,   unary,   binary,  binary, binary, gain,   weigh,
                                          product, product, along,   along,  reduce, cut,    cut,
                                          join,    reshape, reshape, index,  chance, module, statement};
    Pool p = {.w = w, .n = 1, .vocab = vocab};
    Buf *b = &w->b;
    char of[16];
    snprintf(of, sizeof of, width ? "%d" : "W", width);
    buf_printf(b, "block %s()(x: [B, T, %s]) -> [B, T, %s] {\n", name, of, of);
    Value *x = &p.v[0];
    *x = (Value){"x", 3, {DIM_BATCH, DIM_TIME, width}};
    if (!width || one_in(w, 3)) {
        snprintf(x->name, sizeof x->name, "v%d", w->names++);
        x->d[2] = range(w, 1, 12);
        buf_printf(b, "  param %s_in : [%s, %d] = normal(std = 0.4)\n  %s = x @ %s_in\n", x->name, of, x->d[2], x->name,
                   x->name);
    }
    for (int i = range(w, 2, most); i > 0; i--)
        ANY(w, how)(&p);
    const Value *v = last_sequence(&p);
    int n = 1;
    for (int k = 2; k < v->rank; k++)
        n *= v->d[k];
    const char *flat = v->rank > 3 ? "flatten" : "";
    if (width && n == width)
        buf_printf(b, "  return %s(%s)\n}\n", flat, v->name);
    else if (width && one_in(w, 2))
        buf_printf(b, n > width ? "  return first(%s(%s), %d)\n}\n" : "  return pad(%s(%s), %d)\n}\n", flat, v->name,
                   width);
    else
        buf_printf(b, "  param out_%s : [%d, %s] = scope.out_init\n  return %s(%s) @ out_%s\n}\n", name, n, of, flat,
                   v->name, name);
}
