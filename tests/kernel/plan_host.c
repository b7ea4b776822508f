/* plan_host.c - see plan_host.h. */
#include "plan_host.h"

#include "compiler/plan/plan.h"
#include "compiler/portable/device_call.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

typedef void Kernel(void *const *p, const int64_t *n, const double *s, int64_t lo, int64_t hi);

struct Host {
    char *cc, *path, *text;
    size_t n, cap;
    char **name;
    size_t names, names_cap;
    void *object;
    const HostDevice *device;
    const Plan *first;
    const PlanKernel **kernel; /* of a device, as many as there are names */
};

static void die(const char *what, const char *which)
{
    fprintf(stderr, "plan_host: %s %s\n", what, which);
    exit(1);
}

Host *host_new(const char *cc)
{
    Host *h = calloc(1, sizeof *h);
    char path[64];
    if (!cc)
        cc = getenv("CC");
    snprintf(path, sizeof path, "/tmp/vwn_kernel_%ld_%p", (long)getpid(), (void *)h);
    h->cc = strdup(cc ? cc : "cc");
    h->path = strdup(path);
    return h;
}

void host_on_device(Host *h, const HostDevice *device) { h->device = device; }

static void put(Host *h, const char *s, size_t n)
{
    if (h->n + n + 1 > h->cap) {
        h->cap = (h->n + n + 1) * 2;
        h->text = realloc(h->text, h->cap);
    }
    memcpy(h->text + h->n, s, n);
    h->n += n;
    h->text[h->n] = 0;
}

void host_add(Host *h, const Plan *p)
{
    h->first = h->first ? h->first : p;
    if (h->n == 0)
        put(h, p->prelude, p->prelude_length);
    for (size_t i = 0; i < p->n_kernel; i++) {
        bool have = false;
        for (size_t k = 0; k < h->names && !have; k++)
            have = strcmp(h->name[k], p->kernel[i].name) == 0;
        if (have)
            continue;
        if (h->names == h->names_cap) {
            h->names_cap = h->names_cap * 2 + 16;
            h->name = realloc(h->name, h->names_cap * sizeof *h->name);
            h->kernel = realloc(h->kernel, h->names_cap * sizeof *h->kernel);
        }
        h->kernel[h->names] = &p->kernel[i];
        h->name[h->names++] = strdup(p->kernel[i].name);
        put(h, "\n", 1);
        put(h, p->kernel[i].text, p->kernel[i].length);
    }
}

void host_compile(Host *h)
{
    char source[128], object[128], command[1024], why[512];
    if (h->device && !h->device->compile(h->first, h->kernel, h->names, why))
        die("the device's compiler:", why);
    if (h->device)
        return;
    snprintf(source, sizeof source, "%s.c", h->path);
    snprintf(object, sizeof object, "%s.so", h->path);
    FILE *f = fopen(source, "w");
    if (!f || (h->n && fwrite(h->text, 1, h->n, f) != h->n) || fclose(f))
        die("cannot write", source);
    const char *flags = getenv("VWN_TEST_CFLAGS");
    snprintf(command, sizeof command,
             "%s %s -march=native -std=gnu17 -w -fno-math-errno "
             "-fno-trapping-math -fopenmp-simd -fPIC -shared -nostdlib -o %s %s",
             h->cc, flags ? flags : "-O2", object, source);
    if (system(command) != 0)
        die("the compiler refuses", source);
    h->object = dlopen(object, RTLD_NOW | RTLD_LOCAL);
    if (!h->object)
        die("cannot load", dlerror());
    if (!getenv("VWN_TEST_KEEP"))
        unlink(source);
    unlink(object);
}

void host_free(Host *h)
{
    if (h->object)
        dlclose(h->object);
    for (size_t i = 0; i < h->names; i++)
        free(h->name[i]);
    free(h->name);
    free(h->kernel);
    free(h->text);
    free(h->cc);
    free(h->path);
    free(h);
}

/* ---- memory ---- */

enum { CANARY = 64 };

typedef struct Memory {
    char **at; /* by buffer */
    char *arena;
    char **ext; /* by ext, with canaries */
    char **apart;
} Memory;

static char *guarded(uint64_t bytes)
{
    uint64_t whole = (bytes + 63) / 64 * 64 + 2 * CANARY;
    char *m = aligned_alloc(64, whole);
    memset(m, 0xff, whole); /* NaN as a float, -1 as an integer */
    memset(m, 0xa5, CANARY);
    memset(m + CANARY + bytes, 0xa5, whole - CANARY - bytes);
    return m + CANARY;
}

static void check_guard(const char *m, uint64_t bytes, const char *name)
{
    const unsigned char *c = (const unsigned char *)m;
    uint64_t behind = (bytes + 63) / 64 * 64 - bytes + CANARY;
    for (int i = 1; i <= CANARY; i++)
        if (c[-i] != 0xa5)
            die("something wrote before", name ? name : "?");
    for (uint64_t i = 0; i < behind; i++)
        if (c[bytes + i] != 0xa5)
            die("something wrote behind", name ? name : "?");
}

static const Tensor *bound(const HostRun *how, const Ext *x)
{
    for (size_t i = 0; i < how->n_bind; i++)
        if (how->bind[i].kind == x->kind && strcmp(how->bind[i].name, x->name) == 0)
            return how->bind[i].tensor;
    return NULL;
}

static void to_memory(char *m, const Tensor *t)
{
    for (int64_t i = 0; i < t->size; i++)
        if (t->dtype == DT_INT)
            ((int64_t *)m)[i] = t->integer[i];
        else
            ((float *)m)[i] = (float)t->real[i];
}

static void from_memory(Tensor *t, const char *m)
{
    for (int64_t i = 0; i < t->size; i++)
        if (t->dtype == DT_INT)
            t->integer[i] = ((const int64_t *)m)[i];
        else
            t->real[i] = ((const float *)m)[i];
}

/* Of a buffer and of those that must lie behind it. */
static uint64_t bytes_of_chain(const Plan *p, uint32_t first)
{
    uint64_t bytes = p->buffer[first].bytes;
    for (uint32_t i = 0; i < p->n_buffer; i++)
        bytes += p->buffer[i].behind == first + 1 ? bytes_of_chain(p, i) : 0;
    return bytes;
}

static Memory memory_new(const Plan *p, const HostRun *how)
{
    Memory m = {calloc(p->n_buffer + 1, sizeof(char *)), NULL, calloc(p->n_ext + 1, sizeof(char *)),
                calloc(p->n_buffer + 1, sizeof(char *))};
    m.arena = guarded(p->arena_bytes);
    for (size_t i = 0; i < p->n_ext; i++) {
        uint64_t each = p->ext[i].ext.dtype == DT_INT ? 8 : 4;
        m.ext[i] = guarded((uint64_t)p->ext[i].elements * each);
        const Tensor *t = bound(how, &p->ext[i].ext);
        if (t && t->size != p->ext[i].elements)
            die("wrong size of", p->ext[i].ext.name);
        if (t)
            to_memory(m.ext[i], t);
    }
    for (size_t i = 0; i < p->n_buffer; i++) {
        const PlanBuffer *b = &p->buffer[i];
        if (b->ext >= 0)
            m.at[i] = m.ext[b->ext];
        else if (how->memory == HOST_ARENA)
            m.at[i] = m.arena + b->offset;
        else if (!b->behind)
            m.at[i] = m.apart[i] = guarded(bytes_of_chain(p, (uint32_t)i));
    }
    for (size_t i = 0; i < p->n_buffer; i++) {
        uint64_t before = 0;
        size_t first = i;
        for (; p->buffer[first].behind; before += p->buffer[first].bytes)
            first = p->buffer[first].behind - 1;
        m.at[i] = first == i ? m.at[i] : m.at[first] + before;
    }
    return m;
}

static void memory_free(const Plan *p, Memory *m)
{
    check_guard(m->arena, p->arena_bytes, "the arena");
    free(m->arena - CANARY);
    for (size_t i = 0; i < p->n_ext; i++) {
        uint64_t each = p->ext[i].ext.dtype == DT_INT ? 8 : 4;
        check_guard(m->ext[i], (uint64_t)p->ext[i].elements * each, p->ext[i].ext.name);
        free(m->ext[i] - CANARY);
    }
    for (size_t i = 0; i < p->n_buffer; i++)
        if (m->apart[i]) {
            check_guard(m->apart[i], p->buffer[i].bytes, p->buffer[i].name);
            free(m->apart[i] - CANARY);
        }
    free(m->at);
    free(m->ext);
    free(m->apart);
}

/* ---- launches ---- */

static void run_matmul(const PlanMatmul *m, const float *a, const float *b, float *c)
{
    for (int64_t z = 0; z < m->batch; z++, a += m->step_a, b += m->step_b, c += m->step_c)
        for (int64_t i = 0; i < m->m; i++) {
            float *row = c + i * m->ldc;
            for (int64_t j = 0; j < m->n && !m->accumulate; j++)
                row[j] = 0;
            for (int64_t k = 0; k < m->k; k++) {
                float x = m->transpose_a ? a[k * m->lda + i] : a[i * m->lda + k];
                const float *y = b + (m->transpose_b ? k : k * m->ldb);
                int64_t step = m->transpose_b ? m->ldb : 1;
                for (int64_t j = 0; j < m->n; j++)
                    row[j] += x * y[j * step];
            }
        }
}

static void run_expert(const PlanExpert *e, const float *x, const void *w_or_dy, const int64_t *index, float *out)
{
    const float *w = w_or_dy, *dy = w_or_dy;
    bool dw = e->what == EXPERT_DW;
    int64_t pairs = e->tokens * e->choices, size = dw ? e->experts * e->in * e->out : pairs * e->out;
    for (int64_t i = 0; i < size; i++)
        out[i] = 0;
    for (int64_t p = 0; p < pairs; p++) {
        const float *row = x + (e->x_per_pair ? p : p / e->choices) * e->in;
        int64_t at = index[p];
        if (at < 0 || at >= e->experts)
            continue;
        for (int64_t i = 0; i < e->in; i++)
            for (int64_t o = 0; o < e->out; o++) {
                if (dw)
                    out[(at * e->in + i) * e->out + o] += row[i] * dy[p * e->out + o];
                else
                    out[p * e->out + o] +=
                        row[i] * (e->transpose_w ? w[(at * e->out + o) * e->in + i] : w[(at * e->in + i) * e->out + o]);
            }
    }
}

static void run_on_device(const Host *h, const PlanKernel *k, const Launch *l, void **at, int64_t *n, double *s,
                          int64_t chunk)
{
    CallArguments arguments;
    int64_t rows = l->rows;
    if (!call_arguments(&arguments, at, l->n_buffer, n, l->n_int, s, l->n_scalar, &rows))
        die("too many arguments of", k->name);
    const char *wrong =
        rows ? h->device->launch(k, arguments.at, plan_blocks(&k->grid, rows), plan_shared_bytes(&k->grid, n), chunk)
             : NULL;
    if (wrong) {
        fprintf(stderr, "plan_host: %s%s: %s\n", k->where, k->name, wrong);
        exit(1);
    }
}

static void run_kernel(Host *h, const Plan *p, const Launch *l, const HostRun *how, void **at)
{
    Kernel *k = NULL;
    if (!h->device)
        *(void **)&k = dlsym(h->object, p->kernel[l->kernel].name);
    if (!h->device && !k)
        die("no kernel", p->kernel[l->kernel].name);
    int64_t n[1024];
    double s[1024];
    if (l->n_int > 1024 || l->n_scalar > 1024)
        die("too many arguments of", p->kernel[l->kernel].name);
    for (uint32_t i = 0; i < l->n_int; i++)
        n[i] = plan_int(&l->ints[i], &(RandomKey){how->seed, how->step, how->first});
    for (uint32_t i = 0; i < l->n_scalar; i++)
        s[i] = l->scalars[i].host < 0 ? l->scalars[i].value : host_eval(p->host[l->scalars[i].host], how->host_vars);
    if (h->device) {
        run_on_device(h, &p->kernel[l->kernel], l, at, n, s, how->chunk);
        return;
    }
    int64_t step = how->chunk ? how->chunk : l->rows;
    for (int64_t lo = 0, i = 0; lo < l->rows; i++) {
        int64_t size = how->chunk ? 1 + (step + i * 3) % (2 * step) : step;
        int64_t hi = lo + size < l->rows ? lo + size : l->rows;
        k(at, n, s, lo, hi);
        lo = hi;
    }
}

static void copy_parts(const PlanCopy *how, int64_t rows, const char *x, char *out)
{
    for (int64_t r = 0; r < rows; r++)
        memcpy(out + r * how->to, x + r * how->from, (size_t)how->bytes);
}

static void run_launch(Host *h, const Plan *p, const Launch *l, const HostRun *how, void **at)
{
    if (l->kind == LAUNCH_KERNEL)
        run_kernel(h, p, l, how, at);
    else if (l->kind == LAUNCH_COPY)
        copy_parts(&l->copy, l->rows, at[0], at[1]);
    else if (how->skip_products)
        memset(at[l->n_buffer - 1], 0, p->buffer[l->buffer[l->n_buffer - 1]].bytes);
    else if (l->kind == LAUNCH_MATMUL)
        run_matmul(&l->matmul, at[0], at[1], at[2]);
    else
        run_expert(&l->expert, at[0], at[1], at[2], at[3]);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double host_run(Host *h, const Plan *p, const HostRun *how, Arena *arena, Tensor **results, Tensor **stored)
{
    Memory m = memory_new(p, how);
    double *host = calloc(p->n_host + 1, sizeof *host);
    for (size_t i = 0; i < p->n_host; i++)
        host[i] = host_eval(p->host[i], how->host_vars);
    for (size_t i = 0; i < p->n_number; i++)
        ((uint64_t *)(void *)m.at[p->numbers])[i] =
            plan_number(p, i, &(RandomKey){how->seed, how->step, how->first}, host) +
            (p->number[i].kind == INT_PLACE ? (uint64_t)(uintptr_t)m.at[p->number[i].buffer] : 0);
    free(host);
    double start = now();
    for (size_t i = 0; i < p->n_launch; i++) {
        const Launch *l = &p->launch[i];
        void *at[512];
        if (l->n_buffer > 512)
            die("too many buffers", "");
        for (uint32_t k = 0; k < l->n_buffer; k++)
            at[k] = m.at[l->buffer[k]] + l->shift[k];
        for (int k = 0; k == 0 || k < how->repeat; k++) {
            double t = now();
            run_launch(h, p, l, how, at);
            t = now() - t;
            if (how->seconds && (k == 0 || t < how->seconds[i]))
                how->seconds[i] = t;
        }
    }
    double end = now();
    for (size_t i = 0; i < p->n_result; i++) {
        const PlanResult *r = &p->result[i];
        results[i] = tensor_new(arena, r->dtype, r->rank, r->d);
        from_memory(results[i], m.at[r->buffer]);
    }
    for (size_t i = 0; i < how->n_bind; i++) {
        stored[i] = NULL;
        for (size_t k = 0; k < p->n_ext; k++)
            if (p->ext[k].stored && p->ext[k].ext.kind == how->bind[i].kind &&
                strcmp(p->ext[k].ext.name, how->bind[i].name) == 0) {
                const Tensor *t = how->bind[i].tensor;
                stored[i] = tensor_new(arena, t->dtype, t->rank, t->d);
                from_memory(stored[i], m.ext[k]);
            }
    }
    memory_free(p, &m);
    return end - start;
}
