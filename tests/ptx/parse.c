/* parse.c - see ptx.h: from the text of a module to functions. */
#include "parse.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum SymbolKind { SYM_REGISTERS, SYM_PARAMETER, SYM_SHARED, SYM_LOCAL, SYM_PASSED } SymbolKind;
typedef struct Symbol {
    const char *name;
    uint32_t length, at, bytes, align, n; /* n: registers name0 ...; 0: one, of this name */
    SymbolKind kind;
    bool outside; /* extern: of the size that the launch says */
} Symbol;
typedef struct Label {
    const char *name;
    uint32_t length, at;
} Label;

/* A function that is called: its body is read again at every call, in the place of the call. */
enum { PASSED = 48 };
typedef struct Called {
    const char *name, *body;
    uint32_t length, line, n;
    Symbol passed[PASSED]; /* the result first, when there is one */
    bool result;
} Called;

typedef struct Parser {
    const char *p;
    uint32_t line;
    char *why;
    jmp_buf out;
    PtxModule *m;
    Function *f;
    Symbol *symbol;
    Label *label, *branch; /* of the scopes that are open; branches without a place yet */
    Arg *arg;
    Opcode *opcode;
    Called *called;
    uint32_t depth; /* of calls */
    size_t n_called, room_called;
    size_t n_symbol, n_label, n_branch, n_arg, n_opcode;
    size_t room_symbol, room_label, room_branch, room_arg, room_opcode;
    size_t room_code, room_list, room_constant, room_function, room_parameter;
} Parser;

/* Room for one more at the end of an array. */
#define PUSH(array, n, room)                                                                                           \
    ((n) == (room) ? (void)((room) = (room) ? 2 * (room) : 64, (array) = realloc((array), (room) * sizeof *(array)))   \
                   : (void)0,                                                                                          \
     memset(&(array)[n], 0, sizeof *(array)), &(array)[(n)++])

__attribute__((format(printf, 2, 3))) _Noreturn static void wrong(Parser *p, const char *what, ...)
{
    va_list rest;
    int n = snprintf(p->why, PTX_WHY, "PTX line %u: ", p->line);
    va_start(rest, what);
    vsnprintf(p->why + n, PTX_WHY - (size_t)n, what, rest);
    va_end(rest);
    longjmp(p->out, 1);
}

/* ---- words ---- */

static void skip(Parser *p)
{
    for (;; p->p++) {
        if (p->p[0] == '/' && p->p[1] == '/')
            p->p += strcspn(p->p, "\n");
        if (*p->p == '\n')
            p->line++;
        else if (*p->p != ' ' && *p->p != '\t' && *p->p != '\r')
            return;
    }
}

static bool is(Parser *p, const char *word)
{
    skip(p);
    size_t n = strlen(word);
    if (strncmp(p->p, word, n) != 0)
        return false;
    p->p += n;
    return true;
}

static void want(Parser *p, const char *word)
{
    if (!is(p, word))
        wrong(p, "`%s` is missing before `%.20s`", word, p->p);
}

static bool in_name(char c) { return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%' || c == '.'; }

/* A name, an opcode or a directive: its length is left in *n. */
static const char *word(Parser *p, uint32_t *n)
{
    skip(p);
    const char *from = p->p;
    while (in_name(*p->p) || (p->p[0] == ':' && p->p[1] == ':' && (p->p += 1)))
        p->p++;
    *n = (uint32_t)(p->p - from);
    if (!*n)
        wrong(p, "a word is missing before `%.20s`", p->p);
    return from;
}

static bool same(const char *a, uint32_t n, const char *b) { return strlen(b) == n && !memcmp(a, b, n); }

static uint64_t whole(Parser *p)
{
    char *end;
    skip(p);
    bool minus = *p->p == '-';
    const char *from = p->p + minus;
    uint64_t x;
    if (from[0] == '0' && (from[1] == 'f' || from[1] == 'd')) /* the bits of a float */
        x = strtoull(from + 2, &end, 16);
    else
        x = strtoull(from, &end, 0);
    if (end == from)
        wrong(p, "a number is missing before `%.20s`", p->p);
    p->p = end + (*end == 'U');
    return minus ? -x : x;
}

/* ---- names ---- */

static const Symbol *find(const Parser *p, const char *name, uint32_t n, uint32_t *number)
{
    uint32_t digits = 0;
    while (digits < n && isdigit((unsigned char)name[n - digits - 1]))
        digits++;
    uint64_t k = strtoull(name + n - digits, NULL, 10);
    *number = 0;
    for (size_t i = p->n_symbol; i-- > 0;) {
        const Symbol *s = &p->symbol[i];
        if (!s->n && s->length == n && !memcmp(s->name, name, n))
            return s;
        if (s->n && digits && s->length == n - digits && !memcmp(s->name, name, n - digits) && k < s->n) {
            *number = (uint32_t)k;
            return s;
        }
    }
    return NULL;
}

/* Room in the file of a warp: 32 lanes of so many bytes, or a word for a predicate. */
static uint32_t file_room(Function *f, uint32_t bytes)
{
    uint32_t at = bytes ? (f->file + 63) / 64 * 64 : (f->file + 3) / 4 * 4;
    f->file = at + (bytes ? bytes * LANES : 4);
    return at;
}

static uint32_t lane_bytes(uint32_t type_bytes) { return type_bytes == 0 ? 0 : type_bytes <= 4 ? 4 : 8; }

static uint32_t constant(Parser *p, uint64_t bits, uint32_t bytes)
{
    Function *f = p->f;
    bits = bytes == 4 ? (uint32_t)bits : bits;
    for (size_t i = 0; i < f->n_constant; i++)
        if (f->constant[i].bits == bits && f->constant[i].bytes == bytes)
            return f->constant[i].at;
    Constant *c = PUSH(f->constant, f->n_constant, p->room_constant);
    *c = (Constant){bits, file_room(f, bytes), bytes};
    return c->at;
}

static bool special(Parser *p, const char *name, uint32_t n, Arg *out)
{
    static const char *const names[SPECIALS] = {"%tid.x", "%ntid.x", "%ctaid.x", "%nctaid.x", "%laneid"};
    static const char *const always[][2] = {{"%tid.y", "0"},  {"%tid.z", "0"},  {"%ctaid.y", "0"}, {"%ctaid.z", "0"},
                                            {"%ntid.y", "1"}, {"%ntid.z", "1"}, {"WARP_SZ", "32"}};
    for (int i = 0; i < SPECIALS; i++)
        if (same(name, n, names[i])) {
            if (!p->f->special[i])
                p->f->special[i] = file_room(p->f, 4);
            *out = (Arg){.kind = ARG_REGISTER, .at = p->f->special[i], .bytes = 4, .second = -1};
            return true;
        }
    for (size_t i = 0; i < sizeof always / sizeof always[0]; i++)
        if (same(name, n, always[i][0])) {
            *out = (Arg){.kind = ARG_NUMBER, .number = strtoull(always[i][1], NULL, 10), .second = -1};
            return true;
        }
    return false;
}

/* A register, or a variable as the number that its address is. */
static Arg named(Parser *p, const char *name, uint32_t n)
{
    Arg a = {.second = -1};
    uint32_t k;
    if (special(p, name, n, &a))
        return a;
    const Symbol *s = find(p, name, n, &k);
    if (!s)
        return (Arg){.kind = ARG_NAME, .name = name, .length = n, .second = -1};
    if (s->kind == SYM_REGISTERS) {
        a.kind = ARG_REGISTER;
        a.bytes = s->bytes;
        a.at = s->at + k * (s->bytes ? s->bytes * LANES : 4);
        return a;
    }
    a.kind = ARG_NUMBER;
    a.number = s->at;
    a.passed = s->kind == SYM_PASSED;
    if (s->kind == SYM_SHARED && s->outside) { /* behind the block's own, aligned as it asks for and no better */
        if (!p->f->dynamic) {
            p->f->dynamic = (p->f->shared + s->align - 1) / s->align * s->align;
            p->f->dynamic += p->f->dynamic / s->align % 2 ? 0 : s->align;
        }
        a.number = p->f->dynamic;
    }
    return a;
}

/* ---- operands ---- */

static Arg operand(Parser *p);

static Arg list_of(Parser *p, const char *end)
{
    Arg some[160], a = {.kind = ARG_LIST, .second = -1};
    uint32_t n = 0;
    do {
        if (n == sizeof some / sizeof some[0])
            wrong(p, "a list is too long");
        some[n++] = operand(p);
    } while (is(p, ","));
    want(p, end);
    a.first = (uint32_t)p->n_arg;
    a.n = n;
    for (uint32_t i = 0; i < n; i++)
        *PUSH(p->arg, p->n_arg, p->room_arg) = some[i];
    return a;
}

static Arg address(Parser *p)
{
    Arg a = operand(p);
    if (a.kind == ARG_REGISTER) {
        a.based = true;
        a.number = 0;
    } else if (a.kind != ARG_NUMBER) {
        wrong(p, "an address of `%.*s`", (int)a.length, a.name ? a.name : "");
    }
    a.kind = ARG_ADDRESS;
    if (is(p, "+"))
        a.number += whole(p);
    if (is(p, ",")) {
        want(p, "{");
        Arg coordinates = list_of(p, "}");
        a.second = (int)p->n_arg;
        *PUSH(p->arg, p->n_arg, p->room_arg) = coordinates;
    }
    want(p, "]");
    return a;
}

static Arg operand(Parser *p)
{
    uint32_t n;
    if (is(p, "{"))
        return list_of(p, "}");
    if (is(p, "["))
        return address(p);
    if (*p->p == '-' || isdigit((unsigned char)*p->p))
        return (Arg){.kind = ARG_NUMBER, .number = whole(p), .second = -1};
    const char *name = word(p, &n);
    if (same(name, n, "_"))
        return (Arg){.kind = ARG_SINK, .second = -1};
    Arg a = named(p, name, n);
    if (is(p, "|")) {
        Arg second = operand(p);
        a.second = (int)p->n_arg;
        *PUSH(p->arg, p->n_arg, p->room_arg) = second;
    }
    return a;
}

/* ---- an instruction ---- */

static const Opcode *opcode(Parser *p, const char *text, uint32_t n, uint32_t operands)
{
    for (size_t i = 0; i < p->n_opcode; i++) {
        const Opcode *o = &p->opcode[i];
        if (o->length == n && o->operands == operands && !memcmp(o->text, text, n))
            return o;
    }
    uint64_t mods;
    const Row *row = ptx_row(text, n, operands, &mods);
    if (!row)
        wrong(p, "there is no row for `%.*s` of %u operands", (int)n, text, operands);
    Opcode *o = PUSH(p->opcode, p->n_opcode, p->room_opcode);
    *o = (Opcode){text, n, operands, row, mods};
    return o;
}

static uint32_t value(Parser *p, const Arg *a, uint32_t bytes)
{
    if (a->kind == ARG_NUMBER)
        return constant(p, bytes ? a->number : a->number ? ALL_LANES : 0, bytes);
    if (a->kind != ARG_REGISTER)
        wrong(p, "an operand is no register: `%.*s`", (int)a->length, a->name ? a->name : "");
    if (a->bytes != bytes)
        wrong(p, "an operand of %u bytes where %u are wanted", a->bytes, bytes);
    return a->at;
}

/* A list as offsets; of one operand that is no list, of that. */
static uint32_t values(Parser *p, const Arg *a, uint32_t bytes, uint32_t *n)
{
    const uint32_t first = (uint32_t)p->f->n_list;
    *n = a->kind == ARG_LIST ? a->n : 1;
    for (uint32_t i = 0; i < *n; i++) {
        const Arg one = a->kind == ARG_LIST ? p->arg[a->first + i] : *a;
        const uint32_t at = one.kind == ARG_SINK ? file_room(p->f, bytes) : value(p, &one, bytes);
        *PUSH(p->f->list, p->f->n_list, p->room_list) = at;
    }
    return first;
}

/* What is loaded may go to wider registers, and the lower parts of those be stored. */
static uint32_t register_bytes(const Parser *p, const Arg *a)
{
    const Arg *one = a->kind == ARG_LIST ? &p->arg[a->first] : a;
    return one->kind == ARG_REGISTER ? one->bytes : 0;
}

static void place(Parser *p, Inst *i, const Row *row, int k, const Arg *a)
{
    const uint32_t type = lane_bytes(i->bytes);
    uint32_t n, *at = &i->at[k];
    switch (row->form[k]) {
    case '=': *at = value(p, a, type); break;
    case 'w': *at = value(p, a, 2 * i->bytes <= 4 ? 4 : 8); break;
    case 'u': *at = value(p, a, 4); break;
    case 'q': *at = value(p, a, 8); break;
    case 'p': *at = value(p, a, 0); break;
    case '|':
        *at = value(p, a, type);
        i->shift = a->second >= 0 ? (int64_t)value(p, &p->arg[a->second], 0) : -1;
        break;
    case 'X':
        i->held = a->kind == ARG_LIST;
        *at = i->held ? values(p, a, 4, &n) : value(p, a, 8);
        break;
    case 'Y':
        *at = values(p, a, a->kind == ARG_LIST ? 4 : 8, &n);
        *(k ? &i->to : &i->n) = n;
        break;
    case 'V':
        i->to = k ? a->kind == ARG_LIST ? a->n : 1 : i->to;
        i->wide = type == 8 || (!strchr("m", row->name[0]) && register_bytes(p, a) == 8);
        *at = values(p, a, i->wide ? 8 : 4, &n);
        i->n = k == 0 || row->form[0] == 'A' ? n : i->n;
        break;
    case 'B':
        *at = values(p, a, 4, &n);
        i->n = k == 0 || row->form[0] == 'A' ? n : i->n;
        break;
    case 'M':
        if (a->kind != ARG_ADDRESS || a->second < 0)
            wrong(p, "an address with coordinates is missing");
        i->at[OPERANDS - 1] = values(p, &p->arg[a->second], 4, &n);
        if (n != PTX_RANK)
            wrong(p, "a box of %u coordinates", n);
        /* fall through */
    case 'A':
        if (a->kind != ARG_ADDRESS)
            wrong(p, "an address is missing");
        if (a->based && a->bytes != 4 && a->bytes != 8)
            wrong(p, "an address of a predicate");
        *at = a->based ? a->at : constant(p, 0, 8);
        i->shift = row->form[k] == 'M' || (int64_t)a->number ? (int64_t)a->number : i->shift;
        if (a->based && a->bytes == 4)
            i->mods |= 1ull << 63;
        if (a->passed) /* what is passed to a function lies in the thread's own memory */
            i->mods = (i->mods & ~(1ull << MOD_param)) | 1ull << MOD_local;
        break;
    case 'i':
        if (a->kind != ARG_NUMBER)
            wrong(p, "a number is missing");
        i->at[k] = (uint32_t)a->number;
        break;
    case '_':
        if (a->kind != ARG_SINK)
            wrong(p, "a state that somebody reads");
        break;
    default: wrong(p, "a row of `%s` has the form `%s`", row->name, row->form);
    }
}

/* A conversion may read a register that is wider than what it converts: of that, the lower half. */
static void narrow(Parser *p, Arg *a, int32_t guard, bool negated, uint32_t line)
{
    Run to_u32_of_64;
    Inst *i = PUSH(p->f->code, p->f->n_code, p->room_code);
    *i = (Inst){.run = to_u32_of_64, .kind = PLAIN, .guard = guard, .negated = negated, .line = line, .name = "cvt"};
    i->at[1] = a->at;
    i->at[0] = a->at = file_room(p->f, 4);
    a->bytes = 4;
}

static void instruction(Parser *p, const char *text, uint32_t n, int32_t guard, bool negated)
{
    const uint32_t line = p->line;
    Arg a[OPERANDS];
    uint32_t count = 0;
    p->n_arg = 0;
    if (!is(p, ";")) {
        do {
            if (count == OPERANDS)
                wrong(p, "too many operands");
            a[count++] = operand(p);
        } while (is(p, ","));
        want(p, ";");
    }
    const Opcode *o = opcode(p, text, n, count);
    const Row *row = o->row;
    if (!strncmp(row->name, "cvt", 3) && row->form[1] == 'u' && a[1].kind == ARG_REGISTER && a[1].bytes == 8)
        narrow(p, &a[1], guard, negated, line);
    Inst *i = PUSH(p->f->code, p->f->n_code, p->room_code);
    *i = (Inst){.run = row->run,
                .mods = o->mods,
                .kind = (uint8_t)row->kind,
                .guard = guard,
                .negated = negated,
                .line = line,
                .name = row->name,
                .bytes = (uint8_t)ptx_type_bytes(row->type),
                .bf16 = !strncmp(row->type, "bf16", 4),
                .sign = row->type[0] == 's'};
    if (row->kind == EXIT && p->depth && row->name[0] == 'r') { /* back to behind the call */
        i->kind = BRANCH;
        *PUSH(p->branch, p->n_branch, p->room_branch) = (Label){" back", 5, (uint32_t)p->f->n_code - 1};
        return;
    }
    if (row->kind == BRANCH) {
        Label *b = PUSH(p->branch, p->n_branch, p->room_branch);
        if (a[0].kind != ARG_NAME)
            wrong(p, "a branch to no label");
        *b = (Label){a[0].name, a[0].length, (uint32_t)p->f->n_code - 1};
        return;
    }
    for (uint32_t k = 0; k < count; k++)
        place(p, i, row, (int)k, &a[k]);
    if (strchr(row->form, 'V') && i->bytes < 4 && !HAS(i, global) && !HAS(i, param))
        p->f->grain = i->bytes < p->f->grain ? i->bytes : p->f->grain;
}

/* ---- declarations ---- */

static uint32_t type_of(Parser *p)
{
    uint32_t n;
    const char *t = word(p, &n);
    char type[16];
    if (n < 2 || n >= sizeof type || *t != '.')
        wrong(p, "a type is missing before `%.20s`", t);
    memcpy(type, t + 1, n - 1);
    type[n - 1] = 0;
    return ptx_type_bytes(type);
}

static void registers(Parser *p)
{
    const uint32_t bytes = lane_bytes(type_of(p));
    do {
        Symbol *s = PUSH(p->symbol, p->n_symbol, p->room_symbol);
        s->kind = SYM_REGISTERS;
        s->bytes = bytes;
        s->name = word(p, &s->length);
        if (is(p, "<")) {
            s->n = (uint32_t)whole(p);
            want(p, ">");
        }
        s->at = file_room(p->f, bytes);
        for (uint32_t i = 1; i < s->n; i++)
            file_room(p->f, bytes);
    } while (is(p, ","));
    want(p, ";");
}

static Symbol *variable(Parser *p, SymbolKind kind)
{
    uint32_t align = 0;
    if (is(p, ".align"))
        align = (uint32_t)whole(p);
    const uint32_t bytes = type_of(p);
    Symbol *s = PUSH(p->symbol, p->n_symbol, p->room_symbol);
    s->kind = kind;
    s->bytes = bytes;
    s->align = align ? align : bytes;
    s->name = word(p, &s->length);
    if (is(p, "[")) {
        s->bytes = is(p, "]") ? 0 : (uint32_t)whole(p) * bytes;
        if (s->bytes)
            want(p, "]");
        s->outside = !s->bytes;
    }
    return s;
}

static void set_apart(Symbol *s, uint32_t *end)
{
    s->at = (*end + s->align - 1) / s->align * s->align;
    *end = s->at + s->bytes;
}

static void parameters(Parser *p)
{
    Function *f = p->f;
    want(p, "(");
    p->room_parameter = 0;
    if (is(p, ")"))
        return;
    do {
        want(p, ".param");
        Symbol *s = variable(p, SYM_PARAMETER);
        set_apart(s, &f->parameter_bytes);
        Parameter *x = PUSH(f->parameter, f->n_parameter, p->room_parameter);
        *x = (Parameter){s->name, s->at, s->bytes};
    } while (is(p, ","));
    want(p, ")");
}

/* ---- bodies ---- */

static void body(Parser *p);

/* At the end of a scope its labels are known; branches to others wait for the scope around it. */
static void resolve(Parser *p, size_t labels, size_t branches)
{
    size_t kept = branches;
    for (size_t b = branches; b < p->n_branch; b++) {
        const Label *from = &p->branch[b];
        size_t l = labels;
        while (l < p->n_label &&
               (p->label[l].length != from->length || memcmp(p->label[l].name, from->name, from->length) != 0))
            l++;
        if (l == p->n_label)
            p->branch[kept++] = *from;
        else
            p->f->code[from->at].to = p->label[l].at;
    }
    p->n_branch = kept;
    p->n_label = labels;
}

/* One of the lists of a call: names of what is passed. */
static void pass(Parser *p, const Called *c, uint32_t *k)
{
    while (!is(p, ")")) {
        uint32_t n, number;
        const char *name = word(p, &n);
        const Symbol *from = find(p, name, n, &number);
        if (!from || from->kind != SYM_PASSED || *k == c->n || from->bytes != c->passed[*k].bytes)
            wrong(p, "something else is passed than `%.*s` takes", (int)c->length, c->name);
        const uint32_t at = from->at;
        Symbol *s = PUSH(p->symbol, p->n_symbol, p->room_symbol);
        *s = c->passed[(*k)++];
        s->at = at;
        is(p, ",");
    }
}

/* The name of a function stands between what it gives and what it takes. */
static const Called *called(Parser *p)
{
    uint32_t n;
    const char *at = p->p, *name;
    if (is(p, "("))
        p->p += strcspn(p->p, ")") + 1;
    is(p, ",");
    name = word(p, &n);
    p->p = at;
    for (size_t i = 0; i < p->n_called; i++)
        if (p->called[i].length == n && !memcmp(p->called[i].name, name, n))
            return &p->called[i];
    wrong(p, "a call of `%.*s`", (int)n, name);
}

static void call(Parser *p)
{
    enum { DEEP = 8 };
    const size_t symbols = p->n_symbol, labels = p->n_label, branches = p->n_branch;
    const Called *c = called(p);
    uint32_t n, k = 0;
    if (c->result) {
        want(p, "(");
        pass(p, c, &k);
        want(p, ",");
    }
    word(p, &n);
    if (is(p, ",")) {
        want(p, "(");
        pass(p, c, &k);
    }
    want(p, ";");
    if (k != c->n || ++p->depth > DEEP)
        wrong(p, "a call of `%.*s` passes %u, or calls itself", (int)c->length, c->name, k);
    const char *behind = p->p;
    const uint32_t line = p->line;
    p->p = c->body;
    p->line = c->line;
    body(p);
    *PUSH(p->label, p->n_label, p->room_label) = (Label){" back", 5, (uint32_t)p->f->n_code};
    resolve(p, labels, branches);
    p->depth--;
    p->n_symbol = symbols;
    p->p = behind;
    p->line = line;
}

static void guarded(Parser *p)
{
    uint32_t n;
    const bool negated = is(p, "!");
    const char *name = word(p, &n);
    const Arg a = named(p, name, n);
    if (a.kind != ARG_REGISTER || a.bytes != 0)
        wrong(p, "a guard that is no predicate");
    name = word(p, &n);
    instruction(p, name, n, (int32_t)a.at, negated);
}

static void statement(Parser *p)
{
    uint32_t n;
    if (is(p, "@")) {
        guarded(p);
        return;
    }
    const char *name = word(p, &n);
    if (same(name, n, ".reg")) {
        registers(p);
    } else if (same(name, n, ".shared") || same(name, n, ".local")) {
        const bool shared = name[1] == 's';
        Symbol *s = variable(p, shared ? SYM_SHARED : SYM_LOCAL);
        if (s->outside || (shared && (p->f->dynamic || p->depth)))
            wrong(p, "a variable without a size, behind the first use of what has none, or a called function's");
        set_apart(s, shared ? &p->f->shared : &p->f->local);
        want(p, ";");
    } else if (same(name, n, ".param")) {
        set_apart(variable(p, SYM_PASSED), &p->f->local);
        want(p, ";");
    } else if (same(name, n, "call.uni") || same(name, n, "call")) {
        call(p);
    } else if (same(name, n, ".pragma")) {
        p->p += strcspn(p->p, ";");
        want(p, ";");
    } else if (p->p[0] == ':') {
        p->p++;
        *PUSH(p->label, p->n_label, p->room_label) = (Label){name, n, (uint32_t)p->f->n_code};
    } else {
        instruction(p, name, n, -1, false);
    }
}

static void body(Parser *p)
{
    const size_t symbols = p->n_symbol, labels = p->n_label, branches = p->n_branch;
    while (!is(p, "}")) {
        if (!*p->p)
            wrong(p, "the text is cut off");
        if (is(p, "{"))
            body(p);
        else
            statement(p);
    }
    resolve(p, labels, branches);
    p->n_symbol = symbols;
}

static void entry(Parser *p)
{
    uint32_t n;
    Function *f = PUSH(p->m->function, p->m->n, p->room_function);
    const size_t symbols = p->n_symbol;
    p->f = f;
    p->room_code = p->room_list = p->room_constant = 0;
    *f = (Function){.file = 64, .shared = EMU_SHARED_OWN, .grain = 4, .blocks = 1};
    const char *name = word(p, &n);
    f->name = strndup(name, n);
    for (size_t i = 0; i < symbols; i++)
        if (p->symbol[i].kind == SYM_SHARED && !p->symbol[i].outside)
            set_apart(&p->symbol[i], &f->shared);
    parameters(p);
    while (!is(p, "{")) {
        name = word(p, &n);
        uint64_t x = whole(p);
        if (same(name, n, ".maxntid") || same(name, n, ".reqntid")) {
            f->threads = (int)x;
            while (is(p, ","))
                whole(p);
        } else if (same(name, n, ".minnctapersm")) {
            f->blocks = (int)x;
        } else {
            wrong(p, "`%.*s`", (int)n, name);
        }
    }
    body(p);
    if (p->n_branch)
        wrong(p, "there is no label `%.*s`", (int)p->branch[0].length, p->branch[0].name);
    Inst *end = PUSH(f->code, f->n_code, p->room_code); /* a label may stand at the end */
    *end = (Inst){.kind = EXIT, .guard = -1, .line = p->line, .name = "the end"};
    for (size_t i = 0; i < f->n_code; i++)
        if (f->code[i].kind == BRANCH)
            f->code[f->code[i].to].leads = true;
    p->n_symbol = symbols;
}

/* The head of a function; its body is skipped. */
static void function(Parser *p, bool keep)
{
    Called c = {0};
    const size_t symbols = p->n_symbol;
    c.result = is(p, "(");
    if (c.result) {
        want(p, ".param");
        c.passed[c.n++] = *variable(p, SYM_PASSED);
        want(p, ")");
    }
    c.name = word(p, &c.length);
    if (is(p, "(") && !is(p, ")")) {
        do {
            want(p, ".param");
            if (c.n == PASSED)
                wrong(p, "a function takes too much");
            c.passed[c.n++] = *variable(p, SYM_PASSED);
        } while (is(p, ","));
        want(p, ")");
    }
    p->n_symbol = symbols;
    if (is(p, ";")) /* it comes later */
        return;
    want(p, "{");
    c.body = p->p;
    c.line = p->line;
    if (keep)
        *PUSH(p->called, p->n_called, p->room_called) = c;
    for (int open = 1; open > 0; p->p++) {
        if (!*p->p)
            wrong(p, "the text is cut off");
        open += (*p->p == '{') - (*p->p == '}');
        p->line += *p->p == '\n';
    }
}

/* Functions may stand behind what calls them. */
static void functions(Parser *p)
{
    const char *begin = p->p;
    for (const char *at = begin; (at = strstr(at, "\n.func ")); at++) {
        p->line = 2;
        for (const char *q = begin; q < at; q++)
            p->line += *q == '\n';
        p->p = at + 7;
        function(p, true);
    }
    p->p = begin;
    p->line = 1;
}

static void module(Parser *p)
{
    functions(p);
    for (skip(p); *p->p; skip(p)) {
        if (is(p, ".version") || is(p, ".target") || is(p, ".address_size")) {
            p->p += strcspn(p->p, "\n");
        } else if (is(p, ".extern .shared")) {
            variable(p, SYM_SHARED);
            want(p, ";");
        } else if (is(p, ".shared")) { /* of every kernel of the module */
            variable(p, SYM_SHARED);
            want(p, ";");
        } else if (is(p, ".func")) {
            function(p, false);
        } else if (is(p, ".visible .entry")) {
            entry(p);
        } else {
            wrong(p, "`%.30s`", p->p);
        }
    }
}

PtxModule *ptx_module(const char *text, char why[PTX_WHY])
{
    Parser p = {.line = 1, .why = why};
    p.m = calloc(1, sizeof *p.m);
    p.m->text = strdup(text);
    p.p = p.m->text;
    PtxModule *volatile m = p.m;
    if (setjmp(p.out)) {
        ptx_free(m);
        m = NULL;
    } else {
        module(&p);
    }
    free(p.symbol);
    free(p.label);
    free(p.branch);
    free(p.arg);
    free(p.opcode);
    free(p.called);
    return m;
}

void ptx_free(PtxModule *m)
{
    for (size_t i = 0; m && i < m->n; i++) {
        Function *f = &m->function[i];
        free(f->name);
        free(f->code);
        free(f->list);
        free(f->constant);
        free(f->parameter);
    }
    if (m)
        free(m->function);
    free(m ? m->text : NULL);
    free(m);
}
