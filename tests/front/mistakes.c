/* mistakes.c - what people write who come from PyTorch, nanoGPT, Hugging Face or Megatron, what they are told, and what
 * `vwn check --fix` makes of it.
 *
 * In:  mistakes.txt: a good file, then mistakes in it, each with what must be said and with the text that a fix writes.
 * Out: the messages, searched; the text after the fixes, byte for byte; that the fixed text is accepted, or that what is left
 *      is said to be left; that fixing twice is fixing once; that no fix touches the good file.
 * The one idea: a fixed text is the good one with the mistake's right form in the place of the mistake, and nothing else.
 */
#include "runtime/vwn.h"

#include "grammar/foreign.h"
#include "test.h"

#include <ctype.h>

typedef struct Text {
    char *s;
    size_t n;
} Text;

static void put(void *user, const char *s, size_t n)
{
    Text *t = user;
    t->s = realloc(t->s, t->n + n + 1);
    if (!t->s)
        abort();
    memcpy(t->s + t->n, s, n);
    t->n += n;
    t->s[t->n] = 0;
}

static vwn_writer into(Text *t)
{
    put(t, "", 0);
    return (vwn_writer){put, t};
}

typedef struct Checked {
    Text said, fixed, changes;
    size_t errors, fixes;
} Checked;

static Checked check(const char *text)
{
    Checked c = {0};
    vwn_writer said = into(&c.said), fixed = into(&c.fixed), changes = into(&c.changes);
    vwn_context *v = vwn_open(&(vwn_options){.threads = 1, .device = "cpu"});
    vwn_unit *unit = NULL;
    vwn_check(v, &(vwn_file_options){.path = "m.vwn", .text = text, .text_length = strlen(text)}, &unit);
    c.fixes = unit ? vwn_fixed_text(unit, &fixed, &changes) : 0;
    c.errors = vwn_diagnostics(v, &said, false, false, &(size_t){0});
    vwn_close(v);
    return c;
}

static void checked_free(Checked *c)
{
    free(c->said.s);
    free(c->fixed.s);
    free(c->changes.s);
}

/* All rounds of fixes. */
static char *fix(const char *text, size_t *left)
{
    char *now = strdup(text);
    for (int round = 0; round < 20; round++) {
        Checked c = check(now);
        *left = c.errors;
        if (c.fixes) {
            free(now);
            now = strdup(c.fixed.s);
        }
        bool again = c.fixes > 0;
        checked_free(&c);
        if (!again)
            break;
    }
    return now;
}

enum { MOST = 12 };
typedef struct Mistake {
    const char *name, *good, *bad, *right; /* right: NULL when no fix is made */
    const char *said[MOST];
    int n_said;
    size_t errors, left; /* at most so many; behind the fixes */
} Mistake;

/* The good file with `text` in the place of `good`. */
static char *with(const char *base, const char *good, const char *text)
{
    const char *at = strstr(base, good);
    size_t n = (size_t)(at - base);
    char *s = malloc(strlen(base) + strlen(text) + 1);
    if (!s)
        abort();
    memcpy(s, base, n);
    strcpy(s + n, text);
    strcat(s, at + strlen(good));
    return s;
}

static void fail(Test *t, const Mistake *m, const char *what, const char *shown)
{
    t->failures++;
    printf("%s: %s\n%s\n", m->name, what, shown);
}

static void one(Test *t, const char *base, const Mistake *m)
{
    t->checks++;
    if (!strstr(base, m->good)) {
        fail(t, m, "the good file has no such text", m->good);
        return;
    }
    char *bad = with(base, m->good, m->bad);
    Checked c = check(bad);
    for (int i = 0; i < m->n_said; i++)
        if (!strstr(c.said.s, m->said[i])) {
            fail(t, m, m->said[i], c.said.s);
            break;
        }
    if (c.errors < 1 || c.errors > m->errors)
        fail(t, m, "more messages than mistakes, or none", c.said.s);
    size_t left, again;
    char *fixed = fix(bad, &left), *right = m->right ? with(base, m->good, m->right) : strdup(bad), *twice = fix(fixed, &again);
    if (strcmp(fixed, right) != 0)
        fail(t, m, "the fixed text is another one", fixed);
    if ((m->right && left > m->left) || again != left)
        fail(t, m, "errors are left behind the fix", fixed);
    if (strcmp(fixed, twice) != 0)
        fail(t, m, "a second fix changes more", twice);
    free(bad);
    free(fixed);
    free(right);
    free(twice);
    checked_free(&c);
}

/* "\n" in a line of the list is a line break. */
static char *unescape(char *s)
{
    char *to = s;
    for (char *from = s; *from; from++)
        if (from[0] == '\\' && from[1] == 'n') {
            *to++ = '\n';
            from++;
        } else {
            *to++ = *from;
        }
    *to = 0;
    return s;
}

static int list(Test *t, char *text, const char *base)
{
    Mistake m = {0};
    int n = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        char *rest = unescape(line + 1 + (line[1] == ' '));
        switch (line[0]) {
        case '@':
            if (m.name)
                one(t, base, &m);
            m = (Mistake){.name = rest, .errors = 1};
            n++;
            break;
        case '-': m.good = rest; break;
        case '+': m.bad = rest; break;
        case '=': m.right = rest; break;
        case '?':
            if (m.n_said < MOST)
                m.said[m.n_said++] = rest;
            break;
        case '!': m.errors = (size_t)atoi(rest); break;
        case '~': m.left = (size_t)atoi(rest); break;
        default: break;
        }
    }
    if (m.name)
        one(t, base, &m);
    return n;
}

int main(void)
{
    Test t = {0};
    char *text = test_read(VWN_SOURCE_DIR "/tests/front/mistakes.txt", NULL);
    char *start = text ? strstr(text, "\n<<<\n") : NULL, *end = text ? strstr(text, "\n>>>\n") : NULL;
    EXPECT(&t, start && end);
    if (!start || !end)
        return test_end(&t);
    char *base = strndup(start + 5, (size_t)(end + 1 - start - 5));
    Checked c = check(base);
    EXPECT(&t, c.errors == 0 && c.fixes == 0);
    checked_free(&c);
    int n = list(&t, end + 5, base);
    EXPECT(&t, n >= 60);
    printf("%d mistakes\n", n);
    free(base);
    free(text);
    return test_end(&t);
}
