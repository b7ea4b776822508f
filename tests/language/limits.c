/* limits.c - what blocks of the library refuse, and the value next to it that they take.
 *
 * In:  two models, and changes of one piece of them.   Out: the message that belongs to a change, or none.
 * The one idea: a limit is two values. Most rows come in pairs, on both sides of it; a message for the wrong one of them, or
 * of another limit, is as wrong as none. Every limit of grammar/std has a row here or a case in tests/errors.
 */
#include "support.h"

static const char text[] =
    "edition = 1\nimport \"std/transformer\"\nimport \"std/connections\"\n"
    "model m {\n  context = 8, width = 12, mask = causal, init = normal(std = 0.02), out_init = normal(std = 0.02)\n"
    "  pre_norm = NORM\n  connection = CONNECTION\n  embed tokens { vocab = VOCAB }\nEMBED\n"
    "  attention { ATTENTION }\n  FFN\n  head lm { norm = none }\n  HEAD\n}\n";
static const char image[] =
    "edition = 1\nimport \"std/transformer\"\nimport \"std/connections\"\nimport \"std/vision\"\n"
    "model m {\n  context = 4, width = 12, mask = full, init = normal(std = 0.02), out_init = normal(std = 0.02)\n"
    "  pre_norm = rms_norm(eps = 1e-6), connection = residual()\n"
    "  cond = time_and_class(classes = CLASSES, drop_class = 0, features = FEATURES)\n"
    "  embed noised { image = IMAGE, patch = 2, channels = 1, NOISE }\n  embed grid { side = 2GRID }\n"
    "  adaptive ffn { f = ffn(hidden = 8, activation = gelu) }\n"
    "  head noise { norm = rms_norm(eps = 1e-6), variance = fixed }\n}\n";
/* What stands for a word where nothing else is said. */
static const char *const words[][2] = {{"NORM", "rms_norm(eps = 1e-6)"},
                                       {"CONNECTION", "residual()"},
                                       {"VOCAB", "12"},
                                       {"EMBED", ""},
                                       {"ATTENTION", "heads = 2"},
                                       {"FFN", "ffn { hidden = 8, activation = gelu }"},
                                       {"HEAD", ""},
                                       {"CLASSES", "3"},
                                       {"FEATURES", "4"},
                                       {"IMAGE", "4"},
                                       {"NOISE", "steps = 100"},
                                       {"GRID", ""}};

#define MOE(active, more)                                                                                              \
    "moe { experts = 4, active = " active ", hidden = 8, activation = gelu, scores = softmax, "                        \
    "normalize = true, balance = 0.01" more " }"
#define MTP(predict)                                                                                                   \
    "head mtp { predict = " predict ", weight = 0.3, mix = linear(), norm = rms_norm(eps = 1e-6), "                    \
    "layer = ffn(hidden = 8, activation = gelu) }"
#define FREE_NORM(kind)                                                                                                \
    {"NORM", kind "(eps = 0)", NULL}, { "NORM", kind "(eps = -1e-9)", "`eps` = -1e-09 is negative" }

static const struct Row {
    const char *word, *is, *message; /* NULL: it is taken */
} rows[] = {
    FREE_NORM("rms_norm"),
    FREE_NORM("layer_norm"),
    {"NORM", "rms_norm(eps = 0, gain = false, offset = 0)", NULL},
    {"NORM", "rms_norm(eps = 0, gain = true, offset = 1)", NULL},
    {"NORM", "rms_norm(eps = 0, gain = false, offset = 1)", "`offset` = 1 is added to a gain, and there is none"},
    {"NORM", "group_norm(size = 4, eps = 0)", NULL},
    {"NORM", "group_norm(size = 4, eps = -1)", "`eps` = -1 is negative"},
    {"NORM", "group_norm(size = 1, eps = 1)", NULL},
    {"NORM", "group_norm(size = 0, eps = 1)", "groups of 0 coordinates are empty"},
    {"NORM", "group_norm(size = 12, eps = 1)", NULL},
    {"NORM", "group_norm(size = 5, eps = 1)", "groups of 5 do not divide 12 coordinates"},
    {"VOCAB", "1", NULL},
    {"VOCAB", "0", "a vocabulary needs at least one entry"},
    {"EMBED", "embed position { size = 8 }", NULL},
    {"EMBED", "embed position { size = 7 }", "the context is 8 positions, the table has 7 rows"},
    {"EMBED", "embed sinusoidal { base = 100 }", NULL},
    {"EMBED", "embed sinusoidal { base = 100, width = 11 }", "sinusoidal positions need an even width, got 11"},
    {"EMBED", "embed ngrams { vocab = 12, order = 2, rows = 1 }", NULL},
    {"EMBED", "embed ngrams { vocab = 12, order = 1, rows = 1, width = 3 }",
     "`order` = 1: the smallest n-gram is a pair"},
    {"EMBED", "embed ngrams { vocab = 12, order = 2, rows = 0 }", "1 tables of 0 rows"},
    {"EMBED", "embed ngrams { vocab = 12, order = 2, rows = 1, tables = 0, width = 3 }", "0 tables of 1 rows"},
    {"EMBED", "embed ngrams { vocab = 12, order = 3, rows = 9, tables = 3 }", NULL},
    {"EMBED", "embed ngrams { vocab = 12, order = 2, rows = 9, tables = 5 }",
     "5 tables do not divide an embedding of 12"},
    {"EMBED", "embed ngrams { vocab = 12, order = 2, rows = 9, tables = 5, width = 3 }", NULL},
    {"ATTENTION", "heads = 1", NULL},
    {"ATTENTION", "heads = 0", "attention needs at least one head, got 0"},
    {"ATTENTION", "heads = 5", "5 heads do not divide the width 12"},
    {"ATTENTION", "heads = 5, head_dim = 1", NULL},
    {"ATTENTION", "heads = 5, head_dim = 0", "a head needs at least one coordinate, got head_dim = 0"},
    {"ATTENTION", "heads = 4, kv_heads = 1", NULL},
    {"ATTENTION", "heads = 4, kv_heads = 0", "attention needs at least one key-value head, got 0"},
    {"ATTENTION", "heads = 4, kv_heads = 3", "3 key-value heads do not divide 4 heads"},
    {"ATTENTION", "heads = 6, position = rope(base = 100)", NULL},
    {"ATTENTION", "heads = 4, position = rope(base = 100)", "rotary embedding needs an even head_dim, got 3"},
    {"ATTENTION", "heads = 4, position = rope(base = 100, fraction = 2 / 3)", NULL},
    {"ATTENTION", "heads = 2, position = rope(base = 100, fraction = 0.5)",
     "rotary embedding needs an even number of coordinates, got 3"},
    {"ATTENTION", "heads = 3, position = rope_at(freqs = [1, 0.5])", NULL},
    {"ATTENTION", "heads = 3, position = rope_at(freqs = [1, 0.5, 0.2])",
     "3 frequencies turn 6 coordinates, a head has 4"},
    {"FFN", MOE("1", ""), NULL},
    {"FFN", MOE("0", ""), "0 active experts of 4"},
    {"FFN", MOE("4", ", capacity = 0"), NULL},
    {"FFN", MOE("5", ""), "5 active experts of 4"},
    {"FFN", MOE("2", ", capacity = -0.5"), "`capacity` = -0.5 is negative"},
    {"HEAD", MTP("2"), NULL},
    {"HEAD", MTP("1"), "`predict = 2` is the token after the next"},
    {"CONNECTION", "hyper(n = 1, dynamic = true)", NULL},
    {"CONNECTION", "hyper(n = 0, dynamic = true)", "hyper-connections need at least one stream, got n = 0"},
    {"CONNECTION", "hyper(n = 2, dynamic = true, read = [2, 1])", NULL},
    {"CONNECTION", "hyper(n = 2, dynamic = true, read = [3])", "`read` names streams from 1 to n = 2"},
    {"CONNECTION", "hyper(n = 2, dynamic = true, read = [0])", "`read` names streams from 1 to n = 2"},
    {"CONNECTION", "hyper(n = 2, dynamic = true, read = [])", "`read` names streams from 1 to n = 2"},
    {"CONNECTION", "hyper(n = 2, dynamic = true, replicate = [1, 0])", NULL},
    {"CONNECTION", "hyper(n = 2, dynamic = true, replicate = [1])", "`replicate` has 1 entries, expected n = 2"},
    {"CONNECTION", "hyper_fixed(n = 1, matrices = wiring(kind = sequential, n = 1))", NULL},
    {"CONNECTION", "hyper_fixed(n = 1, matrices = wiring(kind = sequential, n = 0))",
     "a wiring needs at least one stream, got n = 0"},
    {"CONNECTION", "hyper_fixed(n = 0, matrices = [])", "hyper-connections need at least one stream, got n = 0"},
    {"CONNECTION", "hyper_fixed(n = 1, matrices = [])", "`matrices` is empty"},
    {"CONNECTION", "hyper_fixed(n = 2, matrices = wiring(kind = two_hop, n = 2))", NULL},
    {"CONNECTION", "hyper_fixed(n = 3, matrices = wiring(kind = two_hop, n = 3))",
     "`two_hop` has two streams, got n = 3"},
    {"CONNECTION", "mhc(n = 1, post = 0.1)", NULL},
    {"CONNECTION", "mhc(n = 0)", "hyper-connections need at least one stream, got n = 0"},
    {"CONNECTION", "mhc(n = 2, post = 0)", "`post` = 0 is not positive"},
    {"CONNECTION", "altup(n = 1)", NULL},
    {"CONNECTION", "altup(n = 0)", "AltUp needs at least one stream, got n = 0"},
    {"CONNECTION", "altup(n = 2, read = [2])", NULL},
    {"CONNECTION", "altup(n = 2, read = [3])", "`read` names streams from 1 to n = 2"},
    {"CONNECTION", "altup(n = 2, read = [0])", "`read` names streams from 1 to n = 2"},
    {"CONNECTION", "altup(n = 2, read = [1.5])", "`read` names streams from 1 to n = 2"},
    {"CONNECTION", "ghc(m = 1, n = 1, dynamic = true)", NULL},
    {"CONNECTION", "ghc(m = 0, n = 1, dynamic = true)", "the backbone reads at least one segment, got m = 0"},
    {"CONNECTION", "ghc(m = 2, n = 1, dynamic = true)", "`n` = 1 is smaller than `m` = 2"},
    {"CONNECTION", "ghc(m = 2, n = 2, dynamic = true)", NULL},
    {"CONNECTION", "ghc(m = 5, n = 5, dynamic = true)", "`m` = 5 does not divide the backbone width 12"},
    {"CONNECTION", "frac(m = 1, dynamic = true)", NULL},
    {"CONNECTION", "frac(m = 0, dynamic = true)", "frac-connections need at least one fraction, got m = 0"},
    {"CONNECTION", "frac(m = 5, dynamic = true)", "`m` = 5 does not divide the backbone width 12"},
    {"CONNECTION", "depth_weighted(sublayers = 1)", NULL},
    {"CONNECTION", "depth_weighted(sublayers = 0)", "a block has at least one sublayer, got sublayers = 0"},
    {"CONNECTION", "carried(head = 12, final = after_slice)", NULL},
    {"CONNECTION", "carried(head = 12, norm = rms_norm(eps = 1))", NULL},
    {"CONNECTION", "carried(head = 12, stream = 11, final = after_slice)",
     "the head reads 12 coordinates of a stream of 11"},
    {"CONNECTION", "carried(head = 12, final = before_slice)",
     "`norm` belongs here exactly when `final = before_slice`"},
    {"CONNECTION", "carried(head = 12, norm = rms_norm(eps = 1), final = after_slice)",
     "`norm` belongs here exactly when `final = before_slice`"},
    {"CONNECTION", "carried(head = 12, final = after_slice, expand = missing)", "`expand = missing` needs `widths`"},
    {"CONNECTION", "carried(head = 12, final = after_slice, expand = zero)", NULL},
    {"CONNECTION", "carried(head = 12, final = after_slice, expand = zero, end = carry)",
     "`end = carry` with `expand = zero` needs `widths`"},
    {"CLASSES", "1", NULL},
    {"CLASSES", "0", "there must be at least one class"},
    {"FEATURES", "2", NULL},
    {"FEATURES", "3", "a time has an even number of features, got 3"},
    {"IMAGE", "5", "patches of 2 do not divide an image of 5"},
    {"GRID", ", width = 10", "positions on a grid need a width that 4 divides, got 10"},
    {"NOISE", "steps = 2, first_beta = 0.0001, last_beta = 0.0019", NULL},
    {"NOISE", "steps = 1, first_beta = 0.0001, last_beta = 0.0009", "there must be at least two steps of noise, got 1"},
    {"NOISE", "steps = 100, first_beta = 0", "the shares of noise must grow from above 0 to below 1"},
    {"NOISE", "steps = 100, first_beta = 0.02", NULL},
    {"NOISE", "steps = 100, first_beta = 0.021", "the shares of noise must grow from above 0 to below 1"},
    {"NOISE", "steps = 21", NULL},
    {"NOISE", "steps = 20", "the shares of noise must grow from above 0 to below 1"},
};

static void put_words(char *out, size_t room, const char *base, const char *word, const char *is)
{
    size_t n = 0;
    while (*base && n + 1 < room) {
        const char *found = NULL;
        size_t size = 0;
        for (size_t w = 0; w < COUNT_OF(words); w++)
            if (strncmp(base, words[w][0], strlen(words[w][0])) == 0) {
                found = strcmp(words[w][0], word) == 0 ? is : words[w][1];
                size = strlen(words[w][0]);
            }
        if (found)
            n += (size_t)snprintf(out + n, room - n, "%s", found);
        else
            out[n++] = *base;
        base += found ? size : 1;
    }
    out[n] = '\0';
}

static void try_row(Test *t, const struct Row *r)
{
    char file[2000];
    put_words(file, sizeof file, strstr(text, r->word) ? text : image, r->word, r->is);
    Checked c = check_text("a.vwn", file, NULL);
    size_t told = 0, errors = diag_errors(c.ctx);
    for (size_t i = 0; i < diag_count(c.ctx) && r->message; i++)
        told += diag_get(c.ctx, i)->level == LEVEL_ERROR && strstr(diag_get(c.ctx, i)->message, r->message) != NULL;
    bool right = c.unit && (r->message ? told > 0 : errors == 0);
    t->checks++;
    if (!right) {
        t->failures++;
        printf("FAILED: %s = %s: wanted %s%s, got\n", r->word, r->is, r->message ? "the error " : "no error",
               r->message ? r->message : "");
        print_diagnostics(&c);
    }
    ctx_free(c.ctx);
}

int main(void)
{
    Test t = {0};
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        try_row(&t, &rows[i]);
    return test_end(&t);
}
