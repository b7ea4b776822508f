/* cuda_open.h - the libraries of CUDA: found and opened while the program runs.
 *
 * In:  nothing but the machine and VWN_CUDA_LIBRARIES.
 * Out: functions, or a sentence that says why there are none.
 * The one idea: nothing of CUDA is linked and no header of it is needed, so one binary starts
 * and trains on machines with a GPU, with the toolkit alone, and with neither.
 *
 * Where: in the folders that VWN_CUDA_LIBRARIES names, separated by colons, and nowhere else, but
 * for the driver, which is also looked for where the system's loader looks; where it is empty, CUDA
 * is not looked for. Without it: where the system's loader looks, then in the folders of
 * cuda_folders.h.
 */
#ifndef VWN_CUDA_OPEN_H
#define VWN_CUDA_OPEN_H

#include "compiler/base/base.h"

typedef enum CudaLibrary {
    CUDA_DRIVER, /* libcuda: comes with a GPU's driver; toolkits bring a stub to link with */
    CUDA_NVRTC,  /* the compiler */
    CUDA_BLASLT, /* matrix products */
} CudaLibrary;
enum { CUDA_PATH_SIZE = 512 };

/* The library, which stays mapped until the process ends, and its file; NULL with `why`. */
void *cuda_library(CudaLibrary which, char path[CUDA_PATH_SIZE], char why[512]);
bool cuda_switched_off(void); /* by an empty VWN_CUDA_LIBRARIES */

/* Functions of a library: `function` is where a pointer to it goes. */
typedef struct CudaFunction {
    const char *name;
    void *function;
} CudaFunction;
bool cuda_functions(void *library, const CudaFunction *wanted, size_t n, char why[512]);

/* What tells this file of a library from another: its build id, else its size and time. */
void cuda_build_id(void *library, char *text, size_t size);

/* The driver as far as a description needs it. Functions return 0 or a number of an error. */
enum { CUDA_NO_DEVICE = 100, CUDA_IS_STUB = 34 };
typedef struct CudaDriver {
    int (*init)(unsigned flags);
    int (*version)(int *version); /* 1000 major + 10 minor */
    int (*count)(int *devices);
    int (*device)(int *device, int ordinal);
    int (*name)(char *name, int size, int device);
    int (*memory)(size_t *bytes, int device);
    int (*attribute)(int *value, int attribute, int device);
    int (*error_text)(int error, const char **text);
    char path[CUDA_PATH_SIZE];
    int state;   /* what init() said */
    int devices; /* how many there are */
} CudaDriver;
typedef struct CudaDevice {
    char name[128];
    int capability; /* 10 major + minor: 90 */
    uint64_t bytes;
} CudaDevice;
/* Opens and initialises it. false with `why`: no library, or not one of CUDA. With true `state`
 * may still be an error, which `why` then says. */
bool cuda_driver_open(CudaDriver *d, char why[512]);
bool cuda_device(const CudaDriver *d, int ordinal, CudaDevice *out);

#endif
