/* run.c - see ptx.h: a launch, block by block; warps in any order, threads that went apart in the order of the seed. */
#include "code.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Noreturn void fault(const Warp *w, const Inst *i, const char *what, ...)
{
    const Block *b = w->block;
    va_list rest;
    int n = snprintf(b->why, PTX_WHY, "%s, line %u, %s, block %u, warp %d: ", b->f->name, i->line, i->name, b->index,
                     w->index);
    va_start(rest, what);
    vsnprintf(b->why + n, PTX_WHY - (size_t)n, what, rest);
    va_end(rest);
    longjmp(*b->out, 1);
}

uint32_t chance(Block *b, uint32_t n)
{
    b->random = b->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(b->random >> 33) % n;
}

/* ---- what threads of a warp do together ---- */

Run warp_sync, shuffle_bfly, shuffle_idx, shuffle_up, shuffle_down, vote_any, vote_all, vote_ballot, match_any,
    redux_add;
void warp_sync(Warp *w, const Inst *i)
{
    (void)i;
    order_met(w);
}

typedef enum Way { BFLY, IDX, UP, DOWN } Way;
static void shuffle(Warp *w, const Inst *i, Way way)
{
    uint32_t from[LANES], ok = 0, *d = AT(uint32_t, 0);
    memcpy(from, AT(uint32_t, 1), sizeof from);
    for (uint32_t m = w->mask; m; m &= m - 1) {
        const int l = __builtin_ctz(m);
        const int b = (int)AT(uint32_t, 2)[l] & 31, c = (int)AT(uint32_t, 3)[l], clamp = c & 31, part = c >> 8 & 31;
        const int most = (l & part) | (clamp & ~part), least = l & part;
        int j = way == BFLY ? l ^ b : way == IDX ? least | (b & ~part) : way == UP ? l - b : l + b;
        const bool in = way == UP ? j >= most : j <= most;
        j = in ? j : l;
        if (!(w->mask >> j & 1))
            fault(w, i, "lane %d reads of lane %d, which takes no part", l, j);
        d[l] = from[j];
        ok |= (uint32_t)in << l;
    }
    if (i->shift >= 0) {
        uint32_t *p = (uint32_t *)(void *)(w->file + i->shift);
        *p = (*p & ~w->mask) | ok;
    }
}
void shuffle_bfly(Warp *w, const Inst *i) { shuffle(w, i, BFLY); }
void shuffle_idx(Warp *w, const Inst *i) { shuffle(w, i, IDX); }
void shuffle_up(Warp *w, const Inst *i) { shuffle(w, i, UP); }
void shuffle_down(Warp *w, const Inst *i) { shuffle(w, i, DOWN); }

static uint32_t voted(Warp *w, const Inst *i) { return *AT(uint32_t, 1) & w->mask; }
static void decided(Warp *w, const Inst *i, bool all)
{
    uint32_t *d = AT(uint32_t, 0);
    *d = (*d & ~w->mask) | (all ? w->mask : 0);
}
void vote_any(Warp *w, const Inst *i) { decided(w, i, voted(w, i) != 0); }
void vote_all(Warp *w, const Inst *i) { decided(w, i, voted(w, i) == w->mask); }
void vote_ballot(Warp *w, const Inst *i)
{
    const uint32_t x = voted(w, i);
    EACH_LANE(AT(uint32_t, 0)[l] = x);
}
void match_any(Warp *w, const Inst *i)
{
    uint32_t d[LANES] = {0};
    EACH_LANE(for (int k = 0; k < LANES; k++) if (w->mask >> k & 1 && AT(uint32_t, 1)[k] == AT(uint32_t, 1)[l]) d[l] |=
              1u << k);
    EACH_LANE(AT(uint32_t, 0)[l] = d[l]);
}
void redux_add(Warp *w, const Inst *i)
{
    uint32_t sum = 0;
    for (uint32_t m = w->mask; m; m &= m - 1)
        sum += AT(uint32_t, 1)[__builtin_ctz(m)];
    EACH_LANE(AT(uint32_t, 0)[l] = sum);
}

/* ---- pieces ---- */

static void drop_piece(Warp *w, int k) { w->piece[k] = w->piece[--w->n_piece]; }

/* Those that are at the same place become one. Returns where piece k is now. */
static int join(Warp *w, int k)
{
    for (int q = 0; q < w->n_piece; q++)
        if (q != k && w->piece[q].at == w->piece[k].at && w->piece[q].waits == w->piece[k].waits &&
            !w->piece[q].arrived) {
            w->piece[k].lanes |= w->piece[q].lanes;
            drop_piece(w, q);
            if (k == w->n_piece)
                k = q;
            q = -1;
        }
    return k;
}

static bool ready(const Piece *p) { return !p->waits && !p->idle; }

/* Which piece goes on; -1: none can. */
static int choose(Warp *w)
{
    Block *b = w->block;
    int best = -1, n = 0;
    const int how = b->apart;
    for (int k = 0; k < w->n_piece; k++) {
        const Piece *p = &w->piece[k];
        if (!ready(p))
            continue;
        n++;
        if (best < 0 || (how == LOWEST_FIRST && p->at < w->piece[best].at) ||
            (how == HIGHEST_FIRST && p->at > w->piece[best].at) || (how == ANY_FIRST && chance(b, (uint32_t)n) == 0))
            best = k;
    }
    return best;
}

/* ---- barriers ---- */

static void barrier_arrive(Warp *w, const Inst *i, uint32_t which, int expected)
{
    Block *b = w->block;
    Barrier *x = &b->barrier[which];
    if (w->alive != ALL_LANES && b->threads % LANES == 0)
        fault(w, i, "some threads of the warp have ended");
    if (x->arrived && x->expected != expected)
        fault(w, i, "threads wait at barrier %u for %d, and others for %d", which, x->expected, expected);
    x->expected = expected;
    x->arrived |= 1u << w->index;
    order_leave(w, x->known, x->known_fence);
    if (__builtin_popcount(x->arrived) * LANES < expected)
        return;
    for (int v = 0; v < b->n_warp; v++) {
        if (!(x->arrived >> v & 1))
            continue;
        Warp *u = &b->warp[v];
        order_learn(u, x->known, x->known_fence);
        order_met(u);
        u->piece[0].waits = u->piece[0].arrived = false;
        u->piece[0].at++;
    }
    *x = (Barrier){0};
}

/* All threads of the warp are here: which barrier, and for how many threads? */
static void barrier(Warp *w, const Inst *i)
{
    const Block *b = w->block;
    const uint32_t *which = AT(uint32_t, 0), *expected = i->at[1] ? AT(uint32_t, 1) : NULL;
    for (int l = 1; l < LANES; l++)
        if (w->mask >> l & 1 && (which[l] != which[0] || (expected && expected[l] != expected[0])))
            fault(w, i, "threads of a warp name different barriers");
    if (which[0] >= BARRIERS || (expected && (expected[0] % LANES || expected[0] > (uint32_t)b->threads)))
        fault(w, i, "barrier %u", which[0]);
    w->piece[0].arrived = true;
    barrier_arrive(w, i, which[0], expected ? (int)expected[0] : b->n_warp * LANES);
}

/* ---- a piece's turn ---- */

/* Threads that the instruction waits for. */
static uint32_t company(Warp *w, const Inst *i)
{
    if (i->kind != TOGETHER)
        return w->alive;
    const int last = (i->at[4] ? 4 : i->at[3] ? 3 : i->at[2] ? 2 : i->at[1] ? 1 : 0);
    const uint32_t *mask = AT(uint32_t, last), all = mask[__builtin_ctz(w->mask)];
    for (uint32_t m = w->mask; m; m &= m - 1) {
        const int l = __builtin_ctz(m);
        if (mask[l] != all || !(all >> l & 1))
            fault(w, i, "lane %d names threads %#x, and others %#x", l, mask[l], all);
    }
    if (all & ~w->alive)
        fault(w, i, "threads %#x are wanted, which have ended", all & ~w->alive);
    return all;
}

/* Threads of a piece are at something that they do with others. Returns whether it is done. */
static bool meet(Warp *w, int *k, const Inst *i)
{
    const uint32_t all = company(w, i);
    w->piece[*k].waits = true;
    *k = join(w, *k);
    Piece *p = &w->piece[*k];
    if ((all & ~p->lanes) != 0)
        return false;
    w->mask = p->lanes;
    if (i->kind == BARRIER) {
        barrier(w, i);
        return false;
    }
    p->waits = false;
    if (i->kind == TAKES && !setmaxnreg_take(w, i)) {
        p->idle = true;
        return false;
    }
    if (i->kind == GROUP && w->block->n_warp % 4)
        fault(w, i, "a block has no whole warpgroups");
    i->run(w, i);
    p->at++;
    return true;
}

static void split(Warp *w, int k, uint32_t lanes, uint32_t at)
{
    w->piece[k].lanes &= ~lanes;
    w->piece[w->n_piece++] = (Piece){.lanes = lanes, .at = at};
}

static bool elsewhere_first(Warp *w, int k)
{
    if (w->block->apart == ANY_FIRST)
        return chance(w->block, 4) == 0;
    for (int q = 0; q < w->n_piece; q++)
        if (q != k && ready(&w->piece[q]) &&
            (w->block->apart == LOWEST_FIRST ? w->piece[q].at < w->piece[k].at : w->piece[q].at > w->piece[k].at))
            return true;
    return false;
}

static void turn(Warp *w, int k, int steps)
{
    const Inst *code = w->block->f->code;
    while (steps-- > 0) {
        Piece *p = &w->piece[k];
        const Inst *i = &code[p->at];
        if (w->n_piece > 1 && i->leads) {
            k = join(w, k);
            if (elsewhere_first(w, k))
                return;
            p = &w->piece[k];
        }
        uint32_t m = p->lanes;
        if (i->guard >= 0) {
            const uint32_t g = *(const uint32_t *)(const void *)(w->file + i->guard);
            m &= i->negated ? ~g : g;
            if (!m) {
                p->at++;
                continue;
            }
        }
        w->mask = m;
        if (i->kind == PLAIN) {
            i->run(w, i);
            p->at++;
            continue;
        }
        if (m != p->lanes && i->kind != BRANCH) /* others go on without it */
            split(w, k, p->lanes & ~m, p->at + 1);
        p = &w->piece[k];
        switch ((Kind)i->kind) {
        case BRANCH:
            if (m != p->lanes) {
                split(w, k, m, i->to);
                if (w->block->apart == HIGHEST_FIRST || (w->block->apart == ANY_FIRST && chance(w->block, 2)))
                    return;
                p = &w->piece[k];
                p->at++;
            } else {
                p->at = i->to;
            }
            break;
        case EXIT:
            w->alive &= ~m;
            drop_piece(w, k);
            return;
        case TRY:
            i->run(w, i);
            p->at++;
            if (w->missed) {
                p->idle = true;
                return;
            }
            break;
        default:
            if (!meet(w, &k, i))
                return;
        }
    }
}

/* ---- blocks ---- */

static void fill(Warp *w, const Function *f)
{
    for (size_t k = 0; k < f->n_constant; k++) {
        const Constant *c = &f->constant[k];
        for (uint32_t l = 0; l < (c->bytes ? (uint32_t)LANES : 1); l++)
            memcpy(w->file + c->at + l * (c->bytes ? c->bytes : 4), &c->bits, c->bytes ? c->bytes : 4);
    }
}

static void set_special(Warp *w)
{
    const Block *b = w->block;
    for (int s = 0; s < SPECIALS; s++)
        for (int l = 0; b->f->special[s] && l < LANES; l++) {
            const uint32_t value[SPECIALS] = {[TID_X] = (uint32_t)(w->index * LANES + l),
                                              [NTID_X] = (uint32_t)b->threads,
                                              [CTAID_X] = b->index,
                                              [NCTAID_X] = (uint32_t)b->launch->blocks,
                                              [LANEID] = (uint32_t)l};
            ((uint32_t *)(void *)(w->file + b->f->special[s]))[l] = value[s];
        }
}

static void begin(Block *b)
{
    memset(b->state, UNWRITTEN, b->shared_bytes);
    memset(b->shared, 0xff, b->shared_bytes);
    memset(b->barrier, 0, sizeof b->barrier);
    memset(b->asked, 0, sizeof b->asked);
    b->n_mbarrier = b->n_box = 0;
    const uint32_t most = EMU_REGISTERS / (uint32_t)b->threads / EMU_REGISTERS_UNIT * EMU_REGISTERS_UNIT;
    b->free_registers = EMU_REGISTERS - most * (uint32_t)b->threads;
    for (int v = 0; v < b->n_warp; v++) {
        Warp *w = &b->warp[v];
        const int threads = b->threads - v * LANES;
        w->alive = threads < LANES ? (1u << threads) - 1 : ALL_LANES;
        w->n_piece = 1;
        w->piece[0] = (Piece){.lanes = w->alive};
        w->n_product = 0;
        w->groups = w->asked = 0;
        w->fenced = false;
        w->registers = (uint32_t)(emu_registers(b->threads) / EMU_REGISTERS_UNIT * EMU_REGISTERS_UNIT);
        copies_end(w);
        set_special(w);
    }
    order_begin(b);
}

/* Nobody can go on: a box that is under way comes, or all wait for ever. */
static void stuck(Block *b)
{
    if (b->n_box) {
        box_finish(b, chance(b, (uint32_t)b->n_box));
        return;
    }
    for (int v = 0; v < b->n_warp; v++)
        if (b->warp[v].n_piece) {
            const Warp *w = &b->warp[v];
            const Inst *i = &b->f->code[w->piece[0].at];
            fault(w, i, "threads %#x wait for ever%s", w->piece[0].lanes,
                  w->n_piece > 1 ? ", others of the warp elsewhere" : "");
        }
}

static void run_block(Block *b)
{
    enum { MOST_STEPS = 1 << 24 }; /* of all its warps: some hundred times what the longest takes */
    begin(b);
    b->steps = 0;
    for (;;) {
        int able[MAX_WARPS], n = 0, left = 0;
        for (int v = 0; v < b->n_warp; v++) {
            left += b->warp[v].n_piece > 0;
            for (int k = 0; k < b->warp[v].n_piece; k++)
                if (ready(&b->warp[v].piece[k])) {
                    able[n++] = v;
                    break;
                }
        }
        if (!left)
            return;
        if (b->n_box && b->late == BY_CHANCE && chance(b, 4) == 0)
            box_finish(b, chance(b, (uint32_t)b->n_box));
        if (!n) {
            stuck(b);
            continue;
        }
        Warp *w = &b->warp[able[chance(b, (uint32_t)n)]];
        const int steps = 64 + (int)chance(b, 1024);
        if ((b->steps += (uint64_t)steps) > MOST_STEPS)
            fault(w, &b->f->code[w->piece[0].at], "the block does not come to an end");
        turn(w, choose(w), steps);
    }
}

/* ---- a launch ---- */

static int by_place(const void *a, const void *b)
{
    const PtxMemory *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

static const Function *function_named(const PtxModule *m, const char *name)
{
    for (size_t i = 0; i < m->n; i++)
        if (!strcmp(m->function[i].name, name))
            return &m->function[i];
    return NULL;
}

static bool open_block(Block *b)
{
    const Function *f = b->f;
    b->threads = f->threads;
    b->n_warp = (f->threads + LANES - 1) / LANES;
    b->shared_bytes = (f->dynamic ? f->dynamic : f->shared) + (uint32_t)b->launch->shared;
    b->shared = malloc(b->shared_bytes);
    b->state = malloc(b->shared_bytes);
    b->parameter = calloc(1, f->parameter_bytes + 8);
    b->warp = calloc((size_t)b->n_warp, sizeof *b->warp);
    b->memory = malloc((b->launch->n_memory + 1) * sizeof *b->memory);
    if (!b->shared || !b->state || !b->parameter || !b->warp || !b->memory || !order_open(b))
        return false;
    memcpy(b->memory, b->launch->memory, b->launch->n_memory * sizeof *b->memory);
    qsort(b->memory, b->launch->n_memory, sizeof *b->memory, by_place);
    for (int v = 0; v < b->n_warp; v++) {
        Warp *w = &b->warp[v];
        w->block = b;
        w->index = v;
        w->file = aligned_alloc(64, (f->file + 63) / 64 * 64);
        w->local = calloc(LANES, f->local + 1);
        if (!w->file || !w->local)
            return false;
        memset(w->file, 0xff, f->file);
        fill(w, f);
    }
    return true;
}

static void close_block(Block *b)
{
    for (int v = 0; b->warp && v < b->n_warp; v++) {
        free(b->warp[v].file);
        free(b->warp[v].local);
        free(b->warp[v].copy);
    }
    free(b->shared);
    free(b->state);
    free(b->parameter);
    free(b->warp);
    free(b->memory);
    order_close(b);
}

static bool put_arguments(Block *b)
{
    const Function *f = b->f;
    const PtxLaunch *l = b->launch;
    if (f->n_parameter != l->n_argument + l->n_map)
        return false;
    for (size_t k = 0; k < l->n_argument; k++) {
        if (f->parameter[k].bytes != 8)
            return false;
        memcpy(b->parameter + f->parameter[k].at, l->argument[k], 8);
    }
    return true;
}

/* What a driver would refuse. */
static const char *refused(const Block *b)
{
    const PtxLaunch *l = b->launch;
    const uint32_t one[PTX_RANK] = {1, 1, 1, 1};
    enum { FP16 = 6, L2_128 = 2 };
    const unsigned grid[] = {(unsigned)l->blocks, 1, 1}, block[] = {(unsigned)b->f->threads, 1, 1};
    const char *wrong = emu_launch_wrong(grid, block, b->f->shared - EMU_SHARED_OWN + l->shared, EMU_SHARED);
    for (size_t k = 0; k < l->n_map && !wrong; k++) {
        _Alignas(EMU_MAP_ALIGN) static const char place[EMU_MAP_BYTES];
        const PtxMap *x = &l->map[k];
        wrong = emu_map_wrong(place, FP16, PTX_RANK, x->at, x->extent, x->stride + 1, x->box, one, 0,
                              EMU_MAP_TURNED_128, L2_128, 0);
    }
    return wrong;
}

bool ptx_launch(const PtxModule *m, const PtxLaunch *l, char why[PTX_WHY])
{
    jmp_buf out;
    Block *b = calloc(1, sizeof *b);
    volatile bool good = false;
    b->f = function_named(m, l->kernel);
    b->launch = l;
    b->out = &out;
    b->why = why;
    b->random = l->seed * 2654435761u + 1;
    b->late = (int)(l->seed % LATENESSES);
    b->apart = (int)(l->seed / LATENESSES % ORDERS);
    const char *wrong = b->f ? refused(b) : "there is no such kernel";
    if (wrong) {
        snprintf(why, PTX_WHY, "%s: %s", l->kernel, wrong);
    } else if (!open_block(b)) {
        snprintf(why, PTX_WHY, "%s: no memory", l->kernel);
    } else if (!put_arguments(b)) {
        snprintf(why, PTX_WHY, "%s has other arguments than the launch", l->kernel);
    } else if (!setjmp(out)) {
        for (int64_t k = 0, n = l->blocks; k < n; k++) { /* from any one on, in their order or the other one */
            const int64_t at = (k + (int64_t)(l->seed % (uint64_t)n)) % n;
            b->index = (uint32_t)(l->seed & 1 ? n - 1 - at : at);
            run_block(b);
        }
        good = true;
    }
    if (b->f)
        close_block(b);
    free(b);
    return good;
}
