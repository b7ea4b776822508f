/* index.c - quotients, remainders and bounds of indices, against arithmetic.
 *
 * In:  random sums of loop variables, divided by random numbers; places of elements that have moved along two axes.
 * Out: `N passed, N failed`. The forms have the values of what they stand for, at every combination of the loops; what a
 *      sum is made of is divided where the rest of it does not matter. Where guards keep a place inside a tensor that is
 *      proved, however long an axis is, and nothing is that is not so.
 * When: quick.
 */
#include "support/models.h"
#include "support/harness.h"

#include "compiler/kernel/kernel.h"

enum { LOOPS = 3 };

static int64_t value_of(const IxTable *t, Ix a, const int64_t *at);

static int64_t variable_at(const IxTable *t, IVar v, const int64_t *at)
{
    const IVarInfo *x = ix_info(t, v);
    switch (x->kind) {
    case IV_ONE: return 1;
    case IV_ROW: return at[0];
    case IV_LOOP: return at[x->ordinal];
    case IV_DIV: return value_of(t, x->base, at) / ix_dim_at(t, x->by);
    default: return value_of(t, x->base, at) % ix_dim_at(t, x->by);
    }
}

static int64_t value_of(const IxTable *t, Ix a, const int64_t *at)
{
    const IxForm *f = ix_form(t, a);
    int64_t sum = 0;
    for (uint32_t i = 0; i < f->n; i++)
        sum += f->t[i].mult * ix_dim_at(t, f->t[i].coef) * variable_at(t, f->t[i].var, at);
    return sum;
}

typedef struct Case {
    Harness *h;
    uint64_t state;
} Case;

static int64_t some(Case *c, int64_t n) { return (int64_t)((harness_random(&c->state) + 1) / 2 * (double)n); }

/* Every quotient and remainder of one sum by one number. */
static bool holds(const IxTable *t, Ix a, Ix q, Ix m, int64_t d, const int64_t *extent)
{
    int64_t at[LOOPS];
    for (at[0] = 0; at[0] < extent[0]; at[0]++)
        for (at[1] = 0; at[1] < extent[1]; at[1]++)
            for (at[2] = 0; at[2] < extent[2]; at[2]++) {
                int64_t x = value_of(t, a, at);
                if (value_of(t, q, at) != x / d || value_of(t, m, at) != x % d)
                    return false;
            }
    return true;
}

static void divide(Ctx *ctx, void *arg)
{
    static const int64_t sizes[] = {1, 2, 3, 4, 6, 8, 20, 32, 64};
    Case *c = arg;
    for (int round = 0; round < 3000; round++) {
        IxTable t;
        int64_t extent[LOOPS], d = 1;
        ix_init(&t, ctx, ctx->program, 1, 1);
        Ix a = ix_const(&t, some(c, 3) * some(c, 40));
        for (int i = 0; i < LOOPS; i++) {
            extent[i] = sizes[some(c, 6)];
            Ix x = ix_var(&t, ix_loop(&t, DIM(extent[i]), i));
            a = ix_add(&t, a, ix_scale(&t, x, DIM(sizes[some(c, 9)])));
        }
        for (int i = 0; i < 2; i++)
            d *= sizes[some(c, 9)];
        Ix q = ix_div(&t, a, DIM(d)), m = ix_mod(&t, a, DIM(d));
        CHECK(c->h, holds(&t, a, q, m, d, extent));
    }
}

/* Where 256 neighbours are one step of another loop, a multiple of 256 divides that loop alone. */
static void divide_high(Ctx *ctx, void *arg)
{
    Case *c = arg;
    IxTable t;
    IVar of = 0;
    int64_t constant = 1;
    ix_init(&t, ctx, ctx->program, 1, 1);
    Ix low = ix_var(&t, ix_loop(&t, DIM(256), 0)), high = ix_var(&t, ix_loop(&t, DIM(64), 1));
    Ix a = ix_add(&t, low, ix_scale(&t, high, DIM(256)));
    Ix q = ix_div(&t, a, DIM(2048)), m = ix_mod(&t, a, DIM(2048));
    CHECK(c->h, q == ix_div(&t, high, DIM(8)) && ix_is_var(&t, q, &of, &constant) && constant == 0);
    CHECK(c->h, of && ix_info(&t, of)->kind == IV_DIV && ix_info(&t, of)->base == high);
    CHECK(c->h, m == ix_add(&t, low, ix_scale(&t, ix_mod(&t, high, DIM(8)), DIM(256))));
    CHECK(c->h, ix_add(&t, ix_scale(&t, q, DIM(2048)), m) == a);
}

typedef struct Moved {
    Kernel k;
    Shape s;
    Ix at, test[2]; /* 0 <= test < extent: the guard, a test an axis */
    Dim extent[2];
    Ex guard;
    int64_t rows, loop, size;
} Moved;

/* The element of a tensor that a kernel over some of its axes, or a part of one, asks for: two axes moved. One axis has
 * `length` elements, or none is long. */
static void move(Case *c, Ctx *ctx, Moved *m, int64_t length)
{
    static const int64_t sizes[] = {1, 2, 2, 3, 4, 6, 8};
    Ix at[MAX_RANK] = {0};
    m->s.rank = (uint8_t)(2 + some(c, length ? 2 : 4));
    m->size = m->rows = 1;
    int far = length ? (int)some(c, m->s.rank) : -1;
    for (int i = 0; i < m->s.rank; i++) {
        m->s.d[i] = DIM(i == far ? length : sizes[some(c, COUNT_OF(sizes))]);
        m->size *= m->s.d[i].n;
    }
    for (int64_t n = some(c, 40) + 1; n > 0; n--) /* a divisor of the size */
        m->rows = m->size % n == 0 && m->size / n >= 1 && m->rows == 1 ? m->size / n : m->rows;
    m->loop = m->size / m->rows;
    kernel_init(&m->k, ctx, ctx->program, 1, 1, DIM(m->rows));
    IxTable *t = m->k.ix;
    Ix row = ix_scale(t, ix_var(t, m->k.row), DIM(m->loop));
    ix_unlinear(t, &m->s, ix_add(t, row, ix_var(t, ix_loop(t, DIM(m->loop), 1))), at);
    for (int i = 0; i < 2; i++) {
        int axis = (int)some(c, m->s.rank);
        at[axis] = ix_add(t, at[axis], ix_const(t, some(c, 7) - 3));
        m->test[i] = at[axis];
        m->extent[i] = m->s.d[axis];
        m->guard = kx_and(&m->k, m->guard, kx_inside(&m->k, at[axis], m->s.d[axis]));
    }
    m->at = ix_linear(t, &m->s, at);
}

/* Is a place inside the tensor proved where the guard holds, at every combination of the loops, and only there? */
static bool moved_is_proved(Case *c, Ctx *ctx, int64_t length)
{
    Moved m = {0};
    int64_t lowest = INT64_MAX, highest = INT64_MIN, at[LOOPS] = {0};
    bool inside = true;
    move(c, ctx, &m, length);
    for (at[0] = 0; at[0] < m.rows; at[0]++)
        for (at[1] = 0; at[1] < m.loop; at[1]++) {
            int64_t place = value_of(m.k.ix, m.at, at);
            bool there = true;
            for (int i = 0; i < 2; i++) {
                int64_t x = value_of(m.k.ix, m.test[i], at);
                there = there && x >= 0 && x < m.extent[i].n;
            }
            inside = inside && place >= 0 && place < m.size;
            lowest = there && place < lowest ? place : lowest;
            highest = there && place > highest ? place : highest;
        }
    bool last = lowest <= highest; /* something is there */
    CHECK(c->h, !last || kernel_in_bounds(&m.k, m.at, m.guard, m.size) == (lowest >= 0 && highest < m.size));
    CHECK(c->h, !last || !kernel_in_bounds(&m.k, m.at, m.guard, highest));
    CHECK(c->h, inside || !kernel_in_bounds(&m.k, m.at, 0, m.size));
    return m.guard && last && kernel_in_bounds(&m.k, m.at, m.guard, m.size);
}

static void bounds(Ctx *ctx, void *arg)
{
    int proved = 0;
    for (int round = 0; round < 2000; round++)
        proved += moved_is_proved(arg, ctx, 0);
    CHECK(((Case *)arg)->h, proved > 500);
}

/* Of lengths at which one element is a small share of all. */
static void bounds_of_long_axes(Ctx *ctx, void *arg)
{
    static const int64_t lengths[] = {1023, 1024, 1056, 2048, 4099};
    int proved = 0;
    for (int round = 0; round < 60; round++)
        proved += moved_is_proved(arg, ctx, lengths[round % COUNT_OF(lengths)]);
    CHECK(((Case *)arg)->h, proved > 15);
}

/* A row of 32 elements lies turned in [32, T], its second half in front of the first: where the guard says that it is
 * the first half, no row T is read. Of every length that memory has, and none longer. */
static void bounds_of_any_length(Ctx *ctx, void *arg)
{
    Case *c = arg;
    for (int64_t rows = 2; rows < INT64_C(1) << 45; rows += rows % 2 ? rows : 1) {
        Kernel k;
        kernel_init(&k, ctx, ctx->program, 1, 1, DIM(rows));
        Shape s = {.rank = 3, .d = {DIM(2), DIM(rows), DIM(32)}};
        Ix i = ix_var(k.ix, ix_loop(k.ix, DIM(32), 1)), at[MAX_RANK], half = ix_add(k.ix, i, ix_const(k.ix, 16));
        ix_unlinear(k.ix, &s, ix_add(k.ix, ix_scale(k.ix, ix_var(k.ix, k.row), DIM(32)), half), at);
        Ix turned = ix_add(k.ix, at[1], ix_scale(k.ix, at[2], DIM(rows)));
        Ix place = ix_add(k.ix, turned, ix_scale(k.ix, at[0], DIM(32 * rows)));
        Ex first = kx_inside(&k, i, DIM(16));
        CHECK(c->h, kernel_in_bounds(&k, place, first, 32 * rows));
        CHECK(c->h, !kernel_in_bounds(&k, place, first, 32 * rows - 1));
        CHECK(c->h, !kernel_in_bounds(&k, place, kx_inside(&k, i, DIM(17)), 32 * rows));
    }
}

/* A guard over one part of a row tells which rows there are, so another part of the row is there as well. */
static void bounds_of_parts(Ctx *ctx, void *arg)
{
    Case *c = arg;
    int rounded = 0;
    for (int round = 0; round < 1000; round++) {
        Kernel k;
        int64_t blocks = some(c, 4) + 1, block = some(c, 4) + 1, rows = blocks * block;
        int64_t part = some(c, 7) + 2, extent = some(c, rows * part) + 1, shift = some(c, part);
        kernel_init(&k, ctx, ctx->program, 1, 1, DIM(blocks));
        Ix first = ix_scale(k.ix, ix_var(k.ix, k.row), DIM(block));
        Ix row = ix_scale(k.ix, ix_add(k.ix, first, ix_var(k.ix, ix_loop(k.ix, DIM(block), 3))), DIM(part));
        Ix guarded = ix_add(k.ix, row, ix_var(k.ix, ix_loop(k.ix, DIM(part), 1)));
        Ix other = ix_add(k.ix, row, ix_add(k.ix, ix_var(k.ix, ix_loop(k.ix, DIM(part), 2)), ix_const(k.ix, shift)));
        int64_t last = (extent - 1) / part * part + part - 1 + shift; /* of the rows that begin inside */
        Ex guard = kx_inside(&k, guarded, DIM(extent));
        CHECK(c->h, kernel_in_bounds(&k, other, guard, last + 1));
        CHECK(c->h, !kernel_in_bounds(&k, other, guard, last));
        rounded += extent % part != 0 && last + 1 < rows * part;
    }
    CHECK(c->h, rounded > 300);
}

/* The same of a row that the guard names through a quotient: the places of a sequence that is moved within its row. */
static void bounds_of_quotients(Ctx *ctx, void *arg)
{
    Case *c = arg;
    for (int round = 0; round < 1000; round++) {
        Kernel k;
        int64_t rows = some(c, 6) + 1, part = some(c, 7) + 2, shift = some(c, part) + 1;
        int64_t extent = shift + some(c, rows * part) + 1;
        kernel_init(&k, ctx, ctx->program, 1, 1, DIM(rows));
        Ix row = ix_var(k.ix, k.row), to = ix_const(k.ix, shift);
        Ix moved = ix_add(k.ix, ix_var(k.ix, ix_loop(k.ix, DIM(part), 1)), to);
        Ix guarded = ix_add(k.ix, ix_scale(k.ix, row, DIM(part)), moved);
        Ix of = ix_add(k.ix, row, ix_div(k.ix, moved, DIM(part)));
        Ix other = ix_add(k.ix, ix_scale(k.ix, of, DIM(part)), ix_var(k.ix, ix_loop(k.ix, DIM(part), 2)));
        int64_t last = (extent - 1) / part * part + part - 1; /* of the rows that begin inside */
        Ex guard = kx_inside(&k, guarded, DIM(extent));
        CHECK(c->h, kernel_in_bounds(&k, other, guard, last + 1));
        CHECK(c->h, !kernel_in_bounds(&k, other, guard, last));
        Ix group = ix_div(k.ix, other, DIM(3 * part));
        CHECK(c->h, kernel_in_bounds(&k, group, guard, last / (3 * part) + 1));
        CHECK(c->h, !kernel_in_bounds(&k, group, guard, last / (3 * part)));
    }
}

int main(void)
{
    Harness h = {0};
    Case c = {.h = &h, .state = 7};
    Ctx *ctx = ctx_new(NULL);
    CHECK(&h, guarded(ctx, divide, &c));
    CHECK(&h, guarded(ctx, divide_high, &c));
    CHECK(&h, guarded(ctx, bounds, &c));
    CHECK(&h, guarded(ctx, bounds_of_long_axes, &c));
    CHECK(&h, guarded(ctx, bounds_of_any_length, &c));
    CHECK(&h, guarded(ctx, bounds_of_parts, &c));
    CHECK(&h, guarded(ctx, bounds_of_quotients, &c));
    ctx_free(ctx);
    return harness_end(&h);
}
