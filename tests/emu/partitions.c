/* partitions.c - sums over rows that take two or four of them at a time, whose partitions have any number of rows, in the emulator.
 *
 * In:  a kernel with a sum over rows of products of eight terms, whose result lies by rows or by columns, for partitions of few and of all rows.
 * Out: `N passed, N failed`; 77 without a C++ compiler. Each partial sum is what a loop over its rows adds up in float64, to the bits that two
 *      bf16 parts of a factor keep, in the four ways of the emulator; rows that are left over at the end are added once and alone.
 */
#include "compiler/plan/plan.h"
#include "backend_emu.h"

#include "support/half.h"
#include "support/harness.h"
#include "support/kernel_text.h"
#include "support/models.h"

#include "compiler/gpu/device.h"
#include "compiler/kernel/kernel_text.h"
#include "compiler/portable/device_call.h"
#include "compiler/print/emit.h"
#include "compiler/plan/pipeline.h"

#include <math.h>

enum { ROWS = 32, WIDE = 512, TERMS = 8, FEW = 16, SUMS = WIDE * FEW, X = TERMS * WIDE, C = TERMS * FEW };

/* A factor of two parts has lost 2^-17 of each number at most. */
static const double BOUND = 2.5 * 0x1p-17;
static const int chunks[] = {1, 2, 3, 4, 5, 6, 7, 9, ROWS};

static const struct Form {
    const char *at; /* of the sum */
    int rows;       /* at one time */
} forms[] = {{"b3[16*i3 + i4]", 4}, {"b3[i3 + {512}*i4]", 2}};

typedef struct Numbers {
    _Alignas(16) float c[ROWS * C];
    _Alignas(16) uint16_t x[ROWS * X];
    _Alignas(16) float sum[ROWS * SUMS], d[ROWS * C];
} Numbers;

static void make_numbers(Numbers *n)
{
    uint64_t state = 11;
    memset(n, 0xff, sizeof *n); /* what is not written is no number */
    for (int i = 0; i < ROWS * C; i++)
        n->c[i] = (float)harness_random(&state);
    for (int i = 0; i < ROWS * X; i++)
        n->x[i] = to_half(harness_random(&state), HALF_BF16);
}

/* The largest error of all partial sums, of the sum of absolute terms. */
static double error_of(const Numbers *n, int chunk, bool by_rows)
{
    double worst = 0;
    for (int first = 0; first < ROWS; first += chunk)
        for (int at = 0; at < SUMS; at++) {
            double want = 0, size = 0;
            int column = by_rows ? at % FEW : at / WIDE, row = by_rows ? at / FEW : at % WIDE;
            for (int r = first; r < first + chunk && r < ROWS; r++)
                for (int k = 0; k < TERMS; k++) {
                    double c = n->c[r * C + k * FEW + column], x = of_half(n->x[r * X + k * WIDE + row], HALF_BF16);
                    want += x * c * c;
                    size += fabs(x * c * c);
                }
            double off = fabs(n->sum[first / chunk * SUMS + at] - want) / size;
            worst = isnan(off) ? INFINITY : fmax(worst, off);
        }
    for (int i = 0; i < ROWS * C; i++) /* two roundings to float32 of numbers of the tile that the products read */
        if (!(fabs(n->d[i] - pow(n->c[i], 4)) <= 3 * 0x1p-24 * pow(n->c[i], 4)))
            return INFINITY;
    return worst;
}

static Kernel *mapped_kernel(Ctx *ctx, int chunk, const struct Form *form)
{
    const char *parts = arena_printf(ctx->program, "parts %d of %d", (ROWS + chunk - 1) / chunk, chunk);
    const char *text = text_with(ctx, text_with(ctx, sum_of_rows, "parts 8 of 4", parts), "b3[16*i3 + i4]", form->at);
    KernelTexts *all = kernels_read(ctx, ctx->program, source_add(ctx, "test", text, strlen(text)));
    if (!all)
        vwn_bug(ctx, "a kernel that cannot be read");
    Kernel k = *all->kernel.v[0].kernel, *mapped = arena_alloc(ctx->program, sizeof *mapped);
    k.target = &target_gpu;
    k.device.shared = target_gpu.shared;
    k.device.tensor = true;
    pipeline_map(mapped, &k, NULL);
    return mapped;
}

static int64_t argument(Ctx *ctx, const Kernel *k, const KArgument *x)
{
    switch (x->kind) {
    case KA_DIM: return ix_dim_at(k->ix, x->dim);
    case KA_VALUE: return x->value;
    case KA_CHUNK: return k->chunk;
    case KA_PART: return SUMS;
    default: vwn_bug(ctx, "an argument that this kernel does not have");
    }
}

static const char *launch(Ctx *ctx, const Kernel *k, const Printed *text, const EmuKernel *call, Numbers *x,
                          const EmuOptions *how)
{
    void *p[5], *const tensor[] = {NULL, x->c, x->x, x->sum, x->d};
    int64_t n[32], rows = k->partitions;
    CallArguments arguments;
    if (text->buffer.n > COUNT_OF(p) || text->ints.n > COUNT_OF(n))
        vwn_bug(ctx, "a kernel with more arguments than it has buffers and sizes");
    for (size_t i = 0; i < text->buffer.n; i++)
        p[i] = tensor[text->buffer.v[i]];
    for (size_t i = 0; i < text->ints.n; i++)
        n[i] = argument(ctx, k, &text->ints.v[i]);
    call_arguments(&arguments, p, text->buffer.n, n, text->ints.n, NULL, 0, &rows);
    return emu_launch(call, arguments.at, how, (uint32_t)plan_blocks(&text->grid, rows), text->grid.threads,
                      plan_shared_bytes(&text->grid, n));
}

typedef struct Job {
    Harness *h;
    int chunk;
    const struct Form *form;
} Job;

static void run(Ctx *ctx, void *arg)
{
    static Numbers x, first;
    const Job *j = arg;
    Harness *h = j->h;
    Kernel *k = mapped_kernel(ctx, j->chunk, j->form);
    Printed text;
    pipeline_print(&text, k, &dialect_cuda, "", NULL);
    EmuText of = {.name = text.name, .text = text.text, .length = text.length};
    EmuKernel call;
    size_t length;
    char why[512];
    const char *prelude = prelude_cuda(ctx->program, &length);
    if (!CHECK(h, k->product.n == 1 && k->product.v[0].rows == j->form->rows) ||
        !CHECK(h, emu_compile(prelude, length, &of, 1, &call, why))) {
        printf("%s\n", text.text);
        return;
    }
    for (int way = 0; way < 4; way++) {
        EmuOptions how = {.descending = way % 2, .lazy = way / 2, .blocks_max = way % 2 ? 3 : 0};
        make_numbers(&x);
        const char *said = launch(ctx, k, &text, &call, &x, &how);
        if (!way)
            first = x;
        double worst = error_of(&x, j->chunk, j->form == &forms[0]);
        printf("partitions of %2d rows, %d at a time, %d: %.1e of the sum of absolute terms%s%s\n", j->chunk,
               j->form->rows, way, worst, said ? ", " : "", said ? said : "");
        CHECK(h, !said && worst < BOUND);
        CHECK_CASE(h, memcmp(&x, &first, sizeof x) == 0, "orders differ");
    }
}

int main(void)
{
    Harness h = {0};
    if (emu_missing())
        return EMU_SKIPPED;
    for (size_t i = 0; i < COUNT_OF(chunks) * COUNT_OF(forms); i++) {
        Ctx *ctx = ctx_new(NULL);
        CHECK(&h, guarded(ctx, run, &(Job){&h, chunks[i / COUNT_OF(forms)], &forms[i % COUNT_OF(forms)]}));
        ctx_free(ctx);
    }
    return harness_end(&h);
}
