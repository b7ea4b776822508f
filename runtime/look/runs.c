/* runs.c - `vwn runs`: all runs below a folder as a table, and what one of them remembers.
 *
 * In:  a folder.   Out: a table, or an object a line.
 * The one idea: a row is what the run's own files say, read one run after the other; which settings are shown is decided
 * when all are known: those whose values differ.
 */
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include <sys/stat.h>

#include "compiler/report/report.h"
#include "run_state.h"
#include "runtime/checkpoint/record.h"
#include "runtime/checkpoint/run_list.h"
#include "runtime/checkpoint/settings.h"
#include "runtime/checkpoint/source.h"
#include "look.h"

typedef struct RunRow {
    const char *path, *name, *state, *date; /* name: from the folder on */
    double step, steps, tokens, flops, seconds, loss, eval_loss, bits, weights;
    size_t points, waiting; /* of a sweep */
    bool sweep;
    Labels labels;
    SettingList setting;
    SettingNames shown;       /* settings that differ between runs of its model */
    VEC(const char *) record; /* lines of JSON */
    const char *about;        /* the last record in words, or "" */
} RunRow;

typedef struct Runs {
    Session session; /* of one run at a time */
    Arena *arena;    /* rows */
    Ctx *ctx;
    vwn_context *owner;
    const vwn_runs_options *how;
    const vwn_writer *out;
    VEC(RunRow) row;
    size_t at;   /* the row that is read */
    Name model;  /* "model" */
    bool models; /* they are of several */
} Runs;

/* ---- reading ---- */

static const char *keep(Runs *r, const char *text) { return arena_copy(r->arena, text, strlen(text)); }

static const char *text_of(const Json *j, const char *key)
{
    const char *s = json_string(j, key);
    return s ? s : "";
}

static double number_of(const Json *j, const char *key)
{
    const Json *v = json_get(j, key);
    return v && v->kind == JSON_NUMBER ? v->number : NAN;
}

/* "on vm (AMD EPYC), cpu, 2 threads; vwn 0.1.0 (85996752b3f5ce43); commit 37806e73 with changes" */
static const char *about_text(Runs *r, const Json *j)
{
    Buf b = buf_new(r->arena);
    const char *commit = text_of(j, "commit");
    const Json *dirty = json_get(j, "dirty");
    buf_printf(&b, "%s from step %.0f, on %s (%s), %s, %.0f threads; vwn %s (%s)", text_of(j, "date"),
               number_of(j, "step"), text_of(j, "host"), text_of(j, "processor"), text_of(j, "device"),
               number_of(j, "threads"), text_of(j, "vwn"), text_of(j, "build"));
    if (*commit)
        buf_printf(&b, "; commit %.12s%s", commit,
                   !dirty                     ? ""
                   : dirty->kind == JSON_TRUE ? " with changes"
                                              : ", unchanged");
    const Json *kept = json_get(j, "kept"), *reads = json_get(j, "reads");
    const char *file = text_of(j, "file"), *hash = text_of(j, "sha256");
    buf_printf(&b, "; %s%s%.12s%s\n", *file && strcmp(file, "-") != 0 ? file : "a text that had no name",
               *hash ? ", sha256 " : "", hash, kept ? " (the run's copy)" : "");
    for (const Json *f = reads && reads->kind == JSON_ARRAY ? reads->first : NULL; f; f = f->next)
        buf_printf(&b, "    reads %s, sha256 %.12s\n", text_of(f, "file"), text_of(f, "sha256"));
    buf_printf(&b, "    in %s:", text_of(j, "folder"));
    const Json *words = json_get(j, "command");
    for (const Json *w = words && words->kind == JSON_ARRAY ? words->first : NULL; w; w = w->next) {
        bool bare = w->kind == JSON_STRING && *w->s && !w->s[strcspn(w->s, " \t'\"\\$&;<>|*?()[]{}#~")];
        if (w->kind == JSON_STRING)
            buf_printf(&b, bare ? " %s" : strchr(w->s, '\'') ? " \"%s\"" : " '%s'", w->s);
    }
    return b.s;
}

static void take_records(Runs *r, RunRow *row)
{
    Records all = records_read(&r->session, row->path);
    Buf about = buf_new(r->arena);
    for (size_t i = 0; i < all.n; i++) {
        if (!i)
            row->date = keep(r, text_of(all.v[i].json, "date"));
        buf_printf(&about, "  %s\n", about_text(r, all.v[i].json));
        vec_push(r->arena, &row->record, keep(r, all.v[i].line));
    }
    row->about = about.s;
}

/* Of a run without a record, when its events were last written. */
static const char *date_of_file(Runs *r, const char *path)
{
    struct stat st;
    struct tm at;
    char text[32];
    if (stat(arena_printf(r->session.arena, "%s/events.jsonl", path), &st))
        return "";
    gmtime_r(&st.st_mtime, &at);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &at);
    return keep(r, text);
}

static void read_run(Runs *r, RunRow *row)
{
    RunState s = run_state_read(&r->session, row->path);
    row->state = run_phase_names[s.phase];
    row->step = s.last.x[BY_STEP];
    row->steps = s.steps;
    row->tokens = s.last.x[BY_TOKENS];
    row->flops = s.last.x[BY_FLOPS];
    row->seconds = s.last.x[BY_SECONDS];
    row->loss = run_curve_last(&s, CURVE_LOSS);
    row->eval_loss = run_curve_last(&s, CURVE_EVAL);
    row->bits = run_curve_last(&s, CURVE_BITS);
    row->weights = s.weights;
    take_records(r, row);
    if (!*row->date)
        row->date = date_of_file(r, row->path);
    row->setting = settings_read(&r->session, r->arena, row->path);
}

static void read_sweep(Runs *r, RunRow *row)
{
    ListedSweep s = sweep_list(&r->session, row->path);
    row->points = s.point.n;
    row->waiting = s.waiting;
    row->state = run_is_held(&r->session, row->path) ? "running" : s.waiting ? "stopped" : "done";
}

static Status row_body(void *user)
{
    Runs *r = user;
    RunRow *row = &r->row.v[r->at];
    session_open(&r->session, r->owner);
    Labels said = labels_read(&r->session, row->path);
    for (size_t i = 0; i < said.tag.n; i++)
        vec_push(r->arena, &row->labels.tag, keep(r, said.tag.v[i]));
    row->labels.note = keep(r, said.note);
    row->sweep ? read_sweep(r, row) : read_run(r, row);
    return ST_OK;
}

/* What cannot be read is a row without numbers. */
static void read_row(Runs *r, size_t i)
{
    r->at = i;
    r->session = (Session){.owner = r->owner};
    ArenaMark mark = arena_mark(r->ctx->scratch);
    Status st = session_end(&r->session, guarded(r->ctx, row_body, r));
    arena_reset(r->ctx->scratch, mark);
    if (st == ST_BUG || r->ctx->at_limit)
        ctx_raise_again(r->ctx);
    if (st != ST_OK)
        r->row.v[i].state = "unreadable";
}

typedef struct Listing {
    Runs *r;
    Session session;
} Listing;

static Status list_body(void *user)
{
    Listing *l = user;
    Runs *r = l->r;
    session_open(&l->session, r->owner);
    const char *folder = r->how->folder ? r->how->folder : "runs";
    RunList list = run_list(&l->session, folder);
    for (size_t i = 0; i < list.n; i++) {
        const char *path = keep(r, list.v[i].path);
        size_t n = strlen(folder);
        while (n > 1 && folder[n - 1] == '/')
            n--;
        bool inner = strlen(path) > n + 1 && strcmp(folder, "/");
        RunRow row = {.path = path,
                      .name = inner ? path + n + 1 : run_name(r->arena, path),
                      .sweep = list.v[i].sweep,
                      .state = "",
                      .date = "",
                      .about = "",
                      .labels.note = "",
                      .step = NAN,
                      .steps = NAN,
                      .tokens = NAN,
                      .flops = NAN,
                      .seconds = NAN,
                      .loss = NAN,
                      .eval_loss = NAN,
                      .bits = NAN,
                      .weights = NAN};
        vec_push(r->arena, &r->row, row);
    }
    return ST_OK;
}

/* ---- a value by its name ---- */

static const struct {
    const char *name;
    size_t number, text; /* offsets; 0: none. No number and no text is the first member */
} columns[] = {
    {"state", 0, offsetof(RunRow, state)},         {"date", 0, offsetof(RunRow, date)},
    {"name", 0, offsetof(RunRow, name)},           {"step", offsetof(RunRow, step), 0},
    {"tokens", offsetof(RunRow, tokens), 0},       {"flops", offsetof(RunRow, flops), 0},
    {"time", offsetof(RunRow, seconds), 0},        {"loss", offsetof(RunRow, loss), 0},
    {"eval_loss", offsetof(RunRow, eval_loss), 0}, {"bits_per_byte", offsetof(RunRow, bits), 0},
    {"weights", offsetof(RunRow, weights), 0},     {"run", 0, offsetof(RunRow, name)}, /* as the table calls them */
    {"eval", offsetof(RunRow, eval_loss), 0},      {"started", 0, offsetof(RunRow, date)}};
static const char column_names[] =
    "name, state, date, step, tokens, flops, time, loss, eval_loss, bits_per_byte, weights, tag, note";

/* Text of a column or a setting: ""; a number, where it is one. False: there is no such name in this row. */
static bool value_of(Runs *r, const RunRow *row, const char *name, const char **text, double *number)
{
    *text = "";
    *number = NAN;
    for (size_t i = 0; i < COUNT_OF(columns); i++) {
        if (strcmp(columns[i].name, name))
            continue;
        if (columns[i].number) {
            *number = *(const double *)((const char *)row + columns[i].number);
            *text = isfinite(*number) ? arena_printf(r->arena, "%.17g", *number) : "";
        } else {
            *text = *(const char *const *)((const char *)row + columns[i].text);
        }
        return true;
    }
    if (!strcmp(name, "note")) {
        *text = row->labels.note;
        return true;
    }
    const char *v = settings_get(&row->setting, name_str(r->ctx, name));
    char *end = NULL;
    if (!v)
        return false;
    *text = v;
    double x = strtod(v, &end);
    *number = *v && !*end ? x : NAN;
    return true;
}

/* "did you mean `layer[*].attention.heads`, " where a setting's path ends so; else "" */
static const char *meant(Runs *r, const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < r->row.n && n; i++)
        for (size_t k = 0; k < r->row.v[i].setting.n; k++) {
            const char *path = r->row.v[i].setting.v[k].name;
            size_t m = strlen(path);
            if (m > n && path[m - n - 1] == '.' && !strcmp(path + m - n, name))
                return arena_printf(r->arena, "; did you mean `%.100s`?", path);
        }
    return "";
}

static bool known_name(Runs *r, const char *name)
{
    const char *text;
    double number;
    bool found = !strcmp(name, "tag");
    for (size_t i = 0; i < r->row.n && !found; i++)
        found = value_of(r, &r->row.v[i], name, &text, &number);
    return found;
}

/* ---- filters ---- */

typedef enum Relation { IS_NOT, AT_MOST, AT_LEAST, IS, BELOW, ABOVE, HAS, RELATIONS } Relation;
static const char *const relation_text[RELATIONS] = {"!=", "<=", ">=", "=", "<", ">", "~"};
typedef struct Condition {
    const char *name, *value;
    Relation is;
} Condition;

/* A word where a column has numbers, and a state that no run has and none could have. */
static void refuse_value(Runs *r, const Condition *c, const char *text)
{
    char *end;
    strtod(c->value, &end);
    bool number = *c->value && !*end, known = strcmp(c->name, "state") != 0 || c->is == HAS || !r->row.n;
    for (size_t i = 0; i < COUNT_OF(columns); i++)
        if (!strcmp(columns[i].name, c->name) && columns[i].number && !number && c->is != HAS)
            ctx_raise(r->ctx, ST_USAGE, "`--filter %.100s`: `%s` is a number, as in `--filter '%s<2'`", text, c->name,
                      c->name);
    Buf all = buf_new(r->arena);
    for (int k = 0; k < RUN_PHASES; k++) {
        known |= !strcmp(run_phase_names[k], c->value);
        buf_printf(&all, "%s%s", k ? ", " : "", run_phase_names[k]);
    }
    for (size_t i = 0; i < r->row.n; i++)
        known |= !strcmp(r->row.v[i].state, c->value);
    if (!known)
        ctx_raise(r->ctx, ST_USAGE, "`--filter %.100s`: a state is one of %s", text, all.s);
}

static Condition condition_of(Runs *r, const char *text)
{
    size_t n = strcspn(text, "=<>!~");
    Condition c = {.is = RELATIONS};
    for (int k = 0; k < RELATIONS && c.is == RELATIONS; k++)
        if (n && !strncmp(text + n, relation_text[k], strlen(relation_text[k])))
            c = (Condition){arena_copy(r->arena, text, n), text + n + strlen(relation_text[k]), (Relation)k};
    if (c.is == RELATIONS)
        ctx_raise(r->ctx, ST_USAGE,
                  "`--filter %.100s`: write NAME, one of = != < <= > >= ~, and a value, as in `--filter 'eval_loss<2'`",
                  text);
    if (!known_name(r, c.name) && r->row.n)
        ctx_raise(r->ctx, ST_USAGE, "`--filter %.100s`: no run has a setting `%.60s`, and it is none of %s%s", text,
                  c.name, column_names, meant(r, c.name));
    refuse_value(r, &c, text);
    return c;
}

static bool holds(const Condition *c, const char *text, double number)
{
    char *end;
    double x = strtod(c->value, &end);
    bool numbers = *c->value && !*end && isfinite(number);
    switch (c->is) {
    case IS: return numbers ? number == x : !strcmp(text, c->value);
    case IS_NOT: return numbers ? number != x : strcmp(text, c->value) != 0;
    case HAS: return strstr(text, c->value) != NULL;
    case BELOW: return numbers ? number < x : !*end ? false : *text && strcmp(text, c->value) < 0;
    case AT_MOST: return numbers ? number <= x : !*end ? false : *text && strcmp(text, c->value) <= 0;
    case ABOVE: return numbers ? number > x : !*end ? false : *text && strcmp(text, c->value) > 0;
    case AT_LEAST: return numbers ? number >= x : !*end ? false : *text && strcmp(text, c->value) >= 0;
    case RELATIONS: break;
    }
    return false;
}

static bool passes(Runs *r, const RunRow *row, const Condition *c)
{
    const char *text = "";
    double number = NAN;
    if (strcmp(c->name, "tag")) {
        value_of(r, row, c->name, &text, &number);
        return holds(c, text, number);
    }
    bool any = false;
    for (size_t i = 0; i < row->labels.tag.n; i++)
        any |= c->is == HAS ? strstr(row->labels.tag.v[i], c->value) != NULL : !strcmp(row->labels.tag.v[i], c->value);
    return c->is == IS_NOT ? !any : any;
}

static void filter(Runs *r)
{
    for (size_t k = 0; k < r->how->n_filter; k++) {
        Condition c = condition_of(r, r->how->filter[k]);
        size_t n = 0;
        for (size_t i = 0; i < r->row.n; i++)
            if (passes(r, &r->row.v[i], &c))
                r->row.v[n++] = r->row.v[i];
        r->row.n = n;
    }
}

/* ---- order ---- */

typedef struct Keyed {
    const char *text;
    double number;
    size_t at, place; /* place: the order of equal ones */
} Keyed;

/* Numbers, then texts, then what has neither; equal ones as they were. */
static int by_key(const void *x, const void *y)
{
    const Keyed *a = x, *b = y;
    int ka = isfinite(a->number) ? 0
             : *a->text          ? 1
                                 : 2,
        kb = isfinite(b->number) ? 0
             : *b->text          ? 1
                                 : 2,
        order = ka - kb;
    if (!order && !ka)
        order = (a->number > b->number) - (a->number < b->number);
    else if (!order)
        order = strcmp(a->text, b->text);
    return order ? order : (a->place > b->place) - (a->place < b->place);
}

static void sort(Runs *r)
{
    const char *by = r->how->sort;
    size_t n = r->row.n, known = 0;
    if (!by || !n)
        return;
    if (*by == '-')
        ctx_raise(r->ctx, ST_USAGE, "`--sort %.60s`: the greatest first is `--sort %.60s --reverse`", by, by + 1);
    if (!known_name(r, by) || !strcmp(by, "tag"))
        ctx_raise(r->ctx, ST_USAGE,
                  "`--sort %.60s`: no run has such a setting, and it is no column with an order: %s%s", by,
                  column_names, meant(r, by));
    Keyed *key = NEW_ARRAY(r->arena, Keyed, n);
    RunRow *was = NEW_ARRAY(r->arena, RunRow, n);
    for (size_t i = 0; i < n; i++) {
        value_of(r, &r->row.v[i], by, &key[i].text, &key[i].number);
        key[i].at = i;
        key[i].place = r->how->reverse ? n - i : i;
        was[i] = r->row.v[i];
        known += isfinite(key[i].number) || *key[i].text;
    }
    qsort(key, n, sizeof *key, by_key);
    for (size_t i = 0; i < n; i++) /* what has no value stays last */
        r->row.v[i] = was[key[r->how->reverse && i < known ? known - 1 - i : i].at];
}

/* ---- settings that differ ---- */

static bool same_model(const Runs *r, size_t i, size_t j)
{
    const char *x = settings_get(&r->row.v[i].setting, r->model), *y = settings_get(&r->row.v[j].setting, r->model);
    return x && y ? !strcmp(x, y) : x == y;
}

/* Of each row those that differ between runs of its model: another model's say nothing about it. */
static void choose_settings(Runs *r)
{
    const SettingList **l = NEW_ARRAY(r->arena, const SettingList *, r->row.n + 1);
    r->model = name_str(r->ctx, "model");
    for (size_t i = 0; i < r->row.n; i++) {
        size_t first = 0, n = 0, models = 0;
        while (!same_model(r, first, i))
            first++;
        for (size_t j = i; first == i && j < r->row.n; j++) {
            if (same_model(r, i, j))
                l[n++] = &r->row.v[j].setting;
            models += r->row.v[j].setting.n && r->row.v[i].setting.n && !same_model(r, i, j);
        }
        r->models |= models > 0;
        r->row.v[i].shown = first == i ? settings_differing(r->arena, l, n) : r->row.v[first].shown;
    }
}

/* ---- what is printed ---- */

static const char *cut(Arena *a, const char *text, size_t most)
{
    size_t n = strlen(text);
    while (most < n && ((unsigned char)text[most] & 0xc0) == 0x80)
        most++;
    return n <= most ? text : arena_printf(a, "%.*s...", (int)most, text);
}

/* As many as a line has room for. */
static const char *settings_text(Runs *r, const RunRow *row)
{
    enum { ROOM = 120, VALUE = 24 };
    Buf b = buf_new(r->arena);
    const char *model = r->models ? settings_get(&row->setting, r->model) : NULL;
    size_t left = 0;
    if (model)
        buf_printf(&b, "model=%s", model);
    for (size_t i = 0; i < row->shown.n; i++) {
        const char *v = settings_get(&row->setting, row->shown.v[i]);
        if (v && b.n < ROOM)
            buf_printf(&b, "%s%s=%s", b.n ? " " : "", row->shown.v[i], cut(r->arena, v, VALUE));
        else
            left += v != NULL;
    }
    if (left)
        buf_printf(&b, " and %zu more", left);
    return b.s;
}

static const char *tags_text(Runs *r, const RunRow *row)
{
    Buf b = buf_new(r->arena);
    for (size_t i = 0; i < row->labels.tag.n; i++)
        buf_printf(&b, "%s%s", b.n ? "," : "", row->labels.tag.v[i]);
    if (*row->labels.note)
        buf_printf(&b, "%s\"%s\"", b.n ? " " : "", cut(r->arena, row->labels.note, 40));
    return b.s;
}

static const char *loss_text(Arena *a, double x) { return isfinite(x) ? arena_printf(a, "%.4f", x) : "-"; }

/* "2026-11-28 08:04" */
static const char *date_text(Arena *a, const char *date)
{
    return strlen(date) < 16 ? "-" : arena_printf(a, "%.10s %.5s", date, date + 11);
}

/* What some runs have, and the others not. */
typedef struct RunColumns {
    bool bits, labelled;
} RunColumns;

static void print_row(Runs *r, Table *t, const RunRow *row, RunColumns some)
{
    Arena *a = r->arena;
    table_text(t, row->sweep ? arena_printf(a, "%s/", row->name) : row->name);
    table_text(t, row->sweep ? arena_printf(a, "sweep, %s", row->state) : row->state);
    table_text(t, row->sweep ? "" : date_text(a, row->date));
    table_right(t, row->sweep ? arena_printf(a, "%zu of %zu points", row->points - row->waiting, row->points)
                   : isfinite(row->step) && isfinite(row->steps) ? arena_printf(a, "%.0f/%.0f", row->step, row->steps)
                                                                 : "-");
    table_right(t, row->sweep ? "" : loss_text(a, row->loss));
    table_right(t, row->sweep ? "" : loss_text(a, row->eval_loss));
    if (some.bits)
        table_right(t, row->sweep ? "" : loss_text(a, row->bits));
    if (isfinite(row->weights))
        table_count(t, (int64_t)row->weights);
    else
        table_right(t, row->sweep ? "" : "-");
    table_right(t, row->sweep ? "" : isfinite(row->seconds) ? duration_text(a, row->seconds) : "-");
    table_text(t, settings_text(r, row));
    if (some.labelled)
        table_text(t, tags_text(r, row));
}

static void print_table(Runs *r, Buf *b)
{
    enum { BITS = 6, SETTINGS = 9, TAGS };
    static const char *const head[] = {"run",       "state",     "started (UTC)", "step", "loss",
                                       "eval",      "bits/byte", "weights",       "time", "settings that differ",
                                       "tags, note"};
    RunColumns some = {false, false};
    bool differ = r->models;
    for (size_t i = 0; i < r->row.n; i++) {
        some.bits |= isfinite(r->row.v[i].bits);
        some.labelled |= r->row.v[i].labels.tag.n || *r->row.v[i].labels.note;
        differ |= r->row.v[i].shown.n > 0;
    }
    Table t = {.arena = r->arena, .columns = COUNT_OF(head) - !some.bits - !some.labelled};
    if (!r->row.n) {
        buf_printf(b, "no runs%s in %s\n", r->how->n_filter ? " that pass" : "",
                   r->how->folder ? r->how->folder : "runs");
        return;
    }
    for (size_t i = 0; i < COUNT_OF(head); i++)
        if ((i != BITS || some.bits) && (i != TAGS || some.labelled))
            i >= 3 && i < SETTINGS ? table_right(&t, head[i]) : table_text(&t, i == SETTINGS && !differ ? "" : head[i]);
    for (size_t i = 0; i < r->row.n; i++)
        print_row(r, &t, &r->row.v[i], some);
    table_print(b, &t);
    if (r->row.n == 1 && *r->row.v[0].about)
        buf_printf(b, "\nstarted\n%s", r->row.v[0].about);
    if (r->row.n == 1 && *r->row.v[0].labels.note)
        buf_printf(b, "\nnote\n  %s\n", r->row.v[0].labels.note);
}

static void put_text(Buf *b, const char *key, const char *text)
{
    buf_printf(b, ",\"%s\":", key);
    buf_json_string(b, text, strlen(text));
}

/* The n-th of a row's settings; how many more there are: 1, or 0 where the row has none of that name. */
static size_t put_setting(Buf *b, const RunRow *row, Name name, size_t n)
{
    const char *v = settings_get(&row->setting, name);
    if (!v)
        return 0;
    buf_puts(b, n ? "," : "");
    buf_json_string(b, name, strlen(name));
    buf_putc(b, ':');
    buf_json_string(b, v, strlen(v));
    return 1;
}

static void print_json(Runs *r, Buf *b)
{
    for (size_t i = 0; i < r->row.n; i++) {
        const RunRow *row = &r->row.v[i];
        buf_printf(b, "{\"v\":1,\"event\":\"%s\"", row->sweep ? "sweep" : "run");
        put_text(b, "name", row->name);
        put_text(b, "path", row->path);
        put_text(b, "state", row->state);
        const struct {
            const char *key;
            double v;
        } of[] = {{"step", row->step},           {"steps", row->steps},        {"tokens", row->tokens},
                  {"flops", row->flops},         {"seconds", row->seconds},    {"loss", row->loss},
                  {"eval_loss", row->eval_loss}, {"bits_per_byte", row->bits}, {"weights", row->weights}};
        if (!row->sweep)
            put_text(b, "date", row->date);
        else
            buf_printf(b, ",\"points\":%zu,\"waiting\":%zu", row->points, row->waiting);
        for (size_t k = 0; k < COUNT_OF(of) && !row->sweep; k++) {
            buf_printf(b, ",\"%s\":", of[k].key);
            buf_json_number(b, of[k].v);
        }
        buf_puts(b, ",\"tags\":[");
        for (size_t k = 0; k < row->labels.tag.n; k++) {
            buf_puts(b, k ? "," : "");
            buf_json_string(b, row->labels.tag.v[k], strlen(row->labels.tag.v[k]));
        }
        buf_putc(b, ']');
        put_text(b, "note", row->labels.note);
        buf_puts(b, ",\"settings\":{");
        size_t n = 0;
        if (r->models)
            n += put_setting(b, row, r->model, n);
        for (size_t k = 0; k < row->shown.n; k++)
            n += put_setting(b, row, row->shown.v[k], n);
        buf_puts(b, "},\"records\":[");
        for (size_t k = 0; k < row->record.n; k++)
            buf_printf(b, "%s%s", k ? "," : "", row->record.v[k]);
        buf_puts(b, "]}\n");
    }
}

static Status runs_body(void *user)
{
    Runs *r = user;
    Listing l = {.r = r, .session.owner = r->owner};
    r->arena = arena_new(r->ctx);
    Status st = session_end(&l.session, guarded(r->ctx, list_body, &l));
    if (st != ST_OK)
        return st;
    for (size_t i = 0; i < r->row.n; i++)
        read_row(r, i);
    filter(r);
    sort(r);
    choose_settings(r);
    Buf b = buf_new(r->arena);
    r->how->json ? print_json(r, &b) : print_table(r, &b);
    write_text(r->out, b.s, b.n);
    return ST_OK;
}

Status runs_list(vwn_context *owner, const vwn_runs_options *how, const vwn_writer *out)
{
    Runs r = {.owner = owner, .ctx = owner->ctx, .how = how, .out = out};
    Status st = guarded(owner->ctx, runs_body, &r);
    if (r.arena)
        arena_free(r.arena);
    return st;
}

/* ---- runs of a sweep ---- */

typedef struct Each {
    Session session;
    const char *const *operand;
    size_t n;
    void (*use)(void *user, const char *run);
    void *user;
} Each;

static Status each_body(void *user)
{
    Each *e = user;
    session_open(&e->session, e->session.owner);
    RunPaths all = run_paths(&e->session, e->operand, e->n);
    for (size_t i = 0; i < all.n; i++)
        e->use(e->user, all.v[i]);
    return ST_OK;
}

Status runs_each(vwn_context *owner, const char *const *operand, size_t n, void (*use)(void *user, const char *run),
                 void *user)
{
    Each e = {.session.owner = owner, .operand = operand, .n = n, .use = use, .user = user};
    return session_end(&e.session, guarded(owner->ctx, each_body, &e));
}

/* ---- tags and notes ---- */

typedef struct Labelling {
    Session session;
    const vwn_label_options *how;
    const vwn_writer *out;
} Labelling;

static bool has_tag(const Labels *l, const char *tag)
{
    for (size_t i = 0; i < l->tag.n; i++)
        if (!strcmp(l->tag.v[i], tag))
            return true;
    return false;
}

static Labels with_tags(Session *s, const vwn_label_options *how, const Labels *was)
{
    Labels now = {.note = was->note};
    for (size_t i = 0; i < was->tag.n; i++) {
        bool gone = false;
        for (size_t k = 0; k < how->n_tags && how->remove; k++)
            gone |= !strcmp(how->tag[k], was->tag.v[i]);
        if (!gone)
            vec_push(s->arena, &now.tag, was->tag.v[i]);
    }
    for (size_t k = 0; k < how->n_tags && !how->remove; k++) {
        const char *tag = how->tag[k];
        if (!*tag || tag[strcspn(tag, ", \t\n\"")])
            ctx_raise(s->ctx, ST_USAGE, "`%.100s` is no tag: a tag is one word, without commas, blanks and quotes",
                      tag);
        if (!has_tag(&now, tag))
            vec_push(s->arena, &now.tag, tag);
    }
    return now;
}

static Status label_body(void *user)
{
    Labelling *l = user;
    Session *s = &l->session;
    session_open(s, s->owner);
    if (!run_is_sweep(s, l->how->folder))
        run_want(s, l->how->folder);
    Labels was = labels_read(s, l->how->folder), now = was;
    if (l->how->tag)
        now = with_tags(s, l->how, &was);
    if (l->how->note)
        now.note = l->how->note;
    if (l->how->tag || l->how->note)
        labels_write(s, l->how->folder, &now);
    Buf b = buf_new(s->arena);
    if (l->how->json) {
        buf_puts(&b, "{\"v\":1,\"event\":\"labels\"");
        put_text(&b, "run", l->how->folder);
        buf_puts(&b, ",\"tags\":[");
        for (size_t i = 0; i < now.tag.n; i++) {
            buf_puts(&b, i ? "," : "");
            buf_json_string(&b, now.tag.v[i], strlen(now.tag.v[i]));
        }
        buf_putc(&b, ']');
        put_text(&b, "note", now.note);
        buf_puts(&b, "}\n");
    } else {
        buf_printf(&b, "%s:", l->how->folder);
        for (size_t i = 0; i < now.tag.n; i++)
            buf_printf(&b, " %s", now.tag.v[i]);
        buf_printf(&b, *now.note ? " \"%s\"\n" : "%s\n", now.note);
    }
    write_text(l->out, b.s, b.n);
    return ST_OK;
}

Status runs_label(vwn_context *owner, const vwn_label_options *how, const vwn_writer *out)
{
    Labelling l = {.session.owner = owner, .how = how, .out = out};
    return session_end(&l.session, guarded(owner->ctx, label_body, &l));
}
