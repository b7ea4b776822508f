/* hand.c - see hand.h. */
#include "hand.h"

enum { SKIPPED = 77, LOG_PATH = 128 };

/* Cases end where they end: what they took from malloc is nobody's concern. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "detect_leaks=0"; }

Hand cu;
Handle hand_module;
static char log_path[LOG_PATH];

void hand_expect(bool truth, const char *text, const char *file, int line)
{
    if (truth)
        return;
    printf("    %s:%d: not so: %s\n", file, line, text);
    fflush(stdout);
    _exit(1);
}

void hand_gives(int error, int result, const char *text, const char *file, int line)
{
    if (error == result)
        return;
    printf("    %s:%d: %d instead of %d from %s\n", file, line, result, error, text);
    fflush(stdout);
    _exit(1);
}

static void open_library(CudaLibrary which, const CudaFunction *wanted, size_t n)
{
    char path[CUDA_PATH_SIZE], why[512];
    void *library = cuda_library(which, path, why);
    if (!library || !cuda_functions(library, wanted, n, why)) {
        printf("    %s\n", why);
        exit(1);
    }
}

void hand_open(void)
{
#define WANTED(name, arguments) {#name, &cu.name},
    static const CudaFunction driver[] = {DRIVER_FUNCTIONS(WANTED)}, nvrtc[] = {NVRTC_FUNCTIONS(WANTED)},
                              blas[] = {BLAS_FUNCTIONS(WANTED)};
#undef WANTED
    open_library(CUDA_DRIVER, driver, COUNT_OF(driver));
    open_library(CUDA_NVRTC, nvrtc, COUNT_OF(nvrtc));
    open_library(CUDA_BLASLT, blas, COUNT_OF(blas));
}

void hand_start(void)
{
    Handle context;
    hand_open();
    GOOD(cu.cuInit(0));
    GOOD(cu.cuDevicePrimaryCtxRetain(&context, 0));
    GOOD(cu.cuCtxSetCurrent(context));
}

Handle hand_stream(void)
{
    Handle s;
    GOOD(cu.cuStreamCreate(&s, STREAM_NON_BLOCKING));
    return s;
}

Handle hand_event(void)
{
    Handle e;
    GOOD(cu.cuEventCreate(&e, EVENT_NO_TIMING));
    return e;
}

uint64_t hand_memory(size_t bytes)
{
    uint64_t at;
    GOOD(cu.cuMemAlloc_v2(&at, bytes));
    return at;
}

float *hand_pinned(size_t n)
{
    void *at;
    GOOD(cu.cuMemHostAlloc(&at, n * sizeof(float), 0));
    return at;
}

void *hand_cubin(const char *text)
{
    static const char *const options[] = {"--minimal", "--std=c++17", "--gpu-architecture=sm_90a"};
    Handle program;
    size_t size;
    GOOD(cu.nvrtcCreateProgram(&program, text, "hand", 0, NULL, NULL));
    int error = cu.nvrtcCompileProgram(program, (int)COUNT_OF(options), options);
    GOOD(cu.nvrtcGetProgramLogSize(program, &size));
    char *log = malloc(size);
    GOOD(cu.nvrtcGetProgramLog(program, log));
    if (error)
        printf("    %s\n", log);
    GIVES(0, error);
    free(log);
    GOOD(cu.nvrtcGetCUBINSize(program, &size));
    void *cubin = malloc(size);
    GOOD(cu.nvrtcGetCUBIN(program, cubin));
    GOOD(cu.nvrtcDestroyProgram(&program));
    return cubin;
}

Handle hand_function(const char *text, const char *name)
{
    Handle function;
    void *cubin = hand_cubin(text);
    GOOD(cu.cuModuleLoadData(&hand_module, cubin));
    free(cubin);
    GOOD(cu.cuModuleGetFunction(&function, hand_module, name));
    return function;
}

void hand_read(uint64_t from, float *to, size_t n, Handle stream)
{
    GOOD(cu.cuCtxSynchronize());
    GOOD(cu.cuMemcpyDtoHAsync_v2(to, from, n * sizeof *to, stream));
}

long hand_logged(const char *path, const char *what)
{
    FILE *f = fopen(path, "r");
    char line[1024];
    long n = -1;
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, what, strlen(what)) && line[strlen(what)] == ' ')
            n = strtol(line + strlen(what), NULL, 10);
    if (f)
        fclose(f);
    return n;
}

/* ---- cases ---- */

static void set_environment(const char *text)
{
    char copy[256];
    snprintf(copy, sizeof copy, "%s", text);
    for (char *one = strtok(copy, ";"); one; one = strtok(NULL, ";")) {
        char *value = strchr(one, '=');
        *value = 0;
        setenv(one, value + 1, 1);
    }
}

/* A stop by a signal is told from a status by its sign. */
static int run_case(const Case *c)
{
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        set_environment(c->environment);
        c->run();
        exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0)
        return -1000;
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static bool wanted(int argc, char **argv, const char *name)
{
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], name))
            return true;
    return argc < 2;
}

int hand_run(int argc, char **argv, const Case *of, size_t n)
{
    size_t failed = 0, ran = 0;
    char cache[CUDA_PATH_SIZE];
    if (system("command -v ${CXX:-g++} > /dev/null 2>&1") != 0) {
        printf("skipped: no C++ compiler: set CXX, or install g++\n");
        return SKIPPED;
    }
    snprintf(log_path, sizeof log_path, "calls.log");
    snprintf(cache, sizeof cache, "%s_cache", FAKE_CUDA);
    setenv("VWN_CUDA_LIBRARIES", FAKE_CUDA, 1);
    setenv("FAKE_CUDA_CACHE", cache, 1);
    setenv("FAKE_CUDA_LOG", log_path, 1);
    for (size_t i = 0; i < n; i++) {
        if (!wanted(argc, argv, of[i].name))
            continue;
        ran++;
        printf("%s\n", of[i].name);
        int end = run_case(&of[i]);
        if (end == of[i].end)
            continue;
        printf("    it ends with %d instead of %d\n", end, of[i].end);
        failed++;
    }
    printf("%zu of %zu cases failed\n", failed, ran);
    return failed || !ran;
}
