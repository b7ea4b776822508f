/* report_ranks.c - `vwn cost --ranks`: what each process of a run of several needs and sends.
 *
 * In:  figures that the runtime has planned.   Out: a section of a cost, as text or as JSON.
 * The one idea: a rank has all weights and gradients, and the states of what it updates; a step is exchanged when it is computed.
 */
#include "report.h"

double report_exchange_seconds(const ReportRanks *r)
{
    uint64_t most = 0;
    for (int i = 0; i < r->n; i++)
        most = r->of[i].sent > most ? r->of[i].sent : most;
    return r->bandwidth > 0 ? (double)most / r->bandwidth + (double)r->exchanges * r->latency : 0;
}

static void print_ranks_json(Buf *out, const ReportRanks *r)
{
    buf_printf(out, ",\"ranks\":[");
    for (int i = 0; i < r->n; i++)
        buf_printf(out,
                   "%s{\"rank\":%d,\"bytes_optimizer\":%llu,\"bytes_average\":%llu,\"bytes_exchange\":%llu,"
                   "\"bytes_arena\":%llu,\"bytes_total\":%llu,\"bytes_sent\":%llu}",
                   i ? "," : "", i, (unsigned long long)r->of[i].optimizer, (unsigned long long)r->of[i].average,
                   (unsigned long long)r->of[i].exchange, (unsigned long long)r->of[i].arena,
                   (unsigned long long)r->of[i].total, (unsigned long long)r->of[i].sent);
    buf_printf(out, "],\"exchanges\":%lld", (long long)r->exchanges);
    if (r->bandwidth > 0) {
        double seconds = report_exchange_seconds(r);
        buf_puts(out, ",\"time_exchange\":");
        buf_number(out, seconds);
        buf_puts(out, ",\"time_not_hidden\":");
        buf_number(out, seconds);
    }
}

void report_ranks(Buf *out, const ReportRanks *r, Arena *arena, bool json)
{
    if (json) {
        print_ranks_json(out, r);
        return;
    }
    Table t = {.arena = arena, .columns = 6};
    static const char *const head[] = {"", "optimizer", "average", "exchange", "peak", "sent in a step"};
    for (size_t i = 0; i < COUNT_OF(head); i++)
        vec_push(arena, &t.cell, (Cell){head[i], true});
    for (int i = 0; i < r->n; i++) {
        const RankCost *c = &r->of[i];
        const uint64_t bytes[] = {c->optimizer, c->average, c->exchange, c->total, c->sent};
        table_text(&t, arena_printf(arena, "rank %d", i));
        for (size_t k = 0; k < COUNT_OF(bytes); k++)
            vec_push(arena, &t.cell, (Cell){arena_printf(arena, "%llu B", (unsigned long long)bytes[k]), true});
    }
    buf_printf(out,
               "%d ranks: bytes of each; it has all weights and gradients, and the optimizer and average of what it "
               "updates\n",
               r->n);
    table_print(out, &t);
    buf_puts(out,
             "  sent, and received: gradients of others' parameters, 4 bytes each, and its own new weights to each "
             "of them\n");
    if (r->bandwidth <= 0)
        return;
    buf_printf(
        out,
        "  exchange of a step: %.3g ms: the most that a rank sends / %.3g B/s + %lld exchanges x %.3g s; none of "
        "it is hidden: nothing is computed meanwhile\n",
        1e3 * report_exchange_seconds(r), r->bandwidth, (long long)r->exchanges, r->latency);
}
