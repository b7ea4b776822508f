/* memory.c - the memory of the device, and pinned memory of the host.
 *
 * The one idea: an address of the device is an address of this process, since kernels follow pointers that lie in
 * memory, where nothing could translate them; but its pages can be reached only while work runs (in the orders in which
 * it runs seldom: to change that for each launch would take longer than most of them). Allocations end at
 * the end of a page behind which there is nothing; addresses are given out once, so what is freed stays unreachable.
 * The bytes between an allocation and the ends of its pages carry a mark.
 */
#define _GNU_SOURCE
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, ALIGN = 256, POISON = 0xff, MARK = 0xa5 };
#define RANGE         ((uint64_t)1 << 40)
#define POISONED      ((size_t)1 << 30) /* of larger allocations only so much at each end */
#define CONTEXT_BYTES ((size_t)300 << 20)
#define GRAIN         ((size_t)2 << 20) /* what a device hands out to a process */

typedef struct Block {
    uint64_t at, bytes;
    uint64_t page, end; /* of its pages */
    bool live;
} Block;

static uint64_t range, next; /* addresses from here */
static Block *block;         /* by address */
static size_t n_block;
static Block *pin;
static size_t n_pin;
static size_t used, used_small;
static bool open;

static uint64_t up(uint64_t x, uint64_t unit) { return (x + unit - 1) / unit * unit; }

static uint8_t *byte(uint64_t at) { return (uint8_t *)(uintptr_t)at; }

static void *reserve(size_t bytes, int protection)
{
    void *m = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return m == MAP_FAILED ? NULL : m;
}

static void protect(const Block *b, int protection)
{
    if (mprotect(byte(b->page), b->end - b->page, protection))
        abort();
}

static void poison(const Block *b)
{
    size_t first = b->bytes < POISONED ? b->bytes : POISONED;
    memset(byte(b->page), MARK, b->at - b->page);
    memset(byte(b->at), POISON, first);
    if (first < b->bytes)
        memset(byte(b->at + b->bytes - first), POISON, first);
    memset(byte(b->at + b->bytes), MARK, b->end - b->at - b->bytes);
}

static bool marks_are_whole(const Block *b)
{
    for (uint64_t i = b->page; i < b->at; i++)
        if (*byte(i) != MARK)
            return false;
    for (uint64_t i = b->at + b->bytes; i < b->end; i++)
        if (*byte(i) != MARK)
            return false;
    return true;
}

/* Small allocations share what the device hands out. */
static size_t footprint(size_t bytes) { return bytes < GRAIN / 2 ? up(bytes, 512) : up(bytes, GRAIN); }

size_t fake_memory_free(void)
{
    const FakeSettings *s = fake_settings();
    size_t all = (size_t)s->memory << 20, gone = ((size_t)s->taken << 20) + CONTEXT_BYTES;
    gone += used + up(used_small, GRAIN);
    return gone < all ? all - gone : 0;
}

uint64_t fake_alloc(size_t bytes)
{
    size_t cost = footprint(bytes), *account = bytes < GRAIN / 2 ? &used_small : &used;
    if (bytes > RANGE || cost > fake_memory_free())
        return 0;
    if (!range) {
        range = next = (uint64_t)(uintptr_t)reserve(RANGE, PROT_NONE);
        fake_watch_host();
    }
    /* What is opened and closed often is a few large pages, where the system has them. */
    bool large = bytes >= 2 * GRAIN;
    Block b = {.bytes = bytes, .page = large ? up(next + PAGE, GRAIN) : next + PAGE, .live = true};
    b.end = b.page + up(up(bytes, ALIGN), PAGE);
    b.at = b.end - up(bytes, ALIGN);
    if (!range || b.end + PAGE > range + RANGE)
        return 0;
    next = b.end;
    *account += cost;
    protect(&b, PROT_READ | PROT_WRITE);
    if (large)
        (void)!madvise(byte(b.page), b.end - b.page, MADV_HUGEPAGE);
    poison(&b);
    if (!open)
        protect(&b, PROT_NONE);
    block = realloc(block, (n_block + 1) * sizeof *block);
    block[n_block++] = b;
    return b.at;
}

/* The last block that begins at or before the address; NULL: none. */
static Block *before(uint64_t at)
{
    size_t low = 0, high = n_block;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (block[middle].page <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? &block[low - 1] : NULL;
}

bool fake_free(uint64_t at)
{
    Block *b = before(at);
    if (!b || !b->live || b->at != at)
        return false;
    protect(b, PROT_READ);
    if (!marks_are_whole(b))
        fake_mistake("something wrote beside an allocation of %llu bytes", (unsigned long long)b->bytes);
    b->live = false;
    *(b->bytes < GRAIN / 2 ? &used_small : &used) -= footprint(b->bytes);
    if (mmap(byte(b->page), b->end - b->page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
             0) == MAP_FAILED)
        abort();
    return true;
}

void fake_memory_end(void)
{
    for (size_t i = 0; i < n_block; i++)
        if (block[i].live)
            fake_free(block[i].at);
    for (size_t i = 0; i < n_pin; i++)
        if (pin[i].live)
            fake_unpin((void *)(uintptr_t)pin[i].at);
}

bool fake_is_device(uint64_t at) { return range && at >= range && at < range + RANGE; }

bool fake_holds(uint64_t at, uint64_t bytes)
{
    const Block *b = before(at);
    return b && b->live && at >= b->at && at - b->at <= b->bytes && bytes <= b->bytes - (at - b->at);
}

const char *fake_where(uint64_t at, char text[128])
{
    const Block *b = before(at);
    if (!fake_is_device(at))
        snprintf(text, 128, "%#llx, no memory of the device", (unsigned long long)at);
    else if (!b || at >= b->end + PAGE)
        snprintf(text, 128, "%#llx, before or behind all allocations", (unsigned long long)at);
    else
        snprintf(text, 128, "%lld bytes from the beginning of %s of %llu bytes", (long long)(at - b->at),
                 b->live ? "an allocation" : "a freed allocation", (unsigned long long)b->bytes);
    return text;
}

void fake_memory_open(void)
{
    if (open)
        return;
    open = true;
    for (size_t i = 0; i < n_block; i++)
        if (block[i].live)
            protect(&block[i], PROT_READ | PROT_WRITE);
}

bool fake_memory_close(void)
{
    FakeOrder order = fake_settings()->order;
    bool whole = true;
    for (size_t i = 0; i < n_block; i++)
        whole = whole && (!block[i].live || marks_are_whole(&block[i]));
    if (order == ORDER_EAGER || order == ORDER_SHUFFLED)
        return whole;
    open = false;
    for (size_t i = 0; i < n_block; i++)
        if (block[i].live)
            protect(&block[i], PROT_NONE);
    return whole;
}

/* ---- pinned ---- */

void *fake_pin(size_t bytes)
{
    uint8_t *m = reserve(up(bytes, PAGE) + PAGE, PROT_NONE);
    if (!m || mprotect(m, up(bytes, PAGE), PROT_READ | PROT_WRITE))
        return NULL;
    memset(m, POISON, bytes);
    pin = realloc(pin, (n_pin + 1) * sizeof *pin);
    pin[n_pin++] = (Block){
        .at = (uintptr_t)m, .bytes = bytes, .page = (uintptr_t)m, .end = (uintptr_t)m + up(bytes, PAGE), .live = true};
    return m;
}

bool fake_unpin(void *at)
{
    for (size_t i = 0; i < n_pin; i++)
        if (pin[i].live && pin[i].at == (uintptr_t)at) {
            pin[i].live = false;
            return mmap(at, pin[i].end - pin[i].page, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
        }
    return false;
}

bool fake_pinned(const void *p, size_t bytes)
{
    uint64_t at = (uintptr_t)p;
    for (size_t i = 0; i < n_pin; i++)
        if (pin[i].live && at >= pin[i].at && at - pin[i].at <= pin[i].bytes &&
            bytes <= pin[i].bytes - (at - pin[i].at))
            return true;
    return false;
}
