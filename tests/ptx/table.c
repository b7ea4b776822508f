/* table.c - the rows of opcodes.def, by the words of an opcode. */
#include "parse.h"

#include <stdlib.h>
#include <string.h>

#define OP(name, type, mods, form, kind, run) Run run;
#include "opcodes.def"
#undef OP

static const Row rows[] = {
#define OP(name, type, mods, form, kind, run) {name, type, mods, form, kind, run},
#include "opcodes.def"
#undef OP
};

static const char *const modifier[] = {
#define M(name) #name,
    PTX_MODIFIERS(M)
#undef M
};

uint32_t ptx_type_bytes(const char *type)
{
    const char *dot = strrchr(type, '.');
    type = dot ? dot + 1 : type;
    const char *digits = type + strcspn(type, "0123456789");
    const uint32_t pair = strstr(digits, "x2") ? 2 : 1;
    return (uint32_t)atoi(digits) / 8 * pair;
}

static bool one_of(const char *list, const char *word, size_t n)
{
    for (const char *p = list; *p; p += strcspn(p, " "), p += strspn(p, " "))
        if (strcspn(p, " ") == n && !memcmp(p, word, n))
            return true;
    return false;
}

/* What stands between name and type are modifiers that the row has. */
static bool fits(const Row *r, const char *text, size_t n, uint64_t *mods)
{
    const size_t name = strlen(r->name), type = strlen(r->type);
    if (n < name + type + (type ? 1 : 0) || memcmp(text, r->name, name) != 0 ||
        (type && (text[n - type - 1] != '.' || memcmp(text + n - type, r->type, type) != 0)))
        return false;
    const char *p = text + name, *end = text + n - (type ? type + 1 : 0);
    for (*mods = 0; p < end;) {
        if (*p != '.')
            return false;
        const char *from = ++p;
        while (p < end && *p != '.')
            p++;
        const size_t length = (size_t)(p - from);
        if (!one_of(r->mods, from, length))
            return false;
        for (int k = 0; k < MODIFIERS; k++)
            if (strlen(modifier[k]) == length && !memcmp(modifier[k], from, length))
                *mods |= 1ull << k;
    }
    return true;
}

const Row *ptx_row(const char *text, uint32_t length, uint32_t operands, uint64_t *mods)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strlen(rows[i].form) == operands && fits(&rows[i], text, length, mods))
            return &rows[i];
    return NULL;
}
