/* report.c - see report.h: the check report, losses, origins, and the tables they are made of.
 */
#include "compiler/model/decode.h"
#include "report.h"

#include <math.h>
#include <stdio.h>

/* ---- tables ---- */

void table_text(Table *t, const char *text) { vec_push(t->arena, &t->cell, (Cell){text, false}); }

void table_texts(Table *t, const char *const *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        table_text(t, text[i]);
}

void table_right(Table *t, const char *text) { vec_push(t->arena, &t->cell, (Cell){text, true}); }

void table_count(Table *t, int64_t n)
{
    Buf b = buf_new(t->arena);
    buf_count(&b, n);
    table_right(t, b.s);
}

void table_print(Buf *out, const Table *t)
{
    size_t *width = NEW_ARRAY(t->arena, size_t, t->columns);
    for (size_t i = 0; i < t->cell.n; i++) {
        size_t n = strlen(t->cell.v[i].text);
        if (n > width[i % t->columns])
            width[i % t->columns] = n;
    }
    for (size_t row = 0; row < t->cell.n; row += t->columns) {
        size_t start = out->n;
        for (size_t c = 0; c < t->columns; c++) {
            const Cell *cell = &t->cell.v[row + c];
            int w = (int)width[c];
            if (w == 0)
                continue;
            buf_printf(out, cell->right ? "  %*s" : "  %-*s", w, cell->text);
        }
        while (out->n > start && out->s[out->n - 1] == ' ')
            out->s[--out->n] = '\0';
        buf_putc(out, '\n');
    }
}

/* A file without one, whose checks ask for the models of others. */
static _Noreturn void no_model(const Unit *unit)
{
    for (size_t i = 0; i < unit->files.n; i++)
        if (strncmp(unit->files.v[i], "std/", 4))
            ctx_raise(unit->ctx, ST_INPUT, "%s has no model of its own; it imports %s", unit->path, unit->files.v[i]);
    ctx_raise(unit->ctx, ST_INPUT, "%s has no model", unit->path);
}

const Model *report_model(const Unit *unit)
{
    if (!unit->model)
        no_model(unit);
    return unit->model;
}

const char *bytes_text(Arena *arena, double bytes)
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    int u = 0;
    while (bytes >= 1023.95 && u < 5) {
        bytes /= 1024;
        u++;
    }
    return arena_printf(arena, u ? "%.1f %s" : "%.0f %s", bytes, unit[u]);
}

/* ---- the check report ---- */

static void json_place(Buf *out, Ctx *ctx, Span at)
{
    LineCol p = source_position(ctx, at.file, at.lo);
    buf_puts(out, ",\"file\":");
    const char *path = source_path(ctx, at.file);
    buf_json_string(out, path, strlen(path));
    buf_printf(out, ",\"line\":%u,\"column\":%u", p.line, p.column);
}

static void json_text(Buf *out, const char *key, const char *text)
{
    buf_printf(out, ",\"%s\":", key);
    text = text ? text : "";
    buf_json_string(out, text, strlen(text));
}

static bool is_std_path(const char *path) { return strncmp(path, "std/", 4) == 0; }

/* Other files than the one checked; `std` chooses which. */
static void put_files(Buf *out, const Unit *u, bool std, const char **separator)
{
    for (size_t i = 0; i < u->files.n; i++) {
        if (is_std_path(u->files.v[i]) != std)
            continue;
        buf_printf(out, "%s%s", *separator, u->files.v[i]);
        *separator = ", ";
    }
}

static bool may_look_ahead(const Unit *u, DecodeRefusal *where)
{
    return u->model && diag_only_checks(u->ctx, 0) && model_may_look_ahead(u->model, u->ctx->scratch, where);
}

static void put_order(Buf *out, const Unit *u)
{
    DecodeRefusal ahead;
    if (!may_look_ahead(u, &ahead))
        return;
    buf_printf(out,
               "%11s of tokens: at %s, %s; unless a mask hides them, predictions depend on later tokens, and `vwn "
               "sample` refuses\n",
               "order", decode_place(u->ctx, u->ctx->scratch, &ahead), ahead.why);
}

static void check_text(Buf *out, const Unit *u, size_t failed)
{
    static const char *const word[] = {"ok check", "FALSE check", "not checked"};
    Arena *arena = u->ctx->scratch;
    const char *separator = " (+ ";
    buf_printf(out, "%11s %s", "Checking", u->path);
    put_files(out, u, false, &separator);
    put_files(out, u, true, &separator);
    buf_puts(out, strcmp(separator, ", ") == 0 ? ")\n" : "\n");
    int width = 0;
    for (size_t i = 0; i < u->check.n; i++) {
        int n = (int)strlen(u->check.v[i].text) + (int)strlen(u->check.v[i].where);
        width = n > width && n <= 56 ? n : width;
    }
    for (size_t i = 0; i < u->check.n; i++) {
        const CheckResult *c = &u->check.v[i];
        const char *text = *c->where ? arena_printf(arena, "%s: %s", c->where, c->text) : c->text;
        buf_printf(out, "%17s %-*s", word[c->state], width + 2, text);
        if (c->values && *c->values)
            buf_printf(out, "  %s", c->values);
        buf_putc(out, '\n');
    }
    for (size_t i = 0; i < u->grow.n; i++) {
        const GrowStep *g = &u->grow.v[i];
        buf_printf(out, "%11s %s", "grow", g->name);
        if (g->before && g->after) {
            buf_puts(out, ": ");
            buf_count(out, model_count(g->before).live);
            buf_puts(out, " -> ");
            buf_count(out, model_count(g->after).live);
            buf_puts(out, " weights");
        }
        buf_putc(out, '\n');
    }
    for (size_t i = 0; i < u->sweep.n; i++) {
        const SweepPlan *p = &u->sweep.v[i];
        buf_printf(out, "%11s %s: %zu points over %zu ax%cs", "sweep", p->name, p->n, p->n_axis,
                   p->n_axis == 1 ? 'i' : 'e');
        if (p->n != p->configs)
            buf_printf(out, ", %zu settings", p->configs);
        if (p->skipped)
            buf_printf(out, ", %zu skipped", p->skipped);
        if (p->repeated)
            buf_printf(out, ", %zu drawn again", p->repeated);
        buf_putc(out, '\n');
    }
    put_order(out, u);
    for (size_t i = 0; i < u->disabled.n; i++)
        buf_printf(out, "%11s %s\n", "off", u->disabled.v[i]);
    size_t warnings = diag_warnings(u->ctx), errors = diag_errors(u->ctx);
    errors = errors > failed ? errors - failed : 0; /* false checks are told apart */
    buf_printf(out, "%11s %zu %s, ", "Finished", u->check.n, u->check.n == 1 ? "check" : "checks");
    if (failed)
        buf_printf(out, "%zu false, ", failed);
    if (errors)
        buf_printf(out, "%zu %s, ", errors, errors == 1 ? "error" : "errors");
    buf_printf(out, "%zu %s\n", warnings, warnings == 1 ? "warning" : "warnings");
}

static void check_json(Buf *out, const Unit *u, size_t failed)
{
    static const char *const word[] = {"true", "false", "not checked"};
    for (size_t i = 0; i < u->check.n; i++) {
        const CheckResult *c = &u->check.v[i];
        buf_printf(out, "{\"v\":1,\"event\":\"check\",\"state\":\"%s\"", word[c->state]);
        json_place(out, u->ctx, c->span);
        json_text(out, "text", c->text);
        json_text(out, "values", c->values);
        json_text(out, "where", c->where);
        buf_puts(out, "}\n");
    }
    buf_puts(out, "{\"v\":1,\"event\":\"checked\"");
    json_text(out, "file", u->path);
    size_t errors = diag_errors(u->ctx);
    buf_printf(out, ",\"checks\":%zu,\"false\":%zu,\"errors\":%zu,\"warnings\":%zu,\"read\":[", u->check.n, failed,
               errors > failed ? errors - failed : 0, diag_warnings(u->ctx));
    for (size_t i = 0; i < u->files.n; i++) {
        buf_puts(out, i ? "," : "");
        buf_json_string(out, u->files.v[i], strlen(u->files.v[i]));
    }
    DecodeRefusal ahead;
    buf_puts(out, "]");
    json_text(out, "may_read_later", may_look_ahead(u, &ahead) ? ahead.why : NULL);
    buf_puts(out, ",\"off\":[");
    for (size_t i = 0; i < u->disabled.n; i++) {
        buf_puts(out, i ? "," : "");
        buf_json_string(out, u->disabled.v[i], strlen(u->disabled.v[i]));
    }
    buf_puts(out, "]}\n");
}

void report_check(Buf *out, const Unit *unit, bool json)
{
    size_t failed = 0;
    for (size_t i = 0; i < unit->check.n; i++)
        failed += unit->check.v[i].state == CHECK_FALSE;
    if (json)
        check_json(out, unit, failed);
    else
        check_text(out, unit, failed);
}

/* ---- losses ---- */

void report_losses(Buf *out, const Unit *unit, bool json)
{
    const Model *m = report_model(unit);
    Table t = {.arena = unit->ctx->scratch, .columns = 3};
    if (json) {
        buf_puts(out, "{\"v\":1,\"event\":\"losses\"");
        json_text(out, "model", m->name);
        buf_puts(out, ",\"losses\":[");
    }
    bool first = true;
    for (size_t i = 0; i < m->loss.n; i++) {
        const ModelLoss *loss = &m->loss.v[i];
        size_t times = 0, before = 0;
        for (size_t k = 0; k < m->loss.n; k++) {
            bool same = m->loss.v[k].name == loss->name && m->loss.v[k].trained == loss->trained;
            times += same;
            before += same && k < i;
        }
        if (before)
            continue;
        if (json) {
            buf_puts(out, first ? "{\"name\":" : ",{\"name\":");
            buf_json_string(out, loss->name, strlen(loss->name));
            buf_printf(out, ",\"trained\":%s,\"instances\":%zu}", loss->trained ? "true" : "false", times);
        } else {
            table_text(&t, loss->name);
            table_text(&t, loss->trained ? "trained" : "metric");
            table_text(&t, times > 1 ? arena_printf(t.arena, "mean of %zu places", times) : "");
        }
        first = false;
    }
    if (json)
        buf_puts(out, "]}\n");
    else
        table_print(out, &t);
}

/* ---- origins ---- */

void report_origins(Buf *out, const Unit *unit, bool json)
{
    Table t = {.arena = unit->ctx->scratch, .columns = 3};
    for (size_t i = 0; i < unit->let.n; i++) {
        const LetInfo *let = &unit->let.v[i];
        if (json) {
            buf_puts(out, "{\"v\":1,\"event\":\"let\"");
            json_text(out, "name", let->name);
            json_text(out, "value", let->text);
            json_text(out, "origin", let->origin);
            buf_puts(out, "}\n");
        } else {
            table_text(&t, let->name);
            table_text(&t, arena_printf(t.arena, "= %s", let->text));
            table_text(&t, let->origin);
        }
    }
    if (!json)
        table_print(out, &t);
}
