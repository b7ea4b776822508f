/* report_params.c - `vwn params`: the weights of a model, summed up in five ways.
 *
 * In:  Model.param.   Out: rows of path, weights, share and a remark; groups; the totals.
 * The one idea: a way of summing up is a function from a parameter's path to the name of its
 * row.
 */
#include "compiler/model/cost.h"
#include "report.h"

#include <stdio.h>

typedef struct Row {
    Name path, group;
    int64_t stored, dead;
    int64_t tensors;
    int64_t places;      /* different places that fell into this row: layers, connections */
    const Param *single; /* its only tensor */
    Map place;
} Row;
typedef struct Rows {
    VEC(Row *) row;
} Rows;

/* The first `depth` parts of a path. */
static Name path_head(Ctx *ctx, const char *path, int depth)
{
    size_t n = 0;
    while (path[n] && (path[n] != '.' || --depth > 0))
        n++;
    return name_of(ctx, path, n);
}

/* "layer[3].attention.connection" of a parameter inside a connection, else NULL. */
static const char *connection_end(const char *path)
{
    const char *c = strstr(path, "connection");
    if (!c || (c != path && c[-1] != '.') || (c[10] && c[10] != '.'))
        return NULL;
    return c + 10;
}

static Row *row_named(Ctx *ctx, Rows *rows, Name path)
{
    for (size_t i = 0; i < rows->row.n; i++)
        if (rows->row.v[i]->path == path)
            return rows->row.v[i];
    Row *row = NEW(ctx->scratch, Row);
    row->path = path;
    map_init(&row->place, ctx->scratch);
    vec_push(ctx->scratch, &rows->row, row);
    return row;
}

/* The row that a parameter counts in, and the place inside it. */
static Name row_of(Ctx *ctx, const Param *p, ReportBy by, Name *place)
{
    const char *connection = connection_end(p->path);
    *place = path_head(ctx, p->path, 2);
    switch (by) {
    case BY_SUMMARY:
        if (connection) {
            *place = name_of(ctx, p->path, (size_t)(connection - p->path));
            return name_str(ctx, "connection");
        }
        return cost_path(ctx, p->path, 2);
    case BY_LAYER: return path_head(ctx, p->path, 1);
    case BY_NODE: return path_head(ctx, p->path, 2);
    case BY_GROUP: return p->group;
    case BY_TENSOR: break;
    }
    return p->path;
}

static Rows rows_by(Ctx *ctx, const Model *m, ReportBy by)
{
    Rows rows = {0};
    for (size_t i = 0; i < m->param.n; i++) {
        const Param *p = &m->param.v[i];
        Name place;
        if (p->buffer)
            continue;
        Row *row = row_named(ctx, &rows, row_of(ctx, p, by, &place));
        void **seen = map_at(&row->place, (uintptr_t)place);
        row->places += *seen == NULL;
        *seen = row;
        row->stored += p->elements;
        row->dead += p->dead;
        row->tensors++;
        row->single = row->tensors == 1 ? p : NULL;
        row->group = p->group;
    }
    return rows;
}

static const char *shape_text(Arena *arena, const Param *p)
{
    Buf b = buf_new(arena);
    for (int i = 0; i < p->shape.rank; i++) {
        buf_puts(&b, i ? " x " : "");
        dim_print(&b, p->shape.d[i]);
    }
    return p->shape.rank ? b.s : "scalar";
}

/* What stands behind a row's numbers. */
static const char *remark(Arena *arena, const Row *row, ReportBy by)
{
    if (by == BY_TENSOR)
        return arena_printf(arena, "%s  %s%s", row->group, shape_text(arena, row->single),
                            row->single->frozen ? "  frozen" : "");
    if (row->single)
        return shape_text(arena, row->single);
    if (by == BY_SUMMARY && row->places > 1)
        return arena_printf(arena, "%lld %s", (long long)row->places,
                            strncmp(row->path, "layer", 5) == 0 ? "layers" : "places");
    return arena_printf(arena, "%lld tensors", (long long)row->tensors);
}

static void flops_text(Buf *out, double flops)
{
    static const char *const unit[] = {"", "k", "M", "G", "T"};
    int u = 0;
    while (flops >= 999.5 && u < 4) {
        flops /= 1000;
        u++;
    }
    buf_printf(out, flops < 9.995 ? "%.2f %sFLOP" : flops < 99.95 ? "%.1f %sFLOP" : "%.0f %sFLOP", flops, unit[u]);
}

static void title(Buf *out, const Model *m, const ModelCount *count)
{
    buf_printf(out, "%s  ", m->name);
    buf_count(out, count->live);
    if (m->width > 0 && m->state_width != m->width && m->state_width > 0)
        buf_printf(out, "   state width %lld (%.4g x %lld),", (long long)m->state_width,
                   (double)m->state_width / (double)m->width, (long long)m->width);
    else if (m->state_width > 0)
        buf_printf(out, "   state width %lld,", (long long)m->state_width);
    else
        buf_puts(out, "  ");
    buf_putc(out, ' ');
    flops_text(out, model_flops_per_token(m));
    buf_printf(out, "/token forward at context %lld\n", (long long)m->context);
    buf_puts(out, "  stored ");
    buf_count(out, count->stored);
    buf_puts(out, "   live ");
    buf_count(out, count->live);
    buf_puts(out, "   dead ");
    buf_count(out, count->dead);
    if (count->active != count->stored) {
        buf_puts(out, "   active per token ");
        buf_count(out, count->active);
    }
    if (count->buffers) {
        buf_puts(out, "   buffers ");
        buf_count(out, count->buffers);
    }
    buf_putc(out, '\n');
}

static void params_text(Buf *out, const Unit *u, const Rows *rows, const Rows *groups, ReportBy by)
{
    const Model *m = u->model;
    Arena *arena = u->ctx->scratch;
    ModelCount count = model_count(m);
    title(out, m, &count);
    Table t = {.arena = arena, .columns = 5};
    for (size_t i = 0; i < rows->row.n; i++) {
        const Row *row = rows->row.v[i];
        double share = count.stored ? 100.0 * (double)row->stored / (double)count.stored : 0;
        table_text(&t, row->path);
        table_count(&t, row->stored);
        vec_push(arena, &t.cell, (Cell){arena_printf(arena, "%.1f %%", share), true});
        table_text(&t, remark(arena, row, by));
        Buf dead = buf_new(arena);
        if (row->dead) {
            buf_puts(&dead, "dead ");
            buf_count(&dead, row->dead);
        }
        table_text(&t, dead.s);
    }
    table_print(out, &t);
    if (by == BY_GROUP)
        return;
    buf_puts(out, "groups");
    for (size_t i = 0; i < groups->row.n; i++) {
        buf_printf(out, "%s%s ", i ? "   " : "  ", groups->row.v[i]->path);
        buf_count(out, groups->row.v[i]->stored);
    }
    buf_putc(out, '\n');
}

static void json_rows(Buf *out, const char *key, const Rows *rows, ReportBy by)
{
    buf_printf(out, ",\"%s\":[", key);
    for (size_t i = 0; i < rows->row.n; i++) {
        const Row *row = rows->row.v[i];
        buf_printf(out, "%s{\"path\":", i ? "," : "");
        buf_json_string(out, row->path, strlen(row->path));
        buf_printf(out, ",\"stored\":%lld,\"live\":%lld,\"dead\":%lld,\"tensors\":%lld", (long long)row->stored,
                   (long long)(row->stored - row->dead), (long long)row->dead, (long long)row->tensors);
        if (by == BY_TENSOR) {
            const Param *p = row->single;
            buf_printf(out, ",\"group\":\"%s\",\"frozen\":%s,\"shape\":[", p->group, p->frozen ? "true" : "false");
            for (int k = 0; k < p->shape.rank; k++)
                buf_printf(out, "%s%lld", k ? "," : "", (long long)p->shape.d[k].n);
            buf_puts(out, "]");
        }
        buf_puts(out, "}");
    }
    buf_puts(out, "]");
}

static void params_json(Buf *out, const Unit *u, const Rows *rows, const Rows *groups, ReportBy by)
{
    static const char *const word[] = {"summary", "layer", "node", "group", "tensor"};
    const Model *m = u->model;
    ModelCount count = model_count(m);
    buf_puts(out, "{\"v\":1,\"event\":\"params\",\"model\":");
    buf_json_string(out, m->name, strlen(m->name));
    buf_printf(out, ",\"stored\":%lld,\"live\":%lld,\"dead\":%lld,\"active\":%lld,\"buffers\":%lld",
               (long long)count.stored, (long long)count.live, (long long)count.dead, (long long)count.active,
               (long long)count.buffers);
    buf_printf(out, ",\"width\":%lld,\"state_width\":%lld,\"context\":%lld,\"vocab\":%lld", (long long)m->width,
               (long long)m->state_width, (long long)m->context, (long long)m->vocab);
    buf_puts(out, ",\"flops_per_token\":");
    buf_number(out, model_flops_per_token(m));
    buf_printf(out, ",\"by\":\"%s\"", word[by]);
    json_rows(out, "rows", rows, by);
    json_rows(out, "groups", groups, BY_GROUP);
    buf_puts(out, "}\n");
}

void report_params(Buf *out, Unit *unit, ReportBy by, bool json)
{
    const Model *m = report_model(unit);
    Rows rows = rows_by(unit->ctx, m, by), groups = rows_by(unit->ctx, m, BY_GROUP);
    if (json)
        params_json(out, unit, &rows, &groups, by);
    else
        params_text(out, unit, &rows, &groups, by);
}
