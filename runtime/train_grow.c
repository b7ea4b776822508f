/* train_grow.c - what growth steps leave for the training behind them.
 *
 * In:  a Trainer that has carried out the first steps of its file.   Out: parts of the weights with their rates, the
 * windows of a plateau, the schedule's time.
 * The one idea: all of it is in the file or in Progress, which a checkpoint holds, so a resumed run has it, too.
 */
#include <math.h>

#include "trainer.h"

GrownParts train_births(Trainer *tr, size_t n)
{
    const GrowStep *step = tr->file->grow.v;
    const Model *first = n ? step[0].before : NULL, *m = tr->model;
    Arena *a = tr->session.arena;
    bool *some = NEW_ARRAY(a, bool, m->param.n + 1), said = false;
    PartRate *old = NEW_ARRAY(a, PartRate, n + 1), *fresh = NEW_ARRAY(a, PartRate, n + 1);
    Map had;
    map_init(&had, a);
    for (size_t i = 0; first && i < first->param.n; i++)
        *map_at(&had, (uintptr_t)first->param.v[i].path) = (void *)(uintptr_t)&first->param.v[i];
    for (size_t i = 0; first && i < m->param.n; i++) {
        const Param *p = map_get(&had, (uintptr_t)m->param.v[i].path);
        some[i] = !p || p->elements != m->param.v[i].elements;
    }
    for (size_t i = 0; i < n; i++) {
        old[i] = step[i].old;
        fresh[i] = step[i].fresh;
        said |= old[i].said || fresh[i].said;
    }
    return (GrownParts){tr->born, n, some, said ? old : NULL, said ? fresh : NULL};
}

/* Means over windows that follow each other: what is held from step to step is one sum. */
void train_plateau(Trainer *tr)
{
    const Plateau *of = tr->unit->grow.n ? tr->unit->grow.v[0].plateau : NULL;
    Progress *p = &tr->now;
    if (!of)
        return;
    train_set_vars(tr);
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
    static const Progress none = {.plateau.last = NAN};
    p->plateau = none.plateau;
    p->due = false;
    if (!g->restarts)
        return;
    p->from_step = p->step;
    p->from_tokens = p->tokens;
}
