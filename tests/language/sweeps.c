/* sweeps.c - the points of random sweeps against nested loops; the balance of interleaved ones.
 *
 * In:  seeds.   Out: `N checks, N failures`.
 * The one idea: a sweep is a product of axes, of which some move together and some points are left out; a few loops and a
 * table of numbers say which points that are, without a language.
 * When: quick.
 */
#include "support.h"

#include <math.h>
#include <stdio.h>

enum { AXES = 4, VALUES = 4, MOST = 256 };

typedef struct Made {
    int n, size[AXES], with[AXES]; /* with: the axis before it that it is zipped with, or itself */
    int value[AXES][VALUES];
    int skip_axis, skip_value; /* -1: none */
    int seeds, let;            /* let = axis 0 + 100 */
    bool interleaved;
} Made;

static uint32_t next_random(uint64_t *state, uint32_t below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % below;
}

static Made make(uint64_t seed)
{
    uint64_t s = seed * 977 + 3;
    Made m = {.n = 1 + (int)next_random(&s, AXES), .skip_axis = -1};
    for (int i = 0; i < m.n; i++) {
        m.with[i] = i;
        m.size[i] = 1 + (int)next_random(&s, VALUES);
        for (int k = 0; k < i; k++)
            if (m.with[k] == k && next_random(&s, 4) == 0) {
                m.with[i] = k;
                m.size[i] = m.size[k];
                break;
            }
        int x = (int)next_random(&s, 5);
        for (int k = 0; k < m.size[i]; k++)
            m.value[i][k] = x += 1 + (int)next_random(&s, 3);
    }
    if (next_random(&s, 2)) {
        m.skip_axis = (int)next_random(&s, (uint32_t)m.n);
        m.skip_value = m.value[m.skip_axis][0];
    }
    m.seeds = (int)next_random(&s, 3);
    m.let = (int)next_random(&s, 2);
    m.interleaved = next_random(&s, 2);
    return m;
}

static const char *text_of(Arena *a, const Made *m)
{
    Buf b = buf_new(a);
    buf_puts(&b, "let follows = 0\n");
    for (int i = 0; i < m->n; i++)
        buf_printf(&b, "let axis%d = 0\n", i);
    buf_puts(&b, "sweep s {\n  vary {\n");
    for (int i = 0; i < m->n; i++) {
        buf_printf(&b, "    axis%d = [", i);
        for (int k = 0; k < m->size[i]; k++)
            buf_printf(&b, "%s%d", k ? ", " : "", m->value[i][k]);
        buf_puts(&b, "]\n");
    }
    buf_puts(&b, "  }\n");
    Buf zips = buf_new(a);
    for (int i = 0; i < m->n; i++) {
        Buf one = buf_new(a);
        int n = 0;
        for (int k = i; k < m->n; k++)
            if (m->with[k] == i) {
                buf_printf(&one, "%saxis%d", n ? ", " : "", k);
                n++;
            }
        if (n > 1)
            buf_printf(&zips, "%s[%s]", zips.n ? ", " : "", one.s);
    }
    if (zips.n)
        buf_printf(&b, "  zip = [%s]\n", zips.s);
    if (m->skip_axis >= 0)
        buf_printf(&b, "  skip = axis%d == %d\n", m->skip_axis, m->skip_value);
    if (m->let)
        buf_puts(&b, "  let follows = axis0 + 100\n");
    if (m->seeds)
        buf_puts(&b, m->seeds == 1 ? "  seeds = [7]\n" : "  seeds = [1, 2]\n");
    if (m->interleaved)
        buf_puts(&b, "  order = interleaved\n");
    buf_puts(&b, "}\n");
    return b.s;
}

/* The settings of all points, in the order of loops, the last axis innermost, seeds inside. */
static int oracle(Arena *a, const Made *m, const char **out)
{
    int at[AXES], n = 0;
    for (int code = 0; code < VALUES * VALUES * VALUES * VALUES; code++) {
        int rest = code;
        bool there = true;
        for (int i = AXES; i-- > 0; rest /= VALUES)
            at[i] = rest % VALUES;
        for (int i = 0; i < AXES; i++)
            there = there && at[i] < (i < m->n ? m->size[i] : 1) && (i >= m->n || at[i] == at[m->with[i]]);
        if (!there || (m->skip_axis >= 0 && m->value[m->skip_axis][at[m->skip_axis]] == m->skip_value))
            continue;
        for (int k = 0; k < (m->seeds ? m->seeds : 1); k++) {
            Buf b = buf_new(a);
            for (int i = 0; i < m->n; i++)
                buf_printf(&b, "axis%d=%d ", i, m->value[i][at[i]]);
            if (m->let)
                buf_printf(&b, "follows=%d ", m->value[0][at[0]] + 100);
            if (m->seeds)
                buf_printf(&b, "seed %d", m->seeds == 1 ? 7 : k + 1);
            out[n++] = b.s;
        }
    }
    return n;
}

static const char *settings(Arena *a, const SweepPlan *of, const SweepPoint *p)
{
    Buf b = buf_new(a);
    for (size_t i = 0; i < p->n_set; i++)
        buf_printf(&b, "%s ", p->set[i]);
    if (of->seeded)
        buf_printf(&b, "seed %d", (int)p->seed);
    return b.s;
}

/* A seed is a setting of what is trained; a file without `train` is listed. */
static void seeds_are_settings(Test *t)
{
    static const char model[] =
        "import \"std/transformer\"\nimport \"std/connections\"\nmodel m {\n  context = 8, width = 8, mask = causal\n"
        "  init = zeros, out_init = zeros, pre_norm = none, connection = residual()\n  embed tokens { vocab = 256 }\n"
        "  ffn { hidden = 8, activation = gelu }\n  head lm { }\n}\n";
    static const char train[] =
        "train {\n  data = text_file(\"t\"), tokenizer = bytes(), batch = 2 seqs, length = 3 steps\n"
        "  seed = 1, precision = fp32, optimizer sgd { lr = 1, momentum = 0, weight_decay = 0 }\n}\n";
    for (int trained = 0; trained < 2; trained++) {
        char text[2000];
        snprintf(text, sizeof text, "%s%ssweep s { vary { ffn.hidden = [8] }, seeds = [5] }\n", model,
                 trained ? train : "");
        Checked c = check_text("-", text, NULL);
        const SweepPlan *p = c.unit && c.unit->sweep.n ? &c.unit->sweep.v[0] : NULL;
        EXPECT(t, text, p && p->n == 1 && p->point[0].n_set == 1 + (size_t)trained && p->point[0].seed == 5);
        EXPECT(t, text, p && (!trained || !strcmp(p->point[0].set[1], "train.seed=5")));
        ctx_free(c.ctx);
    }
}

/* Wherever it stops, two values of an axis of a full product have had almost equally many points. */
static bool balanced(const SweepPlan *p)
{
    int count[AXES][VALUES] = {{0}};
    for (size_t i = 0; i < p->configs; i++)
        for (size_t k = 0; k < p->n_axis; k++) {
            int least = 1 << 30, most = 0;
            count[k][p->point[i].at[k]]++;
            for (size_t v = 0; v < p->axis[k].n; v++) {
                least = count[k][v] < least ? count[k][v] : least;
                most = count[k][v] > most ? count[k][v] : most;
            }
            if (most - least > 2)
                return false;
        }
    return true;
}

static void one(Test *t, uint64_t seed)
{
    Made m = make(seed);
    static const char *wanted[MOST * 2];
    bool seen[MOST * 2] = {0};
    Ctx *ctx = ctx_new(NULL);
    Arena *a = arena_new(ctx);
    const char *text = text_of(a, &m);
    int n = oracle(a, &m, wanted);
    Checked c = check_text("-", text, NULL);
    const SweepPlan *p = c.unit && c.unit->sweep.n ? &c.unit->sweep.v[0] : NULL;
    EXPECT(t, text, (p != NULL) == (n > 0) && (!p || p->n == (size_t)n));
    for (size_t i = 0; p && i < p->n; i++) {
        const char *got = settings(a, p, &p->point[i]);
        int k = m.interleaved ? 0 : (int)i;
        while (m.interleaved && k < n && (seen[k] || strcmp(got, wanted[k]) != 0))
            k++;
        EXPECT(t, text, k < n && strcmp(got, wanted[k]) == 0);
        seen[k < n ? k : 0] = true;
        for (size_t j = 0; j < i; j++)
            EXPECT(t, text, strcmp(p->point[i].name, p->point[j].name) != 0);
    }
    if (p && m.interleaved && m.skip_axis < 0)
        EXPECT(t, text, balanced(p));
    ctx_free(c.ctx);
    ctx_free(ctx);
}

/* The Halton sequence as Halton (1960) has it: 1/2, 1/4, 3/4, 1/8, ... and 1/3, 2/3, 1/9, 4/9, ... */
static void halton(Test *t)
{
    static const double two[] = {1 / 2., 1 / 4., 3 / 4., 1 / 8., 5 / 8., 3 / 8., 7 / 8., 1 / 16.};
    static const double three[] = {1 / 3., 2 / 3., 1 / 9., 4 / 9., 7 / 9., 2 / 9., 5 / 9., 8 / 9.};
    Checked c =
        check_text("-",
                   "let a = 0\nlet b = 0\nsweep s { vary { a = between(0, 1), b = between(1, 100, scale = log) }\n"
                   " random = draws(8, sequence = halton) }\n",
                   NULL);
    EXPECT(t, "halton", c.unit && c.unit->sweep.n == 1 && c.unit->sweep.v[0].n == 8);
    for (int i = 0; c.unit && c.unit->sweep.n && i < 8; i++) {
        const SweepAxis *axis = c.unit->sweep.v[0].axis;
        EXPECT(t, "halton", fabs(axis[0].number[i] - two[i]) < 1e-5);
        EXPECT(t, "halton", fabs(log10(axis[1].number[i]) / 2 - three[i]) < 1e-5);
    }
    ctx_free(c.ctx);
}

/* With a seed all points of an axis are moved by one number, around the end of its range. */
static void halton_seeded(Test *t)
{
    static const double two[] = {1 / 2., 1 / 4., 3 / 4., 1 / 8., 5 / 8., 3 / 8., 7 / 8., 1 / 16.};
    Checked c = check_text("-",
                           "let a = 0\nsweep s { vary { a = between(0, 1) }\n"
                           " random = draws(8, seed = 5, sequence = halton) }\n",
                           NULL);
    bool made = c.unit && c.unit->sweep.n == 1 && c.unit->sweep.v[0].n == 8;
    EXPECT(t, "halton, seeded", made);
    int around = 0;
    const double *x = made ? c.unit->sweep.v[0].axis[0].number : NULL;
    for (int i = 0; made && i < 8; i++) {
        double moved = x[i] - two[i] - (x[0] - two[0]);
        EXPECT(t, "halton, seeded", x[i] >= 0 && x[i] <= 1);
        EXPECT(t, "halton, seeded", fabs(moved - round(moved)) < 1e-5);
        around += x[i] < two[i];
    }
    EXPECT(t, "halton, seeded", !made || (around > 0 && around < 8 && x[0] != two[0]));
    ctx_free(c.ctx);
}

/* A sweep whose axis `a` is drawn `n` times as lists. */
static Checked check_lists(Arena *a, int n, int entries, const char *sequence)
{
    return check_text("-",
                      arena_printf(a,
                                   "let d = 8\nlet a = [1]\nlet b = 0\nsweep s { vary { a = between(0.5, 2, round = "
                                   "0.25, n = %d), b = between(0, 1) }\n"
                                   " random = draws(%d, sequence = %s) }\n",
                                   entries, n, sequence),
                      NULL);
}

/* Entry k of list i as text; "" behind the last. */
static void entry(const SweepAxis *axis, size_t i, int k, char out[32])
{
    const char *at = axis->text[i] + 1;
    for (; k && at; k--)
        at = strchr(at, ',') ? strchr(at, ',') + 2 : NULL;
    snprintf(out, 32, "%.*s", at ? (int)strcspn(at, ",]") : 0, at ? at : "");
}

/* Lists: as many numbers as were asked for, each in its range, and those that were there when lists were shorter or fewer; of
 * Halton's sequence each entry is an axis; equal lists are one point, and the name tells the draw. */
static void lists(Test *t)
{
    Ctx *ctx = ctx_new(NULL);
    Checked few = check_lists(ctx->program, 20, 3, "random"), more = check_lists(ctx->program, 30, 5, "random");
    bool made =
        few.unit && more.unit && few.unit->sweep.n == 1 && more.unit->sweep.n == 1 && more.unit->sweep.v[0].n == 30;
    EXPECT(t, "lists", made);
    char a[32], b[32];
    double sum = 0;
    for (size_t i = 0; made && i < 30; i++) {
        const SweepAxis *axis = more.unit->sweep.v[0].axis;
        for (int k = 0; k < 5; k++) {
            entry(axis, i, k, b);
            double x = strtod(b, NULL);
            sum += x / 150;
            EXPECT(t, "lists", *b && x >= 0.5 && x <= 2 && 4 * x == floor(4 * x));
            if (i < 20 && k < 3) {
                entry(few.unit->sweep.v[0].axis, i, k, a);
                EXPECT(t, "lists", strcmp(a, b) == 0);
            }
        }
        entry(axis, i, 5, b);
        EXPECT(t, "lists", !*b);
    }
    EXPECT(t, "lists", fabs(sum - 1.25) < 0.15); /* the deviation of a mean of 150 is 0.035 */
    if (made)
        EXPECT(t, "lists", strncmp(more.unit->sweep.v[0].point[16].name, "a-17_b-", 7) == 0);
    ctx_free(few.ctx);
    ctx_free(more.ctx);
    static const int base[] = {2, 3, 5};
    Checked h = check_text(
        "-", "let a = [1]\nsweep s { vary { a = between(0, 1, n = 3) }\n random = draws(9, sequence = halton) }\n",
        NULL);
    made = h.unit && h.unit->sweep.n == 1 && h.unit->sweep.v[0].n == 9;
    EXPECT(t, "lists of Halton's", made);
    for (int i = 0; made && i < 9; i++)
        for (int k = 0; k < 3; k++) {
            double x = 0, f = 1;
            for (int n = i + 1; n; n /= base[k])
                x += (f /= base[k]) * (n % base[k]);
            entry(h.unit->sweep.v[0].axis, (size_t)i, k, a);
            EXPECT(t, "lists of Halton's", fabs(strtod(a, NULL) - x) < 1e-5);
        }
    ctx_free(h.ctx);
    h = check_text("-", "let a = [1]\nsweep s { vary { a = between(1, 2, round = 1, n = 2) }\n random = 100 }\n", NULL);
    EXPECT(t, "equal lists",
           h.unit && h.unit->sweep.n == 1 && h.unit->sweep.v[0].n == 4 && h.unit->sweep.v[0].repeated == 96);
    ctx_free(h.ctx);
    for (int over = 0; over < 2; over++) {
        Checked most = check_text("-",
                                  over ? "let a = 1\nsweep s { vary { a = between(0, 1) }\n random = 20001 }\n"
                                       : "let a = 1\nsweep s { vary { a = between(0, 1) }\n random = 20000 }\n",
                                  NULL);
        EXPECT(t, "as many points as there may be", diag_errors(most.ctx) == (size_t)over);
        ctx_free(most.ctx);
    }
    /* a range whose ends are no multiples has those between them */
    h = check_text(
        "-", "let a = [1]\nsweep s { vary { a = between(0.35, 1.15, round = 0.25, n = 4) }\n random = 30 }\n", NULL);
    made = h.unit && h.unit->sweep.n == 1 && h.unit->sweep.v[0].n > 20;
    EXPECT(t, "multiples in a range", made);
    for (size_t i = 0; made && i < h.unit->sweep.v[0].n; i++)
        for (int k = 0; k < 4; k++) {
            entry(h.unit->sweep.v[0].axis, i, k, a);
            EXPECT(t, "multiples in a range", !strcmp(a, "0.5") || !strcmp(a, "0.75") || !strcmp(a, "1"));
        }
    ctx_free(h.ctx);
    ctx_free(ctx);
}

/* Points are folders: letters that a shell takes as they are, at most 189, each point its own, the same in every run. What a name
 * loses of a value, or of its end, stands in it as a number. */
static void names(Test *t)
{
    static const char *const wanted[] = {"a-x_y_c-1",  "a-x_y_c-2",  "a-x_y_c-1-",    "a-x_y_c-2-",
                                         "a-x_y_c-1-", "a-x_y_c-2-", "a-..b+c-d_c-1", "a-..b+c-d_c-2"};
    Buf text = buf_new(ctx_new(NULL)->program);
    buf_puts(
        &text,
        "let a = \"\"\nlet c = 0\nsweep s { vary { a = [\"x y\", \"x/y\", \" x:: y\", \"..b+c-d\"], c = [1, 2] } }\n");
    Checked c = check_text("-", text.s, NULL), again = check_text("-", text.s, NULL);
    const SweepPlan *p = c.unit && c.unit->sweep.n ? &c.unit->sweep.v[0] : NULL;
    EXPECT(t, "names", p && p->n == COUNT_OF(wanted));
    for (size_t i = 0; p && i < p->n; i++) {
        const char *name = p->point[i].name, *w = wanted[i];
        EXPECT(t, "names", name && (w[strlen(w) - 1] == '-' ? strncmp(name, w, strlen(w)) == 0 : strcmp(name, w) == 0));
        EXPECT(t, "names", name && strcmp(name, again.unit->sweep.v[0].point[i].name) == 0);
        for (size_t k = 0; name && k < i; k++)
            EXPECT(t, "names", strcmp(name, p->point[k].name) != 0);
    }
    ctx_free(c.ctx);
    ctx_free(again.ctx);
    text.n = 0; /* values of 45 letters on six axes: what tells two points is behind the 180th */
    for (int i = 0; i < 6; i++)
        buf_printf(&text, "let a%d = \"\"\n", i);
    buf_puts(&text, "sweep s { vary { ");
    for (int i = 0; i < 6; i++)
        buf_printf(&text, "a%d = [\"%045d\"%s], ", i, i, i == 5 ? ", \"other\"" : "");
    buf_puts(&text, "} }\n");
    c = check_text("-", text.s, NULL);
    p = c.unit && c.unit->sweep.n ? &c.unit->sweep.v[0] : NULL;
    EXPECT(t, "long names", p && p->n == 2);
    for (size_t i = 0; p && i < p->n; i++) {
        const char *name = p->point[i].name,
                   *safe = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-+_";
        EXPECT(t, "long names",
               name && strlen(name) == 180 + 1 + 8 && strspn(name, safe) == strlen(name) && name[180] == '-');
        EXPECT(t, "long names", name && strncmp(name, "a0-000", 6) == 0 && strncmp(name, p->point[0].name, 180) == 0);
    }
    EXPECT(t, "long names",
           p && p->point[0].name && p->point[1].name && strcmp(p->point[0].name, p->point[1].name) != 0);
    ctx_free(c.ctx);
    ctx_free(arena_ctx(text.arena));
}

int main(void)
{
    Test t = {0};
    halton(&t);
    halton_seeded(&t);
    lists(&t);
    seeds_are_settings(&t);
    names(&t);
    for (uint64_t seed = 1; seed <= 300; seed++)
        one(&t, seed);
    return test_end(&t);
}
