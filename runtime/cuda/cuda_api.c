/* cuda_api.c - see cuda_api.h. */
#include "cuda_api.h"

#include <stdio.h>

bool cuda_api_open(CudaApi *a, char why[512])
{
    char path[CUDA_PATH_SIZE];
    *a = (CudaApi){0};
    const CudaFunction wanted[] = {
        {"cuDevicePrimaryCtxRetain", &a->retain},
        {"cuDevicePrimaryCtxRelease_v2", &a->release},
        {"cuCtxSetCurrent", &a->set_current},
        {"cuMemGetInfo_v2", &a->memory_info},
        {"cuMemAlloc_v2", &a->take},
        {"cuMemFree_v2", &a->give},
        {"cuMemHostAlloc", &a->take_host},
        {"cuMemFreeHost", &a->give_host},
        {"cuMemcpyHtoDAsync_v2", &a->up},
        {"cuMemcpyDtoHAsync_v2", &a->down},
        {"cuMemcpyDtoDAsync_v2", &a->across},
        {"cuMemcpy2DAsync_v2", &a->copy_2d},
        {"cuMemsetD8Async", &a->fill},
        {"cuStreamCreate", &a->new_stream},
        {"cuStreamDestroy_v2", &a->end_stream},
        {"cuStreamSynchronize", &a->wait_stream},
        {"cuStreamWaitEvent", &a->wait_for},
        {"cuEventCreate", &a->new_event},
        {"cuEventDestroy_v2", &a->end_event},
        {"cuEventRecord", &a->record},
        {"cuEventSynchronize", &a->wait_event},
        {"cuEventRecordWithFlags", &a->record_flagged},
        {"cuEventElapsedTime", &a->elapsed},
        {"cuModuleLoadData", &a->load},
        {"cuModuleUnload", &a->unload},
        {"cuModuleGetFunction", &a->function},
        {"cuFuncSetAttribute", &a->set_attribute},
        {"cuOccupancyMaxActiveBlocksPerMultiprocessor", &a->occupancy},
        {"cuLaunchKernel", &a->launch},
        {"cuTensorMapEncodeTiled", &a->make_map},
        {"cuStreamBeginCapture_v2", &a->begin_capture},
        {"cuStreamEndCapture", &a->end_capture},
        {"cuGraphInstantiateWithFlags", &a->make_graph},
        {"cuGraphLaunch", &a->launch_graph},
        {"cuGraphExecDestroy", &a->end_graph},
        {"cuGraphDestroy", &a->end_record},
    };
    void *library = cuda_library(CUDA_DRIVER, path, why);
    return library && cuda_functions(library, wanted, COUNT_OF(wanted), why);
}

void cuda_error_text(const CudaDriver *d, int error, char text[160])
{
    const char *known = NULL;
    if (d->error_text(error, &known) == 0 && known)
        snprintf(text, 160, "%.130s (error %d)", known, error);
    else
        snprintf(text, 160, "error %d, which the driver does not explain", error);
}

bool cuda_lt_open(LtApi *t, char path[CUDA_PATH_SIZE], char build_id[72], char why[512])
{
    *t = (LtApi){0};
    const CudaFunction wanted[] = {
        {"cublasLtGetVersion", &t->version},
        {"cublasLtCreate", &t->create},
        {"cublasLtDestroy", &t->destroy},
        {"cublasLtGetStatusString", &t->status_text},
        {"cublasLtMatmulDescCreate", &t->new_product},
        {"cublasLtMatmulDescDestroy", &t->end_product},
        {"cublasLtMatmulDescSetAttribute", &t->set_product},
        {"cublasLtMatrixLayoutCreate", &t->new_layout},
        {"cublasLtMatrixLayoutDestroy", &t->end_layout},
        {"cublasLtMatrixLayoutSetAttribute", &t->set_layout},
        {"cublasLtMatmulPreferenceCreate", &t->new_wish},
        {"cublasLtMatmulPreferenceDestroy", &t->end_wish},
        {"cublasLtMatmulPreferenceSetAttribute", &t->set_wish},
        {"cublasLtMatmulAlgoGetHeuristic", &t->choose},
        {"cublasLtMatmulAlgoCheck", &t->check},
        {"cublasLtMatmul", &t->multiply},
    };
    void *library = cuda_library(CUDA_BLASLT, path, why);
    if (!library || !cuda_functions(library, wanted, COUNT_OF(wanted), why))
        return false;
    cuda_build_id(library, build_id, 72);
    return true;
}
