/* verbs.c - vwn_train, vwn_eval, vwn_sample, vwn_interrupt: the public calls over the runtime.
 *
 * In:  what vwn.h states.   Out: a status; the sentence of a failure is in the context.
 */
#include "session.h"

static Hooks compiler_hooks(void)
{
    return (Hooks){unit_resolved_text, check_file, vwn_version()};
}

vwn_status vwn_train(vwn_unit *unit, const vwn_train_options *how)
{
    Hooks hooks = compiler_hooks();
    unit->context->ctx->message[0] = 0;
    return (vwn_status)train_unit(unit->context, unit->unit, how, &hooks);
}

vwn_status vwn_eval(vwn_context *ctx, const vwn_eval_options *how, const vwn_writer *out)
{
    Hooks hooks = compiler_hooks();
    ctx->ctx->message[0] = 0;
    return (vwn_status)eval_source(ctx, how, out, &hooks);
}

vwn_status vwn_sample(vwn_context *ctx, const vwn_sample_options *how, const vwn_writer *out)
{
    Hooks hooks = compiler_hooks();
    ctx->ctx->message[0] = 0;
    return (vwn_status)sample_source(ctx, how, out, &hooks);
}

void vwn_interrupt(vwn_context *ctx)
{
    ctx->interrupted = 1;
}
