/* help.c - `vwn explain`, `vwn doc` and `vwn doctor`: texts that the library has about errors,
 * about the language, and about this machine.   In: a name or nothing.   Out: text, or JSON
 * that holds it.
 */
#include "cli.h"

#include <string.h>

typedef vwn_status (*TextOf)(vwn_context *ctx, const char *name, const vwn_writer *out);

/* Prints the text of one name; with --json {"v":1,"event":EVENT,"name":NAME,"text":TEXT}. */
static int print_text(Call *call, const char *event, const char *name, TextOf text_of)
{
    int status;
    Text text = {0};
    if (!call_open(call, &status))
        return status;
    vwn_writer out = text_writer(&text);
    vwn_status st = text_of(call->ctx, name, &out);
    status = call_failed(call, st);
    if (st == VWN_OK && text.s && call->json) {
        ui_print(&call->ui, "{\"v\":1,\"event\":\"%s\",\"name\":", event);
        put_json_string(&call->ui, name ? name : "", name ? strlen(name) : 0);
        ui_print(&call->ui, ",\"text\":");
        put_json_string(&call->ui, text.s, text.n);
        ui_print(&call->ui, "}\n");
    } else if (st == VWN_OK && text.s) {
        ui_put(&call->ui, text.s, text.n);
    }
    text_free(&text);
    return status;
}

static int run_explain(Call *call)
{
    return print_text(call, "explain", call->n_operands ? call->operand[0] : NULL, vwn_explain);
}

static int run_doc(Call *call)
{
    const char *topic = call_flag(call, "--search"), *name = call->n_operands ? call->operand[0] : NULL;
    if (topic && name)
        return usage_error(call, "`--search %s` looks everywhere and has no use for `%s`", topic, name);
    return print_text(call, "doc", topic ? topic : name, topic ? vwn_doc_search : vwn_doc);
}

static int run_doctor(Call *call)
{
    int status;
    if (!call_open(call, &status))
        return status;
    vwn_writer out = ui_stdout(&call->ui);
    return call_failed(call, vwn_doctor(call->ctx, call->json, call_flag(call, "--measure") != NULL, &out));
}

const Verb verb_explain = {.name = "explain",
                           .operands = "[CODE]",
                           .summary = "Explains an error or warning by its code; without one, lists all",
                           .example = {{"vwn explain E0201", "what a quantity without a unit is about"},
                                       {"vwn explain", "all codes with their titles"}},
                           .takes = TAKES_JSON,
                           .most = 1,
                           .run = run_explain};

static const Flag doc_flags[] = {
    {"--search", "WORD", "all that is about a topic: names, sentences, names of other programs, messages, sections"},
};
const Verb verb_doc = {.name = "doc",
                       .operands = "[NAME]",
                       .summary =
                           "Shows a block, an argument, a primitive, a node or an attribute; without NAME, lists all",
                       .example = {{"vwn doc attention", "the block's text in the library"},
                                   {"vwn doc --search warmup", "all that is about a topic"}},
                       .flag = doc_flags,
                       .n_flags = 1,
                       .takes = TAKES_JSON,
                       .most = 1,
                       .run = run_doc};

static const Flag doctor_flags[] = {
    {"--measure", NULL, "measure how fast it, or its GPU, is, for `vwn cost`; kept in the cache folder"},
};
const Verb verb_doctor = {.name = "doctor",
                          .operands = "",
                          .summary =
                              "Shows what this machine offers: compiler, matrix products, threads, memory, cache, CUDA",
                          .example = {{"vwn doctor", "for people"}, {"vwn doctor --json", "for programs"}},
                          .flag = doctor_flags,
                          .n_flags = 1,
                          .takes = TAKES_JSON | TAKES_THREADS | TAKES_DEVICE,
                          .run = run_doctor};
