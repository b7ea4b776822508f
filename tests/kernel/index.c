/* index.c - quotients and remainders of indices, against arithmetic.
 *
 * In:  random sums of loop variables, divided by random numbers.
 * Out: `N passed, N failed`. The forms have the values of what they stand for, at every combination of the loops; what a
 *      sum is made of is divided where the rest of it does not matter.
 */
#include "../models.h"
#include "runtime/harness.h"

#include "compiler/index.h"

enum { LOOPS = 3 };

static int64_t value_of(const IxTable *t, Ix a, const int64_t *at);

static int64_t variable_at(const IxTable *t, IVar v, const int64_t *at)
{
    const IVarInfo *x = ix_info(t, v);
    switch (x->kind) {
    case IV_ONE: return 1;
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

int main(void)
{
    Harness h = {0};
    Case c = {.h = &h, .state = 7};
    Ctx *ctx = ctx_new(NULL);
    CHECK(&h, guarded(ctx, divide, &c));
    CHECK(&h, guarded(ctx, divide_high, &c));
    ctx_free(ctx);
    return harness_end(&h);
}
