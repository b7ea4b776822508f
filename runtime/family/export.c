/* export.c - `vwn_export_hf`: a run as a folder that transformers opens.
 *
 * In:  a run whose model is of a family.   Out: model.safetensors, the tokenizer's file, and last config.json, without which the folder
 * is no model.
 * The one idea: the family's own `names` table, by which such files are read, is read backwards.
 */
#include "family.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compiler/portable/file.h"
#include "runtime/base/folder.h"
#include "runtime/checkpoint/named.h"

/* What numbers are stored in: transformers' word, and how many digits and which exponents it has. */
typedef struct StoredAs {
    const char *word;
    SafeType type;
    int bytes, digits, bias;
} StoredAs;
static const StoredAs stored_as[] = {
    {"float32", SAFE_F32, 4, 23, 127}, {"bfloat16", SAFE_BF16, 2, 7, 127}, {"float16", SAFE_F16, 2, 10, 15}};

typedef struct Outgoing { /* a tensor of the folder */
    Name name;
    const ModelAlias **part;
    size_t n;
} Outgoing;

typedef struct HfExport {
    Session session;
    const vwn_hf_options *how;
    const vwn_writer *out;
    const Hooks *hooks;
    Source from;
    FamilyMatch match;
    const StoredAs *as;
    Outgoing *tensor; /* by name */
    size_t n;
    VEC(const char *) file; /* that were written */
} HfExport;

/* ---- which tensors ---- */

static int by_name(const void *x, const void *y)
{
    return strcmp(((const Outgoing *)x)->name, ((const Outgoing *)y)->name);
}

/* Those of the first table that has the weight: a later one has the names of older files. */
static void list_tensors(HfExport *e)
{
    const Model *m = e->match.model;
    Arena *a = e->session.arena;
    Map at; /* name -> its tensor */
    map_init(&at, a);
    e->tensor = NEW_ARRAY(a, Outgoing, m->alias.n + 1);
    uint32_t *table = NEW_ARRAY(a, uint32_t, m->param.n + 1);
    for (size_t i = m->alias.n; i-- > 0;) /* tables stand in order */
        table[m->alias.v[i].param] = m->alias.v[i].table;
    for (size_t i = 0; i < m->alias.n; i++) {
        const ModelAlias *alias = &m->alias.v[i];
        if (alias->table != table[alias->param])
            continue;
        void **slot = map_at(&at, (uintptr_t)alias->other);
        Outgoing *o = *slot;
        if (!o) {
            *slot = o = &e->tensor[e->n++];
            *o = (Outgoing){.name = alias->other, .part = NEW_ARRAY(a, const ModelAlias *, m->param.n + 1)};
        }
        o->part[o->n++] = alias;
    }
    qsort(e->tensor, e->n, sizeof *e->tensor, by_name);
}

/* All numbers of a weight of the run, under the number that it has in the family. */
static double *read_weight(HfExport *e, size_t param)
{
    Session *s = &e->session;
    char why[WHY];
    const Param *p = &e->from.unit->model->param.v[e->match.param[param]];
    const SafeFile *f = &e->from.checkpoint->file;
    const SafeTensor *t = e->how->last ? NULL : safe_find(f, arena_printf(s->arena, "%s:average", p->path));
    double *v = NEW_ARRAY(s->arena, double, p->elements + 1);
    t = t ? t : safe_find(f, p->path);
    if (!t || t->elements != p->elements)
        ctx_raise(s->ctx, ST_ENVIRONMENT, "%.250s has no tensor `%.150s` as the model needs it", f->path, p->path);
    if (!safe_read(f, t, 0, t->elements, v, why))
        ctx_raise(s->ctx, ST_ENVIRONMENT, "%s", why);
    return v;
}

/* ---- numbers ---- */

/* To nearest, ties to even, low byte first; false where the type ends before. */
static bool put_number(const StoredAs *as, double x, unsigned char *out)
{
    const int bits = 8 * as->bytes;
    uint64_t code = 0;
    int e;
    if (x != 0) {
        frexp(x, &e);
        int exponent = e - 1 < 1 - as->bias ? 1 - as->bias : e - 1; /* below it numbers have no leading 1 */
        uint64_t k = (uint64_t)nearbyint(ldexp(fabs(x), as->digits - exponent));
        uint64_t field = k >> as->digits ? (uint64_t)(exponent + as->bias) : 0;
        code = k + (field ? field - 1 : 0) *
                       ((uint64_t)1 << as->digits); /* a k that was rounded up to the next power goes on */
        if (code >> as->digits >= ((uint64_t)1 << (bits - 1 - as->digits)) - 1)
            return false;
    }
    code |= (uint64_t)(signbit(x) != 0) << (bits - 1);
    for (int i = 0; i < as->bytes; i++)
        out[i] = (unsigned char)(code >> 8 * i);
    return true;
}

static void put_tensor(HfExport *e, SafeWriter *w, const Outgoing *o)
{
    enum { EACH = 1 << 12 };
    Session *s = &e->session;
    ArenaMark mark = arena_mark(s->arena);
    int64_t d[MAX_RANK], all = 1;
    unsigned char bytes[EACH * 4];
    char why[WHY];
    int rank = named_shape(e->match.model, o->part[0], d);
    for (int k = 0; k < rank; k++)
        all *= d[k];
    double *there = NEW_ARRAY(s->arena, double, all + 1);
    for (size_t i = 0; i < o->n; i++)
        named_move(e->match.model, o->part[i], read_weight(e, o->part[i]->param), there, true);
    for (int64_t at = 0; at < all; at += EACH) {
        int64_t n = all - at < EACH ? all - at : EACH;
        for (int64_t i = 0; i < n; i++)
            if (!put_number(e->as, there[at + i], bytes + i * e->as->bytes)) {
                safe_abandon(w);
                ctx_raise(s->ctx, ST_INPUT, "`%.150s` holds %g, which is more than %s has", o->name, there[at + i],
                          e->as->word);
            }
        if (!safe_put(w, bytes, (size_t)(n * e->as->bytes), why))
            ctx_raise(s->ctx, ST_ENVIRONMENT, "%s", why);
    }
    arena_reset(s->arena, mark);
}

/* ---- files ---- */

static void close_writer(void *w) { safe_abandon(w); }

static void wrote(HfExport *e, const char *name)
{
    vec_push(e->session.arena, &e->file, arena_printf(e->session.arena, "%s/%s", e->how->folder, name));
}

static void write_weights(HfExport *e)
{
    Session *s = &e->session;
    SafeWriter *w = NEW(s->arena, SafeWriter);
    char why[WHY];
    safe_begin_plain(w, arena_region(s->arena));
    session_defer(s, close_writer, w);
    safe_meta(w, "format", "pt", 2);
    for (size_t i = 0; i < e->n; i++) {
        int64_t d[MAX_RANK];
        int rank = named_shape(e->match.model, e->tensor[i].part[0], d);
        safe_declare(w, e->tensor[i].name, e->as->type, (uint8_t)rank, d);
    }
    if (!safe_create(w, e->how->folder, "model.safetensors", why))
        ctx_raise(s->ctx, ST_ENVIRONMENT, "%s", why);
    for (size_t i = 0; i < e->n; i++)
        put_tensor(e, w, &e->tensor[i]);
    if (!safe_commit(w, why))
        ctx_raise(s->ctx, ST_ENVIRONMENT, "%s", why);
    wrote(e, "model.safetensors");
}

static void write_text_file(HfExport *e, const char *name, const char *text, size_t n)
{
    Session *s = &e->session;
    const char *path = arena_printf(s->arena, "%s/%s", e->how->folder, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    bool fine = fd >= 0;
    for (size_t at = 0; fine && at < n;) {
        ssize_t put = write(fd, text + at, n - at);
        fine = put > 0 || (put < 0 && errno == EINTR);
        at += put > 0 ? (size_t)put : 0;
    }
    int why = errno;
    if (fd >= 0 && close(fd) != 0 && fine) {
        fine = false;
        why = errno;
    }
    if (!fine)
        ctx_raise(s->ctx, ST_ENVIRONMENT, "%.300s could not be written: %s", path, strerror(why));
    wrote(e, name);
}

static void write_config(HfExport *e)
{
    const Family *f = e->match.family;
    const Train *t = e->from.unit->train;
    Buf b = buf_new(e->session.arena);
    buf_printf(&b, "{\n  \"architectures\": [\"%s\"],\n  \"model_type\": \"%s\",\n  \"dtype\": \"%s\",\n",
               f->architecture, f->type, e->as->word);
    bool scaled = false; /* positions of Llama 3.1 */
    for (size_t i = 0; i < f->n_key; i++)
        scaled |= !strcmp(f->key[i].key, "factor") && e->match.json[i] && strcmp(e->match.json[i], "1");
    for (size_t i = 0; i < f->n_key; i++)
        if (e->match.json[i] && f->key[i].kind != KEY_LET)
            buf_printf(&b, "  \"%s\": %s,\n", f->key[i].key, e->match.json[i]);
    if (scaled) {
        buf_puts(&b, "  \"rope_scaling\": {");
        for (size_t i = 0; i < f->n_key; i++)
            if (e->match.json[i] && f->key[i].kind == KEY_LET)
                buf_printf(&b, "\"%s\": %s, ", f->key[i].key, e->match.json[i]);
        buf_puts(&b, "\"rope_type\": \"llama3\"},\n");
    }
    if (f->also)
        buf_printf(&b, "  %s,\n", f->also);
    if (t && t->data.separated && !t->data.separator_text) /* the token that documents begin with ends the one before */
        buf_printf(&b, "  \"eos_token_id\": %lld\n}\n", (long long)t->data.separator);
    else
        buf_puts(&b, "  \"eos_token_id\": null\n}\n");
    write_text_file(e, "config.json", b.s, b.n);
}

static void write_tokenizer(HfExport *e)
{
    static const char config[] = "{\n  \"tokenizer_class\": \"PreTrainedTokenizerFast\"\n}\n";
    const Tokenizer *t = e->from.checkpoint->meta.tokenizer;
    const BpeFiles *f = t ? t->files : NULL;
    if (!f) {
        session_warn(&e->session, t && t->kind == TOKENIZER_BYTES ? "there is no tokenizer's file: ids are bytes"
                                                                  : "there is no tokenizer's file: the run has none");
        return;
    }
    const bool json = f->file.text[strspn(f->file.text, " \t\r\n")] == '{';
    write_text_file(e,
                    f->merges.path ? "vocab.json"
                    : json         ? "tokenizer.json"
                                   : "tokenizer.model",
                    f->file.text, f->file.n);
    if (f->merges.path)
        write_text_file(e, "merges.txt", f->merges.text, f->merges.n);
    else if (json)
        write_text_file(e, "tokenizer_config.json", config, sizeof config - 1);
}

static void make_folder(HfExport *e)
{
    const char *folder = e->how->folder;
    Ctx *ctx = e->session.ctx;
    if (mkdir(folder, 0777) == 0)
        return;
    if (errno != EEXIST)
        ctx_raise(ctx, ST_ENVIRONMENT, "%.300s could not be made: %s", folder, strerror(errno));
    DIR *dir = opendir(folder);
    if (!dir)
        ctx_raise(ctx, ST_USAGE, "%.300s: %s", folder, strerror(errno));
    bool empty = folder_is_empty(dir);
    closedir(dir);
    if (!empty)
        ctx_raise(ctx, ST_USAGE, "the folder %.300s holds files: name another", folder);
}

/* ---- the call ---- */

static void report(const HfExport *e)
{
    Buf b = buf_new(e->session.arena);
    if (e->how->json)
        buf_printf(&b, "{\"v\":1,\"event\":\"export\",\"family\":\"%s\",\"tensors\":%zu,\"files\":[",
                   e->match.family->type, e->n);
    for (size_t i = 0; i < e->file.n; i++) {
        if (!e->how->json) {
            buf_printf(&b, "%s\n", e->file.v[i]);
            continue;
        }
        buf_puts(&b, i ? "," : "");
        buf_json_string(&b, e->file.v[i], strlen(e->file.v[i]));
    }
    if (e->how->json)
        buf_puts(&b, "]}\n");
    write_text(e->out, b.s, b.n);
}

static Status export_body(void *user)
{
    HfExport *e = user;
    Session *s = &e->session;
    session_open(s, s->owner);
    const char *dtype = e->how->dtype ? e->how->dtype : "float32";
    for (size_t i = 0; i < COUNT_OF(stored_as); i++)
        if (!strcmp(stored_as[i].word, dtype))
            e->as = &stored_as[i];
    if (!e->as)
        ctx_raise(s->ctx, ST_USAGE, "`%.40s`: numbers are stored as float32, bfloat16 or float16", dtype);
    e->from = source_open(s, e->how->run, false, e->hooks);
    e->match = family_match(s, e->from.unit, e->how->family, e->hooks);
    list_tensors(e);
    make_folder(e);
    write_weights(e);
    write_tokenizer(e);
    write_config(e);
    report(e);
    return ST_OK;
}

Status family_export(vwn_context *owner, const vwn_hf_options *how, const vwn_writer *out, const Hooks *hooks)
{
    HfExport e = {.session.owner = owner, .how = how, .out = out, .hooks = hooks};
    Status st = guarded(owner->ctx, export_body, &e);
    session_close(&e.session);
    return st;
}
