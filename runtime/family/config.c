/* config.c - see family.h: config.json.
 *
 * The one idea: every member of the file is accounted for. What is no let of the family's text is in a list with the values that change
 * nothing; anything else may mean another model, and is refused with its name.
 */
#include "family.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/data/mapped.h"

typedef struct Reading {
    Session *s;
    const char *path;
    FamilyConfig config;
    bool scaled; /* frequencies of positions are those of Llama 3.1 */
} Reading;

static const char *json_words(const Reading *r, const Json *j)
{
    switch (j->kind) {
    case JSON_NULL: return "null";
    case JSON_FALSE: return "false";
    case JSON_TRUE: return "true";
    case JSON_NUMBER:
        return j->whole ? arena_printf(r->s->arena, "%lld", (long long)j->integer)
                        : arena_printf(r->s->arena, "%.17g", j->number);
    case JSON_STRING: return arena_printf(r->s->arena, "\"%.80s\"", j->s);
    case JSON_ARRAY: return "a list";
    default: return "an object";
    }
}

static _Noreturn void refuse_key(const Reading *r, const Json *j, const char *what)
{
    ctx_raise(r->s->ctx, ST_INPUT, "%.200s: byte %zu: `%.60s` is %s: %s", r->path, j->offset, j->key, json_words(r, j),
              what);
}

/* Whether a value is one of the list's. Of an array each is. */
static bool is_listed(const Json *j, const char *values)
{
    char word[64];
    if (j->kind == JSON_ARRAY) {
        for (const Json *k = j->first; k; k = k->next)
            if (k->kind == JSON_ARRAY || !is_listed(k, values))
                return false;
        return true;
    }
    if (j->kind == JSON_NUMBER)
        snprintf(word, sizeof word, "%g", j->number);
    else if (j->kind == JSON_STRING)
        snprintf(word, sizeof word, "%.60s", j->s);
    else
        snprintf(word, sizeof word, "%s", j->kind == JSON_TRUE ? "true" : j->kind == JSON_FALSE ? "false" : "null");
    const size_t n = strlen(word);
    for (const char *v = values; (v = strstr(v, word)); v++)
        if ((v == values || v[-1] == ' ') && (!v[n] || v[n] == ' '))
            return true;
    return false;
}

static const char *right_side(const Reading *r, const FamilyKey *k, const Json *j)
{
    Arena *a = r->s->arena;
    switch (k->kind) {
    case KEY_COUNT:
    case KEY_WINDOW:
    case KEY_LAYERS:
        if (j->kind != JSON_NUMBER || !j->whole || j->integer < 1 || j->integer > (int64_t)1 << 40)
            refuse_key(r, j, "a count is needed");
        return arena_printf(a, "%lld", (long long)j->integer);
    case KEY_REAL:
    case KEY_LET:
    case KEY_STD:
        if (j->kind != JSON_NUMBER || !isfinite(j->number) || j->number < 0)
            refuse_key(r, j, "a number is needed");
        return family_number(a, j->number);
    case KEY_FUNCTION: {
        const char *own = j->kind == JSON_STRING ? family_function(j->s) : NULL;
        if (!own)
            refuse_key(r, j, "vwn has no such activation");
        return own;
    }
    default:
        if (j->kind != JSON_TRUE && j->kind != JSON_FALSE)
            refuse_key(r, j, "true or false is needed");
        return j->kind == JSON_TRUE ? "true" : "false";
    }
}

static void read_member(Reading *r, const Json *j);

/* Values that other files have at the top: {"rope_theta": 10000.0, "rope_type": "default"}. */
static bool read_inner(Reading *r, const Json *j)
{
    if (strcmp(j->key, "rope_parameters") && strcmp(j->key, "rope_scaling"))
        return false;
    if (j->kind != JSON_OBJECT)
        refuse_key(r, j, "an object is needed");
    for (const Json *k = j->first; k; k = k->next)
        read_member(r, k);
    return true;
}

static void read_member(Reading *r, const Json *j)
{
    const Family *f = r->config.family;
    if (strlen(j->key) != j->key_n)
        ctx_raise(r->s->ctx, ST_INPUT, "%.300s: byte %zu: a name that holds a NUL", r->path, j->key_at);
    for (size_t i = 0; i < f->n_key; i++)
        if (!strcmp(f->key[i].key, j->key) || (f->key[i].newer && !strcmp(f->key[i].newer, j->key))) {
            if (j->kind == JSON_NULL && f->key[i].kind != KEY_WINDOW) /* not given */
                return;
            const char *v = j->kind == JSON_NULL ? "0" : right_side(r, &f->key[i], j);
            if (r->config.value[i] && strcmp(v, r->config.value[i]))
                refuse_key(r, j, "the file has another value of it, too");
            r->config.value[i] = v;
            return;
        }
    if (j->kind == JSON_NULL || read_inner(r, j))
        return;
    const FixedKey *fixed = family_fixed(f, j->key);
    if (!fixed)
        refuse_key(
            r, j,
            arena_printf(r->s->arena, "vwn does not know this key of %s, which may make it another model", f->type));
    if (!strcmp(fixed->values, "*") || is_listed(j, fixed->values)) {
        r->scaled |= j->kind == JSON_STRING && !strcmp(j->s, "llama3");
        return;
    }
    if (!fixed->training)
        refuse_key(r, j, arena_printf(r->s->arena, "of %s vwn reads %s alone", f->type, fixed->values));
    session_warn(r->s,
                 arena_printf(r->s->arena, "%.200s: `%.60s` is %s, which matters to training alone: it is left out",
                              r->path, j->key, json_words(r, j)));
}

static const Family *read_type(const Reading *r, const Json *all)
{
    const char *type = json_string(all, "model_type");
    const Json *j = json_get(all, "model_type"), *made = json_get(all, "architectures");
    const Family *f = type ? family_of(type) : NULL;
    if (!j)
        ctx_raise(r->s->ctx, ST_INPUT, "%.300s: there is no `model_type`: it is no config.json of a model", r->path);
    if (!f)
        refuse_key(r, j, arena_printf(r->s->arena, "vwn has no such family; it has %s", family_names(r->s->arena)));
    bool fits = !made || made->kind == JSON_NULL;
    for (const Json *k = made && made->kind == JSON_ARRAY ? made->first : NULL; k; k = k->next)
        fits |= k->kind == JSON_STRING && !strcmp(k->s, f->architecture);
    if (!fits)
        refuse_key(r, made, arena_printf(r->s->arena, "of %s vwn has %s alone", f->type, f->architecture));
    return f;
}

FamilyConfig family_config(Session *s, const char *path)
{
    Reading r = {.s = s, .path = path};
    Mapped text;
    JsonError e;
    mapped_open(s, &text, path);
    Json *all = json_read(s->arena, (const char *)text.map, text.bytes, &e);
    if (!all)
        ctx_raise(s->ctx, ST_INPUT, "%.300s: byte %zu: %s", path, e.offset, e.what);
    if (all->kind != JSON_OBJECT)
        ctx_raise(s->ctx, ST_INPUT, "%.300s: it is no object", path);
    json_make_plain(s->arena, all);
    r.config.family = read_type(&r, all);
    r.config.value = NEW_ARRAY(s->arena, const char *, r.config.family->n_key + 1);
    for (const Json *j = all->first; j; j = j->next)
        read_member(&r, j);
    for (size_t i = 0; i < r.config.family->n_key; i++)
        if (r.config.family->key[i].kind == KEY_LET && r.config.value[i] && !r.scaled)
            ctx_raise(s->ctx, ST_INPUT, "%.300s: `%s` is given without the `rope_type` that it is of, \"llama3\"", path,
                      r.config.family->key[i].key);
    return r.config;
}
