/* fake.h - what the fake libraries of CUDA share: settings, the record of calls, memory of the device, queues.
 *
 * In:  the environment (README.md), calls of the three libraries.
 * Out: results that a device could have given, and errors where a call breaks a rule.
 * The one idea: a device promises little. Work that is handed over runs when something waits for it, in any order
 * that streams and events allow, so what relies on more gives other numbers here.
 *
 * One lock is held from fake_enter() to fake_leave(); all that is declared below them is called under it.
 */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include "abi.h"

#define FAKE_API __attribute__((visibility("default")))

/* ---- settings.c ---- */

typedef enum FakeOrder { ORDER_LATE, ORDER_ISSUED, ORDER_EAGER, ORDER_SHUFFLED } FakeOrder;
typedef enum FakeAlgorithms { ALGORITHMS_ALL, ALGORITHMS_ROWS, ALGORITHMS_NONE } FakeAlgorithms;
typedef enum FakeBlocks { BLOCKS_ASCENDING, BLOCKS_DESCENDING, BLOCKS_SHUFFLED } FakeBlocks;
typedef struct FakeSettings {
    FakeOrder order;
    FakeBlocks blocks;
    FakeAlgorithms algorithms; /* of which matrices there are any */
    char name[64];
    const char *hangs;  /* a kernel that never ends, or "" */
    long memory, taken; /* MiB: all, and what other processes have */
    long capability, sms, driver, compiler, devices, heuristic;
} FakeSettings;
const FakeSettings *fake_settings(void); /* a setting that cannot be read ends the process */
uint64_t fake_random(void);

/* ---- calls.c ---- */

enum {
    NEEDS_INIT = 1,
    NEEDS_CONTEXT = 2, /* current in this thread, and not lost */
    UNSAFE = 4,        /* not while a stream is captured */
    OF_BLAS = 8,       /* its errors are those of cuBLASLt */
    WITHOUT_LOCK = 16, /* what it does takes long and touches nothing that is shared */
};
/* A call begins: 0, or the error that it gives. `typical`: its error when the environment lets it fail. */
int fake_enter(const char *name, unsigned rules, int typical);
int fake_leave(int result);
/* libcuda says what NEEDS_INIT and NEEDS_CONTEXT mean: 0, or an error. */
void fake_set_rules(int (*rules)(unsigned));
#define FAKE_CALL(name, rules, typical, body)                                                                          \
    do {                                                                                                               \
        int error_ = fake_enter(name, rules, typical);                                                                 \
        return fake_leave(error_ ? error_ : (body));                                                                   \
    } while (0)
/* Added to the line of the call that goes on. */
void fake_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A line of its own, and on stderr: nothing that a device would stop, but no right program does it. */
void fake_mistake(const char *format, ...) __attribute__((format(printf, 1, 2)));
void fake_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A call that fails with a rule of its own says which. */
int fake_refuse(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *fake_error_name(int error);

/* Whatever is made and has to be given back. */
typedef enum FakeKind {
    KIND_CONTEXT,
    KIND_ALLOCATION,
    KIND_PINNED,
    KIND_MODULE,
    KIND_FUNCTION,
    KIND_STREAM,
    KIND_EVENT,
    KIND_GRAPH,
    KIND_EXEC,
    KIND_PROGRAM,
    KIND_BLAS,
    KIND_DESCRIPTOR,
    KINDS
} FakeKind;
void fake_made(FakeKind kind);
void fake_given_back(FakeKind kind);

/* Handles that no caller can look into; an object is found as long as its handle is good. */
void *fake_handle(FakeKind kind, void *object);
void *fake_object(FakeKind kind, const void *handle);        /* NULL: foreign, or given back */
void *fake_object_locked(FakeKind kind, const void *handle); /* for a call WITHOUT_LOCK */
void fake_forget(FakeKind kind, const void *handle);
void fake_forget_all(FakeKind kind);
void fake_bury(void *object); /* work may still refer to it: it is kept until the process ends, and no leak */

/* ---- memory.c ---- */

uint64_t fake_alloc(size_t bytes); /* 0: there is not so much */
bool fake_free(uint64_t at);
void *fake_pin(size_t bytes);
bool fake_unpin(void *at);
void fake_memory_end(void);                     /* all of it is freed */
bool fake_is_device(uint64_t at);               /* an address of the device's range, given out or not */
bool fake_holds(uint64_t at, uint64_t bytes);   /* inside one allocation */
bool fake_pinned(const void *at, size_t bytes); /* inside memory of fake_pin() */
size_t fake_memory_free(void);
void fake_memory_open(void);                         /* the host can reach the device's memory */
bool fake_memory_close(void);                        /* no more; false: something wrote beside an allocation */
const char *fake_where(uint64_t at, char text[128]); /* for messages */

/* ---- trap.c ---- */

/* run(data); E_ADDRESS with `why` where it touches what is no memory. */
int fake_guarded(int (*run)(void *data, char why[256]), void *data, char why[256]);
void fake_watch_host(void); /* says what it was when the host touches the device's memory */

/* ---- queue.c ---- */

typedef struct FakeWork {
    const char *what;                      /* for messages */
    int (*run)(void *data, char why[256]); /* 0, or the error that the context is lost with */
    void (*drop)(void *data);
    void *data;
    const void *event; /* instead of all that: it happens then */
} FakeWork;
typedef struct FakeStream FakeStream;
typedef struct FakeEvent FakeEvent;
typedef struct FakeGraph FakeGraph;

int fake_stream(const void *handle, FakeStream **out); /* E_OK, or why it is none that work can be put in */
int fake_enqueue(FakeStream *s, FakeWork work);        /* takes the data in any case */
/* The same for memory that the host need not keep: when it captures, false. */
bool fake_capturing(const FakeStream *s);
int fake_wait_stream(FakeStream *s);
int fake_wait_all(void);
int fake_lost(void); /* the error that the context is lost with, or 0 */
void fake_lose(int error);
void fake_ended(void); /* the context ends: nothing is queued; what was lost stays lost, as long as the process */
int fake_capture_forbids(void);

#endif
