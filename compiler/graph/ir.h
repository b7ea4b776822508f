/* ir.h - the graph: tensors computed from primitives.
 *
 * In:  builder calls (from the evaluator, the gradient rules, the optimizers).
 * Out: an append-only array of nodes; the index order is a topological order. A pass writes a
 * new graph.
 * The one idea: everything (forward, backward, clipping, optimizer update) is this graph of the
 * few operators of ops.def; nothing here knows an architecture.
 */
#ifndef VWN_IR_H
#define VWN_IR_H

#include "compiler/base/base.h"
#include "compiler/base/diag.h"
#include "compiler/base/host.h"

typedef uint32_t Val; /* index of a node; 0 = none */

/* The extent n * B^b * T^t: B sequences and T positions per sequence are bound when a plan is
 * made. */
typedef struct Dim {
    int64_t n;
    uint8_t b, t;
} Dim;
#define DIM(k) ((Dim){(k), 0, 0})
#define DIM_B  ((Dim){1, 1, 0})
#define DIM_T  ((Dim){1, 0, 1})
static inline bool dim_eq(Dim x, Dim y) { return x.n == y.n && x.b == y.b && x.t == y.t; }
static inline bool dim_static(Dim x) { return !x.b && !x.t; }
bool dim_mul(Dim x, Dim y, Dim *out);        /* false on overflow (n > 2^53 or powers > 15) */
bool dim_div(Dim x, Dim y, Dim *out);        /* false when not exact */
int64_t dim_at(Dim x, int64_t B, int64_t T); /* -1 on overflow */
void dim_print(Buf *out, Dim x);             /* "768", "B", "T", "4*B*T" */

enum { MAX_RANK = 8 };
typedef struct Shape {
    uint8_t rank;
    Dim d[MAX_RANK];
} Shape;
bool shape_eq(const Shape *a, const Shape *b);
bool shape_size(const Shape *s, Dim *out); /* product of the extents; false on overflow */
/* Coordinates per position of [B, T, ..], or of [T, ..]; all elements of what is the same for every batch. */
int64_t coordinates(const Shape *s);
/* numpy's rule; false = mismatch */
bool shape_broadcast(const Shape *a, const Shape *b, Shape *out);
void shape_print(Buf *out, const Shape *s); /* "[B, T, 768]" */

typedef enum DType {
    DT_REAL, /* float32 in backends, float64 in the reference; masks are 0.0 and 1.0 */
    DT_INT   /* int64 everywhere */
} DType;
/* What numbers are stored in, and what OP_ROUND_TO rounds to: its attribute. HALF_NONE: float32. */
typedef enum Half {
#define DTYPE(id, code, ...) HALF_##id = code,
#include "dtype.def"
#undef DTYPE
} Half;
/* A row of dtype.def. */
typedef struct HalfInfo {
    Half half;
    const char *word;
    int bytes;
    int digits, least; /* what is rounded to it */
    double largest;
    bool saturates;
    bool precision; /* files may compute in it */
    int blas, map;
    const char *vector; /* in CUDA, the type of some contiguous numbers, whose count and `>` follow */
    bool c_vector;      /* in C, vectors are rounded to it at once */
    bool in_tiles; /* products of tiles on tensor cores take it as it lies there; else it is rounded as they load it */
    bool splits;   /* two of them hold a number of float32 well enough for products */
    bool store_rounds; /* vwn_WORD() rounds; else it drops low bits, which are 0 by then */
    bool scaled;       /* its range is so small that a loss is scaled before it is differentiated */
} HalfInfo;
const HalfInfo *half_at(size_t i); /* each row, float32 first; NULL behind the last */
const HalfInfo *half_info(Half h); /* NULL: there is none of that code */
/* "bf16"; false: none, or float32. `precision`: only of those that files may compute in; *out is set for others, too. */
bool half_read(const char *word, bool precision, Half *out);
const char *half_words(Arena *a, bool precision, const char *between); /* of all but float32, joined */
static inline const char *half_word(Half h) { return half_info(h)->word; }
static inline int half_bytes(Half h) { return half_info(h)->bytes; }

/* What a graph reads from outside and may write back: weights, moments, tokens, ... */
typedef enum ExtKind {
    EXT_INPUT,  /* given per call: tokens, labels, image, time; DT_INT or DT_REAL */
    EXT_PARAM,  /* learnable weights */
    EXT_BUFFER, /* stored, not learned */
    EXT_GRAD,   /* gradient accumulator of a parameter */
    EXT_STATE,  /* optimizer state: "<param>.adam_m", ... */
    EXT_TOTAL,  /* a sum over the whole batch that its micro-batches read; see parts.h */
    EXT_STEP,   /* a value that a step hands from program to program, and to the next step; see optimizer.c */
    EXT_COPY,   /* a parameter rounded to 16 bits, as products read it; of a device, see plan_copies.c */
    EXT_KINDS
} ExtKind;
typedef struct Ext {
    ExtKind kind;
    Name name; /* unique within the kind: a parameter path, "tokens", ... */
    DType dtype;
    Shape shape;
} Ext;

/* A result of the graph: read by the host (ext < 0) or stored into an external tensor. Stores
 * happen after every read of that tensor. Host-read results are scalars or named tensors
 * ("logits"). */
typedef struct Output {
    Name name;
    Val value;
    int32_t ext;
} Output;

typedef enum Op {
    OP_NONE,
#define OP(id, ...) OP_##id,
#include "ops.def"
#undef OP
    OP_COUNT
} Op;

/* How a node is computed, where decompose() has a choice. It changes no number, so that nothing else reads it. */
typedef enum MadeHow {
    MADE_ANYHOW,
    PRODUCT_OF_ROW,   /* MATMUL of one small matrix by another for each row, or a sum of such over rows: by kernels */
    PRODUCT_OF_PARTS, /* the same of [a a] by [u v]^T: the sum of a by both */
    CONCAT_OF_COPIES, /* CONCAT by copies of the library, slice by slice */
    CONCAT_OF_KERNEL, /* by the kernel that computes one of its slices */
    CONCAT_IN_PLACE,  /* so, but for the first slice, which its kernel stores in the row */
    CONCAT_OF_PARTS   /* some inputs of a CONCAT of more than PARTS_MAX: stored, and loaded by who reads it */
} MadeHow;

/* Attributes; which fields an operator uses is stated in ops.def, the others are zero. */
typedef struct Attr {
    double x, y, z; /* constants: value; scale, softcap, dropout; fill */
    int64_t i, j;   /* axis, start, count, flags, index of an ext or a host scalar */
    uint32_t axes;  /* bit k set: axis k */
    MadeHow made;
    Dim dim;            /* DIM */
    Name site;          /* random numbers: key of the stream */
    const double *data; /* CONST: n values, row-major; PERMUTE: the permutation */
    size_t n;
} Attr;

typedef struct Node {
    uint8_t op;    /* Op */
    uint8_t dtype; /* DType */
    uint16_t n_in;
    bool recomputed; /* computes again, in the backward pass, what the forward pass has */
    Val *in;
    Shape shape;
    Attr a;
    Span span; /* the `.vwn` text it came from */
    Name name; /* the path of the module that built it and the binding, for people */
} Node;

typedef struct Graph {
    Ctx *ctx;
    Arena *arena;
    VEC(Node) node; /* node.v[0] is unused */
    VEC(Ext) ext;
    VEC(const HostExpr *) host;
    VEC(Output) out;
    Span span; /* stamped on new nodes; the evaluator sets them */
    Name name;
    bool recomputed;     /* stamped on them too: see Node.recomputed */
    bool differentiated; /* graph_gradient has run: STOP has done its work and may be dropped */
    bool exact;          /* no product of it is rounded, whatever training asks for */
    Map leaf;            /* private: (kind, name) -> the leaf of an external tensor */
} Graph;

/* ---- building; shapes must fit (the evaluator checks first): a misfit is vwn_bug() ---- */
Graph *graph_new(Ctx *ctx, Arena *arena);
void graph_reserve(Graph *g, size_t nodes); /* room for so many: a graph that grows is copied */
static inline Node *node_at(const Graph *g, Val v) { return &g->node.v[v]; }
static inline Val first_input(const Node *n) { return n->n_in ? n->in[0] : 0; } /* 0, the unused one: it has none */
static inline const Shape *shape_of(const Graph *g, Val v) { return &g->node.v[v].shape; }
bool attr_same(const Attr *a, const Attr *b);          /* bit for bit */
bool node_same_function(const Node *a, const Node *b); /* of whatever they read */
/* shape: only for operators whose row says "given" in ops.def, else NULL */
Val ir_node(Graph *g, Op op, const Val *in, size_t n_in, const Attr *a, const Shape *shape);
/* one leaf per tensor */
Val ir_ext(Graph *g, ExtKind kind, Name name, DType dtype, const Shape *shape);
Val ir_host(Graph *g, const HostExpr *e);                /* scalar, shape [] */
Val ir_fill(Graph *g, double value);                     /* scalar constant, shape [] */
Val ir_int(Graph *g, int64_t value);                     /* integer constant, shape [] */
Val ir_const(Graph *g, const Shape *s, const double *v); /* static shape; v is copied */
Val ir_dim(Graph *g, Dim d);                             /* an extent as a real scalar */
Val ir_iota(Graph *g, const Shape *s, int axis);         /* DT_INT: the index along axis */
/* OP_RAND in [0,1) or OP_RANDN. Each sequence has numbers of its own, where an axis holds them; else all share them. */
Val ir_random(Graph *g, Op op, const Shape *s, Name site);
/* How many random numbers a node draws for each sequence. Element i of the sequences from `first` on has number first times this,
 * plus i, so that B does not matter. 0: none, or the same ones for all. */
Dim draws_of_sequence(const Graph *g, const Node *n);
Val ir_unary(Graph *g, Op op, Val x);
Val ir_binary(Graph *g, Op op, Val a, Val b);   /* broadcasts like numpy, by BROADCAST nodes */
Val ir_where(Graph *g, Val mask, Val a, Val b); /* broadcasts */
Val ir_cast(Graph *g, Val x, DType to);
Val ir_broadcast(Graph *g, Val x, const Shape *to); /* numpy's rule; x itself when equal */
Val ir_reshape(Graph *g, Val x, const Shape *to);
Val ir_permute(Graph *g, Val x, const int *perm); /* out axis k = in axis perm[k] */
Val ir_transpose(Graph *g, Val x);                /* last two axes */
Val ir_slice(Graph *g, Val x, int axis, int64_t start, int64_t count);
Val ir_pad(Graph *g, Val x, int axis, int64_t before, int64_t after); /* zeros */
Val ir_concat(Graph *g, const Val *x, size_t n, int axis);
/* out[i] = in[i - k], else fill */
Val ir_shift(Graph *g, Val x, int axis, int64_t k, double fill);
Val ir_roll(Graph *g, Val x, int axis, int64_t k);
Val ir_sum(Graph *g, Val x, uint32_t axes, bool keep);
Val ir_max(Graph *g, Val x, uint32_t axes, bool keep);
Val ir_mean(Graph *g, Val x, uint32_t axes, bool keep);
Val ir_cumsum(Graph *g, Val x, int axis, bool reverse);
/* last two axes; a rank-2 b is shared by all leading axes of a; else leading axes broadcast */
Val ir_matmul(Graph *g, Val a, Val b);
Val ir_gather(Graph *g, Val table, Val index); /* [V, ..r] by [..i] -> [..i, ..r] */
Val ir_pick(Graph *g, Val x, Val index);       /* [.., n] by [.., k] -> [.., k] */
/* indices [.., k], largest first, ties: lowest */
Val ir_top_k(Graph *g, Val x, int64_t k);
Val ir_one_hot(Graph *g, Val index, int64_t n); /* [..] -> [.., n] */
/* rows start[b], start[b] + 1, .. along axis 1; start and on [B] are integers; without gradient */
Val ir_put(Graph *g, Val table, Val x, Val start, Val on); /* written where on[b] != 0 */
Val ir_take(Graph *g, Val table, Val start, Dim rows, double fill);
/* x [.., I] or [.., k, I]; w [E, I, O]; index [.., k] -> [.., k, O] */
Val ir_expert_matmul(Graph *g, Val x, Val w, Val index);
/* window: 0 = none; else keys t - window < u <= t (two-sided when full). Dropout: probability
 * (b, h, t, u) is kept, and divided by 1 - rate, when uniform number ((b H + h) T + t) S + u of
 * the site is not below the rate; b counts on from the first sequence of the batch. */
typedef struct Sdpa {
    bool causal;
    double scale, softcap, dropout; /* 0 softcap, 0 dropout = none */
    int64_t window;
    Name site;
    Val first;  /* 0, or an integer [B]: the position of the first query; then no gradient */
    Val oldest; /* 0, or an integer [B, T]: the first key that a query sees; not with `first` */
} Sdpa;
/* q [B, T, H, d], k v [B, S, K, d or dv] */
Val ir_sdpa(Graph *g, Val q, Val k, Val v, const Sdpa *how);
/* Why a value has no gradient: Attr.i of OP_STOP. */
typedef enum StopKind {
    STOP_GRADIENT, /* the file says so */
    STOP_DROPOUT,  /* it is a mask of dropout, all ones where nothing is dropped */
    STOP_RECOMPUTE /* what is behind it is computed again: no pass may make one of both */
} StopKind;
Val ir_stop(Graph *g, Val x, StopKind kind);             /* identity without gradient */
void ir_output(Graph *g, Name name, Val v);              /* host-read */
void ir_store(Graph *g, Val v, ExtKind kind, Name name); /* stored into an ext tensor */

/* Compositions used by the language and by gradient rules. */
Val ir_scale(Graph *g, Val x, double factor);
Val ir_softmax(Graph *g, Val x, int axis);
Val ir_logsumexp(Graph *g, Val x, int axis, bool keep);
/* x [B, T, H, d], pairs (i, i + n) or, of neighbours, (2 i, 2 i + 1); rotates the first 2 n coordinates; position = axis 1 */
Val ir_rotary(Graph *g, Val x, const double *freq, size_t n_freq, bool neighbours);
/* Per position: logits [.., V], labels [..] -> [..]; 0 where label < 0 or == ignore. */
Val ir_cross_entropy(Graph *g, Val logits, Val labels, int64_t ignore, double smoothing);

/* ---- passes ---- */
void graph_verify(const Graph *g); /* every rule of ops.def; vwn_bug() with the broken node */
/* d loss / d wrt[i] as new nodes of g; `loss` is a scalar. out[i] = 0 where there is no
 * path. */
void graph_gradient(Graph *g, Val loss, const Val *wrt, size_t n, Val *out);

/* ---- text: byte-stable, reads back to an equal graph ---- */
void graph_dump(Buf *out, const Graph *g);
Graph *graph_read(Ctx *ctx, Arena *arena, uint32_t source_file); /* NULL with diagnostics */

/* ---- ops.def as data ---- */
typedef enum OpClass {
    CLASS_LEAF,
    CLASS_UNARY,
    CLASS_BINARY,
    CLASS_TERNARY,
    CLASS_VIEW,
    CLASS_MOVE,
    CLASS_REDUCE,
    CLASS_MATMUL,
    CLASS_INDEX,
    CLASS_ATTENTION,
    CLASS_AUX
} OpClass;
typedef enum AtZero { ZERO_NO, ZERO_YES, ZERO_UNKNOWN } AtZero;
typedef struct OpInfo {
    const char *name; /* "matmul" */
    OpClass class;
    int n_in;            /* -1: any number */
    AtZero zero, slope0; /* f(0) = 0? f'(0) != 0? (growth proofs) */
    const char *c_real, *c_integer,
        *c_vector;     /* elementwise: C of reals, integers, vectors, as in ops.def; NULL: none */
    int cost;          /* of one element, in simple operations; OP_CALL: a function such as exp() */
    bool in_language;  /* may be called by its name in a .vwn file */
    const char *doc;   /* one line */
    const char *attrs; /* letters of the attributes it uses, as in ops.def */
} OpInfo;
const OpInfo *op_info(Op op);
enum { OP_CALL = 16 };
/* f(x) of a real elementwise operator of one input, as the reference evaluator computes it. */
double op_of_number(Ctx *ctx, Op op, double x);
static inline bool op_is_map(Op op) /* one element of each input makes one element */
{
    OpClass c = op_info(op)->class;
    return c == CLASS_UNARY || c == CLASS_BINARY || c == CLASS_TERNARY;
}
static inline bool op_is_view(Op op) { return op_info(op)->class == CLASS_VIEW; }
static inline bool op_is_expert(Op op) { return op == OP_EXPERT_MATMUL || op == OP_EXPERT_MATMUL_DW; }
Op op_named(const char *name); /* OP_NONE when unknown */
/* Multiply-adds times 2 of matrix products and attention (full square), as a monomial; n = 0:
 * none. */
Dim op_flops(const Graph *g, Val v);

/* ---- the reference evaluator: float64, node by node, plain loops; the specification ---- */
typedef struct Tensor {
    DType dtype;
    uint8_t rank;
    int64_t d[MAX_RANK];
    int64_t size;
    double *real;     /* DT_REAL */
    int64_t *integer; /* DT_INT */
} Tensor;
typedef struct RefBinding {
    ExtKind kind;
    Name name;
    Tensor *tensor;
} RefBinding;
typedef struct RefRun {
    int64_t B, T;
    uint64_t seed, step;     /* random numbers */
    const double *host_vars; /* HV_COUNT values, may be NULL */
    RefBinding *bind;        /* every ext of the graph; stores write into them */
    size_t n_bind;
    uint64_t first; /* of random numbers: where in the batch or the evaluation the B sequences begin */
} RefRun;
/* Evaluates all outputs; results[i] (in graph order) lives in `arena`. */
void ref_evaluate(const Graph *g, Arena *arena, RefRun *run, Tensor **results);
Tensor *tensor_new(Arena *arena, DType dtype, uint8_t rank, const int64_t *d);

/* ---- random numbers, the same on every backend (philox.c): Philox4x32-10 ---- */
/* key = seed mixed with the site's bytes; counter words = (index low, high, step low, high).
 * Uniform = (word 0 >> 8) 2^-24, in [0, 1); normal = sqrt(-2 ln u) cos(2 pi a), u = ((word 0 >>
 * 8) + 1) 2^-24, a = (word 1 >> 8) 2^-24. */
void philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);
uint64_t philox_key(uint64_t seed, const char *site);
double philox_uniform(uint64_t key, uint64_t step, uint64_t index);
double philox_normal(uint64_t key, uint64_t step, uint64_t index);
/* out[i]: the number of index + i. */
void philox_normals(uint64_t key, uint64_t step, uint64_t index, size_t n, double *out);
/* The same times `scale`, rounded to 24 bits: bit for bit, in a third of the time. */
void philox_normals_float(uint64_t key, uint64_t step, uint64_t index, size_t n, double scale, float *out);

#endif
