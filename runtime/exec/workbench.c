/* workbench.c - see workbench.h. */
#include "workbench.h"

#include <stdio.h>
#include <stdlib.h>

vwn_workbench *workbench_open(void)
{
    Ctx *ctx = ctx_new(NULL);
    CtxGuard guard;
    if (!ctx || !CTX_TRY(ctx, &guard)) {
        ctx_free(ctx);
        return NULL;
    }
    vwn_workbench *w = NEW(ctx->program, vwn_workbench);
    w->ctx = ctx;
    ctx_keep_spare(ctx, BENCH_SPARE);
    ctx_leave(ctx, &guard);
    return w;
}

static void close_idle(vwn_workbench *w)
{
    if (w->idle)
        w->idle->ops->close(w->idle);
    w->idle = NULL;
}

void workbench_close(vwn_workbench *w)
{
    if (!w)
        return;
    close_idle(w);
    ctx_free(w->ctx);
}

static const char *or_empty(const char *s) { return s ? s : "\x01"; }

Backend *bench_take(vwn_workbench *w, const vwn_options *o, const DeviceAsked *asked)
{
    char now[BENCH_ASKED];
    int n = snprintf(now, sizeof now, "%d %d %d %d\n%s\n%s\n%s", (int)asked->how * BACKEND_COUNT + (int)asked->id,
                     asked->ordinal, o->threads, o->compile_seconds, or_empty(o->cache_dir), or_empty(o->compiler),
                     or_empty(getenv("CC")));
    bool same = n > 0 && (size_t)n < sizeof now && !strcmp(now, w->asked);
    if (!same)
        close_idle(w);
    memcpy(w->asked, now, sizeof now);
    Backend *b = w->idle;
    w->idle = NULL;
    return b;
}

bool bench_put(vwn_workbench *w, Backend *b)
{
    if (w->idle || b->ops->sync(b) != ST_OK)
        return false;
    if (b->ops->rest)
        b->ops->rest(b);
    b->at = (CallPlace){0};
    b->user = (BackendUser){0};
    b->last_words = NULL;
    w->idle = b;
    return true;
}
