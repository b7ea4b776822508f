/* pages.h - the work behind vwn_page.
 *
 * In:  runs.   Out: a page. It raises.
 */
#ifndef VWN_REPORT_PAGES_H
#define VWN_REPORT_PAGES_H

#include "runtime/exec/session.h"

Status page_runs(vwn_context *owner, const vwn_page_options *how, const vwn_writer *out, const Hooks *hooks);

#endif
