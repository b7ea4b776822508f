/* numbers.c - the numbers and structures of abi.h are those of CUDA's headers, where these are. */
#include "abi.h"

#include "../emu/rules.h"

#include <stdio.h>

#if FAKE_CUDA_HEADERS
#include <cublasLt.h>
#include <cuda.h>
#include <nvrtc.h>

static int wrong;

static void compare(const char *ours, long long a, const char *theirs, long long b)
{
    if (a == b)
        return;
    printf("%s is %lld, %s is %lld\n", ours, a, theirs, b);
    wrong++;
}

#define NUMBER(ours, value, theirs) compare(#ours, ours, #theirs, (long long)theirs);
#define PLACE(ours, theirs)                                                                                            \
    compare("FakeCopy2D." #ours, offsetof(FakeCopy2D, ours), "CUDA_MEMCPY2D." #theirs, offsetof(CUDA_MEMCPY2D, theirs))
#define FOUND(ours, theirs)                                                                                            \
    compare("FakeHeuristic." #ours, offsetof(FakeHeuristic, ours), #theirs,                                            \
            offsetof(cublasLtMatmulHeuristicResult_t, theirs))

int main(void)
{
    FAKE_DRIVER_NUMBERS(NUMBER)
    FAKE_NVRTC_NUMBERS(NUMBER)
    FAKE_BLAS_NUMBERS(NUMBER)
    PLACE(from_x, srcXInBytes);
    PLACE(from_y, srcY);
    PLACE(from_kind, srcMemoryType);
    PLACE(from_host, srcHost);
    PLACE(from_device, srcDevice);
    PLACE(from_array, srcArray);
    PLACE(from_pitch, srcPitch);
    PLACE(to_x, dstXInBytes);
    PLACE(to_y, dstY);
    PLACE(to_kind, dstMemoryType);
    PLACE(to_host, dstHost);
    PLACE(to_device, dstDevice);
    PLACE(to_array, dstArray);
    PLACE(to_pitch, dstPitch);
    PLACE(width, WidthInBytes);
    PLACE(height, Height);
    compare("FakeCopy2D", sizeof(FakeCopy2D), "CUDA_MEMCPY2D", sizeof(CUDA_MEMCPY2D));
    compare("emu_map", sizeof(emu_map), "CUtensorMap", sizeof(CUtensorMap));
    compare("its alignment", _Alignof(emu_map), "that of CUtensorMap", _Alignof(CUtensorMap));
    FOUND(algo, algo);
    FOUND(workspace, workspaceSize);
    FOUND(state, state);
    FOUND(waves, wavesCount);
    compare("FakeAlgo", sizeof(FakeAlgo), "cublasLtMatmulAlgo_t", sizeof(cublasLtMatmulAlgo_t));
    compare("FakeHeuristic", sizeof(FakeHeuristic), "its result", sizeof(cublasLtMatmulHeuristicResult_t));
    printf("%d of the numbers differ\n", wrong);
    return wrong != 0;
}
#else
int main(void)
{
    printf("skipped: no headers of CUDA here\n");
    return 77;
}
#endif
