/* blas.c - what the CUDA backend tells cuBLASLt of a product, told to the real library, where that is. No GPU is needed.
 *
 * In:  libcublasLt, found as a run finds it.     Out: `N passed, N failed`; 77 without the library.
 * The one idea: the library knows the size of each of its attributes and refuses others, so numbers and types of cuda_api.h
 * that are not its own are found before a GPU is there. Numbers that only name something are compared with CUDA's headers
 * (tests/fake_cuda/numbers.c).
 */
#include "runtime/cuda/cuda_api.h"
#include "support/harness.h"

#include <stdio.h>

enum { NO_SUCH_VALUE = 7, NOT_OPEN = 1 };

static void describe(Harness *h, const LtApi *lt)
{
    LtProduct product = NULL;
    LtLayout layout = NULL;
    LtWish wish = NULL;
    const int32_t transposed = LT_TRANSPOSED, many = 65535;
    const int64_t step = 1 << 30;
    const uint64_t workspace = 32 << 20;
    const uint32_t reductions = LT_REDUCTION_IN_COMPUTE_TYPE, aligned = 64;
    const int types[] = {LT_NONE, LT_FP16, LT_BF16};
    CHECK(h, lt->version() >= 120000 && lt->version() < 1000000); /* by which it is told whether it suits a driver */
    if (!CHECK(h, !lt->new_product(&product, LT_COMPUTE_FLOAT32, LT_NONE) && !lt->new_wish(&wish)))
        return;
    CHECK(h, !lt->set_product(product, LT_TRANSPOSE_LEFT, &transposed, sizeof transposed));
    CHECK(h, !lt->set_product(product, LT_TRANSPOSE_RIGHT, &transposed, sizeof transposed));
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        CHECK(h, !lt->new_layout(&layout, types[i], 64, 32, 64));
        CHECK(h, !lt->set_layout(layout, LT_BATCH, &many, sizeof many));
        CHECK(h, !lt->set_layout(layout, LT_STEP, &step, sizeof step));
        CHECK(h, lt->set_layout(layout, LT_STEP, &step, 1) == NO_SUCH_VALUE);
        CHECK(h, !lt->end_layout(layout));
    }
    CHECK(h, !lt->set_wish(wish, LT_MOST_WORKSPACE, &workspace, sizeof workspace));
    CHECK(h, !lt->set_wish(wish, LT_REDUCTIONS, &reductions, sizeof reductions));
    CHECK(h, lt->set_wish(wish, LT_REDUCTIONS, &workspace, sizeof workspace) == NO_SUCH_VALUE);
    for (int i = 0; i < 4; i++)
        CHECK(h, !lt->set_wish(wish, LT_ALIGNMENT + i, &aligned, sizeof aligned));
    CHECK(h, !lt->end_wish(wish) && !lt->end_product(product));
    CHECK(h, lt->status_text(NOT_OPEN)[0] && strcmp(lt->status_text(NOT_OPEN), lt->status_text(NO_SUCH_VALUE)) != 0);
}

int main(void)
{
    Harness h = {0};
    LtApi lt;
    char path[CUDA_PATH_SIZE], build_id[72], why[512] = "";
    if (!cuda_lt_open(&lt, path, build_id, why)) {
        printf("skipped: %s\n", why);
        return 77;
    }
    printf("%s, %zu\n", path, lt.version());
    describe(&h, &lt);
    return harness_end(&h);
}
