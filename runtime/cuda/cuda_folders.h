/* cuda_folders.h - where libraries of CUDA may lie besides where the system's loader looks.
 *
 * What is looked for first lies in the folders at the end of the list: those of $CUDA_HOME and $CUDA_PATH, Python's packages
 * (nvidia/cu13/lib, nvidia/cuda_nvrtc/lib, ...) of $VIRTUAL_ENV and $CONDA_PREFIX, beside the nvcc and the python3 of PATH, in
 * /usr/local/cuda, /usr/local/cuda-*, /opt/cuda, and the packages of the user's and the system's Pythons.
 */
#ifndef VWN_CUDA_FOLDERS_H
#define VWN_CUDA_FOLDERS_H

#include <glob.h>

#include "cuda_open.h"

/* Folders that are there, for globfree(). */
void cuda_folders(CudaLibrary which, glob_t *out);

#endif
