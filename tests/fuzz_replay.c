/* fuzz_replay.c - runs a fuzz target over stored inputs, without a fuzzer.
 *
 * In:  VWN_SEEDS, folders separated by ':'.   Out: exit code 0 when no input crashed the
 * target. The one idea: each file is given whole, cut at several places, and with single bytes
 * changed, so that the ordinary test run walks the error paths too; all of it is the same in
 * every run. Half of the bytes, a quarter under the sanitizers, unless all cases are taken (drawn.h).
 */
#include "support/drawn.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CUTS = 16, CHANGES = 48, LARGEST = 1 << 20 };

static uint64_t next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* An exact-size copy, so that a read past the end is seen by the sanitizer. */
static void run_copy(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy)
        exit(1);
    memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static void run_file(const char *path)
{
    static const uint8_t bytes[] = {0,   '\n', '{', '}', '(',  ')',
                                    '=', '"',  '/', '9', 0x80, 0xff};
    FILE *f = fopen(path, "rb");
    if (!f)
        return;
    uint8_t *data = malloc(LARGEST);
    if (!data)
        exit(1);
    size_t size = fread(data, 1, LARGEST, f);
    fclose(f);
    uint64_t state = size;
    int changes = CHANGES / (int)drawn_share(&(CaseDraw){.one_in = 2, .sanitized = 8});
    run_copy(data, size);
    for (int i = 0; i < CUTS && size; i++)
        run_copy(data, next(&state) % size);
    for (int i = 0; i < changes && size; i++) {
        size_t at = next(&state) % size;
        uint8_t old = data[at];
        data[at] = bytes[next(&state) % sizeof bytes];
        run_copy(data, size);
        data[at] = old;
    }
    free(data);
}

int main(void)
{
    const char *seeds = getenv("VWN_SEEDS");
    int files = 0;
    while (seeds && *seeds) {
        size_t n = strcspn(seeds, ":");
        char folder[4096], path[8192];
        snprintf(folder, sizeof folder, "%.*s", (int)n, seeds);
        seeds += n + (seeds[n] == ':');
        struct dirent **entry;
        int count = scandir(folder, &entry, NULL, alphasort);
        for (int i = 0; i < count; i++) {
            if (entry[i]->d_name[0] != '.') {
                snprintf(path, sizeof path, "%s/%s", folder, entry[i]->d_name);
                run_file(path);
                files++;
            }
            free(entry[i]);
        }
        if (count >= 0)
            free(entry);
    }
    printf("%d files\n", files);
    return files ? 0 : 77;
}
