/* faults.c - faults planted in the PTX of kernels are found by the interpreter, or by what comes of them.
 *
 *     test_ptx_faults [KIND]
 *
 * In:  the gradient of a model in bf16, with products of warpgroups and tensor maps, and as sm_80 has it; kinds of
 *      faults: a wait, a barrier or a fence that is left out, a pattern of shared memory or an index that is another one.
 * Out: of each kind the one whose place is known is found; under `whole`, or of the kind that is named, so many of all. A fault is found when a launch ends with one, or a number
 *      is farther from what the unchanged text gives than rounding explains. Those that are not found are at places that
 *      this launch does not reach, or that another barrier guards, too.
 * When: slow, at most 3600 s. It runs what NVRTC makes of texts.
 */
#include "support/gradients.h"
#include "support/harness.h"

#include "backend_ptx.h"

static const char *const model[] = {"D=128", "widths=[D]", "model.context=150", NULL};
enum { POSITIONS = 150 };

/* Text between `from` and the end of its line becomes `to`; with a number in the place of "#", that number with another bit. */
typedef struct Kind {
    const char *name, *from, *to;
    bool groups;   /* of sm_90a; the others, which take a second build, are planted under `whole` */
    size_t sure;   /* a place where it is found: planted in every run */
    double least;  /* the share of all places that is found */
    size_t one_in; /* of the places */
} Kind;
static const Kind kinds[] = {
    {"barrier", "bar.sync", "", true, 0, 0.75, 1},
    {"warp barrier", "bar.warp.sync", "", true, 0, 1, 1},
    {"wait of copies", "cp.async.wait_group", "", true, 0, 0.5, 1},
    {"group of copies", "cp.async.commit_group", "", true, 1, 0.6, 1},
    {"index", "add.s32", "#", true, 8, 0.2, 7},
    {"condition", "setp.lt.s32", "setp.le.s32", true, 0, 0.4, 1},
    {"wait of products", "wgmma.wait_group.sync.aligned", "", true, 1, 0.75, 1},
    {"fence of registers", "wgmma.fence.sync.aligned", "", true, 0, 1, 1},
    {"group of products", "wgmma.commit_group.sync.aligned", "", true, 0, 0.9, 1},
    {"fence of copies", "fence.proxy.async", "", true, 0, 1, 1},
    {"wait of boxes", "mbarrier.try_wait", "", true, 2, 0.5, 1},
    {"arrival", "mbarrier.arrive.shared", "", true, 0, 0.4, 1},
    {"descriptor", "or.b64", "#", true, 0, 0.9, 1},
    {"registers", "setmaxnreg.dec", "", true, 0, 1, 1},
    {"transposed", ".trans.shared.b16", ".shared.b16", false, 0, 1, 3},
    {"swizzle", "xor.b32", "#", false, 0, 0.9, 3},
};

typedef struct Subject {
    const Target *target;
    const char *text; /* NULL: what NVRTC makes */
    char *made;
    double **out, loss;
    size_t n;
    int64_t *size;
} Subject;

static void run_subject(Ctx *ctx, void *arg)
{
    Subject *s = arg;
    char why[512];
    Backend *b;
    Unit *u = load_text(ctx, model_text, model);
    Graph *g = step_gradient(u->model, u->train, true, ctx->program);
    RefBinding *bind = bind_all(ctx->program, g, u->model, 1, POSITIONS, 0.3);
    Agreement c = {.B = 1, .T = POSITIONS, .half = HALF_BF16};
    double **out = NEW_ARRAY(ctx->program, double *, g->ext.n + 1);
    PtxOptions how = {.target = s->target, .instead = s->text, .made = s->text ? NULL : &s->made};
    if (backend_ptx_open(ctx, &how, &b, why) != ST_OK)
        vwn_bug(ctx, "%s", why);
    run_on(ctx, b, g, &c, bind, 1, &out, &s->loss);
    s->n = g->ext.n;
    s->out = calloc(s->n, sizeof *s->out);
    s->size = calloc(s->n, sizeof *s->size);
    for (size_t i = 0; i < s->n; i++) {
        s->size[i] = g->ext.v[i].kind == EXT_GRAD ? bind[i].tensor->size : 0;
        s->out[i] = malloc((size_t)(s->size[i] + 1) * sizeof **s->out);
        memcpy(s->out[i], out[i], (size_t)s->size[i] * sizeof **s->out);
    }
}

static bool run(Subject *s)
{
    Ctx *ctx = ctx_new(NULL);
    const bool good = guarded(ctx, run_subject, s);
    ctx_free(ctx);
    return good;
}

static void forget(Subject *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->out[i]);
    free(s->out);
    free(s->size);
}

/* Is a number of b one that a has not, beyond what another order of sums makes? */
static bool differ(const Subject *a, const Subject *b)
{
    const double bound = 1e-4;
    bool all = fabs(a->loss - b->loss) <= bound * fabs(a->loss);
    for (size_t i = 0; i < a->n; i++) {
        double size = 0, worst = 0;
        for (int64_t k = 0; k < a->size[i]; k++) {
            const double d = fabs(a->out[i][k] - b->out[i][k]);
            size = fmax(size, fabs(a->out[i][k]));
            worst = d <= worst ? worst : isnan(d) ? INFINITY : d;
        }
        all = all && worst <= bound * size;
    }
    return !all;
}

/* Place n of what a kind changes: where it begins; NULL: there are fewer. A number is changed where one stands. */
static const char *place(const char *text, const Kind *k, size_t n)
{
    for (const char *p = text; (p = strstr(p, k->from)); p++) {
        const char *end = p + strcspn(p, ";");
        const bool number =
            end[-1] >= '0' && end[-1] <= '9' && memchr(p, ',', (size_t)(end - p)) && !strchr("%r", end[-2]);
        const char *last = end;
        while (last > p && last[-1] != ' ')
            last--;
        if ((k->to[0] != '#' || (number && (*last == '-' || (*last >= '0' && *last <= '9')))) && n-- == 0)
            return p;
    }
    return NULL;
}

static char *planted(const char *text, const Kind *k, size_t n)
{
    const char *at = place(text, k, n), *end = at + strcspn(at, ";");
    char *out = malloc(strlen(text) + 64), *to = out + (at - text);
    memcpy(out, text, (size_t)(at - text));
    if (k->to[0] == '#') {
        const char *last = end;
        while (last[-1] != ' ')
            last--;
        to += sprintf(to, "%.*s%lld", (int)(last - at), at, strtoll(last, NULL, 10) ^ 16);
    } else if (k->to[0]) {
        to += sprintf(to, "%s", k->to);
        end = at + strlen(k->from);
    } else {
        end++;
        if (!strncmp(at, "mbarrier.try_wait", 17)) /* it is told that it has not to wait */
            to += sprintf(to, "setp.eq.u32 p, 0, 0; ");
    }
    strcpy(to, end);
    return out;
}

static bool found_at(const Subject *base, const Kind *k, size_t n, const char **how)
{
    char *text = planted(base->made, k, n);
    Subject s = {.target = base->target, .text = text};
    const bool good = run(&s), seen = !good || differ(base, &s);
    *how = !good ? "a fault" : seen ? "other numbers" : "not found";
    if (good)
        forget(&s);
    free(text);
    return seen;
}

static void test_kind(Harness *h, const Subject *base, const Kind *k, bool all)
{
    size_t places = 0, planted_here = 0, found = 0;
    const char *how;
    while (place(base->made, k, places))
        places++;
    if (!CHECK_CASE(h, places > k->sure, k->name))
        return;
    for (size_t n = all ? 0 : k->sure; n < (all ? places : k->sure + 1); n += all ? k->one_in : 1) {
        planted_here++;
        found += found_at(base, k, n, &how);
        if (all)
            printf("place %zu of %s: %s\n", n, k->name, how);
    }
    printf("%-20s %3zu places, %zu of %zu found\n", k->name, places, found, planted_here);
    CHECK_CASE(h, (double)found >= (all ? k->least : 1) * (double)planted_here, k->name);
}

int main(int argc, char **argv)
{
    Harness h = {0};
    const bool all = argc > 1 || test_whole();
    Subject whole[2] = {{.target = &target_gpu}, {.target = &target_sm_90a}};
    char why[512];
    if (!ptx_possible(why)) {
        printf("skipped: %s\n", why);
        return PTX_SKIPPED;
    }
    if (!CHECK(&h, run(&whole[1]) && (!all || run(&whole[0]))))
        return harness_end(&h);
    for (size_t k = 0; k < COUNT_OF(kinds); k++)
        if ((kinds[k].groups || all) && (argc < 2 || !strcmp(argv[1], kinds[k].name)))
            test_kind(&h, &whole[kinds[k].groups], &kinds[k], all);
    return harness_end(&h);
}
