/* manual.c - the manual page vwn(1).   In: the verbs and their flags.   Out: man(7), which mandoc and groff read. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Text of ours as roff: no line begins a request, no minus is a hyphen. */
static void put(Ui *ui, const char *s)
{
    bool line_begins = true;
    for (; *s; s++) {
        if (line_begins && (*s == '.' || *s == '\''))
            ui_put(ui, "\\&", 2);
        if (*s == '\\')
            ui_put(ui, "\\e", 2);
        else if (*s == '-')
            ui_put(ui, "\\-", 2);
        else if (*s == '`')
            ui_put(ui, "\\(ga", 4);
        else if (*s == '\'')
            ui_put(ui, "\\(aq", 4);
        else if (*s == '^')
            ui_put(ui, "\\(ha", 4);
        else if (*s == '~')
            ui_put(ui, "\\(ti", 4);
        else
            ui_put(ui, s, 1);
        line_begins = *s == '\n';
    }
}

static void put_flag(Ui *ui, const Flag *flag)
{
    ui_print(ui, ".TP\n\\fB");
    put(ui, flag->name);
    ui_print(ui, "\\fR");
    if (flag->value) {
        ui_print(ui, " \\fI");
        put(ui, flag->value);
        ui_print(ui, "\\fR");
    }
    ui_print(ui, "\n");
    put(ui, flag->help);
    ui_print(ui, "\n");
}

/* The lines of an indented or plain text of a verb, as they are. */
static void put_lines(Ui *ui, const char *text)
{
    ui_print(ui, ".PP\n");
    put(ui, text);
}

static void put_verb(Ui *ui, const Verb *verb)
{
    ui_print(ui, ".SS ");
    put(ui, verb->name);
    ui_print(ui, "\n\\fBvwn ");
    put(ui, verb->name);
    ui_print(ui, "\\fR \\fI");
    put(ui, verb->operands);
    ui_print(ui, "\\fR\n.PP\n");
    put(ui, verb->summary);
    ui_print(ui, ".\n");
    if (verb->text)
        put_lines(ui, verb->text);
    for (int i = 0; i < verb->n_flags; i++)
        put_flag(ui, &verb->flag[i]);
    bool some = false;
    for (int i = 0; i < n_common_flags; i++)
        if (!strncmp(common_flags[i].name, "--", 2) && verb_has(verb, &common_flags[i])) {
            ui_print(ui, some ? ", " : ".PP\nAlso ");
            put(ui, common_flags[i].name);
            some = true;
        }
    ui_print(ui, some ? ".\n" : "");
    ui_print(ui, ".PP\n.nf\n");
    for (int i = 0; i < 2; i++) {
        put(ui, verb->example[i][0]);
        ui_print(ui, "  # ");
        put(ui, verb->example[i][1]);
        ui_print(ui, "\n");
    }
    ui_print(ui, ".fi\n");
}

void write_manual(Ui *ui)
{
    static const struct {
        const char *name, *text;
    } variables[] =
        {{"VWN_THREADS", "threads to use, where --threads does not say it"},
         {"VWN_COLOR",
          "auto, always or never, where --color does not say it; NO_COLOR and CLICOLOR_FORCE are heard, too"},
         {"VWN_CACHE", "a folder for compiled kernels, which vwn has made or finds empty; empty: none. It must be "
                       "private: nobody else but\n"
                       "root may write it or a folder on the way to it (sticky ones as /tmp are fine); else it is not "
                       "used, which is said"},
         {"VWN_COMPILE_SECONDS", "after which a C compiler that hangs is given up, for each file; 600 otherwise"},
         {"VWN_CUDA_LIBRARIES", "folders, separated by colons, with the libraries of CUDA, instead of where they are "
                                "looked for (the driver: before that);\n"
                                "empty: none"},
         {"VWN_SECRET", "words that processes of several machines share, so that no stranger joins them"},
         {"VWN_TIMEOUT", "seconds after which a process of several that sends nothing is given up; 300 otherwise"},
         {"VWN_MPI", "the library of MPI through which several processes talk, instead of that of their launcher"},
         {"VWN_CUDA_SYNC", "1: a GPU is waited for after every call, so that one that fails is named"},
         {"CC", "the C compiler for kernels"}},
      statuses[] = {{"0", "fine"},
                    {"1", "errors in the input"},
                    {"2", "wrong use"},
                    {"3", "a check is false"},
                    {"4", "a run diverged, or growth changed outputs"},
                    {"5", "memory, compiler, files or disk"},
                    {"6", "grow --plan or diff has changes"},
                    {"70", "a bug"},
                    {"130", "interrupted, also by a reader that closed the pipe"}};
    int n;
    const Verb *const *verbs = all_verbs(&n);
    ui_print(ui,
             ".TH VWN 1 2026-11-25 \"vwn %s\" \"User Commands\"\n.SH NAME\nvwn \\- compiles and trains transformers "
             "described in .vwn files\n"
             ".SH SYNOPSIS\n\\fBvwn\\fR \\fIVERB\\fR [\\fIflags\\fR] \\fIoperands\\fR\n.SH DESCRIPTION\n",
             vwn_version());
    put(ui, "vwn is a compiler and a training runtime for transformer architectures: layer shapes, width schedules "
            "over depth,\n"
            "connections between layers, and how to train them. Results go to stdout, everything else to stderr.\n");
    ui_print(ui, ".SH OPTIONS\nThese are common to verbs; each verb has those that it names.\n");
    for (int i = 0; i < n_common_flags; i++)
        put_flag(ui, &common_flags[i]);
    ui_print(ui, ".SH VERBS\n");
    for (int i = 0; i < n; i++)
        put_verb(ui, verbs[i]);
    ui_print(ui, ".SH ENVIRONMENT\nThey change how vwn works, never a model.\n");
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        ui_print(ui, ".TP\n\\fB%s\\fR\n", variables[i].name);
        put(ui, variables[i].text);
        ui_print(ui, "\n");
    }
    ui_print(ui, ".SH EXIT STATUS\n");
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++)
        ui_print(ui, ".TP\n\\fB%s\\fR\n%s\n", statuses[i].name, statuses[i].text);
}
