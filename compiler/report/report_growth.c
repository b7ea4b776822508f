/* report_growth.c - a growth step's plan as a difference.
 *
 * In:  a GrowthPlan.   Out: a line for each tensor that changes, its axes and new blocks below; or JSON.
 * The one idea: `+` is new, `~` grows, `-` is left behind, `!` is cut; what is taken as it is is counted.
 */
#include "compiler/growth/growth.h"
#include "report.h"

#include <math.h>

static const char *const kind_name[] = {"taken", "grown", "cut", "new", "left"};
static const char *const role_text[] = {"old", "entry", "exit", "inner", "own"};

static void init_print(Buf *out, const Init *i)
{
    switch (i->kind) {
    case INIT_FILL: buf_printf(out, i->a == 0 ? "zeros" : i->a == 1 ? "ones" : "fill(%.6g)", i->a); break;
    case INIT_EYE: buf_puts(out, "eye"); break;
    case INIT_NORMAL: buf_printf(out, "normal(std = %.6g)", i->a); break;
    case INIT_TRUNC_NORMAL: buf_printf(out, "trunc_normal(std = %.6g, cutoff = %.6g)", i->a, i->b); break;
    case INIT_UNIFORM: buf_printf(out, "uniform(%.6g, %.6g)", i->a, i->b); break;
    case INIT_LIST: buf_puts(out, "a list"); break;
    }
}

/* What new blocks of a role are drawn with. */
static void role_print(Buf *out, const GrowthEntry *e, int role)
{
    if (e->means[role])
        buf_puts(out, "the mean of the old numbers");
    else if (e->noise[role] != 0)
        buf_printf(out, "noise(%.6g of the old spread)", e->noise[role]);
    else
        init_print(out, &e->init[role]);
}

/* Numbers in new blocks of each role. */
static void count_roles(const GrowthEntry *e, int64_t count[ROLE_OWN + 1])
{
    size_t part[MAX_RANK] = {0};
    int rank = e->after->shape.rank;
    for (int k = 0; k >= 0 && rank;) {
        int64_t n = 1;
        for (k = 0; k < rank; k++)
            n *= e->axis[k].part[part[k]].count;
        count[growth_role(e, part)] += n;
        for (k = rank - 1; k >= 0 && ++part[k] == e->axis[k].n; k--)
            part[k] = 0;
    }
}

static void text_axis(Buf *out, const GrowthAxis *a, int k)
{
    size_t fresh = 0;
    int64_t n = 0, first = -1;
    bool copies = true;
    for (size_t i = 0; i < a->n; i++)
        if (a->part[i].fresh) {
            first = first < 0 ? a->part[i].at : first;
            fresh++;
            n += a->part[i].count;
            copies &= a->part[i].from >= 0;
        }
    if (a->spread) {
        buf_printf(out, "      axis %d: the old tensor %lld times\n", k + 1, (long long)a->part[0].count);
        return;
    }
    if (!fresh && !a->recut)
        return;
    buf_printf(out, "      axis %d, %s: %lld new ", k + 1, a->reads ? "read" : "written", (long long)n);
    if (!fresh)
        buf_puts(out, "elements");
    else if (fresh == 1)
        buf_printf(out, "from %lld on", (long long)first);
    else
        buf_printf(out, "in %zu places, the first at %lld", fresh, (long long)first);
    if (fresh && copies)
        buf_puts(out, ", copies");
    buf_puts(out, a->recut ? "; it is cut in another way than before\n" : "\n");
}

/* What old numbers are multiplied by; 1 along all axes: nothing is printed. */
static void text_weights(Buf *out, const GrowthEntry *e)
{
    double least = 1, most = 1;
    for (int k = 0; k < e->after->shape.rank; k++) {
        double lo = INFINITY, hi = 0;
        for (size_t i = 0; i < e->axis[k].n; i++)
            if (e->axis[k].part[i].from >= 0) {
                lo = fmin(lo, e->axis[k].part[i].weight);
                hi = fmax(hi, e->axis[k].part[i].weight);
            }
        least *= lo;
        most *= hi;
    }
    if (least != 1 || most != 1)
        buf_printf(out, least == most ? "      old numbers times %.6g\n" : "      old numbers times %.6g to %.6g\n",
                   least, most);
}

static void text_entry(Buf *out, const GrowthEntry *e)
{
    static const char sign[] = {' ', '~', '!', '+', '-'};
    if (growth_same(e))
        return;
    buf_printf(out, "  %c %s ", e->kind == GROWTH_TAKEN ? '~' : sign[e->kind], e->path);
    if (e->before && !shape_eq(&e->before->shape, e->after ? &e->after->shape : &e->before->shape)) {
        shape_print(out, &e->before->shape);
        buf_puts(out, e->after ? " -> " : "");
    } else if (!e->after) {
        shape_print(out, &e->before->shape);
    }
    if (e->after)
        shape_print(out, &e->after->shape);
    if (e->copied && e->before)
        buf_printf(out, e->moved ? " = %s" : " = copy of %s", e->before->path);
    if (e->kind == GROWTH_NEW) {
        buf_puts(out, " = ");
        init_print(out, &e->init[ROLE_OLD]);
    }
    buf_putc(out, '\n');
    if (!e->after || (e->kind != GROWTH_GROWN && e->kind != GROWTH_TAKEN))
        return;
    for (int k = 0; k < e->after->shape.rank; k++)
        text_axis(out, &e->axis[k], k);
    text_weights(out, e);
    int64_t count[ROLE_OWN + 1] = {0};
    count_roles(e, count);
    for (int r = ROLE_ENTRY; r <= ROLE_OWN; r++)
        if (count[r]) {
            buf_printf(out, "      + %s ", role_text[r]);
            buf_count(out, count[r]);
            buf_puts(out, " = ");
            if (e->copies[r])
                buf_puts(out, "copies\n");
            else {
                role_print(out, e, r);
                buf_puts(out, e->filled[r] ? "\n" : " (as declared)\n");
            }
        }
}

/* Where parts are copies, or old numbers are multiplied: which are new, and the factors. */
static void json_copies(Buf *out, const GrowthAxis *a)
{
    bool any = a->spread;
    for (size_t i = 0; i < a->n; i++)
        any |= (a->part[i].fresh && a->part[i].from >= 0) || a->part[i].weight != 1 || a->part[i].gradient != 1;
    if (!any)
        return;
    buf_printf(out, ",\"spread\":%s,\"copies\":[", a->spread ? "true" : "false");
    for (size_t i = 0; i < a->n; i++)
        buf_printf(out, "%s[%s,%.17g,%.17g]", i ? "," : "", a->part[i].fresh ? "true" : "false", a->part[i].weight,
                   a->part[i].gradient);
    buf_putc(out, ']');
}

static void json_entry(Buf *out, const GrowthEntry *e)
{
    buf_printf(out, "{\"path\":\"%s\",\"kind\":\"%s\"", e->path, kind_name[e->kind]);
    if (e->before) {
        buf_puts(out, ",\"before\":");
        shape_print(out, &e->before->shape);
    }
    if (e->after) {
        buf_puts(out, ",\"after\":");
        shape_print(out, &e->after->shape);
    }
    if (e->copied && e->before)
        buf_printf(out, ",\"%s\":\"%s\"", e->moved ? "moved_from" : "copy_of", e->before->path);
    if (e->after && (e->kind == GROWTH_GROWN || (e->kind == GROWTH_TAKEN && !growth_same(e)))) {
        buf_puts(out, ",\"axes\":[");
        for (int k = 0; k < e->after->shape.rank; k++) {
            const GrowthAxis *a = &e->axis[k];
            buf_printf(out, "%s{\"reads\":%s,\"recut\":%s,\"parts\":[", k ? "," : "", a->reads ? "true" : "false",
                       a->recut ? "true" : "false");
            for (size_t i = 0; i < a->n; i++)
                buf_printf(out, "%s[%lld,%lld,%lld]", i ? "," : "", (long long)a->part[i].at,
                           (long long)a->part[i].count, (long long)a->part[i].from);
            buf_puts(out, "]");
            json_copies(out, a);
            buf_putc(out, '}');
        }
        int64_t count[ROLE_OWN + 1] = {0};
        bool first = true;
        count_roles(e, count);
        buf_puts(out, "],\"new\":{");
        for (int r = ROLE_ENTRY; r <= ROLE_OWN; r++)
            if (count[r]) {
                buf_printf(out, "%s\"%s\":{\"elements\":%lld,\"init\":\"", first ? "" : ",", role_text[r],
                           (long long)count[r]);
                if (e->copies[r])
                    buf_puts(out, "copy");
                else
                    role_print(out, e, r);
                buf_puts(out, "\"}");
                first = false;
            }
        buf_putc(out, '}');
    }
    buf_putc(out, '}');
}

static void text_proof(Buf *out, const GrowthPlan *plan, const GrowthProof *p)
{
    if (growth_copies(plan->step))
        buf_printf(out, "copies learn at the rates of `new` and begin with %s\n",
                   growth_carries(plan->step) ? "the moments of what they copy" : "moments of zero");
    if (p->preserved)
        buf_puts(out, "preserves: proved, every output is the same as real numbers\n");
    else if (p->leak)
        buf_printf(out, "preserves: no, new numbers of %s reach `%s`\n", p->leak->path, p->output);
    else if (p->factor != 0)
        buf_printf(out, "preserves: no, `%s` becomes %.6g times what it was\n", p->output, p->factor);
    else
        buf_puts(out, p->too_large ? "preserves and alive: not looked at, the proof takes too much memory\n"
                                   : "preserves: not shown\n");
    if (plan->alike) {
        buf_count(out, plan->alike);
        buf_puts(out, " new coordinates get the same gradients as what they copy: another share, as `split(share = "
                      "0.4)`, tells them apart\n");
    }
    if (!p->trained || !p->blocks)
        return;
    buf_puts(out, "alive: ");
    size_t never = p->dead + p->barred;
    if (!never && !p->open && p->alive_after == 0) {
        buf_printf(out, "all %zu new blocks have a gradient at once\n", p->blocks);
        return;
    }
    size_t sure = p->blocks - never - p->open;
    for (size_t pass = 0, seen = 0; pass <= 64 && (pass == 0 || seen < sure); pass++) {
        size_t n = 0;
        for (size_t i = 0; i < plan->n; i++)
            for (int r = ROLE_OLD; r <= ROLE_OWN; r++) {
                const GrowthLife *l = &p->life[i];
                n += l->bar[r] == BAR_NONE && l->after[r] != NO_BLOCK && l->after[r] != NEVER &&
                     l->after[r] <= (int)pass;
            }
        buf_printf(out, "%s%zu of %zu new blocks ", pass ? ", " : "", n, p->blocks);
        buf_printf(out, pass == 0 ? "at once" : pass == 1 ? "after one update" : "after %zu", pass);
        seen = n;
    }
    if (p->open)
        buf_printf(out, "; of %zu the data decides", p->open);
    if (never)
        buf_printf(out, "; %zu never", never);
    buf_putc(out, '\n');
}

static void report_growth(Buf *out, const GrowthPlan *plan, const GrowthProof *proof, bool json)
{
    size_t kinds[GROWTH_LEFT + 1] = {0};
    if (json)
        buf_printf(out,
                   "{\"schema\":\"vwn.growth\",\"v\":1,\"step\":\"%s\",\"taken\":%lld,\"added\":%lld,\"tensors\":[",
                   plan->step->name, (long long)plan->taken, (long long)plan->added);
    else
        buf_printf(out, "grow %s\n", plan->step->name);
    for (size_t i = 0; i < plan->n; i++) {
        kinds[plan->entry[i].kind]++;
        if (json && i)
            buf_putc(out, ',');
        (json ? json_entry : text_entry)(out, &plan->entry[i]);
    }
    if (json) {
        if (growth_copies(plan->step))
            buf_printf(out, "],\"moments\":\"%s\"", growth_carries(plan->step) ? "copy" : "zeros");
        else
            buf_putc(out, ']');
        buf_printf(out,
                   ",\"preserved\":%s,\"factor\":%.17g,\"alike\":%lld,\"blocks\":%zu,\"dead\":%zu,\"by_data\":%zu,"
                   "\"alive_after\":",
                   proof->preserved ? "true" : "false", proof->factor, (long long)plan->alike, proof->blocks,
                   proof->dead + proof->barred, proof->open);
        buf_printf(out, proof->alive_after == NEVER ? "null}\n" : "%d}\n", proof->alive_after);
        return;
    }
    buf_printf(out, "%zu taken, %zu grown, %zu new; ", kinds[GROWTH_TAKEN], kinds[GROWTH_GROWN], kinds[GROWTH_NEW]);
    buf_count(out, plan->taken);
    buf_puts(out, " numbers are old, ");
    buf_count(out, plan->added);
    buf_puts(out, " new.\n");
    text_proof(out, plan, proof);
}

bool report_growth_step(Buf *out, const GrowStep *step, Arena *arena, bool json)
{
    const GrowthPlan *plan = growth_plan(step, arena);
    bool changes = false;
    report_growth(out, plan, growth_prove(plan, arena), json);
    for (size_t i = 0; i < plan->n; i++)
        changes |= !growth_same(&plan->entry[i]);
    return changes;
}
