/* export_torch.h - parts of a model as a Python package for PyTorch.
 *
 * In:  a model, and which part of it.
 * Out: texts with their names: kernels and calls in C behind one function of pointers and sizes, a table of what there is in
 *      Python, and the files that every package shares.
 * The one idea: a part is a function and its gradient (model/function.h), planned for any sizes (plan/plan_forms.h). What
 * PyTorch has to know of it is a table; the Python that reads the table is the same in every package.
 */
#ifndef VWN_EXPORT_TORCH_H
#define VWN_EXPORT_TORCH_H

#include "export.h"

typedef struct TorchOptions {
    const Unit *unit;
    const char *package; /* its name in Python */
    const char
        *node; /* connections: the path of a sublayer, or of its connection, [*] for any number; "*": all of them */
    const char *block; /* blocks: a path, [*] for any number, or the name of a block; both NULL: the whole model */
} TorchOptions;

/* pyproject.toml begins with TORCH_MARK. Raises ST_INPUT for what has no such part. */
void export_torch(ExportFolder *out, Ctx *ctx, Arena *arena, const TorchOptions *how);
#define TORCH_MARK "# Written by `vwn emit torch`."
/* Is it a word that Python and the registries of PyTorch take as a name? */
bool torch_is_name(const char *word);

#endif
