/* ranks_seen.c - where the time of a run of several processes went.
 *
 * In:  a run directory.   Out: a row for each process, of a mean step, as a table or as JSON.
 * The one idea: a process computes, waits for others, or moves bytes; who computes longest is waited for.
 */
#include "compiler/report/report.h"
#include "runtime/checkpoint/source.h"
#include "look.h"
#include "run_state.h"

static void put_rows_json(Buf *b, const RunState *r, double steps, double rate)
{
    buf_printf(b, "{\"v\":1,\"event\":\"ranks\",\"steps\":%.0f,\"tokens_per_second\":", steps);
    buf_number(b, rate);
    buf_puts(b, ",\"ranks\":[");
    for (size_t i = 0; i < r->rank.n; i++) {
        const RankState *k = &r->rank.v[i];
        const struct {
            const char *name;
            double value;
        } of[] = {{"computing", k->computing / steps},
                  {"waiting", k->waiting / steps},
                  {"communicating", k->communicating / steps},
                  {"sent", k->sent / steps},
                  {"memory", k->memory}};
        buf_printf(b, "%s{\"rank\":%zu", i ? "," : "", i);
        for (size_t n = 0; n < COUNT_OF(of); n++) {
            buf_printf(b, ",\"%s\":", of[n].name);
            buf_number(b, of[n].value);
        }
        buf_puts(b, "}");
    }
    buf_puts(b, "]}\n");
}

static void put_rows(Buf *b, Arena *a, const RunState *r, double steps, double rate)
{
    static const char *const head[] = {"milliseconds of a step", "computing", "waiting",
                                       "communicating",          "sent",      "memory"};
    Table t = {.arena = a, .columns = 6};
    for (size_t i = 0; i < COUNT_OF(head); i++)
        vec_push(a, &t.cell, (Cell){head[i], i > 0});
    for (size_t i = 0; i < r->rank.n; i++) {
        const RankState *k = &r->rank.v[i];
        const double seconds[] = {k->computing, k->waiting, k->communicating};
        table_text(&t, arena_printf(a, "rank %zu", i));
        for (size_t n = 0; n < COUNT_OF(seconds); n++)
            vec_push(a, &t.cell, (Cell){arena_printf(a, "%.2f", 1e3 * seconds[n] / steps), true});
        vec_push(a, &t.cell, (Cell){bytes_text(a, k->sent / steps), true});
        vec_push(a, &t.cell, (Cell){bytes_text(a, k->memory), true});
    }
    table_print(b, &t);
    buf_printf(b, "  %zu processes, means of %.0f steps, the first among them; %.0f tokens a second at the end\n",
               r->rank.n, steps, rate);
}

Status ranks_seen(vwn_context *owner, const vwn_ranks_options *how, const vwn_writer *out)
{
    Session s = {0};
    session_open(&s, owner);
    const RunState r = run_state_read(&s, how->run);
    if (!r.rank.n)
        ctx_raise(s.ctx, ST_INPUT, "`%s` has no step of several processes", how->run);
    double steps = r.last.x[BY_STEP], rate = run_curve_last(&r, CURVE_RATE);
    Buf b = buf_new(s.arena);
    if (how->json)
        put_rows_json(&b, &r, steps, rate);
    else
        put_rows(&b, s.arena, &r, steps, rate);
    write_text(out, b.s, b.n);
    return session_end(&s, ST_OK);
}
