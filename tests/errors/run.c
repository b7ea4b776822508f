/* run.c - messages: `vwn check NAME.vwn` prints exactly what the case NAME says, and ends with
 * the status that follows from it. Under the sanitizers every fourth case is taken, and all of
 * the scanner and the parser (E00).
 *
 *     test_errors_run [VWN]            default: $VWN
 *     test_errors_run --bless [VWN]    writes into the cases what is printed
 *     test_errors_run --unpack DIR     writes NAME.vwn, NAME.err (in short), NAME.args
 * When: quick, first, computes.
 */
#define _XOPEN_SOURCE 700
#include "cases.h"
#include "support/sanitized.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char folder[] = VWN_SOURCE_DIR "/tests/errors";

/* What a case takes is kept until the end: the leak checker has nothing to say. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) { return 1; }

static void command(const char *text)
{
    if (system(text) != 0) {
        printf("failed: %s\n", text);
        exit(2);
    }
}

static void lines_write(const char *path, const Lines *l)
{
    FILE *f = fopen(path, "wb");
    if (!f) {
        perror(path);
        exit(2);
    }
    for (size_t i = 0; i < l->n; i++) {
        for (const char *s = l->v[i]; *s; s++)
            fputc(*s == 1 ? 0 : *s, f);
        fputc('\n', f);
    }
    fclose(f);
}

/* Where a link can be made: not every way that sources travel keeps one. */
static void unpack(const Cases *all, const char *to)
{
    command(text_format("mkdir -p '%s' && cp -R '%s/lib' '%s' && cd '%s' && : > other.txt && "
                        "ln -s ../other.txt lib/link.vwn",
                        to, folder, to, to));
    for (size_t i = 0; i < all->n; i++) {
        const Case *c = &all->v[i];
        if (!strcmp(c->name, "base"))
            continue;
        Lines text = case_text(all, c), arguments = lines_of(c->arguments);
        lines_write(text_format("%s/%s.vwn", to, c->name), &text);
        lines_write(text_format("%s/%s.err", to, c->name), &c->wanted);
        if (arguments.n > 0)
            lines_write(text_format("%s/%s.args", to, c->name), &arguments);
    }
}

/* The status that these messages ask for: errors 1, false checks alone 3, else 0. */
static int status_of(const Lines *messages)
{
    int status = 0;
    for (size_t i = 0; i < messages->n; i++) {
        if (!strncmp(messages->v[i], "error[E0801]", 12))
            status = status ? status : 3;
        else if (!strncmp(messages->v[i], "error[E", 7))
            status = 1;
    }
    return status;
}

static int same(const Lines *a, const Lines *b)
{
    int is = a->n == b->n;
    for (size_t i = 0; is && i < a->n; i++)
        is = !strcmp(a->v[i], b->v[i]);
    return is;
}

static void print(const char *what, const Lines *l)
{
    printf("---- %s\n", what);
    for (size_t i = 0; i < l->n; i++)
        puts(l->v[i]);
}

static Lines short_of(const Cases *all, const Case *c, const Lines *printed)
{
    Lines text = case_text(all, c);
    return print_shorten(printed, c, &text);
}

/* Runs the program on a case; what it printed is in short behind the call. */
static int run(const Cases *all, const Case *c, const char *vwn, Lines *printed, Lines *got)
{
    int status =
        system(text_format("NO_COLOR=1 LC_ALL=C.UTF-8 '%s' check %s %s.vwn > out 2> err", vwn, c->arguments, c->name));
    *printed = lines_read("err");
    *got = short_of(all, c, printed);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int passes(const Cases *all, const Case *c, const char *vwn)
{
    Lines printed, got;
    int status = run(all, c, vwn, &printed, &got), as_wanted = same(&got, &c->wanted);
    if (as_wanted && status == status_of(&got))
        return 1;
    printf("FAILED: %s of %s, status %d\n", c->name, c->file, status);
    if (!as_wanted) {
        print("wanted", &c->wanted);
        print("got", &got);
        print("printed", &printed);
    }
    return 0;
}

/* ---- blessing ---- */

static void lines_put(FILE *f, const Lines *l)
{
    for (size_t i = 0; i < l->n; i++)
        fprintf(f, "%s\n", l->v[i]);
}

static void section_put(FILE *f, const Case *c)
{
    fprintf(f, "== %s%s%s\n", c->name, c->base[0] ? " " : "", c->base);
    if (c->arguments[0])
        fprintf(f, "$ %s\n", c->arguments);
    lines_put(f, &c->edits);
    lines_put(f, &c->wanted);
}

static void bless(Cases *all, const char *vwn)
{
    Lines printed;
    for (size_t i = 0; i < all->n; i++)
        if (strcmp(all->v[i].name, "base") != 0)
            run(all, &all->v[i], vwn, &printed, &all->v[i].wanted);
    FILE *f = NULL;
    for (size_t i = 0; i < all->n; i++) {
        int begins = i == 0 || strcmp(all->v[i].file, all->v[i - 1].file) != 0;
        if (f && begins)
            fclose(f);
        if (begins)
            f = fopen(text_format("%s/%s", folder, all->v[i].file), "wb");
        if (!f) {
            perror(all->v[i].file);
            exit(2);
        }
        lines_put(f, &all->v[i].before);
        fputs(begins ? "" : "\n", f);
        section_put(f, &all->v[i]);
    }
    if (f)
        fclose(f);
}

int main(int argc, char **argv)
{
    Cases all = cases_read(folder);
    int blesses = argc > 1 && !strcmp(argv[1], "--bless");
    if (argc == 3 && !strcmp(argv[1], "--unpack")) {
        unpack(&all, argv[2]);
        return 0;
    }
    const char *vwn = argc > 1 + blesses ? argv[1 + blesses] : getenv("VWN");
    char scratch[] = "/tmp/vwn-errors-XXXXXX", *program = vwn ? realpath(vwn, NULL) : NULL;
    if (!program || !mkdtemp(scratch)) {
        fputs("usage: test_errors_run [--bless] VWN | --unpack DIR\n", stderr);
        return 2;
    }
    unpack(&all, scratch);
    if (chdir(scratch) != 0)
        return 2;
    const char *whole = getenv("VWN_TEST_WHOLE");
    size_t every = SANITIZED && !(whole && !strcmp(whole, "1")) ? 4 : 1, taken = 0, failed = 0;
    if (blesses)
        bless(&all, program);
    for (size_t i = 0; i < all.n && !blesses; i++) {
        const Case *c = &all.v[i];
        if (!strcmp(c->name, "base") || (i % every != 0 && strncmp(c->name, "E00", 3) != 0))
            continue;
        taken++;
        failed += !passes(&all, c, program);
    }
    command(text_format("rm -rf '%s'", scratch));
    printf("%zu cases, %zu failed\n", taken, failed);
    return failed > 0 || (taken == 0 && !blesses);
}
