/* emu_compile.c - see backend_emu.h: CUDA texts as C++ in shared objects, and their launches. */
#include "backend_emu.h"

#include "compiler/portable/device_call.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct EmuRun { /* EmuLaunch of cuemu.h */
    void (*kernel)(void **arguments);
    void **arguments;
    unsigned blocks, threads;
    uint64_t shared;
    int descending, lazy;
    const unsigned *order;
} EmuRun;

typedef struct Known {
    char name[64];
    EmuKernel kernel;
} Known;

static Known *known;
static size_t n_known, room;

static const char *compiler(void)
{
    static const char *const names[] = {"g++", "clang++"};
    static char found[256];
    const char *asked = getenv("CXX");
    for (size_t i = 0; !found[0] && i <= COUNT_OF(names); i++) {
        const char *name = i ? names[i - 1] : asked;
        char command[320];
        if (!name || !name[0])
            continue;
        snprintf(command, sizeof command, "command -v %.200s > /dev/null 2>&1", name);
        if (system(command) == 0)
            snprintf(found, sizeof found, "%.200s", name);
    }
    return found[0] ? found : NULL;
}

bool emu_possible(char why[512])
{
#if !defined(__x86_64__)
    snprintf(why, 512, "the emulator runs on x86-64 only");
    return false;
#else
    if (!compiler())
        snprintf(why, 512, "no C++ compiler: set CXX, or install g++");
    return compiler() != NULL;
#endif
}

bool emu_missing(void)
{
    char why[512];
    if (emu_possible(why))
        return false;
    printf("skipped: %s\n", why);
    return true;
}

static const EmuKernel *find(const char *name)
{
    for (size_t i = 0; i < n_known; i++)
        if (strcmp(known[i].name, name) == 0)
            return &known[i].kernel;
    return NULL;
}

static void remember(const char *name, EmuKernel kernel)
{
    if (n_known == room) {
        room = room * 2 + 64;
        known = realloc(known, room * sizeof *known);
    }
    snprintf(known[n_known].name, sizeof known[n_known].name, "%s", name);
    known[n_known++].kernel = kernel;
}

static bool write_source(const char *path, const char *options, const char *prelude, size_t length, const EmuText *text,
                         size_t n)
{
    FILE *f = fopen(path, "w");
    if (!f)
        return false;
    emu_write(f, options, "prelude", prelude, length);
    for (size_t i = 0; i < n; i++)
        if (!find(text[i].name)) {
            fwrite(text[i].text, 1, text[i].length, f);
            fprintf(f, "EMU_EXPORT(%s)\n", text[i].name);
        }
    return fclose(f) == 0;
}

static void first_error(const char *path, char why[512])
{
    FILE *f = fopen(path, "r");
    char line[400] = "";
    while (f && fgets(line, sizeof line, f) && !strstr(line, "error"))
        ;
    snprintf(why, 512, "%.400s", line);
    if (f)
        fclose(f);
}

/* Stacks are the emulator's own, so locals are not watched. */
static const char *watching(void)
{
#if defined(__SANITIZE_ADDRESS__) && !defined(__clang__)
    return strstr(compiler(), "clang") ? "" : "-fsanitize=address --param asan-stack=0";
#else
    return "";
#endif
}

static bool is_watched(const char *options) { return strstr(options, "-fsanitize=") != NULL; }

/* How many bytes of `text` are the prelude that stands behind the first line of a header, and how many lines. */
static size_t known_prelude(const char *header, const char *text, size_t length, int *lines)
{
    FILE *f = fopen(header, "r");
    *lines = 0;
    if (!f)
        return 0;
    int c;
    do
        c = fgetc(f);
    while (c != '\n' && c != EOF);
    size_t n = 0;
    for (; (c = fgetc(f)) != EOF && n < length && text[n] == (char)c; n++)
        *lines += c == '\n';
    fclose(f);
    return c == EOF ? n : 0;
}

/* What is compiled with the tests: cuemu.h and the prelude (tests/CMakeLists.txt). */
void emu_write(FILE *f, const char *options, const char *name, const char *text, size_t length)
{
    char header[512];
    int lines;
    snprintf(header, sizeof header, "%s/emu/prelude%s%s.h", VWN_BINARY_DIR,
             strstr(options, "-DVWN_FEW_REGISTERS") ? "_few" : "", is_watched(options) ? "_watched" : "");
    size_t begun = known_prelude(header, text, length, &lines);
    if (!begun) {
        snprintf(header, sizeof header, "%s/tests/emu/cuemu.h", VWN_SOURCE_DIR);
        lines = 0;
    }
    fprintf(f, "#include \"%s\"\n#line %d \"%s\"\n", header, lines + 1, name);
    fwrite(text + begun, 1, length - begun, f);
}

/* Nothing is optimised: kernels run for less time than that takes. The emulator's own part is compiled with the tests, and so is its
 * header. */
bool emu_object(const char *source, const char *object, const char *log, const char *options)
{
    char command[2048];
    int n = snprintf(command, sizeof command,
                     "LC_ALL=C %s -O0 -std=gnu++17 -fno-omit-frame-pointer -w -ffp-contract=off -fno-strict-aliasing "
                     "-fno-threadsafe-statics -fPIC -DEMU_LINKED "
                     "-shared -nostdlib %s -o '%s' '%s' '%s/emu/%s.o' -lgcc > '%s' 2>&1",
                     compiler(), options, object, source, VWN_BINARY_DIR,
                     is_watched(options) ? "machine_watched" : "machine", log);
    return n < (int)sizeof command && system(command) == 0;
}

/* Threads ask for their number wherever it is used, as those of a kernel do that is short of registers; the fake driver runs texts as they
 * are written. */
static void *build(const char *prelude, size_t length, const EmuText *text, size_t n, bool watched, char why[512])
{
    static int number;
    char path[64], source[80], object[80], log[80], options[128];
    snprintf(options, sizeof options, "-DVWN_FEW_REGISTERS %s", watched ? watching() : "");
    snprintf(path, sizeof path, "/tmp/vwn_emu_%ld_%d", (long)getpid(), number++);
    snprintf(source, sizeof source, "%s.cc", path);
    snprintf(object, sizeof object, "%s.so", path);
    snprintf(log, sizeof log, "%s.log", path);
    void *handle = NULL;
    if (!write_source(source, options, prelude, length, text, n))
        snprintf(why, 512, "cannot write %s", source);
    else if (!emu_object(source, object, log, options))
        first_error(log, why);
    else if (!(handle = dlopen(object, RTLD_NOW | RTLD_LOCAL)))
        snprintf(why, 512, "%.400s", dlerror());
    if (!getenv("VWN_TEST_KEEP")) {
        unlink(source);
        unlink(object);
    }
    unlink(log);
    return handle;
}

static bool compile(const char *prelude, size_t length, const EmuText *text, size_t n, bool watched, EmuKernel *out,
                    char why[512])
{
    bool all = true;
    for (size_t i = 0; i < n; i++)
        all = all && find(text[i].name);
    void *handle = all ? NULL : build(prelude, length, text, n, watched, why);
    if (!all && !handle)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!find(text[i].name)) {
            char name[128];
            EmuKernel k = {NULL, dlsym(handle, "emu_run")};
            snprintf(name, sizeof name, "emu_call_%s", text[i].name);
            *(void **)&k.call = dlsym(handle, name);
            remember(text[i].name, k);
        }
        out[i] = *find(text[i].name);
    }
    return true;
}

bool emu_compile(const char *prelude, size_t length, const EmuText *text, size_t n, EmuKernel *out, char why[512])
{
    return compile(prelude, length, text, n, false, out, why);
}

bool emu_compile_watched(const char *prelude, size_t length, const EmuText *text, size_t n, EmuKernel *out,
                         char why[512])
{
    return compile(prelude, length, text, n, true, out, why);
}

const char *emu_map_make(emu_map *out, const LaunchMap *m, const void *memory)
{
    enum { BF16 = 9, FP16 = 6, TURNED = EMU_MAP_TURNED_128, L2 = 2 };
    uint64_t extent[MAP_RANK], stride[MAP_RANK];
    uint32_t one[MAP_RANK];
    for (int i = 0; i < MAP_RANK; i++)
        one[i] = 1;
    call_map(MAP_RANK, sizeof(uint16_t), m->extent, m->stride, extent, stride);
    return emu_map_encode(out, m->half == HALF_BF16 ? BF16 : FP16, MAP_RANK, memory, extent, stride + 1, m->box, one, 0,
                          TURNED, L2, 0);
}

const char *emu_launch(const EmuKernel *k, void **arguments, const EmuOptions *how, uint32_t blocks, uint32_t threads,
                       uint64_t shared)
{
    const char *(*run)(const EmuRun *);
    EmuRun launch = {.kernel = k->call,
                     .arguments = arguments,
                     .threads = threads,
                     .shared = shared,
                     .descending = how->descending,
                     .lazy = how->no_copies ? 2 : how->lazy,
                     .order = how->order};
    launch.blocks = how->blocks_max && blocks > how->blocks_max ? how->blocks_max : blocks;
    memcpy(&run, &k->object, sizeof run);
    return run(&launch);
}
