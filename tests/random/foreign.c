/* foreign.c - see child.h: weights of others.
 *
 * The one idea: every number of the file follows from its name, its tensor and its place, and so does what is left out,
 * shorter or longer, so what a run must begin with is computed again here, by loops over indices.
 */
#include "child.h"

#include "compiler/portable/safetensors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* A weight as it lies in the file. */
typedef struct Foreign {
    const char *name;
    bool there, turned;
    int type, rank;
    int64_t d[MAX_RANK]; /* in the model's order of axes */
} Foreign;

static uint32_t mixed(uint32_t a, uint32_t b)
{
    uint64_t x = (uint64_t)a * 0x9e3779b97f4a7c15u + b;
    x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
    return (uint32_t)(x >> 33);
}

/* Few bits, so that every type holds it: not 0. */
static double number(uint32_t seed, size_t tensor, int64_t at)
{
    int k = (int)(mixed(seed + 17 * (uint32_t)tensor, (uint32_t)at) % 30) - 15;
    return (k < 0 ? k : k + 1) / 8.0;
}

static bool said(const char *text, const char *word)
{
    const char *at = strstr(text, "start_from"), *end = at ? strchr(at, '\n') : NULL;
    const char *w = at ? strstr(at, word) : NULL;
    return w && w < end;
}

static Foreign foreign(const Model *m, const char *text, uint32_t seed, size_t i)
{
    const Param *p = &m->param.v[i];
    Foreign f = {.name = p->path, .rank = p->shape.rank, .there = !p->buffer};
    for (size_t k = 0; k < m->alias.n; k++)
        if (m->alias.v[k].param == i)
            f.name = m->alias.v[k].other, f.turned = m->alias.v[k].transposed;
    uint32_t draw = mixed(seed, 1000 + (uint32_t)i);
    f.type = (int)(draw % 4);
    if (said(text, "new = draw") && draw / 4 % 5 == 0 && i > 0)
        f.there = false;
    for (int a = 0; a < f.rank; a++) {
        uint32_t other = mixed(draw, (uint32_t)a) % 6;
        f.d[a] = dim_at(p->shape.d[a], 1, 1);
        if (other == 0 && f.d[a] > 1 && said(text, "grown = draw"))
            f.d[a]--;
        else if (other == 1 && f.d[a] > 0 && said(text, "cut = drop"))
            f.d[a]++;
    }
    int64_t rows = f.rank == 2 ? dim_at(p->shape.d[0], 1, 1) : 0,
            columns = f.rank == 2 ? dim_at(p->shape.d[1], 1, 1) : 0;
    if (rows != columns && f.d[0] == columns && f.d[1] == rows) /* that would be one with its axes swapped */
        f.d[0] = rows, f.d[1] = columns;
    return f;
}

static int64_t elements(const Foreign *f)
{
    int64_t n = 1;
    for (int a = 0; a < f->rank; a++)
        n *= f->d[a];
    return n;
}

/* Where the file has the element of the model's index `at`; -1: nowhere. */
static int64_t place(const Foreign *f, const int64_t *at)
{
    int64_t k = 0;
    for (int a = 0; a < f->rank; a++) {
        int from = f->turned ? f->rank - 1 - a : a; /* matrices alone are turned */
        if (at[from] >= f->d[from])
            return -1;
        k = k * f->d[from] + at[from];
    }
    return k;
}

static void put_number(FILE *out, int type, double x)
{
    static const int sizes[] = {4, 8, 2, 2};
    unsigned char byte[8];
    uint32_t bits;
    float y = (float)x;
    memcpy(&bits, &y, sizeof bits);
    memcpy(byte, &x, sizeof byte);
    if (type == 0)
        memcpy(byte, &bits, sizeof bits);
    if (type == 2) /* bf16 */
        byte[0] = (unsigned char)(bits >> 16), byte[1] = (unsigned char)(bits >> 24);
    if (type == 3) { /* fp16, of a number with few bits between 1/8 and 2 */
        uint32_t half = (bits >> 16 & 0x8000) | ((bits >> 23 & 255) - 112) << 10 | (bits >> 13 & 0x3ff);
        byte[0] = (unsigned char)half, byte[1] = (unsigned char)(half >> 8);
    }
    fwrite(byte, 1, (size_t)sizes[type], out);
}

static bool file_of(const char *text, char name[64], unsigned *seed)
{
    const char *at = strstr(text, "\"weights_");
    if (!at || sscanf(at, "\"weights_%u.safetensors", seed) != 1)
        return false;
    snprintf(name, 64, "weights_%u.safetensors", *seed);
    return true;
}

void write_weights(const Model *m, const char *text)
{
    static const char *const type[] = {"F32", "F64", "BF16", "F16"};
    static const int sizes[] = {4, 8, 2, 2};
    char name[64];
    unsigned seed;
    FILE *out = file_of(text, name, &seed) ? fopen(name, "wb") : NULL;
    if (!out)
        return;
    Buf head = buf_new(m->graph->ctx->program);
    int64_t bytes = 0;
    buf_puts(&head, "{\"__metadata__\":{\"made\":\"at random\"}");
    for (size_t i = 0; i < m->param.n; i++) {
        Foreign f = foreign(m, text, seed, i);
        if (!f.there)
            continue;
        buf_printf(&head, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[", f.name, type[f.type]);
        for (int a = 0; a < f.rank; a++)
            buf_printf(&head, "%s%lld", a ? "," : "", (long long)f.d[f.turned ? f.rank - 1 - a : a]);
        int64_t end = bytes + elements(&f) * sizes[f.type];
        buf_printf(&head, "],\"data_offsets\":[%lld,%lld]}", (long long)bytes, (long long)end);
        bytes = end;
    }
    if (said(text, "left = drop"))
        buf_printf(&head, ",\"left.over\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[%lld,%lld]}",
                   (long long)bytes, (long long)bytes + 4);
    buf_puts(&head, "}");
    for (int i = 0; i < 8; i++)
        fputc((int)(head.n >> 8 * i & 255), out);
    fwrite(head.s, 1, head.n, out);
    for (size_t i = 0; i < m->param.n; i++) {
        Foreign f = foreign(m, text, seed, i);
        for (int64_t k = 0; f.there && k < elements(&f); k++)
            put_number(out, f.type, number(seed, i, k));
    }
    if (said(text, "left = drop"))
        put_number(out, 0, 1);
    fclose(out);
}

const char *weights_wrong(Ctx *ctx, const Model *m, const char *text, const char *checkpoint)
{
    char name[64], why[WHY];
    unsigned seed;
    SafeFile file;
    if (!file_of(text, name, &seed) || !safe_open(arena_region(ctx->program), checkpoint, &file, why))
        return arena_printf(ctx->program, "%s cannot be read", checkpoint);
    for (size_t i = 0; i < m->param.n; i++) {
        Foreign f = foreign(m, text, seed, i);
        const Param *p = &m->param.v[i];
        const SafeTensor *t = safe_find(&file, p->path);
        if (!t || t->elements != p->elements)
            return arena_printf(ctx->program, "the checkpoint has no %s of %lld numbers", p->path,
                                (long long)p->elements);
        double *got = NEW_ARRAY(ctx->program, double, p->elements + 1);
        if (!safe_read(&file, t, 0, p->elements, got, why))
            return p->path;
        for (int64_t k = 0; f.there && k < p->elements; k++) {
            int64_t at[MAX_RANK], rest = k;
            for (int a = f.rank - 1; a >= 0; a--) {
                int64_t d = dim_at(p->shape.d[a], 1, 1);
                at[a] = rest % d;
                rest /= d;
            }
            int64_t from = place(&f, at);
            if (from >= 0 && got[k] != number(seed, i, from))
                return arena_printf(ctx->program, "number %lld of %s is %g, the file has %g there", (long long)k,
                                    p->path, got[k], number(seed, i, from));
        }
    }
    safe_close(&file);
    return NULL;
}
