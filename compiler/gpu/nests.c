/* nests.c - nests of loops of a row as its threads like them: which loop is the outer one, and which nests are one.
 *
 * In:  a scheduled kernel for the threads of a device.     Out: the same with other nests. What depends on sizes is left to
 *      map_threads.c, so that kernels that differ in sizes alone still have the same statements.
 * The one idea: what rounds of a loop, or several loops, have in common is loaded once when one thread does them together.
 */
#include "device.h"
#include "compiler/kernel/touches.h"

int64_t kernel_elements_inside(const Kernel *k, size_t loop)
{
    int64_t here[NEST_MAX + 2] = {1}, all = 0;
    int depth = 0;
    bool innermost = false;
    for (size_t i = loop + 1, end = kernel_loop_end(k, loop); i < end; i++) {
        const KStmt *s = &k->stmt.v[i];
        if (s->kind == KS_LOOP) {
            here[depth + 1] = here[depth] * (ix_info(k->ix, s->var)->hi + 1);
            depth++;
            innermost = true;
        } else if (s->kind == KS_END) {
            all += innermost ? here[depth] : 0;
            depth--;
            innermost = false;
        }
    }
    return all ? all : 1;
}

bool kernel_has_few_inside(const Kernel *k, size_t loop)
{
    const Tuned *tuned = k->target->tuned;
    if (k->stmt.v[loop].simd)
        return false;
    int64_t most = 1;
    for (size_t i = loop + 1, end = kernel_loop_end(k, loop); i < end; i++)
        if (k->stmt.v[i].kind == KS_LOOP) {
            int64_t n = (ix_info(k->ix, k->stmt.v[i].var)->hi + 1) * kernel_elements_inside(k, i);
            most = n > most ? n : most;
            i = kernel_loop_end(k, i);
        }
    return most <= tuned->whole_loop_max;
}

/* Is it a statement of a loop that computes, for each round, nothing but values and sums within the round? */
static bool is_in_registers(const Kernel *k, size_t loop, const KStmt *s)
{
    switch (s->kind) {
    case KS_LET:
    case KS_VAR:
    case KS_END:
    case KS_ARRAY_GET: return true;
    case KS_ACC:
    case KS_ACC_ADD: return !nest_has(&kx(k, s->ex)->over, k->stmt.v[loop].var);
    case KS_LOOP: return ix_literal(k->ix, ix_info(k->ix, s->var)->extent);
    default: return false;
    }
}

/* What is the same in all rounds one thread puts. */
int64_t kernel_sums_of(const Kernel *k, size_t loop)
{
    int64_t sums = 0;
    for (size_t i = loop + 1, end = kernel_loop_end(k, loop); i < end; i++) {
        const KStmt *s = &k->stmt.v[i];
        const KArray *a = s->kind == KS_ARRAY_PUT || s->kind == KS_ARRAY_ADD ? &k->array.v[s->array] : NULL;
        if (!a && !is_in_registers(k, loop, s))
            return -1;
        if (!a || s->kind == KS_ARRAY_PUT || nest_has(&a->nest, k->stmt.v[loop].var))
            continue;
        if (a->dtype != DT_REAL || kx(k, s->ex)->op != OP_SUM)
            return -1;
        sums += a->elements;
    }
    return sums;
}

bool kernel_puts_along(const Kernel *k, size_t loop)
{
    for (size_t i = loop + 1, end = kernel_loop_end(k, loop); i < end; i++)
        if (k->stmt.v[i].kind == KS_ARRAY_PUT && nest_has(&k->array.v[k->stmt.v[i].array].nest, k->stmt.v[loop].var))
            return true;
    return false;
}

/* ---- the outer loop ---- */

/* The first statement of a loop that does more than compute, or load, a value. */
static size_t behind_numbers(const Kernel *k, size_t loop)
{
    size_t i = loop + 1;
    while (k->stmt.v[i].kind == KS_LET || k->stmt.v[i].kind == KS_VAR || k->stmt.v[i].kind == KS_ARRAY_GET)
        i++;
    return i;
}

/* Of a row with products: sums over the rounds of this loop, one for each element of the loop in it, which has fewer
 * elements than threads could take. These loops are exchanged, so that a thread adds up elements of its own and loads
 * of several rounds are under way. */
static bool is_interchanged(const Kernel *k, size_t loop)
{
    const Tuned *tuned = k->target->tuned;
    const KStmt *s = &k->stmt.v[loop];
    size_t in = behind_numbers(k, loop), end = kernel_loop_end(k, loop);
    bool adds = false;
    if (s->simd || k->stmt.v[in].kind != KS_LOOP || kernel_loop_end(k, in) + 1 != end ||
        kernel_loops_inside(k, loop) != 1 || ix_info(k->ix, s->var)->hi + 1 > tuned->interchange_rounds_max ||
        ix_info(k->ix, k->stmt.v[in].var)->hi + 1 >= tuned->product_threads * tuned->interchange_each)
        return false;
    for (size_t i = in + 1; i + 1 < end; i++) {
        bool add = k->stmt.v[i].kind == KS_ARRAY_ADD;
        adds = adds || (add && !nest_has(&k->array.v[k->stmt.v[i].array].nest, s->var));
    }
    return adds;
}

/* Of a row without products: a few rounds, each of all that a long loop has, with loops in it. These are exchanged, so that a
 * thread loads once what the rounds have in common. */
static bool is_interchanged_out(const Kernel *k, size_t loop)
{
    const Tuned *tuned = k->target->tuned;
    const KStmt *s = &k->stmt.v[loop];
    size_t in = behind_numbers(k, loop), end = kernel_loop_end(k, loop);
    return !s->simd && k->stmt.v[in].kind == KS_LOOP && !k->stmt.v[in].simd && kernel_loop_end(k, in) + 1 == end &&
           ix_literal(k->ix, ix_info(k->ix, s->var)->extent) &&
           ix_info(k->ix, s->var)->hi + 1 <= tuned->outer_rounds_max &&
           !ix_literal(k->ix, ix_info(k->ix, k->stmt.v[in].var)->extent) &&
           kernel_elements_inside(k, in) * (ix_info(k->ix, s->var)->hi + 1) <= tuned->outer_elements_max &&
           !((kernel_carried(k, loop) | kernel_carried(k, in)) & ~CARRIES_SAME);
}

/* What stood between the two loops is then done in the inner one. */
static void interchange_loops(Kernel *k)
{
    KStmt *to = NEW_ARRAY(k->arena, KStmt, k->stmt.n + 1);
    memcpy(to, k->stmt.v, k->stmt.n * sizeof *to);
    for (size_t i = 0; i < k->stmt.n; i++) {
        if (k->stmt.v[i].kind != KS_LOOP || !(k->product.n ? is_interchanged(k, i) : is_interchanged_out(k, i)))
            continue;
        size_t in = behind_numbers(k, i);
        memmove(&to[i + 2], &k->stmt.v[i + 1], (in - i - 1) * sizeof *to);
        to[i] = k->stmt.v[in];
        to[i + 1] = k->stmt.v[i];
        i = kernel_loop_end(k, in);
    }
    k->stmt.v = to;
}

/* ---- a sum for each element ---- */

/* Where this array is filled before the loop, in what the loop stands in, when nothing else adds to it; or SIZE_MAX. */
static size_t only_fill(const Kernel *k, size_t loop, int array)
{
    size_t adds = 0, fill = SIZE_MAX;
    for (size_t i = 0; i < k->stmt.n; i++)
        adds += k->stmt.v[i].kind == KS_ARRAY_ADD && k->stmt.v[i].array == array;
    int depth = 0;
    for (size_t i = loop; i-- > 0 && depth >= 0 && adds == 1;) {
        const KStmt *s = &k->stmt.v[i];
        depth += s->kind == KS_END;
        depth -= kernel_opens(s);
        if (depth == 0 && s->kind == KS_ARRAY_FILL && s->array == array)
            fill = i;
    }
    return fill;
}

/* Of a row without products: does a loop add to an array in each of its rounds, to every element that the loop in it runs over? */
static bool adds_rounds(const Kernel *k, size_t loop)
{
    size_t in = behind_numbers(k, loop), end = kernel_loop_end(k, loop), adds = 0;
    const KStmt *s = &k->stmt.v[loop], *of = &k->stmt.v[in];
    if (s->simd || of->kind != KS_LOOP || !of->simd || kernel_loop_end(k, in) + 1 != end ||
        (ix_literal(k->ix, ix_info(k->ix, of->var)->extent) &&
         kernel_sums_of(k, loop) <= k->target->tuned->thread_sums_max))
        return false;
    for (size_t i = in + 1; i + 1 < end; i++) {
        const KStmt *x = &k->stmt.v[i];
        if (x->kind == KS_ARRAY_ADD) {
            const KNest *nest = &k->array.v[x->array].nest;
            if (nest->n != 1 || nest->var[0] != of->var || only_fill(k, loop, x->array) == SIZE_MAX)
                return false;
            adds++;
        } else if (x->kind != KS_LET && x->kind != KS_VAR && x->kind != KS_ARRAY_GET) {
            return false;
        }
    }
    return adds > 0;
}

/* The loops are exchanged: a sum is an accumulator of the thread that has the element, which puts it into the array when all
 * rounds are added up. So loads of several rounds are under way. */
static void sum_by_element(Kernel *k, size_t loop)
{
    size_t in = behind_numbers(k, loop), end = kernel_loop_end(k, loop), n = 0;
    KStmt *to = NEW_ARRAY(k->arena, KStmt, k->stmt.n + (end - in));
    for (size_t i = 0; i < loop; i++) {
        bool filled = false;
        for (size_t j = in; j < end; j++)
            filled = filled || (k->stmt.v[j].kind == KS_ARRAY_ADD && i == only_fill(k, loop, k->stmt.v[j].array));
        if (!filled)
            to[n++] = k->stmt.v[i];
    }
    to[n] = k->stmt.v[in];
    to[n++].simd = false;
    for (size_t i = in; i < end; i++)
        if (k->stmt.v[i].kind == KS_ARRAY_ADD)
            to[n++] = (KStmt){.kind = KS_ACC, .ex = k->stmt.v[i].ex};
    to[n] = k->stmt.v[loop];
    to[n++].simd = true;
    for (size_t i = loop + 1; i < end; i++) {
        if (i == in)
            continue;
        to[n] = k->stmt.v[i];
        to[n].kind = to[n].kind == KS_ARRAY_ADD ? KS_ACC_ADD : to[n].kind;
        n++;
    }
    for (size_t i = in; i < end; i++)
        if (k->stmt.v[i].kind == KS_ARRAY_ADD)
            to[n++] = (KStmt){.kind = KS_ARRAY_PUT, .ex = k->stmt.v[i].ex, .array = k->stmt.v[i].array};
    for (size_t i = end; i < k->stmt.n; i++)
        to[n++] = k->stmt.v[i];
    k->stmt.v = to;
    k->stmt.n = n;
}

/* ---- one nest instead of two ---- */

/* Does a statement of one range touch what one of the other writes? A value that both compute is the same one. */
static bool depend(const Kernel *k, size_t from, size_t to, size_t other, size_t end)
{
    ArenaMark mark = arena_mark(k->arena);
    bool found = false;
    for (size_t i = from; i < to && !found; i++) {
        KTouches a = {0};
        kernel_touches(k, &k->stmt.v[i], &a);
        for (size_t j = other; j < end && !found; j++) {
            KTouches b = {0};
            bool sums = k->stmt.v[i].kind == KS_ACC_ADD || k->stmt.v[j].kind == KS_ACC_ADD;
            kernel_touches(k, &k->stmt.v[j], &b);
            for (size_t x = 0; x < a.n; x++)
                for (size_t y = 0; y < b.n; y++)
                    found =
                        found ||
                        (a.v[x].thing == b.v[y].thing && a.v[x].number == b.v[y].number &&
                         (a.v[x].how | b.v[y].how) & WRITES &&
                         (sums || a.v[x].thing == OF_ARRAY || a.v[x].thing == OF_BATCH || a.v[x].thing == OF_BUFFER));
        }
    }
    arena_reset(k->arena, mark);
    return found;
}

/* The loop over the same variable behind this one that can be done together with it, or 0: their sums fit into registers, and
 * neither they nor what stands between them depend on each other. */
static size_t together_with(const Kernel *k, size_t loop)
{
    size_t end = kernel_loop_end(k, loop), next = end + 1;
    while (next < k->stmt.n && k->stmt.v[next].kind != KS_LOOP && k->stmt.v[next].kind != KS_END &&
           k->stmt.v[next].kind != KS_STORE && k->stmt.v[next].kind != KS_SINK)
        next++;
    const KStmt *a = &k->stmt.v[loop], *b = &k->stmt.v[next];
    if (next >= k->stmt.n || b->kind != KS_LOOP || a->simd || b->simd || a->var != b->var ||
        ix_literal(k->ix, ix_info(k->ix, a->var)->extent))
        return 0;
    int64_t sums = kernel_sums_of(k, loop), more = kernel_sums_of(k, next);
    if (sums < 0 || more < 0 || sums + more == 0 || sums + more > k->target->tuned->thread_sums_max ||
        kernel_elements_inside(k, loop) + kernel_elements_inside(k, next) > k->target->tuned->thread_sums_max)
        return 0;
    size_t last = kernel_loop_end(k, next);
    return depend(k, loop + 1, end, end + 1, last) ? 0 : next;
}

/* Is it a value that stands in front of it in the loop already, outside of loops in that? */
static bool is_there(const Kernel *k, size_t loop, const KStmt *s)
{
    int depth = 0;
    for (size_t i = loop + 1, end = kernel_loop_end(k, loop); i < end; i++) {
        const KStmt *x = &k->stmt.v[i];
        depth += x->kind == KS_LOOP;
        depth -= x->kind == KS_END;
        bool value = s->kind == KS_LET || s->kind == KS_ARRAY_GET;
        bool there = x->kind == KS_LET || x->kind == KS_ARRAY_GET || x->kind == KS_ACC;
        if (depth == 0 &&
            (s->kind == KS_VAR ? x->kind == KS_VAR && x->var == s->var : value && there && x->ex == s->ex))
            return true;
    }
    return false;
}

/* What stands between two loops comes before both. */
static void merge_loops(Kernel *k, size_t loop, size_t next)
{
    size_t end = kernel_loop_end(k, loop), last = kernel_loop_end(k, next), n = 0;
    KStmt *to = NEW_ARRAY(k->arena, KStmt, k->stmt.n + 1);
    for (size_t i = 0; i < loop; i++)
        to[n++] = k->stmt.v[i];
    for (size_t i = end + 1; i < next; i++)
        to[n++] = k->stmt.v[i];
    for (size_t i = loop; i < end; i++)
        to[n++] = k->stmt.v[i];
    for (size_t i = next + 1; i < k->stmt.n; i++)
        if (i >= last || !is_there(k, loop, &k->stmt.v[i]))
            to[n++] = k->stmt.v[i];
    k->stmt.v = to;
    k->stmt.n = n;
}

/* Does a round of the loop `next` touch what other rounds of `loop` do, one of them writing? Each element of a tensor is stored once. */
static bool depend_on_others(const Kernel *k, size_t loop, size_t end, size_t next)
{
    ArenaMark mark = arena_mark(k->arena);
    const uint64_t round = ix_bit(k->ix, k->stmt.v[loop].var);
    KTouches a = {0}, b = {0};
    bool found = false;
    for (size_t i = loop + 1; i < end; i++)
        kernel_touches(k, &k->stmt.v[i], &a);
    for (size_t i = next + 1, last = kernel_loop_end(k, next); i < last; i++)
        kernel_touches(k, &k->stmt.v[i], &b);
    for (size_t x = 0; x < a.n; x++)
        for (size_t y = 0; y < b.n; y++) {
            const KTouch *u = &a.v[x], *v = &b.v[y];
            bool writes = u->thing == v->thing && (u->how | v->how) & WRITES, same = writes && u->number == v->number;
            found = found ||
                    (writes && !same && u->thing == OF_BUFFER && kernel_in_one_place(k, u->number, v->number)) ||
                    (same && u->thing == OF_ARRAY && !(u->deps & v->deps & round)) ||
                    (same && u->thing == OF_BUFFER && (u->how | v->how) != WRITES) || (same && u->thing == OF_BATCH);
        }
    arena_reset(k->arena, mark);
    return found;
}

/* Of a row with products: the loop right behind this one, of few elements as this one is, whose rounds a thread can do with those of this
 * one, so that it waits once for what it loads for both; or 0. */
static size_t waits_with(const Kernel *k, size_t loop)
{
    size_t end = kernel_loop_end(k, loop), next = end + 1;
    const KStmt *a = &k->stmt.v[loop], *b = &k->stmt.v[next];
    if (b->kind != KS_LOOP || a->simd || b->simd || a->var != b->var || !kernel_has_few_inside(k, loop) ||
        !kernel_has_few_inside(k, next) || ((kernel_carried(k, loop) | kernel_carried(k, next)) & ~CARRIES_SAME))
        return 0;
    return depend_on_others(k, loop, end, next) ? 0 : next;
}

void kernel_interchange_nests(Kernel *k)
{
    interchange_loops(k);
    for (size_t i = 0; i < k->stmt.n && k->product.n; i++)
        for (size_t next; k->stmt.v[i].kind == KS_LOOP && (next = waits_with(k, i));)
            merge_loops(k, i, next);
    for (size_t i = 0; i < k->stmt.n && !k->product.n; i++)
        if (k->stmt.v[i].kind == KS_LOOP && adds_rounds(k, i))
            sum_by_element(k, i);
    for (size_t i = 0; i < k->stmt.n && !k->product.n; i++) {
        if (k->stmt.v[i].kind != KS_LOOP)
            continue;
        for (size_t next; (next = together_with(k, i));) {
            size_t between = next - kernel_loop_end(k, i) - 1;
            merge_loops(k, i, next);
            i += between;
        }
        i = kernel_loop_end(k, i);
    }
}

/* Is an array filled along this loop, by threads from the first on? */
bool kernel_fills_along(const Kernel *k, IVar var)
{
    for (size_t i = 0; i < k->stmt.n; i++) {
        const KNest *nest = k->stmt.v[i].kind == KS_ARRAY_FILL ? &k->array.v[k->stmt.v[i].array].nest : NULL;
        if (nest && nest->n && nest->var[nest->n - 1] == var)
            return true;
    }
    return false;
}
