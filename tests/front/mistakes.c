/* mistakes.c - what people write who come from PyTorch, nanoGPT, Hugging Face or Megatron, what they are told, and what
 * `vwn check --fix` makes of it.
 *
 * In:  mistakes.txt: a good file, then mistakes in it, each with what must be said and with the text that a fix writes.
 * Out: the messages, searched; the text after the fixes, byte for byte; that the fixed text is accepted, or that what is left
 *      is said to be left; that fixing twice is fixing once; that no fix touches the good file. Then the examples, each with
 *      words of other languages planted in it at drawn places: fixed, they are what they were. A third is drawn.
 * The one idea: a fixed text is the good one with the mistake's right form in the place of the mistake, and nothing else.
 */
#define _XOPEN_SOURCE 700
#include "runtime/vwn.h"

#include "support/drawn.h"
#include "test.h"

#include <ctype.h>
#include <dirent.h>

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

static const char *file_path = "m.vwn";

static Checked check(const char *text)
{
    Checked c = {0};
    vwn_writer said = into(&c.said), fixed = into(&c.fixed), changes = into(&c.changes);
    vwn_context *v = vwn_open(&(vwn_options){.threads = 1, .device = "cpu"});
    vwn_unit *unit = NULL;
    vwn_check(v, &(vwn_file_options){.path = file_path, .text = text, .text_length = strlen(text)}, &unit);
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
    char *fixed = fix(bad, &left), *right = m->right ? with(base, m->good, m->right) : strdup(bad),
         *twice = fix(fixed, &again);
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

/* ---- planted in examples ---- */

static const char *const planted[][2] = {{"true", "True"},
                                         {"false", "False"},
                                         {"none", "None"},
                                         {"mod", "%"},
                                         {"^", "**"},
                                         {"attention { heads", "attention { n_head"},
                                         {"vocab =", "vocab_size ="},
                                         {"context ", "block_size "},
                                         {"0 steps", "0 iters"},
                                         {"0 seqs", "0 sequences"},
                                         {"hidden =", "intermediate_size ="},
                                         {"rms_norm", "rms_nrom"},
                                         {"activation", "activaton"},
                                         {"gelu", "nn.GELU"},
                                         {"clip =", "max_grad_norm ="},
                                         {"let ", "const "}};

static bool part_of_word(char c) { return c == '_' || isalnum((unsigned char)c); }

/* The place of the k-th `word` of a text that is no part of a comment, a string or another word; NULL: there are fewer. */
static char *place_of(char *text, const char *word, size_t k)
{
    size_t n = strlen(word);
    bool quoted = false, comment = false;
    for (char *s = text; *s; s++) {
        comment = *s != '\n' && (comment || (*s == '#' && !quoted) || (s[0] == '/' && s[1] == '-'));
        quoted ^= *s == '"' && !comment;
        bool whole = !strncmp(s, word, n) &&
                     !(isalpha((unsigned char)*word) && s > text && (part_of_word(s[-1]) || s[-1] == '.')) &&
                     !(part_of_word(word[n - 1]) && (part_of_word(s[n]) || s[n] == ':'));
        if (whole && !quoted && !comment && k-- == 0)
            return s;
    }
    return NULL;
}

static int plant(char **text, uint64_t *random)
{
    int n = 0;
    for (size_t i = 0; i < sizeof planted / sizeof planted[0]; i++) {
        const char *word = planted[i][0], *other = planted[i][1];
        size_t count = 0;
        while (place_of(*text, word, count))
            count++;
        *random = *random * 6364136223846793005u + 1442695040888963407u;
        char *at = count ? place_of(*text, word, (*random >> 33) % count) : NULL, *with;
        if (!at)
            continue;
        with = malloc(strlen(*text) + strlen(other) + 1);
        if (!with)
            abort();
        memcpy(with, *text, (size_t)(at - *text));
        strcpy(with + (at - *text), other);
        strcat(with, at + strlen(word));
        free(*text);
        *text = with;
        n++;
    }
    return n;
}

static int is_model(const struct dirent *e)
{
    size_t n = strlen(e->d_name);
    return n > 4 && !strcmp(e->d_name + n - 4, ".vwn");
}

static void plant_in_examples(Test *t)
{
    CaseDraw draw = {.one_in = 3, .sanitized = 20};
    uint64_t random = 1;
    int n = 0;
    struct dirent **files;
    int found = scandir(VWN_SOURCE_DIR "/examples", &files, is_model, alphasort);
    for (int i = 0; i < found; i++) {
        char path[600];
        snprintf(path, sizeof path, VWN_SOURCE_DIR "/examples/%s", files[i]->d_name);
        free(files[i]);
        char *good = case_drawn(&draw, (size_t)i) ? test_read(path, NULL) : NULL;
        if (!good)
            continue;
        char *bad = strdup(good);
        n += plant(&bad, &random);
        file_path = path;
        size_t left;
        char *fixed = fix(bad, &left), *same = fix(good, &left);
        test_same(t, path, fixed, good);
        test_same(t, path, same, good);
        free(good);
        free(bad);
        free(fixed);
        free(same);
    }
    if (found > 0)
        free(files);
    file_path = "m.vwn";
    EXPECT(t, n > 50 || SANITIZED);
    printf("%d planted\n", n);
    cases_end(&draw);
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
    plant_in_examples(&t);
    free(base);
    free(text);
    return test_end(&t);
}
