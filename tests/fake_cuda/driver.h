/* driver.h - between the files of the fake libcuda. */
#ifndef FAKE_CUDA_DRIVER_H
#define FAKE_CUDA_DRIVER_H

#include "../emu/rules.h"
#include "queue.h"

int fake_shared_most(void); /* bytes of shared memory of a block, with opt-in */
int fake_attribute(int which);

/* A call that gives back has done so as far as its caller can, also where the context is lost or it fails as asked:
 * true for other errors, after which the thing is still there. */
bool fake_futile(int error);

#endif
