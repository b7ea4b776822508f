/* examples.c - the CUDA kernels of every example, emulated, against the float64 reference evaluator.
 *
 * In:  the examples, each made small, with randomised parameters, forward and backward; sizes of 1, 31, 33, primes.
 * Out: `N passed, N failed`; 77 without a C++ compiler. Every loss and every gradient agrees to float32 bounds, the four
 *      ways of backend_emu.h give the same bits. An example with a model of its own that is not listed is a failure.
 */
#include "../examples.h"

#include "emulated.h"

#include <dirent.h>

/* Rows that are alone, that fill a warp but for one, that leave one over, that nothing divides. */
static const int64_t positions[] = {7, 31, 1, 33, 13, 37};
/* Rows of these are long, and a few show what many would. */
static const char *const wide[] = {"vwn 1.5x, mtp", "vwn (4,8)", "vwn x8, moe", "quickstart", "ghc (8,16)", "ghc (8,32)", "mtp chain"};

/* Where large numbers cancel, as in the gradients of a condition, the CPU's kernels differ by up to 3e-5. */
static const double WORST = 5e-5;

typedef struct Case {
    const Source *source;
    Agreement is;
} Case;

static void compare(Ctx *ctx, void *arg)
{
    Case *c = arg;
    gradients_emulated(ctx, load_text(ctx, example_text(ctx, c->source), c->source->v.set), &c->is);
}

static bool run_case(const Source *s, int64_t T)
{
    Ctx *ctx = ctx_new(NULL);
    for (size_t i = 0; i < COUNT_OF(wide); i++)
        T = strcmp(wide[i], s->v.name) == 0 ? 3 : T;
    Case c = {s, {.B = T == 7 ? 2 : 1, .T = T, .worst = INFINITY, .name = ""}};
    guarded(ctx, compare, &c);
    bool ok = c.is.worst < WORST && c.is.compared > 10 && c.is.same_bits;
    printf("%-18s B %lld T %-2lld %3zu gradients, worst %.1e at %s%s%s\n", s->v.name, (long long)c.is.B,
           (long long)T, c.is.compared, c.is.worst, c.is.name, c.is.same_bits ? "" : ", orders differ",
           ok ? "" : "  FAILED");
    fflush(stdout);
    ctx_free(ctx);
    return ok;
}

static bool has_model(const char *file)
{
    char path[512], line[1024];
    snprintf(path, sizeof path, "%s/examples/%.200s", VWN_SOURCE_DIR, file);
    FILE *f = fopen(path, "r");
    bool has = false;
    while (f && !has && fgets(line, sizeof line, f))
        has = strncmp(line, "model ", 6) == 0;
    if (f)
        fclose(f);
    return has;
}

/* Examples without a model of their own import those that have one. */
static int not_listed(void)
{
    int missing = 0;
    DIR *folder = opendir(VWN_SOURCE_DIR "/examples");
    for (struct dirent *d; folder && (d = readdir(folder));) {
        size_t n = strlen(d->d_name), i = 0;
        if (n < 5 || strcmp(d->d_name + n - 4, ".vwn") != 0 || !has_model(d->d_name))
            continue;
        while (i < COUNT_OF(sources) && (!sources[i].file || strcmp(sources[i].file, d->d_name) != 0))
            i++;
        if (i == COUNT_OF(sources)) {
            printf("%s is not in tests/examples.h  FAILED\n", d->d_name);
            missing++;
        }
    }
    if (folder)
        closedir(folder);
    return folder ? missing : 1;
}

static const char *case_name(size_t i) { return sources[i].v.name; }
static bool run_one(size_t i) { return run_case(&sources[i], positions[i % COUNT_OF(positions)]); }

int main(int argc, char **argv)
{
    int missing = not_listed(), status = emulated_cases(argc, argv, COUNT_OF(sources), case_name, run_one);
    return missing ? 1 : status;
}
