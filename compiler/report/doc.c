/* doc.c - `vwn doc`: everything that can be written in a file, by name.
 *
 * In:  a name.   Out: the text of a library block or file as it is compiled in, the line of a
 * primitive or a schedule, the attributes of a node, what an attribute means in each node that
 * has it. The one idea: nothing is written twice: the library is text, so its documentation is
 * that text, and nodes are documented by the table that they are checked with.
 */
#include "compiler/front/attribute.h"
#include "compiler/file/check_train.h"
#include "grammar/codes.h"
#include "grammar/foreign.h"
#include "report.h"

/* Visits every block of the library; stops when `visit` returns true. */
typedef bool (*BlockVisit)(void *user, Ctx *ctx, const char *path, const Ast *block);

static bool each_block(Ctx *ctx, BlockVisit visit, void *user)
{
    for (size_t i = 0; i < std_count(); i++) {
        size_t n;
        const char *text = std_text(std_path(i), &n);
        const Ast *file = vwn_parse(ctx, source_add(ctx, std_path(i), text, n));
        for (uint32_t k = 0; k < file->n; k++)
            if (file->kid[k] && file->kid[k]->kind == AST_BLOCK && visit(user, ctx, std_path(i), file->kid[k]))
                return true;
    }
    return false;
}

/* The first sentence of a doc comment, on one line. */
static const char *first_sentence(Arena *arena, const char *doc)
{
    if (!doc)
        return "";
    const char *end = doc; /* a point before a blank and a capital: not that of "Eqs. 5-12" */
    while ((end = strchr(end, '.')) &&
           !((end[1] == ' ' || end[1] == '\n') && (end[2] == '`' || (end[2] >= 'A' && end[2] <= 'Z'))))
        end++;
    char *text = arena_copy(arena, doc, end ? (size_t)(end - doc) + 1 : strlen(doc));
    for (char *c = text; *c; c++)
        if (*c == '\n')
            *c = ' ';
    return text;
}

typedef struct Search {
    const char *name;
    Buf *out;
    VEC(Name) names; /* every name there is, for suggestions */
} Search;

static bool show_block(void *user, Ctx *ctx, const char *path, const Ast *block)
{
    Search *s = user;
    vec_push(ctx->scratch, &s->names, block->name);
    if (strcmp(block->name, s->name) != 0)
        return false;
    size_t n;
    const char *text = source_text(ctx, block->span.file, &n);
    LineCol at = source_position(ctx, block->span.file, block->span.lo);
    buf_printf(s->out, "# %s:%u\n", path, at.line);
    const char *line = block->doc;
    while (line && *line) {
        size_t size = strcspn(line, "\n");
        buf_printf(s->out, "## %.*s\n", (int)size, line);
        line += size + (line[size] == '\n');
    }
    buf_put(s->out, text + block->span.lo, block->span.hi - block->span.lo);
    buf_putc(s->out, '\n');
    return true;
}

/* What the name means as an argument of a block of the library. */
static bool show_argument(void *user, Ctx *ctx, const char *path, const Ast *block)
{
    Search *s = user;
    for (uint32_t i = 0; i < block->kid[0]->n; i++) {
        const Ast *par = block->kid[0]->kid[i];
        vec_push(ctx->scratch, &s->names, par->name);
        if (strcmp(par->name, s->name) != 0)
            continue;
        buf_printf(s->out, "%s of %s (%s): ", par->name, block->name, path);
        ast_print_expr(s->out, par->kid[0]);
        buf_puts(s->out, par->kid[1] ? "; " : "; required\n");
        if (par->kid[1]) {
            ast_print_expr(s->out, par->kid[1]);
            buf_putc(s->out, '\n');
        }
    }
    return false;
}

static const DocExample examples[] = {
#define X(name, call, value) {name, call, value},
#include "examples.def"
#undef X
};

const DocExample *doc_example(size_t i) { return i < COUNT_OF(examples) ? &examples[i] : NULL; }

static void put_prim(Buf *out, const Prim *p, bool schedule)
{
    const DocExample *e = NULL; /* of two of one name the schedule's is behind */
    for (size_t i = 0; i < COUNT_OF(examples); i++)
        if (!strcmp(examples[i].name, p->name) && (!e || schedule))
            e = &examples[i];
    buf_printf(out, "%s(%s)\n%s\n", p->name, p->params, p->doc);
    if (e)
        buf_printf(out, e->value ? "for example `%s` is %s\n" : "for example `%s`\n", e->call, e->value);
}

/* ---- nodes, attributes and what a run knows ---- */

/* "file grow": "at the top of a file, in grow" */
static void put_places(Buf *out, const char *where)
{
    for (const char *p = where; *p; p += *p == ' ') {
        size_t n = strcspn(p, " ");
        bool file = n == 4 && !strncmp(p, "file", n);
        buf_printf(out, "%s%s%.*s", p > where ? ", " : "", file ? "at the top of a file" : "in ", file ? 0 : (int)n, p);
        p += n;
    }
}

static const char *default_of(Arena *arena, const AttributeRow *a)
{
    if (a->fallback && a->example) /* of the node: it can be left out as a whole */
        return arena_printf(arena, "without `%s`: %s", a->node, a->fallback);
    return a->fallback ? a->fallback : a->example ? "required" : "optional";
}

static bool put_node(Ctx *ctx, Buf *out, const char *name)
{
    const NodeDoc *node = node_doc_find(name);
    if (!node)
        return false;
    buf_printf(out, "%s: ", node->name);
    put_places(out, node->where);
    buf_printf(out, "\n%s\n", node->text);
    Table t = {.arena = ctx->scratch, .columns = 4};
    for (size_t i = 0; i < attribute_count(); i++) {
        const AttributeRow *a = attribute_at(i);
        if (strcmp(a->node, name) != 0)
            continue;
        table_text(&t, a->name);
        table_text(&t, a->values);
        table_text(&t, default_of(ctx->scratch, a));
        table_text(&t, a->text);
    }
    if (t.cell.n)
        table_print(out, &t);
    for (size_t i = 0, n = 0; i < node_doc_count(); i++)
        if (node_stands_in(node_doc_at(i), name))
            buf_printf(out, "%s%s", n++ ? ", " : "it holds ", node_doc_at(i)->name);
    if (out->s[out->n - 1] != '\n')
        buf_putc(out, '\n');
    return true;
}

/* What the name means as an attribute, in every node that has it. */
static bool put_attribute(Ctx *ctx, Buf *out, const char *name)
{
    bool found = false;
    for (size_t i = 0; i < attribute_count(); i++) {
        const AttributeRow *a = attribute_at(i);
        if (strcmp(a->name, name) != 0)
            continue;
        found = true;
        buf_printf(out, "%s of %s: %s; %s\n%s\n", a->name, a->node, a->values, default_of(ctx->scratch, a), a->text);
        if (a->example)
            buf_printf(out, "for example `%s`\n", a->example);
    }
    return found;
}

static bool put_run_value(Buf *out, const char *name)
{
    if (is_file_field(name)) {
        buf_printf(out, "%s: of a file with a model; in its checks, and as `m.%s` of an import\n", name, name);
        return true;
    }
    for (int v = 0; v < HV_NAMED; v++)
        if (!strcmp(host_var_name((HostVar)v), name)) {
            buf_printf(out, "%s: known while training; stands in learning rates, losses and `when`\n", name);
            return true;
        }
    return false;
}

/* ---- words that are none of these ---- */

static const char *const words[][2] = {
    {"B", "sequences of a batch, as an extent: `x: [B, T, D]`"},
    {"T", "positions of a sequence, as an extent; `x.T` is x with its last two axes exchanged"},
    {"inf",
     "infinity, an entry of a tensor: `softmax(where(mask, x, -inf))`; a number that is computed with must be finite"},
    {"scope", "`scope.init`: the attribute of this node, or of the nearest one around it that sets it"},
    {"@", "`x @ W`: the product of matrices over the last two axes; leading axes are broadcast"},
    {"units", "steps, tokens, seqs, images and epochs behind a number with a blank, `8 seqs`; k M B T (1000s), Ki Mi Gi"
              " (1024s) and % right behind it; d and L for shares of a schedule's base and layers, `0.4d`"},
};

static bool put_word(Buf *out, const char *name)
{
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (!strcmp(words[i][0], name)) {
            buf_printf(out, "%s: %s\n", name, words[i][1]);
            return true;
        }
    return false;
}

static void list_words(Ctx *ctx, Buf *out)
{
    Table t = {.arena = ctx->scratch, .columns = 2};
    buf_puts(out, "words\n");
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        table_text(&t, words[i][0]);
        table_text(&t, words[i][1]);
    }
    table_print(out, &t);
}

static void list_nodes(Ctx *ctx, Buf *out)
{
    Table t = {.arena = ctx->scratch, .columns = 2};
    buf_puts(out, "nodes, statements and attributes\n");
    for (size_t i = 0; i < node_doc_count(); i++) {
        const char *names;
        size_t n;
        attribute_names(ctx, ctx->scratch, node_doc_at(i)->name, false, &n, &names);
        table_text(&t, node_doc_at(i)->name);
        table_text(&t, n && strcmp(names, node_doc_at(i)->name) ? names
                                                                : first_sentence(ctx->scratch, node_doc_at(i)->text));
    }
    table_print(out, &t);
}

/* ---- the list ---- */

typedef struct Listing {
    Table table;
    const char *path; /* of the file whose blocks are being listed */
    Buf *out;
} Listing;

static void flush_blocks(Listing *l)
{
    if (!l->path)
        return;
    buf_printf(l->out, "%s\n", l->path);
    table_print(l->out, &l->table);
    l->table.cell.n = 0;
}

static bool list_block(void *user, Ctx *ctx, const char *path, const Ast *block)
{
    Listing *l = user;
    if (l->path && strcmp(l->path, path) != 0)
        flush_blocks(l);
    l->path = path;
    table_text(&l->table, block->name);
    table_text(&l->table, first_sentence(ctx->scratch, block->doc));
    return false;
}

static void list_all(Ctx *ctx, Buf *out)
{
    Listing l = {.table = {.arena = ctx->scratch, .columns = 2}, .out = out};
    each_block(ctx, list_block, &l);
    flush_blocks(&l);
    list_nodes(ctx, out);
    list_words(ctx, out);
    Table prims = {.arena = ctx->scratch, .columns = 2};
    buf_puts(out, "primitives\n");
    for (size_t i = 0; i < prim_count(); i++) {
        if (!prim_find(prim_at(i)->name))
            continue; /* of the graph, not of the language */
        table_text(&prims, prim_at(i)->name);
        table_text(&prims, prim_at(i)->doc);
    }
    table_print(out, &prims);
}

/* ---- by topic ---- */

/* The sections of grammar/README.md, and what they are about beside their titles. */
static const char *const sections[][2] = {
    {"1. Ten minutes", "first model, begin, tutorial, overview"},
    {"2. Text", "comments, names, numbers, units, strings, newlines, syntax, reserved words"},
    {"3. Values", "numbers, lists, operators, types, steps, schedules, quantities, initialisers, truth"},
    {"4. Names, lets and files", "import, let, scope, variables, several files"},
    {"5. Blocks", "functions, modules, layers, parameters, weights, buffers, loops, for, if, losses, metrics, shapes"},
    {"6. Models", "layers, loops, embeddings, heads, attributes, nodes, context, width, mask, norm"},
    {"7. Connections", "residual, hyper-connections, streams, skip, wiring"},
    {"8. Paths and overrides", "--set, settings, hyperparameters, config, sweeps"},
    {"9. Training", "data, batch, optimizer, learning rate, warmup, schedules, precision, evaluation, checkpoints, "
                    "resume, fine-tuning"},
    {"10. Growth and sweeps", "grow, upcycling, wider, deeper, grid, random, halving, hyperparameter search"},
    {"11. Checks, messages and lints", "errors, warnings, asserts, lints, fixes"},
    {"12. Primitives", "functions, tensors, operators, convolution, attention, softmax, random numbers"},
    {"13. The standard library", "attention, ffn, mlp, moe, experts, rope, norms, connections, vision, diffusion"},
    {"14. Limits", "sizes, memory, limits"},
    {"15. Grammar", "syntax, bison"},
};

/* What papers call things, and where it is here. */
static const char *const topics[][2] = {
    {"gradient clipping, clipping by the global norm", "`clip = 1.0` in `train`: doc clip"},
    {"expansion rate, number of residual streams", "`n` of `hyper`, `m` and `n` of `ghc`: doc hyper"},
    {"rematerialization, remat, activation checkpointing, gradient checkpointing",
     "`recompute = [ffn, attention]` in `train`: doc recompute"},
    {"gradient accumulation, accumulated gradients", "`micro_batch` in `train`: doc micro_batch"},
    {"exponential moving average, EMA, weight averaging", "`average = ema(decay = 0.999)` in `train`: doc average"},
    {"weight tying, tied embeddings", "`tie = tokens` in `head lm`: doc tie"},
    {"grouped-query attention, GQA, multi-query attention, MQA", "`kv_heads` of `attention`: doc attention"},
    {"distributed training, data parallelism, parallel, DDP, DistributedDataParallel, several processes, machines",
     "`vwn launch -n 4 train FILE`: processes share the sequences of a step, and each holds all weights: vwn help "
     "launch"},
    {"tensor, pipeline and sequence parallelism, parallel, FSDP, ZeRO, sharded weights, distributed optimizer",
     "not here: each process holds all weights; several share a step by `vwn launch -n 4 train FILE`"},
    {"early stopping, patience",
     "not here: a run ends at `length` or `--until`; a sweep drops points early: doc prune"},
    {"label smoothing", "`smoothing = 0.1` in `head lm`: doc head_lm"},
    {"batch size", "`batch = 8 seqs` or `0.5M tokens` in `train`: doc batch; parts of it: doc micro_batch"},
    {"sliding window attention, local attention", "`window = 256` in `attention`: doc attention"},
    {"learning rate decay, annealing, learning rate schedule, scheduler",
     "`lr = cosine(peak = 3e-4, floor = 3e-5, warmup = 1%)` in the optimizer: doc cosine"},
    {"weight decay, L2 regularisation", "`weight_decay = 0.1` in the optimizer: doc weight_decay"},
    {"flash attention, FlashAttention, memory-efficient attention, xformers, scaled dot product attention",
     "nothing to choose: it is `sdpa`, which keeps no matrix of scores: doc sdpa"},
    {"kv cache, key-value cache",
     "`vwn sample` keeps keys and values, unless `--recompute`; `vwn cost` counts their bytes"},
    {"torch.compile, jit, kernel fusion, compiled",
     "nothing to choose: every model is compiled into fused kernels; `vwn ir FILE --stage kernel` shows them"},
    {"sampling: temperature, top-k, top-p, nucleus, min-p, repetition penalty, greedy decoding",
     "`vwn sample RUN --temperature 0.8 --top-k 40 --top-p 0.95`: vwn help sample"},
    {"inference, generation, deployment, serving",
     "`vwn sample RUN` writes text; `vwn emit c FILE -o DIR` is a program without vwn; nothing serves requests"},
    {"Hugging Face, transformers library, safetensors, pretrained weights, GGUF",
     "`start_from = weights(...)` reads safetensors of others: doc start_from; a tokenizer.json is `file(...)`"},
    {"scaling law, model sizes",
     "a sweep over sizes, by equal FLOPs: `vwn sweep FILE --vary D=64,128`, `vwn compare --by flops`"},
    {"nan, not a number, divergence, loss spikes", "a run whose loss or weights are no numbers stops with exit status "
                                                   "4 and names the module; `clip` bounds gradients"},
    {"weights and biases, wandb, TensorBoard, MLflow, logging to a board",
     "nothing is sent away: `vwn export-log RUN --tensorboard -o DIR`, `vwn report RUN`"},
    {"mixture of experts, MoE, sparse experts, routing", "`moe` in the place of `ffn`: doc moe"},
    {"LoRA, adapters, parameter-efficient fine-tuning, PEFT",
     "a block of your own with a frozen weight: examples/34_lora.vwn; `q_proj = lora(rank = 8)`"},
    {"quantization, int8, int4, QLoRA",
     "not here: weights are float32; products may be in bf16 or fp16: doc precision"},
    {"reinforcement learning, RLHF, DPO, PPO, preference optimisation",
     "not here: losses are of the text or images that are trained on"},
};

const char *doc_section(size_t i) { return i < COUNT_OF(sections) ? sections[i][0] : NULL; }

static bool is_letter(char c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; }

/* How much of the text at s is the word: 0 where it is another one. Letters may be small or capital, and where words are joined
 * any of "-_. " or nothing may stand: flash_attention, flash-attention, flashattention. */
static size_t spelled(const char *s, const char *word, size_t n)
{
    size_t k = 0, at = 0;
    while (k < n) {
        bool same = s[at] && (s[at] == word[k] || (is_letter(word[k]) && (s[at] ^ word[k]) == 32));
        if (same)
            k++, at++;
        else if (k && strchr("-_. ", word[k]))
            k++;
        else if (k && s[at] && strchr(n > 6 ? "-_. " : "-_", s[at]))
            at++;
        else
            return 0;
    }
    return at;
}

/* Whether a word of the text begins so. */
static bool has_word(const char *text, const char *word, size_t n)
{
    for (const char *s = text; text && *s; s++)
        if (!(s > text && is_letter(s[-1])) && spelled(s, word, n))
            return true;
    return false;
}

/* Whether texts have the words of a phrase, joined or each somewhere; one of them at least. */
static bool is_about(const char *const text[3], const char *phrase)
{
    for (int i = 0; i < 3; i++)
        if (has_word(text[i], phrase, strlen(phrase)))
            return true;
    bool some = false;
    for (const char *word = phrase + strspn(phrase, " "); *word; word += strspn(word, " ")) {
        size_t n = strcspn(word, " ");
        if (!has_word(text[0], word, n) && !has_word(text[1], word, n) && !has_word(text[2], word, n))
            return false;
        word += n;
        some = true;
    }
    return some;
}

typedef struct Hits {
    Ctx *ctx;
    const char *word, *heading; /* of the entries in the table */
    Table table;
    Buf *out;
    size_t n;
} Hits;

static void hits_under(Hits *h, const char *heading)
{
    if (h->table.cell.n) {
        buf_printf(h->out, "%s\n", h->heading);
        table_print(h->out, &h->table);
        h->table.cell.n = 0;
    }
    h->heading = heading;
}

static void hit(Hits *h, const char *name, const char *text)
{
    table_text(&h->table, name);
    table_text(&h->table, text);
    h->n++;
}

static bool find_block(void *user, Ctx *ctx, const char *path, const Ast *block)
{
    Hits *h = user;
    (void)path;
    if (is_about((const char *const[3]){block->name, block->doc}, h->word))
        hit(h, block->name, first_sentence(ctx->scratch, block->doc));
    for (uint32_t i = 0; i < block->kid[0]->n; i++) {
        const Ast *par = block->kid[0]->kid[i];
        if (is_about((const char *const[3]){par->name, par->doc}, h->word))
            hit(h, arena_printf(ctx->scratch, "%s.%s", block->name, par->name),
                par->doc ? first_sentence(ctx->scratch, par->doc) : "an argument");
    }
    return false;
}

static void find_attributes(Hits *h)
{
    for (size_t i = 0; i < node_doc_count(); i++)
        if (is_about((const char *const[3]){node_doc_at(i)->name, node_doc_at(i)->text}, h->word))
            hit(h, node_doc_at(i)->name, node_doc_at(i)->text);
    for (size_t i = 0; i < attribute_count(); i++) {
        const AttributeRow *a = attribute_at(i);
        if (is_about((const char *const[3]){a->name, a->text, a->values}, h->word))
            hit(h, arena_printf(h->ctx->scratch, "%s.%s", a->node, a->name), a->text);
    }
}

static void find_words(Hits *h)
{
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (is_about((const char *const[3]){words[i][0], words[i][1]}, h->word))
            hit(h, words[i][0], words[i][1]);
    for (int v = 0; v < HV_NAMED; v++)
        if (is_about((const char *const[3]){host_var_name((HostVar)v)}, h->word))
            hit(h, host_var_name((HostVar)v), "known while training");
}

static void find_foreign(Hits *h)
{
    for (size_t i = 0; i < foreign_count(); i++) {
        const Foreign *f = foreign_at(i);
        bool again = i && !strcmp(foreign_at(i - 1)->name, f->name);
        if (is_about((const char *const[3]){f->name}, h->word) && !again)
            hit(h, f->name, f->text ? f->text : arena_printf(h->ctx->scratch, "`%s`", f->ours));
    }
}

size_t doc_search(Ctx *ctx, const char *word, Buf *out)
{
    Hits h = {.ctx = ctx, .word = word, .table = {.arena = ctx->scratch, .columns = 2}, .out = out};
    hits_under(&h, "blocks: vwn doc NAME");
    each_block(ctx, find_block, &h);
    hits_under(&h, "primitives: vwn doc NAME");
    for (size_t i = 0; i < prim_count(); i++) {
        const Prim *p = prim_at(i);
        if (prim_find(p->name) && (is_about((const char *const[3]){p->name, p->doc, p->params}, word)))
            hit(&h, p->name, p->doc);
    }
    hits_under(&h, "nodes and attributes: vwn doc NAME");
    find_attributes(&h);
    hits_under(&h, "words: vwn doc NAME");
    find_words(&h);
    hits_under(&h, "what papers call it");
    for (size_t i = 0; i < COUNT_OF(topics); i++)
        if (is_about((const char *const[3]){topics[i][0]}, word))
            hit(&h, topics[i][0], topics[i][1]);
    hits_under(&h, "names of other programs");
    find_foreign(&h);
    hits_under(&h, "messages: vwn explain CODE");
    for (size_t i = 0; i < diag_code_count(); i++) {
        const char *title;
        diag_explain(diag_code_at(i), &title);
        if (is_about((const char *const[3]){title}, word))
            hit(&h, diag_code_at(i), title);
    }
    hits_under(&h, "sections of the reference, grammar/README.md");
    for (size_t i = 0; i < COUNT_OF(sections); i++)
        if (is_about((const char *const[3]){sections[i][0], sections[i][1]}, word))
            hit(&h, sections[i][0], sections[i][1]);
    hits_under(&h, NULL);
    return h.n;
}

bool doc_write(Ctx *ctx, const char *name, Buf *out, Name *near)
{
    *near = NULL;
    if (!name) {
        list_all(ctx, out);
        return true;
    }
    size_t n;
    const char *file = strncmp(name, "std/", 4) == 0 ? std_text(name, &n) : NULL;
    if (file) {
        buf_put(out, file, n);
        return true;
    }
    Search s = {.name = name, .out = out};
    bool found = each_block(ctx, show_block, &s); /* a name may have several meanings: all are shown */
    const Prim *prim = prim_find(name), *schedule = schedule_prim(name);
    if (prim)
        put_prim(out, prim, false);
    if (schedule)
        put_prim(out, schedule, true);
    found |= put_node(ctx, out, name);
    found |= put_attribute(ctx, out, name);
    found |= put_run_value(out, name);
    found |= put_word(out, name);
    size_t before = out->n;
    each_block(ctx, show_argument, &s);
    found |= out->n > before;
    if (found || prim || schedule)
        return true;
    for (size_t i = 0; i < prim_count(); i++)
        if (prim_find(prim_at(i)->name))
            vec_push(ctx->scratch, &s.names, name_str(ctx, prim_at(i)->name));
    for (size_t i = 0; i < std_count(); i++)
        vec_push(ctx->scratch, &s.names, name_str(ctx, std_path(i)));
    for (size_t i = 0; i < node_doc_count(); i++)
        vec_push(ctx->scratch, &s.names, name_str(ctx, node_doc_at(i)->name));
    for (size_t i = 0; i < attribute_count(); i++)
        vec_push(ctx->scratch, &s.names, name_str(ctx, attribute_at(i)->name));
    for (int v = 0; v < HV_NAMED; v++)
        vec_push(ctx->scratch, &s.names, name_str(ctx, host_var_name((HostVar)v)));
    *near = nearest_name(name_str(ctx, name), s.names.v, s.names.n);
    return false;
}
