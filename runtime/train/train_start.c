/* train_start.c - a run that begins with other weights than drawn ones: which, and what becomes of them.
 *
 * In:  `start_from` of `train`, or `from` of a growth step at the start.   Out: a Start; an event for each row of the
 * table that accounts for every tensor of both sides.
 */
#include <stdio.h>

#include "trainer.h"

static void put_row(JsonText *t, const void *of)
{
    const StartRow *r = of;
    char there[100], here[100];
    start_shapes(r->first, there, here);
    json_put_string(t, "fate", fate_name[r->first->fate]);
    json_put_string(t, "path", r->path);
    json_put_integer(t, "tensors", (int64_t)r->n);
    if (r->first->tensor) {
        json_put_string(t, "first_there", r->first->tensor->name);
        json_put_string(t, "there", there);
    }
    if (r->first->param)
        json_put_string(t, "here", here);
    json_put_bool(t, "transposed", r->first->transposed);
}

static void report_row(Trainer *tr, const StartRow *r)
{
    char there[100], here[100];
    Buf b = buf_new(tr->session.arena);
    const StartEntry *e = r->first;
    start_shapes(e, there, here);
    buf_printf(&b, "%-5s %s %s", fate_name[e->fate], r->path, *there ? there : here);
    if (e->fate == FATE_GROWN || e->fate == FATE_CUT || e->transposed)
        buf_printf(&b, " -> %s", here);
    if (r->n > 1)
        buf_printf(&b, " (%zu tensors)", r->n);
    if (e->param && e->tensor && e->tensor->name != e->param->path &&
        strncmp(e->tensor->name, e->param->path, strlen(e->param->path)))
        buf_printf(&b, ", there %s", path_pattern(tr->session.arena, e->tensor->name));
    if (e->transposed)
        buf_puts(&b, ", axes swapped");
    train_row(tr, VWN_EVENT_TENSOR, put_row, r, b.s);
}

void train_start_say(Trainer *tr, const Start *start)
{
    Arena *a = tr->session.arena;
    size_t n;
    const StartRow *row = start_rows(start, a, &n);
    for (size_t i = 0; i < n; i++)
        report_row(tr, &row[i]);
    Buf b = buf_new(a);
    buf_printf(&b, "begins with %s%s: ", start->path, start->average ? ", the average of its weights" : "");
    for (int k = 0; k < FATES; k++)
        buf_printf(&b, "%s%zu %s", k ? ", " : "", start->count[k], k == FATE_LEFT ? "left behind" : fate_name[k]);
    buf_puts(&b, "; ");
    buf_count(&b, start->taken);
    buf_puts(&b, " numbers are taken, ");
    buf_count(&b, start->drawn);
    buf_puts(&b, " new, ");
    buf_count(&b, start->dropped);
    buf_puts(&b, " dropped");
    train_event(tr, VWN_EVENT_NOTE, "%s", b.s);
}

const Start *train_start_open(Trainer *tr)
{
    const GrowStep *first = tr->unit->grow.n ? &tr->unit->grow.v[0] : NULL;
    const StartSpec *spec = first && first->from.kind != START_DRAWN ? &first->from : &tr->train->start;
    if (spec->kind == START_DRAWN)
        return NULL;
    return start_open(&tr->session, spec, tr->model, tr->hooks);
}
