/* main.c - runs the programs of plan.c: evaluation on a text, and training where there is a
 * program for it.
 *
 *     ./model eval  TEXT... [--weights FILE] [--batches N] [--all]
 *     ./model train TEXT... [--weights FILE] [--steps N] [--out FILE]
 *
 * In:  texts as the model's data says (bytes, characters or token ids), weights. `eval` measures the
 *      share of the text that training holds out, as `vwn eval` does, or --all of it. On a CPU also
 *      `--threads N`.
 * Out: losses on stdout; with --out the weights and the optimizer's state.
 */
#include "files.h"
#include "loss_scale.h"
#include "order.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RESULTS = 4096 };

typedef struct Options {
    bool train, all;
    const char **path; /* of the texts */
    int n_paths;
    const char *weights, *out;
    int64_t steps, batches, threads; /* 0: not given */
} Options;

/* ---- windows of text ---- */

/* Stretches of the texts, and the text that each is of. */
typedef struct Split {
    const Text **text;
    Stretch *range;
    size_t n;
    int64_t windows; /* of an epoch */
} Split;

static void add_stretch(Split *s, const Text *text, int64_t first, int64_t count)
{
    int64_t windows = order_windows(count, model.context);
    if (!windows)
        return;
    s->text[s->n] = text;
    s->range[s->n++] = (Stretch){first, count, windows, s->windows};
    s->windows += windows;
}

/* The last `val` of all tokens are kept for evaluation. */
static void divide(const Text *text, int n, double val, Split *train, Split *kept)
{
    int64_t all = 0, before = 0;
    Split *both[] = {train, kept};
    for (int i = 0; i < 2; i++) {
        both[i]->text = room((uint64_t)n * sizeof *both[i]->text);
        both[i]->range = room((uint64_t)n * sizeof *both[i]->range);
    }
    for (int i = 0; i < n; i++)
        all += text[i].count;
    int64_t keep = all - (int64_t)((double)all * val);
    for (int i = 0; i < n; i++) {
        int64_t count = text[i].count, first = keep - before < count ? keep - before : count;
        first = first < 0 ? 0 : first;
        if (first > 0)
            add_stretch(train, &text[i], 0, first);
        if (first < count)
            add_stretch(kept, &text[i], first, count - first);
        before += count;
    }
}

static void forget(Split *s)
{
    free(s->text);
    free(s->range);
}

static integer *input(Run *run, const char *name)
{
    for (int i = 0; i < model.n_tensors; i++)
        if (model.tensor[i].kind == INPUT && !strcmp(model.tensor[i].name, name))
            return (integer *)(run->inputs + model.tensor[i].offset);
    return NULL;
}

/* Tokens of the window as sequence `row` of the inputs; a label is the token that follows, -1
 * where there is none or `labelled` is false; the document of a position begins at the last
 * separator. */
static void feed(Run *run, const Split *s, Window w, int64_t row, bool labelled)
{
    integer *tokens = input(run, "tokens"), *labels = input(run, "labels");
    integer *document = input(run, "document"), begin = 0;
    const Text *text = s->text[w.range];
    int64_t end = s->range[w.range].first + s->range[w.range].count;
    for (int64_t i = 0; i <= model.context; i++) {
        int64_t at = w.first + i, token = at < end ? (int64_t)text->id[at] : -1;
        if (tokens && i < model.context)
            tokens[row * model.context + i] = token < 0 ? 0 : token;
        begin = token == model.separator ? i : begin;
        if (document && i < model.context)
            document[row * model.context + i] = begin;
        if (labels && i > 0)
            labels[row * model.context + i - 1] = labelled ? token : -1;
    }
}

/* A run of the program on what was fed. */
static void run_program(Run *run, const Program *program, double *out)
{
    device_put(run, run->tensors, run->inputs, model.input_bytes);
    program->run(run);
    program->results(run, out);
}

/* Before the parts of a batch are counted. */
static void count_begin(Run *run)
{
    for (int i = 0; i < model.n_tensors; i++) {
        const Tensor *t = &model.tensor[i];
        if (t->kind != TOTAL)
            continue;
        uint64_t bytes = (uint64_t)t->elements * sizeof(real);
        real *zeros = room(bytes);
        device_put(run, run->tensors + t->offset, zeros, bytes);
        free(zeros);
    }
}

/* ---- evaluation ---- */

/* Sequences first .. of the windows of an evaluation; how many there are. What is left of the part
 * has no labels. */
static int64_t feed_fixed(Run *run, const Split *s, int64_t first, int64_t of)
{
    int64_t rows = of - first < model.micro ? of - first : model.micro;
    for (int64_t row = 0; row < model.micro; row++) {
        int64_t i = row < rows ? first + row : 0;
        feed(run, s, order_fixed(s->range, s->n, model.context, i, of), row, row < rows);
    }
    return rows;
}

/* Results of the eval program over all windows, to which its parts add; how many windows. */
static int64_t evaluate(Run *run, const Split *s, int64_t batches, double *all)
{
    int64_t of = order_fixed_windows(s->range, s->n, model.context);
    double out[MOST_RESULTS];
    if (batches > 0 && batches <= of / model.batch)
        of = batches * model.batch;
    for (int i = 0; i < model.eval->n_results; i++)
        all[i] = 0;
    count_begin(run);
    for (int64_t first = 0; model.count && first < of; first += model.micro) {
        feed_fixed(run, s, first, of);
        run_program(run, model.count, out);
    }
    for (int64_t first = 0; first < of; first += model.micro) {
        run->vars[HV_SHARE] = (double)feed_fixed(run, s, first, of) / (double)of;
        run_program(run, model.eval, out);
        for (int i = 0; i < model.eval->n_results; i++)
            all[i] += out[i];
    }
    return of;
}

/* What formulas can read, after this progress. */
static void set_vars(Run *run, const Progress *p, double length, double per_epoch)
{
    run->step = p->step;
    run->vars[HV_STEP] = (double)p->step;
    run->vars[HV_UPDATES] = (double)(p->step - p->skipped);
    run->vars[HV_TOKENS] = (double)p->tokens;
    run->vars[HV_EPOCH] = per_epoch > 0 ? (double)p->tokens / per_epoch : 0;
    run->vars[HV_PROGRESS] = length > 0 ? (double)p->step / length : 0;
    run->vars[HV_LENGTH] = length;
    run->vars[HV_SHARE] = 1;
    run->vars[HV_TRAIN_LOSS] = p->train_loss;
    run->vars[HV_EVAL_LOSS] = p->eval_loss;
    run->vars[HV_GRAD_NORM] = p->grad_norm;
    run->vars[HV_LOSS_SCALE] = p->loss_scale > 0 ? p->loss_scale : 1;
}

/* Of the part of the text that training keeps for it, or of all. */
static void run_eval(Run *run, const Options *o, const Text *text, const Progress *p)
{
    Split train = {0}, kept = {0};
    double all[MOST_RESULTS], length = (double)(model.steps > 0 ? model.steps : p->step);
    bool whole = o->all || model.held_out <= 0;
    divide(text, o->n_paths, whole ? 0 : model.held_out, &train, &kept);
    const Split *split = whole ? &train : &kept;
    if (!split->windows)
        stop("%s is shorter than the context of %" PRId64 " tokens",
             whole ? "the text" : "the part of the text that is held out (--all takes all of it)",
             model.context);
    if (!whole && model.steps < 0)
        length = ceil(model.epochs * (double)train.windows / (double)model.batch);
    set_vars(run, p, length, whole ? 0 : (double)train.windows * (double)model.context);
    int64_t batches = o->batches ? o->batches : model.eval_batches;
    int64_t windows = evaluate(run, split, batches, all);
    for (int i = 0; i < model.eval->n_results; i++)
        printf("%-16s %.6f\n", model.eval->result[i], all[i]);
    printf("on               %" PRId64 " tokens, after step %" PRId64 "\n",
           windows * model.context, p->step);
    forget(&train);
    forget(&kept);
}

/* ---- training ---- */

static double result(const char *name, const Program *program, const double *value)
{
    for (int i = 0; i < program->n_results; i++)
        if (!strcmp(program->result[i], name))
            return value[i];
    stop("the program %s has no result `%s`", program->name, name);
}

/* What is computed in fp16 may leave its range: then no weight was changed, and the next loss
 * is scaled by half as much. */
static void scale_after(Progress *p, double norm)
{
    bool good = norm <= GRAD_NORM_MOST;
    if (!good && !loss_scale_may_halve(p->loss_scale))
        stop("step %" PRId64 ": the gradient's norm is %g; the weights were not changed",
             p->step + 1, norm);
    if (p->loss_scale > 0)
        loss_scale_after(&p->loss_scale, &p->good_steps, good);
    if (good) {
        p->grad_norm = norm;
        return;
    }
    p->skipped++;
    printf("step %" PRId64 " was skipped: its gradient left the range of fp16; the loss is now "
           "scaled by %.17g\n",
           p->step + 1, p->loss_scale);
}

/* Runs a program on part k of a step. */
static void run_part(Run *run, const Split *s, const Progress *p, const Program *program, int64_t k,
                     double *out)
{
    for (int64_t row = 0; row < model.micro; row++) {
        int64_t ordinal = p->sequences + k * model.micro + row;
        feed(run, s,
             order_window(s->range, s->n, s->windows, model.context, model.seed, ordinal), row,
             true);
    }
    run->step = p->step * (model.batch / model.micro) + k;
    run_program(run, program, out);
}

static void one_step(Run *run, const Split *s, Progress *p)
{
    double out[MOST_RESULTS], loss = 0;
    int64_t parts = model.batch / model.micro;
    if (parts > 1)
        count_begin(run);
    for (int64_t k = 0; model.count && parts > 1 && k < parts; k++)
        run_part(run, s, p, model.count, k, out);
    for (int64_t k = 0; k < parts; k++) {
        const Program *program = k ? model.accumulate : model.train;
        run_part(run, s, p, program, k, out);
        loss += result("loss", program, out);
    }
    if (!isfinite(loss))
        stop("step %" PRId64 ": the loss is %g; the weights were not changed", p->step + 1,
             loss);
    run->step = p->step;
    run_program(run, model.update, out);
    scale_after(p, result("grad_norm", model.update, out));
    p->train_loss = loss;
    p->step++;
    p->sequences += model.batch;
    p->tokens += model.batch * model.context;
}

static void run_train(Run *run, const Options *o, const Text *text, Progress *p)
{
    Split train = {0}, kept = {0};
    double mean[MOST_RESULTS];
    divide(text, o->n_paths, model.val, &train, &kept);
    if (!train.windows)
        stop("the text is shorter than the context of %" PRId64 " tokens", model.context);
    int64_t length = model.steps;
    if (length < 0)
        length = (int64_t)ceil(model.epochs * (double)train.windows / (double)model.batch);
    int64_t end = o->steps && o->steps < length ? o->steps : length;
    double per_epoch = (double)train.windows * (double)model.context;
    while (p->step < end) {
        set_vars(run, p, (double)length, per_epoch);
        double rate = model.rate(run->vars);
        if (!isfinite(rate) || rate < 0)
            stop("step %" PRId64 ": the learning rate is %g", p->step + 1, rate);
        double decay = model.decay ? model.decay(run->vars) : 0;
        if (!(decay >= 0 && decay <= 1))
            stop("step %" PRId64 ": the decay of the average is %g", p->step + 1, decay);
        one_step(run, &train, p);
        printf("step %" PRId64 "/%" PRId64 " loss %.6f lr %.3e grad_norm %.4f\n", p->step,
               length, p->train_loss, rate, p->grad_norm);
        bool due =
            model.eval_every > 0 && (p->step % model.eval_every == 0 || p->step == length);
        if (due && kept.windows) {
            set_vars(run, p, (double)length, per_epoch);
            evaluate(run, &kept, model.eval_batches, mean);
            p->eval_loss = result("loss", model.eval, mean);
            printf("step %" PRId64 "/%" PRId64 " eval_loss %.6f\n", p->step, length,
                   p->eval_loss);
        }
        fflush(stdout);
    }
    if (o->out)
        write_weights(o->out, run, p);
    forget(&train);
    forget(&kept);
}

/* ---- the command line ---- */

static _Noreturn void usage(void)
{
    const char *threads = device_has_threads ? " [--threads N]" : "";
    fprintf(stderr,
            "use: ./model eval  TEXT... [--weights FILE] [--batches N] [--all]%s\n"
            "     ./model train TEXT... [--weights FILE] [--steps N] [--out FILE]%s\n",
            threads, threads);
    exit(2);
}

static int64_t count_from(const char *text)
{
    char *end;
    long long v = strtoll(text, &end, 10);
    if (*end || v < 1)
        usage();
    return (int64_t)v;
}

static Options read_options(int argc, char **argv)
{
    Options o = {.weights = "weights.safetensors"};
    if (argc < 3 || (strcmp(argv[1], "eval") && strcmp(argv[1], "train")))
        usage();
    o.train = !strcmp(argv[1], "train");
    o.path = room((uint64_t)argc * sizeof *o.path);
    for (int i = 2; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strncmp(argv[i], "--", 2)) {
            o.path[o.n_paths++] = argv[i];
            continue;
        }
        if (!strcmp(argv[i], "--all") && !o.train) {
            o.all = true;
            continue;
        }
        if (!value)
            usage();
        if (!strcmp(argv[i], "--weights"))
            o.weights = value;
        else if (!strcmp(argv[i], "--threads") && device_has_threads)
            o.threads = count_from(value);
        else if (!strcmp(argv[i], "--batches") && !o.train)
            o.batches = count_from(value);
        else if (!strcmp(argv[i], "--steps") && o.train)
            o.steps = count_from(value);
        else if (!strcmp(argv[i], "--out") && o.train)
            o.out = value;
        else
            usage();
        i++;
    }
    if (!o.n_paths)
        usage();
    if (o.train && !model.train)
        stop("this folder was written without training");
    return o;
}

int main(int argc, char **argv)
{
    Options o = read_options(argc, argv);
    Text *text = room((uint64_t)o.n_paths * sizeof *text);
    for (int i = 0; i < o.n_paths; i++)
        text[i] = read_text(o.path[i]);
    Run run = {0};
    Progress progress;
    device_open(&run, o.threads);
    read_weights(o.weights, &run, &progress, o.train);
    if (!model.scaled)
        progress.loss_scale = 0;
    else if (!(progress.loss_scale > 0))
        progress.loss_scale = LOSS_SCALE_FIRST;
    if (o.train)
        run_train(&run, &o, text, &progress);
    else
        run_eval(&run, &o, text, &progress);
    device_close(&run);
    for (int i = 0; i < o.n_paths; i++)
        free(text[i].id);
    free(text);
    free(o.path);
    if (fflush(stdout) != 0 || ferror(stdout))
        stop("the results could not be written");
    return 0;
}
