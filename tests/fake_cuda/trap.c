/* trap.c - work that touches what is no memory ends as a device ends it: with an error, not with the process. */
#define _GNU_SOURCE
#include "fake.h"

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { STACK = 1 << 16 };

static __thread sigjmp_buf *back;
static __thread uint64_t touched;
static struct sigaction before[2]; /* of SIGSEGV, SIGBUS */
static bool watching;

static void caught(int signal, siginfo_t *info, void *context)
{
    char text[320], where[128];
    (void)context;
    touched = (uint64_t)(uintptr_t)info->si_addr;
    if (back)
        siglongjmp(*back, 1);
    if (fake_is_device(touched)) {
        int n = snprintf(text, sizeof text, "fake CUDA: mistake: the host touches memory of the device, %s\n",
                         fake_where(touched, where));
        if (write(2, text, (size_t)n) < 0)
            abort();
    }
    /* The instruction is tried again, and meets whoever was asked before. */
    sigaction(signal, &before[signal == SIGBUS], NULL);
}

void fake_watch_host(void)
{
    struct sigaction a = {.sa_sigaction = caught, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    if (watching)
        return;
    watching = true;
    sigemptyset(&a.sa_mask);
    sigaction(SIGSEGV, &a, &before[0]);
    sigaction(SIGBUS, &a, &before[1]);
}

/* Kernels run on stacks of the emulator, of which a broken one may have used all. */
static void have_stack(void)
{
    static __thread char *stack;
    stack_t now;
    if (stack || sigaltstack(NULL, &now) || !(now.ss_flags & SS_DISABLE))
        return;
    stack = malloc(STACK);
    fake_bury(stack);
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = STACK}, NULL);
}

int fake_guarded(int (*run)(void *data, char why[256]), void *data, char why[256])
{
    sigjmp_buf here;
    volatile int error = E_ADDRESS;
    char where[128];
    fake_watch_host();
    have_stack();
    if (!sigsetjmp(here, 1)) {
        back = &here;
        error = run(data, why);
    } else {
        snprintf(why, 256, "it touches %s", fake_where(touched, where));
    }
    back = NULL;
    return error;
}
