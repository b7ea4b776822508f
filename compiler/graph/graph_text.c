/* graph_text.c - the graph as text, and back.
 *
 * In:  a graph.     Out: lines; and from such lines an equal graph.
 * The one idea: one node per line with everything it has, numbers printed so that they read
 * back to the same bits, and nothing else (no pointers, no times), so that equal graphs are
 * equal bytes:
 *     vwn graph 1
 *     ext 0 param real [50304, 768] "embed.tokens"
 *     host 0 (step * 0.5)
 *     %1 = ext i=0 : real [50304, 768]  # embed gpt.vwn:7:5
 *     out "loss" %1
 *     store "embed.tokens" %1 ext=0
 * The text is untrusted: every line is checked like a builder's call, with diagnostics.
 */
#include "op.h"
#include "reader.h"

static const char *const kind_names[] = {
    [EXT_INPUT] = "input", [EXT_PARAM] = "param", [EXT_BUFFER] = "buffer", [EXT_GRAD] = "grad",
    [EXT_STATE] = "state", [EXT_TOTAL] = "total", [EXT_STEP] = "step",     [EXT_COPY] = "copy",
};
static const char *const dtype_names[] = {[DT_REAL] = "real", [DT_INT] = "int"};

/* ---- writing ---- */

static void put_string(Buf *out, const char *s) { buf_json_string(out, s, strlen(s)); }

static void put_real(Buf *out, const char *key, double x)
{
    buf_printf(out, " %s=", key);
    host_print_number(out, x);
}

static void put_attrs(Buf *out, Op op, const Attr *a)
{
    static const double zero = 0;
    bool leaf = op_info(op)->class == CLASS_LEAF;
    const double *real[3] = {&a->x, &a->y, &a->z};
    for (int k = 0; k < 3; k++) {
        char key[2] = {(char)('x' + k), 0};
        if (op_uses(op, key[0]) && (leaf || memcmp(real[k], &zero, sizeof zero)))
            put_real(out, key, *real[k]);
    }
    if (op_uses(op, 'i') && (leaf || a->i))
        buf_printf(out, " i=%lld", (long long)a->i);
    if (op_uses(op, 'j') && a->j)
        buf_printf(out, " j=%lld", (long long)a->j);
    static const char *const made[] = {
        [PRODUCT_OF_ROW] = "row",       [PRODUCT_OF_PARTS] = "row_by_parts",
        [CONCAT_OF_COPIES] = "copies",  [CONCAT_OF_KERNEL] = "kernel",
        [CONCAT_IN_PLACE] = "in_place", [CONCAT_OF_PARTS] = "parts"}; /* a graph that decompose() made: not read back */
    if (a->made)
        buf_printf(out, " made=%s", made[a->made]);
    if (a->axes) {
        const char *before = " axes=";
        for (int k = 0; k < 32; k++)
            if (a->axes >> k & 1) {
                buf_printf(out, "%s%d", before, k);
                before = ",";
            }
    }
    if (op_uses(op, 'D')) {
        buf_puts(out, " dim=");
        dim_print(out, a->dim);
    }
    if (a->site) {
        buf_puts(out, " site=");
        put_string(out, a->site);
    }
    if (op_uses(op, 'T')) {
        buf_puts(out, " data={");
        for (size_t k = 0; k < a->n; k++) {
            buf_puts(out, k ? "," : "");
            host_print_number(out, a->data[k]);
        }
        buf_putc(out, '}');
    }
}

/* What a comment may hold: one line. */
static void put_plain(Buf *out, const char *s)
{
    for (; *s; s++)
        buf_putc(out, (unsigned char)*s < 0x20 ? '?' : *s);
}

static void put_comment(Buf *out, const Graph *g, const Node *n)
{
    bool name = n->name && *n->name, place = n->span.file != 0;
    if (!name && !place)
        return;
    buf_puts(out, "  # ");
    if (name)
        put_plain(out, n->name);
    if (place) {
        LineCol at = source_position(g->ctx, n->span.file, n->span.lo);
        buf_puts(out, name ? " " : "");
        put_plain(out, source_path(g->ctx, n->span.file));
        buf_printf(out, ":%u:%u", (unsigned)at.line, (unsigned)at.column);
    }
}

static void put_node(Buf *out, const Graph *g, Val v)
{
    const Node *n = node_at(g, v);
    buf_printf(out, "%%%u = %s", (unsigned)v, op_info((Op)n->op)->name);
    for (size_t k = 0; k < n->n_in; k++)
        buf_printf(out, " %%%u", (unsigned)n->in[k]);
    put_attrs(out, (Op)n->op, &n->a);
    buf_puts(out, n->recomputed ? " recomputed" : "");
    buf_printf(out, " : %s ", dtype_names[n->dtype]);
    shape_print(out, &n->shape);
    put_comment(out, g, n);
    buf_putc(out, '\n');
}

void graph_dump(Buf *out, const Graph *g)
{
    buf_printf(out, "vwn graph 1%s\n", g->differentiated ? " differentiated" : "");
    for (size_t i = 0; i < g->ext.n; i++) {
        const Ext *x = &g->ext.v[i];
        buf_printf(out, "ext %zu %s %s ", i, kind_names[x->kind], dtype_names[x->dtype]);
        shape_print(out, &x->shape);
        buf_putc(out, ' ');
        put_string(out, x->name);
        buf_putc(out, '\n');
    }
    for (size_t i = 0; i < g->host.n; i++) {
        buf_printf(out, "host %zu ", i);
        host_print(out, g->host.v[i]);
        buf_putc(out, '\n');
    }
    for (Val v = 1; v < g->node.n; v++)
        put_node(out, g, v);
    for (size_t i = 0; i < g->out.n; i++) {
        const Output *o = &g->out.v[i];
        buf_puts(out, o->ext < 0 ? "out " : "store ");
        put_string(out, o->name ? o->name : "");
        buf_printf(out, " %%%u", (unsigned)o->value);
        if (o->ext >= 0)
            buf_printf(out, " ext=%d", (int)o->ext);
        buf_putc(out, '\n');
    }
}

/* ---- reading ---- */

static Shape read_shape(Reader *r)
{
    Shape s = {0};
    reader_expect(r, "[");
    if (reader_accept(r, "]"))
        return s;
    do {
        if (s.rank == MAX_RANK) {
            reader_expected(r, "at most 8 axes");
            break;
        }
        reader_spaces(r);
        s.d[s.rank++] = reader_dim(r);
    } while (!r->failed && reader_accept(r, ","));
    reader_expect(r, "]");
    return s;
}

/* ---- the kinds of lines ---- */

static void read_ext(Reader *r)
{
    Ext x = {0};
    reader_number(r, r->g->ext.n);
    const char *at = r->p;
    x.kind = (ExtKind)reader_choice(r, kind_names, COUNT_OF(kind_names), "kind of tensor");
    x.dtype = (DType)reader_choice(r, dtype_names, COUNT_OF(dtype_names), "type");
    x.shape = read_shape(r);
    x.name = reader_string(r);
    Dim size;
    if (!r->failed && !shape_size(&x.shape, &size))
        reader_fail(r, "E0904", at, "", "the number of elements overflows");
    for (size_t i = 0; i < r->g->ext.n && !r->failed; i++)
        if (r->g->ext.v[i].kind == x.kind && r->g->ext.v[i].name == x.name)
            reader_fail(r, "E0905", at, "", "this external tensor is there twice");
    if (!r->failed)
        ext_add(r->g, &x);
}

static void read_host(Reader *r)
{
    reader_number(r, r->g->host.n);
    reader_spaces(r);
    const HostExpr *e = r->failed ? NULL : host_read(r->g->arena, &r->p);
    if (e)
        vec_push(r->g->arena, &r->g->host, e);
    else
        reader_expected(r, "a run-time expression");
}

static Val read_val(Reader *r)
{
    const char *at = r->p;
    reader_expect(r, "%");
    int64_t v = reader_int(r);
    if (!r->failed && (v < 1 || v >= (int64_t)r->g->node.n))
        reader_fail(r, "E0905", at, "", "this is not a node that stands above");
    return r->failed ? 0 : (Val)v;
}

static uint32_t read_axes(Reader *r)
{
    uint32_t axes = 0;
    do {
        int64_t axis = reader_int(r);
        if (axis < 0 || axis >= MAX_RANK)
            reader_expected(r, "an axis");
        else
            axes |= 1u << axis;
    } while (!r->failed && reader_accept(r, ","));
    return axes;
}

static void read_data(Reader *r, Attr *a)
{
    VEC(double) data = {0};
    reader_expect(r, "{");
    if (!reader_accept(r, "}")) {
        do {
            vec_push(r->g->arena, &data, reader_real(r));
        } while (!r->failed && reader_accept(r, ","));
        reader_expect(r, "}");
    }
    static const double nothing[1] = {0};
    a->data = data.n ? data.v : nothing;
    a->n = data.n;
}

static void read_attr(Reader *r, Attr *a)
{
    const char *at = r->p, *key = reader_word(r);
    reader_expect(r, "=");
    if (!strcmp(key, "x"))
        a->x = reader_real(r);
    else if (!strcmp(key, "y"))
        a->y = reader_real(r);
    else if (!strcmp(key, "z"))
        a->z = reader_real(r);
    else if (!strcmp(key, "i"))
        a->i = reader_int(r);
    else if (!strcmp(key, "j"))
        a->j = reader_int(r);
    else if (!strcmp(key, "axes"))
        a->axes = read_axes(r);
    else if (!strcmp(key, "dim"))
        a->dim = reader_dim(r);
    else if (!strcmp(key, "site"))
        a->site = reader_string(r);
    else if (!strcmp(key, "data"))
        read_data(r, a);
    else
        reader_fail(r, "E0903", at, "", arena_printf(r->ctx->program, "there is no attribute `%s`", key));
}

/* The `:7:5` at the end of a comment; its length, 0 without one. */
static size_t position_at_end(const char *text, size_t n, LineCol *at)
{
    uint32_t number[2] = {0};
    size_t end = n;
    for (int k = 1; k >= 0; k--) {
        size_t digits = 0;
        uint32_t scale = 1;
        while (digits < 9 && digits < end && text[end - 1 - digits] >= '0' && text[end - 1 - digits] <= '9') {
            number[k] += scale * (uint32_t)(text[end - 1 - digits++] - '0');
            scale *= 10;
        }
        if (digits == 0 || digits == end || text[end - digits - 1] != ':' || text[end - digits] == '0')
            return 0;
        end -= digits + 1;
    }
    *at = (LineCol){number[0], number[1]};
    return n - end;
}

/* `# name file:7:5`: names without a blank, so that what is made of the node later (its
 * gradient) is called as it would be in the graph that was printed. */
static void read_comment(Reader *r)
{
    r->g->name = NULL;
    r->g->span = NO_SPAN;
    if (r->failed || !reader_accept(r, "#"))
        return;
    if (*r->p == ' ')
        r->p++;
    const char *start = r->p;
    while (*r->p && *r->p != '\n')
        r->p++;
    size_t n = (size_t)(r->p - start);
    LineCol at;
    size_t tail = position_at_end(start, n, &at);
    const char *blank = tail ? memchr(start, ' ', n - tail) : start + n;
    size_t name = blank ? (size_t)(blank - start) : 0;
    r->g->name = name ? name_of(r->ctx, start, name) : NULL;
    const char *path = name ? blank + 1 : start;
    if (tail)
        r->g->span = source_place(r->ctx, arena_copy(r->ctx->scratch, path, (size_t)(start + n - tail - path)), at);
}

static void read_node(Reader *r)
{
    const char *at = r->p;
    reader_number(r, r->g->node.n);
    reader_expect(r, "=");
    reader_spaces(r);
    const char *word_at = r->p, *word = reader_word(r);
    Op op = op_named(word);
    if (!r->failed && op == OP_NONE)
        reader_fail(r, "E0903", word_at, "", arena_printf(r->ctx->program, "there is no operator `%s`", word));
    VEC(Val) in = {0};
    while (reader_spaces(r), !r->failed && *r->p == '%')
        vec_push(r->g->arena, &in, read_val(r));
    Attr a = {0};
    bool recomputed = false;
    while (reader_spaces(r), !r->failed && reader_word_char(*r->p))
        if (reader_accept(r, "recomputed"))
            recomputed = true;
        else
            read_attr(r, &a);
    reader_expect(r, ":");
    DType have, dtype = (DType)reader_choice(r, dtype_names, COUNT_OF(dtype_names), "type");
    Shape shape = read_shape(r), inferred;
    if (r->failed)
        return;
    Ask q = {r->g, op, in.v, in.n, &a, op_uses(op, 'S') ? &shape : NULL};
    const char *wrong = in.n > UINT16_MAX ? "too many inputs" : op_infer(&q, &inferred, &have);
    if (!wrong && (!shape_eq(&shape, &inferred) || dtype != have))
        wrong = "its shape or type is not what its inputs give";
    if (wrong) {
        reader_fail(r, "E0904", at, wrong, "this node of the graph does not fit");
        return;
    }
    read_comment(r);
    r->g->recomputed = recomputed;
    Val v = ir_node(r->g, op, in.v, in.n, &a, q.given);
    r->g->recomputed = false;
    if (op == OP_EXT)
        ext_set_leaf(r->g, v);
}

static void read_output(Reader *r, bool store)
{
    const char *at = r->p;
    Output o = {.name = reader_string(r), .ext = -1};
    o.value = r->failed ? 0 : (reader_spaces(r), read_val(r));
    if (store) {
        reader_expect(r, "ext=");
        int64_t ext = reader_int(r);
        if (r->failed)
            return;
        const Node *n = node_at(r->g, o.value);
        if (ext < 0 || ext >= (int64_t)r->g->ext.n || !shape_eq(&r->g->ext.v[ext].shape, &n->shape) ||
            r->g->ext.v[ext].dtype != (DType)n->dtype)
            reader_fail(r, "E0904", at, "", "the value does not fit the tensor that it is stored into");
        o.ext = (int32_t)ext;
    }
    if (!r->failed)
        vec_push(r->g->arena, &r->g->out, o);
}

static void read_line(Reader *r)
{
    if (reader_accept(r, "%"))
        read_node(r);
    else if (reader_accept(r, "ext "))
        read_ext(r);
    else if (reader_accept(r, "host "))
        read_host(r);
    else if (reader_accept(r, "out "))
        read_output(r, false);
    else if (reader_accept(r, "store "))
        read_output(r, true);
    else
        reader_expected(r, "a node, `ext`, `host`, `out` or `store`");
    reader_end_of_line(r);
}

Graph *graph_read(Ctx *ctx, Arena *arena, uint32_t source_file)
{
    Reader r = reader_start(ctx, arena, source_file);
    r.g = graph_new(ctx, arena);
    if (!reader_accept(&r, "vwn graph 1"))
        reader_fail(&r, "E0901", r.p, "expected `vwn graph 1`", "this is not a graph");
    r.g->differentiated = !r.failed && reader_accept(&r, "differentiated");
    reader_end_of_line(&r);
    while (!r.failed && r.p < r.end)
        read_line(&r);
    r.g->name = NULL;
    r.g->span = NO_SPAN;
    return r.failed ? NULL : r.g;
}
