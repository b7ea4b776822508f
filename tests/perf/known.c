/* known.c - small kernels whose counts anyone can tell, and integers computed again: machine code is counted as it runs.
 *
 * In:  known.cu; the compiler and the disassembler where they are, for three architectures (one, under the sanitizers); else what they gave once
 * (known.sass, of sm_90a with loops as they are: nvcc -cubin -arch=sm_90a -DONCE='_Pragma("unroll 1")' known.cu, then nvdisasm -c,
 * without directives and padding).
 * Out: `N passed, N failed`. The oracles: the source (so many multiply-adds, shuffles, stores, bytes), rules of banks and sectors,
 * and C, which computes the same integers.
 * When: quick, released.
 */
#include "nvrtc/cuda_texts.h"
#include "perf/tool/perf.h"
#include "support/drawn.h"

#include <math.h>
#include <stdlib.h>

typedef struct Known {
    Harness h;
    Arena *arena;
    const char *text;
    const char *arch;
    int number;
    const Cubin *cubin; /* NULL: the text is the recorded one */
} Known;

/* ---- walking ---- */

enum { STORES = 1 << 16 };
typedef struct Seen {
    uint64_t at[STORES];
    size_t n;
    unsigned bytes;
} Seen;

static uint64_t zeros(void *user, uint64_t address)
{
    (void)user;
    (void)address;
    return 0;
}

static void see(void *user, uint64_t address, unsigned bytes, bool writes)
{
    Seen *s = user;
    if (!writes)
        return;
    if (s->n < STORES)
        s->at[s->n] = address;
    s->n++;
    s->bytes = bytes;
}

static void see_reads(void *user, uint64_t address, unsigned bytes, bool writes) { see(user, address, bytes, !writes); }

static const GpuLatency latency = {5, 22, 24, 30, 41, 265, 600, 33, 25};

/* All blocks of a launch with these arguments; false, said, where it cannot be walked. */
static bool walk(Known *k, const char *kernel, uint32_t blocks, uint32_t threads, const uint64_t *argument, size_t n,
                 Seen *seen, GpuCounts *c)
{
    SassKernel code;
    char why[256];
    *c = (GpuCounts){0};
    seen->n = 0;
    if (!CHECK_CASE(&k->h, sass_read(k->arena, k->text, kernel, &code, why), why))
        return false;
    CHECK_CASE(&k->h, !code.unknown, code.unknown ? code.unknown : "");
    const CubinKernel *facts = k->cubin ? cubin_find(k->cubin, kernel) : NULL;
    GpuLaunch l = {.code = &code,
                   .arch = k->number,
                   .threads = threads,
                   .blocks = blocks,
                   .argument = argument,
                   .n_argument = n,
                   .constant = facts ? facts->constant : NULL,
                   .n_constant = facts ? facts->n_constant : 0,
                   .shared = 8192,
                   .frame = 256,
                   .cache = 65536,
                   .load = zeros,
                   .touch = see,
                   .toucher = seen,
                   .latency = latency,
                   .most = 10000000};
    for (uint32_t i = 0; i < blocks; i++)
        if (!CHECK_CASE(&k->h, gpu_run(k->arena, &l, i, c, NULL, why), why))
            return false;
    return CHECK_CASE(&k->h, c->unknown == 0, c->guess ? c->guess : "");
}

static uint64_t bits(int64_t x) { return (uint64_t)x; }
static const uint64_t X = 1ull << 36, Y = 2ull << 36;

/* ---- counts ---- */

static void test_copy(Known *k, Seen *s)
{
    GpuCounts c;
    const uint64_t a[] = {X, Y, 1000};
    if (!walk(k, "k_copy", 8, 128, a, 3, s, &c))
        return;
    bool each[1000] = {false};
    CHECK(&k->h,
          c.class[SASS_LOAD] == 32 && c.class[SASS_STORE] == 32 && c.bytes_read == 4000 && c.bytes_written == 4000);
    CHECK(&k->h, c.sectors_read == 125 && c.sectors_written == 125 && c.sectors_missed == 125 && s->n == 1000);
    for (size_t i = 0; i < s->n; i++)
        each[(s->at[i] - Y) / 4 % 1000] = true;
    for (size_t i = 0; i < 1000; i++)
        CHECK(&k->h, each[i]);
    const uint64_t four[] = {X, Y, 1000};
    if (!walk(k, "k_four", 2, 128, four, 3, s, &c))
        return;
    CHECK(&k->h,
          s->n == 1000 && s->bytes == 16 && c.bytes_read == 16000 && c.sectors_read == 500 && c.sectors_written == 500);
}

static void test_loops(Known *k, Seen *s)
{
    static const int64_t times[] = {0, 1, 3, 4, 5, 17, 1000};
    GpuCounts c;
    for (size_t i = 0; i < COUNT_OF(times); i++) {
        const uint64_t a[] = {X, bits(times[i])};
        if (!walk(k, "k_fma", 1, 128, a, 2, s, &c))
            return;
        CHECK(&k->h, c.class[SASS_FP32] == 4 * (double)times[i]);
        if (!walk(k, "k_mma", 1, 32, a, 2, s, &c))
            return;
        CHECK(&k->h, c.class[SASS_TENSOR] == (double)times[i] && c.tensor == 2048 * (double)times[i]);
        CHECK(&k->h, c.cycles >= 33 * (double)times[i]); /* each waits for the one before */
        if (k->number != 90)
            continue;
        if (!walk(k, "k_groups", 1, 128, a, 2, s, &c))
            return;
        /* of 64 x 64 x 16 each warp has a quarter; 64 columns, and once 64 rows, of 32 bytes come from shared memory; 32 cycles */
        double products = 2 * (double)times[i];
        CHECK(&k->h,
              c.class[SASS_TENSOR] == 4 * products && c.tensor == 64 * 64 * 16 * products && c.grouped == c.tensor);
        CHECK(&k->h, c.wavefronts == products * 64 * 32 / 128 * 1.5 && c.operands == c.wavefronts);
        CHECK(&k->h, c.cycles >= (32 + 33) * products && c.cycles < 2000 + 200 * products);
    }
}

static void test_shuffle(Known *k, Seen *s)
{
    GpuCounts c;
    const uint64_t a[] = {X, 0};
    if (!walk(k, "k_shuffle", 3, 128, a, 2, s, &c))
        return;
    CHECK(&k->h, c.class[SASS_SHUFFLE] == 3 * 4 * 5 && c.cycles >= 3 * 5 * 24 && s->n == 3 * 128);
    for (size_t i = 0; i < s->n; i++) {
        uint64_t t = i % 128, first = t / 32 * 32;
        CHECK(&k->h, s->at[i] == X + 4 * (32 * first + 496 + t));
    }
}

/* Of 32 threads with a stride in words, so many reach one bank. */
static void test_banks(Known *k, Seen *s)
{
    GpuCounts c;
    for (int stride = 0; stride <= 32; stride++) {
        const uint64_t a[] = {X, (uint64_t)stride};
        int most = 0;
        for (int bank = 0; bank < 32; bank++) {
            int words = 0;
            for (int i = 0; i < 32; i++) {
                bool first = true;
                for (int j = 0; j < i; j++)
                    first = first && j * stride % 1024 != i * stride % 1024;
                words += first && i * stride % 32 == bank;
            }
            most = words > most ? words : most;
        }
        if (!walk(k, "k_banks", 1, 32, a, 2, s, &c))
            return;
        CHECK(&k->h, c.class[SASS_SHARED] == 2 && c.class[SASS_BARRIER] == 1 && c.barriers == 1);
        CHECK(&k->h, c.wavefronts == 2 * most && c.conflicts == 2 * (most - 1) && c.operands == 0);
    }
}

static void test_turns(Known *k, Seen *s)
{
    GpuCounts c;
    for (int n = 0; n < 12; n++) {
        const uint64_t a[] = {Y, (uint64_t)n};
        size_t stores = 0;
        if (!walk(k, "k_turns", 1, 64, a, 2, s, &c))
            return;
        for (int lane = 0; lane < 64; lane++) {
            for (int i = lane; lane % 3 && i > 0; i /= 2)
                stores++;
            stores += (size_t)(lane % 3 ? 0 : lane % (n + 1)) + (size_t)n;
        }
        CHECK(&k->h, s->n == stores && c.partial > 0);
    }
}

/* ---- integers ---- */

static uint32_t high32(uint32_t a, uint32_t b) { return (uint32_t)((uint64_t)a * b >> 32); }
static int32_t high_signed(int32_t a, int32_t b) { return (int32_t)((int64_t)a * b >> 32); }

static uint64_t high64(uint64_t a, uint64_t b)
{
    uint64_t al = (uint32_t)a, ah = a >> 32, bl = (uint32_t)b, bh = b >> 32;
    uint64_t low = al * bl, m1 = ah * bl, m2 = al * bh;
    uint64_t carry = ((low >> 32) + (uint32_t)m1 + (uint32_t)m2) >> 32;
    return ah * bh + (m1 >> 32) + (m2 >> 32) + carry;
}

static uint32_t pick_bytes(uint32_t a, uint32_t b, uint32_t how)
{
    uint64_t all = (uint64_t)b << 32 | a;
    uint32_t out = 0;
    for (int i = 0; i < 4; i++)
        out |= (uint32_t)(all >> 8 * (how >> 4 * i & 7) & 255) << 8 * i;
    return out;
}

static uint32_t reversed(uint32_t x)
{
    uint32_t out = 0;
    for (int i = 0; i < 32; i++)
        out |= (x >> i & 1) << (31 - i);
    return out;
}

#define OR_ONE(x) ((x) ? (x) : 1)
static uint64_t as64(int64_t x) { return (uint64_t)x; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

/* What k_integers computes, in C. */
static void integers(int64_t a, int64_t b, int t, uint64_t r[20])
{
    int x = (int)a, z = (int)b;
    uint32_t u = (uint32_t)a + (uint32_t)t, v = (uint32_t)b;
    int64_t w = a + t, m = b;
    uint64_t p = (uint64_t)a * 3 + (uint64_t)t, q = (uint64_t)b;
    r[0] = as64((x + t) / OR_ONE(z));
    r[1] = as64((x - t) % OR_ONE(z));
    r[2] = u / OR_ONE(v);
    r[3] = u % OR_ONE(v);
    r[4] = as64(w / OR_ONE(m));
    r[5] = as64(w % OR_ONE(m));
    r[6] = p / OR_ONE(q);
    r[7] = p % OR_ONE(q);
    r[8] = (uint64_t)w * (uint64_t)m + as64(m >> (t & 63)) - ((uint64_t)w << (t & 31));
    r[9] = (p >> (t & 63)) ^ (q << (t & 63));
    r[10] = as64((int)least(x + t, z) / 4 + (int)most(x - t, z) / 4);
    r[11] = (uint64_t)__builtin_popcount(u ^ v) * 64 + (u ? (uint64_t)__builtin_clz(u) : 32) + reversed(u);
    r[12] = (uint64_t)(w < m) + 2 * (uint64_t)(w == m - t) + 4 * (uint64_t)(p <= q) + 8 * (uint64_t)(u > v) +
            16 * (uint64_t)(x + t != z);
    r[13] = high32(u, v) + as64(high_signed(x + t, z));
    r[14] = high64(p, q);
    r[15] = as64((x + t) >> (z & 31)) + (u >> (v & 31)) + (uint64_t)(uint32_t)(u << (v & 31));
    r[16] = pick_bytes(u, v, 0x3715) + (uint64_t)(u & 255) + as64((int8_t)v);
    r[17] = ((u & v) | (u & ~v & 0xff00ff)) ^ (v | (uint32_t)t);
    r[18] = as64(t < 40 && (x > z || w > 7) ? abs(x - t) : -abs(z + t));
    r[19] = (p < q ? p : q) + ((uint64_t)t > q % 1000 ? (uint64_t)t : q % 1000);
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void test_integers(Known *k, Seen *s)
{
    uint64_t state = 7;
    GpuCounts c;
    uint64_t *want = NEW_ARRAY(k->arena, uint64_t, 64 * 20);
    for (int round = 0; round < (SANITIZED ? 4 : 60); round++) {
        /* parts of 32 bits in 2^30, so that no sum of the source overflows; some are small or negative */
        int64_t a = (int64_t)(harness_random(&state) * (1 << 29)),
                b = (int64_t)(harness_random(&state) * (round % 3 ? 1 << 29 : 40));
        a += round % 2 ? (int64_t)(harness_random(&state) * 1000) * (1ll << 32) : 0;
        b += round % 4 == 1 ? (int64_t)(harness_random(&state) * 1000) * (1ll << 32) : 0;
        const uint64_t argument[] = {Y, bits(a), bits(b)};
        if (!walk(k, "k_integers", 1, 64, argument, 3, s, &c))
            return;
        for (int t = 0; t < 64; t++) {
            uint64_t r[20];
            integers(a, b, t, r);
            for (int i = 0; i < 20; i++)
                want[t * 20 + i] = Y + (r[i] ^ r[i] >> 31) % 1000003 * 64 + (uint64_t)t + (uint64_t)i * 100000000;
        }
        CHECK(&k->h, s->n == 64 * 20);
        qsort(s->at, 64 * 20, 8, by_number);
        qsort(want, 64 * 20, 8, by_number);
        for (int i = 0; i < 64 * 20; i++)
            if (!CHECK_CASE(&k->h, s->at[i] == want[i],
                            arena_printf(k->arena, "%s: result %llu of round %d: %llx, not %llx", k->arch,
                                         (unsigned long long)((want[i] - Y) / 100000000), round,
                                         (unsigned long long)s->at[i], (unsigned long long)want[i])))
                break;
    }
}

/* ---- the model ---- */

static bool same(double a, double b) { return fabs(a / b - 1) < 1e-9; }

/* Of counts that are known, times that anyone can compute. */
static void test_time(Known *k)
{
    Harness *h = &k->h;
    const Gpu *g = gpu_named("h100");
    CHECK(h, g && !gpu_named("h101") && perf_resident(g, 128, 128, 0) == 4 && perf_resident(g, 128, 32, 0) == 16 &&
                 perf_resident(g, 128, 32, 100 * 1024) == 2 && perf_resident(g, 1024, 64, 0) == 1 &&
                 perf_resident(g, 256, 168, 0) == 1 && perf_resident(g, 32, 16, 0) == 32);
    Perf p = {.blocks = 132 * 4, .threads = 128, .resident = 4, .bytes = 3e9};
    perf_time(g, &p);
    CHECK(h, p.waves == 1 && p.tail == 1 && p.limit == LIMIT_MEMORY && same(p.seconds, 1e-3 + g->ramp) &&
                 p.copy_share > 0.99);
    /* one block more is a wave more, of a block */
    Perf q = {.blocks = 132 * 4 + 1, .threads = 128, .resident = 4};
    q.counts.slots = 1e6 * (double)q.blocks;
    perf_time(g, &q);
    double block = 1e6 / g->issue / g->clock;
    CHECK(h, q.limit == LIMIT_ISSUE && same(q.seconds, 5 * block + g->ramp) && same(q.tail, 1.25 * 528 / 529));
    /* a block's own wait, once a wave */
    Perf r = {.blocks = 132 * 8, .threads = 128, .resident = 4};
    r.counts.cycles = 1755e3;
    perf_time(g, &r);
    CHECK(h, r.limit == LIMIT_LATENCY && same(r.seconds, 2e-3 + g->ramp));
    Perf m = {.blocks = 132, .threads = 128, .resident = 1};
    m.counts.tensor = 132 * g->lanes[UNIT_TENSOR] * 1755e3;
    perf_time(g, &m);
    CHECK(h, m.limit == LIMIT_TENSOR && same(m.seconds, 1e-3 + g->ramp) && m.peak_share > 0.5 && m.peak_share < 0.62);
    /* two limits that are alike join, a third beyond the multiprocessor as well; what a block waits for comes on top, shared by those
     * that are there */
    Perf both = m;
    both.counts.unit[UNIT_XU] = 132 * 1755e3 * 16 / 32;
    perf_time(g, &both);
    const double joined = 1e-3 * pow(2, 1 / g->together);
    CHECK(h, same(both.seconds, joined + g->ramp));
    both.bytes = joined * g->copy;
    perf_time(g, &both);
    CHECK(h, same(both.seconds, joined * pow(2, 1 / g->beyond) + g->ramp));
    m.counts.cycles = 1755e3 * 1.25;
    perf_time(g, &m);
    CHECK(h, same(m.seconds, 1.25e-3 + g->ramp));
    m.blocks = 132 * 4;
    m.resident = 4;
    m.counts.tensor *= 4;
    perf_time(g, &m);
    CHECK(h, same(m.seconds, 4e-3 + g->uncovered * 0.0625e-3 + g->ramp));
    /* products of warpgroups reach what the library does, unless their operands come slower */
    Perf w = {.blocks = 132, .threads = 128, .resident = 1};
    w.counts.tensor = w.counts.grouped = g->reached / 2 * 1e-3;
    perf_time(g, &w);
    CHECK(h, same(w.seconds, 1e-3 + g->ramp));
    w.counts.operands = w.counts.wavefronts = 132 * 1755e3 * 2;
    perf_time(g, &w);
    CHECK(h, same(w.seconds, 2e-3 + g->ramp));
}

/* Blocks with different work, of which some are walked: the counts are those of all of them. */
/* Integers that launches store: as many as are stored take memory, whatever tensors they lie in; also after a walk has given back its arena;
 * those of a launch that is alike are the same ones. */
static void test_pages(Known *k)
{
    enum { STORED = 100, APART = 8 * 610001, MOST = 2 << 20 };
    static const uint32_t which[] = {0, 1, 2};
    static const bool writes[] = {true};
    PlanBuffer buffer[3] = {{.ext = -1, .bytes = 8ull << 26, .dtype = DT_INT},
                            {.ext = -1, .bytes = 8ull << 26, .dtype = DT_INT},
                            {.ext = -1, .bytes = 8, .dtype = DT_INT}};
    Plan plan = {.buffer = buffer, .n_buffer = COUNT_OF(buffer)};
    Launch first = {.n_touched = 1, .buffer = which, .writes = writes}, again = first, other = first;
    again.buffer = which + 1;
    other.buffer = which + 2;
    Ctx *ctx = arena_ctx(k->arena);
    PerfMemory *m = perf_memory(k->arena, &plan, NULL);
    uint64_t before = ctx->taken, beside[STORED];
    perf_keep(m, &first);
    ArenaMark mark = arena_mark(k->arena);
    for (uint64_t i = 0; i < STORED; i++) {
        beside[i] = perf_load(m, perf_address(0) + i * APART + 8);
        perf_store(m, perf_address(0) + i * APART, 8, 1000 + i);
    }
    arena_reset(k->arena, mark);
    NEW_ARRAY(k->arena, uint8_t, 4 * STORED << 10);
    CHECK(&k->h, perf_keep_again(m, &first, &again) && !perf_keep_again(m, &first, &other));
    for (uint64_t i = 0; i < STORED; i++)
        CHECK(&k->h, perf_load(m, perf_address(0) + i * APART) == 1000 + i &&
                         perf_load(m, perf_address(1) + i * APART) == 1000 + i &&
                         perf_load(m, perf_address(0) + i * APART + 8) == beside[i] &&
                         perf_load(m, perf_address(2)) < 8);
    CHECK(&k->h, ctx->taken - before < MOST);
}

static void test_samples(Known *k)
{
    /* R0 = c[0x210] of the number of the block by c[0x218] from the end, R1 = what of it is below c[0x220]: so many rounds */
    static const char text[] =
        "\n.text.k:\n /*0000*/ S2R R0, SR_CTAID.X ;\n /*0010*/ LDC R2, c[0x0][0x210] ;\n /*0020*/ LDC R3, "
        "c[0x0][0x218] ;\n"
        " /*0030*/ LDC R4, c[0x0][0x220] ;\n /*0040*/ LOP3.LUT R1, R0, R2, RZ, 0xc0, !PT ;\n /*0050*/ IMAD R1, R1, R3, "
        "R4 ;\n"
        " /*0060*/ LDC R5, c[0x0][0x228] ;\n /*0070*/ ISETP.GE.AND P0, PT, R0, R5, PT ;\n /*0080*/ @P0 EXIT ;\n"
        ".L_1:\n /*0090*/ IADD3 R1, R1, -0x1, RZ ;\n /*00a0*/ ISETP.GT.AND P0, PT, R1, RZ, PT ;\n /*00b0*/ @P0 BRA "
        "`(.L_1) ;\n"
        " /*00c0*/ EXIT ;\n";
    static const struct {
        const char *what;
        uint32_t blocks;
        uint64_t mask, slope, first, end; /* rounds: (block & mask) * slope + first, of blocks below `end` */
        double off;
    } cases[] = {{"alike", 1000, 0, 0, 50, 1000, 1e-12},
                 {"causal, a head behind the other", 512, 31, 40, 40, 512, 1e-12},
                 {"causal, the longest first", 512, 31, (uint64_t)-40, 32 * 40, 512, 1e-12},
                 {"causal, a head", 32, 31, 100, 100, 32, 1e-12},
                 {"short ones, causal", 96, 31, 3, 3, 96, 1e-12},
                 {"a tenth ends at once", 640, 0, 0, 900, 576, 0.02},
                 {"most end at once", 6400, 0, 0, 900, 2050, 0.05},
                 {"a few, all walked", 5, 7, 11, 1, 4, 1e-12}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        if (SANITIZED && !test_whole() &&
            cases[i].blocks > 100) /* every block is walked: millions of rounds, in the other build */
            continue;
        SassKernel code;
        GpuCounts every = {0}, some;
        char why[256];
        const uint64_t argument[] = {cases[i].mask, cases[i].slope, cases[i].first, cases[i].end};
        GpuLaunch l = {.code = &code,
                       .arch = 90,
                       .threads = 32,
                       .blocks = cases[i].blocks,
                       .argument = argument,
                       .n_argument = 4,
                       .load = zeros,
                       .latency = latency,
                       .most = 10000000};
        if (!CHECK_CASE(&k->h, sass_read(k->arena, text, "k", &code, why), why))
            return;
        for (uint32_t b = 0; b < l.blocks; b++)
            if (!CHECK_CASE(&k->h, gpu_run(k->arena, &l, b, &every, NULL, why), why))
                return;
        if (!CHECK_CASE(&k->h, perf_walk(k->arena, &l, 6, &some, why), why))
            return;
        double off = fabs(some.slots / every.slots - 1), late = fabs(some.cycles * l.blocks / every.cycles - 1);
        CHECK_CASE(&k->h, off <= cases[i].off && late <= cases[i].off && some.unknown == 0,
                   arena_printf(k->arena, "%s: %g instructions instead of %g", cases[i].what, some.slots, every.slots));
        CHECK_CASE(&k->h,
                   perf_walk(k->arena, &l, 10000, &some, why) &&
                       (l.blocks > 100 || fabs(some.slots - every.slots) < 0.5),
                   cases[i].what);
    }
}

/* Texts that are none. */
static void test_refused(Known *k)
{
    static const char *const texts[] = {"",
                                        "\n.text.k:\n",
                                        "\n.text.k:\n /*0000*/ BRA `(.L_x_9) ;\n",
                                        "\n.text.k:\n /*0000*/ BRX R2 ;\n",
                                        "\n.text.k:\n.L_1:\n /*0000*/ BRA `(.L_1) ;\n",
                                        "\n.text.k:\n /*0000*/ NOP ;\n",
                                        "\n.text.k:\n /*0000*/ LDS R0, [0x7fffffff] ;\n /*0010*/ EXIT ;\n",
                                        "\n.text.k:\n /*0000*/ @ ;\n /*0010*/ FOO.BAR [[[, c[, desc[ ;\n"};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        SassKernel code;
        GpuCounts c = {0};
        char why[256];
        bool good = sass_read(k->arena, texts[i], "k", &code, why);
        GpuLaunch l = {
            .code = &code, .arch = 90, .threads = 32, .blocks = 1, .load = zeros, .latency = latency, .most = 1000};
        good = good && gpu_run(k->arena, &l, 0, &c, NULL, why);
        bool ends = !strstr(texts[i], "BRA `(.L_1)"); /* one that runs for ever is left, and said to be */
        CHECK_CASE(&k->h, ends ? !good && why[0] : good && c.cut == 1 && c.slots == 1000, texts[i]);
    }
}

/* What a compiler makes of a - (b << 7) in 64 bits: the carry of a number that is taken away is 1 where nothing is borrowed, as
 * where it is 0. */
static void test_borrow(Known *k, Seen *s)
{
    static const char text[] =
        "\n.text.k:\n /*0000*/ LDC.64 R2, c[0x0][0x210] ;\n /*0010*/ LDC.64 R4, c[0x0][0x218] ;\n"
        " /*0020*/ LEA R6, P0, -R4, R2, 0x7 ;\n /*0030*/ SHF.L.U64.HI R8, R4, 0x7, R5 ;\n"
        " /*0040*/ IMAD.X R7, R3, 0x1, ~R8, P0 ;\n /*0050*/ STG.E desc[UR4][R6.64], R2 ;\n /*0060*/ EXIT ;\n";
    static const uint64_t pairs[][2] = {{1ull << 36, 0},          {1ull << 36, 1},
                                        {(1ull << 36) + 0x80, 1}, {(1ull << 36) + 0x7f, 1},
                                        {2ull << 36, 1ull << 25}, {2ull << 36, (1ull << 25) + 3}};
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        SassKernel code;
        GpuCounts c = {0};
        char why[256];
        s->n = 0;
        GpuLaunch l = {.code = &code,
                       .arch = 90,
                       .threads = 32,
                       .blocks = 1,
                       .argument = pairs[i],
                       .n_argument = 2,
                       .load = zeros,
                       .touch = see,
                       .toucher = s,
                       .latency = latency,
                       .most = 1000};
        if (!CHECK_CASE(&k->h, sass_read(k->arena, text, "k", &code, why) && gpu_run(k->arena, &l, 0, &c, NULL, why),
                        why))
            return;
        CHECK(&k->h, s->n == 32 && s->at[0] == pairs[i][0] - (pairs[i][1] << 7));
    }
}

/* A line that is prefetched is loaded from the second-level cache; 64 bits of its address count, and nobody waits for the prefetch. */
static void test_prefetch(Known *k, Seen *s)
{
    static const char *const first[] = {"", " /*0008*/ CCTL.E.PF2 [R2] ;\n"};
    const uint64_t a[] = {X};
    for (int ahead = 0; ahead < 2; ahead++) {
        SassKernel code;
        GpuCounts c = {0};
        char why[256];
        s->n = 0;
        const char *text =
            arena_printf(k->arena,
                         "\n.text.k:\n /*0000*/ LDC.64 R2, c[0x0][0x210] ;\n%s /*0010*/ LDG.E R4, desc[UR4][R2.64] ;\n"
                         " /*0020*/ IADD3 R5, R4, R4, RZ ;\n /*0030*/ EXIT ;\n",
                         first[ahead]);
        GpuLaunch l = {.code = &code,
                       .arch = 90,
                       .threads = 32,
                       .blocks = 1,
                       .argument = a,
                       .n_argument = 1,
                       .load = zeros,
                       .touch = see_reads,
                       .toucher = s,
                       .latency = latency,
                       .most = 1000};
        if (!CHECK_CASE(&k->h, sass_read(k->arena, text, "k", &code, why) && gpu_run(k->arena, &l, 0, &c, NULL, why),
                        why))
            return;
        const double waits = ahead ? latency.second : latency.global;
        CHECK(&k->h,
              c.cycles > waits && c.cycles < waits + 64 && c.class[SASS_LOAD] == 1 + ahead && c.lines == 1 + ahead);
        CHECK(&k->h,
              s->n == 32u * (1u + (unsigned)ahead) && s->at[0] == X && c.sectors_read == 1 && c.sectors_missed == 1);
    }
}

/* Cycles of a block whose threads execute `text`, where warps wait for units of an H100. */
static double alone(Known *k, const char *text, uint32_t threads)
{
    SassKernel code;
    GpuCounts c = {0};
    char why[256];
    GpuLaunch l = {.code = &code,
                   .arch = 90,
                   .threads = threads,
                   .blocks = 1,
                   .load = zeros,
                   .latency = latency,
                   .lanes = gpu_named("h100")->lanes,
                   .most = 1000};
    CHECK_CASE(&k->h, sass_read(k->arena, text, "k", &code, why) && gpu_run(k->arena, &l, 0, &c, NULL, why), why);
    return c.cycles;
}

/* Warps of one scheduler share its part of a unit: exponentials of four threads a cycle, products of 512 multiply-adds; two units work
 * at the same time. A warp that waits keeps nobody from going on. */
static void test_units(Known *k)
{
#define EIGHT(x) x x x x x x x x
    static const char special[] = "\n.text.k:\n" EIGHT(" /*0000*/ MUFU.EX2 R2, R0 ;\n") " /*0080*/ EXIT ;\n";
    static const char product[] = "\n.text.k:\n" EIGHT(
        " /*0000*/ HGMMA.64x128x16.F32.BF16 R24, gdesc[UR16], R24, gsb0 ;\n") " /*0080*/ WARPGROUP.DEPBAR.LE gsb0, 0x0 "
                                                                              ";\n /*0090*/ EXIT ;\n";
    static const char both[] =
        "\n.text.k:\n" EIGHT(" /*0000*/ HGMMA.64x128x16.F32.BF16 R24, gdesc[UR16], R24, gsb0 ;\n")
            EIGHT(" /*0080*/ MUFU.EX2 R2, R0 ;\n") " /*0100*/ WARPGROUP.DEPBAR.LE gsb0, 0x0 ;\n /*0110*/ EXIT ;\n";
    static const char waiting[] =
        "\n.text.k:\n /*0000*/ LDG.E R2, desc[UR4][R0.64] ;\n /*0010*/ IADD3 R3, R2, R2, RZ ;\n" EIGHT(
            " /*0020*/ MUFU.EX2 R4, R0 ;\n") " /*00a0*/ EXIT ;\n";
    for (uint32_t warps = 4; warps <= 16; warps *= 2) {
        double here = warps / 4, of_products = 8 * 64 * here, of_special = 8 * 8 * here;
        double s = alone(k, special, 32 * warps), p = alone(k, product, 32 * warps), b = alone(k, both, 32 * warps),
               w = alone(k, waiting, 32 * warps);
        CHECK(&k->h, s > of_special - 8 && s < of_special + 8);
        CHECK(&k->h, p >= of_products + latency.tensor && p < of_products + latency.tensor + 32);
        CHECK(&k->h, b >= of_products + latency.tensor && b < of_products + latency.tensor + 32);
        CHECK(&k->h, w > latency.first + of_special - 8 && w < latency.global + of_special + 32);
    }
}

/* A box of 64 columns, 1 head, 32 rows, 1 sequence, of which `there` rows and 40 columns are there, for which one thread asks and both
 * warps wait; the barrier expects `bytes`. */
static bool box(Known *k, unsigned bytes, int64_t there, Seen *s, GpuCounts *c)
{
    const char *text = arena_printf(
        k->arena,
        "\n.text.k:\n /*0000*/ UMOV UR4, 0x1ffffe ;\n /*0010*/ UMOV UR8, 0x800 ;\n /*0020*/ UMOV UR9, 0x400 ;\n"
        " /*0030*/ SYNCS.EXCH.64 URZ, [UR9], UR4 ;\n /*0040*/ S2R R0, SR_TID.X ;\n /*0050*/ ISETP.NE.AND P0, PT, R0, "
        "RZ, PT ;\n"
        " /*0060*/ BAR.SYNC.DEFER_BLOCKING 0x0 ;\n /*0070*/ UMOV UR13, 0x2 ;\n /*0080*/ UMOV UR12, 0x8 ;\n /*0090*/ "
        "UMOV UR11, 0x1 ;\n"
        " /*00a0*/ UMOV UR10, 0x0 ;\n /*00b0*/ UMOV UR16, 0x30 ;\n /*00c0*/ UMOV UR17, 0x0 ;\n /*00d0*/ @P0 BRA "
        "`(.L_1) ;\n"
        " /*00e0*/ MOV R2, 0x%x ;\n /*00f0*/ SYNCS.ARRIVE.TRANS64 RZ, [UR9], R2 ;\n /*0100*/ UTMALDG.4D [UR8], [UR16] "
        ";\n"
        ".L_1:\n /*0110*/ SYNCS.PHASECHK.TRANS64.TRYWAIT P1, [UR9], RZ ;\n /*0120*/ @!P1 BRA `(.L_1) ;\n /*0130*/ EXIT "
        ";\n",
        bytes);
    const GpuMap map = {.at = 0x30,
                        .address = X,
                        .rank = 4,
                        .item = 2,
                        .dim = {40, 3, 8 + there, 4},
                        .stride = {2, 80, 240, 240 * 1000},
                        .box = {64, 1, 32, 1}};
    SassKernel code;
    char why[256];
    *c = (GpuCounts){0};
    s->n = 0;
    GpuLaunch l = {.code = &code,
                   .arch = 90,
                   .threads = 64,
                   .blocks = 1,
                   .map = &map,
                   .n_map = 1,
                   .shared = 8192,
                   .load = zeros,
                   .touch = see_reads,
                   .toucher = s,
                   .latency = latency,
                   .lanes = gpu_named("h100")->lanes,
                   .most = 1000};
    return CHECK_CASE(&k->h, sass_read(k->arena, text, "k", &code, why), why) && !code.unknown &&
           gpu_run(k->arena, &l, 0, c, NULL, why);
}

/* What a map copies goes through shared memory whole, 128 bytes a cycle, and past the first-level cache as far as it is there; it is as late
 * as a load and what its hardware takes; a barrier that counts other bytes is waited for for ever. */
static void test_maps(Known *k)
{
    static Seen s;
    GpuCounts c;
    for (int64_t there = 0; there <= 40; there += 8) {
        const double rows = there < 32 ? (double)there : 32;
        if (!CHECK(&k->h, box(k, 64 * 2 * 32, there, &s, &c)))
            return;
        /* rows begin at multiples of 16 bytes: 80 bytes are in three sectors or in four */
        CHECK(&k->h, c.wavefronts == 32 && c.bytes_read == 80 * rows && c.sectors_read == c.sectors_missed);
        CHECK(&k->h, c.sectors_read >= 3 * rows && c.sectors_read <= 4 * rows && s.n == (size_t)rows);
        for (size_t i = 0; i < s.n; i++)
            CHECK(&k->h, s.at[i] == X + 80 + 240 * (8 + i) + 240 * 1000 * 2);
        const double waits = 64.0 * 2 * 32 / GPU_COPIER + GPU_COPY_BEGINS + (there ? latency.global : latency.second);
        CHECK(&k->h, c.cycles > waits && c.cycles < waits + 200);
        CHECK(&k->h, c.slots > 30 && c.slots < 50);
    }
    CHECK(&k->h, !box(k, 64 * 2 * 31, 40, &s, &c));
    CHECK(&k->h, !box(k, 64 * 2 * 33, 40, &s, &c));
}

/* ---- */

static void test_all(Known *k)
{
    static Seen seen;
    test_copy(k, &seen);
    test_loops(k, &seen);
    test_shuffle(k, &seen);
    test_banks(k, &seen);
    test_turns(k, &seen);
    test_integers(k, &seen);
}

static const char *file(Arena *arena, const char *name)
{
    FILE *f = fopen(arena_printf(arena, "%s/tests/perf/%s", VWN_SOURCE_DIR, name), "rb");
    static char text[1 << 20];
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    return arena_copy(arena, text, n);
}

int main(void)
{
    Ctx *ctx = ctx_new(NULL);
    Known k = {.arena = ctx->program, .arch = "recorded", .number = 90};
    Nvrtc n;
    char why[512];
    const char *tool;
    Cache cache;
    k.text = file(k.arena, "known.sass");
    test_all(&k);
    test_time(&k);
    test_pages(&k);
    test_samples(&k);
    test_refused(&k);
    static Seen seen;
    test_borrow(&k, &seen);
    test_prefetch(&k, &seen);
    test_units(&k);
    test_maps(&k);
    bool here = nvrtc_open(ctx, &n, why) && disassembler_find(k.arena, &tool, why);
    printf(here ? "compiled anew, too\n" : "only what was recorded: %s\n", why);
    cache_open(&cache, CACHE_CUBINS, NULL);
    for (int i = SANITIZED && !test_whole() ? ARCH_COUNT - 1 : 0; here && i < ARCH_COUNT; i++) {
        CudaText text = cuda_text("k_nothing", "extern \"C\" __global__ void k_nothing() {}\n");
        CudaCode code;
        const char *prelude = file(k.arena, "known.cu");
        CudaBuild b = {.arch = ARCHS[i],
                       .prelude = prelude,
                       .prelude_length = strlen(prelude),
                       .kernel = &text,
                       .n = 1,
                       .cache = &cache,
                       .arena = k.arena,
                       .code = &code};
        Cubin cubin;
        if (!CHECK_CASE(&k.h, nvrtc_build(&n, &b) == ST_OK, b.why) ||
            !CHECK(&k.h, cubin_read(k.arena, code.cubin, code.size, &cubin, why)))
            continue;
        k.cubin = &cubin;
        k.arch = ARCHS[i];
        k.number = cubin.arch;
        k.text = disassemble(k.arena, tool, code.cubin, code.size, why);
        if (CHECK_CASE(&k.h, k.text, why))
            test_all(&k);
    }
    cache_close(&cache);
    ctx_free(ctx);
    return harness_end(&k.h);
}
