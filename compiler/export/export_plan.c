/* export_plan.c - a plan as C: where buffers lie, and one call per launch.
 *
 * In:  a Plan.     Out: the text of a function that runs it.
 * The one idea: nothing is decided here. A launch is printed with the numbers it has, one
 * argument per line, each with the name it has in the file.
 */
#include <inttypes.h>
#include <math.h>

#include "export_build.h"

/* ---- small texts ---- */

void export_comment(Buf *b, const char *text)
{
    for (const char *c = text ? text : ""; *c; c++) {
        bool control = (unsigned char)*c < 0x20;
        buf_putc(b, control ? ' ' : *c);
        if ((*c == '*' && c[1] == '/') || (*c == '/' && c[1] == '*'))
            buf_putc(b, ' ');
    }
}

void export_string(Buf *b, const char *text)
{
    buf_putc(b, '"');
    for (const char *c = text; *c; c++) {
        unsigned char u = (unsigned char)*c;
        if (u == '"' || u == '\\' || u == '?')
            buf_printf(b, "\\%c", u);
        else if (u < 0x20 || u >= 0x7f)
            buf_printf(b, "\\%03o", u);
        else
            buf_putc(b, (char)u);
    }
    buf_putc(b, '"');
}

void export_real(Buf *b, double v)
{
    if (isnan(v))
        buf_puts(b, "NAN");
    else if (isinf(v))
        buf_puts(b, v < 0 ? "-INFINITY" : "INFINITY");
    else if (v == 0 && signbit(v))
        buf_puts(b, "-0.0");
    else
        buf_number(b, v);
}

bool export_place(Buf *b, Ctx *ctx, Span at)
{
    if (!at.file)
        return false;
    LineCol where = source_position(ctx, at.file, at.lo);
    export_comment(b, source_base_name(source_path(ctx, at.file)));
    buf_printf(b, ":%u:%u", (unsigned)where.line, (unsigned)where.column);
    return true;
}

/* ---- formulas ---- */

/* The formulas of one function: an expression that is met again keeps its number. */
typedef struct Formulas {
    Buf *out;
    const Export *x;
    Map number; /* expression -> number */
    uintptr_t n;
} Formulas;

static Formulas formulas_new(Buf *out, const Export *x)
{
    Formulas f = {.out = out, .x = x};
    map_init(&f.number, x->arena);
    return f;
}

/* Evaluations on data of their own are not part of the folder. */
static void check_variable(const Formulas *f, HostVar v)
{
    const Train *t = f->x->how->train;
    if (v != HV_EVAL_LOSS || !t || (t->eval_data.kind == DATA_NONE && t->data.val > 0))
        return;
    ctx_raise(f->x->ctx, ST_INPUT,
              "a run-time number reads `eval.loss`, but the file evaluates on data that the "
              "emitted program does not read; keep a part of the text (`val = 5%%`), or emit "
              "with --infer");
}

static void put_operand(Formulas *f, const HostExpr *e)
{
    double value;
    if (host_is_const(e, &value)) {
        export_real(f->out, value);
    } else if (e->op == HO_VAR) {
        check_variable(f, e->var);
        buf_printf(f->out, "v[%s]", host_var_c(e->var));
    } else {
        buf_printf(f->out, "h%zu", (size_t)(uintptr_t)map_get(&f->number, (uintptr_t)e));
    }
}

/* `const double hN = ...;` for the expression and what it is made of. */
static void put_formula(Formulas *f, const HostExpr *e)
{
    const HostExpr *in[] = {e->a, e->b, e->c};
    if (e->op == HO_CONST || e->op == HO_VAR || map_get(&f->number, (uintptr_t)e))
        return;
    for (size_t i = 0; i < COUNT_OF(in); i++)
        if (in[i])
            put_formula(f, in[i]);
    *map_at(&f->number, (uintptr_t)e) = (void *)++f->n;
    buf_printf(f->out, "    const double h%zu = ", (size_t)f->n);
    for (const char *c = host_op_c(e->op); *c;) {
        size_t word = strspn(c, "abcdefghijklmnopqrstuvwxyz_"),
               other = strcspn(c + word, "abcdefghijklmnopqrstuvwxyz_");
        if (word == 1)
            put_operand(f, in[*c - 'a']);
        else
            buf_put(f->out, c, word);
        buf_put(f->out, c + word, other);
        c += word + other;
    }
    buf_puts(f->out, ";\n");
}

void export_formula(Buf *b, const Export *x, const char *name, const HostExpr *e)
{
    Formulas f = formulas_new(b, x);
    buf_printf(b, "static double %s(const double *v)\n{\n", name);
    put_formula(&f, e);
    if (!f.n)
        buf_puts(b, "    (void)v;\n");
    buf_puts(b, "    return ");
    put_operand(&f, e);
    buf_puts(b, ";\n}\n");
}

/* ---- buffers ---- */

typedef struct PlanPrinter {
    Buf *b;
    const Export *x;
    const ExportProgram *p;
    const Plan *plan;
    uint32_t *place; /* by buffer of the plan: its number in NAME_place */
    uint32_t n_places;
    Formulas formulas;
    bool of_rows; /* of a program for any sizes: so far all of them are of B T */
} PlanPrinter;

/* ---- numbers, or what they are for any sizes ---- */

static void put_number(PlanPrinter *q, PlanNumberAt *at, size_t i, size_t k)
{
    PlanForm form;
    if (!q->p->sizes) {
        buf_printf(q->b, "%" PRId64, at(q->plan, i, k));
        return;
    }
    if (!plan_form(q->p->sizes, at, i, k, &form))
        ctx_raise(q->x->ctx, ST_INPUT, "%s has a call whose sizes are no formula of sequences and positions: %s",
                  q->p->about, q->plan->launch[i].name ? q->plan->launch[i].name : "");
    plan_form_print(q->b, &form);
    q->of_rows = q->of_rows && plan_form_of_rows(&form);
}

static int64_t int_at(const Plan *p, size_t i, size_t k) { return p->launch[i].ints[k].value; }
static int64_t shift_at(const Plan *p, size_t i, size_t k) { return (int64_t)p->launch[i].shift[k]; }
static int64_t rows_at(const Plan *p, size_t i, size_t k) { return (void)k, p->launch[i].rows; }
static int64_t bytes_at(const Plan *p, size_t i, size_t k) { return (void)k, (int64_t)p->buffer[i].bytes; }

/* k: where the number stands in the launch's own arguments. */
static int64_t own_at(const Plan *p, size_t i, size_t k)
{
    int64_t n;
    memcpy(&n, (const char *)&p->launch[i] + k, sizeof n);
    return n;
}

static size_t number_of(const PlanPrinter *q, const Launch *l) { return (size_t)(l - q->plan->launch); }

/* "layer[1].attention.q_proj [B, T, 96]" */
static void put_value_name(PlanPrinter *q, const PlanBuffer *x)
{
    if (!q->p->sizes)
        export_comment(q->b, x->name ? x->name : "a value");
    if (x->shape) {
        buf_putc(q->b, ' ');
        shape_print(q->b, x->shape);
    } else {
        buf_puts(q->b, ", scratch");
    }
}

static void put_places(PlanPrinter *q)
{
    Buf *b = q->b;
    for (size_t i = 0; i < q->plan->n_buffer; i++)
        if (q->plan->buffer[i].ext < 0)
            q->place[i] = q->n_places++;
    if (!q->n_places)
        return;
    buf_printf(b,
               "/* Where its values lie in the arena, in bytes from its start. Two lie at one\n"
               " * place when the first is no longer needed. */\n"
               "static const uint64_t %s_place[] = {\n",
               q->p->name);
    for (size_t i = 0; i < q->plan->n_buffer; i++) {
        const PlanBuffer *x = &q->plan->buffer[i];
        if (x->ext >= 0)
            continue;
        buf_printf(b, "    %" PRIu64 ", /* %u: ", x->offset, (unsigned)q->place[i]);
        put_value_name(q, x);
        buf_puts(b, ", ");
        buf_count(b, (int64_t)x->bytes);
        buf_puts(b, " bytes */\n");
    }
    buf_puts(b, "};\n\n");
}

static void put_buffer(PlanPrinter *q, uint32_t buffer)
{
    const PlanBuffer *x = &q->plan->buffer[buffer];
    if (x->ext >= 0) {
        const Ext *e = &q->plan->ext[x->ext].ext;
        buf_printf(q->b, "T(%zu)", export_tensor(q->x, e->kind, e->name));
    } else {
        buf_printf(q->b, "V(%u)", (unsigned)q->place[buffer]);
    }
}

static void put_kind(PlanPrinter *q, const PlanBuffer *x)
{
    ExtKind kind = x->ext >= 0 ? q->plan->ext[x->ext].ext.kind : EXT_INPUT;
    if (kind == EXT_GRAD)
        buf_puts(q->b, "gradient of ");
}

/* The arguments that are memory, one a line: `end` stands behind all but the last. */
static void put_buffers(PlanPrinter *q, const Launch *l, const char *end)
{
    for (uint32_t k = 0; k < l->n_buffer; k++) {
        const PlanBuffer *x = &q->plan->buffer[l->buffer[k]];
        buf_puts(q->b, "            ");
        put_buffer(q, l->buffer[k]);
        if (l->shift[k]) {
            buf_puts(q->b, " + ");
            put_number(q, shift_at, number_of(q, l), k);
        }
        buf_printf(q->b, "%s /* %s", k + 1 < l->n_buffer ? "," : end, l->writes[k] ? "to " : "");
        put_kind(q, x);
        put_value_name(q, x);
        buf_puts(q->b, " */\n");
    }
}

/* ---- launches ---- */

/* The step, the first one or a key of random numbers. */
static void put_drawn(PlanPrinter *q, IntKind kind, Name site, int64_t each)
{
    if (kind == INT_STEP) {
        buf_puts(q->b, "run->step");
        return;
    }
    if (kind == INT_FIRST) {
        buf_printf(q->b, "run->first * %" PRId64, each);
        return;
    }
    buf_puts(q->b, "/* key of ");
    export_comment(q->b, site);
    bool of_eval = program_row(q->p->kind)->held_out;
    buf_printf(q->b, " */ (int64_t)0x%016" PRIx64 "u", philox_key(of_eval ? LOOP_NO_SEED : q->x->how->seed, site));
}

static void put_ints(PlanPrinter *q, const Launch *l)
{
    size_t begin = q->b->n;
    if (!l->n_int)
        return;
    buf_puts(q->b, "        const int64_t n[] = {");
    for (uint32_t k = 0; k < l->n_int; k++) {
        const LaunchInt *x = &l->ints[k];
        if (k)
            buf_putc(q->b, ',');
        if (q->b->n - begin > 80 || x->kind == INT_SEED) {
            begin = q->b->n;
            buf_puts(q->b, "\n           ");
        }
        buf_puts(q->b, k ? " " : "");
        if (x->past && q->p->sizes)
            buf_puts(q->b, "past");
        else if (x->kind == INT_CONST)
            put_number(q, int_at, number_of(q, l), k);
        else
            put_drawn(q, x->kind, x->site, x->value);
    }
    buf_puts(q->b, "};\n");
}

static void put_scalars(PlanPrinter *q, const Launch *l)
{
    size_t begin = q->b->n;
    if (!l->n_scalar)
        return;
    buf_puts(q->b, "        const double s[] = {");
    for (uint32_t k = 0; k < l->n_scalar; k++) {
        const LaunchScalar *x = &l->scalars[k];
        if (k)
            buf_putc(q->b, ',');
        if (q->b->n - begin > 72) {
            begin = q->b->n;
            buf_puts(q->b, "\n           ");
        }
        buf_puts(q->b, k ? " " : "");
        if (x->host >= 0)
            put_operand(&q->formulas, q->plan->host[x->host]);
        else
            export_real(q->b, x->value);
    }
    buf_puts(q->b, "};\n");
}

static void put_kernel(PlanPrinter *q, const Launch *l)
{
    if (l->n_buffer) {
        buf_puts(q->b, "        void *const p[] = {\n");
        put_buffers(q, l, "");
        buf_puts(q->b, "        };\n");
    }
    put_ints(q, l);
    put_scalars(q, l);
    buf_puts(q->b, "        ");
    if (q->p->sizes) {
        buf_printf(q->b, "rows(run, %s, ", q->plan->kernel[l->kernel].name);
        put_number(q, rows_at, number_of(q, l), 0);
        buf_puts(q->b, ", rows_at_once(");
        put_number(q, rows_at, number_of(q, l), 0);
        buf_printf(q->b, ", %" PRId64 ")", l->grain);
    } else {
        export_target(q->x)->put_call(q->b, &q->plan->kernel[l->kernel], l);
    }
    buf_printf(q->b, ", %s, %s, %s);\n", l->n_buffer ? "p" : "NULL", l->n_int ? "n" : "NULL",
               l->n_scalar ? "s" : "NULL");
}

static void put_flag(PlanPrinter *q, const char *name, bool set)
{
    if (set)
        buf_printf(q->b, ".%s = true, ", name);
}

/* One of the numbers of a launch's own arguments; `offset`: of it in the launch. */
static void put_own(PlanPrinter *q, const Launch *l, const char *before, size_t offset)
{
    buf_puts(q->b, before);
    put_number(q, own_at, number_of(q, l), offset);
}

static void put_matmul(PlanPrinter *q, const Launch *l)
{
    const PlanMatmul *m = &l->matmul;
    buf_puts(q->b, "        const Product how = {");
    put_flag(q, "transpose_a", m->transpose_a);
    put_flag(q, "transpose_b", m->transpose_b);
    put_flag(q, "accumulate", m->accumulate);
    if (m->half)
        buf_printf(q->b, ".bytes = %d, .type = %d /* %s */, ", half_bytes(m->half), half_info(m->half)->blas,
                   half_word(m->half));
    put_flag(q, "rounded", m->rounded);
    put_own(q, l, ".m = ", offsetof(Launch, matmul.m));
    put_own(q, l, ", .n = ", offsetof(Launch, matmul.n));
    put_own(q, l, ", .k = ", offsetof(Launch, matmul.k));
    put_own(q, l, ",\n                             .lda = ", offsetof(Launch, matmul.lda));
    put_own(q, l, ", .ldb = ", offsetof(Launch, matmul.ldb));
    put_own(q, l, ", .ldc = ", offsetof(Launch, matmul.ldc));
    put_own(q, l, ", .batch = ", offsetof(Launch, matmul.batch));
    if (m->batch > 1) {
        put_own(q, l, ",\n                             .step_a = ", offsetof(Launch, matmul.step_a));
        put_own(q, l, ", .step_b = ", offsetof(Launch, matmul.step_b));
        put_own(q, l, ", .step_c = ", offsetof(Launch, matmul.step_c));
    }
    buf_puts(q->b, "};\n        product(run, &how,\n");
    put_buffers(q, l, ");");
}

static void put_expert(PlanPrinter *q, const Launch *l)
{
    const PlanExpert *e = &l->expert;
    buf_puts(q->b, "        const ExpertProduct how = {");
    put_flag(q, "weights", e->what == EXPERT_DW);
    put_flag(q, "transpose_w", e->transpose_w);
    put_flag(q, "x_per_pair", e->x_per_pair);
    put_own(q, l, "\n            .tokens = ", offsetof(Launch, expert.tokens));
    put_own(q, l, ", .choices = ", offsetof(Launch, expert.choices));
    put_own(q, l, ", .experts = ", offsetof(Launch, expert.experts));
    put_own(q, l, ", .in = ", offsetof(Launch, expert.in));
    put_own(q, l, ", .out = ", offsetof(Launch, expert.out));
    buf_puts(q->b, "};\n        expert_product(run, &how,\n");
    put_buffers(q, l, ");");
}

static void put_copy(PlanPrinter *q, const Launch *l)
{
    buf_puts(q->b, "        copy_parts(run, ");
    put_number(q, rows_at, number_of(q, l), 0);
    put_own(q, l, ", ", offsetof(Launch, copy.bytes));
    put_own(q, l, ", ", offsetof(Launch, copy.from));
    put_own(q, l, ", ", offsetof(Launch, copy.to));
    buf_puts(q->b, ",\n");
    put_buffers(q, l, ");");
}

static void (*const put_of_kind[LAUNCH_KINDS])(PlanPrinter *, const Launch *) = {
#define LAUNCH(ID, name, ...) [LAUNCH_##ID] = put_##name,
#include "compiler/plan/launches.def"
#undef LAUNCH
};

static void put_launch(PlanPrinter *q, size_t i)
{
    const Launch *l = &q->plan->launch[i];
    buf_printf(q->b, "    { /* %zu. ", i + 1);
    if (!q->p->sizes) { /* else it is of several modules */
        export_comment(q->b, l->name && *l->name ? l->name : q->p->name);
        buf_puts(q->b, l->span.file ? ", " : "");
        export_place(q->b, q->x->ctx, l->span);
    }
    buf_puts(q->b, " */\n");
    put_of_kind[l->kind](q, l);
    buf_puts(q->b, "    }\n");
}

/* ---- the program ---- */

static void put_head(PlanPrinter *q)
{
    const Plan *plan = q->plan;
    buf_printf(q->b, "/* ---- %s: %s ----\n * ", q->p->name, q->p->about);
    buf_count(q->b, plan->B);
    buf_puts(q->b, " sequences of ");
    buf_count(q->b, plan->T);
    buf_printf(q->b, " positions; %zu calls, %zu kernels; ", plan->n_launch, plan->n_kernel);
    buf_count(q->b, (int64_t)plan->arena_bytes);
    buf_puts(q->b, " bytes of the arena. */\n\n");
}

static bool put_formulas_of(PlanPrinter *q, bool any, int32_t host)
{
    double value;
    if (host < 0 || host_is_const(q->plan->host[host], &value))
        return any;
    if (!any)
        buf_puts(q->b, "    const double *const v = run->vars;\n");
    put_formula(&q->formulas, q->plan->host[host]);
    return true;
}

/* The formulas that launches read, before the first of them. */
static void put_formulas(PlanPrinter *q)
{
    const Plan *plan = q->plan;
    bool any = false;
    for (size_t i = 0; i < plan->n_number; i++)
        any = put_formulas_of(q, any, plan->number[i].host);
    for (size_t i = 0; i < plan->n_launch; i++)
        for (uint32_t k = 0; k < plan->launch[i].n_scalar; k++)
            any = put_formulas_of(q, any, plan->launch[i].scalars[k].host);
}

/* What a GPU's kernels read of this run. */
static void put_numbers(PlanPrinter *q)
{
    const Plan *plan = q->plan;
    if (!plan->n_number)
        return;
    buf_puts(q->b, "    const Number number[] = {\n");
    for (size_t i = 0; i < plan->n_number; i++) {
        const PlanNumber *x = &plan->number[i];
        buf_puts(q->b, x->host >= 0 ? "        {.single = (float)" : "        {.whole = ");
        if (x->host >= 0) {
            put_operand(&q->formulas, plan->host[x->host]);
        } else if (x->kind == INT_PLACE) {
            buf_puts(q->b, "(int64_t)(uintptr_t)(");
            put_buffer(q, x->buffer);
            if (x->bits)
                buf_printf(q->b, " + %" PRIu64, x->bits);
            buf_putc(q->b, ')');
        } else if (x->kind == INT_CONST) {
            buf_printf(q->b, "%" PRId64, (int64_t)x->bits);
        } else {
            put_drawn(q, x->kind, x->site, (int64_t)x->bits);
        }
        buf_puts(q->b, "},\n");
    }
    buf_puts(q->b, "    };\n    device_put(run, ");
    put_buffer(q, plan->numbers);
    buf_puts(q->b, ", number, sizeof number);\n");
}

/* The first calls, which round weights that come from a file; they read no number of the run. */
static void put_round(PlanPrinter *q)
{
    buf_printf(q->b,
               "/* Weights as products read them, in 16 bits: made once, since later ones are the update's. */\n"
               "static void %s_round(Run *run)\n{\n",
               q->p->name);
    if (q->n_places)
        buf_printf(q->b, "    const uint64_t *const place = %s_place;\n    (void)place;\n", q->p->name);
    for (size_t i = 0; i < q->plan->n_cast; i++)
        put_launch(q, i);
    buf_puts(q->b, "}\n\n");
}

static void put_run(PlanPrinter *q)
{
    Buf *b = q->b;
    const unsigned bit = 1u << (unsigned)(q->p - q->x->program);
    if (q->plan->n_cast)
        put_round(q);
    buf_printf(b, "static void %s_run(Run *run)\n{\n", q->p->name);
    if (q->n_places)
        buf_printf(b, "    const uint64_t *const place = %s_place;\n", q->p->name);
    put_formulas(q);
    put_numbers(q);
    if (q->plan->n_cast)
        buf_printf(b, "    if (!(run->rounded & %uu))\n        %s_round(run);\n    run->rounded |= %uu;\n", bit,
                   q->p->name, bit);
    for (size_t i = q->plan->n_cast; i < q->plan->n_launch; i++)
        put_launch(q, i);
    buf_puts(b, "}\n\n");
}

/* A tensor, such as logits, is read where it lies. */
static int64_t numbers_of(const PlanResult *r) { return r->rank == 1 ? r->d[0] : 1; }

/* Every number is a result of its own; those of a vector are called NAME[1], NAME[2], ... */
static void put_results(PlanPrinter *q)
{
    Buf *b = q->b;
    const Plan *plan = q->plan;
    int64_t all = 0, at = 0;
    for (size_t i = 0; i < plan->n_result; i++)
        all += numbers_of(&plan->result[i]);
    if (all > EXPORT_RESULTS)
        ctx_raise(q->x->ctx, ST_INPUT,
                  "the %s program has %lld results, more than the %d that an "
                  "emitted program takes",
                  q->p->name, (long long)all, (int)EXPORT_RESULTS);
    buf_printf(b, "static void %s_results(const Run *run, double *out)\n{\n", q->p->name);
    if (!all)
        buf_puts(b, "    (void)run;\n    (void)out;\n");
    else if (q->n_places)
        buf_printf(b, "    const uint64_t *const place = %s_place;\n    (void)place;\n", q->p->name);
    for (size_t i = 0; i < plan->n_result; i++) {
        const PlanResult *r = &plan->result[i];
        for (int64_t k = 0; k < numbers_of(r); k++) {
            buf_printf(b, "    out[%lld] = %s_at(run, ", (long long)at++, r->dtype == DT_INT ? "integer" : "real");
            put_buffer(q, r->buffer);
            buf_printf(b, ", %lld); /* ", (long long)k);
            export_comment(b, r->name);
            buf_puts(b, " */\n");
        }
    }
    buf_puts(b, "}\n\n");
    if (all)
        buf_printf(b, "static const char *const %s_names[] = {", q->p->name);
    at = 0;
    for (size_t i = 0; i < plan->n_result; i++) {
        const PlanResult *r = &plan->result[i];
        for (int64_t k = 0; k < numbers_of(r); k++) {
            buf_puts(b, at++ ? ", " : "");
            export_string(b,
                          numbers_of(r) == 1 ? r->name : name_printf(q->x->ctx, "%s[%lld]", r->name, (long long)k + 1));
        }
    }
    buf_printf(
        b,
        "%sstatic const Program %s_program = {\n    .name = \"%s\",\n    .run = %s_run,\n    .results = %s_results,\n",
        all ? "};\n" : "", q->p->name, q->p->name, q->p->name, q->p->name);
    if (all)
        buf_printf(b, "    .result = %s_names,\n", q->p->name);
    buf_printf(b, "    .n_results = %lld};\n\n", (long long)all);
}

/* ---- a function for any sizes ---- */

typedef struct ValueLife { /* from which call to which */
    uint32_t first, last;
} ValueLife;

/* Gives each value in the arena its number, in the order of the calls that first touch them. Returns the buffers in this order. */
static uint32_t *number_values(PlanPrinter *q, ValueLife *life)
{
    const Plan *plan = q->plan;
    uint32_t *buffer = NEW_ARRAY(q->x->arena, uint32_t, plan->n_buffer + 1);
    bool *seen = NEW_ARRAY(q->x->arena, bool, plan->n_buffer + 1);
    for (size_t i = 0; i < plan->n_launch; i++)
        for (uint32_t k = 0; k < plan->launch[i].n_buffer; k++) {
            uint32_t x = plan->launch[i].buffer[k];
            if (plan->buffer[x].ext >= 0)
                continue;
            if (!seen[x]) {
                seen[x] = true;
                life[q->n_places].first = (uint32_t)i;
                buffer[q->n_places] = x;
                q->place[x] = q->n_places++;
            }
            life[q->place[x]].last = (uint32_t)i;
        }
    return buffer;
}

/* How many bytes each value in the arena takes, and from which call to which it lives. */
static void put_values(PlanPrinter *q)
{
    Buf *b = q->b;
    ValueLife *life = NEW_ARRAY(q->x->arena, ValueLife, q->plan->n_buffer + 1);
    const uint32_t *buffer = number_values(q, life);
    buf_printf(b, "static void %s_bytes(int64_t B, int64_t T, uint64_t *bytes)\n{\n    (void)B;\n    (void)T;\n",
               q->p->name);
    if (!q->n_places)
        buf_puts(b, "    (void)bytes;\n");
    for (uint32_t i = 0; i < q->n_places; i++) {
        buf_printf(b, "    bytes[%u] = (uint64_t)(", (unsigned)i);
        put_number(q, bytes_at, buffer[i], 0);
        buf_puts(b, "); /* ");
        put_value_name(q, &q->plan->buffer[buffer[i]]);
        buf_puts(b, " */\n");
    }
    buf_printf(b, "}\n\nstatic const Life %s_life[] = {", q->p->name);
    for (uint32_t i = 0; i < q->n_places; i++)
        buf_printf(b, "{%u, %u}, ", (unsigned)life[i].first, (unsigned)life[i].last);
    buf_puts(b, "{0, 0}};\n\n");
}

bool export_function(Buf *b, const Export *x, const ExportProgram *p)
{
    PlanPrinter q = {.b = b, .x = x, .p = p, .plan = p->plan, .of_rows = true};
    q.place = NEW_ARRAY(x->arena, uint32_t, p->plan->n_buffer + 1);
    q.formulas = formulas_new(b, x);
    put_values(&q);
    buf_printf(
        b,
        "static void %s_run(Run *run, char *const *tensor, char *arena, const uint64_t *place, int64_t B, int64_t T, "
        "int past)\n{\n    (void)tensor;\n    (void)arena;\n    (void)place;\n    (void)B;\n    (void)T;\n    "
        "(void)past;\n",
        p->name);
    for (size_t i = 0; i < p->plan->n_launch; i++)
        put_launch(&q, i);
    size_t read = 0;
    while (read < x->tensor.n && x->tensor.v[read].kind != EXT_STEP && x->tensor.v[read].kind != EXT_GRAD)
        read++;
    buf_printf(b, "}\n\nstatic const Function %s = {%zu, %zu, %u, %s_bytes, %s_life, %s_run};\n\n", p->name,
               x->tensor.n, read, (unsigned)q.n_places, p->name, p->name, p->name);
    return q.of_rows;
}

void export_program(Buf *b, const Export *x, const ExportProgram *p)
{
    PlanPrinter q = {.b = b, .x = x, .p = p, .plan = p->plan};
    q.place = NEW_ARRAY(x->arena, uint32_t, p->plan->n_buffer + 1);
    q.formulas = formulas_new(b, x);
    put_head(&q);
    put_places(&q);
    put_run(&q);
    put_results(&q);
}
