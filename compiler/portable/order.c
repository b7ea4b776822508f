/* order.c - see order.h. */
#include "order.h"

#include <math.h>

int64_t order_windows(int64_t count, int64_t context)
{
    return count < context ? 0 : count < 2 * context ? 1 : count / context - 1;
}

void order_add(Order *o, size_t file, int64_t first, int64_t count)
{
    int64_t windows = order_windows(count, o->context);
    o->tokens += count;
    if (windows)
        o->range[o->n++] = (Stretch){file, first, count, windows, o->windows};
    else
        o->unused++;
    o->windows += windows;
}

void order_divide(Order *train, Order *kept, const int64_t *count, size_t n, double val)
{
    int64_t all = 0, before = 0;
    for (size_t i = 0; i < n; i++)
        all += count[i];
    int64_t keep = all - (int64_t)((double)all * val);
    for (size_t i = 0; i < n; i++) {
        int64_t here = keep - before < count[i] ? keep - before : count[i];
        if (here < 0)
            here = 0;
        if (here > 0)
            order_add(train, i, 0, here);
        if (here < count[i])
            order_add(kept, i, here, count[i] - here);
        before += count[i];
    }
}

/* Where the first window may begin. */
static int64_t offsets_of(int64_t count, int64_t context)
{
    int64_t used = order_windows(count, context) * context;
    int64_t room = count - used; /* one token more, for the last label */
    return room > context ? context : room > 0 ? room : 1;
}

uint64_t mix64(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

uint64_t permute_index(uint64_t key, uint64_t n, uint64_t i)
{
    if (n < 2)
        return 0;
    int half = 1; /* bits of each side; 4^half >= n */
    while (half < 32 && (uint64_t)1 << 2 * half < n)
        half++;
    uint64_t mask = ((uint64_t)1 << half) - 1;
    do { /* walk along the cycle until we are inside again; fewer than 4 rounds on average */
        uint64_t left = i >> half, right = i & mask;
        for (uint64_t round = 0; round < 6; round++) {
            uint64_t next = left ^ (mix64(mix64(right + round * 0x9e3779b97f4a7c15u) ^ key) & mask);
            left = right;
            right = next;
        }
        i = left << half | right;
    } while (i >= n);
    return i;
}

static size_t range_of(const Stretch *range, size_t n, int64_t window)
{
    size_t lo = 0, hi = n - 1;
    while (lo < hi) {
        size_t mid = lo + (hi - lo + 1) / 2;
        if (range[mid].windows_before <= window)
            lo = mid;
        else
            hi = mid - 1;
    }
    return lo;
}

static uint64_t key_of(uint64_t seed, uint64_t epoch) { return mix64(seed ^ mix64(epoch + 0x9e3779b97f4a7c15u)); }

int64_t order_row(int64_t rows, uint64_t seed, int64_t ordinal)
{
    uint64_t key = key_of(seed, (uint64_t)(ordinal / rows));
    return (int64_t)permute_index(key, (uint64_t)rows, (uint64_t)(ordinal % rows));
}

int64_t order_spread(int64_t all, int64_t i, int64_t of)
{
    return i * (all / of) + i * (all % of) / of; /* i * all / of without overflow */
}

Window order_window(const Order *o, uint64_t seed, int64_t ordinal)
{
    uint64_t epoch = (uint64_t)(ordinal / o->windows), i = (uint64_t)(ordinal % o->windows);
    uint64_t key = key_of(seed, epoch);
    int64_t w = (int64_t)permute_index(key, (uint64_t)o->windows, i);
    size_t r = range_of(o->range, o->n, w);
    const Stretch *range = &o->range[r];
    uint64_t offsets = (uint64_t)offsets_of(range->count, o->context);
    int64_t offset = (int64_t)(mix64(key ^ mix64(r + 1)) % offsets);
    return (Window){r, range->first + offset + (w - range->windows_before) * o->context};
}

int64_t order_steps(double epochs, int64_t windows, int64_t batch)
{
    return (int64_t)ceil(epochs * (double)windows / (double)batch);
}

int64_t order_fixed_windows(const Order *o)
{
    int64_t all = 0;
    for (size_t i = 0; i < o->n; i++)
        all += o->range[i].count / o->context;
    return all;
}

Window order_fixed(const Order *o, int64_t i, int64_t of)
{
    int64_t w = order_spread(order_fixed_windows(o), i, of);
    for (size_t r = 0; r < o->n; r++) {
        int64_t here = o->range[r].count / o->context;
        if (w < here)
            return (Window){r, o->range[r].first + w * o->context};
        w -= here;
    }
    return (Window){0, o->range[0].first};
}
