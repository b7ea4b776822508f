/* backend.c - the rows of backends.def, and which of them `--device` means. */
#include "backend.h"

#include <stdlib.h>
#include <string.h>

const BackendKind backend_kinds[BACKEND_COUNT] = {
#define BACKEND(id, name, ...) [BACKEND_##id] = {.word = name, __VA_ARGS__},
#include "backends.def"
#undef BACKEND
};

/* "cuda", "cuda:1" */
static bool is_kind(const char *text, const BackendKind *kind, int *ordinal)
{
    enum { DIGITS = 4 };
    size_t n = strlen(kind->word);
    if (strncmp(text, kind->word, n) != 0)
        return false;
    *ordinal = -1;
    if (!text[n])
        return true;
    text += n + 1;
    if (!kind->numbered || text[-1] != ':' || text[0] < '0' || text[0] > '9' || strlen(text) > DIGITS)
        return false;
    char *end;
    *ordinal = (int)strtol(text, &end, 10);
    return !*end;
}

bool device_read(const char *text, DeviceAsked *out)
{
    *out = (DeviceAsked){DEVICE_NAMED, BACKEND_cpu, -1};
    if (!text)
        return true;
    if (!strcmp(text, "auto") || !strcmp(text, "reference")) {
        out->how = *text == 'a' ? DEVICE_AUTO : DEVICE_REFERENCE;
        return true;
    }
    for (int id = 0; id < BACKEND_COUNT; id++)
        if (is_kind(text, &backend_kinds[id], &out->ordinal)) {
            out->id = (BackendId)id;
            return true;
        }
    return false;
}

void device_words(Buf *out)
{
    for (int id = 0; id < BACKEND_COUNT; id++) {
        const BackendKind *k = &backend_kinds[id];
        buf_printf(out, "%s, ", k->word);
        if (k->numbered)
            buf_printf(out, "%s:0, ", k->word);
    }
    buf_puts(out, "auto and reference");
}
