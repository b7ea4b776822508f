/* make_cases.c - every kernel of the examples, launched by the emulator and compiled by NVRTC, as files for run_kernels.c.
 *
 *     make_cases FOLDER [--jobs N] [--cache FOLDER] [--arch ARCH]... [NAME...]
 *     make_cases --compile FOLDER/NN ARCH        the machine code of what FOLDER/NN/k_*.cu are now
 *
 * In:  sources of tests/support/examples.h, models of tests/support/models.h and those of wide.h, all or those named; parameters,
 *      gradients and moments at random. Architecture: sm_90a, or those named.
 * Out: FOLDER/NN for each source that has a kernel which those before it have not, NN-sm_90a for what only programs of that
 *      architecture have: cases.bin, the text of each kernel, ARCH/N.cubin and ARCH.list, a line `kernel cubin registers frame
 *      spilled shared` each; FOLDER/prelude.cu. A line for each on stdout.
 * The one idea: a folder's key is a hash of all that its cases are made of, another one of its machine code, so what has not changed is
 * not made again.
 */
#define _GNU_SOURCE
#include "runtime/base/machine.h"
#include "support/examples.h"

#include <ctype.h>
#include <ftw.h>
#include <glob.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/exec/exec.h"
#include "wide.h"

enum { ROWS_B = 2, ROWS_T = 11, ITEMS = 256, ARCHS = 4, PROGRAMS = 5, JOBS = 16 };
enum { SCALE = 256 }; /* gradients of the few positions are numbers of fp16, none near its end */

/* Another one where this file fills, runs or writes otherwise: part of every key. */
#define MADE_AS "1"

/* What takes most of the room, with less of what it has many of. */
static const struct {
    const char *name;
    int64_t B, T;
} fewer[] = {{"vwn x8, moe", 1, 5},  {"ghc (8,32)", 1, 5},   {"ghc (8,16)", 1, ROWS_T},
             {"xformer", 1, ROWS_T}, {"mamba-2", 1, ROWS_T}, {"delta attention", 1, ROWS_T}};

typedef struct Item {
    Source source;
    int64_t B, T;
    bool sm_90a, wide; /* wide: kernels of the library on numbers of 16 bits alone, since theirs are many */
    char name[16], key[65], code[65];
    VEC(Name) kernel; /* that no item before it has */
} Item;

/* What the processes that make items share. */
typedef struct Made {
    atomic_size_t next;
    struct {
        bool good, kept, compiled; /* kept: its cases were; compiled: its machine code is that of this compiler */
        double seconds;
        int64_t bytes;
        int loose;
    } item[ITEMS];
} Made;

static struct {
    Ctx *ctx; /* of what lasts */
    const char *folder, *cache, *arch[ARCHS];
    size_t n_arch, n_item, jobs, kernels;
    Item item[ITEMS];
    Map seen; /* kernels of all items */
    Made *made;
} all;

/* ---- files ---- */

static const char *in_folder(Ctx *ctx, const Item *x, const char *name)
{
    return arena_printf(ctx->program, "%s/%s.new/%s", all.folder, x->name, name);
}

static void write_file(Ctx *ctx, const char *path, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes, 1, n, f) != n || fclose(f) != 0)
        vwn_bug(ctx, "%s could not be written", path);
}

static int64_t bytes_below;
static int add_bytes(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)path, (void)kind, (void)at;
    bytes_below += S_ISREG(st->st_mode) ? st->st_size : 0;
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

static void remove_folder(const char *path) { nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS); }

static const char *read_text(Ctx *ctx, const char *path, size_t *length)
{
    char bytes[4096];
    Buf b = buf_new(ctx->program);
    FILE *f = fopen(path, "rb");
    if (!f)
        vwn_bug(ctx, "no %s", path);
    for (size_t n; (n = fread(bytes, 1, sizeof bytes, f)) > 0;)
        buf_put(&b, bytes, n);
    fclose(f);
    *length = b.n;
    return b.s;
}

/* What a compiler sees of a source: a layout or a comment of another kind makes nothing anew. */
static void add_tokens(Ctx *ctx, Sha256 *s, const char *path)
{
    size_t n;
    const char *p = read_text(ctx, path, &n), *end = p + n;
    Buf b = buf_new(ctx->program);
    while (p < end) {
        if (p[0] == '/' && (p[1] == '/' || p[1] == '*')) {
            const char *last = strstr(p, p[1] == '/' ? "\n" : "*/");
            p = last ? last + (p[1] == '/' ? 1 : 2) : end;
        } else if (*p == '"' || *p == '\'') {
            const char *from = p++;
            while (p < end && *p != *from)
                p += *p == '\\' ? 2 : 1;
            buf_put(&b, from, (size_t)(++p - from));
        } else if (*p == '\\' || isspace((unsigned char)*p))
            p++;
        else
            buf_put(&b, p++, 1);
    }
    sha256_add_string(s, b.s, b.n);
}

/* ---- programs of a source ---- */

typedef struct Part {
    const char *name;
    Graph *g;
    Half half;
} Part;

/* The gradient, of a scaled loss where the step computes in fp16. */
static Graph *gradient_in(Ctx *ctx, const Unit *u, Half half)
{
    Train t = *u->train;
    t.compute = half;
    return step_gradient(u->model, &t, true, ctx->program);
}

static void find_parts(Ctx *ctx, const Unit *u, const Item *x, Part part[PROGRAMS])
{
    const Part is[PROGRAMS] = {{"train", u->train ? gradient_in(ctx, u, HALF_NONE) : NULL, HALF_NONE},
                               {"train in bf16", u->train ? gradient_in(ctx, u, HALF_NONE) : NULL, HALF_BF16},
                               {"train in fp16", u->train ? gradient_in(ctx, u, HALF_FP16) : NULL, HALF_FP16},
                               {"update", u->train ? step_update(u->model, u->train, ctx->program) : NULL, HALF_NONE},
                               {"eval", step_evaluate(u->model, ctx->program), HALF_NONE}};
    memcpy(part, is, sizeof is);
    for (int i = 0; i < PROGRAMS; i++)
        if (x->wide && !part[i].half)
            part[i].g = NULL;
}

/* Pictures are large: one of them has rows enough. */
static bool reads_pictures(const Graph *g)
{
    for (size_t i = 0; i < g->ext.n; i++)
        if (g->ext.v[i].kind == EXT_INPUT && g->ext.v[i].dtype == DT_REAL)
            return true;
    return false;
}

static ProgramOptions options_of(const Item *x, const Part *p)
{
    return (ProgramOptions){.name = p->name, .B = reads_pictures(p->g) ? 1 : x->B, .T = x->T, .half = p->half};
}

/* ---- what there is to make ---- */

static Unit *unit_of(Ctx *ctx, const Item *x) { return load_text(ctx, example_text(ctx, &x->source), x->source.v.set); }

static void add_makers(Ctx *ctx, Sha256 *s, const Item *x)
{
    /* Those of sm_90a's own instructions come last. */
    static const char *const makers[] = {"emu/cuemu.h", "emu/backend_emu.c", "emu/emu_compile.c", "gpu/record.c",
                                         "gpu/cases.h", "emu/rules.h",       "emu/warpgroup.h",   "emu/mbarrier.h"};
    const size_t n = COUNT_OF(makers) - (x->sm_90a ? 0 : 2);
    for (size_t i = 0; i < n; i++)
        add_tokens(ctx, s, arena_printf(ctx->program, "%s/tests/%s", VWN_SOURCE_DIR, makers[i]));
    sha256_add_string(s, MADE_AS, strlen(MADE_AS));
    for (size_t i = 0; i < x->kernel.n; i++)
        sha256_add_string(s, x->kernel.v[i], strlen(x->kernel.v[i]));
}

/* Which compiler makes code of these cases, and for what. */
static void find_code(Ctx *ctx, Item *x)
{
    Sha256 s;
    Nvrtc nvrtc;
    char why[512];
    const char *id = nvrtc_open(ctx, &nvrtc, why) ? nvrtc.build_id : why;
    sha256_start(&s);
    sha256_add_string(&s, x->key, strlen(x->key));
    sha256_add_string(&s, id, strlen(id));
    for (size_t i = 0; i < all.n_arch; i++)
        sha256_add_string(&s, all.arch[i], strlen(all.arch[i]));
    sha256_hex(&s, x->code);
}

static void look(Ctx *ctx, void *arg)
{
    Item *x = arg;
    Unit *u = unit_of(ctx, x);
    Part part[PROGRAMS];
    Recorder r;
    record_start(&r, ctx, NULL, NULL);
    r.base.target = x->sm_90a ? &target_sm_90a : &target_gpu;
    find_parts(ctx, u, x, part);
    for (size_t i = 0; i < PROGRAMS; i++) {
        BuildReport report;
        if (!part[i].g)
            continue;
        const ProgramOptions how = options_of(x, &part[i]);
        Store *s = store_new(ctx, &r.base);
        if (program_prepare(s, part[i].g, &how, &report) != ST_OK)
            vwn_bug(ctx, "%s: %s", part[i].name, report.why);
        store_free(s);
    }
    for (size_t i = 0; i < r.met.n; i++) {
        Name name = name_str(all.ctx, r.met.v[i]->name);
        void **slot = map_at(&all.seen, (uintptr_t)name); /* of the item that has it, or leaves it to nobody */
        if (!*slot && (!x->wide || r.met.v[i]->library))
            vec_push(all.ctx->program, &x->kernel, name);
        *slot = x;
    }
    add_makers(ctx, &r.hash, x);
    sha256_hex(&r.hash, x->key);
    find_code(ctx, x);
    if (r.prelude && x->kernel.n)
        write_file(ctx, arena_printf(ctx->program, "%s/prelude.cu", all.folder), r.prelude, r.prelude_length);
    record_end(&r);
}

/* Whether the item's folder has a file of this name with this key. */
static bool has_key(const Item *x, const char *name, const char *key)
{
    char path[600], there[65] = "";
    snprintf(path, sizeof path, "%.500s/%s/%s", all.folder, x->name, name);
    FILE *f = fopen(path, "rb");
    bool same = f && fread(there, 1, 64, f) == 64 && !strcmp(there, key);
    if (f)
        fclose(f);
    return same;
}

static bool add_item(size_t number, Item is)
{
    Item *x = &all.item[all.n_item];
    *x = is;
    snprintf(x->name, sizeof x->name, "%02zu%s", number, is.sm_90a ? "-sm_90a" : "");
    Ctx *ctx = ctx_new(NULL);
    bool ok = guarded(ctx, look, x);
    ctx_free(ctx);
    if (!ok)
        printf("%-10s %-24s FAILED\n", x->name, x->source.v.name);
    else if (x->kernel.n) {
        all.made->item[all.n_item].kept = has_key(x, "key", x->key);
        all.made->item[all.n_item].compiled = has_key(x, "code", x->code);
        all.kernels += x->kernel.n;
        all.n_item++;
    }
    return ok;
}

/* ---- making ---- */

static void fill_random(RefBinding *bind, const Graph *g)
{
    uint64_t state = 5;
    for (size_t i = 0; i < g->ext.n; i++)
        for (int64_t k = 0; (bind[i].kind == EXT_GRAD || bind[i].kind == EXT_STATE) && k < bind[i].tensor->size; k++) {
            double x = noise(&state); /* moments: some must not be negative */
            if (bind[i].tensor->dtype == DT_REAL)
                bind[i].tensor->real[k] = bind[i].kind == EXT_STATE ? 0.1 + fabs(x) : x;
        }
}

static void run_part(Recorder *r, const Unit *u, const Item *x, const Part *part)
{
    Ctx *ctx = r->ctx;
    const Graph *g = part->g;
    const ProgramOptions how = options_of(x, part);
    RefBinding *bind = bind_all(ctx->program, g, u->model, how.B, how.T, 0.3);
    double vars[HV_COUNT];
    for (int i = 0; i < HV_COUNT; i++)
        vars[i] = i + 1;
    vars[HV_LOSS_SCALE] = SCALE;
    Program *p;
    BuildReport report;
    Store *s = store_new(ctx, &r->base);
    r->program = part->name;
    fill_random(bind, g);
    if (program_build(s, g, &how, &p, &report) != ST_OK)
        vwn_bug(ctx, "build: %s", report.why);
    for (size_t i = 0; i < g->ext.n; i++) {
        StoreEntry *e = store_find(s, bind[i].kind, bind[i].name);
        Status st = !e                   ? ST_BUG
                    : e->dtype == DT_INT ? store_put_i64(s, e, 0, e->elements, bind[i].tensor->integer)
                                         : store_put_f64(s, e, 0, e->elements, bind[i].tensor->real);
        if (st != ST_OK)
            vwn_bug(ctx, "store of %s: %s", bind[i].name, store_why(s));
    }
    if (program_run(p, &(RunArgs){.host_vars = vars, .seed = 7, .step = 3}) != ST_OK)
        vwn_bug(ctx, "run: %s", program_why(p));
    program_free(p);
    store_free(s);
}

/* The machine code that a run would have of these kernels. */
static void put_cubins(Ctx *ctx, const char *folder, const CudaText *text, size_t n, const char *prelude, size_t length,
                       const char *arch)
{
    Nvrtc nvrtc;
    Cache cache;
    char why[512];
    CudaCode *code = NEW_ARRAY(ctx->program, CudaCode, n + 1);
    if (!nvrtc_open(ctx, &nvrtc, why))
        vwn_bug(ctx, "no cubins: %s", why);
    cache_open(&cache, CACHE_CUBINS, all.cache);
    CudaBuild b = {.arch = arch,
                   .prelude = prelude,
                   .prelude_length = length,
                   .kernel = text,
                   .n = n,
                   .jobs = 1,
                   .cache = cache.readable ? &cache : NULL,
                   .arena = ctx->program,
                   .code = code};
    Status status = nvrtc_build(&nvrtc, &b);
    cache_close(&cache);
    if (status != ST_OK)
        vwn_bug(ctx, "%s", b.why);
    Buf list = buf_new(ctx->program);
    mkdir(arena_printf(ctx->program, "%s/%s", folder, arch), 0777);
    for (size_t i = 0; i < n; i++) {
        size_t first = 0;
        while (code[first].cubin != code[i].cubin)
            first++;
        const char *file = arena_printf(ctx->program, "%s/%zu.cubin", arch, first);
        if (first == i)
            write_file(ctx, arena_printf(ctx->program, "%s/%s", folder, file), code[i].cubin, code[i].size);
        const CubinKernel *k = &code[i].facts;
        buf_printf(&list, "%s %s %d %lld %lld %lld\n", text[i].name, file, k->registers, (long long)k->frame,
                   (long long)(k->spill_stores + k->spill_loads), (long long)k->shared);
    }
    write_file(ctx, arena_printf(ctx->program, "%s/%s.list", folder, arch), list.s, list.n);
}

/* Of the texts in a folder, without what is told of them behind their ends. */
static void compile_texts(Ctx *ctx, const char *folder, const char *arch)
{
    glob_t found;
    size_t length, n;
    if (glob(arena_printf(ctx->program, "%s/k_*.cu", folder), 0, NULL, &found) != 0)
        vwn_bug(ctx, "no kernels in %s", folder);
    n = found.gl_pathc;
    CudaText *text = NEW_ARRAY(ctx->program, CudaText, n);
    for (size_t i = 0; i < n; i++) {
        const char *name = strrchr(found.gl_pathv[i], '/') + 1;
        text[i].name = arena_copy(ctx->program, name, strlen(name) - strlen(".cu"));
        text[i].text = read_text(ctx, found.gl_pathv[i], &text[i].length);
        text[i].place = "";
        for (const char *end = text[i].text; (end = strstr(end, "\n}\n"));)
            text[i].length = (size_t)((end += 3) - text[i].text);
    }
    globfree(&found);
    const char *prelude = read_text(ctx, arena_printf(ctx->program, "%s/../prelude.cu", folder), &length);
    put_cubins(ctx, folder, text, n, prelude, length, arch);
}

static void compile_folder(Ctx *ctx, void *arg)
{
    char **of = arg;
    compile_texts(ctx, of[0], of[1]);
}

static void record_cases(Ctx *ctx, Item *x, const char *now)
{
    Unit *u = unit_of(ctx, x);
    Part part[PROGRAMS];
    Backend *emu;
    Recorder r;
    char why[512];
    const char *to = arena_printf(ctx->program, "%s.new", now);
    remove_folder(to);
    mkdir(to, 0777);
    if (backend_emu_open(ctx, &(EmuOptions){.target = x->sm_90a ? &target_sm_90a : &target_gpu}, &emu, why) != ST_OK)
        vwn_bug(ctx, "no emulator: %s", why);
    record_start(&r, ctx, emu, to);
    for (size_t i = 0; i < x->kernel.n; i++)
        *map_at(&r.wanted, (uintptr_t)name_str(ctx, x->kernel.v[i])) = x;
    find_parts(ctx, u, x, part);
    for (size_t i = 0; i < PROGRAMS; i++)
        if (part[i].g)
            run_part(&r, u, x, &part[i]);
    record_end(&r);
    all.made->item[x - all.item].loose = r.loose;
    if (r.kernel.n != x->kernel.n)
        vwn_bug(ctx, "%zu kernels were launched, and %zu should be", r.kernel.n, x->kernel.n);
    for (size_t i = 0; i < r.kernel.n; i++) {
        const PlanKernel *k = r.kernel.v[i];
        Buf b = buf_new(ctx->program);
        buf_put(&b, k->text, k->length);
        buf_puts(&b, k->where ? k->where : "");
        write_file(ctx, in_folder(ctx, x, arena_printf(ctx->program, "%s.cu", k->name)), b.s, b.n);
    }
    write_file(ctx, in_folder(ctx, x, "key"), x->key, 64);
    remove_folder(now);
    if (rename(to, now) != 0)
        vwn_bug(ctx, "%s could not be named", now);
}

static void make(Ctx *ctx, void *arg)
{
    Item *x = arg;
    const char *now = arena_printf(ctx->program, "%s/%s", all.folder, x->name);
    if (!all.made->item[x - all.item].kept)
        record_cases(ctx, x, now);
    for (size_t i = 0; i < all.n_arch; i++)
        if (!x->sm_90a || !strcmp(all.arch[i], "sm_90a"))
            compile_texts(ctx, now, all.arch[i]);
    write_file(ctx, arena_printf(ctx->program, "%s/code", now), x->code, 64);
    bytes_below = 0;
    nftw(now, add_bytes, 16, FTW_PHYS);
}

static void tell(size_t i)
{
    const Item *x = &all.item[i];
    printf("%-10s %-24s %3zu kernels", x->name, x->source.v.name, x->kernel.n);
    if (all.made->item[i].kept && all.made->item[i].compiled)
        printf(", as they were\n");
    else
        printf(", %.2f MiB, %d loose, %.0f s%s\n", (double)all.made->item[i].bytes / (1 << 20), all.made->item[i].loose,
               all.made->item[i].seconds, all.made->item[i].good ? "" : "  FAILED");
    fflush(stdout);
}

/* One of the processes that make items: what it compiles for the emulator it keeps. */
static void work(void)
{
    size_t i;
    while ((i = atomic_fetch_add(&all.made->next, 1)) < all.n_item) {
        if (all.made->item[i].kept && all.made->item[i].compiled)
            continue;
        double start = clock_seconds();
        Ctx *ctx = ctx_new(NULL);
        all.made->item[i].good = guarded(ctx, make, &all.item[i]);
        ctx_free(ctx);
        all.made->item[i].bytes = bytes_below;
        all.made->item[i].seconds = clock_seconds() - start;
        tell(i);
    }
}

static void work_all(void)
{
    fflush(stdout);
    for (size_t j = 0; j < all.jobs; j++) {
        pid_t child = fork();
        if (child == 0) {
            work();
            _exit(0);
        }
        if (child < 0)
            work();
    }
    while (wait(NULL) > 0)
        ;
}

/* What is asked for no more. */
static void remove_others(void)
{
    glob_t found;
    char pattern[600];
    snprintf(pattern, sizeof pattern, "%.580s/[0-9]*", all.folder);
    if (glob(pattern, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        size_t k = 0;
        while (k < all.n_item && strcmp(all.item[k].name, strrchr(found.gl_pathv[i], '/') + 1) != 0)
            k++;
        if (k == all.n_item)
            remove_folder(found.gl_pathv[i]);
    }
    globfree(&found);
}

/* ---- which ---- */

static bool wanted(const char *name, int n, char **names)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(names[i], name))
            return true;
    return n == 0;
}

/* False: one of them cannot be planned. */
static bool find_items(int n, char **names)
{
    const size_t models = COUNT_OF(sources), first_wide = models + MODELS;
    bool good = true;
    for (size_t i = 0; i < first_wide + COUNT_OF(wide) && all.n_item + 2 <= ITEMS; i++) {
        const Wide *w = i < first_wide ? NULL : &wide[i - first_wide];
        Item x = {.B = w ? w->B : ROWS_B, .T = w ? w->T : ROWS_T, .wide = w};
        x.source = w ? (Source){NULL, w->v} : i < models ? sources[i] : (Source){NULL, *model_variant(i - models)};
        for (size_t k = 0; k < COUNT_OF(fewer); k++)
            if (!strcmp(fewer[k].name, x.source.v.name)) {
                x.B = fewer[k].B;
                x.T = fewer[k].T;
            }
        if (!wanted(x.source.v.name, n, names))
            continue;
        const int64_t T = x.T;
        if (w && T > POSITIONS)
            x.T = POSITIONS;
        good = add_item(i, x) && good;
        x.T = T;
        x.sm_90a = true;
        good = add_item(i, x) && good;
    }
    return good;
}

/* Reads options; returns the first of the names. */
static int read_options(int argc, char **argv)
{
    int i = 2;
    for (; i + 1 < argc && !strncmp(argv[i], "--", 2); i += 2) {
        if (!strcmp(argv[i], "--jobs"))
            all.jobs = (size_t)strtoul(argv[i + 1], NULL, 10);
        else if (!strcmp(argv[i], "--cache"))
            all.cache = argv[i + 1];
        else if (!strcmp(argv[i], "--arch") && all.n_arch < ARCHS)
            all.arch[all.n_arch++] = argv[i + 1];
    }
    if (!all.n_arch)
        all.arch[all.n_arch++] = "sm_90a";
    all.jobs = all.jobs < 1 ? 1 : all.jobs > JOBS ? JOBS : all.jobs;
    return i;
}

int main(int argc, char **argv)
{
    char why[512];
    if (argc < 2 || !emu_possible(why)) {
        printf("%s\n",
               argc < 2 ? "use: make_cases FOLDER [--jobs N] [--cache FOLDER] [--arch ARCH]... [NAME...]" : why);
        return argc < 2 ? 2 : EMU_SKIPPED;
    }
    all.cache = "";
    all.ctx = ctx_new(NULL);
    if (argc == 4 && !strcmp(argv[1], "--compile"))
        return !guarded(all.ctx, compile_folder, argv + 2);
    all.folder = argv[1];
    map_init(&all.seen, all.ctx->program);
    all.made = mmap(NULL, sizeof *all.made, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int first = read_options(argc, argv);
    mkdir(all.folder, 0777);
    bool good = find_items(argc - first, argv + first);
    printf("%zu folders of %zu kernels\n", all.n_item, all.kernels);
    size_t made = 0, kept = 0;
    remove_others();
    work_all();
    for (size_t i = 0; i < all.n_item; i++) {
        bool was = all.made->item[i].kept && all.made->item[i].compiled;
        good = good && (was || all.made->item[i].good);
        kept += was;
        made += !was && all.made->item[i].good;
        if (was)
            tell(i);
    }
    printf("%zu made, %zu as they were, %zu failed, %zu kernels\n", made, kept, all.n_item - made - kept, all.kernels);
    ctx_free(all.ctx);
    return !good || all.n_item == 0;
}
