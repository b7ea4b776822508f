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
#include "loop.h"
#include "loss_scale.h"

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

/* The text that is trained on, and what of it is kept for evaluation; `range` of both is to be freed. */
static void divide(const Text *text, int n, double val, Order *train, Order *kept)
{
    int64_t *count = room((uint64_t)n * sizeof *count);
    for (int i = 0; i < n; i++)
        count[i] = text[i].tokens.count;
    train->context = kept->context = model.context;
    train->range = room((uint64_t)n * sizeof *train->range);
    kept->range = room((uint64_t)n * sizeof *kept->range);
    order_divide(train, kept, count, (size_t)n, val);
    free(count);
}

/* Where sequence `row` of an input begins; NULL: the model does not read it. */
static integer *row_of(Run *run, const char *name, int64_t row)
{
    for (int i = 0; i < model.n_tensors; i++)
        if (model.tensor[i].kind == INPUT && !strcmp(model.tensor[i].name, name))
            return (integer *)(run->inputs + model.tensor[i].offset) + row * model.context;
    return NULL;
}

/* The window as sequence `row` of the inputs; without labels unless `labelled`. */
static void feed(Run *run, const Text *text, const Order *o, Window w, int64_t row)
{
    const Text *from = &text[o->range[w.range].file];
    tokens_window(&from->tokens, o, w, model.vocab, model.separator, row_of(run, "tokens", row),
                  row_of(run, "labels", row), row_of(run, "document", row));
}

/* What programs run on. */
typedef struct Work {
    Run *run;
    const Text *text;
    const Order *of;
    Progress *progress;
    double out[MOST_RESULTS];     /* of the last run */
    double loss[LOOP_LANES_MOST]; /* of each lane of the step so far */
} Work;

static double result(const Work *w, const Program *program, const char *name)
{
    for (int i = 0; i < program->n_results; i++)
        if (!strcmp(program->result[i], name))
            return w->out[i];
    stop("the program %s has no result `%s`", program->name, name);
}

static void run_program(Work *w, const Program *program)
{
    device_put(w->run, w->run->tensors, w->run->inputs, model.input_bytes);
    program->run(w->run);
    program->results(w->run, w->out);
}

static void begin_count(void *user)
{
    Run *run = ((Work *)user)->run;
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

/* What formulas can read, in a run of `length` steps on this text; `whole`: no epochs of it are counted. */
static void set_vars(Work *w, int64_t length, bool whole)
{
    w->run->step = w->progress->step;
    progress_vars(w->progress, (double)length, whole ? 0 : (double)w->of->windows * (double)model.context,
                  w->run->vars);
}

/* ---- evaluation ---- */

/* What is left of the rows does not count. */
static int64_t feed_fixed(void *user, int64_t first, int64_t of)
{
    const Work *w = user;
    int64_t rows = of - first < model.micro ? of - first : model.micro;
    for (int64_t row = 0; row < model.micro; row++)
        feed(w->run, w->text, w->of, order_fixed(w->of, row < rows ? first + row : first, of), row);
    return rows;
}

static void eval_run(void *user, LoopProgram which, int64_t first, int64_t rows, int64_t of)
{
    Work *w = user;
    w->run->vars[HV_SHARE] = (double)rows / (double)of;
    w->run->vars[HV_FILLED] = (double)rows / (double)model.micro;
    w->run->step = LOOP_NO_STEP;
    w->run->first = first;
    run_program(w, which == LOOP_EVAL ? model.eval : model.eval_count);
}

static void eval_results(void *user, double *out)
{
    const Work *w = user;
    memcpy(out, w->out, (size_t)model.eval->n_results * sizeof *out);
}

/* Results of the eval program over all windows into w->out; how many windows. */
static int64_t evaluate(Work *w, int64_t batches)
{
    static const EvalCalls calls = {begin_count, feed_fixed, eval_run, eval_results, NULL};
    const size_t n = (size_t)model.eval->n_results;
    const StepLanes lanes = lanes_of(model.lanes);
    const EvalSize size = {order_fixed_windows(w->of), batches, model.batch, model.micro, n, lanes};
    double part[MOST_RESULTS], *all = room((uint64_t)lanes.all * n * sizeof *all);
    int64_t windows = loop_evaluate(&calls, w, &size, model.eval_count, part, all);
    memcpy(w->out, all, n * sizeof *all);
    free(all);
    return windows;
}

/* Of the part of the text that training keeps for it, or of all. */
static void run_eval(Run *run, const Options *o, const Text *text, Progress *p)
{
    Order train = {0}, kept = {0};
    bool whole = o->all || model.held_out <= 0;
    divide(text, o->n_paths, whole ? 0 : model.held_out, &train, &kept);
    Work w = {.run = run, .text = text, .of = &train, .progress = p};
    int64_t length = model.steps > 0 ? model.steps : p->step - p->from_step;
    if (!whole && model.steps < 0)
        length = order_steps(model.epochs, train.windows, model.batch);
    set_vars(&w, length, whole);
    w.of = whole ? &train : &kept;
    if (!w.of->windows)
        stop("%s is shorter than the context of %" PRId64 " tokens",
             whole ? "the text" : "the part of the text that is held out (--all takes all of it)", model.context);
    int64_t windows = evaluate(&w, o->batches ? o->batches : model.eval_batches);
    for (int i = 0; i < model.eval->n_results; i++)
        printf("%-16s %.6f\n", model.eval->result[i], w.out[i]);
    printf("on               %" PRId64 " tokens, after step %" PRId64 "\n", windows * model.context, p->step);
    free(train.range);
    free(kept.range);
}

/* ---- training ---- */

static void run_part(void *user, LoopProgram which, int64_t k)
{
    Work *w = user;
    const Program *program = which == LOOP_COUNT ? model.count : which == LOOP_FRESH ? model.train : model.accumulate;
    for (int64_t row = 0; row < model.micro; row++)
        feed(w->run, w->text, w->of, order_window(w->of, model.seed, w->progress->sequences + k * model.micro + row),
             row);
    w->run->step = w->progress->step;
    w->run->first = k * model.micro;
    run_program(w, program);
    if (which != LOOP_COUNT)
        w->loss[k / (model.batch / model.micro / lanes_of(model.lanes).all)] += result(w, program, "loss");
}

static void keep_lane(void *user, int level) { run_program(user, model.keep[level]); }
static void join_lane(void *user, int level) { run_program(user, model.join[level]); }

static void one_step(Work *w)
{
    Progress *p = w->progress;
    static const LoopCalls calls = {begin_count, run_part, keep_lane, join_lane};
    const StepLanes lanes = lanes_of(model.lanes);
    memset(w->loss, 0, sizeof w->loss);
    loop_gradient(&calls, w, model.batch / model.micro, &lanes, model.count);
    lanes_add(w->loss, lanes.all, 1);
    double loss = w->loss[0];
    if (!isfinite(loss))
        stop("step %" PRId64 ": the loss is %g; the weights were not changed", p->step + 1, loss);
    w->run->step = p->step;
    run_program(w, model.update);
    double norm = result(w, model.update, "grad_norm");
    StepEnd end = progress_norm(p, norm);
    if (end == STEP_BAD)
        stop("step %" PRId64 ": the gradient's norm is %g; the weights were not changed", p->step + 1, norm);
    if (end == STEP_SKIPPED)
        printf("step %" PRId64 " was skipped: its gradient left the range of fp16; the loss is now scaled by %.17g\n",
               p->step + 1, p->loss_scale);
    progress_step(p, loss, model.batch, model.context);
}

/* The learning rate of the next step. */
static double next_rate(const Work *w)
{
    const int64_t step = w->progress->step + 1;
    double rate = model.rate(w->run->vars), decay = model.decay ? model.decay(w->run->vars) : 0;
    if (!isfinite(rate) || rate < 0)
        stop("step %" PRId64 ": the learning rate is %g", step, rate);
    if (!(decay >= 0 && decay <= 1))
        stop("step %" PRId64 ": the decay of the average is %g", step, decay);
    return rate;
}

static void run_train(Run *run, const Options *o, const Text *text, Progress *p)
{
    Order train = {0}, kept = {0};
    divide(text, o->n_paths, model.val, &train, &kept);
    Work w = {.run = run, .text = text, .of = &train, .progress = p},
         held_out = {.run = run, .text = text, .of = &kept, .progress = p};
    if (!train.windows)
        stop("the text is shorter than the context of %" PRId64 " tokens", model.context);
    int64_t length = model.steps < 0 ? order_steps(model.epochs, train.windows, model.batch) : model.steps;
    int64_t last = progress_end(p, length), end = o->steps && o->steps < last ? o->steps : last;
    while (p->step < end) {
        set_vars(&w, length, false);
        double rate = next_rate(&w);
        one_step(&w);
        printf("step %" PRId64 "/%" PRId64 " loss %.6f lr %.3e grad_norm %.4f\n", p->step, last, p->train_loss, rate,
               p->grad_norm);
        if (kept.windows && model.eval_every > 0 && (loop_due(p->step, model.eval_every) || p->step == last)) {
            set_vars(&w, length, false);
            evaluate(&held_out, model.eval_batches);
            progress_evaluated(p, result(&held_out, model.eval, "loss"));
            printf("step %" PRId64 "/%" PRId64 " eval_loss %.6f\n", p->step, last, p->eval_loss);
        }
        fflush(stdout);
    }
    if (o->out)
        write_weights(o->out, run, p);
    free(train.range);
    free(kept.range);
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
        free(text[i].bytes);
    free(text);
    free(o.path);
    if (fflush(stdout) != 0 || ferror(stdout))
        stop("the results could not be written");
    return 0;
}
