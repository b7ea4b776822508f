/* idle.c - threads of a device have work: no short loop is shared out among them once for each round of a long one, and each has
 * several elements of a flat kernel.
 *
 * In:  examples whose kernels have small matrices times rows, and one of them with twelve streams, all programs of a run at their own size.
 * Out: `N passed, N failed`. Of an extent of 16 and less and a longer one threads share the longer one: 128 threads at
 *      3 numbers, 1,024 times, took 28 times as long as 128 at 1,024, three times, in a (2,3) connection of D = 2,048 (predicted).
 * The one idea: texts are read as they are printed, loops by their indentation; nothing is asked of the lowering.
 */
#include "compiler/file/check_unit.h"
#include "support/examples.h"
#include "support/harness.h"

#include "compiler/plan/plan.h"
#include "compiler/report/report.h"

enum { DEEP = 24, SHORT = 16 };
typedef struct Open {
    int indent;
    char name[24];
    bool serial, spread,
        shared; /* over a size, by all; over a literal of at most SHORT, by each thread its part; over anything, so */
} Open;
typedef struct Idle {
    Harness *h;
    const char *file;
    const char *const *set;
    int nests, idle;  /* loops in loops that threads share; short ones that they share in each round of a long one */
    int sums, lonely; /* launches of sums over rows whose threads share each row; of one partition for all rows */
    int flat, hasty;  /* launches of flat kernels of several blocks; whose threads have less than four elements each */
} Idle;

/* "    for (int32_t i3 = 0; i3 < n2; i3++) {" */
static bool read_loop(const char *line, Open *o)
{
    char type[16], begin[24], again[24], end[24];
    *o = (Open){.indent = (int)strspn(line, " ")};
    if (sscanf(line + o->indent, "for (%15s %23s = %23[^; ] %*[^;]; %23s < %23[^;]", type, o->name, begin, again,
               end) != 5 &&
        sscanf(line + o->indent, "for (%15s %23s = %23[^;]; %23s < %23[^;]", type, o->name, begin, again, end) != 5)
        return false;
    long rounds = strtol(end, NULL, 10);
    o->serial = !strcmp(begin, "0") && end[0] == 'n';
    o->shared = !strncmp(begin, "thread", 6);
    o->spread = o->shared && rounds > 0 && rounds <= SHORT;
    return true;
}

static void look_at(Idle *x, const char *text)
{
    Open open[DEEP];
    int n = 0;
    for (const char *p = text, *end; *p; p = *end ? end + 1 : end) {
        char line[400];
        end = p + strcspn(p, "\n");
        snprintf(line, sizeof line, "%.*s", (int)(end - p), p);
        int indent = (int)strspn(line, " ");
        while (n && indent <= open[n - 1].indent && line[indent])
            n--;
        Open loop;
        bool shared = false, serial = false;
        if (n == DEEP || !read_loop(line, &loop))
            continue;
        for (int i = 0; i < n; i++) {
            shared = shared || open[i].shared;
            serial = serial || open[i].serial;
        }
        open[n++] = loop;
        x->nests += shared || (serial && loop.shared);
        x->idle += serial && loop.spread;
    }
}

static void look_at_sums(Idle *x, const Plan *p, const Launch *l)
{
    const char *text = l->kind == LAUNCH_KERNEL ? p->kernel[l->kernel].text : "";
    if (l->items || !strstr(text, "threads a partition") || strstr(text, "A thread a row"))
        return;
    x->sums++;
    x->lonely += l->rows == 1;
}

/* Elements of the first buffer that is written, by blocks of 256 threads; launches that are one have theirs in memory. */
static void look_at_launch(Idle *x, const Plan *p, const Launch *l)
{
    static const char flat[] = "A thread a row; a partition of rows in a block of 256.";
    if (l->kind != LAUNCH_KERNEL || l->items || l->rows < 2 || !strstr(p->kernel[l->kernel].text, flat))
        return;
    for (uint32_t i = 0; i < l->n_buffer; i++) {
        const PlanBuffer *b = &p->buffer[l->buffer[i]];
        if (!l->writes[i])
            continue;
        x->flat++;
        x->hasty += b->bytes / plan_item_bytes(b) < 4 * 256 * (uint64_t)(l->rows - 1);
        return;
    }
}

static void look_at_file(Ctx *ctx, void *arg)
{
    static const char *const programs[] = {"train", "update", "eval", "predict"};
    Idle *x = arg;
    const char *text = trained_text(ctx, example_path(ctx, x->file), false);
    CheckOptions how = {.path = "-", .text = text, .text_length = strlen(text), .set = x->set};
    while (x->set[how.n_set])
        how.n_set++;
    Unit *u = check_file(ctx, &how);
    CHECK_CASE(x->h, !diag_errors(ctx) && u->model, x->file);
    for (size_t i = 0; u->model && i < COUNT_OF(programs); i++) {
        /* of two sequences: where each counts or not, as in an evaluation, it is a partition of its own */
        const Plan *p = report_device_plan(u, programs[i], 2, &target_gpu, NULL);
        for (size_t k = 0; k < p->n_kernel; k++)
            look_at(x, p->kernel[k].text);
        for (size_t k = 0; k < p->n_launch; k++)
            look_at_launch(x, p, &p->launch[k]), look_at_sums(x, p, &p->launch[k]);
    }
}

int main(void)
{
    static const struct {
        const char *file, *set[3];
    } of[] = {{"quickstart.vwn", {NULL}},
              {"34_lora.vwn", {NULL}},
              {"19_over_encoding.vwn", {NULL}},
              {"35_convert.vwn", {NULL}},
              {"14_own_connection.vwn", {NULL}},
              {"16_transformer_pp.vwn", {"conn=hyper(n = 12, dynamic = true)", "L=2", NULL}}};
    static const char bad[] = "        for (int32_t i3 = 0; i3 < n2; i3++) {\n            for (int32_t i4 = thread; i4 "
                              "< 3; i4 += THREADS) {\n"
                              "                t7[3 * i3 + i4] += x24;\n            }\n        }\n";
    static const char good[] = "        for (int32_t i3 = thread * 4; i3 < n2; i3 += THREADS * 4) {\n            for "
                               "(int32_t i4 = 0; i4 < 3; i4++) {\n"
                               "                x24 += x23;\n            }\n        }\n";
    Harness h = {0};
    Idle of_bad = {.h = &h}, of_good = {.h = &h};
    look_at(&of_bad, bad);
    look_at(&of_good, good);
    CHECK(&h, of_bad.idle == 1 && of_bad.nests == 1 && of_good.idle == 0 && of_good.nests == 1);
    int nests = 0, flat = 0, sums = 0;
    for (size_t i = 0; i < COUNT_OF(of); i++) {
        Idle x = {.h = &h, .file = of[i].file, .set = of[i].set};
        Ctx *ctx = ctx_new(NULL);
        CHECK_CASE(&h, guarded(ctx, look_at_file, &x), x.file);
        printf("%-24s %3d loops in loops, %d of idle threads; %3d flat launches, %d of hasty threads; %3d sums over "
               "rows, %d of one partition\n",
               x.file, x.nests, x.idle, x.flat, x.hasty, x.sums, x.lonely);
        CHECK_CASE(&h, x.idle == 0 && x.hasty == 0 && x.lonely == 0, x.file);
        flat += x.flat;
        sums += x.sums;
        nests += x.nests;
        ctx_free(ctx);
    }
    CHECK(&h, nests > 20 && flat > 5 && sums > 0);
    return harness_end(&h);
}
