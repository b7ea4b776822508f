/* progress.c - see progress.h. */
#include "progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loss_scale.h"

const Progress progress_none = {
    .eval_step = -1, .train_loss = NAN, .eval_loss = NAN, .grad_norm = NAN, .best_eval = NAN, .plateau.last = NAN};

static double measured(double x) { return isnan(x) ? INFINITY : x; }

void progress_skipped(const Progress *p, double vars[HV_COUNT])
{
    vars[HV_SKIPPED_UPDATES] = (double)(p->step - p->skipped);
    vars[HV_SKIPPED_LOSS_SCALE] = p->loss_scale > 0 ? p->loss_scale : 1;
    vars[HV_SKIPPED_MAY_SKIP] = loss_scale_may_halve(p->loss_scale);
}

void progress_vars(const Progress *p, double length, double per_epoch, double vars[HV_COUNT])
{
    double step = (double)(p->step - p->from_step), tokens = (double)(p->tokens - p->from_tokens);
    vars[HV_STEP] = step;
    vars[HV_TOKENS] = tokens;
    vars[HV_EPOCH] = per_epoch > 0 ? tokens / per_epoch : 0;
    vars[HV_PROGRESS] = length > 0 ? step / length : 0;
    vars[HV_LENGTH] = length;
    vars[HV_SHARE] = vars[HV_FILLED] = 1;
    progress_skipped(p, vars);
    vars[HV_UPDATES] = vars[HV_SKIPPED_UPDATES];
    vars[HV_LOSS_SCALE] = vars[HV_SKIPPED_LOSS_SCALE];
    vars[HV_MAY_SKIP] = vars[HV_SKIPPED_MAY_SKIP];
    vars[HV_TRAIN_LOSS] = measured(p->train_loss);
    vars[HV_EVAL_LOSS] = measured(p->eval_loss);
    vars[HV_GRAD_NORM] = measured(p->grad_norm);
}

StepEnd progress_norm(Progress *p, double norm)
{
    bool good = norm <= GRAD_NORM_MOST;
    if (!good && !loss_scale_may_halve(p->loss_scale))
        return STEP_BAD;
    if (p->loss_scale > 0)
        loss_scale_after(&p->loss_scale, &p->good_steps, good);
    if (good)
        p->grad_norm = norm;
    p->skipped += !good;
    return good ? STEP_GOOD : STEP_SKIPPED;
}

void progress_step(Progress *p, double loss, int64_t sequences, int64_t context)
{
    bool known = !isnan(loss);
    if (known && p->n_recent == RECENT)
        memmove(p->recent, p->recent + 1, (RECENT - 1) * sizeof *p->recent);
    else if (known)
        p->n_recent++;
    if (known)
        p->recent[p->n_recent - 1] = loss;
    p->train_loss = loss;
    p->step++;
    p->sequences += sequences;
    p->tokens += sequences * context;
}

void progress_evaluated(Progress *p, double loss)
{
    p->eval_loss = loss;
    p->eval_step = p->step;
    if (isnan(p->best_eval) || loss < p->best_eval) /* a loss that is no number is never the best */
        p->best_eval = loss;
}

int64_t progress_end(const Progress *p, int64_t length) { return p->from_step + length; }

/* ---- in a file ---- */

/* A field is in every file, or with the first of its group, where that has something to say. */
typedef enum FieldGroup { ALWAYS, EVALUATED, SCALED, SKIPPED, RESTARTED, DUE, WAITING } FieldGroup;
typedef enum FieldKind { COUNT, NUMBER, POSITIVE, ANSWER, LOSSES } FieldKind;
static const struct ProgressField {
    const char *key;
    FieldGroup group;
    FieldKind kind;
    size_t at;
} fields[] = {
    {"step", ALWAYS, COUNT, offsetof(Progress, step)},
    {"tokens", ALWAYS, COUNT, offsetof(Progress, tokens)},
    {"sequences", ALWAYS, COUNT, offsetof(Progress, sequences)},
    {"train_loss", ALWAYS, NUMBER, offsetof(Progress, train_loss)},
    {"eval_loss", ALWAYS, NUMBER, offsetof(Progress, eval_loss)},
    {"eval_step", EVALUATED, COUNT, offsetof(Progress, eval_step)},
    {"best_eval_loss", ALWAYS, NUMBER, offsetof(Progress, best_eval)},
    {"grad_norm", ALWAYS, NUMBER, offsetof(Progress, grad_norm)},
    {"loss_scale", SCALED, POSITIVE, offsetof(Progress, loss_scale)},
    {"good_steps", SCALED, COUNT, offsetof(Progress, good_steps)},
    {"skipped_steps", SKIPPED, COUNT, offsetof(Progress, skipped)},
    {"time_from_step", RESTARTED, COUNT, offsetof(Progress, from_step)},
    {"time_from_tokens", RESTARTED, COUNT, offsetof(Progress, from_tokens)},
    {"growth_due", DUE, ANSWER, offsetof(Progress, due)},
    {"plateau_last", WAITING, NUMBER, offsetof(Progress, plateau.last)},
    {"plateau_sum", WAITING, NUMBER, offsetof(Progress, plateau.sum)},
    {"plateau_numbers", WAITING, COUNT, offsetof(Progress, plateau.n)},
    {"plateau_steps", WAITING, COUNT, offsetof(Progress, plateau.steps)},
    {"plateau_over", WAITING, ANSWER, offsetof(Progress, plateau.over)},
    {"recent_losses", ALWAYS, LOSSES, offsetof(Progress, recent)},
};
const size_t progress_fields = sizeof fields / sizeof fields[0];

static bool says(const Progress *p, FieldGroup group)
{
    switch (group) {
    case EVALUATED: return p->eval_step >= 0;
    case SCALED: return p->loss_scale > 0;
    case SKIPPED: return p->loss_scale > 0 || p->skipped;
    case RESTARTED: return p->from_step != 0;
    case DUE: return p->due;
    case WAITING: return p->plateau.steps || p->plateau.over || !isnan(p->plateau.last);
    default: return true;
    }
}

static int put_number(char *text, size_t size, double x)
{
    return isnan(x) ? snprintf(text, size, "nan") : snprintf(text, size, "%.17g", x);
}

const char *progress_text(const Progress *p, size_t i, char text[PROGRESS_TEXT])
{
    const struct ProgressField *f = &fields[i];
    const void *at = (const char *)p + f->at;
    if (!says(p, f->group))
        return NULL;
    text[0] = 0;
    if (f->kind == COUNT)
        snprintf(text, PROGRESS_TEXT, "%" PRId64, *(const int64_t *)at);
    else if (f->kind == ANSWER)
        snprintf(text, PROGRESS_TEXT, "%s", *(const bool *)at ? "yes" : "no");
    else if (f->kind != LOSSES)
        put_number(text, PROGRESS_TEXT, *(const double *)at);
    for (int k = 0, n = 0; f->kind == LOSSES && k < p->n_recent; k++) {
        if (k)
            text[n++] = ' ';
        n += put_number(text + n, PROGRESS_TEXT - (size_t)n, p->recent[k]);
    }
    return f->key;
}

static bool read_losses(Progress *p, const char *text)
{
    for (p->n_recent = 0; *text; p->n_recent++) {
        char *end;
        if (p->n_recent == RECENT)
            return false;
        p->recent[p->n_recent] = strtod(text, &end);
        if (end == text)
            return false;
        text = end + (*end == ' ');
    }
    return true;
}

static bool read_field(Progress *p, const struct ProgressField *f, const char *text)
{
    void *at = (char *)p + f->at;
    char *end = NULL;
    if (f->kind == LOSSES)
        return read_losses(p, text);
    if (f->kind == ANSWER) {
        *(bool *)at = !strcmp(text, "yes");
        return *(bool *)at || !strcmp(text, "no");
    }
    if (f->kind == COUNT) {
        int64_t n = strtoll(text, &end, 10);
        *(int64_t *)at = n;
        return end != text && !*end && n >= 0 && n < INT64_MAX / 4;
    }
    double x = strtod(text, &end);
    *(double *)at = x;
    return end != text && !*end && (f->kind == NUMBER || x > 0);
}

const char *progress_read(Progress *p, const Json *metadata, bool *missing)
{
    bool there = true;
    *p = progress_none;
    for (size_t i = 0; i < progress_fields; i++) {
        const struct ProgressField *f = &fields[i];
        bool found = json_get(metadata, f->key) != NULL;
        const char *text = json_string(metadata, f->key); /* none of what holds a NUL */
        if (!i || f->group != fields[i - 1].group)
            there = f->group == ALWAYS || found;
        *missing = there && !found;
        if (*missing || (there && !(text && read_field(p, f, text))))
            return f->key;
    }
    return NULL;
}
