/* format_expr.c - the canonical text of expressions and of everything in parentheses.
 *
 * In:  expression nodes.   Out: tokens in Format.code.
 * The one idea: lines break where the author broke them and nowhere else; the formatter only
 * decides what a break looks like. Without a source text there are no breaks, which gives
 * ast_print_expr.
 */
#include "format.h"

static void put_string(Format *f, const Ast *e)
{
    if (f->text) {
        fmt_put(f, f->text + e->span.lo, e->span.hi - e->span.lo);
        return;
    }
    fmt_put(f, "\"", 1);
    for (const char *s = e->name; *s; s++) {
        if (*s == '"' || *s == '\\')
            fmt_put(f, "\\", 1);
        if (*s == '\n' || *s == '\t')
            fmt_put(f, *s == '\n' ? "\\n" : "\\t", 2);
        else
            fmt_put(f, s, 1);
    }
    fmt_put(f, "\"", 1);
}

/* A break in front of what continues an expression, where the author had one. */
static bool continue_line(Format *f, uint32_t lo, uint32_t hi)
{
    if (!fmt_broken(f, lo, hi))
        return false;
    fmt_flush(f, hi);
    fmt_newline(f, f->base + 2);
    return true;
}

static void put_operator(Format *f, const Ast *e)
{
    const Ast *a = e->kid[0], *b = e->kid[1];
    bool word = e->name[0] >= 'a' && e->name[0] <= 'z';
    bool tight = f->tight && !word && strchr("+-*/^", e->name[0]) && b->kind != AST_NEG;
    fmt_expr(f, a);
    bool broken = continue_line(f, a->span.hi, b->span.lo);
    fmt_token(f, e->name_span.lo, !tight && !broken, e->name);
    fmt_flush(f, b->span.lo);
    if (!tight)
        fmt_token(f, 0, true, "");
    fmt_expr(f, b);
}

static void put_range(Format *f, const Ast *e)
{
    bool tight = f->tight;
    f->tight = true;
    fmt_expr(f, e->kid[0]);
    continue_line(f, e->kid[0]->span.hi, e->kid[1]->span.lo);
    fmt_token(f, e->kid[1]->span.lo, false, "..");
    fmt_expr(f, e->kid[1]);
    f->tight = tight;
}

static void put_cond(Format *f, const Ast *e)
{
    fmt_token(f, e->span.lo, false, "if ");
    fmt_expr(f, e->kid[0]);
    static const char *const words[] = {"then", "else"};
    for (int i = 0; i < 2; i++) {
        const Ast *before = e->kid[i], *after = e->kid[i + 1];
        continue_line(f, before->span.hi, after->span.lo);
        fmt_token(f, after->span.lo, true, words[i]);
        fmt_put(f, " ", 1);
        fmt_expr(f, after);
    }
}

static void put_comprehension(Format *f, const Ast *e)
{
    uint32_t indent = f->indent, base = f->base;
    bool block = fmt_broken(f, e->span.lo, e->kid[0]->span.lo);
    fmt_token(f, e->span.lo, false, "[");
    if (block) {
        f->base = indent; /* so that every part stands two further in */
        fmt_trailing(f, e->span.lo + 1, e->kid[0]->span.lo);
        fmt_newline(f, indent + 2);
    }
    fmt_expr(f, e->kid[0]);
    const Ast *before = e->kid[0], *iters = e->kid[1];
    for (uint32_t i = 0; i < iters->n; i++) {
        const Ast *it = iters->kid[i];
        if (i)
            fmt_put(f, ",", 1);
        continue_line(f, before->span.hi, it->span.lo);
        if (i == 0)
            fmt_token(f, it->span.lo, true, "for");
        fmt_token(f, it->span.lo, true, it->name);
        fmt_put(f, " in ", 4);
        fmt_expr(f, it->kid[0]);
        before = it;
    }
    if (e->kid[2]) {
        continue_line(f, before->span.hi, e->kid[2]->span.lo);
        fmt_token(f, e->kid[2]->span.lo, true, "if ");
        fmt_expr(f, e->kid[2]);
    }
    if (block) {
        fmt_flush(f, e->span.hi - 1);
        fmt_newline(f, indent);
    }
    f->base = base;
    fmt_token(f, e->span.hi - 1, false, "]");
}

/* ---- matrices ---- */

static bool is_atom(const Ast *e)
{
    switch (e->kind) {
    case AST_NUM:
    case AST_BOOL:
    case AST_ID: return true;
    case AST_NEG: return e->kid[0]->kind == AST_NUM || e->kid[0]->kind == AST_ID;
    default: return false;
    }
}

static uint32_t atom_width(const Ast *e)
{
    if (e->kind == AST_NEG)
        return 1 + atom_width(e->kid[0]);
    return (uint32_t)strlen(e->name);
}

/* The width of each column when this is a list of equally long rows of plain values, one row a
 * line; else NULL. */
static uint32_t *matrix_columns(Format *f, const Ast *list)
{
    if (list->kind != AST_LIST || list->n < 2 || !list->kid[0] || list->kid[0]->kind != AST_LIST)
        return NULL;
    uint32_t n = list->kid[0]->n;
    for (uint32_t i = 0; i < list->n; i++) {
        const Ast *row = list->kid[i];
        if (row->kind != AST_LIST || row->n != n || n == 0 || fmt_broken(f, row->span.lo, row->span.hi) ||
            (i && !fmt_broken(f, list->kid[i - 1]->span.hi, row->span.lo)))
            return NULL;
        for (uint32_t k = 0; k < n; k++)
            if (!is_atom(row->kid[k]))
                return NULL;
    }
    uint32_t *width = NEW_ARRAY(f->arena, uint32_t, n);
    for (uint32_t i = 0; i < list->n; i++)
        for (uint32_t k = 0; k < n; k++) {
            uint32_t w = atom_width(list->kid[i]->kid[k]);
            width[k] = w > width[k] ? w : width[k];
        }
    return width;
}

static void put_matrix_row(Format *f, const Ast *row, const uint32_t *width)
{
    fmt_token(f, row->span.lo, false, "[");
    for (uint32_t k = 0; k < row->n; k++) {
        if (k)
            fmt_put(f, ", ", 2);
        for (uint32_t w = atom_width(row->kid[k]); w < width[k]; w++)
            fmt_put(f, " ", 1);
        fmt_expr(f, row->kid[k]);
    }
    fmt_put(f, "]", 1);
}

/* ---- arguments, parameters, elements ---- */

static void put_parameter(Format *f, const Ast *par, bool own_line)
{
    fmt_token(f, par->name_span.lo, false, par->name);
    if (own_line)
        fmt_cell(f);
    fmt_token(f, par->kid[0]->span.lo, own_line, ":");
    fmt_put(f, " ", 1);
    fmt_expr(f, par->kid[0]);
    if (!par->kid[1])
        return;
    if (own_line)
        fmt_cell(f);
    fmt_token(f, par->kid[1]->span.lo, true, "= ");
    fmt_expr(f, par->kid[1]);
}

static void put_element(Format *f, const Ast *e, bool own_line)
{
    bool tight = f->tight;
    f->tight = false;
    switch (e->kind) {
    case AST_OFF:
        fmt_token(f, e->span.lo, false, "/- ");
        put_element(f, e->kid[0], false);
        break;
    case AST_NAMED:
        fmt_token(f, e->span.lo, false, e->name);
        if (own_line)
            fmt_cell(f);
        fmt_token(f, e->kid[0]->span.lo, true, "= ");
        fmt_expr(f, e->kid[0]);
        break;
    case AST_PAR: put_parameter(f, e, own_line); break;
    default: fmt_expr(f, e); break;
    }
    f->tight = tight;
}

static Run run_of(const Ast *e)
{
    return e->kind == AST_NAMED ? RUN_ARGUMENT : e->kind == AST_PAR ? RUN_PARAMETER : RUN_NONE;
}

/* Elements on lines of their own, as many on each as the author put there, a comma behind every
 * one (but not behind the last subscript). */
static void put_block(Format *f, const Ast *group, const uint32_t *width, bool comma)
{
    uint32_t indent = f->indent, base = f->base, prev = group->span.lo + 1, end = group->span.hi - 1;
    f->base = indent + 2;
    if (fmt_trailing(f, prev, group->n ? group->kid[0]->span.lo : end))
        prev = f->comments.v[f->next - 1].hi;
    bool starts = true;
    for (uint32_t i = 0; i < group->n; i++) {
        const Ast *e = group->kid[i], *after = i + 1 < group->n ? group->kid[i + 1] : NULL;
        uint32_t limit = after ? after->span.lo : end;
        if (starts) {
            fmt_newline(f, indent + 2);
            fmt_own_lines(f, e->span.lo, &prev, i == 0);
        }
        bool ends = !after || fmt_broken(f, e->span.hi, after->span.lo);
        size_t lines = f->lines.n;
        if (!starts)
            fmt_put(f, " ", 1);
        if (width)
            put_matrix_row(f, e, width);
        else
            put_element(f, e, starts && ends);
        if (after || comma)
            fmt_put(f, ",", 1);
        if (starts && ends && f->lines.n == lines)
            f->run = run_of(e);
        prev = e->span.hi;
        starts = ends;
        if (ends && fmt_trailing(f, e->span.hi, limit))
            prev = f->comments.v[f->next - 1].hi;
    }
    fmt_newline(f, indent + 2);
    while (f->next < f->comments.n && f->comments.v[f->next].lo < end)
        fmt_own_lines(f, f->comments.v[f->next].lo + 1, &prev, group->n == 0);
    fmt_newline(f, indent);
    f->base = base;
}

/* Rows that hang under the first one: [[0, 1],
 *                                      [1, 0]] */
static void put_hanging(Format *f, const Ast *group, const uint32_t *width)
{
    uint32_t column = fmt_column(f), base = f->base;
    f->base = column - 2; /* a comment between two rows goes on in their column */
    for (uint32_t i = 0; i < group->n; i++) {
        const Ast *e = group->kid[i];
        if (i) {
            fmt_put(f, ",", 1);
            if (fmt_broken(f, group->kid[i - 1]->span.hi, e->span.lo)) {
                fmt_trailing(f, group->kid[i - 1]->span.hi, e->span.lo);
                fmt_flush(f, e->span.lo);
                fmt_newline(f, column);
            } else {
                fmt_put(f, " ", 1);
            }
        }
        if (width)
            put_matrix_row(f, e, width);
        else
            put_element(f, e, false);
    }
    fmt_flush(f, group->span.hi - 1);
    f->base = base;
}

static void put_inline(Format *f, const Ast *group)
{
    for (uint32_t i = 0; i < group->n; i++) {
        if (i)
            fmt_put(f, ", ", 2);
        put_element(f, group->kid[i], false);
    }
}

void fmt_group(Format *f, const Ast *group, const char *brackets)
{
    char text[2] = {brackets[0], 0};
    bool subscript = brackets[1] == '|'; /* the grammar has no comma at its end */
    fmt_token(f, group->span.lo, false, text);
    uint32_t lo = group->span.lo + 1, end = group->span.hi - 1;
    bool first = group->n && fmt_broken(f, lo, group->kid[0]->span.lo), later = false;
    for (uint32_t i = 1; i < group->n && !later; i++)
        later = fmt_broken(f, group->kid[i - 1]->span.hi, group->kid[i]->span.lo);
    uint32_t last = group->n ? group->kid[group->n - 1]->span.hi : lo;
    bool commented = f->text && fmt_comment_in(f, last, end);
    const uint32_t *width = first || later ? matrix_columns(f, group) : NULL;
    if (first || commented || (later && text[0] == '('))
        put_block(f, group, width, !subscript);
    else if (later)
        put_hanging(f, group, width);
    else
        put_inline(f, group);
    text[0] = brackets[subscript ? 2 : 1];
    fmt_token(f, end, false, text);
}

/* ---- expressions ---- */

void fmt_path(Format *f, const Ast *path)
{
    fmt_token(f, path->span.lo, false, path->name);
    for (uint32_t i = 0; i < path->n; i++) {
        const Ast *part = path->kid[i];
        if (part->kind == AST_DOT) {
            fmt_token(f, part->span.lo, false, ".");
            fmt_token(f, part->name_span.lo, false, part->name);
        } else {
            fmt_token(f, part->span.lo, false, "[");
            fmt_expr(f, part->kid[0]);
            fmt_token(f, part->span.hi - 1, false, "]");
        }
    }
}

static void put_parenthesised(Format *f, const Ast *e)
{
    bool tight = f->tight;
    f->tight = false;
    fmt_token(f, e->span.lo, false, "(");
    fmt_expr(f, e->kid[0]);
    fmt_token(f, e->span.hi - 1, false, ")");
    f->tight = tight;
}

void fmt_expr(Format *f, const Ast *e)
{
    switch (e->kind) {
    case AST_OP: put_operator(f, e); return;
    case AST_RANGE: put_range(f, e); return;
    case AST_COND: put_cond(f, e); return;
    case AST_COMP: put_comprehension(f, e); return;
    case AST_LIST: fmt_group(f, e, "[]"); return;
    case AST_PAREN: put_parenthesised(f, e); return;
    case AST_PATH: fmt_path(f, e); return;
    case AST_DOTS: fmt_token(f, e->span.lo, false, ".."); return;
    case AST_STAR: fmt_token(f, e->span.lo, false, "*"); return;
    case AST_STR:
        fmt_token(f, e->span.lo, false, "");
        put_string(f, e);
        return;
    case AST_NOT:
    case AST_NEG:
        fmt_token(f, e->span.lo, false, e->kind == AST_NOT ? "not " : "-");
        fmt_expr(f, e->kid[0]);
        return;
    case AST_CALL:
        fmt_expr(f, e->kid[0]);
        fmt_group(f, e->kid[1], "()");
        return;
    case AST_INDEX:
        fmt_expr(f, e->kid[0]);
        fmt_group(f, e->kid[1], "[|]");
        return;
    case AST_FIELD:
        fmt_expr(f, e->kid[0]);
        fmt_token(f, e->name_span.lo, false, ".");
        fmt_token(f, e->name_span.lo, false, e->name);
        return;
    default: /* NUM, QTY, BOOL, ID */ fmt_token(f, e->span.lo, false, e->name ? e->name : ""); return;
    }
}

void ast_print_expr(Buf *out, const Ast *expr)
{
    Format f = {.arena = out->arena, .code = *out};
    f.line_lo = out->n;
    if (expr->kind == AST_ARGS)
        fmt_group(&f, expr, "()");
    else
        fmt_expr(&f, expr);
    *out = f.code;
}
