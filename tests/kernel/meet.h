/* meet.h - do all threads arrive where threads meet? A proof over the text of CUDA kernels.
 *
 * In:  CUDA C behind a preprocessor: functions, templates and kernels as prelude_cuda() and its kernels are written.
 * Out: how many places there are at which threads meet; the first one that not all of them may reach, in words.
 * The one idea: every name has a *level*: EVEN, the same in all threads of a block; WARP, the same in all of a warp; LANE.
 * threadIdx.x, and vwn_thread(), is LANE, threadIdx.x / 32 is WARP, everything else begins EVEN, and what is computed, or assigned under a
 * condition, has the highest level of all that goes into it. A barrier of a block may stand only under EVEN conditions, a
 * shuffle, a vote, ldmatrix and mma under conditions up to WARP. A function has the same demand on whoever calls it, and on
 * those arguments on which the conditions inside of it depend. One level is kept for a name in a function, until nothing
 * changes, so order does not matter: a level may be too high, never too low. Rules that are taken for granted:
 *   - memory is read at an address: its level is that of the address (who writes when is kernel_races.c's);
 *   - arrays of a thread have the level of what is put in, and are LANE once a function was handed one;
 *   - threads wait for a phase of a barrier in shared memory one by one, from any place: that as many arrive as it counts is tests/emu's;
 *   - sums and maxima over a warp end alike in all of its lanes (ALIKE below; tests/emu shows it in both orders).
 */
#ifndef VWN_TEST_MEET_H
#define VWN_TEST_MEET_H

#include "compiler/base/base.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

enum { EVEN, WARP, LANE, NOWHERE }; /* levels; of a demand, the highest condition it stands */
enum { MEET_PARAMS = 64 };

typedef struct MLevel {
    int at;         /* of all that is known */
    uint64_t param; /* and at least that of these parameters */
} MLevel;

typedef struct MName {
    const char *s;
    size_t n;
} MName;

typedef struct MVar {
    MName name;
    size_t from, to; /* tokens between which it is known */
    MLevel level;
    bool memory; /* a pointer, or shared: what is stored there has no level of its own */
    bool array;  /* of this thread */
    bool result; /* a parameter through which a function answers */
    bool counts; /* the number of a thread in its row of whole warps: a 32nd of it is one of a warp */
} MVar;

typedef struct MFun {
    MName name;
    size_t from, to; /* tokens of the body, braces included */
    size_t head;     /* the token behind the name, which opens the parameters */
    VEC(MVar) var;   /* parameters first */
    size_t params;
    int demand, of_param[MEET_PARAMS];
    int answer;      /* level of what it returns or writes, when that of all arguments is EVEN */
    struct MFun *in; /* a lambda stands in it */
    bool kernel;
    int64_t lanes, units; /* enum { THREADS, UNITS } of the body; 0 */
} MFun;

typedef struct Meet {
    Arena *arena;
    VEC(MName) token;
    VEC(MFun) fun;
    VEC(MName) form; /* names that angle brackets may follow */
    MLevel *exit;    /* by token: of a loop, how its rounds may end early */
    size_t places;
    bool changed, tell;
    char why[400];
} Meet;

/* Where a walk is. */
typedef struct MWalk {
    const struct MWalk *outer; /* of the loop around this one */
    MFun *f;
    size_t loop;     /* token of the innermost, SIZE_MAX */
    size_t from, to; /* of the innermost block */
    MLevel skip;     /* of `continue` before, in this round; of `return` before */
    MLevel *gone;
} MWalk;

static bool m_is(const Meet *m, size_t i, const char *s)
{
    return i < m->token.n && m->token.v[i].n == strlen(s) && !memcmp(m->token.v[i].s, s, m->token.v[i].n);
}
static bool m_same(MName a, MName b) { return a.n == b.n && !memcmp(a.s, b.s, a.n); }
static bool m_word(const Meet *m, size_t i)
{
    return isalpha((unsigned char)*m->token.v[i].s) || *m->token.v[i].s == '_';
}
static bool m_one_of(const Meet *m, size_t i, const char *const *list)
{
    for (; *list; list++)
        if (m_is(m, i, *list))
            return true;
    return false;
}

static MLevel m_join(MLevel a, MLevel b) { return (MLevel){a.at > b.at ? a.at : b.at, a.param | b.param}; }

static bool m_raise(Meet *m, MLevel *to, MLevel by)
{
    MLevel now = m_join(*to, by);
    bool more = now.at != to->at || now.param != to->param;
    *to = now;
    m->changed = m->changed || more;
    return more;
}

static void m_tokens(Meet *m, const char *s)
{
    static const char *const signs[] = {"<<=", ">>=", "...", "&&", "||", "==", "!=", "<=", ">=", "+=", "-=",
                                        "*=",  "/=",  "%=",  "&=", "|=", "^=", "++", "--", "->", "::", "<<"};
    while (*s) {
        const char *from = s;
        if (isspace((unsigned char)*s)) {
            s++;
            continue;
        }
        if (*s == '"') {
            for (s++; *s && *s != '"'; s++)
                s += *s == '\\';
            s++;
        } else if (isalnum((unsigned char)*s) || *s == '_') {
            while (isalnum((unsigned char)*s) || *s == '_' || *s == '.')
                if (*s == '.' && !isdigit((unsigned char)*from))
                    break;
                else
                    s++;
        } else if (*s == '#') { /* a pragma, or a line number */
            while (*s && *s != '\n')
                s++;
            continue;
        } else {
            size_t k = 0;
            while (k < COUNT_OF(signs) && strncmp(s, signs[k], strlen(signs[k])) != 0)
                k++;
            s += k < COUNT_OF(signs) ? strlen(signs[k]) : 1;
        }
        vec_push(m->arena, &m->token, ((MName){from, (size_t)(s - from)}));
    }
}

/* Behind the bracket that closes the one at i. */
static size_t m_close(const Meet *m, size_t i)
{
    int depth = 0;
    for (; i < m->token.n; i++) {
        char c = m->token.v[i].n == 1 ? *m->token.v[i].s : 0;
        depth += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
        if (depth == 0)
            return i + 1;
    }
    return i;
}

/* Behind angle brackets that follow a name of a form at i - 1; i where there are none. */
static size_t m_angles(const Meet *m, size_t i)
{
    int depth = 0;
    if (!m_is(m, i, "<"))
        return i;
    for (size_t k = i; k < m->token.n; k++) {
        if (m_is(m, k, "(") || m_is(m, k, "[")) {
            k = m_close(m, k) - 1;
            continue;
        }
        depth += m_is(m, k, "<") - m_is(m, k, ">");
        if (depth == 0)
            return k + 1;
    }
    return i;
}

static bool m_form(const Meet *m, size_t i)
{
    for (size_t k = 0; k < m->form.n; k++)
        if (m_same(m->form.v[k], m->token.v[i]))
            return true;
    return false;
}

/* The token behind what begins at i: a bracketed group, or a form with its angle brackets, is one. */
static size_t m_next(const Meet *m, size_t i)
{
    if (m_is(m, i, "(") || m_is(m, i, "[") || m_is(m, i, "{"))
        return m_close(m, i);
    return m_word(m, i) && m_form(m, i) ? m_angles(m, i + 1) : i + 1;
}

/* The variable that the token names there: that of the innermost block. */
static MVar *m_var(const Meet *m, MFun *f, size_t at)
{
    MVar *found = NULL;
    for (; f && !found; f = f->in)
        for (size_t i = 0; i < f->var.n; i++) {
            MVar *v = &f->var.v[i];
            if (v->from <= at && at < v->to && (!found || v->from > found->from) && m_same(v->name, m->token.v[at]))
                found = v;
        }
    return found;
}

static MVar *m_declare(Meet *m, MFun *f, size_t name, size_t from, size_t to)
{
    for (size_t i = 0; i < f->var.n; i++)
        if (f->var.v[i].from == from && m_same(f->var.v[i].name, m->token.v[name]))
            return &f->var.v[i];
    vec_push(m->arena, &f->var, ((MVar){.name = m->token.v[name], .from = from, .to = to}));
    return &f->var.v[f->var.n - 1];
}

/* Behind the statement at i. */
static size_t m_behind(const Meet *m, size_t i)
{
    if (m_is(m, i, "{"))
        return m_close(m, i);
    if (m_is(m, i, "if")) {
        i = m_behind(m, m_close(m, m_is(m, i + 1, "constexpr") ? i + 2 : i + 1));
        return m_is(m, i, "else") ? m_behind(m, i + 1) : i;
    }
    if (m_is(m, i, "for") || m_is(m, i, "while"))
        return m_behind(m, m_close(m, i + 1));
    while (i < m->token.n && !m_is(m, i, ";"))
        i = m_next(m, i);
    return i + 1;
}

/* ---- functions ---- */

/* Parameters between the parentheses at f->head. A name stands before a comma, the end, `[` or `)` of a pointer to rows. */
static void m_params(Meet *m, MFun *f)
{
    size_t end = m_close(m, f->head) - 1;
    for (size_t i = f->head + 1; i < end;) {
        size_t from = i, name = SIZE_MAX;
        bool memory = false, refers = false, constant = false;
        for (; i < end && !m_is(m, i, ","); i = m_is(m, i, "(") || m_is(m, i, "[") ? i + 1 : m_next(m, i)) {
            memory |= m_is(m, i, "*");
            refers |= m_is(m, i, "&");
            constant |= m_is(m, i, "const");
            if (m_word(m, i) && name != SIZE_MAX && m_is(m, i - 1, "]"))
                continue;
            if (m_word(m, i) && (i + 1 == end || m_is(m, i + 1, ",") || m_is(m, i + 1, ")") || m_is(m, i + 1, "[")))
                name = i;
        }
        MVar v = {.from = f->head,
                  .to = f->to,
                  .memory = memory,
                  .result = refers && !constant,
                  .name = name == SIZE_MAX || name == from ? (MName){"", 0} : m->token.v[name]};
        v.level.param = f->kernel ? 0 : 1ull << f->params % MEET_PARAMS; /* a kernel's are EVEN */
        vec_push(m->arena, &f->var, v);
        f->params++;
        i += i < end;
    }
}

static void m_add(Meet *m, MFun f)
{
    f.demand = NOWHERE;
    for (int i = 0; i < MEET_PARAMS; i++)
        f.of_param[i] = NOWHERE;
    vec_push(m->arena, &m->fun, f);
}

/* All functions of the text, wherever they stand but in other functions. */
static void m_functions(Meet *m)
{
    for (size_t i = 0; i < m->token.n; i++) {
        if (m_is(m, i, "template")) {
            size_t behind = m_angles(m, i + 1);
            size_t k = behind + m_is(m, behind, "struct"), name = SIZE_MAX;
            if (m_is(m, k, "__align__"))
                k = m_close(m, k + 1);
            if (m_is(m, behind, "struct"))
                name = k;
            while (name == SIZE_MAX && k < m->token.n && !m_is(m, k, "{") && !m_is(m, k, ";")) {
                if (m_is(m, k, "("))
                    name = k - 1;
                k = m_is(m, k, "<") ? m_angles(m, k) : k + 1;
            }
            if (name != SIZE_MAX && m_word(m, name) && !m_form(m, name))
                vec_push(m->arena, &m->form, m->token.v[name]);
            i = behind - 1;
        }
    }
    bool kernel = false;
    for (size_t i = 0; i < m->token.n; i++) {
        if (m_is(m, i, "__global__"))
            kernel = true;
        if (m_is(m, i, "{") || m_is(m, i, ";")) {
            if (m_is(m, i, "{"))
                i = m_is(m, i - 1, "\"C\"") ? i : m_close(m, i) - 1; /* a struct, an enum */
            kernel = false;
            continue;
        }
        if (!m_is(m, i, "(") || i == 0 || !m_word(m, i - 1) || m_is(m, i - 1, "__launch_bounds__") ||
            m_is(m, i - 1, "__align__")) {
            if (m_is(m, i, "("))
                i = m_close(m, i) - 1;
            continue;
        }
        size_t body = m_close(m, i);
        if (m_is(m, body, "{")) {
            MFun f = {.name = m->token.v[i - 1], .head = i, .from = body, .to = m_close(m, body), .kernel = kernel};
            m_params(m, &f);
            m_add(m, f);
            i = f.to - 1;
        } else {
            i = body - 1;
        }
        kernel = false;
    }
}

/* `NAME = [&](..) {..}` inside of functions, as functions that stand in them; and the sizes that divide threads. */
static void m_lambdas(Meet *m)
{
    size_t n = m->fun.n;
    for (size_t k = 0; k < n; k++)
        for (size_t i = m->fun.v[k].from; i < m->fun.v[k].to; i++) {
            MFun *f = &m->fun.v[k];
            if (m_is(m, i, "THREADS") && m_is(m, i + 1, "=") && !f->lanes)
                f->lanes = strtoll(m->token.v[i + 2].s, NULL, 0);
            if (m_is(m, i, "UNITS") && m_is(m, i + 1, "=") && !f->units)
                f->units = strtoll(m->token.v[i + 2].s, NULL, 0);
            if (!m_is(m, i, "=") || !m_is(m, i + 1, "[") || !m_is(m, i + 2, "&"))
                continue;
            MFun g = {
                .name = m->token.v[i - 1], .head = i + 4, .kernel = true}; /* its parameters: what calls give them */
            g.from = m_close(m, g.head), g.to = m_close(m, g.from);
            m_params(m, &g);
            g.kernel = false;
            m_add(m, g);
        }
    for (size_t k = n; k < m->fun.n; k++) /* now they stay where they are */
        for (size_t j = 0; j < n; j++)
            if (m->fun.v[j].from < m->fun.v[k].from && m->fun.v[k].to < m->fun.v[j].to)
                m->fun.v[k].in = &m->fun.v[j];
}

/* A lambda of this function, or a function; NULL: neither. Overloads follow one another: `after` is the one before. */
static MFun *m_called(Meet *m, const MFun *f, MName name, const MFun *after)
{
    for (size_t i = after ? (size_t)(after - m->fun.v) + 1 : 0; i < m->fun.n; i++) {
        MFun *g = &m->fun.v[i];
        bool seen = !g->in || g->in == f || g->in == f->in;
        if (seen && m_same(g->name, name))
            return g;
    }
    return NULL;
}

/* ---- what happens in a function ---- */

static MLevel m_expression(Meet *m, MWalk *w, size_t from, size_t to, MLevel control);

static void m_meet(Meet *m, MWalk *w, size_t at, int demand, MLevel control, const char *what)
{
    control = m_join(control, m_join(w->skip, *w->gone));
    if (control.at > demand && m->tell && !m->why[0]) {
        size_t from = at > 12 ? at - 12 : 0, to = at + 12 < m->token.n ? at + 12 : m->token.n - 1;
        snprintf(m->why, sizeof m->why, "in `%.*s` not all threads of a %s reach %s: %.*s", (int)w->f->name.n,
                 w->f->name.s, demand == EVEN ? "block" : "warp", what, (int)(m->token.v[to].s - m->token.v[from].s),
                 m->token.v[from].s);
    }
    if (demand < w->f->demand)
        w->f->demand = demand, m->changed = true;
    MFun *f = w->f->in ? w->f->in : w->f; /* a lambda knows the parameters around it */
    for (int i = 0; i < MEET_PARAMS; i++)
        if (control.param >> i & 1 && demand < f->of_param[i])
            f->of_param[i] = demand, m->changed = true;
}

/* Text of assembly that all threads of a warp, or of a block, have to execute together. */
static int m_assembly(const Meet *m, size_t i)
{
    MName t = m->token.v[i];
    for (size_t k = 0; k + 8 <= t.n; k++)
        if (!memcmp(t.s + k, ".aligned", 8) || (k + 5 <= t.n && !memcmp(t.s + k, ".sync", 5)))
            return WARP;
    return t.n > 4 && !memcmp(t.s, "\"bar", 4) ? EVEN : NOWHERE;
}

/* The arguments of a call whose parenthesis is at `open`, for each function that it may be. */
static MLevel m_call(Meet *m, MWalk *w, size_t name, size_t open, MLevel control)
{
    static const char *const warps[] = {"__syncwarp",       "__shfl_sync",    "__shfl_xor_sync",
                                        "__shfl_down_sync", "__shfl_up_sync", "__ballot_sync",
                                        "__any_sync",       "__all_sync",     NULL};
    static const char *const ALIKE[] = {"vwn_warp_sum", "vwn_warp_max", "__ballot_sync", "__any_sync", NULL};
    size_t end = m_close(m, open) - 1;
    MLevel arg[MEET_PARAMS] = {{0}}, all = {0};
    size_t n = 0, start[MEET_PARAMS + 1] = {open + 1};
    for (size_t i = open + 1; i <= end && n + 1 < MEET_PARAMS; i = i < end ? m_next(m, i) : i + 1)
        if (i == end || m_is(m, i, ",")) {
            if (i > start[n]) {
                arg[n] = m_expression(m, w, start[n], i, control);
                all = m_join(all, arg[n++]);
            }
            start[n] = i + 1;
        }
    if (m_is(m, name, "__syncthreads")) {
        m_meet(m, w, name, EVEN, control, "a barrier");
        m->places += m->tell;
        return (MLevel){0};
    }
    if (m_one_of(m, name, warps)) {
        m_meet(m, w, name, WARP, control, "what a warp does together");
        m->places += m->tell;
    }
    for (size_t i = open; m_is(m, name, "asm") && i < end; i++)
        if (*m->token.v[i].s == '"' && m_assembly(m, i) < NOWHERE) {
            m_meet(m, w, i, m_assembly(m, i), control, "an instruction that is `.aligned`");
            m->places += m->tell;
        }
    bool known = false;
    for (MFun *g = NULL; (g = m_called(m, w->f, m->token.v[name], g));) {
        known = true;
        if (g->demand < NOWHERE)
            m_meet(m, w, name, g->demand, control, "a function in which threads meet");
        for (size_t i = 0; i < n && i < g->params; i++) {
            MVar *p = &g->var.v[i];
            if (g->of_param[i] < NOWHERE)
                m_meet(m, w, name, g->of_param[i], arg[i], "a function whose condition it is");
            if (g->in)
                m_raise(m, &p->level, arg[i]);
            MVar *v = i < n && m_word(m, start[i]) ? m_var(m, w->f, start[i]) : NULL;
            if (v && v->array)
                m_raise(m, &v->level, (MLevel){LANE, 0});
            if (v && p->result)
                m_raise(m, &v->level, m_join(g->in ? p->level : (MLevel){g->answer, 0}, m_join(all, control)));
        }
        all.at = all.at > g->answer ? all.at : g->answer;
    }
    if (!known) /* a function of a device, or a type: what it is made of */
        for (size_t i = 0; i < n; i++) {
            MVar *v = m_word(m, start[i]) ? m_var(m, w->f, start[i]) : NULL;
            if (v && v->array)
                m_raise(m, &v->level, (MLevel){LANE, 0});
        }
    if (m_is(m, name, "vwn_thread")) /* threadIdx.x, read by an instruction */
        return (MLevel){LANE, 0};
    if (m_is(m, name, "vwn_first_seen")) /* a minimum over all lanes of what every warp reads alike */
        return arg[0].at == EVEN && arg[1].at == EVEN ? m_join(arg[0], arg[1]) : (MLevel){LANE, 0};
    if (m_one_of(m, name, ALIKE))
        return (MLevel){WARP, 0};
    if (m_is(m, name, "__shfl_sync") || m_is(m, name, "vwn_from_lane")) { /* of one lane, which all of a warp know */
        MLevel lane = arg[n ? n - 1 : 0];
        return lane.at <= WARP ? (MLevel){WARP, lane.param} : (MLevel){LANE, 0};
    }
    return all;
}

/* Nothing is done to it before it is divided. */
static bool m_first(const Meet *m, size_t i)
{
    return i == 0 || (!m_is(m, i - 1, "*") && !m_is(m, i - 1, "/") && !m_is(m, i - 1, "%"));
}

/* A whole number of warps. */
static bool m_warps(const Meet *m, const MFun *f, size_t i)
{
    int64_t n = m_is(m, i, "THREADS")                      ? f->lanes
                : isdigit((unsigned char)*m->token.v[i].s) ? strtoll(m->token.v[i].s, NULL, 0)
                                                           : 0;
    return n > 0 && n % 32 == 0;
}

/* The level of tokens, and of what is called among them; where a call stands behind &&, || or ?, what is before decides. */
static MLevel m_expression(Meet *m, MWalk *w, size_t from, size_t to, MLevel control)
{
    MLevel all = {0};
    for (size_t i = from; i < to;) {
        if (m_is(m, i, "&&") || m_is(m, i, "||") || m_is(m, i, "?"))
            control = m_join(control, all);
        if (m_is(m, i, "[") && m_is(m, i + 1, "&") &&
            m_is(m, i + 2, "]")) { /* a lambda without a name, called by nobody knows whom */
            size_t body = m_close(m, i + 3), end = m_close(m, body);
            all = m_join(all, m_expression(m, w, body + 1, end - 1, (MLevel){LANE, 0}));
            i = end;
            continue;
        }
        if (m_is(m, i, "threadIdx")) {
            int level = LANE;
            if (m_first(m, i) && m_is(m, i + 3, "/") && m_warps(m, w->f, i + 4)) {
                level = m_is(m, i + 4, "THREADS") && w->f->units == 1 ? EVEN
                                                                      : WARP; /* a block has THREADS * UNITS threads */
                i += 2;
            }
            all = m_join(all, (MLevel){level, 0});
            i += 3;
            continue;
        }
        if (m_word(m, i) && (i == 0 || (!m_is(m, i - 1, ".") && !m_is(m, i - 1, "->")))) {
            size_t open = m_form(m, i) ? m_angles(m, i + 1) : i + 1;
            bool qualified = m_is(m, i + 1, "volatile"); /* asm volatile( */
            if (qualified)
                open = i + 2;
            if (open < to && m_is(m, open, "(") && !m_is(m, i, "sizeof")) {
                all = m_join(all, m_call(m, w, i, open, control));
                const MVar *v = m_var(m, w->f, i);
                all = v ? m_join(all, v->level) : all;
                i = m_close(m, open);
                continue;
            }
            const MVar *v = m_var(m, w->f, i);
            if (v && v->counts && m_is(m, i + 1, "/") && m_first(m, i) && m_warps(m, w->f, i + 2)) {
                all = m_join(all, (MLevel){WARP, 0});
                i += 3;
                continue;
            }
            all = v ? m_join(all, v->level) : all;
            i = open > i + 1 && !qualified ? open : i + 1;
            continue;
        }
        i++;
    }
    return all;
}

/* One expression or one declarator, up to a comma: what is assigned has the level of all of it. `type`: it is declared. */
static void m_piece(Meet *m, MWalk *w, size_t from, size_t to, MLevel control, bool declares, bool shared)
{
    static const char *const stores[] = {
        "=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "++", "--", NULL};
    MLevel all = m_join(m_expression(m, w, from, to, control), control);
    size_t first = SIZE_MAX;
    for (size_t i = from; i < to && first == SIZE_MAX; i = m_next(m, i))
        if (m_one_of(m, i, stores))
            first = i;
    size_t end = first == SIZE_MAX ? to : first;
    if (declares) { /* [const] T *const NAME [..] [= or {..}]: the last word that no bracket encloses, or that of (*NAME) */
        size_t name = SIZE_MAX;
        bool memory = shared, array = false;
        for (size_t i = from; i < end; i = m_next(m, i)) {
            if (m_is(m, i, "{"))
                break;
            memory |= m_is(m, i, "*");
            array |= m_is(m, i, "[");
            if (m_word(m, i) && !m_is(m, i, "__align__") && !m_is(m, i, "const"))
                name = i;
        }
        if (name == SIZE_MAX)
            return;
        MVar *v = m_declare(m, w->f, name, w->from, w->to);
        v->memory = v->memory || memory;
        v->array = v->array || (array && !memory);
        v->counts = m_is(m, from, "const") && m_is(m, end + 1, "threadIdx") && m_is(m, end + 4, "%") &&
                    m_warps(m, w->f, end + 5) && end + 6 == to;
        if (!shared && (first != SIZE_MAX || m_is(m, end - 1, "}")))
            m_raise(m, &v->level, all);
        return;
    }
    for (size_t i = from; i < to; i = i + 1) {
        if (!m_one_of(m, i, stores))
            continue;
        bool prefix = (m_is(m, i, "++") || m_is(m, i, "--")) && i + 1 < to && m_word(m, i + 1) &&
                      (i == from || !m_word(m, i - 1));
        size_t base = prefix ? i + 1 : i;
        bool places = false, through = false; /* [..], .x; *p */
        while (!prefix && base > from) {      /* back over the place that is stored to */
            base--;
            if (m_is(m, base, "]") || m_is(m, base, ")")) {
                int depth = 0;
                places |= m_is(m, base, "]");
                for (;; base--) {
                    depth += m_is(m, base, "]") + m_is(m, base, ")") - m_is(m, base, "[") - m_is(m, base, "(");
                    if (!depth || base == from)
                        break;
                }
                continue;
            }
            if (m_word(m, base) && (base == from || (!m_is(m, base - 1, ".") && !m_is(m, base - 1, "->"))))
                break;
        }
        through = base > from && m_is(m, base - 1, "*") && (base - 1 == from || !m_word(m, base - 2));
        MVar *v = m_word(m, base) ? m_var(m, w->f, base) : NULL;
        if (v && !(v->memory && (places || through)))
            m_raise(m, &v->level, all);
        if (v && v->result)
            w->f->answer = all.at > w->f->answer ? (m->changed = true, all.at) : w->f->answer;
    }
}

static bool m_declares(const Meet *m, size_t from, size_t to)
{
    static const char *const types[] = {
        "const",  "int",    "bool",     "auto",     "real",    "integer",  "bf16",    "fp16",     "elem",
        "float",  "double", "unsigned", "uint32_t", "int32_t", "uint64_t", "int64_t", "uint16_t", "__shared__",
        "number", "given",  "static",   "extern",   "E",       "T",        "F",       NULL};
    if (m_one_of(m, from, types) && (from + 1 >= to || !m_is(m, from + 1, "(")))
        return true;
    if (m_word(m, from) && m_word(m, from + 1)) /* constexpr int i, vwn_two x */
        return true;
    return m_word(m, from) && m_form(m, from) && m_next(m, from) < to && m_word(m, m_next(m, from)); /* vec<4> y */
}

static void m_simple(Meet *m, MWalk *w, size_t from, size_t to, MLevel control)
{
    if (from >= to)
        return;
    bool declares = m_declares(m, from, to), shared = m_is(m, from, "__shared__") || m_is(m, from, "extern");
    size_t begin = from;
    for (size_t i = from; i <= to; i = i < to ? m_next(m, i) : i + 1)
        if (i == to || m_is(m, i, ",")) {
            m_piece(m, w, begin, i, control, declares, shared);
            begin = i + 1;
        }
}

static size_t m_statement(Meet *m, MWalk *w, size_t i, MLevel control);

static size_t m_loop(Meet *m, MWalk *w, size_t i, MLevel control)
{
    size_t open = i + 1, close = m_close(m, open) - 1, part[3] = {open + 1, close, close}, n = 1;
    for (size_t k = open + 1; k < close && n < 3; k = m_next(m, k))
        if (m_is(m, k, ";"))
            part[n++] = k + 1;
    bool counts = m_is(m, i, "for");
    size_t from = counts ? part[1] : open + 1, to = counts ? part[2] - 1 : close;
    MWalk in = *w;
    in.loop = i;
    in.outer = w;
    in.from = i;
    in.to = m_behind(m, i);
    if (counts)
        m_simple(m, &in, part[0], part[1] - 1, control);
    control = m_join(control, m_expression(m, &in, from, to, control));
    control = m_join(control, m->exit[i]);
    size_t end = m_statement(m, &in, close + 1, control);
    if (counts)
        m_simple(m, &in, part[2], close, control);
    return end;
}

static size_t m_statement(Meet *m, MWalk *w, size_t i, MLevel control)
{
    MLevel here = m_join(control, m_join(w->skip, *w->gone));
    if (m_is(m, i, ";"))
        return i + 1;
    if (m_is(m, i, "{")) {
        size_t end = m_close(m, i), from = w->from, to = w->to;
        w->from = i, w->to = end;
        for (i++; i < end - 1;)
            i = m_statement(m, w, i, control);
        w->from = from, w->to = to;
        return end;
    }
    if (m_is(m, i, "if")) {
        size_t open = m_is(m, i + 1, "constexpr") ? i + 2 : i + 1, close = m_close(m, open);
        MLevel c = m_join(control, m_expression(m, w, open + 1, close - 1, control));
        i = m_statement(m, w, close, c);
        return m_is(m, i, "else") ? m_statement(m, w, i + 1, c) : i;
    }
    if (m_is(m, i, "for") || m_is(m, i, "while"))
        return m_loop(m, w, i, control);
    if (m_is(m, i, "switch") || m_is(m, i, "do") || m_is(m, i, "goto") || m_is(m, i, "try")) {
        snprintf(m->why, sizeof m->why, "`%.*s`, which is not looked into", (int)m->token.v[i].n, m->token.v[i].s);
        return m->token.n;
    }
    size_t end = m_behind(m, i) - 1;
    if (m_is(m, i, "break")) {
        m_raise(m, &m->exit[w->loop], here);
    } else if (m_is(m, i, "continue")) {
        w->skip = m_join(w->skip, control);
    } else if (m_is(m, i, "return")) {
        MLevel x = m_expression(m, w, i + 1, end, control);
        int answer = m_join(x, here).at;
        if (answer > w->f->answer)
            w->f->answer = answer, m->changed = true;
        for (const MWalk *k = w; k->loop != SIZE_MAX; k = k->outer)
            m_raise(m, &m->exit[k->loop], here);
        *w->gone = m_join(*w->gone, control);
    } else if (!m_is(m, i, "enum") && !m_is(m, i, "typedef") &&
               !(m_is(m, i + 2, "=") && m_is(m, i + 3, "[") && m_is(m, i + 4, "&")) &&
               !(m_is(m, i + 1, "auto") && m_is(m, i + 4, "[") && m_is(m, i + 5, "&"))) {
        m_simple(m, w, i, end, control);
    }
    return end + 1;
}

static void m_walk(Meet *m, MFun *f)
{
    MLevel gone = {0};
    MWalk w = {.f = f, .loop = SIZE_MAX, .from = f->from, .to = f->to, .gone = &gone};
    m_statement(m, &w, f->from, (MLevel){0});
}

/* True: at each of *places all threads arrive; else `why`, at least 400 bytes. `text` stays. */
static bool meet_check(Arena *arena, const char *text, size_t *places, size_t *kernels, char *why)
{
    Meet m = {.arena = arena};
    m_tokens(&m, text);
    m.exit = NEW_ARRAY(arena, MLevel, m.token.n + 1);
    m_functions(&m);
    m_lambdas(&m);
    do {
        m.changed = false;
        for (size_t i = 0; i < m.fun.n; i++)
            m_walk(&m, &m.fun.v[i]);
    } while (m.changed);
    m.tell = true;
    *kernels = 0;
    for (size_t i = 0; i < m.fun.n; i++) {
        m_walk(&m, &m.fun.v[i]);
        *kernels += m.fun.v[i].kernel;
    }
    *places = m.places;
    memcpy(why, m.why, sizeof m.why);
    return !m.why[0];
}

#endif
