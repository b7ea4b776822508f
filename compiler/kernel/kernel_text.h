/* kernel_text.h - kernel programs as text, and back.
 *
 * In:  scheduled kernels, and the kernels of the library that a plan names.
 * Out: lines, one assignment each; and from such lines the same kernels.
 * The one idea: what is read has passed kernel_check(), so it can be printed, emitted and run.
 */
#ifndef VWN_KERNEL_TEXT_H
#define VWN_KERNEL_TEXT_H

#include "kernel.h"
#include "library.h"

typedef struct KernelText {
    const Kernel *kernel; /* NULL: the library's */
    const char *about;    /* what stands above the emitted text */
    const char *comment;  /* path and place of what it computes, or NULL */
    LibraryKernel library;
    AttentionClass attention; /* of SDPA and its gradients */
} KernelText;
typedef struct KernelTexts {
    int64_t B, T;
    VEC(KernelText) kernel;
} KernelTexts;

void kernels_begin(Buf *out, int64_t B, int64_t T);
void kernels_put(Buf *out, const KernelText *x);
/* words of a product's way */
extern const char *const kernel_lying_words[LIES_COUNT], *const kernel_cut_words[CUT_COUNT];
extern const char *const kernel_across_words[ACROSS_COUNT];
/* What follows the line of its name. Of a kernel for the threads of a device also who does what. */
void kernel_print(Buf *out, const Kernel *k);

bool kernels_are(Ctx *ctx, uint32_t source_file); /* does this text begin like kernels? */
/* NULL with diagnostics. */
KernelTexts *kernels_read(Ctx *ctx, Arena *arena, uint32_t source_file);

#endif
