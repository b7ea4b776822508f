/* texts.c - see texts.h. */
#define _DEFAULT_SOURCE
#include "texts.h"

#include "compiler/portable/file.h"
#include "compiler/portable/order.h"
#include "runtime/base/sha256.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ENDS = 1 << 16 }; /* bytes of a text that are looked at, at both of its ends */

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool named_lines(const char *path)
{
    static const char *const packed[] = {".gz", ".zst", ""}, *const lines[] = {".jsonl", ".ndjson"};
    size_t n = strlen(path);
    for (size_t i = 0; i < COUNT_OF(packed); i++) {
        size_t cut = strlen(packed[i]);
        if (n < cut || strcmp(path + n - cut, packed[i]) != 0)
            continue;
        for (size_t k = 0; k < COUNT_OF(lines); k++) {
            size_t end = strlen(lines[k]);
            if (n - cut > end && !memcmp(path + n - cut - end, lines[k], end))
                return true;
        }
    }
    return false;
}

/* The size of a text, and its ends into the hash. */
static int64_t look_at(Session *s, const char *path, Sha256 *h)
{
    const char *why;
    struct stat st;
    sha256_add_string(h, last_part(path), strlen(last_part(path)));
    if (!strcmp(path, "-"))
        return -1;
    int fd = file_open(path, O_RDONLY, &why);
    if (fd < 0)
        ctx_raise(s->ctx, ST_ENVIRONMENT, "%.300s: %s", path, why);
    ArenaMark mark = arena_mark(s->arena);
    char *ends = arena_alloc(s->arena, 2 * ENDS);
    bool fine = fstat(fd, &st) == 0;
    off_t back = fine && st.st_size > ENDS ? st.st_size - ENDS : 0;
    ssize_t first = fine ? pread(fd, ends, ENDS, 0) : -1, last = fine ? pread(fd, ends + ENDS, ENDS, back) : -1;
    int error = errno;
    close(fd);
    if (first < 0 || last < 0)
        ctx_raise(s->ctx, ST_ENVIRONMENT, "%.300s could not be read: %s", path, strerror(error));
    sha256_add_string(h, ends, (size_t)first);
    sha256_add_string(h, ends + ENDS, (size_t)last);
    sha256_add(h, &st.st_size, sizeof st.st_size);
    arena_reset(s->arena, mark);
    return st.st_size;
}

void texts_list(Session *s, const TextsAsk *ask, Texts *out, char hash[65])
{
    size_t n = ask->n, inputs = 0;
    *out = (Texts){.path = NEW_ARRAY(s->arena, const char *, n),
                   .name = NEW_ARRAY(s->arena, const char *, n),
                   .field = NEW_ARRAY(s->arena, const char *, n),
                   .bytes = NEW_ARRAY(s->arena, int64_t, n),
                   .n = n};
    int64_t *bytes = NEW_ARRAY(s->arena, int64_t, n);
    Sha256 h;
    sha256_start(&h);
    for (size_t i = 0; i < n; i++)
        bytes[i] = look_at(s, ask->text[i], &h);
    for (size_t i = 0; i < n; i++) {
        size_t k = ask->shuffle ? (size_t)permute_index(mix64(ask->seed), n, i) : i;
        const char *path = ask->text[k];
        bool input = !strcmp(path, "-");
        out->bytes[i] = bytes[k];
        out->path[i] = path;
        out->name[i] = input ? "the standard input" : path;
        out->field[i] = ask->field ? ask->field : named_lines(path) ? "text" : NULL;
        inputs += input;
    }
    if (inputs > 1)
        ctx_raise(s->ctx, ST_USAGE, "the standard input can be read once");
    sha256_hex(&h, hash);
}
