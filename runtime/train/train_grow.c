/* train_grow.c - what growth steps leave for the training behind them.
 *
 * In:  a Trainer that has carried out the first steps of its file.   Out: parts of the weights with their rates, the
 * windows of a plateau, the schedule's time.
 * The one idea: all of it is in the file or in Progress, which a checkpoint holds, so a resumed run has it, too.
 */
#include <math.h>

#include "trainer.h"

GrownParts train_births(Trainer *tr, const Model *m, size_t n, const double *updates)
{
    const GrowStep *step = tr->file->grow.v;
    const Model *first = n ? step[0].before : NULL;
    Arena *a = tr->session.arena;
    bool *some = NEW_ARRAY(a, bool, m->param.n + 1), said = false, carried = false;
    PartRate *old = NEW_ARRAY(a, PartRate, n + 1), *fresh = NEW_ARRAY(a, PartRate, n + 1);
    Map had;
    map_init(&had, a);
    for (size_t i = 0; first && i < first->param.n; i++)
        *map_at(&had, (uintptr_t)first->param.v[i].path) = (void *)(uintptr_t)&first->param.v[i];
    for (size_t k = 0; k < n; k++) /* copies of others count as new */
        for (size_t i = 0; step[k].source && i < step[k].after->param.n; i++) {
            Name path = step[k].after->param.v[i].path;
            if (step[k].source[i] != path)
                *map_at(&had, (uintptr_t)path) = NULL;
        }
    for (size_t i = 0; first && i < m->param.n; i++) {
        const Param *p = map_get(&had, (uintptr_t)m->param.v[i].path);
        some[i] = !p || p->elements != m->param.v[i].elements;
    }
    for (size_t i = 0; i < n; i++) {
        old[i] = step[i].old;
        fresh[i] = step[i].fresh;
        said |= old[i].said || fresh[i].said;
        carried |= growth_carries(&step[i]);
    }
    return (GrownParts){updates, n, some, carried, said ? old : NULL, said ? fresh : NULL};
}

/* Means over windows that follow each other: what is held from step to step is one sum. */
void train_plateau(Trainer *tr)
{
    const Plateau *of = tr->unit->grow.n ? tr->unit->grow.v[0].plateau : NULL;
    Progress *p = &tr->now;
    if (!of)
        return;
    train_set_vars(tr, 0);
    double x = host_eval(of->value, tr->vars), window = host_eval(of->window, tr->vars);
    if (isfinite(x)) {
        p->plateau.sum += x;
        p->plateau.n++;
    }
    if ((double)++p->plateau.steps < window)
        return;
    double mean = p->plateau.n ? p->plateau.sum / (double)p->plateau.n : NAN, last = p->plateau.last;
    p->plateau.over |= mean > last - of->least * fabs(last); /* false of NaN */
    p->plateau.last = mean;
    p->plateau.sum = 0;
    p->plateau.n = p->plateau.steps = 0;
}

void train_enter_progress(Progress *p, const GrowStep *g)
{
    p->plateau = progress_none.plateau;
    p->due = false;
    if (!g->restarts)
        return;
    p->from_step = p->step;
    p->from_tokens = p->tokens;
}

/* ---- kernels of steps to come ---- */

/* The programs that train_open() builds. */
static void prepare_programs(Trainer *tr, const Model *m, const Train *t, BuildReport *total)
{
    Session *s = &tr->session;
    int64_t micro = t->micro_seqs > 0 ? t->micro_seqs : t->batch_seqs;
    ProgramOptions how = {.name = "prepared",
                          .B = micro,
                          .T = t->context,
                          .share_arena = true,
                          .layout = NEW(s->arena, PlanLayout),
                          .kernel_cache = tr->kernel_cache,
                          .gather = tr->gather};
    plan_layout_init(how.layout, s->arena);
    for (ProgramKind kind = 0; kind < PROGRAM_KINDS; kind++) { /* levels of lanes are alike */
        Graph *g = program_is_run(kind, t, micro) ? program_make(kind, m, t, 0, s->arena) : NULL;
        if (!g)
            continue;
        if (kind == PROGRAM_UPDATE)
            plan_write_copies(g, how.layout);
        how.half = program_row(kind)->float32 ? HALF_NONE : session_half(s, t);
        session_prepare(s, g, &how, total);
    }
}

/* `next`: the growth step that ends it, or NULL. */
static void prepare_stage(Trainer *tr, const GrowStep *g, const GrowStep *next, size_t n, BuildReport *total)
{
    Train t = *g->train;
    double *updates = NEW_ARRAY(tr->session.arena, double, n + 1);
    for (size_t i = 0; i < n; i++)
        updates[i] =
            i < tr->unit->grown ? tr->growth.born[i] : (double)(tr->now.step + 1) + (double)i; /* numbers of no text */
    t.births = train_births(tr, g->after, n, updates);
    t.decides = train_runs_ahead(tr, g->after, &t, next);
    train_own(tr, g->after, &t);
    prepare_programs(tr, g->after, &t, total);
}

static void prepare_stages(Trainer *tr, BuildReport *total)
{
    const Unit *u = tr->unit;
    for (size_t i = 0; i < u->grow.n; i++) {
        const GrowStep *g = &u->grow.v[i];
        if (g->refused || !g->train)
            return;
        prepare_stage(tr, g, i + 1 < u->grow.n ? g + 1 : NULL, u->grown + i + 1, total);
    }
}

void train_gather(Trainer *tr)
{
    BuildReport total = {0};
    Train *t = tr->unit->train;
    tr->kernel_cache = session_kernel_cache(&tr->session);
    t->decides = train_runs_ahead(tr, tr->unit->model, t, tr->unit->grow.n ? &tr->unit->grow.v[0] : NULL);
    prepare_programs(tr, tr->unit->model, t, &total);
    prepare_stages(tr, &total);
}

/* Without a cache each opening of the run compiles its kernels anyway. */
void train_prepare(Trainer *tr)
{
    BuildReport total = {0};
    ArenaMark mark = arena_mark(tr->session.arena);
    if (tr->growth.begins && tr->session.backend && !tr->build.note[0])
        prepare_stages(tr, &total);
    arena_reset(tr->session.arena, mark);
    if (total.compiled)
        train_event(tr, VWN_EVENT_COMPILE, "%d kernels of growth steps to come: %d cached, %d compiled in %.1f s",
                    total.kernels, total.cached, total.compiled, total.seconds);
}
