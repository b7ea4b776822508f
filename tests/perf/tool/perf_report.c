/* perf_report.c - see perf_report.h. Launches of one kernel with equal sizes are counted once. */
#include "perf_report.h"

#include <stdio.h>

#include "compiler/report/report.h"

/* Launches that are alike: a line. */
typedef struct PerfLine {
    const Launch *launch;
    const Plan *plan;
    const char *program, *kernel, *path;
    int64_t times, runs;
    Perf perf;
} PerfLine;
typedef struct Code {
    const void *cubin;
    const char *text;
} Code;
typedef struct Report {
    const PerfReport *r;
    VEC(PerfLine) line;
    VEC(Code) text;
    SassKernel *sass; /* by PerfReport.code; n 0: not read yet */
} Report;

/* ---- machine code ---- */

static const char *text_of(Report *p, const CudaCode *code)
{
    char why[512];
    for (size_t i = 0; i < p->text.n; i++)
        if (p->text.v[i].cubin == code->cubin)
            return p->text.v[i].text;
    const char *text = disassemble(p->r->arena, p->r->disassembler, code->cubin, code->size, why);
    if (!text)
        ctx_raise(arena_ctx(p->r->arena), ST_ENVIRONMENT, "%s", why);
    vec_push(p->r->arena, &p->text, (Code){code->cubin, text});
    return text;
}

static size_t code_of(const Report *p, Name kernel)
{
    size_t i = 0;
    while (i < p->r->n_code && p->r->code[i].kernel != kernel)
        i++;
    if (i == p->r->n_code)
        vwn_bug(arena_ctx(p->r->arena), "a kernel was not compiled");
    return i;
}

static const SassKernel *sass_of(Report *p, size_t i)
{
    char why[256];
    SassKernel *s = &p->sass[i];
    const PerfCode *c = &p->r->code[i];
    const char *name = name_str(arena_ctx(p->r->arena), c->kernel);
    if (!s->n && !sass_read(p->r->arena, text_of(p, c->code), name, s, why))
        ctx_raise(arena_ctx(p->r->arena), ST_ENVIRONMENT, "%s", why);
    return s;
}

/* ---- counting ---- */

static bool same_ints(const Launch *a, const Launch *b)
{
    for (uint32_t i = 0; i < a->n_int; i++)
        if (a->ints[i].kind != b->ints[i].kind || a->ints[i].value != b->ints[i].value)
            return false;
    return true;
}

/* Of launches that are made as one the arguments lie in memory: they are alike where they do the same. */
static bool alike(const Launch *a, const Launch *b)
{
    if (a->kind != b->kind || a->rows != b->rows || a->bytes != b->bytes || a->flops != b->flops ||
        a->items != b->items)
        return false;
    return a->kind == LAUNCH_KERNEL
               ? a->kernel == b->kernel && a->n_int == b->n_int && (a->items || same_ints(a, b))
               : !memcmp(&a->matmul, &b->matmul, sizeof a->matmul) && !memcmp(&a->copy, &b->copy, sizeof a->copy);
}

static void count(Report *p, PerfMemory *memory, PerfLine *line)
{
    char why[256];
    const Launch *l = line->launch;
    if (l->kind != LAUNCH_KERNEL) {
        perf_library(p->r->gpu, l, &line->perf);
        return;
    }
    size_t i = code_of(p, line->plan->kernel[l->kernel].name);
    const SassKernel *s = sass_of(p, i);
    if (!perf_launch(p->r->arena, p->r->gpu, s, &p->r->code[i].code->facts, memory, l, &line->perf, why))
        ctx_raise(arena_ctx(p->r->arena), ST_ENVIRONMENT, "%s of %s cannot be counted: %s", line->kernel, line->path,
                  why);
}

static void add_launch(Report *p, const PerfProgram *program, const Launch *l)
{
    Ctx *ctx = arena_ctx(p->r->arena);
    for (size_t i = 0; i < p->line.n; i++)
        if (p->line.v[i].plan == program->plan && alike(p->line.v[i].launch, l)) {
            p->line.v[i].times++;
            if (l->kind == LAUNCH_KERNEL && perf_keeps(program->plan, l) && /* later launches read what it stores */
                !perf_keep_again(program->memory, p->line.v[i].launch, l))
                count(
                    p, program->memory,
                    &(PerfLine){
                        .launch = l, .plan = program->plan, .kernel = p->line.v[i].kernel, .path = p->line.v[i].path});
            return;
        }
    const char *kernel = l->kind == LAUNCH_KERNEL   ? name_str(ctx, program->plan->kernel[l->kernel].name)
                         : l->kind == LAUNCH_MATMUL ? arena_printf(p->r->arena, "product %lld x %lld x %lld%s",
                                                                   (long long)l->matmul.m, (long long)l->matmul.n,
                                                                   (long long)l->matmul.k, l->matmul.half ? "" : " f32")
                                                    : "copy";
    PerfLine line = {.launch = l,
                     .plan = program->plan,
                     .program = program->name,
                     .kernel = kernel,
                     .times = 1,
                     .runs = program->runs};
    line.path = l->name ? name_str(ctx, l->name) : "";
    count(p, program->memory, &line);
    vec_push(p->r->arena, &p->line, line);
}

/* ---- tables ---- */

static const char *per(Arena *a, double count, double of, int digits)
{
    return of > 0 ? arena_printf(a, "%.*f", digits, count / of) : "-";
}

static const char *percent(Arena *a, double share) { return arena_printf(a, "%.0f %%", 100 * share); }

static void put_kernels(Report *p, Buf *out)
{
    static const char *const head[] = {"kernel", "times",     "us",     "ms",      "limit",
                                       "copy",   "peak",      "blocks", "at once", "waves",
                                       "tail",   "registers", "shared", "program", "computes"};
    Arena *a = p->r->arena;
    Table t = {.arena = a, .columns = COUNT_OF(head)};
    table_texts(&t, head, COUNT_OF(head));
    for (size_t i = 0; i < p->line.n; i++) {
        const PerfLine *l = &p->line.v[i];
        const Perf *x = &l->perf;
        bool own = l->launch->kind == LAUNCH_KERNEL;
        table_text(&t, l->kernel);
        table_count(&t, l->times);
        table_right(&t, arena_printf(a, "%.1f", 1e6 * x->seconds));
        table_right(&t, arena_printf(a, "%.2f", 1e3 * x->seconds * (double)l->times));
        table_text(&t, perf_limit_name[x->limit]);
        table_right(&t, percent(a, x->copy_share));
        table_right(&t, x->peak_share > 0 ? percent(a, x->peak_share) : "-");
        table_count(&t, x->blocks);
        table_count(&t, x->resident);
        table_right(&t, own ? arena_printf(a, "%.2f", x->waves) : "-");
        table_right(&t, own ? arena_printf(a, "%.2f", x->tail) : "-");
        table_count(&t, x->registers);
        table_count(&t, x->shared);
        table_text(&t, l->program);
        table_text(&t, l->path);
    }
    table_print(out, &t);
}

/* Instructions of threads for each number that moves, of warps for each row, and what memory is asked for. */
static void put_counts(Report *p, Buf *out)
{
    static const char *const head[] = {"kernel",  "rows",    "a row",  "a number",  "fp32",    "integer", "convert",
                                       "special", "shuffle", "load",   "store",     "shared",  "tensor",  "barrier",
                                       "control", "other",   "cycles", "conflicts", "sectors", "wanted",  "partial"};
    static const int shown[] = {SASS_FP32,  SASS_INTEGER, SASS_CONVERT, SASS_SPECIAL, SASS_SHUFFLE, SASS_LOAD,
                                SASS_STORE, SASS_SHARED,  SASS_TENSOR,  SASS_BARRIER, SASS_CONTROL};
    Arena *a = p->r->arena;
    Table t = {.arena = a, .columns = COUNT_OF(head)};
    table_texts(&t, head, COUNT_OF(head));
    for (size_t i = 0; i < p->line.n; i++) {
        const PerfLine *l = &p->line.v[i];
        const Perf *x = &l->perf;
        const GpuCounts *c = &x->counts;
        double rows = (double)l->launch->rows, numbers = x->numbers / 32;
        int digits = c->slots < 10 * rows ? 2 : 0;
        if (l->launch->kind != LAUNCH_KERNEL)
            continue;
        table_text(&t, l->kernel);
        table_count(&t, l->launch->rows);
        table_right(&t, per(a, c->slots, rows, digits));
        table_right(&t, per(a, c->slots, numbers, 1));
        for (size_t k = 0; k < COUNT_OF(shown); k++)
            table_right(&t, per(a, c->class[shown[k]], rows, digits));
        table_right(&t, per(a, c->class[SASS_FP64] + c->class[SASS_LOCAL] + c->class[SASS_UNKNOWN], rows, digits));
        table_right(&t, per(a, c->wavefronts, rows, digits));
        table_right(&t, per(a, c->conflicts, rows, digits));
        table_right(&t, per(a, 32 * (c->sectors_missed + c->sectors_written), x->bytes, 2));
        table_right(&t, per(a, c->bytes_read + c->bytes_written, x->bytes, 2));
        table_right(&t, per(a, 100 * c->partial, c->slots, 0));
    }
    table_print(out, &t);
}

typedef struct Sum {
    double products, kernels;
    int64_t launches;
} Sum;

static Sum sum_of(const Report *p, bool step, const char *program)
{
    Sum s = {0};
    for (size_t i = 0; i < p->line.n; i++) {
        const PerfLine *l = &p->line.v[i];
        double times = (double)l->times * (step ? (double)l->runs : 1);
        if (program && strcmp(program, l->program))
            continue;
        *(l->launch->kind == LAUNCH_MATMUL ? &s.products : &s.kernels) += times * l->perf.seconds;
        s.launches += l->times * (step ? l->runs : 1);
    }
    return s;
}

static void put_sum(Buf *out, const Gpu *gpu, const char *what, Sum s)
{
    double launching = gpu->launch * (double)s.launches;
    buf_printf(out, "%s: %.2f ms predicted: products %.2f, kernels %.2f, %lld launches %.2f\n", what,
               1e3 * (s.products + s.kernels + launching), 1e3 * s.products, 1e3 * s.kernels, (long long)s.launches,
               1e3 * launching);
}

/* ---- what was assumed ---- */

static void put_model(const Report *p, Buf *out)
{
    const Gpu *g = p->r->gpu;
    buf_printf(out,
               "predicted for %s (%s), not measured: %d multiprocessors at %.2f GHz, copies at %.2f TB/s, products at "
               "most at %.0f TFLOP/s\n",
               g->people, g->arch, g->multiprocessors, g->clock / 1e9, g->copy / 1e12, g->reached / 1e12);
    buf_printf(out,
               "limits of a multiprocessor join by a norm of exponent %.1f, that with memory and the second cache by "
               "one of %.0f; %.1f of 4 "
               "instructions issued a cycle, %.1f us a kernel, %.1f us from one to the next\n",
               g->together, g->beyond, g->issue, 1e6 * g->ramp, 1e6 * g->launch);
    if (!strcmp(g->name, "b200"))
        buf_puts(out, "times of a B200 are compared with published ones of softmax alone\n");
}

static void put_guesses(const Report *p, Buf *out)
{
    for (size_t i = 0; i < p->line.n; i++)
        if (p->line.v[i].perf.counts.cut > 0)
            buf_printf(
                out, "%s: its blocks have so many instructions that they were left before their end: it takes longer\n",
                p->line.v[i].kernel);
    for (size_t i = 0; i < p->line.n; i++)
        if (p->line.v[i].perf.counts.unknown > 0)
            buf_printf(out, "%s: what %s gives is not known here, and was taken to be 1\n", p->line.v[i].kernel,
                       p->line.v[i].perf.counts.guess);
}

static void put_text(Report *p, Buf *out)
{
    put_model(p, out);
    put_kernels(p, out);
    buf_puts(out, "instructions of a warp, for each row; cycles: of shared memory, conflicts among them; sectors, "
                  "wanted: bytes of 32-byte "
                  "sectors behind the first cache, and that threads ask for, by those that have to move; partial: "
                  "percent issued for some threads only\n");
    put_counts(p, out);
    put_guesses(p, out);
    bool step = false;
    for (size_t i = 0; i < p->r->n_program; i++) {
        put_sum(out, p->r->gpu, p->r->program[i].name, sum_of(p, false, p->r->program[i].name));
        step = step || p->r->program[i].runs > 0;
    }
    if (step)
        put_sum(out, p->r->gpu, "step", sum_of(p, true, NULL));
}

/* ---- JSON ---- */

static void json_member(Buf *out, const char *name, double x)
{
    buf_printf(out, ",\"%s\":", name);
    buf_json_number(out, x);
}

static void put_json(Report *p, Buf *out)
{
    const Gpu *g = p->r->gpu;
    for (size_t i = 0; i < p->line.n; i++) {
        const PerfLine *l = &p->line.v[i];
        const Perf *x = &l->perf;
        const GpuCounts *c = &x->counts;
        const struct {
            const char *name;
            double value;
        } of[] = {{"rows", (double)l->launch->rows},
                  {"blocks", (double)x->blocks},
                  {"threads", x->threads},
                  {"registers", x->registers},
                  {"shared", (double)x->shared},
                  {"resident", x->resident},
                  {"waves", x->waves},
                  {"tail", x->tail},
                  {"bytes", x->bytes},
                  {"numbers", x->numbers},
                  {"instructions", c->slots},
                  {"partial", c->partial},
                  {"shared_cycles", c->wavefronts},
                  {"bank_conflicts", c->conflicts},
                  {"sectors_read", c->sectors_read},
                  {"sectors_written", c->sectors_written},
                  {"sectors_missed", c->sectors_missed},
                  {"bytes_read", c->bytes_read},
                  {"bytes_written", c->bytes_written},
                  {"operand_cycles", c->operands},
                  {"lines", c->lines},
                  {"multiply_adds", c->tensor},
                  {"grouped", c->grouped},
                  {"barriers", c->barriers},
                  {"block_cycles", c->cycles},
                  {"unknown", c->unknown},
                  {"cut", c->cut},
                  {"copy_share", x->copy_share},
                  {"peak_share", x->peak_share},
                  {"seconds", x->seconds}};
        buf_printf(out,
                   "{\"v\":1,\"event\":\"predicted\",\"gpu\":\"%s\",\"arch\":\"%s\",\"program\":\"%s\",\"kernel\":",
                   g->name, g->arch, l->program);
        buf_json_string(out, l->kernel, strlen(l->kernel));
        buf_puts(out, ",\"path\":");
        buf_json_string(out, l->path, strlen(l->path));
        buf_printf(out, ",\"times\":%lld,\"runs\":%lld,\"limit\":\"%s\"", (long long)l->times, (long long)l->runs,
                   perf_limit_name[x->limit]);
        for (size_t k = 0; k < COUNT_OF(of); k++)
            json_member(out, of[k].name, of[k].value);
        buf_puts(out, ",\"classes\":{");
        for (int k = 0; k < SASS_CLASSES; k++) {
            buf_printf(out, "%s\"%s\":", k ? "," : "", sass_class_name[k]);
            buf_json_number(out, c->class[k]);
        }
        buf_puts(out, "},\"units\":{");
        for (int k = 1; k < UNIT_COUNT; k++) {
            buf_printf(out, "%s\"%s\":", k > 1 ? "," : "", sass_unit_name[k]);
            buf_json_number(out, c->unit[k]);
        }
        buf_puts(out, "},\"limits\":{");
        for (int k = 0; k < LIMIT_COUNT; k++) {
            buf_printf(out, "%s\"%s\":", k ? "," : "", perf_limit_name[k]);
            buf_json_number(out, x->of[k]);
        }
        buf_puts(out, "}");
        if (l->launch->kind == LAUNCH_MATMUL) {
            const PlanMatmul *m = &l->launch->matmul;
            buf_printf(out, ",\"product\":[%lld,%lld,%lld,%lld],\"half\":%s", (long long)m->m, (long long)m->n,
                       (long long)m->k, (long long)m->batch, m->half != HALF_NONE ? "true" : "false");
        }
        buf_puts(out, "}\n");
    }
    Sum s = sum_of(p, true, NULL);
    buf_printf(out, "{\"v\":1,\"event\":\"predicted_step\",\"gpu\":\"%s\",\"launches\":%lld", g->name,
               (long long)s.launches);
    json_member(out, "products", s.products);
    json_member(out, "kernels", s.kernels);
    json_member(out, "launching", g->launch * (double)s.launches);
    buf_puts(out, "}\n");
}

void perf_report(const PerfReport *r, Buf *out, bool json)
{
    Report p = {.r = r, .sass = NEW_ARRAY(r->arena, SassKernel, r->n_code + 1)};
    for (size_t i = 0; i < r->n_program; i++)
        for (size_t k = r->program[i].plan->n_cast; k < r->program[i].plan->n_launch; k++)
            if (r->program[i].plan->launch[k].rows || r->program[i].plan->launch[k].kind != LAUNCH_KERNEL)
                add_launch(&p, &r->program[i], &r->program[i].plan->launch[k]);
    (json ? put_json : put_text)(&p, out);
}
