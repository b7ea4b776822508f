/* start.c - which numbers a run begins with: files of others, whole or in shards, under any names and in any order of axes, of four
 * types, longer and shorter along every axis; and weights of a run whose axes grow inside.
 *
 * In:  files made from seeds, written here; a rate of 0, so what stands in the checkpoint behind a step is what the run began with.
 * Out: each number of it beside the one that the file has at that place, or -1, with which all others are drawn.
 * When: checked.
 */
#include <stdlib.h>
#include <unistd.h>

#include "compiler/portable/safetensors.h"
#include "runtime/vwn.h"
#include "support.h"
#include "support/arrays.h"
#include "support/drawn.h"
#include "support/f8.h"
#include "support/half.h"

enum { PARAMS = 5, MOST = 6 * 6 * 6, RANK = 3, FILES = 3 };
static Tally tally;

/* A tensor of the model, and what a file has for it. */
typedef struct Given {
    const char *path, *name;        /* NULL: the file does not have it */
    int rank, d[RANK], there[RANK]; /* `there` in the order of the model's axes */
    bool swapped;
    double value[MOST]; /* as the file has them */
    int file;
} Given;

/* ---- the file ---- */

typedef struct Raw { /* a safetensors file, by the format's own text */
    char header[8192];
    unsigned char data[65536];
    size_t n;
} Raw;

static const char *const float_types[] = {"F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2"};

static size_t put_number(unsigned char *to, int type, double x)
{
    float f = (float)x;
    uint16_t h = to_half(x, type == 2 ? HALF_FP16 : HALF_BF16);
    unsigned char code = 0; /* of 8 bits: x is one of them */
    while (type > 3 && code < 255 && !((type == 4 ? of_e4m3 : of_e5m2)((uint16_t)code) == x))
        code++;
    const void *from[] = {&x, &f, &h, &h, &code, &code};
    size_t size[] = {8, 4, 2, 2, 1, 1};
    memcpy(to, from[type], size[type]);
    return size[type];
}

static void raw_add(Raw *r, const char *name, const char *type, int rank, const int *d, size_t bytes)
{
    size_t n = strlen(r->header);
    n += (size_t)snprintf(r->header + n, sizeof r->header - n, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[", n ? "," : "",
                          name, type);
    for (int k = 0; k < rank; k++)
        n += (size_t)snprintf(r->header + n, sizeof r->header - n, "%s%d", k ? "," : "", d[k]);
    snprintf(r->header + n, sizeof r->header - n, "],\"data_offsets\":[%zu,%zu]}", r->n - bytes, r->n);
}

static void raw_write(const Raw *r, const char *path)
{
    char length[8];
    size_t n = strlen(r->header) + 2;
    for (int i = 0; i < 8; i++)
        length[i] = (char)(n >> 8 * i);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(length, 1, 8, f) != 8 || fprintf(f, "{%s}", r->header) != (int)n ||
        fwrite(r->data, 1, r->n, f) != r->n || fclose(f)) {
        perror(path);
        exit(2);
    }
}

static int count_of(const Given *g, const int *d)
{
    int n = 1;
    for (int k = 0; k < g->rank; k++)
        n *= d[k];
    return n;
}

/* Of what is swapped the last two axes have each other's place. */
static int axis_of(const Given *g, int k)
{
    return !g->swapped || k < g->rank - 2 ? k : k == g->rank - 1 ? g->rank - 2 : g->rank - 1;
}

/* `shift` is added to all numbers: another one than 0 is an old copy. */
static void raw_tensor(Raw *r, const Given *g, int type, double shift)
{
    int n = count_of(g, g->there), d[RANK];
    size_t begin = r->n;
    for (int k = 0; k < g->rank; k++)
        d[k] = g->there[axis_of(g, k)];
    for (int i = 0; i < n; i++)
        r->n += put_number(r->data + r->n, type, g->value[i] + shift);
    raw_add(r, g->name, float_types[type], g->rank, d, r->n - begin);
}

/* What the model must have at an element, by the definition of each word. */
static double expected(const Given *g, int element)
{
    int at[RANK] = {0}, place = 0;
    for (int k = g->rank; k-- > 0; element /= g->d[k])
        at[k] = element % g->d[k];
    for (int k = 0; k < g->rank; k++)
        if (!g->name || at[k] >= g->there[k])
            return -1;
    for (int k = 0; k < g->rank; k++) {
        int axis = axis_of(g, k);
        place = place * g->there[axis] + at[axis];
    }
    return g->value[place];
}

/* ---- the run ---- */

static void put_model(const char *path, const char *body, const char *start, const char *table)
{
    FILE *f = fopen(path, "wb");
    if (!f ||
        fprintf(f,
                "edition = 1\nimport \"std/connections\"\n"
                "block embed_zero()() -> [B, 1, 1] { return input(zz, [B, 1, 1]) }\n"
                "block head_probe()(x: [B, N, D]) -> [B, N, D] {\n%s\n  return x\n}\n"
                "model p {\n  context = 1, width = 1, mask = causal, init = zeros, out_init = zeros, connection = "
                "residual()\n"
                "  embed zero { }\n  head probe { }\n}\n"
                "train {\n  data = arrays(zz = \"zz.npy\"), batch = 1 images, length = 1 steps, seed = 1, precision = "
                "fp32\n  %s\n"
                "  optimizer sgd { lr = 0, momentum = 0, weight_decay = 0 }\n  log { every = 1 steps }\n}\n%s\n",
                body, start, table) < 0 ||
        fclose(f)) {
        perror(path);
        exit(2);
    }
}

typedef struct Said {
    char text[2000];
    size_t n;
} Said;

static void put_said(void *user, const char *text, size_t n)
{
    Said *s = user;
    n = n < sizeof s->text - 1 - s->n ? n : sizeof s->text - 1 - s->n;
    memcpy(s->text + s->n, text, n);
    s->text[s->n += n] = '\0';
}

static vwn_status train(const char *path, const char *run, Said *said)
{
    size_t warnings;
    vwn_context *v = vwn_open(&(vwn_options){.threads = 1, .reference = true});
    vwn_unit *unit;
    vwn_status st = vwn_check(v, &(vwn_file_options){.path = path}, &unit);
    if (st == VWN_OK)
        st = vwn_train(unit, &(vwn_train_options){.run = run, .overwrite = true});
    *said = (Said){0};
    put_said(said, vwn_message(v), strlen(vwn_message(v)));
    vwn_diagnostics(v, &(vwn_writer){put_said, said}, false, false, &warnings);
    vwn_close(v);
    return st;
}

static int numbers(const char *run, const char *name, double out[MOST])
{
    char why[WHY];
    SafeFile f;
    Ctx *ctx = ctx_new(NULL);
    int n = -1;
    if (safe_open(arena_region(ctx->program), arena_printf(ctx->program, "%s/ckpt/step_00000001.safetensors", run), &f,
                  why)) {
        const SafeTensor *t = safe_find(&f, name);
        if (t && t->elements <= MOST && safe_read(&f, t, 0, t->elements, out, why))
            n = (int)t->elements;
        safe_close(&f);
    }
    ctx_free(ctx);
    return n;
}

/* ---- cases from seeds ---- */

static uint64_t state;
static int below(int n) { return (int)draw(&state, (unsigned)n); }

static void make(Given *g, int i)
{
    static const char *const paths[PARAMS] = {"head.probe.v", "head.probe.a", "head.probe.q", "head.probe.e",
                                              "head.probe.w"};
    static const char *const others[PARAMS] = {"old.v", "old.a", "old.q", "old.e", "old.w"};
    static const int ranks[PARAMS] = {1, 2, 2, 3, 2};
    *g = (Given){.path = paths[i],
                 .name = below(8) ? below(2) ? paths[i] : others[i] : NULL,
                 .rank = ranks[i],
                 .file = below(FILES)};
    g->swapped = g->rank >= 2 && below(2);
    do {
        for (int k = 0; k < g->rank; k++) {
            g->d[k] = i == 2 && k ? g->d[0] : 1 + below(6);
            g->there[k] = below(2) ? g->d[k] : 1 + below(6);
        }
    } while (g->rank >= 2 && g->d[g->rank - 2] != g->d[g->rank - 1] && g->there[g->rank - 2] == g->d[g->rank - 1] &&
             g->there[g->rank - 1] == g->d[g->rank - 2]); /* refused: E0614 */
    for (int n = count_of(g, g->there); n-- > 0;)
        g->value[n] = (double)(below(255) - 127) / 16; /* all four types have these */
}

static void describe(const Given *g, char *body, size_t body_room, char *table, size_t table_room)
{
    size_t n = strlen(body), m = strlen(table);
    const char *name = g->path + strlen("head.probe.");
    n += (size_t)snprintf(body + n, body_room - n, "  param %s : [", name);
    for (int k = 0; k < g->rank; k++)
        n += (size_t)snprintf(body + n, body_room - n, "%s%d", k ? ", " : "", g->d[k]);
    snprintf(body + n, body_room - n, "] = fill(-1)\n  loss.%s = sum(%s * %s)\n", name, name, name);
    if (g->name && (g->swapped || g->name != g->path))
        snprintf(table + m, table_room - m, "  \"%s\" = %s%s\n", g->name, g->path, g->swapped ? ".T" : "");
}

/* A tensor that nothing reads, of a type that nothing reads, perhaps; so many numbers. */
static int raw_unread(Raw *r)
{
    static const struct {
        const char *name;
        int bits;
    } types[] = {{"I64", 64},    {"I32", 32},    {"I16", 16},    {"I8", 8},      {"U64", 64},
                 {"U32", 32},    {"U16", 16},    {"U8", 8},      {"BOOL", 8},    {"C64", 64},
                 {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8}, {"F6_E2M3", 6}, {"F4", 4}};
    int i = below((int)COUNT_OF(types)), d[2] = {4, 1 + below(5)};
    size_t bytes = (size_t)(d[0] * d[1] * types[i].bits / 8);
    r->n += bytes;
    raw_add(r, "mask", types[i].name, 2, d, bytes);
    return d[0] * d[1];
}

static int write_files(const Given *g, bool shards)
{
    static Raw raw[FILES];
    memset(raw, 0, sizeof raw);
    char map[4096] = "";
    for (int i = 0; i < PARAMS; i++) {
        if (!g[i].name)
            continue;
        int in = shards ? g[i].file : 0;
        raw_tensor(&raw[in], &g[i], below(4), 0);
        if (shards && below(2))
            raw_tensor(&raw[(in + 1 + below(FILES - 1)) % FILES], &g[i], below(4),
                       0.5); /* the map names the other one */
        snprintf(map + strlen(map), sizeof map - strlen(map), "%s\"%s\":\"%d.safetensors\"", *map ? "," : "", g[i].name,
                 in);
    }
    int unread = raw_unread(&raw[0]);
    for (int i = 0; i < (shards ? FILES : 1); i++) {
        char path[40];
        snprintf(path, sizeof path, "%d.safetensors", i);
        raw_write(&raw[i], path);
    }
    FILE *f = fopen("all.index.json", "wb");
    if (!f || fprintf(f, "{\"weight_map\":{%s%s\"mask\":\"0.safetensors\"}}", map, *map ? "," : "") < 0 || fclose(f))
        exit(2);
    return unread;
}

/* What the run's own events say of a beginning in which so many numbers of a file are left behind as a tensor. */
static bool told(const Given *g, int unread)
{
    static char events[1 << 16], taken[60], dropped[60];
    int both = 0, all = unread;
    for (int i = 0; i < PARAMS; i++) {
        int n = g[i].name != NULL;
        for (int k = 0; k < g[i].rank; k++)
            n *= g[i].d[k] < g[i].there[k] ? g[i].d[k] : g[i].there[k];
        both += n;
        all += g[i].name ? count_of(&g[i], g[i].there) : 0;
    }
    snprintf(taken, sizeof taken, "; %d numbers are taken, ", both);
    snprintf(dropped, sizeof dropped, " new, %d dropped", all - both);
    FILE *f = fopen("run/events.jsonl", "rb");
    events[f ? fread(events, 1, sizeof events - 1, f) : 0] = '\0';
    if (f)
        fclose(f);
    const char *at = strstr(events, taken);
    return at && strstr(at, dropped);
}

static void from_seed(int seed)
{
    static Given g[PARAMS];
    char body[2048] = "", table[1024] = "";
    Said said;
    double got[MOST];
    bool shards = seed % 3 == 2;
    state = (uint64_t)seed * 977 + 5;
    for (int i = 0; i < PARAMS; i++) {
        make(&g[i], i);
        if (i == 1 && !g[i].name)
            g[i].name = g[i].path; /* one at least */
        describe(&g[i], body, sizeof body, table, sizeof table);
    }
    int unread = write_files(g, shards);
    char start[200], names[1100];
    snprintf(start, sizeof start, "start_from = weights(\"%s\", new = draw, grown = draw, cut = drop, left = drop)",
             shards ? "all.index.json" : "0.safetensors");
    snprintf(names, sizeof names, "names old {\n%s}\n", table);
    put_model("m.vwn", body, start, names);
    vwn_status st = train("m.vwn", "run", &said);
    CHECKF(&tally, st == VWN_OK, "seed %d: status %d: %s", seed, st, said.text);
    CHECKF(&tally, st != VWN_OK || told(g, unread), "seed %d: another number of numbers is told to be taken or dropped",
           seed);
    for (int i = 0; i < PARAMS && st == VWN_OK; i++) {
        int n = numbers("run", g[i].path, got), wrong = 0;
        for (int k = 0; k < n; k++)
            wrong += got[k] != expected(&g[i], k);
        CHECKF(&tally, n == count_of(&g[i], g[i].d) && !wrong,
               "seed %d: `%s` (there %s%s): %d of %d numbers are not those of the file", seed, g[i].path,
               g[i].name ? g[i].name : "nowhere", g[i].swapped ? ", axes swapped" : "", wrong, n);
    }
}

/* ---- axes of a run that grow inside ---- */

/* Heads of two numbers get a third one each, a head more comes behind, [q | k] is two parts of which each gets longer. */
static const char *inside_body(Arena *a, int heads, int size, int part)
{
    return arena_printf(a,
                        "  param h : [3, %d] = fill(-1)\n  loss.h = sum(sum(reshape(h, [3, %d, %d]), over = 2) ^ 2)\n"
                        "  param p : [4, %d] = fill(-1)\n  param z : [2, 4] = fill(-1)\n  y = z @ p\n"
                        "  loss.p = sum(first(y, %d) * rest(y, %d))\n",
                        heads * size, heads, size, 2 * part, part, part);
}

static void inside(void)
{
    Ctx *ctx = ctx_new(NULL);
    Said said;
    static Raw raw;
    static Given h = {.path = "head.probe.h", .name = "head.probe.h", .rank = 2, .d = {3, 4}, .there = {3, 4}};
    static Given p = {.path = "head.probe.p", .name = "head.probe.p", .rank = 2, .d = {4, 6}, .there = {4, 6}};
    double got[MOST];
    for (int i = 0; i < 24; i++) {
        h.value[i % 12] = i % 12 + 1;
        p.value[i] = i + 1;
    }
    raw_tensor(&raw, &h, 1, 0);
    raw_tensor(&raw, &p, 1, 0);
    raw_write(&raw, "inside.safetensors");
    put_model("m.vwn", inside_body(ctx->program, 2, 2, 3), "start_from = weights(\"inside.safetensors\", new = draw)",
              "");
    vwn_status st = train("m.vwn", "base", &said);
    CHECKF(&tally, st == VWN_OK, "%s", said.text);
    put_model("m.vwn", inside_body(ctx->program, 3, 3, 5), "start_from = run(\"base\", grown = draw)", "");
    st = train("m.vwn", "run", &said);
    CHECKF(&tally, st == VWN_OK, "%s", said.text);
    int wrong = 0, n = numbers("run", h.path, got);
    for (int i = 0; i < n; i++) {
        int row = i / 9, head = i % 9 / 3, at = i % 3;
        wrong += got[i] != (head < 2 && at < 2 ? row * 4 + head * 2 + at + 1 : -1);
    }
    CHECKF(&tally, n == 27 && !wrong, "%d of %d numbers of grown heads are at another place", wrong, n);
    wrong = 0;
    n = numbers("run", p.path, got);
    for (int i = 0; i < n; i++) {
        int row = i / 10, part = i % 10 / 5, at = i % 5;
        wrong += got[i] != (at < 3 ? row * 6 + part * 3 + at + 1 : -1);
    }
    CHECKF(&tally, n == 40 && !wrong, "%d of %d numbers of grown parts are at another place", wrong, n);
    ctx_free(ctx);
}

/* ---- `layout` ---- */

/* Of `x @ W` the axes are swapped, in whatever that is made of W; what is added up along the other axis, looked up or multiplied element by
 * element lies as it is. */
static void layouts(void)
{
    static const struct {
        const char *name, *use;
        int d[RANK];
        bool linear;
    } w[] = {{"q", "z @ q", {4, 4}, true},
             {"f", "expert_matmul(z, f, broadcast(cast(arange(4) mod 2, int), [4]))", {2, 4, 3}, true},
             {"y", "reshape(z, [1, 4, 4]) @ y", {2, 4, 4}, true},
             {"v", "reshape(z, [1, 4, 4]) @ permute(v, [1, 3, 2])", {2, 3, 4}, false},
             {"k", "z @ k", {4, 6}, true},
             {"s", "z @ (2 * s + s ^ 2)", {4, 4}, true},
             {"t", "z @ t.T", {4, 4}, false},
             {"u", "t @ u", {4, 4}, true},
             {"h", "h @ z.T", {4, 4}, false},
             {"e", "gather(e, arange(2))", {4, 4}, false},
             {"r", "reshape(z, [1, 4, 4]) @ reshape(r, [1, 4, 4])", {4, 4}, true},
             {"p", "z @ first(p, 3)", {4, 5}, true},
             {"m", "z * m", {4, 4}, false}};
    static Raw raw;
    static Given g[COUNT_OF(w)];
    Ctx *ctx = ctx_new(NULL);
    Buf body = buf_new(ctx->program), table = buf_new(ctx->program);
    Said said;
    double got[MOST];
    buf_puts(&body, "  param z : [4, 4] = eye\n");
    for (size_t i = 0; i < COUNT_OF(w); i++) {
        const int rank = w[i].d[2] ? 3 : 2;
        buf_printf(&body, rank == 3 ? "  param %s : [%d, %d, %d] = fill(-1)\n" : "  param %s : [%d, %d] = fill(-1)\n",
                   w[i].name, w[i].d[0], w[i].d[1], w[i].d[2]);
        buf_printf(&table, "  \"%s\" = head.probe.%s\n", w[i].name, w[i].name);
        g[i] = (Given){.name = w[i].name, .rank = rank, .swapped = w[i].linear};
        for (int k = 0; k < rank; k++)
            g[i].d[k] = g[i].there[k] = w[i].d[k];
        for (int k = 0; k < 32; k++)
            g[i].value[k] = k + 1 + 32 * (int)i;
        raw_tensor(&raw, &g[i], 1, 0);
    }
    for (size_t i = 0; i < COUNT_OF(w); i++)
        buf_printf(&body, "  loss.%s = sum((%s) ^ 2)\n", w[i].name, w[i].use);
    raw_write(&raw, "0.safetensors");
    for (int out_in = 0; out_in < 2; out_in++) {
        put_model(
            "m.vwn", body.s, "start_from = weights(\"0.safetensors\", new = draw)",
            arena_printf(ctx->program, "names other {\n  layout = %s\n%s}\n", out_in ? "out_in" : "in_out", table.s));
        vwn_status st = train("m.vwn", "run", &said);
        CHECKF(&tally, st == (out_in ? VWN_OK : VWN_INPUT), "%s",
               said.text); /* what is not square does not fit, as it is not swapped */
        for (size_t i = 0; i < COUNT_OF(w) && st == VWN_OK; i++) {
            int n = numbers("run", arena_printf(ctx->program, "head.probe.%s", w[i].name), got), wrong = 0;
            for (int k = 0; k < n; k++)
                wrong += got[k] != expected(&g[i], k);
            CHECKF(&tally, n == count_of(&g[i], g[i].d) && !wrong,
                   "layout = out_in, %s: %d of %d numbers are at another place", w[i].use, wrong, n);
        }
    }
    ctx_free(ctx);
}

/* ---- what a map says, and types of quantized weights ---- */

static vwn_status two_shards(const char *map, const char *type, Said *said)
{
    const char *scale = strstr(map, "_scale_inv") ? "head.probe.a_scale_inv"
                        : strstr(map, "_scale")   ? "head.probe.a_scale"
                                                  : NULL;
    static Raw raw[2];
    static const Given a = {.name = "head.probe.a", .rank = 1, .there = {4}, .value = {1, 2, 3, 4}};
    memset(raw, 0, sizeof raw);
    size_t known = 0;
    while (known < COUNT_OF(float_types) && strcmp(float_types[known], type) != 0)
        known++;
    if (known < COUNT_OF(float_types)) {
        raw_tensor(&raw[1], &a, (int)known, 0);
    } else {
        raw[1].n = 4;
        raw_add(&raw[1], a.name, type, 1, a.there, 4);
    }
    raw_unread(&raw[0]);
    if (scale) {
        raw[1].n += 4;
        raw_add(&raw[1], scale, "F32", 1, (const int[]){1}, 4);
    }
    raw_write(&raw[0], "0.safetensors");
    raw_write(&raw[1], "1.safetensors");
    write_file("all.index.json", map, strlen(map));
    put_model("m.vwn", "  param a : [4] = fill(-1)\n  loss.a = sum(a * a)\n",
              "start_from = weights(\"all.index.json\", left = drop)", "");
    return train("m.vwn", "run", said);
}

#define ONE_WEIGHT "{\"weight_map\":{\"head.probe.a\":\"1.safetensors\"}}"
#define WITH_SCALE(inverse)                                                                                            \
    "{\"weight_map\":{\"head.probe.a\":\"1.safetensors\",\"head.probe.a_scale" inverse "\":\"1.safetensors\"}}"

static void maps(void)
{
    static const struct {
        const char *map, *type;
        bool good;
        const char *what;
    } cases[] = {
        {"{\"weight_map\":{\"mask\":\"0.safetensors\",\"head.probe.a\":\"1.safetensors\"}}", "F32", true, "a map"},
        {"{\"weight_map\":{\"mask\":\"1.safetensors\",\"head.probe.a\":\"0.safetensors\"}}", "F32", true,
         "a map that is wrong throughout"},
        {"{\"weight_map\":{\"mask\":\"1.safetensors\"}}", "F32", false, "a name that the map leaves out"},
        {"{\"weight_map\":{\"head.probe.a\":\"1.safetensors\",\"mask\":\"0.safetensors\",\"mask\":\"0.safetensors\"}}",
         "F32", false, "a name twice"},
        {ONE_WEIGHT, "F32", true, "a map of one of the shards"},
        {ONE_WEIGHT, "I8", false, "a weight of 8 bits"},
        {ONE_WEIGHT, "U8", false, "a weight of bytes"},
        {ONE_WEIGHT, "F8_E8M0", false, "a weight of scales"},
        {ONE_WEIGHT, "F8_E4M3", true, "a weight of E4M3"},
        {ONE_WEIGHT, "F8_E5M2", true, "a weight of E5M2"},
        {WITH_SCALE(""), "F8_E4M3", false, "a weight of 8 bits and its scale"},
        {WITH_SCALE("_inv"), "F8_E5M2", false, "a weight of 8 bits and the inverse of one"},
        {WITH_SCALE(""), "BF16", true, "a weight beside a scale that nothing needs"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Said said;
        double got[MOST] = {0};
        vwn_status st = two_shards(cases[i].map, cases[i].type, &said);
        CHECKF(&tally, (st == VWN_OK) == cases[i].good && (st == VWN_OK || st == VWN_INPUT), "%s: status %d",
               cases[i].what, st);
        if (st == VWN_OK)
            CHECKF(&tally, numbers("run", "head.probe.a", got) == 4 && got[0] == 1 && got[3] == 4, "%s: %g",
                   cases[i].what, got[0]);
    }
}

int main(void)
{
    static const float zero[1] = {0};
    CaseDraw cases = {.one_in = 5, .sanitized = 10};
    Ctx *ctx = ctx_new(NULL);
    const char *folder = scratch_folder(ctx);
    if (chdir(folder))
        return 2;
    npy_write("zz.npy", 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1), }", zero, sizeof zero);
    inside();
    maps();
    layouts();
    for (int seed = 0, n = (int)drawn_count(&cases, 300); seed < n; seed++)
        from_seed(seed);
    if (chdir(".."))
        return 2;
    scratch_remove(folder);
    ctx_free(ctx);
    return tally_end(&tally, "start");
}
