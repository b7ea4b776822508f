/* fuse.h - which values a graph's kernels store, and which kernels there are.
 *
 * In:  a graph in which small products are already sums.     Out: groups in launch order.
 * The one idea: a value is stored by the one group that is its home, or computed wherever it is
 * wanted, or both: a group may compute what others load. Values of one group run over the same rows;
 * whatever another row must have finished lies in another group.
 */
#ifndef VWN_FUSE_H
#define VWN_FUSE_H

#include "compiler/graph/index.h"
#include "compiler/graph/target.h"
#include "compiler/pass/decompose.h"

typedef enum GroupKind {
    GROUP_ROWS,    /* one printed kernel over rows (and a second one when it sums over rows) */
    GROUP_LIBRARY, /* one node: product, attention, by index, running sum */
    GROUP_TABLE    /* one CONST node */
} GroupKind;

/* A table of which a group reads rows by index: so many of its elements it does not read. */
typedef struct Unread {
    Val table;
    int64_t elements;
} Unread;

typedef struct Group {
    GroupKind kind;
    Val anchor;              /* LIBRARY, TABLE */
    VEC(Val) member;         /* ROWS: nodes computed here, in order */
    VEC(Val) store;          /* of them, those that others want */
    VEC(Val) rematerialized; /* ROWS: members of others that this one computes for itself, ascending */
    VEC(Dim) choice;         /* ROWS: row counts that fit all members */
    Dim rows;                /* ROWS: the one taken */
    bool moves;              /* ROWS: some member reads elements of other places (a shift, a concatenation) */
    bool pins;               /* ROWS: some member is pinned */
    bool chain;              /* ROWS: members are of chains, all of them */
    bool alone;              /* a reduction over rows of its result: fits no other */
    int64_t weight;          /* unrolled operations */
    int64_t scratch;         /* elements of the results of a row's products */
    size_t parts;            /* inputs of the concatenations of many that it computes */
    VEC(uint32_t) pred;      /* groups that must run before; may repeat */
    Val first, last;         /* smallest and largest member */
    bool dead;               /* merged into another, or stores nothing */
    uint32_t predecessors;   /* predecessor count of others: how often it stands in `pred` of groups */
    double bytes;            /* read and written, each once */
    VEC(Unread) unread;
} Group;

/* Who read a result of a library last, who before in another group, and who last for few numbers of it; 0: nobody. */
typedef struct FuseReaders {
    Val last, before, few;
} FuseReaders;

/* Would a kernel of the group over so many rows be one loop over elements, without a division or a test in it? Who
 * makes kernels of groups answers (lower_is_flat). */
typedef struct Fusion Fusion;
typedef bool (*IsFlat)(Arena *arena, const Fusion *f, uint32_t group, Dim rows);

struct Fusion {
    Ctx *ctx;
    Arena *arena, *tmp; /* tmp: for what does not outlive a question */
    const Graph *g;
    int64_t B, T;
    size_t members;     /* of a group, at most */
    bool unfused;       /* every node its own kernel */
    int32_t *home;      /* group of a node, -1: a leaf, a view, or computed where it is wanted */
    Val recompute_from; /* the first node that computes again what the forward pass has; 0: none */
    bool *stored;       /* has memory of its own (EXT nodes do not count) */
    bool *copied;       /* a view that is stored all the same */
    bool *pinned;       /* computed once, stored, and loaded by all who read it */
    bool *chain;        /* of a long computation with few numbers a row: computed in kernels of such alone */
    Val *
        row_of; /* the concatenation in whose memory a kernel stores it, as the beginning of each row; 0: it has its own */
    Half half;       /* what is kept in 16 bits is this */
    bool *in_16bit;  /* kept in 16 bits each, or NULL: nothing is */
    bool *as_stored; /* its rounding is what its library stores: a view; or NULL */
    int64_t shared;  /* bytes of shared memory that a block of a device may have */
    const Target *target;
    int64_t *elements;       /* of each value, at B and T */
    int *depth;              /* of a member: values of its group that it is computed from, one from the other */
    FuseReaders *readers;    /* of each result of a library */
    struct ByRows *by_rows;  /* fuse_align.c: of each value */
    struct Places *places;   /* fuse_count_places(); else none */
    struct WantedPart *part; /* fuse_loads.c: of each value, once that was asked */
    uint32_t *seen;          /* by a walk, when equal to stamp */
    VEC(Group) group;
    uint64_t *above; /* fuse_order.c: for each group the bits of those that run before, and its own */
    size_t row_words, rows_most;
    VEC(uint32_t) order; /* of launch */
    uint32_t stamp;
    IsFlat is_flat;
};

enum { MEMBERS_MAX = 400, MEMBERS_LEAST = 25 }; /* of a group */
/* copied: views that must be stored (by decompose), or NULL. members: of a group, at most. */
Fusion *fuse_graph(Ctx *ctx, Arena *arena, const Graph *g, const PlanOptions *how, const bool *copied, size_t members,
                   IsFlat is_flat);
/* Of a group that makes a long kernel: would fewer members be several groups? */
static inline bool fuse_may_split(const Fusion *f, uint32_t group)
{
    return f->members > MEMBERS_LEAST && f->group.v[group].member.n > MEMBERS_LEAST;
}
void fuse_free(Fusion *f);          /* what it needs no more; optional */
void fuse_choose_stores(Fusion *f); /* fuse_store.c */
void fuse_choose_rows(Fusion *f);   /* fuse_rows.c */
/* fuse_pinned.c */
void fuse_find_pinned(Fusion *f);
bool fuse_reads_pinned(Fusion *f, Val v, int32_t group); /* does v read a pinned member of the group? */
/* fuse_chains.c */
void fuse_find_chains(Fusion *f);
/* fuse_order.c */
void fuse_new_row(Fusion *f, uint32_t group);                /* after a group was added */
void fuse_add_pred(Fusion *f, uint32_t group, int32_t pred); /* -1 and itself are none */
bool fuse_may_join(const Fusion *f, uint32_t a, uint32_t b); /* would none wait for itself? */
void fuse_join_edges(Fusion *f, uint32_t a, uint32_t b);     /* b's are a's from now on */
void fuse_order(Fusion *f);                                  /* after edges were added: sorts again */
bool fuse_is_place(const Graph *g, Val v);                   /* the index of a row, or in it: any kernel can count it */
Val fuse_base(const Fusion *f, Val v);                       /* what v is a view of, or v */
bool fuse_reaches(const Fusion *f, uint32_t from, uint32_t to); /* must `from` run before `to`? */
void fuse_dump(Buf *out, const Fusion *f);

/* Merges b into a, which is older or equal in order, if they may run as one. */
bool fuse_merge(Fusion *f, uint32_t a, uint32_t b);
/* Of a node that was placed, on a device (fuse_siblings.c): where few numbers are left of a result of a library, and it is read for
 * something else too, both readings become one. Else the sums would go where these numbers are wanted, behind other products, and
 * the result would be read there again. */
void fuse_meet_sums(Fusion *f, Val v);
/* Groups that read one result of a library and nothing of each other: together they read it once. */
void fuse_merge_siblings(Fusion *f);

void fuse_sort(Val *v, size_t n); /* ascending */

/* At how many places each of these values is computed for one element of those that none of them reads: who wants
 * it where it is shares the place with others, who moves it has one of its own. Call fuse_places() and then
 * fuse_forget_places(), within one mark of f->tmp. */
typedef VEC(Val) Vals;
void fuse_count_places(Fusion *f, Vals *v); /* sorts them */
int64_t fuse_places(const Fusion *f, Val v);
void fuse_forget_places(Fusion *f, const Vals *v);
struct Places *fuse_new_places(Arena *arena, size_t values); /* for Fusion.places */
bool fuse_reads_moved(Fusion *f, Val v);                     /* does v read what was moved? */
/* One kernel of the members of both (b may be NULL) and of v (0: none): is what it computes computed at few places? A
 * sum of a member and of itself, moved, doubles the work of all that the member comes from. */
bool fuse_few_places(Fusion *f, const Group *a, const Group *b, Val v);

/* Coordinates of input k of v where v itself is at c; fresh loops (from `ordinal` on) stand for
 * what a reduction or a choice by index runs over. False when they depend on what a tensor
 * holds. */
bool fuse_input_coords(IxTable *t, const Graph *g, Val v, const Ix *c, size_t k, int ordinal, Ix *in);
bool fuse_is_compute(const Graph *g, Val v); /* elementwise, random or a reduction */
bool fuse_empty(const Fusion *f, Val v);     /* has an extent of 0 */
/* Is v, which is no member of the group, computed wherever the group wants it? */
bool fuse_rematerializes(const Fusion *f, uint32_t group, Val v);
bool fuse_loads(const Fusion *f, uint32_t group, Val v); /* from memory; EXT nodes always */
/* All that its kernel loads, in no order that matters (fuse_loads.c). */
void fuse_find_loads(Fusion *f, uint32_t group, Vals *loads);
/* Where the rows of a reduction lie: in the axes that are reduced (a sum over rows) or before
 * them. */
typedef enum RowPart { ROWS_BAD, ROWS_KEPT, ROWS_SUMMED } RowPart;
RowPart fuse_rows(const Graph *g, Val v, Dim rows);
/* fuse_align.c */
typedef VEC(Dim) Dims;
void fuse_add_rows(Dims *d, Arena *arena, Dim rows);   /* once */
void fuse_own_rows(const Fusion *f, Val v, Dims *out); /* numbers of rows that v alone could have */
bool fuse_rows_suit(const Fusion *f, Val v, Dim rows); /* may v be computed over so many? */
/* Is every member of the group that v reads read at v's own row? Asked when all that v reads is
 * placed. */
bool fuse_reads_own_row(Fusion *f, Val v, int32_t group, Dim rows);
struct ByRows *fuse_new_by_rows(Arena *arena, size_t values); /* for Fusion.by_rows */
static inline Dim fuse_size(const Graph *g, Val v)
{
    Dim n;
    if (!shape_size(shape_of(g, v), &n))
        vwn_bug(g->ctx, "the size of a tensor overflows");
    return n;
}

/* Does v move no element, and is not copied either? */
bool fuse_is_view(const Fusion *f, Val v);
/* fuse_16bit.c: what is kept in 16 bits, by who reads it; is v a product of two such? */
void fuse_choose_16bit(Fusion *f);
bool fuse_half_product(const Fusion *f, Val v);
/* Is it a node of attention, or a result of one? Does attention read input k as elements of heads? */
bool fuse_is_attention(const Graph *g, Val v);
bool fuse_is_attention_result(const Graph *g, Val v);
bool fuse_attention_takes(const Graph *g, Val v, size_t k);
bool fuse_is_half(const Fusion *f, Val v); /* is every element a value of that type, in whatever it is stored? */

/* A tensor as the library sees it: the stored value it is a view of (or an EXT node), the place
 * of its first element there and its strides. False when it is no such view. */
typedef struct Operand {
    Val base;
    int64_t offset;
    int64_t extent[MAX_RANK], stride[MAX_RANK];
    int rank;
} Operand;
bool fuse_operand(const Fusion *f, Val x, Operand *out);
bool operand_contiguous(const Operand *o);
/* The same with axes [from, to) as one; false when their strides do not fit. Extents of 1
 * always do. */
bool operand_merge(const Operand *o, int from, int to, int64_t *extent, int64_t *stride);
/* Rows of contiguous elements, a fixed number of elements apart? */
bool operand_rows(const Operand *o, int64_t *rows, int64_t *pitch);
/* Can the library multiply with it as it lies? leading dimension, batch stride, transposed. */
typedef struct MatrixView {
    int64_t rows, columns, ld, batch, step;
    bool transposed; /* columns are contiguous in memory */
} MatrixView;
/* merge_rows: leading axes belong to the rows. */
bool operand_matrix(const Operand *o, bool merge_rows, MatrixView *out);

/* The shape in whose row-major order the elements of a stored value lie in its memory: its own, or that of the row whose
 * beginning it is. */
static inline const Shape *fuse_layout(const Fusion *f, Val v)
{
    return shape_of(f->g, f->row_of[v] ? f->row_of[v] : v);
}

#endif
