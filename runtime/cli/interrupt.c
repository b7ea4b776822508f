/* interrupt.c - Ctrl-C: the first asks the run to stop, the second stops the program.
 *
 * In:  SIGINT, SIGTERM, and SIGHUP of a terminal that closes.   Out: vwn_interrupt, or exit status
 * 130 at once.
 * The one idea: a thread of its own waits for the signals, which are blocked in all others.
 * Libraries of matrix products use the stack pointer for data inside their kernels, so that a
 * handler that runs on a computing thread would write its frame over their memory.
 */
#include "cli.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static void *watch(void *user)
{
    static const char text[] = "\ninterrupted: finishing this step; once more to stop at once\n";
    Call *call = user;
    siginfo_t from;
    bool asked[2] = {false, false}; /* by whom: the parent passes on what may have come here, too, as from a terminal */
    for (;;) {
        int signal_number = sigwaitinfo(&call->signals, &from);
        if (call->stop_watching || (signal_number < 0 && errno != EINTR))
            break;
        if (signal_number < 0)
            continue;
        bool by_parent = from.si_code == SI_USER && from.si_pid == getppid(), first = !asked[0] && !asked[1];
        if (!first && signal_number == SIGHUP)
            continue; /* of one terminal: the shell and the system both send it */
        if (asked[by_parent])
            _exit(VWN_INTERRUPTED);
        asked[by_parent] = true;
        if (!first)
            continue;
        signal(SIGHUP, SIG_IGN); /* nor does one that waits when this thread ends kill the program */
        vwn_interrupt(call->ctx);
        if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
            continue; /* nobody reads it: the run stops all the same */
    }
    return NULL;
}

void interrupt_start(Call *call)
{
    static const int if_heard[] = {SIGINT, SIGHUP}; /* a job in the background, nohup */
    struct sigaction before;
    sigemptyset(&call->signals);
    sigaddset(&call->signals, SIGTERM);
    for (int i = 0; i < 2; i++)
        if (sigaction(if_heard[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaddset(&call->signals, if_heard[i]);
    pthread_sigmask(SIG_BLOCK, &call->signals, NULL);
    call->stop_watching = false;
    call->watching = pthread_create(&call->watcher, NULL, watch, call) == 0;
    if (!call->watching) /* then a signal ends the program, as everywhere else */
        pthread_sigmask(SIG_UNBLOCK, &call->signals, NULL);
}

void interrupt_stop(Call *call)
{
    if (!call->watching)
        return;
    call->stop_watching = true;
    pthread_kill(call->watcher, SIGTERM); /* pthread_cancel would load a library, which may not fit */
    pthread_join(call->watcher, NULL);
    call->watching = false;
    pthread_sigmask(SIG_UNBLOCK, &call->signals, NULL);
}
