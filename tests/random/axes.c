/* axes.c - see generate.h: what a file's text lets a sweep vary, and sweeps over some of it.
 *
 * The one idea: every `name = value` of a text has a path, which the braces around it say, and the value
 * says which others of its kind there are.
 */
#include "generate.h"

#include "compiler/front/attribute.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct Scan {
    Arena *arena;
    const char *s;
    VEC(Axis) axis;
} Scan;

/* From i to the character, of those in `ends`, that stands outside of brackets, and of braces where `{` is none of them. */
static size_t until(const char *s, size_t i, const char *ends)
{
    const char *opens = *ends == '=' ? "([" : "([{", *closes = *ends == '=' ? ")]" : ")]}";
    for (int depth = 0; s[i]; i++) {
        if (s[i] == '"')
            for (i++; s[i] && s[i] != '"'; i++)
                i += s[i] == '\\' && s[i + 1];
        if (!s[i] || (depth == 0 && strchr(ends, s[i])))
            return i;
        depth += strchr(opens, s[i]) != NULL;
        depth -= strchr(closes, s[i]) != NULL;
    }
    return i;
}

static char *word_at(Scan *c, size_t *i)
{
    while (c->s[*i] == ' ')
        ++*i;
    size_t from = *i;
    while (isalnum((unsigned char)c->s[*i]) || c->s[*i] == '_')
        ++*i;
    return arena_copy(c->arena, c->s + from, *i - from);
}

static bool is_in(const char *word, const char *const *list)
{
    while (*list && strcmp(*list, word))
        list++;
    return *list != NULL;
}

/* The path below which the items of a node stand, NULL where they have none; *node is its name in the table of
 * attributes, or the block's. */
static const char *below(Scan *c, size_t i, const char *path, const char **node)
{
    static const char *const none[] = {"block", "check", "grow",     "names", "sweep",
                                       "if",    "else",  "parallel", "layer", NULL};
    static const char *const part[] = {"eval", "checkpoint", "log", "adamw", NULL};
    const char *kind = word_at(c, &i), *label = word_at(c, &i);
    const char *dot = path && *path ? "." : "";
    *node = kind;
    if (!path || is_in(kind, none))
        return NULL;
    if (!strcmp(kind, "model") || !strcmp(kind, "train"))
        return kind;
    if (!strcmp(kind, "optimizer") || !strcmp(kind, "group")) {
        *node = *kind == 'o' ? label : kind;
        return !*label ? NULL : *kind == 'o' ? "train.optimizer" : arena_printf(c->arena, "%s.group.%s", path, label);
    }
    if (is_in(kind, part))
        return arena_printf(c->arena, "%s.%s", path, kind);
    path = strcmp(path, "model") == 0 ? "" : path, dot = *path ? "." : "";
    if (!strcmp(kind, "for"))
        return arena_printf(c->arena, "%s%s%s[*]", path, dot, label);
    *node = "";
    return arena_printf(c->arena, *label ? "%s%s%s.%s" : "%s%s%s", path, dot, kind, label);
}

static void add_axis(Scan *c, const char *path, const char *node, const char *name, size_t from, size_t to)
{
    while (to > from && isspace((unsigned char)c->s[to - 1]))
        to--;
    Axis a = {.node = node, .name = name, .value = arena_copy(c->arena, c->s + from, to - from), .at = {from, to}};
    a.path = *path ? arena_printf(c->arena, "%s.%s", path, name) : name;
    vec_push(c->arena, &c->axis, a);
}

/* Items up to the brace that closes them; the place behind it. */
static size_t items(Scan *c, size_t i, const char *path, const char *node)
{
    for (;;) {
        while (c->s[i] && strchr(" \n,;", c->s[i]))
            i++;
        if (!c->s[i] || c->s[i] == '}')
            return i + (c->s[i] == '}');
        size_t end = until(c->s, i, "={}\n,;"), at = i;
        if (c->s[end] == '{') {
            const char *inner, *to = below(c, i, path, &inner);
            i = items(c, end + 1, to, inner);
        } else if (c->s[end] == '=') {
            const char *name = word_at(c, &at);
            bool let = strcmp(name, "let") == 0, plain = c->s[at] == ' ' && c->s[at + 1] == '=';
            name = let ? word_at(c, &at) : name;
            i = until(c->s, end + 1, "}\n,;");
            if (path && (let ? !*path : plain && *path && strchr(path, '{') == NULL))
                add_axis(c, path, node, name, end + 1 + (c->s[end + 1] == ' '), i);
        } else {
            i = end + (c->s[end] && c->s[end] != '}');
        }
    }
}

size_t text_axes(Arena *arena, const char *text, Axis **out)
{
    Scan c = {.arena = arena, .s = text};
    items(&c, 0, "", "let");
    *out = c.axis.v;
    return c.axis.n;
}

/* ---- other values ---- */

const char *axis_other(Writer *w, Arena *arena, const Axis *a)
{
    static const char *const of[][3] = {
        {"activation", "silu", "relu"},
        {"scores", "softmax", "sigmoid"},
        {"init", "normal(std = 0.1)", "uniform(low = -0.1, high = 0.2)"},
        {"out_init", "zeros", "normal(std = 0.2)"},
        {"pre_norm", "none", "rms_norm(eps = 1e-2)"},
        {"out_norm", "none", "layer_norm(eps = 1e-2)"},
        {"norm", "layer_norm(eps = 1e-2)", "rms_norm(eps = 1e-2)"},
        {"mask", "causal", "full"},
        {"connection_per", "layer", "sublayer"},
        {"precision", "fp32", "mixed(compute = bf16, master = fp32)"},
        {"lr", "0.001", "cosine(peak = 0.01, floor = 0.001, warmup = 1 steps)"},
        {"average", "none", "ema(decay = 0.5)"},
        {"recompute", "[]", "[layer]"},
        {"decay", "coupled", "decoupled"},
        {"update", "adamw", "muon"},
        {"betas", "[0.5, 0.9]", "[0, 0.5]"},
        {"coefficients", "[3, -3.2, 1.2]", "[2, -1.5, 0.5]"},
        {"start_from", "none", "none"},
    };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (strcmp(of[i][0], a->name) == 0)
            return of[i][1 + roll(w, 2)];
    if (strcmp(a->value, "true") == 0 || strcmp(a->value, "false") == 0)
        return *a->value == 't' ? "false" : "true";
    char *end;
    double x = strtod(a->value, &end);
    if (end == a->value || (*end && *end != ' ' && *end != '%'))
        return NULL;
    return arena_printf(arena, "%g%s", x == (int)x ? (one_in(w, 3) ? x + 1 : 2 * x) : x / 2, end);
}

/* ---- sweeps ---- */

static bool is_let(const Axis *a) { return strcmp(a->node, "let") == 0; }

/* Whether a value names a let of its file, which the file of a sweep does not see. */
static bool names_let(const char *value, const Axis *axis, size_t n)
{
    for (const char *at = value; *at;) {
        size_t size = 0;
        while (isalnum((unsigned char)at[size]) || at[size] == '_')
            size++;
        for (size_t i = 0; i < n && size; i++)
            if (is_let(&axis[i]) && strlen(axis[i].name) == size && !strncmp(axis[i].name, at, size))
                return true;
        at += size + !size;
    }
    return false;
}

/* Of a value that is the name of a let, as `width = D`: the number that this let is, or NULL. */
static const char *number_of_let(const char *value, const Axis *axis, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (is_let(&axis[i]) && !strcmp(axis[i].name, value) && isdigit((unsigned char)*axis[i].value))
            return axis[i].value;
    return NULL;
}

/* The first row of the table of attributes, from this one on, that the text has: each row has its turn. */
static const Axis *of_table(const Axis *axis, size_t n, size_t from)
{
    for (size_t r = 0; r < attribute_count(); r++) {
        const AttributeRow *row = attribute_at((from + r) % attribute_count());
        for (size_t i = 0; i < n; i++)
            if (!strcmp(axis[i].node, row->node) && !strcmp(axis[i].name, row->name))
                return &axis[i];
    }
    return &axis[0];
}

char *generate_sweep(Arena *arena, uint64_t seed, const char *text, const char *of, size_t *n, Axis varied[AXES_MOST])
{
    Writer w = {.b = buf_new(arena), .state = (seed + 3) * 0x9e3779b97f4a7c15u};
    Axis *axis;
    size_t all = text_axes(arena, text, &axis), most = 1 + roll(&w, AXES_MOST), points = 1;
    size_t row = roll(&w, (uint32_t)attribute_count());
    *n = 0;
    buf_printf(&w.b,
               "edition = 1\nimport \"std/transformer\"\nimport \"std/connections\"\nimport \"std/growable\"\n"
               "import \"std/vision\"\nimport \"%s\" as made\n\nsweep sizes {\n  of = made\n  vary {\n",
               of);
    for (size_t k = 0; k < 90 && *n < most && all; k++) {
        bool next = k < 2; /* the table's; then mostly others of it */
        const Axis *a = next ? of_table(axis, all, row + k * attribute_count() / 2) : &axis[roll(&w, (uint32_t)all)];
        bool taken = !next && k < 60 && (*a->node == 0 || is_let(a)) != (k % 20 > 15);
        for (size_t i = 0; i < *n; i++)
            taken = taken || strcmp(varied[i].path, a->path) == 0;
        const char *other = taken || points > 2 ? NULL : axis_other(&w, arena, a);
        bool alone = names_let(a->value, axis, all);
        if (alone && !taken && !other)
            other = number_of_let(a->value, axis, all);
        if (taken || ((is_let(a) || alone) && !other))
            continue;
        varied[(*n)++] = *a;
        points *= other && !alone ? 2 : 1;
        buf_printf(&w.b, "    %s = [%s%s%s]\n", a->path, alone ? "" : a->value, other && !alone ? ", " : "",
                   other ? other : "");
    }
    if (*n == 0)
        return NULL;
    buf_puts(&w.b, "  }\n");
    if (one_in(&w, 3) && points < 8)
        buf_puts(&w.b, "  seeds = [1, 2]\n");
    if (one_in(&w, 3))
        buf_puts(&w.b, "  order = interleaved\n");
    if (one_in(&w, 3))
        buf_puts(&w.b, "  until = 2 steps\n");
    buf_puts(&w.b, "}\n");
    return w.b.s;
}
