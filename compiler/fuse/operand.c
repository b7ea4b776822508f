/* operand.c - tensors as libraries see them.
 *
 * In:  a value behind views.     Out: its base in memory, offset, extents and strides.
 * The one idea: walk the coordinates down to what is stored; if the place there grows by a
 * fixed amount along every axis, no copy is needed.
 */
#include "fuse.h"

/* Most operands lie as they are stored, behind reshapes at most: no indices are needed. */
static bool plain_operand(const Fusion *f, Val x, Operand *out)
{
    const Shape *s = shape_of(f->g, x);
    int64_t stride = 1;
    Val u = x;
    while (fuse_is_view(f, u) && node_at(f->g, u)->op == OP_RESHAPE)
        u = node_at(f->g, u)->in[0];
    if (fuse_is_view(f, u) || f->row_of[u])
        return false;
    *out = (Operand){.base = u, .rank = s->rank};
    for (int i = s->rank - 1; i >= 0; i--) {
        out->extent[i] = dim_at(s->d[i], f->B, f->T);
        out->stride[i] = out->extent[i] == 1 ? 0 : stride;
        stride *= out->extent[i];
    }
    return stride > 0; /* of what is empty the other way tells the strides */
}

bool fuse_operand(const Fusion *f, Val x, Operand *out)
{
    if (plain_operand(f, x, out))
        return true;
    const Graph *g = f->g;
    const Shape *s = shape_of(g, x);
    ArenaMark mark = arena_mark(f->tmp);
    IxTable t;
    ix_init(&t, f->ctx, f->tmp, f->B, f->T);
    Ix c[MAX_RANK] = {0};
    IVar var[MAX_RANK];
    out->rank = s->rank;
    for (int i = 0; i < s->rank; i++) {
        out->extent[i] = ix_dim_at(&t, s->d[i]);
        var[i] = ix_loop(&t, s->d[i], i);
        c[i] = ix_var(&t, var[i]);
    }
    Val u = x;
    while (fuse_is_view(f, u)) {
        Ix in[MAX_RANK] = {0};
        fuse_input_coords(&t, g, u, c, 0, 8, in);
        memcpy(c, in, sizeof c);
        u = node_at(g, u)->in[0];
    }
    Ix at = ix_linear(&t, fuse_layout(f, u), c);
    bool ok = true;
    out->base = u;
    for (int i = 0; i < s->rank && ok; i++)
        ok = ix_slope(&t, at, var[i], &out->stride[i]);
    out->offset = ix_form(&t, at)->lo;
    arena_reset(f->tmp, mark);
    return ok;
}

bool operand_merge(const Operand *o, int from, int to, int64_t *extent, int64_t *stride)
{
    *extent = 1;
    *stride = 0;
    for (int i = to - 1; i >= from; i--) {
        if (o->extent[i] == 1)
            continue;
        if (*extent != 1 && o->stride[i] != *extent * *stride)
            return false;
        if (*extent == 1)
            *stride = o->stride[i];
        *extent *= o->extent[i];
    }
    return true;
}

bool operand_contiguous(const Operand *o)
{
    int64_t extent, stride;
    return operand_merge(o, 0, o->rank, &extent, &stride) && (extent == 1 || stride == 1);
}

bool operand_rows(const Operand *o, int64_t *rows, int64_t *pitch)
{
    int last = o->rank - 1;
    return operand_merge(o, 0, last, rows, pitch) && (o->stride[last] == 1 || o->extent[last] == 1);
}

bool operand_matrix(const Operand *o, bool merge_rows, MatrixView *out)
{
    int r = o->rank;
    int64_t rs, cs = o->stride[r - 1];
    *out = (MatrixView){.rows = o->extent[r - 2], .columns = o->extent[r - 1], .batch = 1};
    rs = o->stride[r - 2];
    if (merge_rows) {
        if (!operand_merge(o, 0, r - 1, &out->rows, &rs))
            return false;
    } else if (!operand_merge(o, 0, r - 2, &out->batch, &out->step)) {
        return false;
    }
    if (cs == 1 || out->columns == 1) {
        out->ld = out->rows == 1 ? out->columns : rs;
        return out->ld >= out->columns;
    }
    if (rs == 1 || out->rows == 1) {
        out->transposed = true;
        out->ld = cs;
        return out->ld >= out->rows;
    }
    return false;
}
