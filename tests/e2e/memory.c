/* memory.c - the resident set of a training run against what `vwn cost` says.
 *
 * In:  the program (VWN), the quickstart model and its text.   Out: `N passed, N failed`.
 * The first run fills the kernel cache, so that the measured one starts no compiler.
 * When: slow, optimised. The sanitizers report crashes themselves, stand in for malloc and need address space without
 *       end.
 */
#define _DEFAULT_SOURCE /* wait4 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs the program with its output going to `to`; the peak resident set in bytes, or -1. */
static long run(const char *program, char *const *args, const char *to)
{
    pid_t child = fork();
    if (child == 0) {
        if (!freopen(to, "w", stdout) || !freopen("/dev/null", "w", stderr))
            _exit(126);
        execv(program, args);
        _exit(127);
    }
    struct rusage use;
    int status;
    if (child < 0 || wait4(child, &status, 0, &use) != child || status != 0)
        return -1;
    return use.ru_maxrss * 1024;
}

static double field(const char *path, const char *key)
{
    static char text[1 << 16];
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    text[n] = 0;
    if (f)
        fclose(f);
    char *at = strstr(text, key);
    return at ? atof(at + strlen(key)) : 0;
}

int main(void)
{
    const char *program = getenv("VWN"), *source = getenv("VWN_SOURCE"), *data = getenv("VWN_DATA");
    char model[4096], set[4096], *build = getenv("VWN_BUILD_TYPE");
    if (!program || !source || !data || (build && !strcmp(build, "Sanitize")))
        return 77; /* sanitizers keep shadow memory */
    snprintf(model, sizeof model, "%s/examples/quickstart.vwn", source);
    snprintf(set, sizeof set, "train.data=text_file(\"%s/kjv.txt\", val = 2%%)", data);
    if (access(strchr(set, '"') ? data : "", R_OK))
        return 77;
    char *cost[] = {"vwn", "cost", "--json", model, NULL};
    char *train[] = {"vwn", "train", model, "--set", set, "--run", "memory", "--overwrite", "--until", "3 steps", NULL};
    long first = run(program, train, "/dev/null"), resident = run(program, train, "/dev/null");
    long cost_rss = run(program, cost, "cost.json");
    double planned = field("cost.json", "\"bytes_total\":");
    printf("planned %.1f MB, resident %.1f MB, ratio %.3f\n", planned / 1e6, (double)resident / 1e6,
           (double)resident / planned);
    int ok = first > 0 && resident > 0 && cost_rss > 0 && planned > 1e8 && resident <= 1.15 * planned &&
             resident >= 0.8 * planned;
    printf("%d passed, %d failed\n", ok, !ok);
    return !ok;
}
