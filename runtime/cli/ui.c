/* ui.c - see ui.h.
 *
 * In:  what the verbs have to say.   Out: bytes on stdout and stderr.
 * The one idea: whether stderr is a terminal is asked once; from then on `live` decides, so
 * that the same run writes plain lines into a file and one moving line on a screen.
 */
#define _GNU_SOURCE /* vasprintf */
#include "ui.h"

#include "compiler/portable/utf8.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static bool env_is_set(const char *name)
{
    const char *v = getenv(name);
    return v && *v;
}

static bool wants_color(ColorChoice choice, int fd)
{
    if (choice != COLOR_AUTO)
        return choice == COLOR_ALWAYS;
    const char *term = getenv("TERM"), *force = getenv("CLICOLOR_FORCE");
    if (env_is_set("NO_COLOR"))
        return false;
    if (force && *force && strcmp(force, "0") != 0)
        return true;
    if (!term || strcmp(term, "dumb") == 0)
        return false;
    return isatty(fd);
}

void ui_init(Ui *ui, ColorChoice color, bool quiet)
{
    const char *term = getenv("TERM");
    *ui = (Ui){.quiet = quiet, .columns = 100};
    ui->color_out = wants_color(color, STDOUT_FILENO);
    ui->terminal = isatty(STDOUT_FILENO);
    ui->color_err = wants_color(color, STDERR_FILENO);
    ui->live = isatty(STDERR_FILENO) && term && *term && strcmp(term, "dumb") != 0;
    ui_resize(ui);
}

int ui_resize(Ui *ui)
{
    struct winsize size;
    if (ui->live && ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        ui->columns = size.ws_col;
    return ui->columns;
}

int ui_columns(void)
{
    struct winsize size;
    const char *given = getenv("COLUMNS");
    long n = given ? strtol(given, NULL, 10) : 0;
    if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return n >= 20 && n <= 1000 ? (int)n : 80;
}

int ui_rows(void)
{
    struct winsize size;
    return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 24;
}

bool ui_unicode(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *v = getenv(names[i]);
        if (v && *v)
            return strstr(v, "UTF-8") || strstr(v, "utf8") || strstr(v, "UTF8") || strstr(v, "utf-8");
    }
    return false;
}

/* Names and texts of others, without what a terminal acts on. False: a write failed. */
static bool put_plain(FILE *to, const char *s, size_t n)
{
    const char *shown, *end = s + n;
    size_t shown_n;
    while (s < end) {
        s += utf8_plain(s, (size_t)(end - s), &shown, &shown_n);
        if (fwrite(shown, 1, shown_n, to) != shown_n)
            return false;
    }
    return true;
}

static void say(Ui *ui, const char *sgr, const char *word, const char *after, const char *end, const char *fmt,
                va_list args)
{
    ui_progress_end(ui);
    if (ui->color_err)
        fprintf(stderr, "\033[%sm%s\033[0m%s", sgr, word, after);
    else
        fprintf(stderr, "%s%s", word, after);
    char *text = NULL;
    int n = vasprintf(&text, fmt, args);
    put_plain(stderr, n < 0 ? "out of memory" : text, n < 0 ? 13 : (size_t)n);
    if (n >= 0)
        free(text);
    fputs(end, stderr);
}

void ui_error(Ui *ui, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say(ui, "1;31", "error", ": ", "\n", fmt, args);
    va_end(args);
}

void ui_warning(Ui *ui, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say(ui, "1;33", "warning", ": ", "\n", fmt, args);
    va_end(args);
}

static void report_word(Ui *ui, const char *word, const char *end, const char *fmt, va_list args)
{
    char right[32];
    snprintf(right, sizeof right, "%11s", word);
    say(ui, "1;32", right, " ", end, fmt, args);
}

void ui_say(Ui *ui, const char *word, const char *fmt, ...)
{
    if (ui->quiet)
        return;
    va_list args;
    va_start(args, fmt);
    report_word(ui, word, "\n", fmt, args);
    va_end(args);
}

static void open_line(Ui *ui, const char *word, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    report_word(ui, word, "", fmt, args);
    va_end(args);
    fflush(stderr);
    ui->line_open = ui->line_waits = true;
}

void ui_wait(Ui *ui, const char *word, const char *fmt, ...)
{
    enum { MARGIN = 13 }; /* the word, a space, and the last column */
    char text[512];
    if (ui->quiet || !ui->live)
        return;
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    open_line(ui, word, "%.*s", ui->columns > MARGIN ? ui->columns - MARGIN : 0, text);
}

void ui_wait_end(Ui *ui)
{
    if (ui->line_open && ui->line_waits)
        ui_progress_end(ui);
}

void ui_progress(Ui *ui, const char *line)
{
    if (ui->quiet)
        return;
    if (ui->live) {
        fprintf(stderr, "\r%.*s\033[K", ui->columns - 1, line);
        fflush(stderr);
        ui->line_open = true;
        ui->line_waits = false;
    } else {
        fprintf(stderr, "%s\n", line);
    }
}

double ui_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void ui_progress_end(Ui *ui)
{
    if (ui->line_open)
        fputs(ui->line_waits ? "\r\033[K" : "\n", stderr);
    ui->line_open = false;
}

void ui_bar(char *out, int width, double share)
{
    int inner = width - 2;
    int done = share >= 1 ? inner : share > 0 ? (int)(share * inner) : 0;
    for (int i = 0; i < inner; i++)
        out[1 + i] = i < done ? '=' : ' ';
    if (done < inner)
        out[1 + done] = '>';
    out[0] = '[';
    out[width - 1] = ']';
    out[width] = '\0';
}

void ui_duration(char out[32], double seconds)
{
    if (!(seconds >= 0) || seconds > 1e9) {
        snprintf(out, 32, "-:--");
        return;
    }
    long s = lround(seconds);
    if (s >= 3600)
        snprintf(out, 32, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(out, 32, "%ld:%02ld", s / 60, s % 60);
}

void ui_short_duration(char out[32], double seconds)
{
    long minutes = seconds >= 0 && seconds <= 1e9 ? lround(seconds / 60) : 0;
    if (minutes < 100)
        ui_duration(out, seconds);
    else if (minutes < 600)
        snprintf(out, 32, "%ldh%02ld", minutes / 60, minutes % 60);
    else if (minutes < 6000)
        snprintf(out, 32, "%ldh", (minutes + 30) / 60);
    else
        snprintf(out, 32, "%ldd", (minutes + 720) / 1440);
}

void ui_rate(char out[32], double n)
{
    if (n >= 999500)
        snprintf(out, 32, "%.2fM", n / 1e6);
    else if (n >= 10000)
        snprintf(out, 32, "%.0fk", n / 1e3);
    else if (n >= 999.5)
        snprintf(out, 32, "%.1fk", n / 1e3);
    else
        snprintf(out, 32, "%.0f", n);
}

/* What is said from here on goes nowhere, so a run that is under way stops. */
static void output_failed(Ui *ui)
{
    ui->write_error = errno ? errno : EIO;
    if (ui->running)
        vwn_interrupt(ui->running);
}

void ui_control(Ui *ui, const char *sequence)
{
    if (!ui->write_error && fputs(sequence, stdout) == EOF)
        output_failed(ui);
}

/* Characters may come in pieces: the beginning of one waits for the rest. */
static bool put_to_terminal(Ui *ui, const char *text, size_t n)
{
    bool good = true;
    while (n && ui->n_held) {
        ui->held[ui->n_held++] = *text++;
        n--;
        if (!utf8_begins(ui->held, ui->n_held)) {
            good = put_plain(stdout, ui->held, ui->n_held);
            ui->n_held = 0;
        }
    }
    for (size_t back = n < 3 ? n : 3; back; back--)
        if (utf8_begins(text + n - back, back)) {
            memcpy(ui->held, text + n - back, back);
            ui->n_held = back;
            n -= back;
            break;
        }
    return good && put_plain(stdout, text, n);
}

void ui_put(Ui *ui, const char *text, size_t n)
{
    if (!ui->write_error && (ui->terminal ? !put_to_terminal(ui, text, n) : fwrite(text, 1, n, stdout) != n))
        output_failed(ui);
}

bool ui_flush(Ui *ui)
{
    if (!ui->write_error && fflush(stdout) != 0)
        output_failed(ui);
    return !ui->write_error;
}

static void put_stdout(void *user, const char *text, size_t n) { ui_put(user, text, n); }

static void put_stderr(void *user, const char *text, size_t n)
{
    ui_progress_end(user);
    fwrite(text, 1, n, stderr);
}

vwn_writer ui_stdout(Ui *ui) { return (vwn_writer){put_stdout, ui}; }
vwn_writer ui_stderr(Ui *ui) { return (vwn_writer){put_stderr, ui}; }

void ui_print(Ui *ui, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    char *text = n < 0 ? NULL : malloc((size_t)n + 1);
    if (!text) {
        ui->write_error = ENOMEM;
        return;
    }
    va_start(args, fmt);
    vsnprintf(text, (size_t)n + 1, fmt, args);
    va_end(args);
    ui_put(ui, text, (size_t)n);
    free(text);
}

int ui_finish(Ui *ui, int status)
{
    ui_progress_end(ui);
    ui->running = NULL;
    errno = 0;
    if (!ui->write_error && !put_plain(stdout, ui->held, ui->n_held))
        output_failed(ui);
    ui_flush(ui);
    if (!ui->write_error)
        return status;
    bool stopped = status == VWN_OK || status == VWN_INTERRUPTED;
    if (ui->write_error == EPIPE) /* nobody reads on: no mistake, but not all was done */
        return stopped ? VWN_INTERRUPTED : status;
    ui_error(ui, "cannot write the result: %s", strerror(ui->write_error));
    return stopped ? VWN_ENVIRONMENT : status;
}

void text_put(Text *t, const char *s, size_t n)
{
    if (t->failed)
        return;
    if (t->n + n + 1 > t->cap) {
        size_t cap = 2 * t->cap > t->n + n + 1 ? 2 * t->cap : t->n + n + 256;
        char *more = realloc(t->s, cap);
        if (!more) {
            t->failed = true;
            return;
        }
        t->s = more;
        t->cap = cap;
    }
    if (n)
        memcpy(t->s + t->n, s, n);
    t->n += n;
    t->s[t->n] = '\0';
}

static void put_text(void *user, const char *s, size_t n) { text_put(user, s, n); }

vwn_writer text_writer(Text *t) { return (vwn_writer){put_text, t}; }

void text_free(Text *t)
{
    free(t->s);
    *t = (Text){0};
}
