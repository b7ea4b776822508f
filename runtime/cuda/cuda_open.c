/* cuda_open.c - see cuda_open.h. */
#define _GNU_SOURCE
#include "cuda_folders.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* ---- finding ---- */

static const struct {
    const char *what, *names[5], *missing;
} libraries[] = {
    [CUDA_DRIVER] = {"the CUDA driver", {"libcuda.so.1", "libcuda.so"}, "it comes with the driver of a GPU"},
    [CUDA_NVRTC] = {"the CUDA compiler NVRTC",
                    {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"},
                    "install the CUDA toolkit"},
    [CUDA_BLASLT] = {"the CUDA library cuBLASLt",
                     {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"},
                     "install the CUDA toolkit"},
};
static const char variable[] = "VWN_CUDA_LIBRARIES";

bool cuda_switched_off(void)
{
    const char *folders = getenv(variable);
    return folders && !*folders;
}

/* Opens folder/name, or name alone where the folder is empty. */
static void *open_in(const char *folder, size_t length, const char *name)
{
    char path[CUDA_PATH_SIZE];
    int n = snprintf(path, sizeof path, "%.*s%s%s", (int)length, folder, length ? "/" : "", name);
    if (n < 0 || (size_t)n >= sizeof path)
        return NULL;
    return dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

/* One of the library's names in a folder. */
static void *open_in_folder(CudaLibrary which, const char *folder, size_t length)
{
    void *library = NULL;
    for (const char *const *name = libraries[which].names; *name && !library; name++)
        library = open_in(folder, length, *name);
    return library;
}

static void *open_by_loader(CudaLibrary which) { return open_in_folder(which, "", 0); }

/* In one of the folders, separated by colons. */
static void *open_in_folders(CudaLibrary which, const char *folders)
{
    void *library = NULL;
    for (size_t n; *folders && !library; folders += n + (folders[n] == ':')) {
        n = strcspn(folders, ":");
        library = n ? open_in_folder(which, folders, n) : NULL;
    }
    return library;
}

static void *open_anywhere(CudaLibrary which)
{
    void *library = open_by_loader(which);
    glob_t folders;
    if (library)
        return library;
    cuda_folders(which, &folders);
    for (size_t i = folders.gl_pathc; i-- > 0 && !library;)
        library = open_in_folder(which, folders.gl_pathv[i], strlen(folders.gl_pathv[i]));
    globfree(&folders);
    return library;
}

static void library_path(void *library, char path[CUDA_PATH_SIZE])
{
    struct link_map *map;
    path[0] = 0;
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0)
        snprintf(path, CUDA_PATH_SIZE, "%s", map->l_name);
}

/* A driver is the machine's, whichever libraries are wanted to go with it. */
static void *find_library(CudaLibrary which, const char *folders)
{
    if (!folders)
        return open_anywhere(which);
    void *library = open_in_folders(which, folders);
    return library || which != CUDA_DRIVER || !*folders ? library : open_by_loader(which);
}

void *cuda_library(CudaLibrary which, char path[CUDA_PATH_SIZE], char why[512])
{
    const char *folders = getenv(variable);
    path[0] = why[0] = 0;
    void *library = find_library(which, folders);
    if (library) {
        library_path(library, path);
        return library;
    }
    if (cuda_switched_off())
        snprintf(why, 512, "%s is not looked for: %s is empty", libraries[which].what, variable);
    else
        snprintf(why, 512, "%s (%s) is not %s%.240s%s; %s", libraries[which].what, libraries[which].names[0],
                 folders ? "in " : "on this machine", folders ? folders : "",
                 folders && which == CUDA_DRIVER ? ", nor where the system's loader looks" : "",
                 libraries[which].missing);
    return NULL;
}

bool cuda_functions(void *library, const CudaFunction *wanted, size_t n, char why[512])
{
    for (size_t i = 0; i < n; i++) {
        void *p = dlsym(library, wanted[i].name);
        memcpy(wanted[i].function, &p, sizeof p);
        if (p)
            continue;
        snprintf(why, 512, "the library has no function %s: another version is needed", wanted[i].name);
        return false;
    }
    return true;
}

/* ---- which file it is ---- */

typedef struct BuildId {
    ElfW(Addr) base;
    char *text;
    size_t size;
} BuildId;

/* The bytes of the note "GNU", 3 as digits, or nothing. */
static void build_id_note(const char *p, size_t n, BuildId *id)
{
    while (n >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) h;
        memcpy(&h, p, sizeof h);
        size_t name = ((size_t)h.n_namesz + 3) & ~(size_t)3;
        size_t bytes = ((size_t)h.n_descsz + 3) & ~(size_t)3;
        if (name > n - sizeof h || bytes > n - sizeof h - name)
            return;
        const char *at = p + sizeof h;
        if (h.n_type == 3 && h.n_namesz == 4 && !memcmp(at, "GNU", 4))
            for (size_t i = 0; i < h.n_descsz && 2 * i + 3 < id->size; i++)
                snprintf(id->text + 2 * i, 3, "%02x", (unsigned char)at[name + i]);
        p = at + name + bytes;
        n -= sizeof h + name + bytes;
    }
}

static int build_id_of(struct dl_phdr_info *info, size_t size, void *user)
{
    BuildId *id = user;
    (void)size;
    if (info->dlpi_addr != id->base)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_NOTE)
            build_id_note((const char *)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr, info->dlpi_phdr[i].p_memsz, id);
    return 1;
}

void cuda_build_id(void *library, char *text, size_t size)
{
    struct link_map *map;
    struct stat st;
    BuildId id = {.text = text, .size = size};
    text[0] = 0;
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0)
        return;
    id.base = map->l_addr;
    dl_iterate_phdr(build_id_of, &id);
    if (!text[0] && stat(map->l_name, &st) == 0)
        snprintf(text, size, "%lld bytes of %lld", (long long)st.st_size, (long long)st.st_mtime);
}

/* ---- the driver ---- */

bool cuda_driver_open(CudaDriver *d, char why[512])
{
    *d = (CudaDriver){0};
    const CudaFunction wanted[] = {
        {"cuInit", &d->init},
        {"cuDriverGetVersion", &d->version},
        {"cuDeviceGetCount", &d->count},
        {"cuDeviceGet", &d->device},
        {"cuDeviceGetName", &d->name},
        {"cuDeviceTotalMem_v2", &d->memory},
        {"cuDeviceGetAttribute", &d->attribute},
        {"cuGetErrorString", &d->error_text},
    };
    void *library = cuda_library(CUDA_DRIVER, d->path, why);
    if (!library || !cuda_functions(library, wanted, COUNT_OF(wanted), why))
        return false;
    d->state = d->init(0);
    if (!d->state)
        d->state = d->count(&d->devices);
    const char *text = NULL;
    if (d->state == CUDA_IS_STUB)
        snprintf(why, 512, "there is no CUDA driver, only the toolkit's stub %.300s", d->path);
    else if (d->state == CUDA_NO_DEVICE)
        snprintf(why, 512, "the CUDA driver finds no GPU");
    else if (d->state)
        snprintf(why, 512, "the CUDA driver does not start: error %d, %.300s", d->state,
                 d->error_text(d->state, &text) == 0 && text ? text : "which it does not explain");
    return true;
}

bool cuda_device(const CudaDriver *d, int ordinal, CudaDevice *out)
{
    enum { CAPABILITY_MAJOR = 75, CAPABILITY_MINOR = 76 };
    int device, major, minor;
    size_t bytes;
    *out = (CudaDevice){0};
    if (d->device(&device, ordinal) || d->memory(&bytes, device) ||
        d->name(out->name, (int)sizeof out->name - 1, device) || d->attribute(&major, CAPABILITY_MAJOR, device) ||
        d->attribute(&minor, CAPABILITY_MINOR, device))
        return false;
    out->capability = 10 * major + minor;
    out->bytes = bytes;
    return true;
}
