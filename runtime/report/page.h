/* page.h - the page of `vwn report` while it is made; private to runtime/report.
 *
 * In:  run directories.   Out: what each run says, and which runs share a model or differ in their seeds alone.
 */
#ifndef VWN_REPORT_PAGE_H
#define VWN_REPORT_PAGE_H

#include "runtime/checkpoint/run_dir.h"
#include "runtime/checkpoint/settings.h"
#include "runtime/draw/html.h"
#include "runtime/look/run_state.h"

typedef struct PageRun {
    RunState state;
    const char *text, *origin; /* of resolved.vwn, NULL where it cannot be read; the file that it was made of */
    Settings set;              /* as they were given */
    SettingList setting;       /* all of the file */
    double best;               /* the lowest held-out loss; NaN */
    size_t model,
        group; /* of RunsPage.model, SIZE_MAX: none; the number of the first run that differs in its seed alone */
    size_t number;
} PageRun;

/* What several runs have in common: files that differ in how they train alone. */
typedef struct PageModel {
    size_t run, n;   /* the first one; how many */
    const char *why; /* why it cannot be shown, or NULL */
    Unit *unit;      /* of the first run's file */
} PageModel;

typedef struct RunsPage {
    Session session;
    const vwn_page_options *how;
    const vwn_writer *out;
    const Hooks *hooks;
    PageRun *run;
    size_t n;
    VEC(PageModel) model;
    SettingNames setting; /* whose values differ */
    Buf b;
    int pictures;
} RunsPage;

/* The mark of a run, a line of its colour, and its name. */
void page_mark(RunsPage *p, const PageRun *r);
/* "12.3k"; "–" of what is none. */
const char *page_quantity(Arena *a, double v);
const char *page_count(Arena *a, int64_t n);

/* page_runs.c: the table of all runs, what each was, what `vwn compare` says of them, what happened. */
void page_table(RunsPage *p);
void page_details(RunsPage *p);
void page_comparison(RunsPage *p);
void page_notes(RunsPage *p);
/* page_data.c: settings, numbers and curves of all runs, as JSON for the page's scripts. */
void page_data(RunsPage *p);
/* page_models.c: each model once, and connections as they were trained. */
void page_models(RunsPage *p);
void page_connections(RunsPage *p);

#endif
