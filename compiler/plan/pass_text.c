/* pass_text.c - what passes did, as text for people.
 *
 * In:  counts of a PassWatch, texts from before and behind a pass.
 * Out: the list of `vwn ir --passes`; dumps in which a comment stands where a pass has removed
 * a line, and behind each barrier the accesses that it orders.
 */
#include "compiler/gpu/device.h"
#include "compiler/kernel/kernel_text.h"
#include "pipeline.h"

PassId pass_of_name(const char *name)
{
    int id = 0;
    while (id < PASSES && strcmp(pass_rows[id].name, name) != 0)
        id++;
    return (PassId)id;
}

/* ---- the list ---- */

static void put_facts(Buf *out, const char *word, uint32_t facts)
{
    for (int f = 0; f < FACTS; f++)
        if (facts & 1u << f) {
            buf_printf(out, "%s %s", word, fact_words[f]);
            word = ",";
        }
}

static void put_row(Buf *out, int id, const PassCount *c, bool here, bool seconds)
{
    const PassRow *row = &pass_rows[id];
    buf_printf(out, "%2d %-12s", id + 1, row->name);
    if (!here)
        buf_puts(out, "does not run here");
    else if (c->runs) {
        size_t kept = c->runs - c->trials;
        buf_printf(out, "%zu run%s", kept, kept == 1 ? "" : "s");
        if (c->trials)
            buf_printf(out, " and %zu on trial", c->trials);
        buf_printf(out, ", %zu %s", c->changed, row->things);
        if (seconds)
            buf_printf(out, ", %.2f ms", 1e3 * c->seconds);
    } else
        buf_puts(out, "had nothing to run on");
    buf_printf(out, "\n   %s\n  ", row->says);
    put_facts(out, " needs", row->needs);
    put_facts(out, "; gives", row->gives);
    buf_putc(out, '\n');
}

void passes_put(Buf *out, const PassWatch *watch, const Target *target, Half half, bool seconds)
{
    const PlanOptions how = {.half = half};
    const PassState s = {.how = &how, .target = target};
    for (int id = 0; id < PASSES; id++)
        put_row(out, id, &watch->count[id], watch->count[id].runs || pass_applies((PassId)id, &s), seconds);
}

/* ---- what is gone ---- */

typedef struct Lines {
    const char **at;
    size_t *length;
    uint64_t *hash;
    size_t n;
} Lines;

/* Of a line without its comment and without the numbers of values, which count anew behind each
 * pass. */
static uint64_t hash_of_line(Arena *arena, const char *s, size_t n)
{
    Buf plain = buf_new(arena);
    for (size_t i = 0; i < n && !(s[i] == '#' && i && s[i - 1] == ' '); i++) {
        bool named =
            i > 0 && (s[i - 1] == '_' || (s[i - 1] >= 'a' && s[i - 1] <= 'z') || (s[i - 1] >= '0' && s[i - 1] <= '9'));
        buf_putc(&plain, s[i]);
        if (named || !strchr("%xih", s[i]))
            continue;
        while (i + 1 < n && s[i + 1] >= '0' && s[i + 1] <= '9')
            i++;
    }
    while (plain.n && plain.s[plain.n - 1] == ' ')
        plain.n--;
    return hash_bytes(plain.s, plain.n, 1);
}

static Lines lines_of(Arena *arena, const char *text)
{
    Lines l = {0};
    size_t most = 1;
    for (const char *p = text; *p; p++)
        most += *p == '\n';
    l.at = NEW_ARRAY(arena, const char *, most);
    l.length = NEW_ARRAY(arena, size_t, most);
    l.hash = NEW_ARRAY(arena, uint64_t, most);
    for (const char *p = text; *p; p += l.length[l.n - 1] + (p[l.length[l.n - 1]] == '\n')) {
        size_t n = strcspn(p, "\n");
        l.at[l.n] = p;
        l.length[l.n] = n;
        l.hash[l.n++] = hash_of_line(arena, p, n);
    }
    return l;
}

static void put_removed(Buf *out, const char *line, size_t n)
{
    size_t indent = strspn(line, " ");
    buf_put(out, line, indent);
    buf_puts(out, "# removed: ");
    buf_put(out, line + indent, n - indent);
    buf_putc(out, '\n');
}

void put_with_removed(Buf *out, Arena *arena, const char *before, const char *after)
{
    const Lines a = lines_of(arena, before), b = lines_of(arena, after);
    Map first;
    size_t *next = NEW_ARRAY(arena, size_t, b.n + 1), *behind = NEW_ARRAY(arena, size_t, a.n + 1), at = 0;
    map_init(&first, arena);
    for (size_t i = b.n; i-- > 0;) { /* the places of each line, from the first on; and 1 */
        void **slot = map_at(&first, (uintptr_t)b.hash[i] | 1);
        next[i] = (size_t)(uintptr_t)*slot;
        *slot = (void *)(uintptr_t)(i + 1);
    }
    for (size_t i = 0; i < a.n; i++) { /* behind which line of b it is missing, and 1; or 0: it is there */
        void **slot = map_at(&first, (uintptr_t)a.hash[i] | 1);
        size_t found = (size_t)(uintptr_t)*slot;
        behind[i] = found ? 0 : at + 1;
        if (found) {
            *slot = (void *)(uintptr_t)next[found - 1];
            at = found;
        }
    }
    Map gone; /* by place, the first line that is missing there; and 1 */
    size_t *more = NEW_ARRAY(arena, size_t, a.n + 1);
    map_init(&gone, arena);
    for (size_t i = a.n; i-- > 0;)
        if (behind[i]) {
            void **slot = map_at(&gone, behind[i]);
            more[i] = (size_t)(uintptr_t)*slot;
            *slot = (void *)(uintptr_t)(i + 1);
        }
    for (size_t place = 0; place <= b.n; place++) {
        if (place) {
            buf_put(out, b.at[place - 1], b.length[place - 1]);
            buf_putc(out, '\n');
        }
        for (size_t i = (size_t)(uintptr_t)map_get(&gone, place + 1); i; i = more[i - 1])
            put_removed(out, a.at[i - 1], a.length[i - 1]);
    }
}

/* ---- why a barrier stands ---- */

void put_with_reasons(Buf *out, const Kernel *k)
{
    Buf text = buf_new(k->arena);
    size_t statement = SIZE_MAX;
    kernel_print(&text, k);
    for (const char *p = text.s; *p; p += strcspn(p, "\n"), p += *p == '\n') {
        size_t n = strcspn(p, "\n");
        buf_put(out, p, n);
        if (statement != SIZE_MAX && k->stmt.v[statement].kind == KS_BARRIER)
            kernel_put_reasons(out, k, statement);
        buf_putc(out, '\n');
        if (statement != SIZE_MAX || (n == 5 && !memcmp(p, "begin", n)))
            statement++;
    }
}
