/* fuzz_replay.c - runs a fuzz target over stored inputs, without a fuzzer.
 *
 * In:  VWN_SEEDS, folders separated by ':'.   Out: exit code 0 when no input crashed the
 * target and at least half of them were valid files. The one idea: each file is given whole, edited as a person
 * edits, cut at several places, and with single bytes changed, so that the ordinary test run walks what lies
 * behind the checks and the error paths, too; all of it is the same in every run. A sixth of it, a twelfth under the
 * sanitizers, unless all cases are taken (drawn.h).
 */
#include "support/drawn.h"
#include "support/fuzz.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EDITS = 72, CUTS = 9, CHANGES = 18, LARGEST = 1 << 20 };

static size_t inputs, valid;

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
    inputs++;
    valid += fuzz_valid();
    free(copy);
}

static void run_edited(const uint8_t *data, size_t size, unsigned seed)
{
    uint8_t *edited = malloc(LARGEST);
    if (!edited)
        exit(1);
    memcpy(edited, data, size);
    run_copy(edited, LLVMFuzzerCustomMutator(edited, size, LARGEST, seed));
    free(edited);
}

static void run_file(const char *path)
{
    static const uint8_t bytes[] = {0, '\n', '{', '}', '(', ')', '=', '"', '/', '9', 0x80, 0xff};
    FILE *f = fopen(path, "rb");
    if (!f)
        return;
    uint8_t *data = malloc(LARGEST);
    if (!data)
        exit(1);
    size_t size = fread(data, 1, LARGEST, f);
    fclose(f);
    uint64_t state = size;
    int share = (int)drawn_share(&(CaseDraw){.one_in = 6, .sanitized = 12});
    run_copy(data, size);
    bool whole = fuzz_valid();
    if (!whole) /* what a fuzzer found, for the most part: its neighbours are no files either */
        share *= 8;
    for (int i = 0; whole && i < EDITS / share; i++)
        run_edited(data, size, (unsigned)next(&state));
    for (int i = 0; i < CUTS / share && size; i++)
        run_copy(data, next(&state) % size);
    for (int i = 0; i < CHANGES / share && size; i++) {
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
    printf("%d files, %zu inputs, %zu of them valid\n", files, inputs, valid);
    if (files && 2 * valid < inputs) {
        printf("less than half of the inputs are valid files\n");
        return 1;
    }
    return files ? 0 : 77;
}
