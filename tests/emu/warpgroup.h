/* warpgroup.h - products of warpgroups (wgmma), as an emulator has them.
 *
 * In:  a part of cuemu.h, behind its fibers.     Out: twins of wgmma, of its fences and groups, and of fence.proxy.async.
 * The one idea: what a device does behind a thread's back is done here as late as it may be, or as early, and rules that a
 * device breaks in silence stop the launch. The rules are those of the PTX ISA, "Asynchronous Warpgroup Level Matrix":
 *   - wgmma reads shared memory through the async proxy. `view` is what that one sees: nothing at first, and what a thread has
 *     copied there once the copy has come and the thread has executed fence.proxy.async behind it, or what came by a tensor map
 *     (mbarrier.h). Plain stores never get there.
 *   - A product is done when a group with it is waited for: until then its sums are NaN in the registers, nobody may write
 *     these, registers with a factor, or copy to the places it reads.
 *   - Registers that were written behind the last wgmma.fence may not be sums or a factor. Sums that products in flight add to
 *     need no fence for further ones of the same kind.
 *   - All threads of a warp name the same matrices; the four warps of a group the same ones in the same order.
 * A matrix is a descriptor: bits 0-13 where it begins, 16-29 and 32-45 its leading and stride offsets, all by 16 bytes; 49-51 the
 * base offset, 62-63 the swizzle, 1: of 128 bytes. Lines of 128 bytes lie eight to a pattern of 1,024, in which bits 4 to 6 of
 * an address are those of the number xor bits 7 to 9. Along the sum: a line has 64 terms of a row, patterns of 8 rows are
 * `stride` apart. Turned: a line has 64 rows of a term, patterns of 8 terms are `stride` and those of 64 rows `leading` apart.
 */
#ifndef WARPGROUP_H
#define WARPGROUP_H

namespace emu
{

enum {
    WINDOW = EMU_SHARED_OWN, /* where a block's shared memory begins */
    PRODUCTS_MAX = 64,       /* of a warp, in flight */
    SUMS_MAX = 4,            /* arrays of them, at once */
    FENCED_MAX = 12,
    COPIED_MAX = 1024, /* pieces of 16 bytes that a thread has copied since its last fence */
    GROUP_N_MAX = 256
};

struct Product {
    uint64_t a, b;
    const uint32_t *factor[32]; /* registers instead of a */
    uint32_t kept[32][4];       /* what they had */
    bool turned_a, turned_b, fp16, add;
    int n, group, sums;
};
/* What a thread gives. */
struct Asked {
    float *sums;
    const uint32_t *factor;
    uint64_t a, b;
};
/* Sums of a warp in flight: of each thread n / 2. */
struct Sums {
    float *at[32];
    float held[32][GROUP_N_MAX / 2];
    int n, products; /* in flight; 0: nothing is here */
};
struct Fenced {
    const void *at;
    int words;
    uint64_t number; /* later ones have larger numbers */
    uint32_t had[GROUP_N_MAX / 2];
};
struct GroupWarp {
    Product product[PRODUCTS_MAX];
    int products, group;
    Sums sums[SUMS_MAX];
    Asked asked[32];
    uint64_t said; /* of all products so far: which */
};
struct Copied {
    int n;
    bool more; /* than there is room for */
    uint16_t piece[COPIED_MAX];
};

EMU_VAR GroupWarp group_warp[EMU_THREADS / 32];
EMU_VAR Fenced fenced[EMU_THREADS][FENCED_MAX];
EMU_VAR Copied copied[EMU_THREADS];
EMU_VAR unsigned char view[EMU_SHARED];
EMU_VAR uint16_t writer[EMU_SHARED / 16];  /* 1 more than the thread whose copy is not fenced; 0: none */
EMU_VAR uint16_t readers[EMU_SHARED / 16]; /* products in flight of warps that read a piece */
EMU_VAR uint64_t view_number;              /* goes up where the view changes */
EMU_VAR uint64_t fences, fences_before;    /* registers that were named so far; before this block */
EMU_VAR bool groups_used;

EMU_FN bool is_shared(const void *p, uint64_t *offset)
{
    *offset = (uint64_t)((const unsigned char *)p - dynamic);
    return (const unsigned char *)p >= dynamic && *offset < EMU_SHARED;
}

/* A copy to shared memory begins. */
EMU_FN void group_copy_begins(const void *to)
{
    uint64_t at;
    if (is_shared(to, &at) && readers[at / 16])
        stop("a copy overwrites what a product in flight reads");
}

/* It has come. */
EMU_FN void group_copy_comes(const void *to)
{
    uint64_t at;
    Copied &c = copied[current];
    if (!is_shared(to, &at) || writer[at / 16] == current + 1)
        return;
    writer[at / 16] = (uint16_t)(current + 1);
    if (c.n < COPIED_MAX)
        c.piece[c.n++] = (uint16_t)(at / 16);
    else
        c.more = true;
}

EMU_FN void use_groups()
{
    if (!groups_used)
        memset(view, 0xff, sizeof view);
    groups_used = true;
}

EMU_FN void publish(int piece)
{
    if (writer[piece] != current + 1)
        return;
    memcpy(view + 16 * piece, dynamic + 16 * piece, 16);
    writer[piece] = 0;
}

EMU_FN void proxy_fence()
{
    Copied &c = copied[current];
    use_groups();
    for (int i = 0; i < c.n; i++)
        publish(c.piece[i]);
    for (int i = 0; c.more && i < EMU_SHARED / 16; i++)
        publish(i);
    c.n = 0;
    c.more = false;
    view_number++;
    barriers_seen();
}

EMU_FN void start_groups(uint64_t shared)
{
    memset(writer, 0, (shared + 15) / 16 * sizeof *writer);
    for (int i = 0; i < threads; i++)
        copied[i].n = copied[i].more = 0;
    fences_before = fences;
    if (!groups_used)
        return;
    groups_used = false;
    memset(readers, 0, sizeof readers);
    for (GroupWarp &g : group_warp) { /* also of threads that this block has not */
        g.products = g.group = 0;
        g.said = 0;
        for (Sums &s : g.sums)
            s.products = 0;
    }
}

/* ---- matrices ---- */

EMU_FN int matrix_at(uint64_t d) { return (int)(d & 0x3fff) << 4; }
EMU_FN int matrix_leading(uint64_t d) { return (int)(d >> 16 & 0x3fff) << 4; }
EMU_FN int matrix_stride(uint64_t d) { return (int)(d >> 32 & 0x3fff) << 4; }

/* Where row r, term k lies, from the beginning of dynamic shared memory on. */
EMU_FN int matrix_place(uint64_t d, bool turned, int r, int k)
{
    int at = matrix_at(d);
    if (turned)
        at += r / 64 * matrix_leading(d) + k / 8 * matrix_stride(d) + k % 8 * 128 + r % 64 * 2;
    else
        at += r / 8 * matrix_stride(d) + r % 8 * 128 + k * 2;
    return (at ^ (at >> 3 & 0x70)) - WINDOW;
}

EMU_FN void check_matrix(uint64_t d, bool turned, int rows)
{
    int at = matrix_at(d);
    if (d >> 62 != 1 || (d >> 49 & 7) || (d & 0x1ffffull << 46 & ~(7ull << 49) & ~(3ull << 62)) || (d >> 14 & 3) ||
        (d >> 30 & 3))
        stop("a descriptor of a matrix that is not of lines of 128 bytes");
    if (at & 0x380)
        stop("a matrix begins inside of a pattern of 1,024 bytes");
    if (turned ? at % 128 || (rows > 64 && matrix_leading(d) % 1024) : at % 128 > 96)
        stop("a matrix begins inside of a line");
    if (matrix_stride(d) % 1024 || !matrix_stride(d))
        stop("patterns of a matrix lie at no multiple of 1,024 bytes");
    int last = matrix_place(d, turned, rows - 1, 15);
    if (matrix_place(d, turned, 0, 0) < 0 || last < 0 || (unsigned)last >= shared_bytes)
        stop("a matrix lies outside of shared memory");
}

/* The pieces of 16 bytes that a matrix lies in; how many. */
EMU_FN int pieces_of(uint64_t d, bool turned, int rows, int *to)
{
    int n = 0;
    for (int r = 0; r < rows; r += turned ? 8 : 1)
        for (int k = 0; k < 16; k += turned ? 1 : 8)
            to[n++] = matrix_place(d, turned, r, k) / 16;
    return n;
}

/* A product of warp w begins to read a matrix, or, not `more`, is over. */
EMU_FN void reads_matrix(int w, uint64_t d, bool turned, int rows, bool more)
{
    int pieces[2 * GROUP_N_MAX], n = pieces_of(d, turned, rows, pieces);
    for (int i = 0; i < n; i++)
        readers[pieces[i]] += more ? 1 : -1;
    if (more)
        check_come(pieces, n);
    else
        have_read(w, pieces, n);
}

EMU_FN float number_of(unsigned bits, bool fp16) { return fp16 ? emu_of_fp16(bits) : __uint_as_float(bits << 16); }

/* A matrix as float32, kept for the warps that read the same one. */
struct Decoded {
    uint64_t d, number;
    bool turned, fp16, known;
    int rows;
    float x[GROUP_N_MAX][16];
};
EMU_VAR Decoded decoded[4];

EMU_FN const Decoded &decode(uint64_t d, bool turned, bool fp16, int rows)
{
    static int next;
    for (Decoded &c : decoded)
        if (c.known && c.d == d && c.number == view_number && c.turned == turned && c.fp16 == fp16 && c.rows == rows)
            return c;
    Decoded &c = decoded[next++ % 4];
    c.d = d;
    c.number = view_number;
    c.turned = turned;
    c.fp16 = fp16;
    c.known = true;
    c.rows = rows;
    for (int r = 0; r < rows; r++)
        for (int k = 0; k < 16; k++)
            c.x[r][k] = number_of(*(const uint16_t *)(view + matrix_place(d, turned, r, k)), fp16);
    return c;
}

/* ---- products ---- */

/* Registers as they were named last: what else lay there before, or was named with others, does not count. */
EMU_FN const Fenced *fenced_at(int thread, const void *p, int words)
{
    const Fenced *last = nullptr;
    for (const Fenced &f : fenced[thread])
        if (f.at && f.number > fences_before && (const char *)p >= (const char *)f.at &&
            (const char *)p + 4 * words <= (const char *)f.at + 4 * f.words && (!last || f.number > last->number))
            last = &f;
    return last;
}

EMU_FN void check_fenced(int thread, const void *p, int words)
{
    const Fenced *f = fenced_at(thread, p, words);
    if (!f || memcmp(f->had + ((const uint32_t *)p - (const uint32_t *)f->at), p, 4 * words))
        stop("registers of a product have been written behind the last wgmma.fence");
}

EMU_FN Sums *sums_of(GroupWarp &g, const float *at, int lane)
{
    for (Sums &s : g.sums)
        if (s.products && s.at[lane] == at)
            return &s;
    return nullptr;
}

/* Late: the registers of sums are anything while products are in flight. */
EMU_FN int sums_begin(GroupWarp &g, int n)
{
    Sums *s = sums_of(g, g.asked[0].sums, 0);
    if (s && s->n != n)
        stop("products of different sizes add to the same registers without a wait");
    if (s)
        return (int)(s - g.sums);
    for (Sums &free : g.sums)
        s = free.products ? s : &free;
    if (!s)
        stop("too many sums in flight");
    s->n = n;
    for (int lane = 0; lane < 32; lane++) {
        float *at = g.asked[lane].sums;
        check_fenced(current / 32 * 32 + lane, at, n / 2);
        s->at[lane] = at;
        memcpy(s->held[lane], at, 2 * n);
        if (lazy)
            memset(at, 0xff, 2 * n);
    }
    return (int)(s - g.sums);
}

EMU_FN void compute(const Product &p, Sums &s, int w)
{
    const Decoded &b = decode(p.b, p.turned_b, p.fp16, p.n), *a = nullptr;
    if (!p.factor[0])
        a = &decode(p.a, p.turned_a, p.fp16, 64);
    for (int row = 0; row < 16; row++) {
        float x[16];
        for (int k = 0; k < 16; k++) {
            if (a) {
                x[k] = a->x[w % 4 * 16 + row][k];
            } else {
                unsigned u = p.kept[row % 8 * 4 + k % 8 / 2][row / 8 + k / 8 * 2] >> k % 2 * 16 & 0xffffu;
                x[k] = number_of(u, p.fp16);
            }
        }
        for (int c = 0; c < p.n; c++) {
            float &sum = s.held[row % 8 * 4 + c % 8 / 2][c / 8 * 4 + row / 8 * 2 + c % 2];
            float y = p.add ? sum : 0;
            for (int k = 0; k < 16; k++)
                y += x[k] * b.x[c][k];
            sum = y;
        }
    }
}

/* While a product is in flight its registers are its own. */
EMU_FN void check_untouched(const Product &p, const Sums &s)
{
    static const struct Anything {
        unsigned char byte[2 * GROUP_N_MAX];
        Anything() { memset(byte, 0xff, sizeof byte); }
    } anything;
    for (int lane = 0; lane < 32; lane++) {
        if (p.factor[0] && memcmp(p.factor[lane], p.kept[lane], 16))
            stop("a factor of a product in flight has been written");
        if (memcmp(s.at[lane], lazy ? (const void *)anything.byte : s.held[lane], 2 * s.n))
            stop("sums of a product in flight have been written");
    }
}

EMU_FN void complete(GroupWarp &g, int w, int left)
{
    int kept = 0;
    for (int i = 0; i < g.products; i++) {
        Product &p = g.product[i];
        if (p.group >= g.group - left) {
            g.product[kept++] = p;
            continue;
        }
        Sums &s = g.sums[p.sums];
        if (lazy)
            compute(p, s, w);
        reads_matrix(w, p.b, p.turned_b, p.n, false);
        if (!p.factor[0])
            reads_matrix(w, p.a, p.turned_a, 64, false);
        check_untouched(p, s);
        if (--s.products)
            continue;
        for (int lane = 0; lane < 32; lane++) {
            memcpy(s.at[lane], s.held[lane], 2 * s.n);
            for (Fenced &f : fenced[w * 32 + lane])
                f.at = f.at == s.at[lane] ? nullptr : f.at;
        }
    }
    g.products = kept;
}

/* What the last thread of a warp that arrives does for all. */
EMU_FN bool is_last() { return warp[current / 32].arrived + 1 == warp[current / 32].lanes; }

/* A product of a warp, whose threads have all asked for it. */
EMU_FN void begin_product(GroupWarp &g, int w, Product p)
{
    if (g.products == PRODUCTS_MAX)
        stop("too many products in flight");
    const Asked &first = g.asked[0];
    p.a = first.a;
    p.b = first.b;
    for (int lane = 0; lane < 32; lane++) {
        const Asked &x = g.asked[lane];
        if (x.a != p.a || x.b != p.b)
            stop("threads of a warp name different matrices");
        p.factor[lane] = x.factor;
        if (x.factor) {
            check_fenced(w * 32 + lane, x.factor, 4);
            memcpy(p.kept[lane], x.factor, sizeof p.kept[lane]);
        }
    }
    use_groups();
    check_matrix(p.b, p.turned_b, p.n);
    if (!first.factor)
        check_matrix(p.a, p.turned_a, 64);
    p.sums = sums_begin(g, p.n);
    p.group = g.group;
    g.sums[p.sums].products++;
    reads_matrix(w, p.b, p.turned_b, p.n, true);
    if (!first.factor)
        reads_matrix(w, p.a, p.turned_a, 64, true);
    g.said = g.said * 1000003 + (p.a * 31 + p.b * 7 + p.n + p.turned_a * 3 + p.turned_b * 5 + p.add);
    g.product[g.products++] = p;
    if (lazy)
        return;
    Sums &s = g.sums[p.sums];
    compute(p, s, w);
    for (int lane = 0; lane < 32; lane++)
        memcpy(s.at[lane], s.held[lane], 2 * s.n);
}

EMU_FN void end_groups(int w)
{
    if (group_warp[w].products)
        stop("a thread ends with products in flight");
    for (int k = w / 4 * 4; k < w / 4 * 4 + 4 && k * 32 < threads && groups_used; k++)
        if (warp[k].ended && group_warp[k].said != group_warp[w].said)
            stop("warps of a group have multiplied different matrices");
}

} // namespace emu

/* An address in the window of shared memory. */
EMU_FN uint32_t emu_shared_address(const void *p)
{
    return (uint32_t)((const unsigned char *)p - emu::dynamic) + emu::WINDOW;
}
/* What this thread has written to shared memory, and what has come of its copies, is seen by products of warpgroups. */
EMU_FN void emu_proxy_fence() { emu::proxy_fence(); }
/* wgmma.fence, in front of which each array of registers is named. */
EMU_FN void emu_group_registers(const void *at, int words)
{
    using namespace emu;
    Fenced *to = fenced[current];
    if (sums_of(group_warp[current / 32], (const float *)at, current % 32))
        return;
    for (Fenced &f :
         fenced[current]) { /* the same, or one that is free, or the one named first, in another block maybe */
        if (to->at == at)
            break;
        if (f.at == at || (to->at && (!f.at || f.number < to->number)))
            to = &f;
    }
    to->at = at;
    to->number = ++fences;
    to->words = words;
    memcpy(to->had, at, 4 * words);
}
EMU_MEETS void emu_group_fence() { emu::meet_warp(EMU_PLACE, 0xffffffffu); }
/* Sums (64, n) of a group += or = a (64, 16) b (16, n), of which this warp has 16 rows; a is registers where there is a factor. */
EMU_MEETS void emu_group_product(float *sums, const uint32_t *factor, uint64_t a, uint64_t b, int n, bool add,
                                 bool turned_a, bool turned_b, bool fp16)
{
    using namespace emu;
    GroupWarp &g = group_warp[current / 32];
    if (threads % 128)
        stop("a product of a group of warps that is not whole");
    g.asked[current % 32] = {sums, factor, a, b};
    if (is_last()) {
        Product p = {};
        p.n = n;
        p.add = add;
        p.turned_a = turned_a;
        p.turned_b = turned_b;
        p.fp16 = fp16;
        begin_product(g, current / 32, p);
    }
    meet_warp(EMU_PLACE, 0xffffffffu);
}
EMU_MEETS void emu_group_commit()
{
    using namespace emu;
    if (is_last())
        group_warp[current / 32].group++;
    meet_warp(EMU_PLACE, 0xffffffffu);
}
EMU_MEETS void emu_group_wait(int left)
{
    using namespace emu;
    if (is_last())
        complete(group_warp[current / 32], current / 32, left);
    meet_warp(EMU_PLACE, 0xffffffffu);
}

#endif
