/* diff.c - the difference of two texts, line by line.
 *
 * In:  two texts.   Out: a unified diff with three lines of context.
 * The one idea: equal lines at both ends are cut off; what is left is compared by the table of
 * longest common subsequences, or, when that table would be too large, shown as removed and
 * added whole.
 */
#include "runtime/cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONTEXT = 3, LARGEST_TABLE = 1 << 24 };

typedef struct DiffLine {
    const char *s;
    size_t n; /* with its newline, if it has one */
} DiffLine;
typedef struct Edit {
    char what; /* ' ', '-', '+' */
    DiffLine line;
} Edit;

static DiffLine *split(const Text *text, size_t *n)
{
    size_t count = 0;
    for (size_t i = 0; i < text->n; i++)
        count += text->s[i] == '\n';
    DiffLine *line = calloc(count + 2, sizeof *line);
    *n = 0;
    for (size_t at = 0; line && at < text->n;) {
        const char *end = memchr(text->s + at, '\n', text->n - at);
        size_t size = end ? (size_t)(end - text->s) + 1 - at : text->n - at;
        line[(*n)++] = (DiffLine){text->s + at, size};
        at += size;
    }
    return line;
}

static bool same(DiffLine a, DiffLine b) { return a.n == b.n && memcmp(a.s, b.s, a.n) == 0; }

/* Edits that turn a into b, into `out` (room for n + m). Returns their number. */
static size_t compare(const DiffLine *a, size_t n, const DiffLine *b, size_t m, Edit *out)
{
    size_t k = 0, i = 0, j = 0, width = m + 1;
    unsigned *longest = (n + 1) > LARGEST_TABLE / width ? NULL : calloc((n + 1) * width, sizeof *longest);
    if (longest) {
        for (i = n; i-- > 0;)
            for (j = m; j-- > 0;)
                longest[i * width + j] = same(a[i], b[j]) ? longest[(i + 1) * width + j + 1] + 1
                                         : longest[(i + 1) * width + j] >= longest[i * width + j + 1]
                                             ? longest[(i + 1) * width + j]
                                             : longest[i * width + j + 1];
        for (i = j = 0; i < n && j < m;) {
            if (same(a[i], b[j]))
                out[k++] = (Edit){' ', a[i]}, i++, j++;
            else if (longest[(i + 1) * width + j] >= longest[i * width + j + 1])
                out[k++] = (Edit){'-', a[i++]};
            else
                out[k++] = (Edit){'+', b[j++]};
        }
        free(longest);
    }
    while (i < n)
        out[k++] = (Edit){'-', a[i++]};
    while (j < m)
        out[k++] = (Edit){'+', b[j++]};
    return k;
}

static void put_hunk(const vwn_writer *out, const Edit *edit, size_t lo, size_t hi, size_t line_a, size_t line_b)
{
    size_t n = 0, m = 0;
    for (size_t i = lo; i < hi; i++) {
        n += edit[i].what != '+';
        m += edit[i].what != '-';
    }
    char head[96];
    int size = snprintf(head, sizeof head, "@@ -%zu,%zu +%zu,%zu @@\n", n ? line_a : line_a - 1, n,
                        m ? line_b : line_b - 1, m);
    out->put(out->user, head, (size_t)size);
    for (size_t i = lo; i < hi; i++) {
        DiffLine line = edit[i].line;
        out->put(out->user, &edit[i].what, 1);
        out->put(out->user, line.s, line.n);
        if (line.s[line.n - 1] != '\n')
            out->put(out->user, "\n\\ No newline at end of file\n", 29);
    }
}

static void put_hunks(const vwn_writer *out, const Edit *edit, size_t n)
{
    size_t line_a = 1, line_b = 1;
    for (size_t i = 0; i < n;) {
        size_t change = i;
        while (change < n && edit[change].what == ' ')
            change++;
        if (change == n)
            return;
        size_t lo = change > i + CONTEXT ? change - CONTEXT : i, hi = change;
        for (size_t quiet = 0; hi < n && quiet <= 2 * CONTEXT; hi++)
            quiet = edit[hi].what == ' ' ? quiet + 1 : 0;
        size_t last = hi;
        while (edit[last - 1].what == ' ')
            last--;
        hi = last + CONTEXT < n ? last + CONTEXT : n;
        line_a += lo - i;
        line_b += lo - i;
        put_hunk(out, edit, lo, hi, line_a, line_b);
        for (size_t k = lo; k < hi; k++) {
            line_a += edit[k].what != '+';
            line_b += edit[k].what != '-';
        }
        i = hi;
    }
}

void write_diff(const vwn_writer *out, const char *name, const Text *before, const Text *after)
{
    size_t n, m;
    DiffLine *a = split(before, &n), *b = split(after, &m);
    Edit *edit = calloc(n + m + 1, sizeof *edit);
    if (a && b && edit) {
        size_t head = 0, tail = 0, k = 0;
        while (head < n && head < m && same(a[head], b[head]))
            head++;
        while (tail < n - head && tail < m - head && same(a[n - 1 - tail], b[m - 1 - tail]))
            tail++;
        for (size_t i = 0; i < head; i++)
            edit[k++] = (Edit){' ', a[i]};
        k += compare(a + head, n - head - tail, b + head, m - head - tail, edit + k);
        for (size_t i = n - tail; i < n; i++)
            edit[k++] = (Edit){' ', a[i]};
        char title[4400];
        int size = snprintf(title, sizeof title, "--- %.2000s\n+++ %.2000s (formatted)\n", name, name);
        out->put(out->user, title, (size_t)size);
        put_hunks(out, edit, k);
    }
    free(a);
    free(b);
    free(edit);
}
