/* checkpoint.c - see checkpoint.h. */
#include "checkpoint.h"

#include "compiler/model/optimizer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { PIECE = 1 << 15 }; /* numbers copied at a time */

/* ---- which tensors ---- */

StoreEntry *checkpoint_entry(const Session *s, const Param *p)
{
    return store_find(s->store, p->buffer ? EXT_BUFFER : EXT_PARAM, p->path);
}

static const char *const state_names[STATE_KINDS] = {"m", "v", "average"};

Name checkpoint_state_name(const Session *s, const Param *p, StateKind which)
{
    return name_printf(s->ctx, "%s:%s", p->path, state_names[which]);
}

StoreEntry *checkpoint_state(const Session *s, const Param *p, StateKind which)
{
    return store_find(s->store, EXT_STATE, checkpoint_state_name(s, p, which));
}

StoreEntry *checkpoint_born(const Session *s, const Param *p, int axis)
{
    return store_find(s->store, EXT_STATE, born_name(s->ctx, p, axis));
}

StoreEntry *checkpoint_since(const Session *s, const Param *p, int axis)
{
    return store_find(s->store, EXT_STATE, since_name(s->ctx, p, axis));
}

void checkpoint_hold(Session *s, const Model *m, const Train *t)
{
    for (size_t i = 0; i < m->param.n; i++) {
        const Param *p = &m->param.v[i];
        int n = param_learns(m, t, i) && param_is_held(m, t, i) ? optimizer_states(&t->optimizer, i) : 0;
        int64_t d[MAX_RANK] = {0};
        for (int k = 0; k < p->shape.rank; k++)
            d[k] = p->shape.d[k].n;
        for (int k = 0; k < n && k < STATE_AVERAGE; k++) {
            StoreEntry *e;
            Name name = checkpoint_state_name(s, p, (StateKind)k);
            session_store_ok(s, t->owner ? store_add_held(s->store, EXT_STATE, name, p->shape.rank, d, t->owner[i],
                                                          param_is_here(t, i), &e)
                                         : store_add(s->store, EXT_STATE, name, DT_REAL, p->shape.rank, d, &e));
        }
    }
}

/* ---- writing ---- */

static void meta_text(SafeWriter *w, const char *key, const char *value)
{
    safe_meta(w, key, value ? value : "", value ? strlen(value) : 0);
}

static const char *tokenizer_name(const Tokenizer *t)
{
    static const char *const names[] = {"none", "bytes", "chars", "file"};
    return names[t ? t->kind : TOKENIZER_NONE];
}

/* The way from one folder to another; where one is not there, the other's name as it is. */
static const char *way(Arena *a, const char *from, const char *to)
{
    char *here = realpath(from, NULL), *there = realpath(*to ? to : ".", NULL);
    size_t same = 0, i = 0;
    Buf b = buf_new(a);
    for (; here && there && here[i] == there[i] && here[i]; i++)
        same = here[i] == '/' ? i : same; /* the last slash of what they share */
    if (here && there && (!here[i] || here[i] == '/') && (!there[i] || there[i] == '/'))
        same = i;
    for (const char *up = here ? here + same : ""; there && *up; up++)
        if (*up != '/' && (up == here || up[-1] == '/'))
            buf_puts(&b, b.n ? "/.." : "..");
    const char *down = here && there ? there + same + (there[same] == '/') : to;
    if (*down)
        buf_printf(&b, "%s%s", b.n ? "/" : "", down);
    free(here);
    free(there);
    return b.n ? b.s : ".";
}

static void put_metadata(SafeWriter *w, Arena *a, const RunMeta *meta, const Progress *p, const char *folder)
{
    char seed[24];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)meta->seed);
    meta_text(w, "format", "vwn checkpoint 1");
    meta_text(w, "edition", "1");
    meta_text(w, "vwn", meta->version);
    meta_text(w, "model", meta->model);
    meta_text(w, "text", meta->text);
    meta_text(w, "lets", meta->lets);
    meta_text(w, "folder", way(a, folder, meta->folder));
    if (*meta->grown)
        meta_text(w, "grown", meta->grown);
    meta_text(w, "seed", seed);
    meta_text(w, "data", meta->data);
    meta_text(w, "tokenizer", tokenizer_name(meta->tokenizer));
    Buf vocabulary = buf_new(a);
    if (meta->tokenizer)
        tokenizer_vocabulary(meta->tokenizer, &vocabulary);
    safe_meta(w, "vocabulary", vocabulary.s, vocabulary.n);
    char text[PROGRESS_TEXT];
    for (size_t i = 0; i < progress_fields; i++) {
        const char *key = progress_text(p, i, text);
        if (key)
            meta_text(w, key, text);
    }
}

static bool all_finite(const Session *s, const StoreEntry *e, int64_t at, const void *v, int64_t n, char why[WHY])
{
    for (int64_t i = 0; i < n; i++) {
        double x = s->backend ? (double)((const float *)v)[i] : ((const double *)v)[i];
        if (isfinite(x))
            continue;
        snprintf(why, WHY, "number %lld of `%.300s` is %s", (long long)(at + i + 1), e->name,
                 isnan(x) ? "not a number" : "infinite");
        return false;
    }
    return true;
}

/* Numbers of this rank, as the session computes with them. */
static Status get_piece(Session *s, const StoreEntry *e, int64_t at, int64_t n, void *piece, char why[WHY])
{
    Status st = s->backend ? store_get_f32(s->store, e, at, n, piece) : store_get_f64(s->store, e, at, n, piece);
    if (st != ST_OK)
        snprintf(why, WHY, "%.400s", store_why(s->store));
    return st == ST_OK ? ST_OK : ST_ENVIRONMENT;
}

/* Numbers that one rank has, from there to rank 0. All take part. */
static Status bring_piece(Session *s, const StoreEntry *e, int64_t at, int64_t n, void *piece, char why[WHY])
{
    Ranks *r = s->owner->ranks;
    Status st = e->elsewhere ? ST_OK : get_piece(s, e, at, n, piece, why);
    if (st != ST_OK)
        return st;
    if (ranks_bring(r, e->holder - 1, piece, (size_t)n * (s->backend ? sizeof(float) : sizeof(double))))
        return ST_OK;
    snprintf(why, WHY, "%s", ranks_why(r));
    return ST_ENVIRONMENT;
}

/* Looks at every number, and writes it where there is a writer. */
static Status put_tensor(Session *s, SafeWriter *w, const StoreEntry *e, void *piece, char why[WHY])
{
    size_t size = s->backend ? sizeof(float) : sizeof(double);
    const bool brought = w && e->holder > 1;
    const float *there = brought ? NULL : store_floats(s->store, e);
    for (int64_t at = 0; at < e->elements; at += PIECE) {
        int64_t n = e->elements - at < PIECE ? e->elements - at : PIECE;
        Status st = there ? ST_OK : brought ? bring_piece(s, e, at, n, piece, why) : get_piece(s, e, at, n, piece, why);
        if (st != ST_OK)
            return st;
        const void *v = there ? (const void *)(there + at) : piece;
        if (!all_finite(s, e, at, v, n, why))
            return ST_DIVERGED;
        if (w && !safe_put(w, v, (size_t)n * size, why))
            return ST_ENVIRONMENT;
    }
    return ST_OK;
}

typedef VEC(StoreEntry *) Entries;

static void list_entries(Session *s, const Model *m, Arena *a, Entries *out)
{
    for (size_t i = 0; i < m->param.n; i++)
        vec_push(a, out, checkpoint_entry(s, &m->param.v[i]));
    for (size_t i = 0; i < m->param.n; i++)
        for (int k = 0; k < MAX_RANK; k++) {
            StoreEntry *came[] = {checkpoint_born(s, &m->param.v[i], k), checkpoint_since(s, &m->param.v[i], k)};
            for (size_t j = 0; j < COUNT_OF(came); j++)
                if (came[j])
                    vec_push(a, out, came[j]);
        }
    for (StateKind k = 0; k < STATE_KINDS; k++)
        for (size_t i = 0; i < m->param.n; i++) {
            StoreEntry *e = checkpoint_state(s, &m->param.v[i], k);
            if (e)
                vec_push(a, out, e);
        }
}

Status checkpoint_look(Session *s, const Model *m, char why[WHY])
{
    Arena *a = s->arena;
    ArenaMark mark = arena_mark(a);
    void *piece = arena_alloc(a, PIECE * sizeof(double));
    Entries entries = {0};
    list_entries(s, m, a, &entries);
    Status st = ST_OK;
    for (size_t i = 0; st == ST_OK && i < entries.n; i++)
        st = entries.v[i]->elsewhere ? ST_OK : put_tensor(s, NULL, entries.v[i], piece, why);
    arena_reset(a, mark);
    return st;
}

Status checkpoint_give(Session *s, const Model *m, char why[WHY])
{
    Arena *a = s->arena;
    ArenaMark mark = arena_mark(a);
    void *piece = arena_alloc(a, PIECE * sizeof(double));
    Entries entries = {0};
    list_entries(s, m, a, &entries);
    Status st = ST_OK;
    for (size_t i = 0; i < entries.n; i++) {
        const StoreEntry *e = entries.v[i];
        for (int64_t at = 0; st == ST_OK && e->holder > 1 && at < e->elements; at += PIECE)
            st = bring_piece(s, e, at, e->elements - at < PIECE ? e->elements - at : PIECE, piece, why);
    }
    arena_reset(a, mark);
    return st;
}

Status checkpoint_write(Session *s, const Model *m, const RunMeta *meta, const Progress *p, const char *folder,
                        const char *name, char why[WHY])
{
    Arena *a = s->arena;
    ArenaMark mark = arena_mark(a);
    void *piece = arena_alloc(a, PIECE * sizeof(double));
    SafeWriter w;
    Entries entries = {0};
    list_entries(s, m, a, &entries);
    safe_begin(&w, arena_region(a));
    put_metadata(&w, a, meta, p, folder);
    for (size_t i = 0; i < entries.n; i++) {
        const StoreEntry *e = entries.v[i];
        safe_declare(&w, e->name, s->backend ? SAFE_F32 : SAFE_F64, e->rank, e->d);
    }
    Status st = safe_create(&w, folder, name, why) ? ST_OK : ST_ENVIRONMENT;
    for (size_t i = 0; st == ST_OK && i < entries.n; i++)
        st = put_tensor(s, &w, entries.v[i], piece, why);
    if (st == ST_OK && !safe_commit(&w, why))
        st = ST_ENVIRONMENT;
    safe_abandon(&w);
    arena_reset(a, mark);
    return st;
}

/* ---- reading ---- */

static bool need_text(const Checkpoint *c, const char *key, const char **out, char why[WHY])
{
    if (!safe_text(&c->file, key, out, why))
        return false;
    if (!*out)
        snprintf(why, WHY, "%.300s: byte 8: the metadata has no `%s`: not a checkpoint of vwn", c->file.path, key);
    return *out != NULL;
}

static bool bad_value(const Checkpoint *c, const char *key, char why[WHY])
{
    const Json *j = json_get(c->file.metadata, key);
    snprintf(why, WHY, "%.300s: byte %zu: the metadata `%s` is not a number of the right kind", c->file.path,
             8 + (j ? j->offset : 0), key);
    return false;
}

static bool read_tokenizer(Arena *a, Checkpoint *c, char why[WHY])
{
    const char *kind;
    const Json *vocabulary = json_get(c->file.metadata, "vocabulary");
    if (!need_text(c, "tokenizer", &kind, why))
        return false;
    if (!strcmp(kind, "bytes"))
        c->meta.tokenizer = tokenizer_plain(a, TOKENIZER_BYTES);
    else if (!strcmp(kind, "chars") || !strcmp(kind, "file"))
        c->meta.tokenizer =
            vocabulary && vocabulary->kind == JSON_STRING
                ? tokenizer_from(a, *kind == 'c' ? TOKENIZER_CHARS : TOKENIZER_FILE, vocabulary->s, vocabulary->n)
                : NULL;
    else
        c->meta.tokenizer = tokenizer_plain(a, TOKENIZER_NONE);
    if (!c->meta.tokenizer)
        snprintf(why, WHY, "%.300s: byte %zu: the vocabulary is not %s", c->file.path,
                 8 + (vocabulary ? vocabulary->offset : 0),
                 *kind == 'c' ? "a sorted list of characters" : "that of a tokenizer");
    return c->meta.tokenizer != NULL;
}

static bool read_progress(Checkpoint *c, char why[WHY])
{
    bool missing;
    const char *text, *bad = progress_read(&c->progress, c->file.metadata, &missing);
    return !bad || (missing ? need_text(c, bad, &text, why) : bad_value(c, bad, why));
}

/* What way() wrote, from the folder of the file on. */
static const char *folder_behind(Arena *a, const char *file, const char *way)
{
    const char *slash = strrchr(file, '/');
    if (*way == '/')
        return way;
    const char *path = arena_printf(a, "%.*s%s", slash ? (int)(slash - file) + 1 : 0, file, way);
    char *full = realpath(path, NULL);
    if (full)
        path = arena_copy(a, full, strlen(full));
    free(full);
    return path;
}

static bool read_metadata(Arena *a, Checkpoint *c, char why[WHY])
{
    RunMeta *m = &c->meta;
    const char *seed, *format;
    if (!need_text(c, "format", &format, why) || !need_text(c, "vwn", &m->version, why) ||
        !need_text(c, "model", &m->model, why) || !need_text(c, "text", &m->text, why) ||
        !need_text(c, "lets", &m->lets, why) || !need_text(c, "seed", &seed, why) ||
        !need_text(c, "data", &m->data, why) || !need_text(c, "folder", &m->folder, why))
        return false;
    if (strcmp(format, "vwn checkpoint 1")) {
        snprintf(why, WHY, "%.300s: byte 8: the format `%.40s` is not known to this version of vwn", c->file.path,
                 format);
        return false;
    }
    m->folder = folder_behind(a, c->file.path, m->folder);
    if (!safe_text(&c->file, "grown", &m->grown, why))
        return false;
    if (!m->grown)
        m->grown = "";
    char *end;
    m->seed = strtoull(seed, &end, 10);
    if (end == seed || *end)
        return bad_value(c, "seed", why);
    return read_progress(c, why) && read_tokenizer(a, c, why);
}

static void close_file(void *f) { safe_close(f); }

bool checkpoint_open(Session *s, const char *path, Checkpoint *c, char why[WHY])
{
    *c = (Checkpoint){.file.fd = -1};
    session_defer(s, close_file, &c->file);
    return safe_open(arena_region(s->arena), path, &c->file, why) && safe_verify(&c->file, true, why) &&
           read_metadata(s->arena, c, why);
}

bool checkpoint_is_exact(const Session *s, const Checkpoint *c)
{
    SafeType own = s->backend ? SAFE_F32 : SAFE_F64;
    for (size_t i = 0; i < c->file.n; i++)
        if (c->file.tensor[i].type != own)
            return false;
    return true;
}

/* "[768, 3072]" */
static void print_extents(char *out, size_t cap, uint8_t rank, const int64_t *d)
{
    size_t n = (size_t)snprintf(out, cap, "[");
    for (int i = 0; i < rank && n < cap; i++)
        n += (size_t)snprintf(out + n, cap - n, "%s%lld", i ? ", " : "", (long long)d[i]);
    if (n < cap)
        snprintf(out + n, cap - n, "]");
}

typedef struct Stored { /* where a tensor of the model lies in the file */
    const SafeTensor *tensor;
    bool transposed;
} Stored;

/* `name` is a path, or a path with ":m": under that name, or under another that a `names` table has. */
static Stored find_stored(Session *s, const Model *m, const Checkpoint *c, Name name)
{
    const SafeTensor *t = safe_find(&c->file, name);
    const char *which = strrchr(name, ':');
    size_t n = which ? (size_t)(which - name) : strlen(name);
    for (size_t i = 0; !t && i < m->alias.n; i++) {
        const ModelAlias *a = &m->alias.v[i];
        Name path = m->param.v[a->param].path;
        if (strncmp(path, name, n) || path[n] || !alias_is_whole(a))
            continue;
        t = safe_find(&c->file, name_printf(s->ctx, "%s%s", a->other, name + n));
        if (t)
            return (Stored){t, a->transposed};
    }
    return (Stored){t, false};
}

static bool same_extents(const SafeTensor *t, const StoreEntry *e, bool transposed)
{
    const int r = e->rank, same = transposed && r >= 2 ? r - 2 : r;
    return t->rank == r && !memcmp(t->d, e->d, (size_t)same * sizeof *e->d) &&
           (same == r || (t->d[r - 2] == e->d[r - 1] && t->d[r - 1] == e->d[r - 2]));
}

static bool put_numbers(Session *s, StoreEntry *e, int64_t at, int64_t n, const double *v, char why[WHY])
{
    if (store_put_f64(s->store, e, at, n, v) == ST_OK)
        return true;
    snprintf(why, WHY, "%.400s", store_why(s->store));
    return false;
}

/* Matrix by matrix, whose axes are the last two. */
static bool load_transposed(Session *s, const Checkpoint *c, const SafeTensor *t, StoreEntry *e, char why[WHY])
{
    int64_t rows = e->d[e->rank - 2], columns = e->d[e->rank - 1], each = rows * columns;
    double *all = NEW_ARRAY(s->arena, double, each + 1);
    double *row = NEW_ARRAY(s->arena, double, columns + 1);
    bool ok = true;
    for (int64_t at = 0; ok && at < e->elements; at += each) {
        ok = safe_read(&c->file, t, at, each, all, why);
        for (int64_t i = 0; ok && i < rows; i++) {
            for (int64_t k = 0; k < columns; k++)
                row[k] = all[k * rows + i];
            ok = put_numbers(s, e, at + i * columns, columns, row, why);
        }
    }
    return ok;
}

/* Copies a tensor of the file into `e`. */
static bool load_tensor(Session *s, const Checkpoint *c, Stored from, StoreEntry *e, double *piece, char why[WHY])
{
    const SafeTensor *t = from.tensor;
    if (!t) {
        snprintf(why, WHY, "%.250s has no tensor `%.150s`, which the model needs", c->file.path, e->name);
        return false;
    }
    if (!same_extents(t, e, from.transposed)) {
        char there[100], here[100];
        print_extents(there, sizeof there, t->rank, t->d);
        print_extents(here, sizeof here, e->rank, e->d);
        snprintf(why, WHY,
                 "`%.80s` has the shape %s, the model needs %s%s: the sizes of the model are not "
                 "those of the checkpoint %.80s",
                 t->name, there, here, from.transposed ? " with its axes swapped" : "", c->file.path);
        return false;
    }
    if (from.transposed)
        return load_transposed(s, c, t, e, why);
    for (int64_t at = 0; at < e->elements; at += PIECE) {
        int64_t n = e->elements - at < PIECE ? e->elements - at : PIECE;
        if (!safe_read(&c->file, t, at, n, piece, why) || !put_numbers(s, e, at, n, piece, why))
            return false;
    }
    return true;
}

bool checkpoint_is_state(const char *name)
{
    const char *which = strrchr(name, ':');
    for (size_t k = 0; which && k < COUNT_OF(state_names); k++)
        if (!strcmp(which + 1, state_names[k]))
            return true;
    return which && (!strncmp(which, ":born", 5) || !strncmp(which, ":since", 6));
}

/* The tensor of the file that a parameter gets: its average where that is wanted and there. */
static Stored source_of(Session *s, const Model *m, const Checkpoint *c, const StoreEntry *e, CheckpointPart part)
{
    Stored average = {0};
    if (part == CHECKPOINT_AVERAGE)
        average = find_stored(s, m, c, name_printf(s->ctx, "%s:average", e->name));
    return average.tensor ? average : find_stored(s, m, c, e->name);
}

bool checkpoint_has_average(const Checkpoint *c)
{
    for (size_t i = 0; i < c->file.n; i++) {
        const char *which = strrchr(c->file.tensor[i].name, ':');
        if (which && !strcmp(which, ":average"))
            return true;
    }
    return false;
}

/* A tensor that the model does not have; if one that it misses is like it, that may be its new name. */
static void report_unknown(const Checkpoint *c, const SafeTensor *t, const Entries *entries, const Stored *from,
                           char why[WHY])
{
    int n = snprintf(why, WHY, "the model has no tensor `%.80s` of the checkpoint %.150s", t->name, c->file.path);
    for (size_t i = 0; i < entries->n; i++)
        if (!from[i].tensor && entries->v[i]->kind != EXT_STATE && same_extents(t, entries->v[i], false)) {
            snprintf(why + n, WHY - (size_t)n,
                     "; it needs `%.60s` of the same shape: if a loop or a let was renamed, say "
                     "so with `names old { \"%.60s\" = %.60s }`",
                     entries->v[i]->name, t->name, entries->v[i]->name);
            return;
        }
}

bool checkpoint_load(Session *s, const Model *m, const Checkpoint *c, CheckpointPart part, char why[WHY])
{
    bool states = part == CHECKPOINT_ALL, ok = true;
    ArenaMark mark = arena_mark(s->arena);
    double *piece = NEW_ARRAY(s->arena, double, PIECE);
    Entries entries = {0};
    list_entries(s, m, s->arena, &entries);
    Stored *from = NEW_ARRAY(s->arena, Stored, entries.n + 1);
    Map used; /* tensors of the file under their present names: also those that stand behind an average */
    map_init(&used, s->arena);
    for (size_t i = 0; i < entries.n; i++) {
        from[i] = source_of(s, m, c, entries.v[i], part);
        const SafeTensor *plain = find_stored(s, m, c, entries.v[i]->name).tensor;
        if (plain)
            *map_at(&used, (uintptr_t)plain) = (void *)(uintptr_t)plain;
    }
    for (size_t i = 0; ok && i < c->file.n; i++) {
        const SafeTensor *t = &c->file.tensor[i];
        if (map_get(&used, (uintptr_t)t) || (!states && checkpoint_is_state(t->name)))
            continue;
        report_unknown(c, t, &entries, from, why);
        ok = false;
    }
    for (size_t i = 0; ok && i < entries.n; i++)
        if (states || entries.v[i]->kind != EXT_STATE)
            ok = load_tensor(s, c, from[i], entries.v[i], piece, why);
    arena_reset(s->arena, mark);
    return ok;
}
