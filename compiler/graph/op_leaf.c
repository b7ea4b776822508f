/* op_leaf.c - leaves: external tensors, constants, extents, indices, random numbers.
 *
 * In:  attributes and tables of the graph.     Out: tensors without inputs.
 * The one idea: a leaf has no gradient rule of its own; what arrives at it is the result.
 */
#include "op.h"

#include <math.h>

NO_GRAD(EXT)
NO_GRAD(CONST)
NO_GRAD(FILL)
NO_GRAD(HOST)
NO_GRAD(DIM)
NO_GRAD(IOTA)
NO_GRAD(RAND)
NO_GRAD(RANDN)

const char *shape_EXT(const Ask *q, Shape *out, DType *dtype)
{
    if (q->a->i < 0 || (size_t)q->a->i >= q->g->ext.n)
        return "there is no such external tensor";
    *out = q->g->ext.v[q->a->i].shape;
    *dtype = q->g->ext.v[q->a->i].dtype;
    return NULL;
}

void eval_EXT(const OpEval *e) { vwn_bug(e->ctx, "external tensors are bound, not computed"); }

const char *shape_CONST(const Ask *q, Shape *out, DType *dtype)
{
    Dim size;
    (void)dtype;
    *out = *q->given;
    if (!shape_size(out, &size) || !dim_static(size))
        return "a table of numbers needs a static shape";
    return (size_t)size.n == q->a->n ? NULL : "the table has another length than the shape";
}

void eval_CONST(const OpEval *e)
{
    if (e->out->size)
        memcpy(e->out->real, e->n->a.data, (size_t)e->out->size * sizeof(double));
}

const char *shape_FILL(const Ask *q, Shape *out, DType *dtype)
{
    out->rank = 0;
    *dtype = q->a->j ? DT_INT : DT_REAL;
    if (q->a->j != 0 && q->a->j != 1)
        return "j is neither 0 nor 1";
    if (q->a->j && (q->a->x != floor(q->a->x) || fabs(q->a->x) > 9007199254740992.0))
        return "the value is not an integer of at most 53 bits";
    return NULL;
}

void eval_FILL(const OpEval *e)
{
    if (e->out->dtype == DT_INT)
        e->out->integer[0] = (int64_t)e->n->a.x;
    else
        e->out->real[0] = e->n->a.x;
}

const char *shape_HOST(const Ask *q, Shape *out, DType *dtype)
{
    (void)dtype;
    out->rank = 0;
    if (q->a->i < 0 || (size_t)q->a->i >= q->g->host.n)
        return "there is no such host scalar";
    return NULL;
}

void eval_HOST(const OpEval *e)
{
    double none[HV_COUNT] = {0};
    none[HV_TRAIN_LOSS] = none[HV_EVAL_LOSS] = none[HV_GRAD_NORM] = NAN;
    const double *vars = e->run->host_vars ? e->run->host_vars : none;
    e->out->real[0] = host_eval(e->g->host.v[e->n->a.i], vars);
}

const char *shape_DIM(const Ask *q, Shape *out, DType *dtype)
{
    (void)dtype;
    out->rank = 0;
    if (q->a->dim.n < 0 || (q->a->dim.n == 0 && !dim_static(q->a->dim)))
        return "the extent is not one";
    return NULL;
}

void eval_DIM(const OpEval *e) { e->out->real[0] = (double)dim_at(e->n->a.dim, e->run->B, e->run->T); }

const char *shape_IOTA(const Ask *q, Shape *out, DType *dtype)
{
    *out = *q->given;
    *dtype = DT_INT;
    if (q->a->i < 0 || q->a->i >= out->rank)
        return "the axis does not exist";
    return NULL;
}

void eval_IOTA(const OpEval *e)
{
    Around r = around(e->out, (int)e->n->a.i);
    int64_t p = 0;
    for (int64_t o = 0; o < r.outer; o++)
        for (int64_t k = 0; k < r.n; k++)
            for (int64_t i = 0; i < r.inner; i++)
                e->out->integer[p++] = k;
}

static const char *random_shape(const Ask *q, Shape *out, DType *dtype)
{
    (void)dtype;
    *out = *q->given;
    return q->a->site ? NULL : "the site is missing";
}
SAME_SHAPE_RULE(RAND, random_shape)
SAME_SHAPE_RULE(RANDN, random_shape)

void eval_RAND(const OpEval *e)
{
    uint64_t key = philox_key(e->run->seed, e->n->a.site);
    for (int64_t i = 0; i < e->out->size; i++)
        e->out->real[i] = philox_uniform(key, e->run->step, e->drawn + (uint64_t)i);
}

void eval_RANDN(const OpEval *e)
{
    uint64_t key = philox_key(e->run->seed, e->n->a.site);
    philox_normals(key, e->run->step, e->drawn, (size_t)e->out->size, e->out->real);
}
