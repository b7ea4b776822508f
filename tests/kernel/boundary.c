/* boundary.c - see boundary.h. */
#include "boundary.h"

#include <stdio.h>

bool boundary_is_rows(const Plan *p, const Launch *l)
{
    if (l->kind != LAUNCH_KERNEL)
        return false;
    const char *about = p->kernel[l->kernel].text + 3;
    return strncmp(about, "rows", 4) == 0 || strncmp(about, "elements", 8) == 0;
}

static bool is_second_stage(const Plan *p, const Launch *l)
{
    return l->kind == LAUNCH_KERNEL && strncmp(p->kernel[l->kernel].text + 3, "second stage", 12) == 0;
}

/* A product, attention, by expert or by index; a copy is a kernel of the boundary. */
static bool is_library(const Plan *p, const Launch *l)
{
    return l->kind != LAUNCH_KERNEL || (!boundary_is_rows(p, l) && !is_second_stage(p, l) &&
                                        strncmp(p->kernel[l->kernel].text + 3, "copy", 4) != 0);
}

/* PARTS: from second stages alone, so no larger than a parameter. */
enum { DIRECT = 1, FAR = 2, PARTS = 4 };

/* What depends on the launches in `source` and on none in `stop`. */
static Boundary shadow(Arena *arena, const Plan *p, const bool *source, const bool *stop)
{
    Boundary out = {.launch = NEW_ARRAY(arena, size_t, p->n_launch + 1)};
    unsigned char *held = NEW_ARRAY(arena, unsigned char, p->n_buffer + 1); /* by buffer */
    for (size_t i = 0; i < p->n_launch; i++) {
        const Launch *l = &p->launch[i];
        unsigned char state = 0;
        for (uint32_t k = 0; k < l->n_buffer; k++)
            if (!l->writes[k])
                state |= held[l->buffer[k]];
        if (state && stop[i])
            state = FAR;
        if (source[i])
            state = DIRECT;
        else if (state & DIRECT && !(state & FAR)) {
            out.launch[out.n++] = i;
            out.library += is_library(p, l);
            out.rows += !is_library(p, l) && !is_second_stage(p, l);
            state = is_second_stage(p, l) ? PARTS : DIRECT;
        }
        for (uint32_t k = 0; k < l->n_buffer; k++)
            if (l->writes[k])
                held[l->buffer[k]] = state;
    }
    return out;
}

/* A parameter, or what a kernel has made of it alone: its numbers in bf16. */
static int32_t weight_of(const Plan *p, const Launch *l)
{
    int32_t ext = l->kind == LAUNCH_MATMUL ? p->buffer[l->buffer[1]].ext : -1;
    for (size_t i = 0; l->kind == LAUNCH_MATMUL && ext < 0 && i < p->n_launch; i++) {
        const Launch *by = &p->launch[i];
        bool writes = false;
        int reads = 0;
        int32_t from = -1;
        for (uint32_t k = 0; by->kind == LAUNCH_KERNEL && k < by->n_buffer; k++) {
            writes = writes || (by->writes[k] && by->buffer[k] == l->buffer[1]);
            reads += !by->writes[k];
            from = by->writes[k] ? from : p->buffer[by->buffer[k]].ext;
        }
        ext = writes && reads == 1 ? from : ext;
    }
    return ext;
}

/* Marks the product number `nth` (from 0) that multiplies with this parameter; false: none. */
static bool mark(const Plan *p, const char *weight, int nth, bool *source)
{
    for (size_t i = 0; i < p->n_launch; i++) {
        int32_t ext = weight_of(p, &p->launch[i]);
        if (ext >= 0 && p->ext[ext].ext.kind == EXT_PARAM && strcmp(p->ext[ext].ext.name, weight) == 0 && nth-- == 0) {
            source[i] = true;
            return true;
        }
    }
    return false;
}

static Boundary between(Arena *arena, const Plan *p, const BoundaryWeights *w, bool backward)
{
    bool *source = NEW_ARRAY(arena, bool, p->n_launch + 1);
    bool *stop = NEW_ARRAY(arena, bool, p->n_launch + 1);
    bool ok = mark(p, w->end, backward, backward ? stop : source);
    for (size_t i = 0; i < COUNT_OF(w->begin) && w->begin[i]; i++)
        ok = ok && mark(p, w->begin[i], backward, backward ? source : stop);
    for (size_t i = 0; i < p->n_launch && backward; i++) /* gradients of weights */
        stop[i] = stop[i] || (p->launch[i].kind == LAUNCH_MATMUL && p->launch[i].matmul.transpose_a);
    return ok ? shadow(arena, p, source, stop) : (Boundary){0};
}

Boundary boundary_forward(Arena *arena, const Plan *p, const BoundaryWeights *w) { return between(arena, p, w, false); }

Boundary boundary_backward(Arena *arena, const Plan *p, const BoundaryWeights *w) { return between(arena, p, w, true); }

void boundary_print(const Plan *p, const Boundary *b)
{
    for (size_t i = 0; i < b->n; i++) {
        const Launch *l = &p->launch[b->launch[i]];
        if (is_second_stage(p, l))
            continue;
        const char *s = l->kind == LAUNCH_KERNEL ? p->kernel[l->kernel].text + 3 : "product";
        printf("    launch %zu for %s, %.*s\n", b->launch[i], l->name ? l->name : "?", (int)strcspn(s, "\n*"), s);
    }
}

size_t plan_missing(const Plan *in, const Plan *of)
{
    size_t n = 0;
    for (size_t i = 0; i < of->n_kernel; i++) {
        bool have = false;
        for (size_t k = 0; k < in->n_kernel && !have; k++)
            have = in->kernel[k].name == of->kernel[i].name;
        n += !have;
    }
    return n;
}
