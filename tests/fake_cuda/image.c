/* image.c - see image.h. */
#define _GNU_SOURCE
#include "image.h"

#include <elf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MACHINE = 190,
    ABI = 8,
    OBJECT = 0x7000fa4e, /* type of the section with the shared object */
    CODE = 4096,         /* bytes of a kernel's instructions, of which there are only those that spill, of 16 */
    STORE_LOCAL = 0x387,
    LOAD_LOCAL = 0x983,
    FOUR_BYTES = 4, /* in the bits of a width */
    ATTR_MAX_THREADS = 0x05,
    ATTR_FRAME = 0x11,
    ATTR_REGISTERS = 0x2f,
    ATTR_NOTES = 0x55,
    NOTE_SPILL = 1,
    SECTIONS = 6, /* before those of kernels: none, names, names of symbols, symbols, attributes, the object */
};

typedef struct Bytes {
    char *at;
    size_t n;
} Bytes;

/* Returns where it was put; places are multiples of 16. */
static size_t put(Bytes *b, const void *p, size_t n)
{
    size_t at = b->n;
    b->at = realloc(b->at, at + n + 16);
    memset(b->at + at, 0, n + 16);
    if (p)
        memcpy(b->at + at, p, n);
    b->n = (at + n + 15) / 16 * 16;
    return at;
}

static uint32_t put_name(Bytes *names, const char *prefix, const char *name)
{
    size_t at = names->n, n = strlen(prefix) + strlen(name) + 1;
    names->at = realloc(names->at, at + n);
    snprintf(names->at + at, n, "%s%s", prefix, name);
    names->n += n;
    return (uint32_t)at;
}

static void attribute(uint32_t *at, int kind, size_t words, const uint32_t *value)
{
    at[0] = 4u | (uint32_t)kind << 8 | (uint32_t)(4 * words) << 16;
    memcpy(at + 1, value, 4 * words);
}

/* A kernel's spills: the instructions, and a note of each. Returns the words of the notes. */
static size_t put_spills(const ImageKernel *k, uint64_t code[CODE / 8], uint32_t *at)
{
    uint32_t note[4 * IMAGE_SPILLS];
    size_t n = (size_t)k->spilled;
    for (size_t i = 0; i < 2 * n; i++) {
        code[2 * i] = i % 2 ? LOAD_LOCAL : STORE_LOCAL;
        code[2 * i + 1] = FOUR_BYTES << 9;
        note[2 * i] = NOTE_SPILL;
        note[2 * i + 1] = (uint32_t)(16 * i);
    }
    attribute(at, ATTR_NOTES, 4 * n, note);
    return n ? 1 + 4 * n : 0;
}

static Elf64_Shdr section(uint32_t name, uint32_t type, Bytes *file, const void *p, size_t n)
{
    return (Elf64_Shdr){.sh_name = name, .sh_type = type, .sh_offset = put(file, p, n), .sh_size = n};
}

void *image_write(const Image *im, size_t *size)
{
    Bytes file = {NULL, 0}, names = {NULL, 0}, symbol_names = {NULL, 0};
    size_t n = SECTIONS + 2 * im->n;
    Elf64_Shdr *s = calloc(n, sizeof *s);
    Elf64_Sym *symbol = calloc(im->n + 1, sizeof *symbol);
    uint32_t *common = calloc(im->n, 24);
    put(&file, NULL, sizeof(Elf64_Ehdr));
    put_name(&names, "", "");
    put_name(&symbol_names, "", "");
    for (size_t i = 0; i < im->n; i++) {
        const char *name = im->kernel[i].name;
        const ImageKernel *k = &im->kernel[i];
        uint32_t most = (uint32_t)k->threads, own[4 + 1 + 4 * IMAGE_SPILLS], id = (uint32_t)i + 1;
        uint64_t code[CODE / 8] = {0};
        attribute(own, ATTR_MAX_THREADS, 3, (uint32_t[]){most, 1, 1});
        attribute(common + 6 * i, ATTR_REGISTERS, 2, (uint32_t[]){id, (uint32_t)k->registers});
        attribute(common + 6 * i + 3, ATTR_FRAME, 2, (uint32_t[]){id, (uint32_t)k->frame});
        size_t words = (most ? 4 : 0) + put_spills(k, code, own + (most ? 4 : 0));
        symbol[id].st_name = put_name(&symbol_names, name, "");
        s[SECTIONS + 2 * i] = section(put_name(&names, ".text.", name), SHT_PROGBITS, &file, code, CODE);
        s[SECTIONS + 2 * i + 1] = section(put_name(&names, ".nv.info.", name), SHT_LOPROC, &file, own, 4 * words);
    }
    s[2] = section(put_name(&names, ".strtab", ""), SHT_STRTAB, &file, symbol_names.at, symbol_names.n);
    s[3] = section(put_name(&names, ".symtab", ""), SHT_SYMTAB, &file, symbol, (im->n + 1) * sizeof *symbol);
    s[3].sh_link = 2;
    s[4] = section(put_name(&names, ".nv.info", ""), SHT_LOPROC, &file, common, 24 * im->n);
    s[5] = section(put_name(&names, ".fake.object", ""), OBJECT, &file, im->object, im->size);
    uint32_t own_name = put_name(&names, ".shstrtab", "");
    s[1] = section(own_name, SHT_STRTAB, &file, names.at, names.n);
    Elf64_Ehdr h = {.e_ident = {0x7f, 'E', 'L', 'F', 2, 1, 1, 0, ABI},
                    .e_type = ET_EXEC,
                    .e_machine = MACHINE,
                    .e_version = 1,
                    .e_flags = (uint32_t)(im->version << 16 | im->arch << 8 | im->only),
                    .e_ehsize = sizeof h,
                    .e_shentsize = sizeof *s,
                    .e_shnum = (uint16_t)n,
                    .e_shstrndx = 1};
    h.e_shoff = put(&file, s, n * sizeof *s);
    memcpy(file.at, &h, sizeof h);
    free(names.at);
    free(symbol_names.at);
    free(common);
    free(symbol);
    free(s);
    *size = file.n;
    return file.at;
}

static bool read_header(const void *bytes, Elf64_Ehdr *h)
{
    memcpy(h, bytes, sizeof *h);
    return !memcmp(h->e_ident, "\177ELF", 4) && h->e_machine == MACHINE && h->e_ident[8] == ABI;
}

static Elf64_Shdr section_at(const void *bytes, const Elf64_Ehdr *h, unsigned i)
{
    Elf64_Shdr s;
    memcpy(&s, (const char *)bytes + h->e_shoff + i * sizeof s, sizeof s);
    return s;
}

const void *image_object(const void *bytes, Image *out)
{
    Elf64_Ehdr h;
    if (!read_header(bytes, &h))
        return NULL;
    *out =
        (Image){.arch = (int)(h.e_flags >> 8 & 0xff), .only = (int)(h.e_flags & 1), .version = (int)(h.e_flags >> 16)};
    for (unsigned i = 0; i < h.e_shnum; i++) {
        Elf64_Shdr s = section_at(bytes, &h, i);
        if (s.sh_type != OBJECT)
            continue;
        out->object = (const char *)bytes + s.sh_offset;
        out->size = s.sh_size;
    }
    return out->object;
}

/* The table of sections is last. */
size_t image_size(const void *bytes)
{
    Elf64_Ehdr h;
    return read_header(bytes, &h) ? h.e_shoff + h.e_shnum * sizeof(Elf64_Shdr) : 0;
}

int image_threads(const void *bytes, const char *kernel)
{
    static const char prefix[] = ".nv.info.";
    Elf64_Ehdr h;
    uint32_t value[4] = {0};
    if (!read_header(bytes, &h))
        return 0;
    const char *names = (const char *)bytes + section_at(bytes, &h, h.e_shstrndx).sh_offset;
    for (unsigned i = 0; i < h.e_shnum; i++) {
        Elf64_Shdr s = section_at(bytes, &h, i);
        const char *name = names + s.sh_name;
        if (!strncmp(name, prefix, strlen(prefix)) && !strcmp(name + strlen(prefix), kernel) &&
            s.sh_size >= sizeof value)
            memcpy(value, (const char *)bytes + s.sh_offset, sizeof value);
    }
    return (int)value[1];
}
