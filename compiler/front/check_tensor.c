/* check_tensor.c - the primitives that take tensors apart, put them together and look things up.
 *
 * In:  bound arguments (check_prim.h).   Out: graph nodes, after the shapes were checked with words.
 * The one idea: every shape rule is tested here with the names and numbers a user can act on; the graph
 * builder below only asserts.
 */
#include "check_prim.h"

#include <math.h>

/* ---- shape ---- */

static bool is_hole(const Ast *e, Env *env)
{
    bool minus_one = e->kind == AST_NEG && e->kid[0]->kind == AST_NUM && !strcmp(e->kid[0]->name, "1");
    return minus_one || (e->kind == AST_ID && !strcmp(e->name, "_") && !env_find(env, e->name));
}

/* `reshape(x, [B, T, -1])`: an extent that shall follow from the others. Says what it is. */
static bool reshape_guesses(PrimArgs *a)
{
    Eval *ev = a->ev;
    const Ast *list = a->ast[1], *hole = NULL;
    for (uint32_t i = 0; list->kind == AST_LIST && i < list->n; i++)
        hole = is_hole(list->kid[i], a->env) ? list->kid[i] : hole;
    if (!hole)
        return false;
    Diag *d = err(ev, "E0319", hole->span, "no extent", "`reshape` wants every extent written out");
    diag_note(ev->ctx, d, "none is found from the others, so that each shape is checked against what was meant");
    Dim size, x, part;
    bool known = shape_size(prim_shape(a, 0), &size);
    size_t before = diag_count(ev->ctx);
    for (uint32_t i = 0; known && i < list->n; i++) {
        if (list->kid[i] == hole)
            continue;
        Value v = list->kid[i]->kind == AST_DOTS || is_hole(list->kid[i], a->env)
                      ? v_none()
                      : eval(ev, list->kid[i], a->env, a->scope);
        known = (v.kind == V_NUM || v.kind == V_DIM) && value_dim(ev, &v, list->kid[i]->span, "", &x) &&
                dim_div(size, x, &part);
        size = part;
    }
    diag_truncate(ev->ctx, before);
    if (!known)
        return true;
    Buf text = buf_new(ev->arena);
    dim_print(&text, size);
    diag_fix(ev->ctx, d, hole->span, text.s, FIX_MAYBE, "here it is `%s`", text.s);
    return true;
}

/* Says which numbers of elements differ, and with which other extent they are the same. */
static void cannot_reshape(PrimArgs *a, const Shape *to, Dim had, Dim want)
{
    Eval *ev = a->ev;
    Buf b = buf_new(ev->arena), n = buf_new(ev->arena);
    shape_print(&b, to);
    dim_print(&n, had);
    buf_puts(&n, " and ");
    dim_print(&n, want);
    Diag *d = err(ev, "E0319", a->ast[1]->span, "", "cannot reshape %s to %s: the number of elements differs",
                  prim_shape_text(a, 0), b.s);
    diag_note(ev->ctx, d, "they have %s elements", n.s);
    for (int k = to->rank - 1; k >= 0; k--) {
        Shape fits = *to;
        Dim others = DIM(1), whole;
        for (int i = 0; i < to->rank; i++)
            if (i != k && !dim_mul(others, to->d[i], &others))
                return;
        if (!dim_div(had, others, &fits.d[k]) || !dim_static(fits.d[k]) || !shape_size(&fits, &whole) ||
            !dim_eq(whole, had))
            continue;
        Buf text = buf_new(ev->arena);
        shape_print(&text, &fits);
        diag_help(ev->ctx, d, "with another extent it fits: %s", text.s);
        return;
    }
}

static Value p_reshape(PrimArgs *a)
{
    Shape to;
    if (reshape_guesses(a) || !eval_shape(a->ev, a->ast[1], a->env, a->scope, &to, "to"))
        return v_poison();
    Dim had, want;
    shape_size(prim_shape(a, 0), &had);
    shape_size(&to, &want);
    if (!dim_eq(had, want)) {
        cannot_reshape(a, &to, had, want);
        return v_poison();
    }
    Value v = v_tensor(ir_reshape(prim_graph(a), a->v[0].val, &to));
    v.shape_text = a->ast[1]->kind == AST_LIST ? expr_text(a->ev, a->ast[1]) : NULL;
    return v;
}

static Value p_permute(PrimArgs *a)
{
    uint8_t rank = prim_shape(a, 0)->rank;
    int perm[MAX_RANK];
    uint32_t seen = 0;
    const ValueList *l = a->v[1].list;
    bool ok = l->n == rank;
    for (size_t k = 0; ok && k < l->n; k++) {
        double x = l->v[k].kind == V_NUM ? l->v[k].num : -1;
        ok = is_whole(x) && x >= 1 && x <= rank && !(seen & 1u << (int)x);
        perm[k] = ok ? (int)x - 1 : 0;
        seen |= ok ? 1u << (int)x : 0;
    }
    if (!ok)
        return prim_fail(a, "E0318", 1, "`permute` needs the axes 1 to %d in some order", rank);
    return v_tensor(ir_permute(prim_graph(a), a->v[0].val, perm));
}

/* An extent is a product of a number, B and T: the sum of two is none. */
static Value concat_of_symbols(PrimArgs *a, size_t which, int axis)
{
    Eval *ev = a->ev;
    Graph *g = prim_graph(a);
    Buf sum = buf_new(ev->arena), shape = buf_new(ev->arena);
    for (size_t i = 0; i < a->n_rest; i++) {
        const Shape *t = shape_of(g, a->rest[i].val);
        buf_puts(&sum, i ? " + " : "");
        if (axis < t->rank)
            dim_print(&sum, t->d[axis]);
    }
    shape_print(&shape, shape_of(g, a->rest[which].val));
    Diag *d = err(ev, "E0320", a->call->span, "", "`concat` cannot make an axis of %s coordinates", sum.s);
    diag_note(
        ev->ctx, d,
        "axis %d of %s gets its extent when training, and `concat` joins axes whose extents are numbers: a sum such as"
        " 8 + T is no extent, these are products of numbers, B and T",
        axis + 1, shape.s);
    diag_help(ev->ctx, d, "tensors with B or T along one axis are put together along another one, and by `+`");
    return v_poison();
}

/* The first tensor and the i-th, whose shapes are told, have other extents beside the axis, or another kind. */
static void cannot_join(PrimArgs *a, size_t i, int axis, const char *first, const char *other)
{
    Eval *ev = a->ev;
    Graph *g = prim_graph(a);
    const Shape *s = shape_of(g, a->rest[0].val), *t = shape_of(g, a->rest[i].val);
    Diag *d =
        err(ev, "E0320", a->call->span, "", "cannot put %s and %s together along axis %d", first, other, axis + 1);
    Shape more = *t;
    if (s->rank != t->rank) {
        diag_note(ev->ctx, d, "they have %d and %d axes", s->rank, t->rank);
        if (t->rank + 1 == s->rank)
            diag_help(ev->ctx, d,
                      "a new axis makes their numbers equal: `unsqueeze(x, k)` puts one of extent 1 at place k");
        return;
    }
    if (node_at(g, a->rest[i].val)->dtype != node_at(g, a->rest[0].val)->dtype) {
        diag_note(ev->ctx, d, "one holds integers, the other real numbers");
        diag_help(ev->ctx, d, "convert the integers: `cast(x, real)`");
        return;
    }
    for (int k = 0; k < s->rank; k++)
        if (k != axis && !dim_eq(s->d[k], t->d[k])) {
            Buf b = buf_new(ev->arena);
            dim_print(&b, s->d[k]);
            buf_puts(&b, " and ");
            dim_print(&b, t->d[k]);
            diag_note(ev->ctx, d, "beside axis %d all extents are the same, and those of axis %d are %s", axis + 1,
                      k + 1, b.s);
            more.d[k] = s->d[k];
            if (dim_eq(s->d[axis], t->d[axis]) && shape_eq(&more, s))
                diag_help(ev->ctx, d, "along axis %d they fit: `axis = %d`", k + 1, k + 1);
            return;
        }
}

static Value p_concat(PrimArgs *a)
{
    if (!a->n_rest)
        return prim_fail(a, "E0104", 0, "`concat` needs at least one tensor");
    Graph *g = prim_graph(a);
    const Shape *s = shape_of(g, a->rest[0].val);
    int axis;
    if (!prim_axis(a, 1, s->rank, &axis))
        return v_poison();
    for (size_t i = 0; a->n_rest > 1 && i < a->n_rest; i++)
        if (shape_of(g, a->rest[i].val)->rank == s->rank && !dim_static(shape_of(g, a->rest[i].val)->d[axis]))
            return concat_of_symbols(a, i, axis);
    Val *x = NEW_ARRAY(a->ev->arena, Val, a->n_rest);
    int64_t extent = 0;
    for (size_t i = 0; i < a->n_rest; i++) {
        const Shape *t = shape_of(g, a->rest[i].val);
        bool fits = t->rank == s->rank && node_at(g, a->rest[i].val)->dtype == node_at(g, a->rest[0].val)->dtype;
        for (int k = 0; fits && k < s->rank; k++)
            fits = k == axis ? dim_static(t->d[k]) && dim_static(s->d[k]) : dim_eq(t->d[k], s->d[k]);
        if (!fits) {
            Buf b = buf_new(a->ev->arena), c = buf_new(a->ev->arena);
            shape_print(&b, s);
            shape_print(&c, t);
            cannot_join(a, i, axis, b.s, c.s);
            return v_poison();
        }
        x[i] = a->rest[i].val;
        extent += t->d[axis].n;
    }
    Shape joined = *s;
    Dim size;
    joined.d[axis] = a->n_rest > 1 ? DIM(extent) : s->d[axis];
    if (!shape_size(&joined, &size))
        return prim_fail(a, "E0008", 0, "limit `tensor size` reached: 2^53 elements");
    return v_tensor(a->n_rest == 1 ? x[0] : ir_concat(g, x, a->n_rest, axis));
}

/* The static extent of an axis, or an error. */
static bool static_extent(PrimArgs *a, size_t axis_arg, int *axis, int64_t *n)
{
    const Shape *s = prim_shape(a, 0);
    if (!prim_axis(a, axis_arg, s->rank, axis))
        return false;
    if (!dim_static(s->d[*axis])) {
        prim_fail(a, "E0318", 0, "`%s` cannot cut an axis whose extent is known only when training (%s)", a->prim->name,
                  prim_shape_text(a, 0));
        return false;
    }
    *n = s->d[*axis].n;
    return true;
}

static Value p_first(PrimArgs *a)
{
    int axis;
    int64_t n, k = (int64_t)a->v[1].num;
    if (!static_extent(a, 2, &axis, &n))
        return v_poison();
    bool rest = !strcmp(a->prim->name, "rest");
    if (a->v[1].kind != V_NUM || k > n)
        return prim_fail(a, "E0321", 1, "cannot take %s %s of %lld coordinates", rest ? "what follows" : "the first",
                         value_text(a->ev, &a->v[1]), (long long)n);
    if (rest ? k == 0 : k == n)
        return a->v[0];
    return v_tensor(rest ? ir_slice(prim_graph(a), a->v[0].val, axis, k, n - k)
                         : ir_slice(prim_graph(a), a->v[0].val, axis, 0, k));
}

static Value p_slice(PrimArgs *a)
{
    int axis;
    int64_t n;
    if (!static_extent(a, 3, &axis, &n))
        return v_poison();
    double from = a->v[1].num, count = a->v[2].num;
    if (a->v[2].kind != V_NUM || from < 1 || from - 1 + count > (double)n)
        return prim_fail(a, "E0321", 1, "coordinates %.0f to %.0f are not all within 1..%lld%s", from, from - 1 + count,
                         (long long)n, from < 1 ? "; coordinates count from 1" : "");
    if (count == (double)n)
        return a->v[0];
    return v_tensor(ir_slice(prim_graph(a), a->v[0].val, axis, (int64_t)from - 1, (int64_t)count));
}

static Value p_split(PrimArgs *a)
{
    int axis;
    int64_t n, at = 0;
    if (!static_extent(a, 2, &axis, &n))
        return v_poison();
    Value sizes = a->v[1];
    Value *part = NULL;
    size_t count = 0;
    if (sizes.kind == V_NUM && sizes.num >= 1 && is_whole(sizes.num) && n % (int64_t)sizes.num == 0 &&
        sizes.num <= 4096) {
        count = (size_t)sizes.num;
    } else if (sizes.kind == V_LIST) {
        count = sizes.list->n;
    } else {
        Diag *d = err(a->ev, "E0321", a->ast[1]->span, "",
                      "`split` needs a number of equal parts that divides %lld, or a list of sizes", (long long)n);
        int64_t below = sizes.kind == V_NUM && sizes.num > 1 && sizes.num < (double)n ? (int64_t)sizes.num : 0,
                above = below;
        while (below && n % below)
            below--;
        while (above && n % above)
            above++;
        if (below)
            diag_help(a->ev->ctx, d, "into %lld parts or %lld it goes: `split(x, %lld)`", (long long)below,
                      (long long)above, (long long)below);
        return v_poison();
    }
    part = NEW_ARRAY(a->ev->arena, Value, count + 1);
    for (size_t i = 0; i < count; i++) {
        double k = sizes.kind == V_LIST ? (sizes.list->v[i].kind == V_NUM ? sizes.list->v[i].num : -1)
                                        : (double)(n / (int64_t)count);
        if (!is_whole(k) || k < 0 || at + (int64_t)k > n)
            return prim_fail(a, "E0321", 1, "the sizes do not add up to %lld", (long long)n);
        part[i] = v_tensor(ir_slice(prim_graph(a), a->v[0].val, axis, at, (int64_t)k));
        at += (int64_t)k;
    }
    if (at != n)
        return prim_fail(a, "E0321", 1, "the sizes add up to %lld, the axis has %lld", (long long)at, (long long)n);
    return v_list(a->ev, part, count);
}

static Value p_pad(PrimArgs *a)
{
    int axis;
    int64_t n, k = (int64_t)a->v[1].num;
    if (!static_extent(a, 2, &axis, &n))
        return v_poison();
    Shape wide = *prim_shape(a, 0);
    Dim size;
    wide.d[axis] = DIM(k);
    if (!shape_size(&wide, &size))
        return prim_fail(a, "E0008", 1, "limit `tensor size` reached: 2^53 elements");
    if (a->v[1].kind != V_NUM || k < n)
        return prim_fail(a, "E0322", 1, "cannot pad %lld coordinates to %s", (long long)n, value_text(a->ev, &a->v[1]));
    return k == n ? a->v[0] : v_tensor(ir_pad(prim_graph(a), a->v[0].val, axis, 0, k - n));
}

static Value with_axis(PrimArgs *a, int axis, Dim extent)
{
    const Shape *s = prim_shape(a, 0);
    if (s->rank == MAX_RANK)
        return prim_fail(a, "E0008", 0, "limit `rank` reached: %d", MAX_RANK);
    Shape one = *s, full;
    one.rank++;
    for (int k = one.rank - 1; k > axis; k--)
        one.d[k] = one.d[k - 1];
    one.d[axis] = DIM(1);
    full = one;
    full.d[axis] = extent;
    Dim size;
    if (!shape_size(&full, &size))
        return prim_fail(a, "E0008", 1, "limit `tensor size` reached: 2^53 elements");
    Graph *g = prim_graph(a);
    Val v = ir_reshape(g, a->v[0].val, &one);
    return v_tensor(dim_eq(extent, DIM(1)) ? v : ir_broadcast(g, v, &full));
}

static Value p_repeat(PrimArgs *a)
{
    Dim n;
    if (!value_dim(a->ev, &a->v[1], a->span[1], "n", &n))
        return v_poison();
    int rank = prim_shape(a, 0)->rank;
    return with_axis(a, rank ? rank - 1 : 0, n);
}

static Value p_unsqueeze(PrimArgs *a)
{
    int axis;
    if (!prim_axis(a, 1, (uint8_t)(prim_shape(a, 0)->rank + 1), &axis))
        return v_poison();
    return with_axis(a, axis, DIM(1));
}

static Value p_squeeze(PrimArgs *a)
{
    int axis;
    Shape s = *prim_shape(a, 0);
    if (!prim_axis(a, 1, s.rank, &axis))
        return v_poison();
    if (!dim_eq(s.d[axis], DIM(1)))
        return prim_fail(a, "E0318", 0, "only an axis of extent 1 can be dropped, got %s", prim_shape_text(a, 0));
    for (int k = axis; k + 1 < s.rank; k++)
        s.d[k] = s.d[k + 1];
    s.rank--;
    return v_tensor(ir_reshape(prim_graph(a), a->v[0].val, &s));
}

static Value p_broadcast(PrimArgs *a)
{
    Shape to, out;
    if (!eval_shape(a->ev, a->ast[1], a->env, a->scope, &to, "to"))
        return v_poison();
    if (!shape_broadcast(prim_shape(a, 0), &to, &out) || !shape_eq(&out, &to)) {
        Buf b = buf_new(a->ev->arena);
        shape_print(&b, &to);
        const char *why = odd_extents(a->ev, prim_shape(a, 0), &to);
        Diag *d = err(a->ev, "E0311", a->ast[1]->span, why, "%s cannot be broadcast to %s", prim_shape_text(a, 0), b.s);
        if (prim_shape(a, 0)->rank > to.rank)
            diag_note(a->ev->ctx, d, "the tensor has %d axes, the shape %d", prim_shape(a, 0)->rank, to.rank);
        diag_help(
            a->ev->ctx, d,
            "an extent of 1 becomes any other, and new axes stand in front: `unsqueeze(x, k)` puts one at place k");
        return v_poison();
    }
    return v_tensor(ir_broadcast(prim_graph(a), a->v[0].val, &to));
}

static Value p_shift(PrimArgs *a)
{
    int axis;
    if (!prim_axis(a, 2, prim_shape(a, 0)->rank, &axis))
        return v_poison();
    if (a->v[1].num == 0)
        return a->v[0]; /* decoding looks at what mixes positions */
    if (!strcmp(a->prim->name, "roll"))
        return v_tensor(ir_roll(prim_graph(a), a->v[0].val, axis, (int64_t)a->v[1].num));
    bool integer = node_at(prim_graph(a), a->v[0].val)->dtype == DT_INT;
    if (integer && (!is_whole(a->v[3].num) || fabs(a->v[3].num) >= 2e9))
        return prim_fail(a, "E0310", 3, "a tensor of integers is filled with a whole number below 2e9, got %.6g",
                         a->v[3].num);
    return v_tensor(ir_shift(prim_graph(a), a->v[0].val, axis, (int64_t)a->v[1].num, a->v[3].num));
}

/* ---- by index ---- */

static Value p_gather(PrimArgs *a)
{
    if (!prim_real(a, 0) || !prim_integer(a, 1))
        return v_poison();
    if (!prim_shape(a, 0)->rank || prim_shape(a, 0)->rank - 1 + prim_shape(a, 1)->rank > MAX_RANK)
        return prim_fail(a, "E0318", 0, "`gather` needs a table, got %s", prim_shape_text(a, 0));
    return v_tensor(ir_gather(prim_graph(a), a->v[0].val, a->v[1].val));
}

static bool leads_equal(const Shape *x, const Shape *y)
{
    bool ok = x->rank == y->rank && x->rank > 0;
    for (int k = 0; ok && k + 1 < x->rank; k++)
        ok = dim_eq(x->d[k], y->d[k]);
    return ok;
}

static Value p_pick(PrimArgs *a)
{
    if (!prim_integer(a, 1))
        return v_poison();
    if (!leads_equal(prim_shape(a, 0), prim_shape(a, 1))) {
        Diag *d = err(a->ev, "E0311", a->ast[1]->span, "", "`pick` needs equal leading dimensions, got %s and %s",
                      prim_shape_text(a, 0), prim_shape_text(a, 1));
        Buf b = buf_new(a->ev->arena);
        Shape lead = *prim_shape(a, 0);
        for (int k = 0; k + 1 < lead.rank; k++) {
            dim_print(&b, lead.d[k]);
            buf_puts(&b, ", ");
        }
        diag_help(a->ev->ctx, d, "the index says for each row which of its entries: [%sk]; `gather` takes whole rows",
                  b.n ? b.s : "");
        return v_poison();
    }
    return v_tensor(ir_pick(prim_graph(a), a->v[0].val, a->v[1].val));
}

static Value p_one_hot(PrimArgs *a)
{
    if (!prim_integer(a, 0))
        return v_poison();
    if (a->v[1].kind != V_NUM)
        return prim_fail(a, "E0206", 1, "`one_hot` needs a static number of classes");
    Shape s = *prim_shape(a, 0);
    Dim size;
    if (s.rank == MAX_RANK)
        return prim_fail(a, "E0008", 0, "limit `rank` reached: %d", MAX_RANK);
    s.d[s.rank++] = DIM((int64_t)a->v[1].num);
    if (!shape_size(&s, &size))
        return prim_fail(a, "E0008", 1, "limit `tensor size` reached: 2^53 elements");
    return v_tensor(ir_one_hot(prim_graph(a), a->v[0].val, (int64_t)a->v[1].num));
}

static Value p_top_k(PrimArgs *a)
{
    const Shape *s = prim_shape(a, 0);
    if (!prim_real(a, 0))
        return v_poison();
    double k = a->v[1].num;
    if (s->rank && !dim_static(s->d[s->rank - 1])) {
        Diag *d = err(a->ev, "E0321", a->ast[0]->span, "", "`top_k` cannot choose along the last axis of %s",
                      prim_shape_text(a, 0));
        diag_note(a->ev->ctx, d, "how many entries it has is known only when training, so it may have fewer than %.0f",
                  k);
        diag_help(a->ev->ctx, d,
                  "`top_k` chooses along an axis with a number of entries, such as experts or the width");
        return v_poison();
    }
    if (!s->rank || k < 1 || k > (double)s->d[s->rank - 1].n)
        return prim_fail(a, "E0321", 1, "cannot take the %.0f largest along the last axis of %s", k,
                         prim_shape_text(a, 0));
    Graph *g = prim_graph(a);
    Val index = ir_top_k(g, a->v[0].val, (int64_t)k);
    Value *v = NEW_ARRAY(a->ev->arena, Value, 2);
    v[0] = v_tensor(ir_pick(g, a->v[0].val, index));
    v[1] = v_tensor(index);
    Field f[2] = {{name_str(a->ev->ctx, "values"), &v[0], a->call->span},
                  {name_str(a->ev->ctx, "index"), &v[1], a->call->span}};
    return v_record(a->ev, "top_k", f, 2);
}

static Value p_arange(PrimArgs *a)
{
    Shape s = {.rank = 1};
    if (!value_dim(a->ev, &a->v[0], a->span[0], "n", &s.d[0]))
        return v_poison();
    return v_tensor(ir_iota(prim_graph(a), &s, 0));
}

static Value p_expert_matmul(PrimArgs *a)
{
    if (!prim_real(a, 0) || !prim_real(a, 1) || !prim_integer(a, 2))
        return v_poison();
    const Shape *x = prim_shape(a, 0), *w = prim_shape(a, 1), *i = prim_shape(a, 2);
    bool per_token = x->rank == i->rank, per_pair = x->rank == i->rank + 1;
    bool ok = w->rank == 3 && i->rank >= 1 && (per_token || per_pair) && dim_eq(x->d[x->rank - 1], w->d[1]);
    for (int k = 0; ok && k < (per_pair ? i->rank : i->rank - 1); k++)
        ok = dim_eq(x->d[k], i->d[k]);
    if (!ok)
        return prim_fail(
            a, "E0301", 1,
            "`expert_matmul` takes x [.., I] or [.., k, I], w [experts, I, O] and index [.., k]; got %s, %s and %s",
            prim_shape_text(a, 0), prim_shape_text(a, 1), prim_shape_text(a, 2));
    return v_tensor(ir_expert_matmul(prim_graph(a), a->v[0].val, a->v[1].val, a->v[2].val));
}

/* ---- attention ---- */

static Name random_site(PrimArgs *a)
{
    Name path = a->scope ? a->scope->path : name_str(a->ev->ctx, "");
    void **slot = map_at(&a->ev->build->sites, (uintptr_t)path);
    size_t k = (size_t)(uintptr_t)*slot;
    *slot = (void *)(uintptr_t)(k + 1);
    return name_printf(a->ev->ctx, "%s#%zu", path, k + 1);
}

/* What of the three shapes does not fit; NULL: all fits. */
static const char *sdpa_misfit(const Shape *q, const Shape *k, const Shape *v)
{
    if (q->rank != 4 || k->rank != 4 || v->rank != 4)
        return "each has four axes; `reshape(x, [B, T, heads, d])` cuts the last of three into heads";
    if (!dim_eq(q->d[0], k->d[0]) || !dim_eq(k->d[0], v->d[0]))
        return "the first extent is the same for all three";
    if (!dim_eq(k->d[1], v->d[1]))
        return "k and v have the same positions: their second extents differ";
    if (!dim_eq(k->d[2], v->d[2]))
        return "k and v have the same heads: their third extents differ";
    if (!dim_eq(q->d[3], k->d[3]))
        return "heads of q and k are equally wide: their last extents differ";
    if (!dim_static(q->d[2]) || !dim_static(k->d[2]) || k->d[2].n <= 0)
        return "heads are a number, in the third place: `permute(x, [1, 3, 2, 4])` brings [B, heads, T, d] to it";
    return q->d[2].n % k->d[2].n ? "the heads of k do not divide those of q" : NULL;
}

static Value p_sdpa(PrimArgs *a)
{
    for (size_t i = 0; i < 3; i++)
        if (!prim_real(a, i))
            return v_poison();
    const Shape *q = prim_shape(a, 0), *k = prim_shape(a, 1), *v = prim_shape(a, 2);
    const char *wrong = sdpa_misfit(q, k, v);
    if (wrong) {
        Diag *d = err(a->ev, "E0323", a->ast[0]->span, "",
                      "`sdpa` takes q [B, T, heads, d], k [B, S, kv, d], v [B, S, kv, e] with kv dividing heads; "
                      "got %s, %s and %s",
                      prim_shape_text(a, 0), prim_shape_text(a, 1), prim_shape_text(a, 2));
        diag_note(a->ev->ctx, d, "%s", wrong);
        return v_poison();
    }
    Value m = a->v[3];
    bool document = m.kind == V_WORD && !strcmp(m.word, "document");
    bool causal = document || (m.kind == V_WORD && !strcmp(m.word, "causal"));
    if (!causal && !(m.kind == V_WORD && !strcmp(m.word, "full")))
        return prim_fail(a, "E0205", 3, "`mask` must be `causal`, `document` or `full`");
    if (document && (!dim_eq(q->d[0], DIM_B) || !dim_eq(q->d[1], DIM_T)))
        return prim_fail(a, "E0323", 0, "`mask = document` needs the positions of the text, [B, T, ..], got %s",
                         prim_shape_text(a, 0));
    if (causal && !dim_eq(q->d[1], k->d[1]))
        return prim_fail(a, "E0323", 1, "a causal mask needs as many keys as queries");
    if (a->v[7].num < 0 || a->v[7].num >= 1)
        return prim_fail(a, "E0208", 7, "`dropout` must be in [0, 1), as `10%%` is, got %.6g", a->v[7].num);
    if (a->v[5].num < 0)
        return prim_fail(a, "E0208", 5, "`window` must not be negative");
    if (a->v[6].num < 0)
        return prim_fail(a, "E0208", 6, "`softcap` must not be negative");
    Sdpa how = {.causal = causal,
                .scale = a->v[4].num,
                .window = (int64_t)a->v[5].num,
                .softcap = a->v[6].num,
                .dropout = a->v[7].num,
                .site = random_site(a)};
    if (document)
        how.oldest = ir_ext(prim_graph(a), EXT_INPUT, name_str(a->ev->ctx, "document"), DT_INT,
                            &(Shape){.rank = 2, .d = {DIM_B, DIM_T}});
    return v_tensor(ir_sdpa(prim_graph(a), a->v[0].val, a->v[1].val, a->v[2].val, &how));
}

static Value p_rotary(PrimArgs *a)
{
    const Shape *s = prim_shape(a, 0);
    if (!prim_real(a, 0))
        return v_poison();
    if (s->rank != 4 || !dim_static(s->d[3]))
        return prim_fail(a, "E0323", 0, "`rotary` takes [B, T, heads, d], got %s", prim_shape_text(a, 0));
    int64_t d = s->d[3].n;
    double *freq;
    size_t n;
    if (a->v[3].kind != V_NONE && a->v[3].kind != V_LIST)
        return prim_fail(a, "E0206", 3, "`freqs` is a list of numbers, got %s", value_kind_name(&a->v[3]));
    for (size_t k = 1; k < 3 && a->v[3].kind == V_LIST; k++)
        if (a->v[k].kind != V_NONE)
            return prim_fail(a, "E0206", k, "`freqs` gives every frequency: `%s` means nothing beside it",
                             k == 1 ? "base" : "dims");
    if (a->v[3].kind == V_LIST) {
        n = a->v[3].list->n;
        freq = NEW_ARRAY(a->ev->arena, double, n + 1);
        for (size_t i = 0; i < n; i++) {
            if (a->v[3].list->v[i].kind != V_NUM)
                return prim_fail(a, "E0206", 3, "`freqs` is a list of numbers");
            freq[i] = a->v[3].list->v[i].num;
        }
    } else {
        if (a->v[1].kind != V_NUM)
            return prim_fail(a, "E0104", 1, "`rotary` needs `base` or a list `freqs`");
        if (a->v[1].num <= 0)
            return prim_fail(a, "E0208", 1, "`base` must be positive");
        if (a->v[2].kind != V_NONE && a->v[2].kind != V_NUM)
            return prim_fail(a, "E0206", 2, "`dims` must be a number, got %s", value_kind_name(&a->v[2]));
        double dims = a->v[2].kind == V_NONE ? (double)d : a->v[2].num;
        if (!is_whole(dims) || fmod(rint(dims), 2) != 0 || dims < 0 || dims > (double)d)
            return prim_fail(a, "E0305", 0,
                             "rotary embedding rotates pairs: %.6g of %lld coordinates cannot be rotated", dims,
                             (long long)d);
        n = (size_t)rint(dims) / 2;
        spend(a->ev, (Span){0}, (int64_t)n);
        freq = NEW_ARRAY(a->ev->arena, double, n + 1);
        for (size_t i = 0; i < n; i++)
            freq[i] = pow(a->v[1].num, -2.0 * (double)i / rint(dims));
    }
    if (2 * (int64_t)n > d)
        return prim_fail(a, "E0305", 3, "%zu frequencies rotate %zu coordinates, the head has %lld", n, 2 * n,
                         (long long)d);
    return n ? v_tensor(ir_rotary(prim_graph(a), a->v[0].val, freq, n, a->v[4].num != 0)) : a->v[0];
}

/* ---- training ---- */

static Value p_cross_entropy(PrimArgs *a)
{
    if (!prim_real(a, 0) || !prim_integer(a, 1))
        return v_poison();
    Shape lead = *prim_shape(a, 0);
    if (lead.rank)
        lead.rank--;
    if (!shape_eq(&lead, prim_shape(a, 1))) {
        Buf b = buf_new(a->ev->arena);
        shape_print(&b, &lead);
        Diag *d = err(a->ev, "E0311", a->ast[1]->span, "",
                      "`cross_entropy` needs one label per position: logits %s, labels %s", prim_shape_text(a, 0),
                      prim_shape_text(a, 1));
        diag_help(a->ev->ctx, d, "labels of these logits are integers %s%s", b.s,
                  strcmp(b.s, "[B, T]") ? "" : ", as `input.labels` is");
        return v_poison();
    }
    if (a->v[3].num < 0 || a->v[3].num >= 1)
        return prim_fail(a, "E0208", 3, "`smoothing` must be in [0, 1)");
    return v_tensor(ir_cross_entropy(prim_graph(a), a->v[0].val, a->v[1].val, (int64_t)a->v[2].num, a->v[3].num));
}

static Value p_drop(PrimArgs *a)
{
    double p = a->v[1].num;
    if (!prim_real(a, 0))
        return v_poison();
    if (p < 0 || p >= 1)
        return prim_fail(a, "E0208", 1, "a dropout rate must be in [0, 1), as `10%%` is, got %.6g", p);
    if (p == 0)
        return a->v[0];
    Graph *g = prim_graph(a);
    Val x = a->v[0].val;
    Val u = ir_random(g, OP_RAND, shape_of(g, x), random_site(a));
    Val keep = ir_binary(g, OP_LE, ir_fill(g, p), u);
    Val mask = ir_stop(g, ir_scale(g, keep, 1 / (1 - p)), STOP_DROPOUT);
    return v_tensor(ir_binary(g, OP_MUL, x, mask));
}

static Value p_random(PrimArgs *a)
{
    Shape s;
    if (!eval_shape(a->ev, a->ast[0], a->env, a->scope, &s, "shape"))
        return v_poison();
    Graph *g = prim_graph(a);
    if (strcmp(a->prim->name, "bernoulli")) {
        Op op = !strcmp(a->prim->name, "randn") ? OP_RANDN : OP_RAND;
        return v_tensor(ir_random(g, op, &s, random_site(a)));
    }
    if (a->v[1].num < 0 || a->v[1].num > 1)
        return prim_fail(a, "E0208", 1, "a probability must be in [0, 1]");
    Val u = ir_random(g, OP_RAND, &s, random_site(a));
    return v_tensor(ir_binary(g, OP_LT, u, ir_fill(g, a->v[1].num)));
}

static Value p_cast(PrimArgs *a)
{
    Name to = a->v[1].kind == V_WORD ? a->v[1].word : "";
    Graph *g = prim_graph(a);
    if (!strcmp(to, "real") || !strcmp(to, "int"))
        return v_tensor(ir_cast(g, a->v[0].val, to[0] == 'r' ? DT_REAL : DT_INT));
    if (!strcmp(to, "fp32"))
        return prim_real(a, 0) ? a->v[0] : v_poison();
    Half kind;
    if (!half_read(to, false, &kind))
        return prim_fail(a, "E0205", 1, "`cast` knows real, int, fp32, %s", half_words(a->ev->arena, false, ", "));
    if (!prim_real(a, 0))
        return v_poison();
    return v_tensor(ir_node(g, OP_ROUND_TO, &a->v[0].val, 1, &(Attr){.i = kind}, NULL));
}

/* ---- the model around a block ---- */

static Value p_input(PrimArgs *a)
{
    Shape s;
    if (a->v[0].kind != V_WORD || !eval_shape(a->ev, a->ast[1], a->env, a->scope, &s, "shape"))
        return v_poison();
    bool integer = a->v[2].kind == V_WORD && !strcmp(a->v[2].word, "int");
    if (!integer && !(a->v[2].kind == V_WORD && !strcmp(a->v[2].word, "real")))
        return prim_fail(a, "E0205", 2, "the kind of an input is `real` or `int`");
    return graph_input(a->ev, a->v[0].word, integer ? DT_INT : DT_REAL, &s, a->call->span);
}

/* A module that a node has applied: whoever applies it again shares its weights. */
typedef struct Lent {
    const BlockValue *block;
    Binding *via;
    Name name;
    Scope *scope; /* of the node */
} Lent;

static Value apply_lent(Eval *ev, void *self, Value x, Span at)
{
    const Lent *l = self;
    return block_apply(ev, l->block, &x, 1, l->name, l->via, l->scope, at);
}

static Value module_of(PrimArgs *a, Name node, Name name, Binding *via, const BlockValue *block)
{
    Lent *l = NEW(a->ev->arena, Lent);
    *l = (Lent){block, via, name, scope_new(a->ev, a->scope, node, a->call->span)};
    Sub *sub = NEW(a->ev->arena, Sub);
    *sub = (Sub){apply_lent, l};
    return (Value){.kind = V_SUB, .sub = sub};
}

static Value p_weight(PrimArgs *a)
{
    Builder *b = a->ev->build;
    if (a->v[0].kind != V_WORD || a->v[1].kind != V_WORD)
        return prim_fail(a, "E0206", 0, "`tied` needs the kind and the label of a node: tied(embed, tokens)");
    Name path = name_printf(a->ev->ctx, "%s.%s", a->v[0].word, a->v[1].word);
    Env *env = map_get(&b->latest, (uintptr_t)path);
    Name want = a->v[2].kind == V_WORD ? a->v[2].word : name_str(a->ev->ctx, "W");
    Binding *bd = env ? env_find_local(env, want) : NULL;
    if (!bd)
        return prim_fail(a, "E0102", 1, env ? "`%s` has nothing named `%s`" : "no node `%s` before this one%.0s", path,
                         want);
    Value v = binding_get(a->ev, bd, a->scope);
    return v.kind == V_BLOCK ? module_of(a, path, want, bd, v.block) : v;
}

/* The connection of the place: its open and close, for heads that travel through layers of their own. */
static Value connection_method(PrimArgs *a, const char *method, Name node)
{
    bool found;
    Value c = scope_value(a->ev, a->scope, name_str(a->ev->ctx, "connection"), &found);
    if (!found || c.kind != V_BLOCK)
        return found && c.kind == V_POISON ? c : prim_fail(a, "E0203", 0, "no `connection` in scope");
    Name path = name_printf(a->ev->ctx, "%s.connection.%s", node, method);
    return block_method(a->ev, c.block, name_str(a->ev->ctx, method), a->v, 1, path, a->scope, a->call->span);
}

static Value p_embedding(PrimArgs *a)
{
    Value e = a->ev->build->embed;
    return e.kind == V_NONE ? prim_fail(a, "E0102", 0, "no `embed` node before this one") : e;
}

static Value p_extent(PrimArgs *a)
{
    int axis;
    if (!prim_axis(a, 1, prim_shape(a, 0)->rank, &axis))
        return v_poison();
    return v_dim(prim_shape(a, 0)->d[axis]);
}

static Value p_flatten(PrimArgs *a)
{
    Shape s = *prim_shape(a, 0);
    if (s.rank < 2)
        return prim_fail(a, "E0319", 0, "`flatten` keeps two axes and needs at least as many, got %s",
                         prim_shape_text(a, 0));
    Dim rest = DIM(1);
    for (int k = 2; k < s.rank; k++)
        if (!dim_mul(rest, s.d[k], &rest))
            return prim_fail(a, "E0008", 0, "limit `tensor size` reached: 2^53 elements");
    s.rank = 3;
    s.d[2] = rest;
    return v_tensor(ir_reshape(prim_graph(a), a->v[0].val, &s));
}

static Value p_open_state(PrimArgs *a) { return connection_method(a, "open", a->scope->path); }

/* With `of = lm` by the modules that closed the state for `head lm`. */
static Value p_close_state(PrimArgs *a)
{
    if (a->v[1].kind != V_WORD)
        return connection_method(a, "close", a->scope->path);
    Name node = name_printf(a->ev->ctx, "head.%s", a->v[1].word);
    if (!map_get(&a->ev->build->exports, (uintptr_t)node))
        return prim_fail(a, "E0102", 1, "no node `%s` before this one", node);
    return connection_method(a, "close", node);
}

const Prim tensor_prims[] = {
    {"reshape", "x: tensor, to: shape", p_reshape, "the same elements, row by row, in another shape", 0, false},
    {"permute", "x: tensor, order: list", p_permute, "axes in another order, counted from 1", 0, false},
    {"concat", "x...: tensor, axis: int = -1", p_concat, "tensors one after the other along an axis", 0, false},
    {"split", "x: tensor, parts: any, axis: int = -1", p_split, "a list of parts: a number of equal ones, or sizes", 0,
     false},
    {"first", "x: tensor, k: dim, axis: int = -1", p_first, "the first k coordinates of an axis", 0, false},
    {"rest", "x: tensor, k: dim, axis: int = -1", p_first, "what follows the first k coordinates", 0, false},
    {"slice", "x: tensor, from: int, count: dim, axis: int = -1", p_slice,
     "`count` coordinates starting at the `from`-th", 0, false},
    {"pad", "x: tensor, k: dim, axis: int = -1", p_pad, "zeros behind an axis up to extent k", 0, false},
    {"repeat", "x: tensor, n: dim", p_repeat, "n copies in a new axis before the last", 0, false},
    {"unsqueeze", "x: tensor, axis: int = -1", p_unsqueeze, "a new axis of extent 1", 0, false},
    {"squeeze", "x: tensor, axis: int = -1", p_squeeze, "drops an axis of extent 1", 0, false},
    {"broadcast", "x: tensor, to: shape", p_broadcast, "axes of extent 1 repeated", 0, false},
    {"shift", "x: tensor, k: int, axis: int = 2, fill: float = 0", p_shift,
     "moved by k along an axis, `fill` where nothing moved in", 0, false},
    {"roll", "x: tensor, k: int, axis: int = 2", p_shift, "moved by k along an axis, around the end", 0, false},
    {"gather", "table: tensor, index: tensor", p_gather,
     "rows of table [n, ..] by index [..], counted from 0: [index's extents, the table's others]", 0, false},
    {"pick", "x: tensor, index: tensor", p_pick,
     "entries of the last axis of x [.., n], real or integers, by index [.., k], counted from 0: [.., k]", 0, false},
    {"one_hot", "index: tensor, n: dim", p_one_hot, "1 at the index, 0 elsewhere", 0, false},
    {"top_k", "x: tensor, k: int", p_top_k,
     "the k largest of the last axis: .values and .index, ties to the lowest index", 0, false},
    {"arange", "n: dim", p_arange, "the integers 0 to n - 1", 0, false},
    {"expert_matmul", "x: tensor, w: tensor, index: tensor", p_expert_matmul,
     "x [.., I] or [.., k, I] times the matrices of w [experts, I, O] that index [.., k] chooses, counted from 0: [.., "
     "k, O]",
     0, false},
    {"sdpa",
     "q: tensor, k: tensor, v: tensor, mask: word, scale: float, window: int = 0, softcap: float = 0, dropout: float = "
     "0",
     p_sdpa,
     "softmax attention of q [B, T, heads, d], k [B, S, kv, d] and v [B, S, kv, e], where kv divides heads: [B, T, "
     "heads, e]",
     0, false},
    {"rotary", "x: tensor, base: any = none, dims: any = none, freqs: any = none, interleaved: bool = false", p_rotary,
     "rotates the pairs (i, i + dims / 2), or interleaved (2 i, 2 i + 1), by position times frequency", 0, false},
    {"cross_entropy", "logits: tensor, labels: tensor, ignore: int = -1, smoothing: float = 0", p_cross_entropy,
     "per position; 0 where the label is negative or ignored", 0, false},
    {"drop", "x: tensor, p: float", p_drop, "dropout: zero with probability p, else divided by 1 - p", 0, false},
    {"randn", "shape: shape", p_random, "standard normal numbers, new in every step", 0, false},
    {"rand", "shape: shape", p_random, "uniform numbers in [0, 1), new in every step", 0, false},
    {"bernoulli", "shape: shape, p: float", p_random, "1 with probability p, else 0, new in every step", 0, false},
    {"cast", "x: tensor, to: word", p_cast,
     "real, int, or rounded to bf16, fp16, fp8_e4m3 (which saturates) or fp8_e5m2", 0, false},
    {"input", "name: word, shape: shape, kind: word = real", p_input, "a tensor given with every batch: real or int", 0,
     false},
    {"tied", "kind: word, label: word, name: word = W", p_weight,
     "a weight, a tensor or a module of the node `kind label` before this one, in loops of the last one, shared with "
     "it",
     0, false},
    {"embedding", "", p_embedding, "what the embed nodes made: [B, T, E]", 0, false},
    {"extent", "x: tensor, axis: int", p_extent, "the extent of an axis, as a dimension", 0, false},
    {"flatten", "x: tensor", p_flatten, "[B, T, ...] with all axes after the second merged into one", 0, false},
    {"open_state", "e: tensor", p_open_state, "`open` of the connection in scope", 0, false},
    {"close_state", "state: tensor, of: word = none", p_close_state,
     "`close` of the connection in scope; `of = lm`: with the weights of that head", 0, false},
};
const size_t tensor_prim_count = COUNT_OF(tensor_prims);
