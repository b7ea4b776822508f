/* library.c - see library.h: the names of kernels that are written. */
#include "library.h"

const char *library_name(LibraryKernel which)
{
    switch (which) { /* no default: a kernel without a name is a warning */
    case LIB_COPY: return "copy";
    case LIB_PART: return "part";
    case LIB_TABLE: return "table";
    case LIB_SUM_PARTS: return "sum_parts";
    case LIB_MAX_PARTS: return "max_parts";
    case LIB_SUM_PARTS_AT: return "sum_parts_at";
    case LIB_MAX_PARTS_AT: return "max_parts_at";
    case LIB_CUMSUM: return "cumsum";
    case LIB_TOP_K: return "top_k";
    case LIB_SCATTER_ADD: return "scatter_add";
    case LIB_DYNAMIC_UPDATE_SLICE: return "dynamic_update_slice";
    case LIB_DYNAMIC_SLICE: return "dynamic_slice";
    case LIB_SDPA: return "sdpa";
    case LIB_SDPA_AT: return "sdpa_at";
    case LIB_SDPA_GRAD: return "sdpa_grad";
    case LIB_COUNT: break;
    }
    return "";
}

bool library_has_class(LibraryKernel which)
{
    return which == LIB_SDPA || which == LIB_SDPA_AT || which == LIB_SDPA_GRAD;
}
