/* pair_products.c - which two products of a row are one.
 *
 * In:  a kernel that is mapped to threads.     Out: KProduct.beside, of two products that follow each other without a barrier; the
 *      second is no statement any more.
 * Requires: barriers, places of tiles and cuts are final.     Proved by: kernel_check(), kernel_race().
 * The one idea: tensor cores multiply sixteen rows, and such a product has eight at most. Two of them by one right factor fill an
 * instruction, and load that factor once.
 */
#include "device.h"

/* Is it one of eight rows at most, of a short sum, which nothing is added to? */
static bool is_half(const Kernel *k, const KProduct *x)
{
    return k->device.tensor && !x->add && !x->rows && !x->split && !x->also && x->way.by_rows &&
           kernel_product_is_half(k, x);
}

static bool same_extent(const Kernel *k, IVar v, IVar w)
{
    return dim_eq(ix_info(k->ix, v)->extent, ix_info(k->ix, w)->extent);
}

/* Do two products have the same right factor? */
static bool have_one_factor(const Kernel *k, const KProduct *x, const KProduct *y)
{
    ProductSteps u, v;
    return x->b == y->b && kernel_product_place(k, x, x->b_at, 0) == kernel_product_place(k, y, y->b_at, 0) &&
           same_extent(k, x->n, y->n) && same_extent(k, x->k, y->k) && product_steps(k, x, &u) &&
           product_steps(k, y, &v) && u.bk == v.bk && u.bn == v.bn;
}

/* Do the left factors of two products lie in tiles of one kind? */
static bool have_like_tiles(const Kernel *k, const KProduct *x, const KProduct *y)
{
    const KBuffer *a = &k->buffer.v[x->a], *b = &k->buffer.v[y->a];
    return a->tile && b->tile && a->half == b->half && a->device.split == b->device.split &&
           a->device.bank == b->device.bank && a->rounded == b->rounded;
}

static bool are_halves(const Kernel *k, const KStmt *s, const KStmt *then)
{
    if (s->kind != KS_PRODUCT || then->kind != KS_PRODUCT)
        return false;
    const KProduct *x = &k->product.v[s->root], *y = &k->product.v[then->root];
    return is_half(k, x) && is_half(k, y) && have_one_factor(k, x, y) && have_like_tiles(k, x, y);
}

void kernel_pair_products(Kernel *k)
{
    const Kernel from = *k;
    if (!from.product.n)
        return;
    k->product.v =
        memcpy(NEW_ARRAY(k->arena, KProduct, from.product.n), from.product.v, from.product.n * sizeof *from.product.v);
    k->stmt.v = NULL;
    k->stmt.n = k->stmt.cap = 0;
    for (size_t i = 0; i < from.stmt.n; i++) {
        const KStmt *s = &from.stmt.v[i];
        vec_push(k->arena, &k->stmt, *s);
        if (i + 1 < from.stmt.n && are_halves(&from, s, s + 1))
            k->product.v[s->root].beside = from.stmt.v[++i].root + 1;
    }
}
