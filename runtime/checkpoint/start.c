/* start.c - see start.h. */
#include "start.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "named.h"
#include "runtime/data/mapped.h"

const char *const fate_name[FATES] = {"taken", "grown", "cut", "new", "left"};

/* ---- what is there ---- */

static void close_file(void *f) { safe_close(f); }

static void open_file(Session *s, SafeFile *f, const char *path)
{
    char why[WHY];
    *f = (SafeFile){.fd = -1};
    session_defer(s, close_file, f);
    const char *format;
    if (!safe_open(arena_region(s->arena), path, f, why) || !safe_text(f, "format", &format, why))
        ctx_raise(s->ctx, ST_ENVIRONMENT, "%s", why);
    bool own = format && !strncmp(format, "vwn checkpoint", 14);
    if (own && !safe_verify(f, true, why))
        ctx_raise(s->ctx, ST_ENVIRONMENT, "%s", why);
}

/* {"weight_map": {"name": "model-00001-of-00002.safetensors", ...}} */
static const Json *read_map(Session *s, const Start *start)
{
    Mapped text;
    JsonError e;
    mapped_open(s, &text, start->path);
    const Json *all = json_read(s->arena, (const char *)text.map, text.bytes, &e);
    const Json *map = all && all->kind == JSON_OBJECT ? json_get(all, "weight_map") : NULL;
    if (!map || map->kind != JSON_OBJECT || !map->n)
        ctx_raise(s->ctx, ST_INPUT, "%.300s: %s", start->path,
                  all ? "there is no `weight_map`: it is no index of shards" : e.what);
    for (const Json *j = map->first; j; j = j->next)
        if (j->kind != JSON_STRING)
            ctx_raise(s->ctx, ST_INPUT, "%.300s: byte %zu: not the name of a file", start->path, j->offset);
    return map;
}

/* Where a name of the map lies that is not in the shard given there: in the one other that has it, or nowhere. */
static SafeFile *lies_in(const Start *start, const char *name)
{
    SafeFile *in = NULL;
    for (size_t i = 0; i < start->n_file; i++)
        if (safe_find(&start->file[i], name)) {
            if (in)
                return NULL;
            in = &start->file[i];
        }
    return in;
}

static void warn_misplaced(Session *s, const Start *start, const Json *first, size_t n)
{
    const char *more = n > 1 ? arena_printf(s->arena, " (and %zu more)", n - 1) : "";
    session_warn(
        s, arena_printf(s->arena,
                        "%.200s: `%.100s`%s is not in the shard that is named for it, %.150s: it is taken from the one "
                        "other that has it, if there is one",
                        start->path, first->key, more, first->s));
}

/* The map decides which shard a name is of: others may hold copies from before. */
static void open_shards(Session *s, Start *start)
{
    const Json *map = read_map(s, start), *astray = NULL;
    const char *slash = strrchr(start->path, '/');
    const char *folder = slash ? arena_copy(s->arena, start->path, (size_t)(slash - start->path)) : "";
    size_t n_astray = 0;
    Map opened;
    map_init(&opened, s->arena);
    start->shard = NEW(s->arena, Map);
    map_init(start->shard, s->arena);
    start->file = NEW_ARRAY(s->arena, SafeFile, map->n + 1);
    for (const Json *j = map->first; j; j = j->next) {
        Name path = name_str(s->ctx, mapped_path(s->arena, folder, j->s));
        void **f = map_at(&opened, (uintptr_t)path);
        if (!*f)
            open_file(s, *f = &start->file[start->n_file++], path);
        *map_at(start->shard, (uintptr_t)name_of(s->ctx, j->key, j->key_n)) = *f;
    }
    for (const Json *j = map->first; j; j = j->next) {
        void **f = map_at(start->shard, (uintptr_t)name_of(s->ctx, j->key, j->key_n));
        if (safe_find(*f, j->key))
            continue;
        *f = lies_in(start, j->key);
        astray = astray ? astray : j;
        n_astray++;
    }
    if (astray)
        warn_misplaced(s, start, astray, n_astray);
}

/* A file that is no file is said where it is written. */
static void want_file(Session *s, const Start *start)
{
    struct stat st;
    bool there = stat(start->path, &st) == 0;
    int why = there ? EISDIR : errno;
    if (there && !S_ISDIR(st.st_mode))
        return;
    Diag *d = diag_error(s->ctx, "E0106", start->spec->span, "", "cannot read %s: %s", start->path, strerror(why));
    diag_help(s->ctx, d, "a run is written `run(\"%s\")`, and a file of weights ends in .safetensors or .json",
              start->spec->path);
    ctx_raise(s->ctx, ST_ENVIRONMENT, NULL);
}

static void open_source(Session *s, Start *start, const Hooks *hooks)
{
    const StartSpec *spec = start->spec;
    start->path = mapped_path(s->arena, spec->folder, spec->path);
    size_t n = strlen(start->path);
    if (spec->kind == START_RUN) {
        Source from = source_open(s, start->path, true, hooks);
        start->checkpoint = from.checkpoint;
        start->unit = from.unit;
        start->path = from.checkpoint->file.path;
        start->file = &from.checkpoint->file;
        start->n_file = 1;
        start->average = !spec->last && checkpoint_has_average(from.checkpoint);
        return;
    }
    want_file(s, start);
    if (n > 5 && !strcmp(start->path + n - 5, ".json")) {
        open_shards(s, start);
    } else {
        start->file = NEW(s->arena, SafeFile);
        start->n_file = 1;
        open_file(s, start->file, start->path);
    }
}

/* ---- both sides beside each other ---- */

typedef struct Pairing {
    Session *s;
    Start *start;
    Map used;               /* tensors that the model has a place for */
    const GrowthPlan *plan; /* of a run: how axes grow */
} Pairing;

static const SafeTensor *find(Session *s, const Start *start, const char *name, const SafeFile **file)
{
    const SafeFile *in = start->shard ? map_get(start->shard, (uintptr_t)name_str(s->ctx, name)) : start->file;
    const SafeTensor *t = in ? safe_find(in, name) : NULL;
    if (t)
        *file = in;
    return t;
}

/* The tensor of this name, which has a place then; of a run its average. */
static const SafeTensor *find_under(Pairing *p, Name name, const SafeFile **file)
{
    const Start *start = p->start;
    const SafeTensor *plain = find(p->s, start, name, file);
    if (!plain)
        return NULL;
    *map_at(&p->used, (uintptr_t)plain) = (void *)(uintptr_t)plain;
    const SafeTensor *t = start->average ? find(p->s, start, name_printf(p->s->ctx, "%s:average", name), file) : NULL;
    return t ? t : plain;
}

/* A weight whose parts have names, or that lies in one tensor with others. */
static void find_parts(Pairing *p, StartEntry *e, size_t param)
{
    const Model *m = p->start->model;
    size_t most = 0, all = 1;
    for (size_t i = 0; i < m->alias.n; i++)
        most += m->alias.v[i].param == param && !alias_is_whole(&m->alias.v[i]);
    if (!most)
        return;
    StartPart *part = NEW_ARRAY(p->s->arena, StartPart, most);
    Map seen; /* indices of its first axis */
    map_init(&seen, p->s->arena);
    for (size_t i = 0; i < m->alias.n; i++) {
        const ModelAlias *a = &m->alias.v[i];
        StartPart one = {.alias = a};
        if (a->param != param || alias_is_whole(a) || map_get(&seen, (uintptr_t)a->entry + 2))
            continue;
        one.tensor = find_under(p, a->other, &one.file);
        if (a->entry >= 0)
            all = (size_t)e->param->shape.d[0].n;
        if (!one.tensor) {
            e->lacks = e->lacks ? e->lacks : a->other;
            continue;
        }
        *map_at(&seen, (uintptr_t)a->entry + 2) = e;
        part[e->n_part++] = one;
    }
    e->part = part;
    if (e->n_part == all)
        e->lacks = NULL;
    if (e->n_part) {
        e->tensor = part->tensor;
        e->file = part->file;
        e->transposed = part->alias->transposed;
        e->lacks = e->n_part < all && !e->lacks ? e->param->path : e->lacks;
    }
}

/* Under its path, or another name that a table has; a table may also say of the path itself how it lies there. What stands
 * beside it is used, too. */
static void find_tensor(Pairing *p, StartEntry *e, size_t param)
{
    const Model *m = p->start->model;
    e->tensor = find_under(p, e->param->path, &e->file);
    const bool found = e->tensor;
    for (size_t i = 0; i < m->alias.n; i++) {
        const ModelAlias *a = &m->alias.v[i];
        if (a->param != param || !alias_is_whole(a) ||
            (found ? a->other != e->param->path : !(e->tensor = find_under(p, a->other, &e->file))))
            continue;
        e->transposed = a->transposed;
        return;
    }
    if (!found)
        find_parts(p, e, param);
}

/* Axis k of the model as an axis of the tensor, and the reverse: the last two may be swapped. */
static int axis_there(const StartEntry *e, int k)
{
    const int rank = e->tensor->rank;
    return e->transposed && rank >= 2 && k >= rank - 2 ? 2 * rank - 3 - k : k;
}

/* Extent k of the tensor, in the order of the model's axes. */
static int64_t extent(const StartEntry *e, int k) { return e->tensor->d[axis_there(e, k)]; }

static void decide(Pairing *p, StartEntry *e)
{
    const Shape *s = &e->param->shape;
    e->fate = FATE_NEW;
    if (!e->tensor)
        return;
    e->fate = FATE_TAKEN;
    for (int k = 0; k < s->rank && !e->n_part && e->tensor->rank == s->rank; k++) {
        e->grows |= s->d[k].n > extent(e, k);
        if (s->d[k].n < extent(e, k))
            e->fate = FATE_CUT;
    }
    if (e->fate == FATE_TAKEN && e->grows)
        e->fate = FATE_GROWN;
    for (size_t i = 0; p->plan && e->fate == FATE_GROWN && i < p->plan->n; i++)
        if (p->plan->entry[i].after == e->param && p->plan->entry[i].kind == GROWTH_GROWN)
            e->axis = p->plan->entry[i].axis;
}

static void count_numbers(Start *start, const StartEntry *e)
{
    const Shape *s = &e->param->shape;
    int64_t both = e->tensor && e->tensor->rank == s->rank, had = e->tensor ? e->tensor->elements : 0;
    for (int k = 0; k < s->rank && both; k++)
        both *= s->d[k].n < extent(e, k) ? s->d[k].n : extent(e, k);
    if (e->n_part)
        both = had = e->param->elements;
    start->taken += both;
    start->drawn += e->param->elements - both;
    start->dropped += had - both;
}

static void pair(Session *s, Start *start)
{
    Pairing p = {.s = s, .start = start};
    const Model *m = start->model;
    size_t tensors = 0;
    map_init(&p.used, s->arena);
    for (size_t i = 0; i < start->n_file; i++)
        tensors += start->file[i].n;
    if (start->unit)
        p.plan = growth_plan(&(GrowStep){.before = start->unit->model, .after = m}, s->arena);
    if (p.plan && p.plan->crowded)
        ctx_raise(s->ctx, ST_INPUT, "what is new of `%s` stands in more than %d places", p.plan->crowded->path,
                  PARTS_MOST);
    start->entry = NEW_ARRAY(s->arena, StartEntry, m->param.n + tensors + 1);
    for (size_t i = 0; i < m->param.n; i++) {
        StartEntry *e = &start->entry[start->n++];
        e->param = &m->param.v[i];
        find_tensor(&p, e, i);
        decide(&p, e);
        count_numbers(start, e);
    }
    for (size_t i = 0; i < start->n_file; i++)
        for (size_t k = 0; k < start->file[i].n; k++) {
            const SafeTensor *t = &start->file[i].tensor[k];
            const SafeFile *of = NULL;
            if (map_get(&p.used, (uintptr_t)t) || checkpoint_is_state(t->name) ||
                find(s, start, t->name, &of) != t) /* a copy that the map does not mean */
                continue;
            start->entry[start->n++] = (StartEntry){.fate = FATE_LEFT, .file = &start->file[i], .tensor = t};
            start->dropped += t->elements;
        }
    for (size_t i = 0; i < start->n; i++)
        start->count[start->entry[i].fate]++;
}

/* ---- what is printed ---- */

const char *path_pattern(Arena *a, const char *path)
{
    Buf b = buf_new(a);
    for (; *path; path++) {
        buf_putc(&b, *path);
        if (*path != '[')
            continue;
        const char *end = strchr(path, ']');
        if (!end)
            continue;
        buf_puts(&b, "*]");
        path = end;
    }
    return b.s ? b.s : "";
}

static void print_extents(char out[100], int rank, const int64_t *d)
{
    int n = snprintf(out, 100, "[");
    for (int i = 0; i < rank && n < 80; i++)
        n += snprintf(out + n, (size_t)(100 - n), "%s%lld", i ? ", " : "", (long long)d[i]);
    snprintf(out + n, (size_t)(100 - n), "]");
}

void start_shapes(const StartEntry *e, char there[100], char here[100])
{
    int64_t d[MAX_RANK];
    *there = *here = '\0';
    if (e->tensor)
        print_extents(there, e->tensor->rank, e->tensor->d);
    for (int k = 0; e->param && k < e->param->shape.rank; k++)
        d[k] = e->param->shape.d[k].n;
    if (e->param)
        print_extents(here, e->param->shape.rank, d);
}

static const char *name_of_entry(const StartEntry *e) { return e->param ? e->param->path : e->tensor->name; }

static bool alike(const StartEntry *a, const StartEntry *b)
{
    char there[2][100], here[2][100];
    start_shapes(a, there[0], here[0]);
    start_shapes(b, there[1], here[1]);
    return a->fate == b->fate && !strcmp(there[0], there[1]) && !strcmp(here[0], here[1]);
}

StartRow *start_rows(const Start *start, Arena *a, size_t *n)
{
    StartRow *row = NEW_ARRAY(a, StartRow, start->n + 1);
    *n = 0;
    for (int fate = 0; fate < FATES; fate++) {
        size_t first = *n;
        for (size_t i = 0; i < start->n; i++) {
            const StartEntry *e = &start->entry[i];
            if ((int)e->fate != fate)
                continue;
            const char *path = path_pattern(a, name_of_entry(e));
            size_t k = first;
            while (k < *n && (strcmp(row[k].path, path) || !alike(row[k].first, e)))
                k++;
            if (k == *n)
                row[(*n)++] = (StartRow){e, path, 0};
            row[k].n++;
        }
    }
    return row;
}

/* ---- what the file must allow ---- */

static bool is_misfit(const StartEntry *e, bool *swapped)
{
    const Shape *s = &e->param->shape;
    const int r = s->rank;
    *swapped = r >= 2 && e->tensor->rank == r && s->d[r - 2].n != s->d[r - 1].n && extent(e, r - 2) == s->d[r - 1].n &&
               extent(e, r - 1) == s->d[r - 2].n;
    return *swapped || s->rank != e->tensor->rank;
}

static void refuse_misfit(Session *s, const Start *start, const StartEntry *e, bool swapped)
{
    char there[100], here[100];
    start_shapes(e, there, here);
    Diag *d = diag_error(s->ctx, "E0614", start->spec->span, "", "`%s` has %s in %s", e->param->path,
                         swapped ? "its axes swapped" : "another number of axes", start->path);
    diag_note(s->ctx, d, "`%s` there is %s%s, the model needs %s", e->tensor->name, there,
              e->transposed ? ", to be read with its axes swapped" : "", here);
    if (swapped && e->transposed)
        diag_help(s->ctx, d,
                  "leave `.T` out of its entry in `names`, or take it out of a table whose `layout` says so");
    else if (swapped)
        diag_help(s->ctx, d, "say so in a table: `names other { \"%s\" = %s.T }`", e->tensor->name, e->param->path);
}

/* Parts lie there exactly as the table says, and all of them. */
static void refuse_part(Session *s, const Start *start, const StartEntry *e)
{
    const Model *m = start->model;
    if (e->lacks) {
        Diag *d = diag_error(s->ctx, "E0614", start->spec->span, "", "a part of `%s` is not in %s", e->param->path,
                             start->path);
        diag_note(s->ctx, d, "there is `%s`, and nothing for `%s`", e->tensor->name, e->lacks);
        return;
    }
    for (size_t i = 0; i < e->n_part; i++) {
        const SafeTensor *t = e->part[i].tensor;
        char there[100], here[100];
        int64_t want[MAX_RANK];
        int rank = named_shape(m, e->part[i].alias, want);
        if (rank == t->rank && !memcmp(want, t->d, (size_t)rank * sizeof *want))
            continue;
        print_extents(there, t->rank, t->d);
        print_extents(here, rank, want);
        Diag *d = diag_error(s->ctx, "E0614", start->spec->span, "", "`%s` in %s is %s, and the table makes it %s",
                             t->name, start->path, there, here);
        diag_label(s->ctx, d, e->part[i].alias->span, "of what lies in it");
        diag_note(s->ctx, d, "`%s` or a part of it lies there", e->param->path);
        return;
    }
}

/* Whole numbers are those of quantized weights, which mean nothing without what stands elsewhere. */
static void refuse_type(Session *s, const Start *start, const StartEntry *e, const SafeTensor *t)
{
    Diag *d = diag_error(s->ctx, "E0614", start->spec->span, "", "`%s` is stored as %s in %s", e->param->path,
                         safe_type_name(t->type), start->path);
    diag_note(s->ctx, d, "weights are read from F64, F32, F16, BF16, F8_E4M3 and F8_E5M2; `%s` there is none of these",
              t->name);
    diag_help(s->ctx, d, "convert the file to one of them");
}

/* The tensor that numbers of 8 bits are multiplied by, as programs that quantize call it; NULL: none. */
static const char *scale_of(Session *s, const Start *start, const SafeTensor *t)
{
    static const char *const behind[] = {"_scale", "_scale_inv"};
    for (size_t k = 0; (t->type == SAFE_F8_E4M3 || t->type == SAFE_F8_E5M2) && k < COUNT_OF(behind); k++) {
        const char *name = arena_printf(s->arena, "%s%s", t->name, behind[k]);
        for (size_t i = 0; i < start->n_file; i++)
            if (safe_find(&start->file[i], name))
                return name;
    }
    return NULL;
}

static void refuse_scaled(Session *s, const Start *start, const StartEntry *e, const SafeTensor *t, const char *scale)
{
    Diag *d = diag_error(s->ctx, "E0614", start->spec->span, "", "`%s` is stored as %s with a scale in %s",
                         e->param->path, safe_type_name(t->type), start->path);
    diag_note(s->ctx, d, "`%s` there is to be multiplied by `%s`, which is not done", t->name, scale);
    diag_help(s->ctx, d, "convert the file to BF16");
}

/* What cannot be read of a weight at all; it files one message at most. */
static void refuse_weight(Session *s, const Start *start, const StartEntry *e)
{
    bool swapped = false;
    for (size_t i = 0; i < (e->n_part ? e->n_part : 1); i++) {
        const SafeTensor *t = e->n_part ? e->part[i].tensor : e->tensor;
        const char *scale = scale_of(s, start, t);
        if (t->type >= SAFE_FLOATS || scale) {
            if (t->type >= SAFE_FLOATS)
                refuse_type(s, start, e, t);
            else
                refuse_scaled(s, start, e, t, scale);
            return;
        }
    }
    if (e->n_part)
        refuse_part(s, start, e);
    else if (is_misfit(e, &swapped))
        refuse_misfit(s, start, e, swapped);
}

/* Those of one fate, up to some. */
static void refuse_fate(Session *s, const Start *start, StartFate fate, bool grows, size_t n, const char *what,
                        const char *word)
{
    enum { MOST = 6 };
    char there[100], here[100];
    size_t rows, said = 0;
    StartRow *row = start_rows(start, s->arena, &rows);
    Diag *d = diag_error(s->ctx, "E0614", start->spec->span, "", "%zu %s %s %s", n, n == 1 ? "tensor" : "tensors", what,
                         start->path);
    Buf b = buf_new(s->arena);
    for (size_t i = 0; i < rows; i++) {
        const StartEntry *e = row[i].first;
        bool kept = fate == FATE_NEW && e->param && e->param->buffer;
        if (kept || !(e->fate == fate || (grows && e->fate == FATE_CUT && e->grows)))
            continue;
        start_shapes(e, there, here);
        if (said++ < MOST)
            buf_printf(&b, "%s%s%s %s", said > 1 ? ", " : "", row[i].path,
                       row[i].n > 1 ? arena_printf(s->arena, " (%zu)", row[i].n) : "",
                       e->tensor && e->param ? arena_printf(s->arena, "%s there, %s in the model", there, here)
                       : e->param            ? here
                                             : there);
    }
    diag_note(s->ctx, d, "%s%s", b.s, said > MOST ? ", and others" : "");
    diag_help(s->ctx, d, "`%s` in `%s(...)` allows it", word, start->spec->kind == START_RUN ? "run" : "weights");
    if (fate == FATE_NEW && start->count[FATE_LEFT])
        diag_help(s->ctx, d, "or say how they are called there: `names other { \"%s\" = path }`",
                  start->entry[start->n - 1].tensor->name);
}

static void refuse(Session *s, const Start *start)
{
    const StartSpec *spec = start->spec;
    size_t fresh = 0, grown = 0, errors = diag_errors(s->ctx);
    if (start->count[FATE_NEW] + start->count[FATE_LEFT] == start->n) {
        Diag *d = diag_error(s->ctx, "E0614", spec->span, "", "no tensor of %s has the name of a weight of the model",
                             start->path);
        diag_note(s->ctx, d, "there: `%s`; in the model: `%s`",
                  start->count[FATE_LEFT] ? start->entry[start->n - 1].tensor->name : "nothing",
                  start->model->param.n ? start->model->param.v[0].path : "nothing");
        diag_help(s->ctx, d, "a table of the file says which is which: `names other { \"name there\" = path }`");
        ctx_raise(s->ctx, ST_INPUT, NULL);
    }
    for (size_t i = 0; i < start->n; i++) {
        const StartEntry *e = &start->entry[i];
        if (e->param && e->tensor)
            refuse_weight(s, start, e);
        if (diag_errors(s->ctx) > errors)
            ctx_raise(s->ctx, ST_INPUT, NULL);
        fresh +=
            e->fate == FATE_NEW && e->param && !e->param->buffer; /* a buffer is computed, nothing is drawn for it */
        grown += e->grows;
    }
    if (fresh && !spec->draw_new)
        refuse_fate(s, start, FATE_NEW, false, fresh, "of the model are not in", "new = draw");
    if (grown && !spec->draw_grown)
        refuse_fate(s, start, FATE_GROWN, true, grown, "of the model are larger than in", "grown = draw");
    if (start->count[FATE_CUT] && !spec->drop_cut)
        refuse_fate(s, start, FATE_CUT, false, start->count[FATE_CUT], "of the model would lose numbers of",
                    "cut = drop");
    if (start->count[FATE_LEFT] && !spec->drop_left)
        refuse_fate(s, start, FATE_LEFT, false, start->count[FATE_LEFT], "would be left behind of", "left = drop");
    if (diag_errors(s->ctx) > errors)
        ctx_raise(s->ctx, ST_INPUT, NULL);
}

Start *start_open(Session *s, const StartSpec *spec, const Model *m, const Hooks *hooks)
{
    Start *start = NEW(s->arena, Start);
    *start = (Start){.spec = spec, .model = m};
    open_source(s, start, hooks);
    pair(s, start);
    refuse(s, start);
    return start;
}

/* ---- into the store ---- */

/* Where an index of the model's axis k stands in the tensor; -1: nowhere. */
static int64_t place(const StartEntry *e, int k, int64_t at)
{
    if (!e->axis)
        return at < extent(e, k) ? at : -1;
    for (size_t i = 0; i < e->axis[k].n; i++) {
        const GrowthPart *p = &e->axis[k].part[i];
        if (at >= p->at && at < p->at + p->count)
            return p->from < 0 ? -1 : p->from + (at - p->at);
    }
    return -1;
}

/* Old numbers over drawn ones; both whole. */
static void lay(const StartEntry *e, const double *old, double *to)
{
    const Shape *s = &e->param->shape;
    int rank = s->rank;
    if (e->fate == FATE_TAKEN && !e->transposed) {
        memcpy(to, old, (size_t)e->param->elements * sizeof *to);
        return;
    }
    for (int64_t i = 0; i < e->param->elements; i++) {
        int64_t rest = i, at = 0, step = 1, from[MAX_RANK];
        bool there = true;
        for (int k = rank - 1; k >= 0; k--) {
            from[k] = place(e, k, rest % s->d[k].n);
            rest /= s->d[k].n;
            there &= from[k] >= 0;
        }
        for (int k = rank - 1; k >= 0 && there; k--) { /* the tensor's own order, innermost first */
            int axis = axis_there(e, k);
            at += from[axis] * step;
            step *= extent(e, axis);
        }
        if (there)
            to[i] = old[at];
    }
}

void start_load(Session *s, const Start *start)
{
    char why[WHY];
    for (size_t i = 0; i < start->n; i++) {
        const StartEntry *e = &start->entry[i];
        if (!e->param || !e->tensor)
            continue;
        ArenaMark mark = arena_mark(s->arena);
        StoreEntry *own = checkpoint_entry(s, e->param), *average = checkpoint_state(s, e->param, STATE_AVERAGE);
        double *value = NEW_ARRAY(s->arena, double, e->param->elements + 1);
        session_store_ok(s, store_get_f64(s->store, own, 0, e->param->elements, value));
        for (size_t k = 0; k < (e->n_part ? e->n_part : 1); k++) {
            const StartPart *part = e->n_part ? &e->part[k] : &(StartPart){NULL, e->file, e->tensor};
            ArenaMark each = arena_mark(s->arena);
            double *old = NEW_ARRAY(s->arena, double, part->tensor->elements + 1);
            if (!safe_read(part->file, part->tensor, 0, part->tensor->elements, old, why))
                ctx_raise(s->ctx, ST_ENVIRONMENT, "%s", why);
            if (part->alias)
                named_move(start->model, part->alias, value, old, false);
            else
                lay(e, old, value);
            arena_reset(s->arena, each);
        }
        session_store_ok(s, store_put_f64(s->store, own, 0, e->param->elements, value));
        if (average)
            session_store_ok(s, store_put_f64(s->store, average, 0, e->param->elements, value));
        arena_reset(s->arena, mark);
    }
}
