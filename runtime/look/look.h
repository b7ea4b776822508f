/* look.h - the work behind vwn_inspect, vwn_compare, vwn_runs, vwn_watch, vwn_diff, vwn_plot and others.
 *
 * In:  runs, checkpoints, files.   Out: what they hold, as a text or JSON. Each raises.
 */
#ifndef VWN_LOOK_H
#define VWN_LOOK_H

#include "runtime/exec/session.h"

Status inspect_growth(vwn_context *owner, const vwn_inspect_options *how, const vwn_writer *out, const Hooks *hooks);
Status inspect_inside(vwn_context *owner, const vwn_inside_options *how, const vwn_writer *text, const vwn_writer *json,
                      const Hooks *hooks);
Status tensor_stats(vwn_context *owner, const vwn_stats_options *how, const vwn_writer *out);
Status compare_runs(vwn_context *owner, const vwn_compare_options *how, const vwn_writer *out);
Status difference_of(vwn_context *owner, Unit *a, Unit *b, const vwn_diff_options *how, const vwn_writer *out,
                     const Hooks *hooks);
const char *difference_changes(Session *s, const FileText *then, const FileText *now); /* see Hooks */
Status runs_list(vwn_context *owner, const vwn_runs_options *how, const vwn_writer *out);
Status runs_each(vwn_context *owner, const char *const *operand, size_t n, void (*use)(void *user, const char *run),
                 void *user);
Status runs_label(vwn_context *owner, const vwn_label_options *how, const vwn_writer *out);
Status watch_run(vwn_context *owner, const vwn_watch_options *how, const vwn_writer *out, vwn_watched *seen);
Status ranks_seen(vwn_context *owner, const vwn_ranks_options *how, const vwn_writer *out);
Status export_events(vwn_context *owner, const vwn_export_options *how, const vwn_writer *out);
Status plot_curves(vwn_context *owner, Unit *unit, const vwn_plot_options *how, const vwn_writer *out);

#endif
