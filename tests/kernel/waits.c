/* waits.c - where the threads of a row with products wait for each other, and what is done together for that.
 *
 * In:  kernels on tensor cores, each in two forms that differ in one place.
 * Out: `N passed, N failed`. Products whose sums are shares of warps have a barrier between them though they touch nothing else in
 *      common. Loops of few elements are one where a round reads what the same round has put into an array, and two with a barrier
 *      where it reads what others have stored in a tile. A sum over rows takes four rows at a time where the next row begins where the
 *      sum of the one before ends, two where its result lies the other way round, and one where they lie apart. Two products that are added are
 *      one where one of them is by both parts of a factor. No kernel has a race.
 * When: quick.
 */
#include "support/harness.h"
#include "support/kernel_text.h"
#include "support/models.h"

#include "compiler/gpu/device.h"
#include "compiler/kernel/kernel_text.h"
#include "compiler/plan/pipeline.h"

typedef struct Case {
    const char *name, *text, *from, *to; /* what stands in the other form instead; NULL: this is all */
    int barriers, loops,
        together; /* barriers of a partition, too; loops that stand in no other; rows that one product is of */
    int products; /* statements; 0: any number */
} Case;

/* Two products of one tile with matrices in memory, of few numbers each. */
static const char two_products[] = "vwn kernels 1 B=2 T=16\n\n"
                                   "kernel \"rows\"  # two\n"
                                   "rows B*T device\n"
                                   "buffer 0 read write tile real 4096 \"x\"\n"
                                   "buffer 1 read real 131072 \"x\"\n"
                                   "buffer 2 read bf16 4096 \"u\"\n"
                                   "buffer 3 read bf16 4096 \"v\"\n"
                                   "buffer 4 read write tile real 64 \"y\"\n"
                                   "buffer 5 read write tile real 64 \"z\"\n"
                                   "buffer 6 write real 2048 \"z\"\n"
                                   "var i2 loop 4096\n"
                                   "var i3 loop 8\n"
                                   "var i4 loop 8\n"
                                   "var i5 loop 512\n"
                                   "var i6 loop 64\n"
                                   "root 0 store b0 over i2\n"
                                   "root 1 store b6 over i6\n"
                                   "begin\n"
                                   "  rows\n"
                                   "    loop i2 simd\n"
                                   "      x1 real = load b1[{4096}*r + i2]\n"
                                   "      x2 real = mul x1 x1\n"
                                   "      store 0 b0[i2] = x2\n"
                                   "    end\n"
                                   "    product b4[8*i3 + i4] = b0[{512}*i3 + i5] * b2[{512}*i4 + i5] over i3, i4, i5\n"
                                   "    product b5[8*i3 + i4] = b0[{512}*i3 + i5] * b3[{512}*i4 + i5] over i3, i4, i5\n"
                                   "    loop i6 simd\n"
                                   "      x3 real = load b4[i6]\n"
                                   "      x4 real = load b5[i6]\n"
                                   "      x5 real = mul x3 x4\n"
                                   "      store 1 b6[{64}*r + i6] = x5\n"
                                   "    end\n"
                                   "  end\n";

/* Two loops over the rows of a factor, which share an array. */
static const char two_loops[] = "vwn kernels 1 B=2 T=16\n\n"
                                "kernel \"rows\"  # loops\n"
                                "rows B*T device\n"
                                "buffer 0 read write tile real 64 \"a\"\n"
                                "buffer 1 read real 2048 \"a\"\n"
                                "buffer 2 read bf16 4096 \"u\"\n"
                                "buffer 3 read write tile real 4096 \"y\"\n"
                                "buffer 4 write real 2048 \"z\"\n"
                                "buffer 5 write real 131072 \"y\"\n"
                                "var i2 loop 8\n"
                                "var i3 loop 8\n"
                                "var i4 loop 512\n"
                                "var i5 loop 4096\n"
                                "root 0 store b0 over i2, i3\n"
                                "root 1 store b4 over i2, i3\n"
                                "root 2 store b5 over i5\n"
                                "begin\n"
                                "  array t0 real over i2\n"
                                "  rows\n"
                                "    loop i2\n"
                                "      x1 real = load b1[{64}*r + 8*i2]\n"
                                "      x2 real = mul x1 x1\n"
                                "      put t0 x2\n"
                                "      loop i3 simd\n"
                                "        x3 real = load b1[{64}*r + 8*i2 + i3]\n"
                                "        x4 real = mul x3 x2\n"
                                "        store 0 b0[8*i2 + i3] = x4\n"
                                "      end\n"
                                "    end\n"
                                "    loop i2\n"
                                "      get t0 x2\n"
                                "      loop i3 simd\n"
                                "        x5 real = load b1[{64}*r + 8*i3 + i2]\n"
                                "        x6 real = mul x5 x2\n"
                                "        store 1 b4[{64}*r + 8*i2 + i3] = x6\n"
                                "      end\n"
                                "    end\n"
                                "    product b3[{512}*i2 + i4] = b0[8*i2 + i3] * b2[{512}*i3 + i4] over i2, i4, i3\n"
                                "    loop i5 simd\n"
                                "      x7 real = load b3[i5]\n"
                                "      x8 real = mul x7 x7\n"
                                "      store 2 b5[{4096}*r + i5] = x8\n"
                                "    end\n"
                                "  end\n";

/* A product of few terms and one by both parts of a matrix in memory, which are added. */
static const char two_sums[] =
    "vwn kernels 1 B=2 T=16\n\n"
    "kernel \"rows\"  # sums\n"
    "rows B*T device\n"
    "buffer 0 read write tile real 128 \"d\"\n"
    "buffer 1 read real 4096 \"d\"\n"
    "buffer 2 read bf16 16384 \"parts\"\n"
    "buffer 3 read write tile real 32 \"a\"\n"
    "buffer 4 read real 1024 \"a\"\n"
    "buffer 5 read write tile real 2048 \"h\"\n"
    "buffer 6 read real 65536 \"h\"\n"
    "buffer 7 read write tile real 4096 \"x\"\n"
    "buffer 8 read write tile real 4096 \"y\"\n"
    "buffer 9 write real 131072 \"y\"\n"
    "var i2 loop 128\n"
    "var i3 loop 8\n"
    "var i4 loop 512\n"
    "var i5 loop 16\n"
    "var i6 loop 4\n"
    "var i7 loop 32\n"
    "var i8 loop 2048\n"
    "var i9 loop 4096\n"
    "root 0 store b0 over i2\n"
    "root 1 store b3 over i7\n"
    "root 2 store b5 over i8\n"
    "root 3 store b9 over i9\n"
    "begin\n"
    "  rows\n"
    "    loop i2 simd\n"
    "      x1 real = load b1[{128}*r + i2]\n"
    "      store 0 b0[i2] = x1\n"
    "    end\n"
    "    loop i7 simd\n"
    "      x2 real = load b4[{32}*r + i7]\n"
    "      store 1 b3[i7] = x2\n"
    "    end\n"
    "    loop i8 simd\n"
    "      x3 real = load b6[{2048}*r + i8]\n"
    "      store 2 b5[i8] = x3\n"
    "    end\n"
    "    product b7[{512}*i3 + i4] = b3[4*i3 + i6] * b5[{512}*i6 + i4] over i3, i4, i6\n"
    "    product b8[{512}*i3 + i4] = b0[16*i3 + i5] * b2[{32}*i4 + i5] over i3, i4, i5 in two parts\n"
    "    loop i9 simd\n"
    "      x4 real = load b7[i9]\n"
    "      x5 real = load b8[i9]\n"
    "      x6 real = add x4 x5\n"
    "      store 3 b9[{4096}*r + i9] = x6\n"
    "    end\n"
    "  end\n";

static const Case cases[] = {
    {"two products of few numbers", two_products, NULL, NULL, 3, 2, 0, 2},
    {"loops whose rounds share an array", two_loops, NULL, NULL, 2, 2, 0, 0},
    {"loops of which one reads what others stored", two_loops, "load b1[{64}*r + 8*i3 + i2]", "load b0[8*i3 + i2]", 2,
     3, 0, 0},
    {"rows that follow each other", sum_of_rows, NULL, NULL, 3, 2, 4, 1},
    {"a sum that lies the other way round", sum_of_rows, "b3[16*i3 + i4]", "b3[i3 + {512}*i4]", 3, 2, 2, 1},
    {"rows that lie apart", sum_of_rows, "b2[{4096}*r", "b2[{8192}*r", 3, 2, 0, 1},
    {"two products that are added", two_sums, NULL, NULL, 2, 4, 0, 1},
    {"two products that are multiplied", two_sums, "add x4 x5", "mul x4 x5", 4, 4, 0, 2},
};

static void look(Harness *h, Ctx *ctx, const Case *c)
{
    const char *text = c->from ? text_with(ctx, c->text, c->from, c->to) : c->text;
    KernelTexts *all = kernels_read(ctx, ctx->program, source_add(ctx, "test", text, strlen(text)));
    if (!CHECK_CASE(h, all && all->kernel.n == 1, c->name)) {
        Buf b = buf_new(ctx->program);
        if (diag_count(ctx))
            diag_render(ctx, &b, diag_get(ctx, 0), false);
        printf("%s", b.n ? b.s : "");
        return;
    }
    Kernel k = *all->kernel.v[0].kernel, mapped;
    k.target = &target_gpu;
    k.device.shared = target_gpu.shared;
    k.device.tensor = true;
    pipeline_map(&mapped, &k, NULL);
    int barriers = 0, loops = 0, together = 0, products = 0, depth = 0;
    for (size_t i = 0; i < mapped.stmt.n; i++) {
        const KStmt *s = &mapped.stmt.v[i];
        barriers += s->kind == KS_BARRIER;
        products += s->kind == KS_PRODUCT;
        loops += s->kind == KS_LOOP && depth == 1 + (mapped.part != 0);
        depth += kernel_opens(s);
        depth -= s->kind == KS_END;
    }
    for (size_t i = 0; i < mapped.product.n; i++)
        together = mapped.product.v[i].rows > together ? mapped.product.v[i].rows : together;
    printf("%s: %d barriers, %d loops, %d rows at one time, %d products\n", c->name, barriers, loops, together,
           products);
    CHECK_CASE(h, barriers == c->barriers, "barriers");
    CHECK_CASE(h, loops == c->loops, "loops");
    CHECK_CASE(h, !c->products || products == c->products, "products");
    CHECK_CASE(h, together == c->together, "rows at one time");
    CHECK_CASE(h, kernel_race(&mapped) == SIZE_MAX, "a race");
}

typedef struct Job {
    Harness *h;
    const Case *c;
} Job;

static void run(Ctx *ctx, void *arg)
{
    const Job *j = arg;
    look(j->h, ctx, j->c);
}

int main(void)
{
    Harness h = {0};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Ctx *ctx = ctx_new(NULL);
        CHECK_CASE(&h, guarded(ctx, run, &(Job){&h, &cases[i]}), cases[i].name);
        ctx_free(ctx);
    }
    return harness_end(&h);
}
