/* dim.c - extents and shapes.
 *
 * In:  monomials n * B^b * T^t.     Out: their products, quotients, values and text.
 * The one idea: an extent is one monomial, so that every rule about shapes is decided exactly
 * before the number of sequences and of positions is known. An empty extent is 0 and has no
 * powers.
 */
#include "ir.h"

static const int64_t LARGEST = (int64_t)1 << 53;

bool dim_mul(Dim x, Dim y, Dim *out)
{
    if (x.n == 0 || y.n == 0) {
        *out = DIM(0);
        return true;
    }
    int64_t n;
    if (!mul_i64(x.n, y.n, &n) || n > LARGEST || x.b + y.b > 15 || x.t + y.t > 15)
        return false;
    *out = (Dim){n, (uint8_t)(x.b + y.b), (uint8_t)(x.t + y.t)};
    return true;
}

bool dim_div(Dim x, Dim y, Dim *out)
{
    if (y.n == 0)
        return false;
    if (x.n == 0) {
        *out = DIM(0);
        return true;
    }
    if (x.n % y.n != 0 || x.b < y.b || x.t < y.t)
        return false;
    *out = (Dim){x.n / y.n, (uint8_t)(x.b - y.b), (uint8_t)(x.t - y.t)};
    return true;
}

int64_t dim_at(Dim x, int64_t B, int64_t T)
{
    int64_t n = x.n;
    for (int i = 0; i < x.b; i++)
        if (!mul_i64(n, B, &n))
            return -1;
    for (int i = 0; i < x.t; i++)
        if (!mul_i64(n, T, &n))
            return -1;
    return n;
}

static void power_print(Buf *out, const char *symbol, int power, bool *first)
{
    if (!power)
        return;
    buf_printf(out, "%s%s", *first ? "" : "*", symbol);
    if (power > 1)
        buf_printf(out, "^%d", power);
    *first = false;
}

void dim_print(Buf *out, Dim x)
{
    bool first = true;
    if (x.n != 1 || dim_static(x)) {
        buf_printf(out, "%lld", (long long)x.n);
        first = false;
    }
    power_print(out, "B", x.b, &first);
    power_print(out, "T", x.t, &first);
}

bool shape_eq(const Shape *a, const Shape *b)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (!dim_eq(a->d[i], b->d[i]))
            return false;
    return true;
}

bool shape_size(const Shape *s, Dim *out)
{
    int64_t n = 1;
    int b = 0, t = 0;
    for (int i = 0; i < s->rank; i++) {
        if (!mul_i64(n, s->d[i].n, &n) || n > LARGEST)
            return false;
        b = n ? b + s->d[i].b : 0;
        t = n ? t + s->d[i].t : 0;
    }
    *out = (Dim){n, (uint8_t)b, (uint8_t)t};
    return b <= 15 && t <= 15;
}

bool shape_broadcast(const Shape *a, const Shape *b, Shape *out)
{
    Shape s = {.rank = a->rank > b->rank ? a->rank : b->rank};
    for (int i = 0; i < s.rank; i++) {
        int ia = i - (s.rank - a->rank), ib = i - (s.rank - b->rank);
        Dim x = ia < 0 ? DIM(1) : a->d[ia], y = ib < 0 ? DIM(1) : b->d[ib];
        if (!dim_eq(x, y) && !dim_eq(x, DIM(1)) && !dim_eq(y, DIM(1)))
            return false;
        s.d[i] = dim_eq(x, DIM(1)) ? y : x;
    }
    *out = s;
    return true;
}

void shape_print(Buf *out, const Shape *s)
{
    buf_putc(out, '[');
    for (int i = 0; i < s->rank; i++) {
        if (i)
            buf_puts(out, ", ");
        dim_print(out, s->d[i]);
    }
    buf_putc(out, ']');
}

int64_t coordinates(const Shape *s)
{
    int64_t n = 1;
    int positions = !s->rank || dim_static(s->d[0]) ? 0 : s->d[0].t ? 1 : 2;
    for (int k = positions; k < s->rank; k++)
        if (dim_static(s->d[k]))
            n *= s->d[k].n;
    return n;
}
