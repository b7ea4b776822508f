/* begin.c - `vwn_from_hf`: the text of a `.vwn` that begins with the weights of a folder of transformers.
 *
 * In:  config.json and safetensors.   Out: a text, when every tensor of the folder has a place in the model and every weight is there.
 */
#include "family.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/checkpoint/start.h"

typedef struct Begin {
    Session session;
    const vwn_from_options *how;
    const vwn_writer *out;
    const Hooks *hooks;
    const char *folder; /* absolute */
} Begin;

static const char *in_folder(Begin *b, const char *name)
{
    const char *path = arena_printf(b->session.arena, "%s/%s", b->folder, name);
    return access(path, F_OK) == 0 ? path : NULL;
}

/* A text of the language. */
static const char *quoted(Begin *b, const char *text)
{
    Buf out = buf_new(b->session.arena);
    buf_putc(&out, '"');
    for (const char *s = text; *s; s++) {
        if ((unsigned char)*s < ' ' || *s == 127)
            ctx_raise(b->session.ctx, ST_INPUT, "the path %.300s holds what no text of a file may hold", text);
        if (*s == '"' || *s == '\\')
            buf_putc(&out, '\\');
        buf_putc(&out, *s);
    }
    buf_putc(&out, '"');
    return out.s;
}

/* Tokenizers that cannot be read are told, and the file takes ids. */
typedef struct TryTokenizer {
    Begin *begin;
    TokenizerSpec spec;
} TryTokenizer;
static Status try_tokenizer(void *user)
{
    TryTokenizer *t = user;
    tokenizer_file(&t->begin->session, &t->spec);
    return ST_OK;
}

static void put_data(Begin *b, Buf *out, const char *vocab)
{
    Session *s = &b->session;
    const char *path = in_folder(b, "tokenizer.json");
    TryTokenizer t = {b, {.kind = TOKENIZER_FILE, .path = path}};
    if (path && guarded(s->ctx, try_tokenizer, &t) == ST_OK) {
        buf_printf(out, "  data       = text_file(\"text.txt\", val = 5%%)\n  tokenizer  = file(%s)\n",
                   quoted(b, path));
        return;
    }
    session_warn(s, path ? arena_printf(s->arena, "%.400s: so the file takes ids from tokens.bin", s->ctx->message)
                         : arena_printf(s->arena, "%.300s has no tokenizer.json: the file takes ids from tokens.bin",
                                        b->folder));
    buf_printf(out, "  data       = token_files(\"tokens.bin\", dtype = %s, val = 5%%)\n",
               strtoll(vocab, NULL, 10) <= 65536 ? "u16" : "u32");
}

static void put_train(Buf *out, const char *data, const char *weights, bool needless)
{
    buf_puts(out, "\ntrain {\n");
    buf_puts(out, data);
    buf_puts(
        out,
        "  batch      = 8 seqs\n  length     = 100 steps\n  seed       = 1\n  precision  = fp32\n  clip       = 1.0\n");
    buf_printf(out, "  start_from = weights(%s%s)\n\n", weights, needless ? ", left = drop" : "");
    buf_puts(out, "  optimizer adamw {\n"
                  "    lr           = cosine(peak = 2e-5, floor = 2e-6, warmup = 5%)\n"
                  "    betas        = [0.9, 0.95]\n"
                  "    eps          = 1e-8\n"
                  "    weight_decay = 0.1\n"
                  "    group vector { weight_decay = 0 }\n  }\n\n"
                  "  eval       { every = 50 steps, batches = 4 }\n"
                  "  checkpoint { every = 50 steps, keep = 2 }\n"
                  "  log        { every = 1 steps }\n}\n");
}

/* "h.0.attn.bias", a mask: what older files hold besides weights. */
static bool is_needless(const Family *f, const char *name)
{
    size_t n = strlen(name);
    for (const char *end = f->needless; end && *end; end += strcspn(end, " "), end += *end == ' ') {
        size_t length = strcspn(end, " ");
        if (n >= length && !memcmp(name + n - length, end, length))
            return true;
    }
    return false;
}

/* Both sides beside each other, before anything is written. False where tensors of the folder that hold nothing of the model are all
 * that has no place, and the text does not allow it. */
static bool try_text(Begin *b, const Family *f, const char *text)
{
    Session *s = &b->session;
    size_t before = diag_errors(s->ctx);
    CheckOptions how = {.path = arena_printf(s->arena, "%s/config.json (as a .vwn)", b->folder),
                        .text = text,
                        .text_length = strlen(text),
                        .folder = b->folder};
    Unit *u = b->hooks->check(s->ctx, &how);
    if (diag_errors(s->ctx) > before || !u->model || !u->train)
        ctx_raise(s->ctx, ST_INPUT, NULL);
    StartSpec spec = u->train->start;
    const bool allowed = spec.drop_left;
    spec.drop_left = true;
    Start *start = start_open(s, &spec, u->model, b->hooks);
    bool all = true;
    for (size_t i = 0; i < start->n && all; i++)
        all = start->entry[i].fate != FATE_LEFT || is_needless(f, start->entry[i].tensor->name);
    if (!all || !start->count[FATE_LEFT] || allowed) {
        spec.drop_left = allowed && all;
        start_open(s, &spec, u->model, b->hooks); /* its refusal */
        return true;
    }
    session_warn(s,
                 arena_printf(s->arena,
                              "%zu tensors of the folder, as `%.100s`, hold nothing of the model: they are left behind",
                              start->count[FATE_LEFT], start->entry[start->n - 1].tensor->name));
    return false;
}

static Status begin_body(void *user)
{
    Begin *b = user;
    Session *s = &b->session;
    session_open(s, s->owner);
    char *real = realpath(b->how->folder, NULL);
    if (!real)
        ctx_raise(s->ctx, ST_ENVIRONMENT, "%.300s: there is no such folder", b->how->folder);
    b->folder = arena_copy(s->arena, real, strlen(real));
    free(real);
    FamilyConfig c = family_config(s, arena_printf(s->arena, "%s/config.json", b->folder));
    const char *weights = in_folder(b, "model.safetensors");
    weights = weights ? weights : in_folder(b, "model.safetensors.index.json");
    if (!weights)
        ctx_raise(s->ctx, ST_ENVIRONMENT, "%.300s has neither model.safetensors nor model.safetensors.index.json",
                  b->folder);
    const char *vocab = "1000000";
    for (size_t i = 0; i < c.family->n_key; i++)
        if (!strcmp(c.family->key[i].key, "vocab_size") && c.value[i])
            vocab = c.value[i];
    Buf text = buf_new(s->arena), data = buf_new(s->arena);
    put_data(b, &data, vocab);
    for (int needless = 0; needless < 2; needless++) {
        text.n = 0;
        buf_puts(&text, family_text(s->arena, c.family, c.value));
        put_train(&text, data.s, quoted(b, weights), needless);
        if (try_text(b, c.family, text.s))
            break;
    }
    write_text(b->out, text.s, text.n);
    return ST_OK;
}

Status family_begin(vwn_context *owner, const vwn_from_options *how, const vwn_writer *out, const Hooks *hooks)
{
    Begin b = {.session.owner = owner, .how = how, .out = out, .hooks = hooks};
    Status st = guarded(owner->ctx, begin_body, &b);
    session_close(&b.session);
    return st;
}
