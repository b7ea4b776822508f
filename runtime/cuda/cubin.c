/* cubin.c - see cubin.h.
 *
 * Layout, as seen in what CUDA 13.0 makes: ".nv.info" has a list of attributes, of them 0x2f
 * registers and 0x11 frame with the number of a symbol; ".nv.info.KERNEL" has 0x05 launch bounds
 * and 0x55, pairs of a kind and the place of an instruction, kind 1 a spill or its reload;
 * ".text.KERNEL" instructions of 16 bytes; ".nv.constant2.KERNEL" constants that do not fit in these; ".nv.shared.KERNEL" static shared memory, which
 * includes 1 KiB that the system keeps where there is a section ".nv.shared.reserved.0".
 */
#include "cubin.h"

#include <stdio.h>

enum {
    HEADER = 64,
    SECTION = 64,
    SYMBOL = 24,
    INSTRUCTION = 16,
    MACHINE_CUDA = 190,
    TYPE_SYMBOLS = 2,
    TYPE_NO_BITS = 8,
    RESERVED_SHARED = 1024,
    ATTR_MAX_THREADS = 0x05,
    ATTR_FRAME = 0x11,
    ATTR_REGISTERS = 0x2f,
    ATTR_NOTES = 0x55,
    NOTE_SPILL = 1,
    OP_LOAD_LOCAL = 0x983,
    OP_STORE_LOCAL = 0x387
};

typedef struct Section {
    const char *name;
    uint32_t type, link;
    uint64_t at, size;
} Section;
typedef struct CubinReader {
    const uint8_t *b;
    uint64_t n;
    Arena *arena;
    Section *section;
    uint32_t n_section;
    Cubin *out;
    char *why;
} CubinReader;

static bool wrong(CubinReader *r, const char *what)
{
    snprintf(r->why, 256, "this is no cubin that can be read: %s", what);
    return false;
}

static uint64_t number(const uint8_t *p, int bytes)
{
    uint64_t x = 0;
    for (int i = bytes; i-- > 0;)
        x = x << 8 | p[i];
    return x;
}

static bool inside(uint64_t at, uint64_t size, uint64_t n) { return at <= n && size <= n - at; }

/* The string at an offset of a table of strings; NULL when it does not end in there. */
static const char *string_at(const CubinReader *r, uint64_t table, uint64_t size, uint64_t at)
{
    if (at >= size || !memchr(r->b + table + at, 0, (size_t)(size - at)))
        return NULL;
    return (const char *)r->b + table + at;
}

/* ---- sections ---- */

static bool read_header(CubinReader *r, uint64_t *table, uint32_t *names)
{
    const uint8_t *b = r->b;
    if (r->n < HEADER || memcmp(b, "\177ELF\2\1\1", 7) != 0 || number(b + 18, 2) != MACHINE_CUDA)
        return wrong(r, "another format");
    uint64_t flags = number(b + 48, 4);
    r->out->arch = (int)(b[8] >= 8 ? flags >> 8 & 0xff : flags & 0xff);
    *table = number(b + 40, 8);
    r->n_section = (uint32_t)number(b + 60, 2);
    *names = (uint32_t)number(b + 62, 2);
    if (number(b + 58, 2) != SECTION || *names >= r->n_section ||
        !inside(*table, (uint64_t)r->n_section * SECTION, r->n))
        return wrong(r, "its table of sections lies outside");
    return true;
}

static bool read_sections(CubinReader *r)
{
    uint64_t table;
    uint32_t names;
    if (!read_header(r, &table, &names))
        return false;
    r->section = NEW_ARRAY(r->arena, Section, r->n_section);
    for (uint32_t i = 0; i < r->n_section; i++) {
        const uint8_t *p = r->b + table + (uint64_t)i * SECTION;
        r->section[i] = (Section){.type = (uint32_t)number(p + 4, 4),
                                  .link = (uint32_t)number(p + 40, 4),
                                  .at = number(p + 24, 8),
                                  .size = number(p + 32, 8)};
        if (r->section[i].type != TYPE_NO_BITS && !inside(r->section[i].at, r->section[i].size, r->n))
            return wrong(r, "a section lies outside");
    }
    const Section *s = &r->section[names];
    if (s->type == TYPE_NO_BITS)
        return wrong(r, "its sections have no names");
    for (uint32_t i = 0; i < r->n_section; i++) {
        uint64_t at = number(r->b + table + (uint64_t)i * SECTION, 4);
        r->section[i].name = string_at(r, s->at, s->size, at);
        if (!r->section[i].name)
            return wrong(r, "the name of a section lies outside");
    }
    return true;
}

/* The section `prefix` + `name` with contents, or NULL. */
static const Section *find(const CubinReader *r, const char *prefix, const char *name)
{
    size_t n = strlen(prefix);
    for (uint32_t i = 0; i < r->n_section; i++)
        if (!strncmp(r->section[i].name, prefix, n) && !strcmp(r->section[i].name + n, name))
            return &r->section[i];
    return NULL;
}

/* ---- attributes ---- */

typedef struct CubinAttribute {
    int kind;
    const uint8_t *value;
    uint64_t size;
} CubinAttribute;

/* Steps to the next attribute; false at the end, or (with *ok false) where one is cut off.
 * Formats 1 to 3 have their value in place, 4 has a length and as many bytes behind it. */
static bool next_attribute(const uint8_t **p, const uint8_t *end, CubinAttribute *a, bool *ok)
{
    if (*p == end)
        return false;
    *ok = end - *p >= 4;
    if (!*ok)
        return false;
    a->kind = (*p)[1];
    a->value = *p + 2;
    a->size = 2;
    *ok = (*p)[0] >= 1 && (*p)[0] <= 4;
    if ((*p)[0] == 4) {
        a->size = number(*p + 2, 2);
        a->value = *p + 4;
        *ok = (uint64_t)(end - a->value) >= a->size;
    }
    *p += (*p)[0] == 4 && *ok ? 4 + a->size : 4;
    return *ok;
}

static CubinKernel *kernel_named(const Cubin *c, const char *name)
{
    for (size_t i = 0; i < c->n; i++)
        if (!strcmp(c->kernel[i].name, name))
            return &c->kernel[i];
    return NULL;
}

const CubinKernel *cubin_find(const Cubin *c, const char *name) { return kernel_named(c, name); }

/* The kernel that the symbol of this number names; NULL: none, or none that is listed. */
static CubinKernel *kernel_of_symbol(const CubinReader *r, const Section *symbols, uint64_t symbol)
{
    if (symbol >= symbols->size / SYMBOL || symbols->link >= r->n_section)
        return NULL;
    const Section *names = &r->section[symbols->link];
    if (names->type == TYPE_NO_BITS)
        return NULL;
    const char *name = string_at(r, names->at, names->size, number(r->b + symbols->at + symbol * SYMBOL, 4));
    return name ? kernel_named(r->out, name) : NULL;
}

/* Registers and frame, which are said of symbols. */
static bool read_common(CubinReader *r)
{
    const Section *symbols = NULL, *info = find(r, ".nv.info", "");
    for (uint32_t i = 0; i < r->n_section && !symbols; i++)
        if (r->section[i].type == TYPE_SYMBOLS)
            symbols = &r->section[i];
    if (!symbols || !info || info->type == TYPE_NO_BITS)
        return wrong(r, "it says nothing of its kernels");
    const uint8_t *p = r->b + info->at, *end = p + info->size;
    CubinAttribute a;
    bool ok = true;
    while (next_attribute(&p, end, &a, &ok)) {
        if (a.size < 8 || (a.kind != ATTR_REGISTERS && a.kind != ATTR_FRAME))
            continue;
        CubinKernel *k = kernel_of_symbol(r, symbols, number(a.value, 4));
        if (k && a.kind == ATTR_REGISTERS)
            k->registers = (int)(number(a.value + 4, 4) & 0xffff);
        else if (k)
            k->frame = (int64_t)number(a.value + 4, 4);
    }
    for (size_t i = 0; i < r->out->n && ok; i++)
        if (!r->out->kernel[i].registers)
            return wrong(r, "it does not say how many registers a kernel has");
    return ok ? true : wrong(r, "its attributes are cut off");
}

/* The bytes that a spilling instruction moves: its width is in bits 73 to 75. */
static void add_spill(CubinKernel *k, const uint8_t *instruction)
{
    static const int bytes[8] = {1, 1, 2, 2, 4, 8, 16, 0};
    int width = bytes[number(instruction + 8, 8) >> 9 & 7];
    switch (number(instruction, 8) & 0xfff) {
    case OP_STORE_LOCAL: k->spill_stores += width; break;
    case OP_LOAD_LOCAL: k->spill_loads += width; break;
    default: break;
    }
}

static bool read_own(CubinReader *r, CubinKernel *k, const Section *text)
{
    const Section *info = find(r, ".nv.info.", k->name), *shared = find(r, ".nv.shared.", k->name),
                  *own = find(r, ".nv.constant2.", k->name);
    if (shared && shared->size > INT32_MAX)
        return wrong(r, "the shared memory of a kernel is too large");
    if (shared)
        k->shared = (int64_t)shared->size;
    if (k->shared >= RESERVED_SHARED && find(r, ".nv.shared.reserved.", "0"))
        k->shared -= RESERVED_SHARED;
    k->code = (int64_t)text->size;
    if (own && own->type != TYPE_NO_BITS && own->size) {
        uint32_t *words = NEW_ARRAY(r->arena, uint32_t, own->size / 4 + 1);
        memcpy(words, r->b + own->at, own->size);
        k->constant = words;
        k->n_constant = own->size / 4;
    }
    if (!info || info->type == TYPE_NO_BITS)
        return wrong(r, "a kernel has no attributes");
    const uint8_t *p = r->b + info->at, *end = p + info->size;
    CubinAttribute a;
    bool ok = true;
    while (next_attribute(&p, end, &a, &ok)) {
        if (a.kind == ATTR_MAX_THREADS && a.size >= 4)
            k->max_threads = (int)(number(a.value, 4) & 0xffff);
        for (uint64_t i = 0; a.kind == ATTR_NOTES && i + 8 <= a.size; i += 8) {
            uint64_t at = number(a.value + i + 4, 4);
            if (number(a.value + i, 4) != NOTE_SPILL)
                continue;
            if (!inside(at, INSTRUCTION, text->size))
                return wrong(r, "a spill lies outside its kernel");
            add_spill(k, r->b + text->at + at);
        }
    }
    return ok ? true : wrong(r, "the attributes of a kernel are cut off");
}

bool cubin_read(Arena *arena, const void *bytes, size_t n, Cubin *out, char why[256])
{
    static const char code[] = ".text.";
    CubinReader r = {.b = bytes, .n = n, .arena = arena, .out = out, .why = why};
    *out = (Cubin){0};
    why[0] = 0;
    if (!read_sections(&r))
        return false;
    out->kernel = NEW_ARRAY(arena, CubinKernel, (size_t)r.n_section + 1);
    for (uint32_t i = 0; i < r.n_section; i++) {
        const char *name = r.section[i].name;
        if (strncmp(name, code, strlen(code)) != 0 || r.section[i].type == TYPE_NO_BITS)
            continue;
        name += strlen(code);
        if (kernel_named(out, name))
            return wrong(&r, "two kernels have one name");
        CubinKernel *k = &out->kernel[out->n++];
        k->name = arena_copy(arena, name, strlen(name));
        if (!read_own(&r, k, &r.section[i]))
            return false;
    }
    return out->n ? read_common(&r) : wrong(&r, "there is no kernel in it");
}
