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
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int64_t milliseconds(void) { return (int64_t)(1e3 * ui_seconds()); }

void interrupt_steps(Call *call, int64_t steps)
{
    int64_t t = milliseconds();
    if (steps > 0)
        call->step_took = (t - call->step_began) / steps;
    call->step_began = t;
}

/* What the first signal says. A step that takes long is told with its time: the last one's, or that of the first one so far. */
static size_t say(const Call *call, char text[200])
{
    enum { LONG = 1000 };
    char time[48], how_long[80] = "";
    int64_t took = call->step_took, so_far = call->step_began ? milliseconds() - call->step_began : 0;
    int64_t seconds = ((took > so_far ? took : so_far) + 500) / 1000;
    bool minutes = seconds >= 120;
    snprintf(time, sizeof time, "%lld %s", (long long)(minutes ? (seconds + 30) / 60 : seconds), minutes ? "min" : "s");
    if (took >= LONG && took >= so_far)
        snprintf(how_long, sizeof how_long, ", which takes %s", time);
    else if (so_far >= LONG)
        snprintf(how_long, sizeof how_long, ", which has taken %s so far", time);
    return (size_t)snprintf(text, 200, "\ninterrupted: finishing this step%s; a second signal stops at once\n",
                            how_long);
}

static void *watch(void *user)
{
    Call *call = user;
    char text[200];
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
        if (write(STDERR_FILENO, text, say(call, text)) < 0)
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
