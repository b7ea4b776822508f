/* case_device.h - what a launch of cases.h is run by: a GPU's driver (case_driver.c), or an interpreter of PTX
 * (tests/ptx/case_ptx.c), one of which is linked to run_kernels.c.
 *
 * In:  a launch, read from its file; the folder that it lies in, with texts and machine code.
 * Out: of each region what is there behind the launch. What fails ends the process with a sentence: a GPU that faulted once
 *      computes nothing more.
 */
#ifndef VWN_TEST_CASE_DEVICE_H
#define VWN_TEST_CASE_DEVICE_H

#include "cases.h"

#include <stdbool.h>

enum { PATH = 600, MAPS = 4, NO_GPU = 4 };

typedef struct Case {
    CaseHead head;
    CaseRegion *region;
    CaseBuffer *buffer;
    CasePlace *place;
    int64_t *n;
    double *s;
    CaseMap *map;
    char **before, **after; /* by region */
} Case;

_Noreturn void stop(int status, const char *format, ...);
void *room(uint64_t bytes); /* zeros; one byte more */
/* The bytes of a file and a 0, the caller's; stops where there is none. */
char *read_file(const char *path, uint64_t *bytes);

/* Stops with NO_GPU where there is none. */
void device_open(void);
const char *device_name(void);
const char *device_arch(void);
/* Each launch ends, after so many steps as no kernel takes if not before: nobody has to watch the clock. */
bool device_counts_steps(void);
/* got: room for each region. false: there is no code of this kernel for the device. */
bool device_run(const Case *c, const char *item, char *const *got);
/* Writes into the regions before the launch where the others begin. */
void put_places(const Case *c, const uint64_t *begin);

#endif
