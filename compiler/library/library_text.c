/* library_text.c - see library_text.h. */
#include "library_text.h"

#include <inttypes.h>
#include <stdio.h>

#define PREFIX "TEXT_"
enum { NESTED_MOST = 16 };

typedef struct Filler {
    Buf *out;
    const TextValue *value;
    size_t n;
    const char *file;
} Filler;

/* Whether the lines between an #if and its #endif are wanted. An #if of the text itself always is. */
typedef struct Branch {
    bool ours, outer, wanted, otherwise;
} Branch;

static bool is_part_of_name(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

static size_t name_length(const char *s, const char *end)
{
    size_t n = 0;
    while (s + n < end && is_part_of_name(s[n]))
        n++;
    return n;
}

/* name: behind the prefix */
static const char *value_of(const Filler *f, const char *name, size_t length)
{
    for (size_t i = 0; i < f->n; i++)
        if (strlen(f->value[i].name) == length && memcmp(f->value[i].name, name, length) == 0)
            return f->value[i].value;
    if (length == strlen("NAME") && memcmp(name, "NAME", length) == 0)
        return "@NAME@";
    vwn_bug(arena_ctx(f->out->arena), "%s: no value of %s%.*s", f->file, PREFIX, (int)length, name);
}

static void fill_line(const Filler *f, const char *s, const char *end)
{
    const size_t prefix = strlen(PREFIX);
    while (s < end) {
        size_t n = name_length(s, end);
        if (n > prefix && memcmp(s, PREFIX, prefix) == 0)
            buf_puts(f->out, value_of(f, s + prefix, n - prefix));
        else
            buf_put(f->out, s, n ? n : 1);
        s += n ? n : 1;
    }
    buf_putc(f->out, '\n');
}

/* What follows `word` on a line that begins with it, or NULL. */
static const char *behind(const char *s, const char *end, const char *word)
{
    size_t n = strlen(word);
    return (size_t)(end - s) >= n && memcmp(s, word, n) == 0 ? s + n : NULL;
}

static bool holds(const Filler *f, const char *condition, const char *end)
{
    bool negated = *condition == '!';
    const char *name = condition + negated + strlen(PREFIX);
    bool set = strcmp(value_of(f, name, name_length(name, end)), "0") != 0;
    return set != negated;
}

static void fill(const Filler *f)
{
    Ctx *ctx = arena_ctx(f->out->arena);
    size_t size;
    const char *s = library_files_text(f->file, &size), *const last = s + size;
    if (!s)
        vwn_bug(ctx, "no text %s", f->file);
    Branch branch[NESTED_MOST] = {{.wanted = true}}, *b = branch;
    for (const char *end; s < last; s = end + 1) {
        end = memchr(s, '\n', (size_t)(last - s));
        if (!end)
            vwn_bug(ctx, "%s does not end with a newline", f->file);
        const char *is = behind(s, end, "#if "), *include = behind(s, end, "#include \"");
        bool alone = behind(s, end, "#ifndef " PREFIX "NAME"), ours = b->ours;
        if (behind(s, end, "#if")) {
            if (++b == branch + NESTED_MOST)
                vwn_bug(ctx, "%s nests too deeply", f->file);
            *b = (Branch){.outer = b[-1].wanted, .wanted = b[-1].wanted, .ours = true};
            if (alone)
                b->wanted = false;
            else if (is && (behind(is, end, PREFIX) || behind(is, end, "!" PREFIX)))
                b->wanted = b->outer && holds(f, is, end);
            else
                b->ours = false;
            if (b->ours)
                continue;
        } else if (behind(s, end, "#endif")) {
            if (b-- == branch)
                vwn_bug(ctx, "%s: an #endif too many", f->file);
            if (ours)
                continue;
        } else if (ours && behind(s, end, "#else")) {
            if (b->otherwise)
                vwn_bug(ctx, "%s: an #else too many", f->file);
            b->otherwise = true;
            b->wanted = b->outer && !b->wanted;
            continue;
        }
        if (!b->wanted)
            continue;
        if (!include) {
            fill_line(f, s, end);
            continue;
        }
        Filler inner = *f;
        inner.file = arena_copy(f->out->arena, include, (size_t)(end - include) - 1);
        fill(&inner);
    }
    if (b != branch)
        vwn_bug(ctx, "%s: an #endif is missing", f->file);
}

void library_text(Buf *out, const char *file, const TextValue *value, size_t n)
{
    fill(&(Filler){out, value, n, file});
}

const char *text_number(Arena *arena, int64_t number) { return arena_printf(arena, "%" PRId64, number); }
