/* cases.h - launches of kernels, each with what it reads and what it must write, as a file.
 *
 * In:  nothing.     Out: the parts of a case. Behind CASES_MARK a file is entries, each behind its
 *      length: some bytes (CASE_BYTES), or a CaseHead (CASE_LAUNCH) with its regions, its buffers, addresses that
 *      lie in its memory, the integers, the numbers, the tensor maps. A region says where in the file its bytes lie, before the launch and,
 *      when it is written, after it; and by how much what a GPU writes may differ.
 * The one idea: memory is kept by region, not by argument, so arguments that share memory share it
 * when they are launched again; and what one launch writes and another reads is kept once. Numbers
 * lie as x86-64 has them.
 */
#ifndef VWN_TEST_CASES_H
#define VWN_TEST_CASES_H

#include <stdint.h>

#define CASES_MARK "vwn cases 6\n"

typedef enum CaseKind { CASE_BYTES = 1, CASE_LAUNCH = 2 } CaseKind;
typedef struct CaseEntry {
    uint64_t kind, bytes; /* that follow */
} CaseEntry;

typedef struct CaseHead {
    char kernel[64], where[128]; /* its name; the program and module that it was launched for */
    int64_t rows, blocks;
    uint64_t shared; /* bytes */
    uint32_t threads, n_region, n_buffer, n_place, n_int, n_number, n_map, unused;
} CaseHead;

typedef enum CaseType { CASE_REAL, CASE_INTEGER, CASE_BF16, CASE_FP16 } CaseType;
typedef struct CaseRegion {
    uint64_t bytes, before, after; /* places in the file; after: of a written one */
    double most;                   /* that a number may differ by; integers must not */
    uint32_t type;                 /* CaseType */
    uint32_t written;
} CaseRegion;

typedef struct CaseBuffer { /* an argument: bytes into a region */
    uint64_t region, shift;
} CaseBuffer;

/* A tensor map of an argument, as LaunchMap of compiler/kernel/launch.h has it. */
typedef struct CaseMap {
    int64_t extent[4], stride[4];  /* elements */
    uint32_t box[4], buffer, type; /* CaseType */
    uint32_t unused;
} CaseMap;

typedef struct CasePlace { /* an address that lies in memory, `at` bytes into the region `in` */
    uint64_t in, at;
    CaseBuffer to;
} CasePlace;

#endif
