/* train_resume.c - a run that goes on, beside what it was when its checkpoint was written.
 *
 * In:  the checkpoint; the file and the overrides now.   Out: a warning for each difference, or a raise where it would be no longer
 * the same run.
 * The one idea: a run goes on under the overrides it was started with, whatever the file says now; how long it is may change.
 */
#include <math.h>

#include "compiler/file/check_unit.h"
#include "trainer.h"

/* The same file under the overrides that the run was started with. */
static FileText file_under(Trainer *tr, const Settings *then)
{
    Unit *plain = train_check_again(tr, then->v, then->n, tr->unit->grown);
    return (FileText){plain, plain ? tr->hooks->resolved_text(plain, tr->session.arena) : ""};
}

static void compare_setting(Trainer *tr, const char *then, const char *now)
{
    const char *length = "train.length";
    if (!now || !setting_for(&length, 1, then))
        ctx_raise(tr->ctx, ST_USAGE,
                  "the run was started with `--set %s`%s%s%s: give it again, or start anew "
                  "with --overwrite",
                  then, now ? " and cannot go on with `--set " : "", now ? now : "", now ? "`" : "");
    train_event(tr, VWN_EVENT_WARNING, "the run was started with `--set %s`; it goes on with `--set %s`", then, now);
}

/* What the file says under the overrides that the run was started with. */
static FileText compare_settings(Trainer *tr, const Settings *then)
{
    const Unit *u = tr->unit;
    bool others = false;
    for (size_t i = 0; i < then->n; i++) {
        const char *now = setting_for(u->set, u->n_set, then->v[i]);
        if (now && !strcmp(now, then->v[i]))
            continue;
        compare_setting(tr, then->v[i], now);
        others = true;
    }
    for (size_t i = 0; i < u->n_set; i++)
        if (!setting_for((const char *const *)then->v, then->n, u->set[i])) {
            others = true;
            train_event(tr, VWN_EVENT_WARNING, "the run was started without `--set %s`; it goes on with it", u->set[i]);
        }
    return others ? file_under(tr, then) : (FileText){tr->unit, tr->meta.text};
}

/* A resolved text without its first lines, which say from where it was read. */
static const char *below_comment(const char *text)
{
    while (*text == '#') {
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    return text;
}

/* The file as the checkpoint has it, NULL where that does not check any more. */
static Unit *file_then(Trainer *tr)
{
    size_t before = diag_count(tr->ctx), errors = diag_errors(tr->ctx);
    const char *text = tr->from->meta.text;
    CheckOptions how = {.path = tr->from->file.path, .text = text, .text_length = strlen(text)};
    Unit *then = tr->hooks->check(tr->ctx, &how);
    bool fine = diag_errors(tr->ctx) == errors;
    diag_truncate(tr->ctx, before);
    return fine ? then : NULL;
}

/* What the file says otherwise than the checkpoint, with a colon before it; NULL: nothing, but for comments and layout. */
static const char *changes(Trainer *tr, const FileText *now)
{
    FileText then = {file_then(tr), tr->from->meta.text};
    const char *said = then.unit && now->unit ? tr->hooks->changes(&tr->session, &then, now) : NULL;
    return !said ? "" : *said ? arena_printf(tr->session.arena, ": %s", said) : NULL;
}

static void compare_text(Trainer *tr)
{
    const char *run = train_run_path(tr), *path = tr->from->file.path;
    Settings then = run_settings(tr->ctx, tr->session.arena, run);
    FileText now = compare_settings(tr, &then);
    if (!strcmp(below_comment(tr->from->meta.text), below_comment(now.text)))
        return;
    const char *said = changes(tr, &now), *changed = record_changed(&tr->session, run, tr->file);
    if (!said)
        return;
    if (changed && !*changed) {
        train_event(tr, VWN_EVENT_WARNING, "%s was written under other settings%s; going on with those of now", path,
                    said);
        return;
    }
    Buf set = buf_new(tr->session.arena);
    for (size_t i = 0; i < tr->unit->n_set; i++)
        buf_printf(&set, "%s`--set %s`", i ? ", " : ", but for ", tr->unit->set[i]);
    bool several = changed && strstr(changed, " and ");
    train_event(tr, VWN_EVENT_WARNING, "%s %s changed since %s was written%s; going on with what %s now%s",
                changed ? changed : "the file", several ? "have" : "has", path, said, several ? "they say" : "it says",
                set.n ? set.s : "");
}

/* The rate of the step that comes, in a run of so many steps. NAN: it hangs on results. */
static double rate_in(Trainer *tr, const Train *t, int64_t steps)
{
    int64_t now = tr->steps;
    tr->steps = steps;
    train_set_vars(tr, 0);
    tr->steps = now;
    return host_eval(t->optimizer.lr, tr->vars);
}

static void compare_length(Trainer *tr)
{
    if (!strcmp(below_comment(tr->from->meta.text), below_comment(tr->meta.text)))
        return;
    const Unit *file = file_then(tr);
    const Train *then = file ? file->train : NULL;
    if (!then)
        return;
    int64_t was = progress_end(&tr->now, train_length(tr, then));
    if (was == tr->steps || tr->now.step > tr->steps)
        return;
    double before = rate_in(tr, then, was), now = rate_in(tr, tr->train, tr->steps);
    Buf b = buf_new(tr->session.arena);
    bool reads = train_reads_length(tr);
    buf_printf(&b, "the run was to end at step %lld, and now at step %lld: %s", (long long)was, (long long)tr->steps,
               reads ? "schedules that depend on its length follow the new one from here on"
                     : "no schedule depends on its length, so it is the run that it would have been");
    if (reads && isfinite(before) && isfinite(now) && before != now)
        buf_printf(&b, ", and the rate of step %lld is %.4g instead of %.4g", (long long)tr->now.step + 1, now, before);
    train_event(tr, VWN_EVENT_WARNING, "%s", b.s);
}

/* A growth step may give the run another length, so none is over before it. */
bool train_is_over(const Trainer *tr) { return tr->from && !tr->unit->grow.n && tr->now.step >= tr->stop_at; }

void train_report_end(Trainer *tr)
{
    long long now = (long long)tr->now.step, end = (long long)tr->steps, until = (long long)tr->how->until_steps;
    bool grows = tr->unit->grow.n; /* a step may give the run another length */
    if (until > end && !grows)
        train_event(tr, VWN_EVENT_WARNING,
                    "`--until '%lld steps'` lies beyond the end of the run, which has %lld: `--set train.length='%lld "
                    "steps'` makes it longer",
                    until, end, until);
    else if (tr->from && now == end && !grows)
        train_event(tr, VWN_EVENT_NOTE,
                    "nothing is left to train: the run ends at step %lld; `--set train.length='%lld steps'` goes on",
                    end, 2 * end);
    else if (tr->from && until > 0 && now >= until)
        train_event(tr, VWN_EVENT_NOTE, "nothing is trained: the run is at step %lld already", now);
}

/* What the checkpoint says about the run against what the file says now. */
void train_compare(Trainer *tr)
{
    Arena *a = tr->session.arena;
    const RunMeta *then = &tr->from->meta;
    const char *path = tr->from->file.path;
    const char *difference = data_difference(a, then->data, tr->meta.data);
    if (difference)
        ctx_raise(tr->ctx, ST_ENVIRONMENT,
                  "%s; resuming would not repeat the run: put it back, or "
                  "start anew with --overwrite",
                  difference);
    if (!tokenizer_same(a, then->tokenizer, tr->meta.tokenizer))
        ctx_raise(tr->ctx, ST_ENVIRONMENT,
                  "the tokenizer's vocabulary is not the one of %s; start "
                  "anew with --overwrite",
                  path);
    compare_text(tr);
    compare_length(tr);
    if (then->seed != tr->meta.seed)
        train_event(tr, VWN_EVENT_WARNING,
                    "the seed was %llu and is now %llu: the order of the data "
                    "changes",
                    (unsigned long long)then->seed, (unsigned long long)tr->meta.seed);
}
