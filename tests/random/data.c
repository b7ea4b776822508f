/* data.c - see stages.h: the data that a file names.
 *
 * In:  the text of a file.   Out: text_K.txt of K distinct characters, tokens_K.bin of ids
 * below K, image_C_S.npy of [C, S, S] and labels_K.npy below K, in the present folder, as far
 * as the text names them.
 */
#include "stages.h"

#include "compiler/base/base.h"

#include <stdio.h>
#include <string.h>

enum { EXAMPLES = 24, LETTERS = 12000 };

static uint64_t next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static void write_npy(const char *path, const char *type, const char *shape, const void *data, size_t n)
{
    char header[128];
    FILE *f = fopen(path, "wb");
    if (!f)
        return;
    int used = snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", type, shape);
    fprintf(f, "\x93NUMPY%c%c%c%c%-117.*s\n", 1, 0, 118, 0, used, header);
    fwrite(data, 1, n, f);
    fclose(f);
}

static void write_named(const char *name)
{
    uint64_t state = 7;
    int a, b;
    char shape[64];
    if (sscanf(name, "text_%d.txt", &a) == 1 && a > 0 && a < 26) {
        FILE *f = fopen(name, "wb");
        for (int i = 0; f && i < LETTERS; i++)
            fputc('a' + (i < a ? i : (int)(next(&state) % (uint64_t)a)), f);
        if (f)
            fclose(f);
    } else if (sscanf(name, "tokens_%d.bin", &a) == 1 && a > 0) {
        FILE *f = fopen(name, "wb");
        for (int i = 0; f && i < LETTERS; i++) {
            uint64_t id = next(&state) % (uint64_t)a;
            fputc((int)(id & 255), f);
            fputc((int)(id >> 8), f);
        }
        if (f)
            fclose(f);
    } else if (sscanf(name, "image_%d_%d.npy", &a, &b) == 2 && a > 0 && a < 9 && b > 0 && b < 99) {
        static unsigned char data[EXAMPLES * 9 * 99 * 99];
        size_t n = (size_t)(EXAMPLES * a * b * b);
        for (size_t i = 0; i < n; i++)
            data[i] = (unsigned char)(next(&state) % 2);
        snprintf(shape, sizeof shape, "%d, %d, %d, %d", EXAMPLES, a, b, b);
        write_npy(name, "|u1", shape, data, n);
    } else if (sscanf(name, "labels_%d.npy", &a) == 1 && a > 0) {
        unsigned char data[EXAMPLES];
        for (int i = 0; i < EXAMPLES; i++)
            data[i] = (unsigned char)(next(&state) % (uint64_t)(a < 256 ? a : 256));
        snprintf(shape, sizeof shape, "%d,", EXAMPLES);
        write_npy(name, "|u1", shape, data, EXAMPLES);
    }
}

void write_data(const char *text)
{
    static const char *const begin[] = {"\"text_", "\"tokens_", "\"image_", "\"labels_"};
    for (size_t i = 0; i < COUNT_OF(begin); i++)
        for (const char *at = text; (at = strstr(at, begin[i])); at++) {
            char name[64];
            size_t n = strcspn(at + 1, "\"\n/");
            if (n < sizeof name) {
                snprintf(name, sizeof name, "%.*s", (int)n, at + 1);
                write_named(name);
            }
        }
}
