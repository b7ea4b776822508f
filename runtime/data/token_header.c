/* token_header.c - see token_header.h. */
#include "token_header.h"
#include "npy.h"

enum { LLMC_BYTES = 1024 };

/* n bytes, the low one first. */
static uint64_t number_at(const unsigned char *p, int n)
{
    uint64_t x = 0;
    for (int i = n; i-- > 0;)
        x = x << 8 | p[i];
    return x;
}

static void same_width(Session *s, const Mapped *x, int *width, int says)
{
    if (*width && *width != says)
        mapped_wrong(s, x->path, "its ids have %d bytes each, and `dtype` is u%d", says, 8 * *width);
    *width = says;
}

/* The ids take all that stands behind the header. */
static void all_there(Session *s, const Mapped *x, size_t header, uint64_t count, int width, const char *who)
{
    uint64_t have = x->bytes - header;
    if (count <= INT64_MAX / 8 && have == count * (uint64_t)width)
        return;
    uint64_t want = count <= INT64_MAX / 8 ? count * (uint64_t)width : UINT64_MAX;
    mapped_wrong(s, x->path, "byte %llu: %s says %llu tokens, which are %llu bytes; the file has %llu",
                 (unsigned long long)(have < want ? x->bytes : header + want), who, (unsigned long long)count,
                 (unsigned long long)want, (unsigned long long)have);
}

/* 256 int32: magic, version, count. */
static size_t read_llmc(Session *s, const Mapped *x, int *width)
{
    if (x->bytes < LLMC_BYTES)
        mapped_wrong(s, x->path, "byte %zu: the file ends within its 1,024-byte header", x->bytes);
    int64_t magic = (int64_t)number_at(x->map, 4), version = (int64_t)number_at(x->map + 4, 4);
    int says = magic == 20240520 && version == 1 ? 2 : magic == 20240801 && version == 7 ? 4 : 0;
    if (!*width)
        *width = says;
    if (!says || says > *width) /* others have written ids of 4 bytes behind the magic of 2 */
        mapped_wrong(s, x->path, "byte 0: magic %lld, version %lld: not a token file of llm.c", (long long)magic,
                     (long long)version);
    all_there(s, x, LLMC_BYTES, number_at(x->map + 8, 4), *width, "the header");
    return LLMC_BYTES;
}

static size_t read_npy(Session *s, const Mapped *x, int *width)
{
    static const struct {
        const char *name;
        int width;
    } types[] = {{"|u1", 1}, {"<u2", 2}, {"<u4", 4}, {"<i4", 4}, {"<u8", 8}, {"<i8", 8}};
    char why[NPY_WHY];
    Npy n;
    int says = 0;
    if (!npy_read(x->map, x->bytes, &n, why))
        mapped_wrong(s, x->path, "%s", why);
    for (size_t i = 0; i < COUNT_OF(types); i++)
        says = strcmp(n.type, types[i].name) ? says : types[i].width;
    if (!says)
        mapped_wrong(s, x->path, "it holds numbers of type %s; ids are u1, u2, u4, u8, i4 or i8, the low byte first",
                     n.type);
    if (n.rank != 1)
        mapped_wrong(s, x->path, "its array has %d axes, and ids lie along one", n.rank);
    same_width(s, x, width, says);
    all_there(s, x, n.header, (uint64_t)n.d[0], says, "the header");
    return n.header;
}

/* ---- Megatron-LM: NAME.bin has the ids, NAME.idx their type and the lengths of sequences ---- */

static const char idx_magic[] = "MMIDIDX\0"; /* nine bytes with the last zero */
enum { IDX_HEADER = 9 + 8 + 1 + 8 + 8 };

static int idx_width(int code)
{
    static const struct {
        int code, width;
    } types[] = {{1, 1}, {4, 4}, {5, 8}, {8, 2}}; /* uint8, int32, int64, uint16 */
    for (size_t i = 0; i < COUNT_OF(types); i++)
        if (types[i].code == code)
            return types[i].width;
    return 0;
}

/* Sequences lie one behind the other. */
static void check_sequences(Session *s, const Mapped *idx, const Mapped *bin, uint64_t n, int width)
{
    const unsigned char *length = idx->map + IDX_HEADER, *pointer = length + 4 * n;
    uint64_t at = 0;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t tokens = number_at(length + 4 * i, 4);
        if (tokens > INT32_MAX)
            mapped_wrong(s, idx->path, "byte %llu: sequence %llu has a negative length",
                         (unsigned long long)(IDX_HEADER + 4 * i), (unsigned long long)i);
        if (number_at(pointer + 8 * i, 8) != at)
            mapped_wrong(s, idx->path, "byte %llu: sequence %llu does not begin where the one before it ends",
                         (unsigned long long)(IDX_HEADER + 4 * n + 8 * i), (unsigned long long)i);
        at += tokens * (uint64_t)width;
    }
    all_there(s, bin, 0, at / (uint64_t)width, width, "its .idx");
}

static void check_documents(Session *s, const Mapped *idx, uint64_t n, uint64_t documents)
{
    const unsigned char *p = idx->map + IDX_HEADER + 12 * n;
    for (uint64_t i = 0, before = 0; i < documents; i++) {
        uint64_t first = number_at(p + 8 * i, 8);
        if (first < before || first > n || (i == 0 && first) || (i + 1 == documents && first != n))
            mapped_wrong(s, idx->path, "byte %llu: document %llu begins with sequence %lld of %llu",
                         (unsigned long long)(IDX_HEADER + 12 * n + 8 * i), (unsigned long long)i, (long long)first,
                         (unsigned long long)n);
        before = first;
    }
}

static size_t read_megatron(Session *s, const Mapped *bin, int *width)
{
    size_t n = strlen(bin->path);
    Mapped idx;
    if (n < 5 || strcmp(bin->path + n - 4, ".bin") != 0)
        mapped_wrong(s, bin->path,
                     "files of Megatron-LM are NAME.bin with NAME.idx beside it: name those that end in .bin");
    mapped_open(s, &idx, arena_printf(s->arena, "%.*s.idx", (int)(n - 4), bin->path));
    if (idx.bytes < IDX_HEADER || memcmp(idx.map, idx_magic, sizeof idx_magic) != 0)
        mapped_wrong(s, idx.path, "byte 0: not an index of Megatron-LM, which begins with MMIDIDX");
    uint64_t version = number_at(idx.map + 9, 8), sequences = number_at(idx.map + 18, 8),
             documents = number_at(idx.map + 26, 8);
    int code = idx.map[17], says = idx_width(code);
    if (version != 1)
        mapped_wrong(s, idx.path, "byte 9: version %llu is not known, 1 is", (unsigned long long)version);
    if (!says)
        mapped_wrong(s, idx.path,
                     "byte 17: its ids are of type %d; uint8 (1), int32 (4), int64 (5) and uint16 (8) are read", code);
    if (sequences > INT64_MAX / 32 || documents > INT64_MAX / 32 ||
        IDX_HEADER + 12 * sequences + 8 * documents != idx.bytes)
        mapped_wrong(s, idx.path,
                     "byte %zu: %llu sequences and %llu ends of documents take another number of bytes than it has",
                     idx.bytes, (unsigned long long)sequences, (unsigned long long)documents);
    same_width(s, bin, width, says);
    check_sequences(s, &idx, bin, sequences, says);
    check_documents(s, &idx, sequences, documents);
    return 0;
}

size_t token_header(Session *s, const Mapped *file, TokenHeader form, int *width)
{
    switch (form) {
    case HEADER_LLM_C: return read_llmc(s, file, width);
    case HEADER_NPY: return read_npy(s, file, width);
    case HEADER_MEGATRON: return read_megatron(s, file, width);
    case HEADER_NONE: break;
    }
    return 0;
}
