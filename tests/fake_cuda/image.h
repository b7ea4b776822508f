/* image.h - the "cubins" of the fake compiler: ELF files like those of CUDA as far as runtime/cuda/cubin.c reads them, with
 * a shared object of the emulator in a section of its own. */
#ifndef FAKE_CUDA_IMAGE_H
#define FAKE_CUDA_IMAGE_H

#include <stddef.h>
#include <stdint.h>

enum { IMAGE_REGISTERS = 40 /* of a kernel whose text does not say */, IMAGE_SPILLS = 128 /* at most */ };

typedef struct ImageKernel {
    char name[128];
    int threads, blocks; /* __launch_bounds__; 0: not said */
    int registers;
    int spilled; /* values of a thread that have no register: each is stored and loaded once */
    int frame;   /* bytes of a thread's stack */
} ImageKernel;
typedef struct Image {
    int arch;    /* 90 */
    int only;    /* 1: of "sm_90a", for no other */
    int version; /* 13: of the compiler */
    const ImageKernel *kernel;
    size_t n;
    const void *object;
    size_t size;
} Image;

void *image_write(const Image *image, size_t *size); /* of malloc */
/* The object of an image, and what it is for; NULL: this is none. Kernels are not listed. */
const void *image_object(const void *bytes, Image *out);
size_t image_size(const void *bytes);                     /* of one that image_object() has read */
int image_threads(const void *bytes, const char *kernel); /* launch bounds; 0: not said */

#endif
