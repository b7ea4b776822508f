/* compiler.c - libnvrtc: CUDA text as a shared object of the emulator, in a file that looks like a cubin (image.h).
 *
 * The one idea: the text is compiled as C++ behind tests/emu/cuemu.h, by the host's compiler. What was compiled is kept
 * in the folder that FAKE_CUDA_CACHE names, by the hash of all that it was made of.
 */
#define _GNU_SOURCE
#include "fake.h"
#include "image.h"

#include "../emu/backend_emu.h"
#include "runtime/base/sha256.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FAKE_USE "/* a thread has %d values, %d bytes of arrays */"
enum { OPTIONS = 1024, KERNELS = 256, PATH = 512, SAVED_BY_LEVEL = 4, SAVED_BY_NUMBERS = 8, SAVED_BY_ROUNDS = 16 };

typedef struct Program {
    char *text, *name, *log, *cubin;
    size_t cubin_size;
    const void *handle;
} Program;
typedef struct Options {
    char given[OPTIONS]; /* to the host's compiler */
    int arch, only;
    int saved; /* registers: what is asked for takes so many less */
} Options;

static char *copy_of(const char *text)
{
    char *copy = malloc(strlen(text) + 1);
    return strcpy(copy, text);
}

static bool is(const char *text, const char *beginning) { return !strncmp(text, beginning, strlen(beginning)); }

/* ---- what the library is ---- */

static int version(int *major, int *minor)
{
    if (!major || !minor)
        return N_INPUT;
    *major = (int)(fake_settings()->compiler / 1000);
    *minor = (int)(fake_settings()->compiler % 1000 / 10);
    return N_OK;
}

FAKE_API int nvrtcVersion(int *major, int *minor)
{
    FAKE_CALL("nvrtcVersion", WITHOUT_LOCK, N_INTERNAL, version(major, minor));
}

/* Those behind 90 came with version 12.8. */
static const int architectures[] = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};
enum { ALL_ARCHITECTURES = sizeof architectures / sizeof *architectures, OLD_ARCHITECTURES = 7 };

static int n_architectures(void) { return fake_settings()->compiler >= 12080 ? ALL_ARCHITECTURES : OLD_ARCHITECTURES; }

static int count(int *n)
{
    if (!n)
        return N_INPUT;
    *n = n_architectures();
    return N_OK;
}

FAKE_API int nvrtcGetNumSupportedArchs(int *n)
{
    FAKE_CALL("nvrtcGetNumSupportedArchs", WITHOUT_LOCK, N_INTERNAL, count(n));
}

static int list(int *archs)
{
    if (!archs)
        return N_INPUT;
    memcpy(archs, architectures, (size_t)n_architectures() * sizeof *architectures);
    return N_OK;
}

FAKE_API int nvrtcGetSupportedArchs(int *archs)
{
    FAKE_CALL("nvrtcGetSupportedArchs", WITHOUT_LOCK, N_INTERNAL, list(archs));
}

FAKE_API const char *nvrtcGetErrorString(int error)
{
#define NAME(ours, value, theirs) {value, #theirs},
    static const struct {
        int value;
        const char *name;
    } known[] = {FAKE_NVRTC_NUMBERS(NAME)};
#undef NAME
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].value == error)
            return known[i].name;
    return "NVRTC_ERROR unknown";
}

/* ---- programs ---- */

static int create(const void **out, const char *text, const char *name, int headers)
{
    char why[512];
    if (!out || !text || headers < 0)
        return N_INPUT;
    if (headers)
        return fake_refuse(N_CREATION, "the fake takes no headers");
    if (!emu_possible(why))
        return fake_refuse(N_CREATION, "%.300s", why);
    Program *p = calloc(1, sizeof *p);
    p->text = copy_of(text);
    p->name = copy_of(name && *name ? name : "default_program");
    p->log = copy_of("");
    *out = p->handle = fake_handle(KIND_PROGRAM, p);
    fake_made(KIND_PROGRAM);
    return N_OK;
}

FAKE_API int nvrtcCreateProgram(const void **out, const char *text, const char *name, int headers,
                                const char *const *header, const char *const *include_name)
{
    (void)header, (void)include_name;
    FAKE_CALL("nvrtcCreateProgram", 0, N_CREATION, create(out, text, name, headers));
}

static int destroy(const void **handle, int error)
{
    Program *p = handle ? fake_object(KIND_PROGRAM, *handle) : NULL;
    if (!p)
        return error ? error : N_PROGRAM;
    fake_forget(KIND_PROGRAM, *handle);
    fake_given_back(KIND_PROGRAM);
    free(p->text);
    free(p->name);
    free(p->log);
    free(p->cubin);
    free(p);
    *handle = NULL;
    return error;
}

FAKE_API int nvrtcDestroyProgram(const void **handle)
{
    int error = fake_enter("nvrtcDestroyProgram", 0, N_PROGRAM);
    return fake_leave(destroy(handle, error));
}

static int size_of(const Program *p, size_t *out, size_t size)
{
    if (!p || !out)
        return p ? N_INPUT : N_PROGRAM;
    *out = size;
    return N_OK;
}

static int bytes_of(const Program *p, char *out, const char *bytes, size_t size)
{
    if (!p || !bytes)
        return N_PROGRAM;
    if (!out)
        return N_INPUT;
    memcpy(out, bytes, size);
    return N_OK;
}

FAKE_API int nvrtcGetProgramLogSize(const void *handle, size_t *n)
{
    int error = fake_enter("nvrtcGetProgramLogSize", 0, N_PROGRAM);
    const Program *p = fake_object(KIND_PROGRAM, handle);
    return fake_leave(error ? error : size_of(p, n, p ? strlen(p->log) + 1 : 0));
}

FAKE_API int nvrtcGetProgramLog(const void *handle, char *text)
{
    int error = fake_enter("nvrtcGetProgramLog", 0, N_PROGRAM);
    const Program *p = fake_object(KIND_PROGRAM, handle);
    return fake_leave(error ? error : bytes_of(p, text, p ? p->log : NULL, p ? strlen(p->log) + 1 : 0));
}

FAKE_API int nvrtcGetCUBINSize(const void *handle, size_t *n)
{
    int error = fake_enter("nvrtcGetCUBINSize", 0, N_PROGRAM);
    const Program *p = fake_object(KIND_PROGRAM, handle);
    return fake_leave(error ? error : size_of(p, n, p ? p->cubin_size : 0));
}

FAKE_API int nvrtcGetCUBIN(const void *handle, char *bytes)
{
    int error = fake_enter("nvrtcGetCUBIN", 0, N_PROGRAM);
    const Program *p = fake_object(KIND_PROGRAM, handle);
    return fake_leave(error ? error : bytes_of(p, bytes, p ? p->cubin : NULL, p ? p->cubin_size : 0));
}

/* ---- options ---- */

static bool read_arch(Options *o, const char *text)
{
    char *end;
    long number = is(text, "sm_") ? strtol(text + 3, &end, 10) : -1;
    for (int i = 0; i < n_architectures(); i++)
        if (architectures[i] == number) {
            o->arch = (int)number;
            o->only = *end == 'a';
            return !end[o->only];
        }
    return false;
}

/* What the host's compiler need not know, and what is asked of it: macros. */
static bool read_option(Options *o, const char *option)
{
    static const char *const without_effect[] = {
        "--minimal", "--std=c++17",          "-std=c++17",   "-default-device",  "--device-as-default-execution-space",
        "-lineinfo", "--generate-line-info", "--fmad=false", "--ptxas-options=", "--split-compile="};
    if (is(option, "--gpu-architecture="))
        return read_arch(o, strchr(option, '=') + 1);
    if (is(option, "-arch="))
        return read_arch(o, option + 6);
    for (size_t i = 0; i < sizeof without_effect / sizeof *without_effect; i++)
        if (is(option, without_effect[i])) {
            o->saved += is(option, "--ptxas-options=--register-usage-level=0") ? SAVED_BY_LEVEL : 0;
            return true;
        }
    o->saved += is(option, "-DVWN_FEW_REGISTERS") ? SAVED_BY_NUMBERS
                : is(option, "-DVWN_ONE_ROUND")   ? SAVED_BY_ROUNDS
                                                  : 0;
    size_t n = strlen(o->given);
    if (!is(option, "-D") ||
        option[2 + strspn(option + 2, "_=.ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")])
        return false;
    return snprintf(o->given + n, OPTIONS - n, " %s", option) < (int)(OPTIONS - n);
}

/* ---- kernels of a text ---- */

static const char *skip_space(const char *p)
{
    while (isspace((unsigned char)*p))
        p++;
    return p;
}

/* Behind the parenthesis that closes the one at p; what stands between them are numbers of threads and blocks, or 0. */
static const char *skip_bounds(const char *p, ImageKernel *k)
{
    int depth = 0;
    char *end;
    k->threads = (int)strtol(skip_space(p + 1), &end, 10);
    k->blocks = *end == ',' ? (int)strtol(end + 1, NULL, 10) : 0;
    do
        depth += (*p == '(') - (*p == ')');
    while (*p++ && depth);
    return p;
}

/* A kernel that begins at p, KERNEL(256) name( or extern "C" __global__ void [__launch_bounds__(256)] name(; else NULL.
 */
static const char *kernel_at(const char *p, ImageKernel *k)
{
    static const char bounds[] = "__launch_bounds__";
    k->threads = k->blocks = 0;
    if (is(p, "KERNEL(")) {
        p = skip_bounds(p + 6, k);
    } else if (is(p, "extern \"C\" __global__ ")) {
        p = skip_space(p + 22);
        p = is(p, "void") ? skip_space(p + 4) : p;
        if (is(p, bounds))
            p = skip_bounds(skip_space(p + strlen(bounds)), k);
        p = skip_space(p);
        p = is(p, "void") ? p + 4 : p;
    } else {
        return NULL;
    }
    p = skip_space(p);
    size_t n = 0;
    while (isalnum((unsigned char)p[n]) || p[n] == '_')
        n++;
    if (!n || n >= sizeof k->name)
        return NULL;
    memcpy(k->name, p, n);
    k->name[n] = 0;
    return p + n;
}

/* What a line above a kernel says of it: how many values a thread has at one time, and what of its arrays lies on
 * its stack. Values that have no register, by the threads and blocks of its bounds, are spilled. */
static void use_registers(ImageKernel *k, const char *said, int saved)
{
    const int left = emu_registers((k->threads ? k->threads : 128) * (k->blocks ? k->blocks : 1));
    int wanted;
    k->registers = IMAGE_REGISTERS;
    k->frame = k->spilled = 0;
    if (!said || sscanf(said, FAKE_USE, &wanted, &k->frame) != 2)
        return;
    wanted -= saved;
    k->registers = wanted < left ? wanted : left;
    k->spilled = wanted - k->registers < IMAGE_SPILLS ? wanted - k->registers : IMAGE_SPILLS;
    k->frame += 4 * k->spilled;
}

/* At the beginning of a line only: preludes define KERNEL, and comments may speak of it. */
static size_t find_kernels(const char *text, int saved, ImageKernel kernel[KERNELS])
{
    size_t n = 0;
    const char *said = NULL;
    for (const char *p = text; p && n < KERNELS; p = strchr(p, '\n')) {
        p += *p == '\n';
        if (kernel_at(p, &kernel[n]))
            use_registers(&kernel[n++], said, saved);
        said = is(p, "/* a thread has ") ? p : NULL;
    }
    return n;
}

/* ---- compiling ---- */

typedef struct Files {
    char source[PATH + 16], object[PATH + 16], log[PATH + 16];
} Files;

static bool write_source(const Program *p, const Options *o, const char *path, const ImageKernel *kernel, size_t n)
{
    FILE *f = fopen(path, "we");
    if (!f)
        return false;
    emu_write(f, o->given, p->name, p->text, strlen(p->text));
    fprintf(f, "\n");
    for (size_t i = 0; i < n; i++)
        fprintf(f, "EMU_EXPORT(%s)\n", kernel[i].name);
    return fclose(f) == 0;
}

static char *read_file(const char *path, size_t *size)
{
    FILE *f = fopen(path, "re");
    struct stat st;
    *size = 0;
    if (!f || fstat(fileno(f), &st)) {
        if (f)
            fclose(f);
        return NULL;
    }
    char *bytes = malloc((size_t)st.st_size + 1);
    *size = fread(bytes, 1, (size_t)st.st_size, f);
    bytes[*size] = 0;
    fclose(f);
    if (*size == (size_t)st.st_size)
        return bytes;
    free(bytes);
    return NULL;
}

/* The host's compiler and NVRTC say this in other words, of which the latter are those that people search for. */
static void say_as_nvrtc(const char *text, char out[512])
{
    static const char *const undefined[] = {"' was not declared in this scope", "' does not name a type"};
    const char *name = strchr(text, '\''), *end = name ? strchr(name + 1, '\'') : NULL;
    snprintf(out, 512, "%s", text);
    for (size_t i = 0; end && i < sizeof undefined / sizeof *undefined; i++)
        if (is(end, undefined[i]))
            snprintf(out, 512, "identifier \"%.*s\" is undefined", (int)(end - name - 1), name + 1);
}

/* "k_1:7:13: error: text" becomes "k_1(7): error: text"; other lines are left out. */
static void keep_errors(Program *p, char *log)
{
    static const char mark[] = " error: ";
    size_t size = 2 * strlen(log) + 256, at = 0, errors = 0;
    char *out = calloc(1, size), *rest, said[512];
    for (char *line = strtok_r(log, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        const char *error = strstr(line, mark), *colon = strchr(line, ':');
        if (!error || !colon || colon > error)
            continue;
        errors++;
        say_as_nvrtc(error + strlen(mark), said);
        at += (size_t)snprintf(out + at, size - at, "%.*s(%ld):%s%s\n", (int)(colon - line), line,
                               strtol(colon + 1, NULL, 10), mark, said);
    }
    snprintf(out + at, size - at, "\n%zu error%s detected in the compilation of \"%s\".\n", errors,
             errors == 1 ? "" : "s", p->name);
    free(p->log);
    p->log = out;
}

static int compile_object(Program *p, const Options *o, const Files *f, const ImageKernel *kernel, size_t n)
{
    size_t size;
    if (!write_source(p, o, f->source, kernel, n))
        return N_INTERNAL;
    bool good = emu_object(f->source, f->object, f->log, o->given);
    if (!good) {
        char *log = read_file(f->log, &size);
        keep_errors(p, log ? log : (char[1]){0});
        free(log);
    }
    unlink(f->source);
    unlink(f->log);
    return good ? N_OK : N_COMPILATION;
}

/* The name that an object of this program has in the cache. */
static void hash(const Program *p, const Options *o, char hex[65])
{
    Sha256 s;
    sha256_start(&s);
    sha256_add_string(&s, FAKE_EMULATOR, strlen(FAKE_EMULATOR));
    sha256_add_string(&s, p->name, strlen(p->name));
    sha256_add_string(&s, p->text, strlen(p->text));
    sha256_add_string(&s, o->given, strlen(o->given));
    sha256_hex(&s, hex);
}

/* Files that no other thread or process writes; `kept` is "" where there is no cache. */
static void name_files(const char *hex, Files *f, char kept[PATH + 80])
{
    static unsigned number;
    const char *folder = getenv("FAKE_CUDA_CACHE"), *temporary = getenv("TMPDIR");
    char base[PATH];
    kept[0] = 0;
    if (folder && *folder) {
        mkdir(folder, 0777);
        snprintf(kept, PATH + 80, "%.400s/%s.so", folder, hex);
    }
    temporary = temporary && *temporary ? temporary : "/tmp";
    snprintf(base, sizeof base, "%.400s/%.20s_%ld_%u", kept[0] ? folder : temporary, hex, (long)getpid(),
             __atomic_fetch_add(&number, 1, __ATOMIC_RELAXED));
    snprintf(f->source, sizeof f->source, "%s.cc", base);
    snprintf(f->object, sizeof f->object, "%s.so", base);
    snprintf(f->log, sizeof f->log, "%s.log", base);
}

static char *object_of(Program *p, const Options *o, const ImageKernel *kernel, size_t n, size_t *size, int *error)
{
    Files f;
    char hex[65], kept[PATH + 80];
    hash(p, o, hex);
    name_files(hex, &f, kept);
    char *object = kept[0] ? read_file(kept, size) : NULL;
    *error = N_OK;
    if (object)
        return object;
    *error = compile_object(p, o, &f, kernel, n);
    if (*error)
        return NULL;
    object = read_file(f.object, size);
    if (!kept[0] || rename(f.object, kept))
        unlink(f.object);
    *error = object ? N_OK : N_INTERNAL;
    return object;
}

static int compile(Program *p, int n, const char *const *option)
{
    Options o = {.arch = 75, .given = "-Wl,-Bsymbolic"}; /* a kernel may be named like a function of the C library */
    ImageKernel *kernel = calloc(KERNELS, sizeof *kernel);
    size_t size;
    int error = p ? N_OK : N_PROGRAM;
    for (int i = 0; i < n && !error; i++)
        if (!read_option(&o, option[i]))
            error = fake_refuse(N_OPTION, "%.200s", option[i]);
    size_t kernels = error ? 0 : find_kernels(p->text, o.saved, kernel);
    char *object = error ? NULL : object_of(p, &o, kernel, kernels, &size, &error);
    if (object) {
        Image im = {.arch = o.arch,
                    .only = o.only,
                    .version = (int)(fake_settings()->compiler / 1000),
                    .kernel = kernel,
                    .n = kernels,
                    .object = object,
                    .size = size};
        free(p->cubin);
        p->cubin = image_write(&im, &p->cubin_size);
    }
    free(object);
    free(kernel);
    return error;
}

FAKE_API int nvrtcCompileProgram(const void *handle, int n, const char *const *option)
{
    /* A program is used by one thread; the table of handles is not. */
    int error = fake_enter("nvrtcCompileProgram", WITHOUT_LOCK, N_COMPILATION);
    return fake_leave(error ? error : compile(fake_object_locked(KIND_PROGRAM, handle), n, option));
}
