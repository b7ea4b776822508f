/* launch.c - `vwn launch`: several processes of this machine that train one model.
 *
 * In:  a number, and the words of a `vwn train` or `vwn resume`.   Out: what the first of them prints, and its status.
 * The one idea: processes find each other by variables of the environment, as those do that torchrun, srun or mpirun starts. So
 * this verb only starts them, passes signals on, and says who was killed.
 */
#define _GNU_SOURCE
#include "runtime/cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_RANKS = 1024, GRACE_SECONDS = 5, WRITING_SECONDS = 60 };

typedef struct LaunchGroup {
    Call *call;
    int64_t n;
    char folder[64]; /* of the sockets */
    char secret[65];
    pid_t *pid;     /* 0: has ended */
    int *status;    /* of those that have */
    bool *ended;    /* by this program, as they did not end by themselves */
    bool silent;    /* their results go nowhere */
    bool asked;     /* somebody has asked all of them to stop */
    sigset_t heard; /* what is blocked when nothing is started */
} LaunchGroup;

static volatile sig_atomic_t caught;
static void on_signal(int signal) { caught = signal; }

/* What is passed on; those that a shell, or nohup, has this program ignore stay ignored, in the ranks, too. */
static const int passed_on[] = {SIGTERM, SIGINT, SIGHUP};

static void listen_to_signals(void)
{
    const struct sigaction act = {.sa_handler = on_signal};
    struct sigaction before;
    for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++)
        if (sigaction(passed_on[i], NULL, &before) == 0 && (before.sa_handler != SIG_IGN || passed_on[i] == SIGTERM))
            sigaction(passed_on[i], &act, NULL);
}

static void set_number(const char *name, int64_t x)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)x);
    setenv(name, text, 1);
}

/* In the new process; comes back only where it cannot be. */
static void become_rank(const LaunchGroup *l, int64_t rank, pid_t parent, char **argv)
{
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* who starts them may be killed */
    if (getppid() != parent)
        _exit(VWN_INTERRUPTED);
    struct sigaction now;
    for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++)
        if (sigaction(passed_on[i], NULL, &now) == 0 && now.sa_handler == on_signal)
            signal(passed_on[i], SIG_DFL);
    sigprocmask(SIG_SETMASK, &l->heard, NULL); /* what came meanwhile ends it */
    set_number("RANK", rank);
    set_number("LOCAL_RANK", rank);
    set_number("WORLD_SIZE", l->n);
    set_number("LOCAL_WORLD_SIZE", l->n);
    setenv("VWN_SOCKETS", l->folder, 1);
    setenv("VWN_SECRET", l->secret, 1);
    int nothing = rank ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
    if (nothing >= 0)
        dup2(nothing, 0);
    int nowhere = l->silent ? open("/dev/null", O_WRONLY | O_CLOEXEC) : -1;
    if (nowhere >= 0)
        dup2(nowhere, 1);
    execv("/proc/self/exe", argv);
}

static bool start(LaunchGroup *l, char **argv)
{
    unsigned char secret[32];
    const char *temporary = getenv("TMPDIR");
    snprintf(l->folder, sizeof l->folder, "%s/vwn-ranks-XXXXXX",
             temporary && strlen(temporary) < 30 ? temporary : "/tmp");
    if (getrandom(secret, sizeof secret, 0) != sizeof secret || !mkdtemp(l->folder)) {
        ui_error(&l->call->ui, "no folder for sockets in %s: %s", l->folder, strerror(errno));
        l->folder[0] = 0;
        return false;
    }
    for (size_t i = 0; i < sizeof secret; i++)
        snprintf(l->secret + 2 * i, 3, "%02x", secret[i]);
    pid_t self = getpid();
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &l->heard); /* the handler is for this process alone */
    bool fine = true;
    for (int64_t i = 0; fine && i < l->n; i++) {
        l->pid[i] = fork();
        if (l->pid[i] == 0) {
            become_rank(l, i, self, argv);
            fprintf(stderr, "error: process %lld of vwn could not be started: %s\n", (long long)i, strerror(errno));
            _exit(VWN_ENVIRONMENT);
        }
        if (l->pid[i] > 0)
            continue;
        ui_error(&l->call->ui, "process %lld of %lld could not be started: %s", (long long)i, (long long)l->n,
                 strerror(errno));
        l->pid[i] = 0;
        fine = false;
    }
    sigprocmask(SIG_SETMASK, &l->heard, NULL);
    return fine;
}

static void signal_all(const LaunchGroup *l, int signal)
{
    for (int64_t i = 0; i < l->n; i++)
        if (l->pid[i] > 0)
            kill(l->pid[i], signal);
}

/* Others go on after one has failed: after a while in which they say why they are ended. One of them may be writing a checkpoint. */
static void end_all(LaunchGroup *l, bool at_once)
{
    for (int64_t i = 0; i < l->n; i++)
        l->ended[i] |= l->pid[i] > 0;
    signal_all(l, at_once ? SIGKILL : SIGTERM);
    signal_all(l, SIGCONT); /* one that is stopped hears nothing else */
}

static bool has_failed(int status)
{
    return !WIFEXITED(status) || (WEXITSTATUS(status) != VWN_OK && WEXITSTATUS(status) != VWN_INTERRUPTED);
}

/* Waits for the end of all. */
static void wait_for_all(LaunchGroup *l)
{
    double failed_at = 0;
    bool told = false;
    for (int64_t left = l->n; left > 0;) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid == 0 || (pid < 0 && errno == EINTR)) {
            if (caught) { /* one of them tells the others */
                signal_all(l, caught == SIGINT ? SIGINT : SIGTERM);
                l->asked = true;
            }
            caught = 0;
            if (failed_at > 0 && ui_seconds() - failed_at > (told ? WRITING_SECONDS : GRACE_SECONDS)) {
                end_all(l, told);
                failed_at = ui_seconds();
                told = true;
            }
            nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
            continue;
        }
        if (pid < 0)
            break;
        for (int64_t i = 0; i < l->n; i++) {
            if (l->pid[i] != pid)
                continue;
            l->pid[i] = 0;
            l->status[i] = status;
            left--;
            if (has_failed(status) && failed_at <= 0)
                failed_at = ui_seconds();
        }
    }
}

/* Who was killed is said here, since nobody else may. The status of the first that has another than 0; *broken: a process was killed,
 * or did not end, so that it may go better the next time. Those that were asked to stop before they could listen are killed by that. */
static int outcome(const LaunchGroup *l, bool *broken)
{
    int result = VWN_OK;
    bool said = false;
    *broken = false;
    for (int64_t i = 0; i < l->n; i++) {
        int s = l->status[i];
        bool obeyed = l->asked && (WIFSIGNALED(s) ? WTERMSIG(s) == SIGTERM || WTERMSIG(s) == SIGINT
                                                  : WEXITSTATUS(s) == VWN_INTERRUPTED);
        *broken |= (WIFSIGNALED(s) || l->ended[i]) && !l->asked;
        if (obeyed)
            result = VWN_INTERRUPTED;
        if (WIFSIGNALED(s) && !obeyed && !l->ended[i] && !said) {
            ui_error(&l->call->ui, "rank %lld of %lld was ended by signal %d (%s)", (long long)i, (long long)l->n,
                     WTERMSIG(s), strsignal(WTERMSIG(s)));
            said = true;
        }
        if (result != VWN_OK || !WIFEXITED(s))
            continue;
        result = WEXITSTATUS(s);
        if (i && result != VWN_OK && !said) /* those before have ended well, and it is silent itself */
            ui_error(&l->call->ui, "rank %lld of %lld ended with status %d", (long long)i, (long long)l->n, result);
    }
    return *broken ? VWN_ENVIRONMENT : result;
}

static void clean(LaunchGroup *l)
{
    char path[128];
    for (int64_t i = 0; l->folder[0] && i < l->n; i++) {
        snprintf(path, sizeof path, "%s/%lld", l->folder, (long long)i);
        unlink(path);
    }
    if (l->folder[0])
        rmdir(l->folder);
}

static int once(LaunchGroup *l, char **argv, bool *broken)
{
    memset(l->ended, 0, (size_t)l->n * sizeof *l->ended);
    *broken = false;
    bool fine = start(l, argv);
    if (!fine)
        signal_all(l, SIGTERM);
    wait_for_all(l);
    clean(l);
    return fine ? outcome(l, broken) : VWN_ENVIRONMENT;
}

static bool open_group(LaunchGroup *l)
{
    l->pid = calloc((size_t)l->n, sizeof *l->pid);
    l->status = calloc((size_t)l->n, sizeof *l->status);
    l->ended = calloc((size_t)l->n, sizeof *l->ended);
    if (l->pid && l->status && l->ended)
        listen_to_signals();
    else
        ui_error(&l->call->ui, "out of memory");
    return l->pid && l->status && l->ended;
}

static void close_group(LaunchGroup *l)
{
    free(l->pid);
    free(l->status);
    free(l->ended);
}

int call_launch(Call *call, int64_t n, char **argv, bool silent)
{
    LaunchGroup l = {.call = call, .n = n, .silent = silent};
    bool broken;
    int result = open_group(&l) ? once(&l, argv, &broken) : VWN_ENVIRONMENT;
    close_group(&l);
    return result;
}

static bool is_there(const Call *call, const char *word)
{
    for (int i = 1; i < call->n_operands; i++)
        if (!strcmp(call->operand[i], word))
            return true;
    return false;
}

static int run(Call *call)
{
    LaunchGroup l = {.call = call, .n = 0};
    int64_t restarts = 0;
    const char *verb = call->operand[0];
    if (strcmp(verb, "train") != 0 && strcmp(verb, "resume") != 0)
        return usage_error(
            call, "`vwn launch` starts `train` or `resume`, and `%s` is neither: vwn launch -n 4 train FILE", verb);
    if (!call_whole(call, "-n", 1, MOST_RANKS, &l.n) || !call_whole(call, "--restarts", 0, 1000, &restarts))
        return VWN_USAGE;
    if (!l.n)
        return usage_error(call, "how many processes? vwn launch -n 4 %s ...", verb);
    if (is_there(call, "-"))
        return usage_error(call, "only one process can read `-`: name a file");
    if (restarts && is_there(call, "--overwrite"))
        return usage_error(call,
                           "`--restarts` goes on with what is there, and `--overwrite` removes it: remove the run "
                           "with `vwn runs rm` first");
    char **argv = calloc((size_t)call->n_operands + 3, sizeof *argv);
    int result = VWN_ENVIRONMENT;
    if (!argv)
        ui_error(&call->ui, "out of memory");
    else if (open_group(&l)) {
        argv[0] = "vwn";
        for (int i = 0; i < call->n_operands; i++)
            argv[i + 1] = (char *)call->operand[i];
        bool broken = false;
        result = once(&l, argv, &broken);
        for (int64_t i = 0; i < restarts && broken; i++) {
            ui_say(&call->ui, "Restarting", "%lld of %lld times", (long long)i + 1, (long long)restarts);
            if (i == 0 && !strcmp(verb, "train") && !is_there(call, "--resume")) {
                memmove(argv + 3, argv + 2, (size_t)(call->n_operands - 1) * sizeof *argv);
                argv[2] = "--resume";
                setenv(LAUNCH_RESTARTED, "1", 1);
            }
            result = once(&l, argv, &broken);
        }
    }
    free(argv);
    close_group(&l);
    return result;
}

static const Flag flags[] = {
    {"-n", "4", "how many processes"},
    {"--restarts", "3", "go on from the last checkpoint when a process was killed or is silent, so many times"},
};

const Verb verb_launch = {
    .name = "launch",
    .operands = "train FILE ...",
    .summary = "Trains one model with several processes of this machine",
    .example = {{"vwn launch -n 4 train model.vwn", "four processes; the same weights as one has"},
                {"vwn launch -n 2 --restarts 3 resume runs/nano", "goes on by itself when one is killed"}},
    .text =
        "\nA step's lanes (`train { lanes = 8 }`) are shared among the processes: 1, 2, 4 or 8 of them compute the\n"
        "same bits, and a run may go on with another number. Several machines: start `vwn train FILE` on each by\n"
        "torchrun or srun, with MASTER_ADDR, MASTER_PORT and VWN_SECRET set, or by mpirun.\n",
    .flag = flags,
    .n_flags = sizeof flags / sizeof flags[0],
    .takes = TAKES_REST,
    .least = 1,
    .most = -1,
    .run = run};
