/* widths.h - the published width schedules of Variable-Width Transformers.
 *
 * In:  nothing.   Out: table 2's schedules, layer by layer, with the numbers that go with them.
 * The one idea: they are written out, not computed, and shared by the tests of the solver and of whole models.
 */
#ifndef TEST_WIDTHS_H
#define TEST_WIDTHS_H

#include <stdint.h>

typedef struct Published {
    const char *name;
    int64_t layers;
    double base;
    double alpha_down, alpha_up, first, average, flops_percent;
    double width[40];
} Published;

static const Published published[] = {
    {"200M",
     16,
     640,
     .850037,
     1.563315,
     1146.799,
     576.00,
     -3.20,
     {1152, 960, 832, 704, 608, 512, 448, 352, 320, 256, 224, 192, 288, 480, 736, 1152}},
    {"500M", 24, 960, .898557, 1.354004, 1774.651, 854.67, -3.73, {1760, 1600, 1440, 1280, 1152, 1024, 928,  832,
                                                                   768,  672,  608,  544,  480,  448,  384,  352,
                                                                   320,  288,  384,  512,  704,  960,  1312, 1760}},
    {"1B", 32, 1280, .923371, 1.257602, 2402.569, 1145.00, -2.60, {2400, 2208, 2048, 1888, 1760, 1600, 1504, 1376,
                                                                   1280, 1184, 1088, 992,  928,  864,  800,  736,
                                                                   672,  608,  576,  544,  480,  448,  416,  384,
                                                                   480,  608,  768,  960,  1216, 1504, 1920, 2400}},
    {"2B", 40, 1600, .938437, 1.202336, 3030.392, 1425.60, -2.50, {3040, 2848, 2656, 2496, 2336, 2208, 2080, 1952,
                                                                   1824, 1696, 1600, 1504, 1408, 1312, 1248, 1184,
                                                                   1088, 1024, 960,  896,  864,  800,  736,  704,
                                                                   672,  608,  576,  544,  512,  480,  576,  704,
                                                                   832,  992,  1216, 1440, 1728, 2112, 2528, 3040}},
};

#endif
