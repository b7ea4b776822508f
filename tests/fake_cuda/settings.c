/* settings.c - what the environment asks of the fakes. See README.md. */
#define _GNU_SOURCE
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FakeSettings settings;
static uint64_t state;

static void stop(const char *variable, const char *value)
{
    fprintf(stderr, "fake CUDA: %s=%s cannot be read\n", variable, value);
    exit(70);
}

uint64_t fake_random(void)
{
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* The place of `value` in the list, or -1. */
static int one_of(const char *value, size_t length, const char *const *names, int n)
{
    for (int i = 0; i < n; i++)
        if (strlen(names[i]) == length && !strncmp(names[i], value, length))
            return i;
    return -1;
}

static void read_orders(void)
{
    static const char *const orders[] = {"late", "in-order", "eager", "shuffled"};
    static const char *const blocks[] = {"ascending", "descending", "shuffled"};
    const char *order = getenv("FAKE_CUDA_ORDER"), *block = getenv("FAKE_CUDA_BLOCKS");
    order = order ? order : "late";
    block = block ? block : "ascending";
    size_t n = strcspn(order, ":");
    int found = one_of(order, n, orders, 4), way = one_of(block, strlen(block), blocks, 3);
    char *end = "";
    if (order[n])
        state = strtoull(order + n + 1, &end, 10);
    if (found < 0 || *end)
        stop("FAKE_CUDA_ORDER", order);
    if (way < 0)
        stop("FAKE_CUDA_BLOCKS", block);
    settings.order = (FakeOrder)found;
    settings.blocks = (FakeBlocks)way;
}

static void read_device(void)
{
    const struct {
        const char *name;
        long *value, usual;
    } known[] = {
        {"memory", &settings.memory, 80000},      {"taken", &settings.taken, 0},
        {"capability", &settings.capability, 90}, {"sms", &settings.sms, 132},
        {"driver", &settings.driver, 13000},      {"devices", &settings.devices, 1},
        {"compiler", &settings.compiler, 13000},
    };
    const char *text = getenv("FAKE_CUDA_DEVICE");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        *known[i].value = known[i].usual;
    snprintf(settings.name, sizeof settings.name, "Fake GPU");
    for (const char *p = text ? text : ""; *p; p += strspn(p, " ")) {
        size_t length = strcspn(p, "="), i = 0;
        char *end = (char *)p;
        while (i < sizeof known / sizeof *known &&
               (strlen(known[i].name) != length || strncmp(known[i].name, p, length)))
            i++;
        if (i < sizeof known / sizeof *known && p[length])
            *known[i].value = strtol(p + length + 1, &end, 10);
        if (end <= p || (*end && *end != ' '))
            stop("FAKE_CUDA_DEVICE", text);
        p = end;
    }
}

static void __attribute__((constructor)) read_settings(void)
{
    static const char *const which[] = {"all", "rows", "none"};
    const char *heuristic = getenv("FAKE_CUDA_HEURISTIC"), *hangs = getenv("FAKE_CUDA_HANGS"),
               *algorithms = getenv("FAKE_CUDA_ALGORITHMS");
    char *end = "";
    int found = algorithms ? one_of(algorithms, strlen(algorithms), which, 3) : ALGORITHMS_ALL;
    if (found < 0)
        stop("FAKE_CUDA_ALGORITHMS", algorithms);
    settings.algorithms = (FakeAlgorithms)found;
    settings.hangs = hangs ? hangs : "";
    read_orders();
    read_device();
    settings.heuristic = heuristic ? strtol(heuristic, &end, 10) : 0;
    if (*end)
        stop("FAKE_CUDA_HEURISTIC", heuristic);
}

const FakeSettings *fake_settings(void) { return &settings; }
