/* support.h - what the training tests share: counting checks, a scratch folder, a tiny model.
 *
 * In:  a seed.   Out: a Unit built by hand with ir_*, a folder that is removed at the end.
 * The one idea: the tests need no language, so they test the runtime alone.
 */
#ifndef TRAIN_SUPPORT_H
#define TRAIN_SUPPORT_H

#include <stdio.h>

#include "runtime/exec/session.h"

/* ---- checks ---- */
typedef struct Tally {
    int passed, failed;
} Tally;
void check_at(Tally *t, bool good, const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
#define CHECK(t, good)       check_at((t), (good), __FILE__, __LINE__, "%s", #good)
#define CHECKF(t, good, ...) check_at((t), (good), __FILE__, __LINE__, __VA_ARGS__)
int tally_end(const Tally *t, const char *what);

/* ---- files ---- */
const char *scratch_folder(Ctx *ctx); /* a fresh one; removed by scratch_remove */
void scratch_remove(const char *folder);
void write_file(const char *path, const void *bytes, size_t n);
char *read_file(Ctx *ctx, const char *path, size_t *n); /* NULL when it cannot be read */
bool file_exists(const char *path);

/* ---- a model: logits = tanh(E[tokens] W1 + b) W2, dropout, a loss twice, a metric ---- */
typedef struct TinyOptions {
    int64_t vocab, width, context, batch, micro, lanes, steps;
    const char *text;      /* path of the text */
    const char *optimizer; /* NULL: adamw */
    double lr, dropout;
    bool bad_log;    /* adds a module `broken` that takes the log of 0 at step 8 */
    double spike_at; /* the loss is multiplied by 1000 from this step on; 0 = never */
} TinyOptions;
Unit *tiny_unit(Ctx *ctx, const TinyOptions *how);

/* A context as vwn_open makes it. */
vwn_context *tiny_context(bool reference, int threads);
void tiny_close(vwn_context *v);
extern int64_t tiny_batch; /* not 0: the batch of what `check` makes */
/* resolved_text gives "tiny V W T ..", from which check makes the unit again. */
extern const Hooks tiny_hooks;

/* What a function of vwn.h writes: text_take(&text, ...), a vwn_writer, behind what is there. */
typedef struct Text {
    char s[40000]; /* ends with a 0; what is longer is cut */
    size_t n;
    int pieces;
} Text;
void text_take(void *text, const char *s, size_t n);

/* A text of n bytes over a few letters with some structure. */
void write_text_file(const char *path, size_t n);

#endif
