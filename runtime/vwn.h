/* vwn.h - the public interface of the vwn library; the only header a program needs.
 *
 * A context owns everything made from it. One context per thread at a time. No function prints or
 * exits; text goes through a vwn_writer, failures come back as a vwn_status with vwn_message(), and
 * mistakes in files as diagnostics (vwn_diagnostics). Strings that are returned live as long as the
 * context unless stated otherwise.
 */
#ifndef VWN_H
#define VWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __GNUC__
#pragma GCC visibility push(default) /* of what is declared here, and nothing else, in the shared library */
#endif

typedef enum vwn_status {
    VWN_OK = 0,
    VWN_INPUT = 1,        /* the input has errors; see vwn_diagnostics */
    VWN_USAGE = 2,        /* wrong use of this interface */
    VWN_CHECK = 3,        /* a `check` of the file is false */
    VWN_DIVERGED = 4,     /* NaN, infinity or a loss spike stopped the run */
    VWN_ENVIRONMENT = 5,  /* memory, compiler, files, disk */
    VWN_BUG = 70,         /* a broken invariant of vwn */
    VWN_CHANGES = 6,      /* a plan has changes */
    VWN_INTERRUPTED = 130 /* stopped by vwn_interrupt: a checkpoint was written, or kernels were still compiled */
} vwn_status;

typedef struct vwn_context vwn_context;
typedef struct vwn_workbench vwn_workbench; /* what runs leave open for those after them */
typedef struct vwn_unit vwn_unit;           /* a checked file */

typedef struct vwn_writer {
    void (*put)(void *user, const char *text, size_t length);
    void *user;
} vwn_writer;

typedef struct vwn_options {
    void *(*resize)(void *user, void *p, size_t old_size, size_t new_size); /* NULL: malloc */
    void *user;
    size_t memory_limit;   /* bytes for the compiler's own data; 0 = 1 GiB */
    int threads;           /* 0 = as many as the process may use */
    const char *cache_dir; /* NULL = $XDG_CACHE_HOME/vwn; "" = none */
    const char *compiler;  /* C compiler; NULL = $CC, else cc, gcc, clang */
    int compile_seconds;   /* after which a C compiler is given up, for each file; 0 = 600 */
    bool reference;        /* as device "reference" */
    /* Where models run: "cpu", NULL: compiled kernels on the processor; "cuda:1": on that GPU, or VWN_ENVIRONMENT and
     * why not; "cuda": on the first that can be used; "auto": there, else on the processor; "reference": in the
     * float64 reference evaluator. vwn_bench and vwn_doctor measure what a run would be on. */
    const char *device;
    /* Called with a sentence when "cuda..." or "auto" has been decided, and when a run turns out not to fit;
     * `plain`: there is no GPU, so it is the processor. */
    void (*chosen)(void *chosen_user, const char *sentence, bool plain);
    void *chosen_user;
    /* Called before as many kernels are compiled, which may take seconds, and with 0 behind it. */
    void (*compiling)(void *compiling_user, size_t kernels);
    void *compiling_user;
    vwn_workbench *workbench; /* NULL: each call opens a device and closes it */
} vwn_options;

/* The device that a call opens (threads, loaded kernels, products) stays open on the workbench, for the next call of any
 * context with this workbench and the same device, threads, folder and compiler; another call, or one that fails there,
 * closes it. One call at a time. To be closed after the contexts; NULL: no memory. */
vwn_workbench *vwn_workbench_open(void);
void vwn_workbench_close(vwn_workbench *bench); /* NULL is fine */

const char *vwn_version(void);  /* "0.1.0" */
const char *vwn_build_id(void); /* hash of the sources it was built from */

/* NULL when there is not even memory for a context. `options` may be NULL. */
vwn_context *vwn_open(const vwn_options *options);
/* Takes part in the group of processes that the environment names: RANK and WORLD_SIZE, or those of Open MPI, MPICH or Slurm. It
 * waits for all of them. vwn_train then trains one model with all, which all call alike. Rank 0 alone writes files, and has
 * events and messages, unless it is what has failed. *size is 1, and *rank 0, where the environment names none. */
vwn_status vwn_join(vwn_context *ctx, int *rank, int *size);
void vwn_close(vwn_context *ctx);                /* NULL is fine */
const char *vwn_message(const vwn_context *ctx); /* sentence of the last failure, or "" */
/* What the last vwn_eval, vwn_eval_task or vwn_sample passed over, as a sentence, or "". */
const char *vwn_warning(const vwn_context *ctx);

/* ---- files ---- */
typedef struct vwn_file_options {
    const char *path; /* "-": take `text` */
    const char *text; /* content of "-", or NULL */
    size_t text_length;
    const char *const *set; /* "PATH=EXPR" overrides */
    size_t n_set;
    const char *folder;      /* of a copy that a run keeps: where the file lay; see vwn_run_file */
    bool model_only;         /* no train, grow, sweep, checks */
    bool no_sweeps;          /* its `sweep` nodes are passed over */
    const char *resume;      /* also the overrides that this run was started with, unless `set` has
                               their paths; "" = runs/<model name>, NULL = none */
    const char *const *deny; /* lints that count as errors; "warnings" = all */
    size_t n_deny;
} vwn_file_options;
/* Parses and checks. *unit is set even on VWN_INPUT and VWN_CHECK (for fmt and reports). */
vwn_status vwn_check(vwn_context *ctx, const vwn_file_options *file, vwn_unit **unit);
const char *vwn_model_name(const vwn_unit *unit); /* of its model; NULL: it has none */
/* What a word, typed where no setting can stand, may have meant in the file: the nearest path that `set` can have, or NULL. *inner: the
 * first argument of the call that stands there, or NULL. Both live in the context. */
const char *vwn_setting_meant(vwn_context *ctx, const vwn_file_options *file, const char *word, const char **inner);
/* Diagnostics filed so far, rendered as text (or JSON lines) and then forgotten. Returns errors. */
size_t vwn_diagnostics(vwn_context *ctx, const vwn_writer *out, bool json, bool color, size_t *warnings);

typedef enum vwn_report {
    VWN_REPORT_CHECK, /* "ok check ..." lines and "Finished ..." */
    VWN_REPORT_PARAMS,
    VWN_REPORT_PARAMS_BY_LAYER,
    VWN_REPORT_PARAMS_BY_NODE,
    VWN_REPORT_PARAMS_BY_GROUP,
    VWN_REPORT_PARAMS_BY_TENSOR,
    VWN_REPORT_LOSSES,
    VWN_REPORT_COST,     /* parameters, FLOPs, bytes; peak memory of training as planned */
    VWN_REPORT_GROWTH,   /* what the growth step `program` does to every tensor; VWN_CHANGES when it does something */
    VWN_REPORT_RESOLVED, /* the file with every default and override written out */
    VWN_REPORT_GRAPH,    /* the model, or with `program` a layer "3" or a module, as DOT; JSON with `json` */
    VWN_REPORT_ORIGINS,  /* where each let's value comes from */
    VWN_REPORT_AST,
    VWN_REPORT_TENSOR,
    VWN_REPORT_GRADIENT,
    VWN_REPORT_SIMPLE,
    VWN_REPORT_FUSE,
    VWN_REPORT_KERNEL,
    VWN_REPORT_THREADS,
    VWN_REPORT_C,
    VWN_REPORT_CUDA,
    VWN_REPORT_PLAN,   /* `vwn ir --stage` */
    VWN_REPORT_PASSES, /* the passes of the compiler in their order, and what each did */
    VWN_REPORT_PASS    /* what `pass` has made */
} vwn_report;
typedef struct vwn_report_options {
    bool json;
    int64_t batch_seqs;        /* cost and plans: 0 = the file's micro batch */
    int64_t ranks;             /* cost: of so many processes, which share the lanes of a step; 0: of one */
    double bandwidth, latency; /* of these: bytes a second of each, 0: not known; seconds of an exchange */
    int64_t positions;         /* plans of vwn_graph_report: 0 = 1 */
    const char *pass;          /* ir: of VWN_REPORT_PASS: a name that vwn_passes lists */
    bool gpu;                  /* ir: FUSE, KERNEL, PLAN, PASSES and PASS are of a GPU's plan, not of the CPU's */
    const char *program;       /* ir: "train", "update", "eval", "predict"; growth: the step's name; graph: the layer */
} vwn_report_options;
vwn_status vwn_write_report(vwn_unit *unit, vwn_report what, const vwn_report_options *how, const vwn_writer *out);
/* The stages of `vwn ir` (TENSOR to PLAN) from a graph's text, as TENSOR, GRADIENT and SIMPLE print
 * it. GRADIENT adds what the output "loss" gives for every parameter. From the text of kernels, as
 * KERNEL prints it, the stages KERNEL and C. */
vwn_status vwn_graph_report(vwn_context *ctx, const vwn_file_options *graph, vwn_report what,
                            const vwn_report_options *how, const vwn_writer *out);
/* The text of the unit's own file with every certain fix of its diagnostics applied, and a line for each, such as
 * "model.vwn:3:9: `True` -> `true`"; to be called before vwn_diagnostics forgets them. Returns the number of fixes; 0 writes
 * nothing. */
size_t vwn_fixed_text(vwn_unit *unit, const vwn_writer *out, const vwn_writer *changes);
/* What editors ask: a language server of LSP 3.17, fed with the bytes of an editor. It opens no file but those that documents
 * import, and writes none. */
typedef struct vwn_server vwn_server;
typedef struct vwn_server_options {
    void *(*resize)(void *user, void *p, size_t old_size, size_t new_size); /* NULL: malloc */
    void *user;
    /* Whether more has come: a check that is under way is then given up, and done again later. NULL: nothing is given up. */
    bool (*waiting)(void *waiting_user);
    void *waiting_user;
} vwn_server_options;
typedef struct vwn_server_counts {
    size_t messages, changes; /* of the editor; of texts */
    size_t checks, given_up;  /* that were begun; that something came in between */
    size_t early;             /* checks that said what they had before what takes long */
    bool well;                /* `exit` came behind `shutdown` */
} vwn_server_counts;
vwn_server *vwn_server_open(const vwn_server_options *options); /* NULL: no memory */
/* Takes what has come, in pieces of any size; each message for the editor is put in one piece. False: `exit` has come. */
bool vwn_server_take(vwn_server *server, const char *bytes, size_t n, const vwn_writer *out);
vwn_server_counts vwn_server_counted(const vwn_server *server);
void vwn_server_close(vwn_server *server); /* NULL is fine */
/* Canonical text of a file (or of `text` for "-"). */
vwn_status vwn_format_file(vwn_context *ctx, const vwn_file_options *file, const vwn_writer *out);
/* NULL: the list of codes. */
vwn_status vwn_explain(vwn_context *ctx, const char *code, const vwn_writer *out);
vwn_status vwn_doc(vwn_context *ctx, const char *name, const vwn_writer *out); /* NULL: index */
/* Everything about a topic: names, sentences, names of other programs, messages, sections of the reference. */
vwn_status vwn_doc_search(vwn_context *ctx, const char *word, const vwn_writer *out);
/* The i-th thing that a flag or a verb of another program is here: ours, or what *text says. False: there is no more. */
bool vwn_other_name(const char *word, size_t i, const char **ours, const char **text);
/* The passes of the compiler, a line each: name, sentence. */
vwn_status vwn_passes(vwn_context *ctx, const vwn_writer *out);
/* `measure`: also what the machine does a second of all that plans are made of, in about a second; it is
 * kept in the cache folder, and VWN_REPORT_COST says from then on how long a step should take. */
vwn_status vwn_doctor(vwn_context *ctx, bool json, bool measure, const vwn_writer *out);

/* ---- a model as C or CUDA C, or for PyTorch ---- */
typedef struct vwn_emit_options {
    const char *folder; /* made when it is not there */
    bool force;         /* also into a folder that holds files of others */
    bool cuda;          /* CUDA C for a GPU instead of C for the CPU */
    bool train, infer;  /* training must be there; is left out. Neither: if the file has it */
    bool fast;          /* with cuda: sums in any order where that is faster; runs are not repeated bit for bit */
    bool json;
    int64_t batch_seqs;  /* sequences of one run of a program; 0 = the file's micro batch, or 1 */
    bool torch;          /* a Python package for PyTorch instead; of the above `folder`, `force` and `json` count */
    const char *node;    /* connections: of which sublayers, by path with [*] for any number; "*": of all */
    const char *block;   /* blocks: which modules, by path or by the block's name; both NULL: the whole model */
    const char *package; /* its name in Python; NULL: the model's */
    bool build;          /* its library of kernels is compiled, too */
} vwn_emit_options;
/* Writes a folder that builds without vwn and runs evaluation and training, with initial weights; the
 * names of its files go to `out`. VWN_USAGE for a folder that is not to be overwritten. */
vwn_status vwn_emit(vwn_unit *unit, const vwn_emit_options *how, const vwn_writer *out);

/* ---- texts as shards of token ids ---- */
typedef struct vwn_tokenize_event {
    double share; /* of the texts that are done, 0 to 1; negative: nobody knows, as of the standard input */
    int64_t bytes, tokens, documents;                        /* of text, in shards or on the way there; of all starts */
    int64_t shards;                                          /* that are whole */
    double bytes_per_second, tokens_per_second, eta_seconds; /* of this start; NaN: not known yet */
    const char *text;                                        /* a sentence, when a shard is whole, or NULL */
} vwn_tokenize_event;
typedef struct vwn_tokenize_options {
    const char *const *text; /* files, each as it is or packed by gzip or zstd; "-": the standard input */
    size_t n_texts;
    const char *folder;    /* of the shards; made when it is not there */
    const char *tokenizer; /* a file that says itself how a text is cut; NULL: that of the unit */
    vwn_unit *unit;        /* a checked file, whose `tokenizer` is taken; or NULL */
    const char *field;     /* all texts are JSON lines, and this member of each is a document; NULL: those named .jsonl
                              or .ndjson, of which "text" is; else a text is one document */
    const char
        *separator; /* the token that documents begin with, by its text; "": none; NULL: the tokenizer's end of text */
    int64_t shard_tokens; /* 0 = 100,000,000 */
    bool shuffle;  /* texts are taken in another order, and documents of a block of 64 MiB of text in another one */
    uint64_t seed; /* that decides which */
    bool resume, overwrite, json;
    void (*event)(void *user, const vwn_tokenize_event *e);
    void *user;
} vwn_tokenize_options;
/* Writes FOLDER/tokens_000000.bin and so on, ids of 2 bytes, or 4 for more than 65,536 of them, and FOLDER/tokens.json, which says what
 * they are: `token_files` reads it. What is written depends on texts, tokenizer and options alone. A start that was stopped or killed
 * leaves whole shards, behind which `resume` goes on to the same bytes. VWN_USAGE: the folder holds something, or what is resumed was
 * begun in another way. A summary goes to `out`. */
vwn_status vwn_tokenize(vwn_context *ctx, const vwn_tokenize_options *how, const vwn_writer *out);

typedef struct vwn_vocabulary_options {
    const char *const *text; /* as above */
    size_t n_texts;
    const char *field, *separator; /* as above; NULL: <|endoftext|>, the token with the id 0 */
    const char *split; /* a pattern that cuts texts into pieces, none of which a token goes beyond; NULL: GPT-2's */
    int64_t tokens;    /* of the vocabulary, with 256 for bytes and the separator */
    int64_t
        pieces_most; /* different pieces that are kept while texts are read; beyond them the rarest go; 0 = 16,000,000 */
    bool json;
    const vwn_writer *file; /* of the tokenizer */
    void (*event)(void *user,
                  const vwn_tokenize_event *e); /* while texts are read, and, with `tokens`, while merges are made */
    void *user;
} vwn_vocabulary_options;
/* Writes a byte-level BPE tokenizer, a tokenizer.json, to `file`, whose merges are those of the trainer of Hugging Face's tokenizers on the
 * same documents, with any number of threads; of pairs that are equally frequent that of the lower ids is the first. Counts have 64
 * bits. A summary goes to `out`; vwn_warning: the rarest pieces were not all counted. */
vwn_status vwn_train_tokenizer(vwn_context *ctx, const vwn_vocabulary_options *how, const vwn_writer *out);

/* ---- models of transformers ---- */
typedef struct vwn_from_options {
    const char *folder; /* with config.json, model.safetensors or its index, and maybe tokenizer.json */
} vwn_from_options;
/* The text of a `.vwn` of that model: settings, tensors' names, and a `train` that begins with its weights. VWN_INPUT where it is
 * none that vwn knows, or a tensor has no place. */
vwn_status vwn_from_hf(vwn_context *ctx, const vwn_from_options *how, const vwn_writer *out);
typedef struct vwn_hf_options {
    const char *run;    /* a run, "DIR@STEP" or a checkpoint */
    const char *folder; /* made when it is not there; else it must be empty */
    const char
        *family; /* "llama"; NULL: that which the model is called by, if it is of it, else the first that it is of */
    bool last;   /* the weights of the last step, not their averages */
    const char *dtype; /* "float32", "bfloat16" or "float16"; NULL: float32 */
    bool json;
} vwn_hf_options;
/* model.safetensors, config.json and the tokenizer's file for transformers; their names go to `out`. VWN_INPUT where the model is none
 * of those that it has. */
vwn_status vwn_export_hf(vwn_context *ctx, const vwn_hf_options *how, const vwn_writer *out);

/* ---- training ---- */
typedef enum vwn_event_kind {
    VWN_EVENT_START,
    VWN_EVENT_COMPILE,
    VWN_EVENT_STEP,
    VWN_EVENT_EVAL,
    VWN_EVENT_CHECKPOINT,
    VWN_EVENT_NOTE,
    VWN_EVENT_END,
    VWN_EVENT_WARNING, /* a note that nobody should miss */
    VWN_EVENT_GROWTH,  /* a growth step was carried out */
    /* Measured before the first step of a grown model, or of one that begins with the weights of a run: an output beside
     * the old model's, the gradients of new blocks. What became of tensors, of a run that begins with other weights. */
    VWN_EVENT_OUTPUT,
    VWN_EVENT_BLOCK,
    VWN_EVENT_TENSOR
} vwn_event_kind;
typedef struct vwn_event {
    vwn_event_kind kind;
    int64_t step, steps, tokens;
    double loss, eval_loss, lr, grad_norm, tokens_per_second;
    double seconds,
        eta_seconds;  /* since the first step of this start began (COMPILE of preparations: what they took) */
    const char *text; /* start: summary; compile: "31 kernels: ..."; others: a sentence or NULL */
    const char *json; /* the same event as one JSON object, as written to events.jsonl */
} vwn_event;
typedef struct vwn_train_options {
    const char *run;     /* run directory; NULL = runs/<model name> */
    bool resume;         /* go on from the last checkpoint of the run; see file.resume */
    bool restarted;      /* with `resume`: where there is no run yet it begins */
    bool overwrite;      /* start anew in a directory that has a run */
    bool dry_run;        /* everything up to the first step */
    int64_t until_steps; /* stop (with a checkpoint) after this many steps; 0 = to the end */
    void (*event)(void *user, const vwn_event *e);
    void *user;
} vwn_train_options;
typedef struct vwn_run_text {
    const char
        *file; /* that a run was trained from when it was last started, which may be there no more; NULL: not known */
    const char *kept, *folder; /* the copy of it in the run, NULL: there is none; where the file lay, as file.folder */
} vwn_run_text;
/* VWN_USAGE where there is no run. What it tells lives in the context. */
vwn_status vwn_run_file(vwn_context *ctx, const char *run, vwn_run_text *text);
vwn_status vwn_train(vwn_unit *unit, const vwn_train_options *how);

typedef struct vwn_prepare_options {
    /* Sets the path, the text and `set` of the next file to train, which must stay until it is called again; false: there
     * are no more. Called by one thread at a time, but not always the same. */
    bool (*next)(void *user, vwn_file_options *file);
    void *user;
    void (*event)(void *event_user, const vwn_event *e); /* COMPILE: "96 kernels of 1000 files: ..."; WARNING */
    void *event_user;
} vwn_prepare_options;
/* Compiles the kernels that training any of these files will want, each once and all together, into the folder for
 * kernels and, with a workbench, its device, so that none of them compiles anything. What is in memory does not grow
 * with the number of files. A file with errors is left out: vwn_check says what is wrong. */
vwn_status vwn_prepare(vwn_context *ctx, const vwn_prepare_options *how);

/* From another thread: finish the step, write a checkpoint, return. Safe in a signal handler too, but
 * not on a thread that computes: products keep data at the stack pointer. Block signals there. */
void vwn_interrupt(vwn_context *ctx);

/* ---- a model that stays open ---- */
enum { VWN_RANK_MOST = 8 };
/* Memory of tensors, aligned to 64 bytes. It lives until its last holder lets go of it, on any thread, whatever has become of the
 * model by then. */
typedef struct vwn_memory vwn_memory;
vwn_memory *vwn_memory_keep(vwn_memory *memory); /* one holder more; returns it; NULL is fine */
void vwn_memory_release(vwn_memory *memory);     /* one less; NULL is fine */
/* A tensor, row-major. What a function returns comes with a hold on its memory, which is the caller's to release. */
typedef struct vwn_tensor {
    const char *name; /* where a function returns it, it lives as long as the context */
    const char *
        type; /* "float32" or "int64"; "float64": real numbers of the reference evaluator; both are taken from callers */
    int rank;
    int64_t extent[VWN_RANK_MOST];
    void *data;
    vwn_memory *memory; /* NULL in what a caller gives: it is read during the call alone */
} vwn_tensor;
/* The same as a DLManagedTensor of DLPack 0.8 on the CPU, with a hold of its own that its deleter gives back; NULL: no memory. */
void *vwn_tensor_dlpack(const vwn_tensor *tensor);
void vwn_dlpack_unused(
    void *capsule); /* the destructor of a capsule of Python's, "dltensor", that may not have been taken */

typedef struct vwn_model vwn_model;
typedef struct vwn_model_options {
    const char *source; /* a run, "DIR@STEP" or a checkpoint: its model with its weights. NULL: that of `unit` */
    bool last;          /* the weights of the last step, also where the run kept their average */
    vwn_unit *unit;     /* with the weights that training begins with */
    bool train; /* `unit` can be trained: it has a `train`, and its data is there, or is not asked for without a run */
    const char *run;        /* of `train`: the folder of checkpoints and events; NULL: none is kept */
    bool resume, overwrite; /* as in vwn_train_options */
} vwn_model_options;
/* Opens a device and brings the weights. One call at a time. To be closed before its context, and before another call of the
 * context where that has a workbench. VWN_USAGE, VWN_INPUT, VWN_ENVIRONMENT as vwn_eval or vwn_train, and *model is NULL. */
vwn_status vwn_model_open(vwn_context *ctx, const vwn_model_options *how, vwn_model **model);
void vwn_model_close(vwn_model *model); /* NULL is fine. Steps behind the last checkpoint are lost */
/* One JSON object: model, context, step, trains, type (of real numbers), text (whether texts have tokens), batch and positions (of a
 * step of training), inputs [{name, type, shape, below}], nodes [{name, shape}], parameters [{name, shape, learned}]. Shapes are
 * lists of numbers, "B" and "T". Nodes: outputs; what the embed nodes made, "embedded", the first state, "opened", and what heads are
 * given, "closed"; of each sublayer what it reads, PATH.read, and gives, PATH.wrote, and the state behind it, PATH.state; losses; each
 * module, PATH: the last value that it computes itself, in no module inside it. A node may also be asked for as "%12", by its number
 * in `vwn ir --stage tensor`. */
vwn_status vwn_model_describe(vwn_model *model, const vwn_writer *json);

typedef struct vwn_batch {
    const vwn_tensor *
        input; /* by name: "tokens" [B, T] of int64, "labels" [B, T], below 0 where there is none, ...; "document" [B, T],
                                the position at which the document of a position begins, may be left out: 0 */
    size_t n_inputs;
    bool training; /* of vwn_model_run: with the dropout of the next step of training, as vwn_model_backward has it */
} vwn_batch;
/* Computes nodes for a batch of any B from 1 on and T up to the context, into out[0 .. n - 1]. Their memory is never written again,
 * and nothing is copied: what nobody holds any more is used for the next call of the same node. On a GPU they are brought down. */
vwn_status vwn_model_run(vwn_model *model, const vwn_batch *batch, const char *const *node, size_t n, vwn_tensor *out);
/* The ids of a text, [n], or the text of ids, by the tokenizer of the run. */
vwn_status vwn_model_encode(vwn_model *model, const char *text, size_t n, vwn_tensor *ids);
vwn_status vwn_model_decode(vwn_model *model, const int64_t *ids, size_t n, const vwn_writer *out);

typedef enum vwn_tensor_kind { VWN_PARAMETER, VWN_GRADIENT } vwn_tensor_kind;
/* A parameter, or its gradient, where the model computes with it: it changes with every step, and stays as it is when the model is
 * closed. On a GPU a copy. Not to be written: vwn_model_put does that, with a tensor of the same name and shape. */
vwn_status vwn_model_tensor(vwn_model *model, vwn_tensor_kind kind, const char *name, vwn_tensor *out);
vwn_status vwn_model_put(vwn_model *model, vwn_tensor_kind kind, const vwn_tensor *numbers);

/* Steps that are driven from outside, of a model opened with `train`. First gradients, then an update by them.
 * vwn_model_gradient: of the file's own losses, on train.batch sequences of train.context positions, as vwn_train computes them to
 * the bit; *loss becomes their sum. NULL: the next batch of the file's data.
 * vwn_model_backward: of a loss of the caller's, given its gradients with respect to nodes, by their names, in their shapes, for a
 * batch of any size. The forward pass is computed again. `add`: to the gradients that are there, which no update has taken.
 * vwn_model_update: clipping, the optimizer, and the next step of all schedules. `loss`: what they know as train.loss; NaN: of
 * vwn_model_gradient, or none. VWN_DIVERGED: gradient or loss is not finite, and the weights are as before. */
vwn_status vwn_model_gradient(vwn_model *model, const vwn_batch *batch, double *loss);
vwn_status vwn_model_backward(vwn_model *model, const vwn_batch *batch, const vwn_tensor *gradient, size_t n, bool add);
typedef struct vwn_progress {
    int64_t step, steps, tokens; /* steps: of the whole run */
    double loss, lr, grad_norm;  /* of the last step; loss: NaN where it is not known */
} vwn_progress;
vwn_status vwn_model_update(vwn_model *model, double loss, vwn_progress *progress);
/* The batch that vwn_model_gradient(model, NULL, ..) would take: tokens, labels, document; *n of them. Of texts alone. */
vwn_status vwn_model_batch(vwn_model *model, vwn_tensor out[3], size_t *n);
/* A checkpoint, from which `vwn resume` and vwn_train go on. VWN_USAGE: the model was opened without a run. */
vwn_status vwn_model_save(vwn_model *model);

/* ---- a growth step of a trained model ---- */
typedef struct vwn_grow_options {
    const char *source; /* run directory, "DIRECTORY@STEP" or checkpoint file: the model before the step */
    const char *step;   /* its name; the next one of the file */
    const char
        *apply_to; /* the checkpoint of the grown model that is written, after the step was measured; NULL: the plan
                             goes to `out`, and nothing is computed */
    bool json;
    void (*event)(void *user, const vwn_event *e);
    void *user;
} vwn_grow_options;
/* Every tensor of the source is compared with the model before the step, which it must be. VWN_CHANGES for a plan that does
 * something, VWN_DIVERGED when the step changes outputs by more than the file says. The source stays as it is. */
vwn_status vwn_grow(vwn_unit *unit, const vwn_grow_options *how, const vwn_writer *out);

/* ---- kernels as machine code of GPUs ---- */
typedef struct vwn_cubin_options {
    const char *arch;    /* "sm_90a"; NULL = that of the first GPU here, else sm_80 */
    const char *program; /* "train", ...; NULL = all that a run needs, or predict without `train` */
    int64_t batch_seqs;  /* 0 = the file's micro batch */
    bool json;           /* an object a line: v, event "cubin", arch, kernel, registers, frame, spilled,
                            shared, threads, code (bytes), path */
    void (*event)(void *user, const vwn_event *e); /* COMPILE, WARNING */
    void *user;
} vwn_cubin_options;
/* Compiles the kernels with NVRTC, or finds them in the kernel cache, and says what they use: registers,
 * stack and spills of a thread in bytes, shared memory of a block. Needs no GPU; VWN_ENVIRONMENT where
 * the CUDA compiler is not there. */
vwn_status vwn_cubins(vwn_unit *unit, const vwn_cubin_options *how, const vwn_writer *out);

/* ---- measuring ---- */
typedef struct vwn_bench_options {
    int64_t steps;       /* timed, after the first and two to warm up; 0 = 10 */
    bool kernels;        /* also every kernel and every product */
    bool json;           /* one object, below, instead of text */
    const char *against; /* content of an earlier object to compare with, or NULL */
    size_t against_length;
    const char *against_name;                      /* what messages call it */
    void (*event)(void *user, const vwn_event *e); /* COMPILE, NOTE, WARNING */
    void *user;
} vwn_bench_options;
/* Takes training steps that leave nothing behind and measures them: the step, its kernels, and in the
 * same call what the machine can do. Where the file's data is missing, it is drawn at random.
 *
 * The object (schema "vwn.bench", v 1; names stay, others may be added; times in ms, spread is how far
 * the lower quartile of the steps lies above the best, as a share):
 *   schema, v, vwn, build, file, model, weights, batch, micro_batch, context, tokens_per_step,
 *   precision (as written), data ("file" or "synthetic"), threads, cpu, backend, device (of a GPU)
 *   machine  {copy_gb_s (on a CPU non-temporal), copy_bytes (of both arrays), fma_gflop_s (of a CPU in registers, of a
 *            GPU in a product of random float32 numbers), bf16_gflop_s, fp16_gflop_s (where a product has such
 *            operands), multiprocessors (of a GPU)}
 *   step     {timed, warmup, best_ms, median_ms, mean_ms, spread, outside_ms (median, no kernel),
 *            host_ms, waited_ms (with a GPU: the host queues a step, and waits for it; medians),
 *            launches_ms (each launch at its best), estimate_ms (of a step, where rates are kept),
 *            times_ms [each]}
 *   tokens_s {best, median}
 *   roofline {bound_ms, share_best, share_median}: bound = sum over launches of
 *            max(compulsory bytes / copy_gb_s, flops / fma_gflop_s or bf16_gflop_s);
 *            share = bound / step
 *   memory   {arena_bytes, tensor_bytes, resident_peak_bytes}
 *   startup  {check_ms, plan_ms, kernels_ms, open_ms (data, device, weights), first_step_ms,
 *            total_ms, kernels, cached, compiled}
 *   kernels  with `kernels`: [{kind ("kernel", "product", "expert", "copy"), name, what, path, source,
 *            launches (a step), best_ms, median_ms, spread, share (of the steps), bytes, flops,
 *            bound_ms, and of a kernel of a GPU the launch with the most blocks: blocks, threads (of a block),
 *            blocks_sm (at one time on a multiprocessor), waves, registers (of a thread), shared (bytes of a
 *            block), spills (bytes of a thread)}], the costliest first. A GPU times its kernels itself, in steps of
 *            their own.
 *   against  with `against`: {name, step {was_ms, ratio, noise, change}, kernels [{name, was_ms, ratio, noise,
 *            change}], gone [{name, was_ms}], notes []}: best times, ratio = now / then, change
 *            "slower", "faster", "same" (within the noise of both and what
 *            machine's figures have changed) or "new"; noise: the share that hides a change
 * VWN_USAGE when `against` is no such object, or one of another model. */
vwn_status vwn_bench(vwn_unit *unit, const vwn_bench_options *how, const vwn_writer *out);

typedef struct vwn_eval_options {
    const char *source; /* run directory or checkpoint file */
    const char *data;   /* path replacing the file's data; NULL = the validation split */
    int64_t batches;    /* 0 = as the file says */
    int64_t batch_seqs; /* sequences in memory at once; 0 = the file's micro batch */
    bool last;          /* the weights of the last step, also where the run kept their average */
    bool json;
} vwn_eval_options;
vwn_status vwn_eval(vwn_context *ctx, const vwn_eval_options *how, const vwn_writer *out);

typedef struct vwn_task_event {
    int64_t done, requests;
    double tokens_per_second, eta_seconds; /* NaN: not known yet */
} vwn_task_event;
typedef struct vwn_task_options {
    const char *source; /* run directory or checkpoint file */
    const char *task;   /* JSON lines, as they are or packed by gzip or zstd */
    const vwn_writer
        *each; /* an object a line for each request, in their order: v, event "request", line, id, gold, choice,
                               choice_norm, and of each text logprob, greedy, tokens; or NULL */
    bool last; /* the weights of the last step, also where the run kept their average */
    bool
        json; /* one object: v, event "task", task, step, acc, acc_norm, bits_per_byte, each also with _stderr, requests,
                               tokens (of continuations), computed (positions), left_out (texts whose beginning did not fit), weights */
    void (*event)(void *user, const vwn_task_event *e); /* at most ten a second */
    void *user;
} vwn_task_options;
/* Which of its texts the model finds the likeliest, for each request of a task (grammar/README.md has the format): how often that is the
 * right one, by the sum of log-probabilities and by that divided by characters; bits per byte of the right ones; with standard errors.
 * These are the numbers of lm-evaluation-harness. VWN_INPUT: a line is no request, and vwn_message says which. */
vwn_status vwn_eval_task(vwn_context *ctx, const vwn_task_options *how, const vwn_writer *out);

typedef struct vwn_inspect_options {
    const char *const *source; /* a run that has grown; or checkpoints: before a growth step, then later ones, the
                                  first of which is, of three files and more, the grown model right after it */
    size_t n_sources;
    const char *step;    /* of a run: the name of the growth step; NULL = the last one */
    const char *tensors; /* a selector, "layer[*].attention"; NULL = the weights that grew */
    bool by_tensor;      /* also a table for each of them */
    bool densities;      /* NOC by kernel densities, not by histograms */
    int64_t bins;        /* of histograms, at least 1 */
    int64_t samples;     /* weights of each side that ranks and densities are made of, at least 1 */
    uint64_t seed;       /* that chooses them */
    bool json;           /* one object, event "inspect_growth" */
} vwn_inspect_options;
/* How far a grown model has moved from the weights before it, after sections 5.1, C and F of the Nexusformer paper: NOC,
 * U_P, R and |ln R| by checkpoint, distances where losses were measured, the estimators' settings above the table.
 * VWN_USAGE: there is nothing to compare; VWN_ENVIRONMENT: a file cannot be read; VWN_INPUT: it is of another model. */
vwn_status vwn_inspect_growth(vwn_context *ctx, const vwn_inspect_options *how, const vwn_writer *out);

typedef enum vwn_stats_form { VWN_STATS_TABLE, VWN_STATS_JSON, VWN_STATS_CSV } vwn_stats_form;
typedef struct vwn_stats_options {
    const char *source;  /* run directory, "DIRECTORY@STEP" or safetensors file */
    const char *tensors; /* a selector, or NULL: all */
    bool states;         /* also what the optimizer keeps */
    vwn_stats_form form; /* JSON: an object a line, event "tensor_stats" */
} vwn_stats_options;
/* Of each tensor shape, mean, standard deviation, least and greatest number, mean of |x|, norm, the share of zeros, and how many
 * numbers are not finite: they do not count in the others. */
vwn_status vwn_tensor_stats(vwn_context *ctx, const vwn_stats_options *how, const vwn_writer *out);

typedef struct vwn_diff_options {
    const char *a, *b;   /* run directories, or as the source of vwn_stats_options; of files how they are called */
    bool checkpoints;    /* of two runs: the tensors of their newest checkpoints; so it is with `tensors` */
    const char *tensors; /* a selector, or NULL: all */
    bool states;         /* of checkpoints: also what the optimizer keeps */
    bool json;
} vwn_diff_options;
/* What two checked files (`x` and `y`, else NULL), runs or checkpoints have not in common: VWN_CHANGES when there is something. The
 * files of runs that this version cannot read are compared byte by byte. */
vwn_status vwn_diff(vwn_context *ctx, vwn_unit *x, vwn_unit *y, const vwn_diff_options *how, const vwn_writer *out);

typedef struct vwn_inside_options {
    const char *source; /* run directory or checkpoint file */
    const char *data;   /* path replacing the file's data; NULL = the validation split */
    const char *what;   /* "connections", "weights", "inputs", "activations", "states" or "lens"; NULL = all of them */
    int64_t tokens;     /* that are looked at, at least, in whole windows; 0 = 1,024 */
    bool last;          /* the weights of the last step, also where the run kept their average */
    /* Is given each picture: a name for a file, what it shows, how to read it, SVG; NULL: nothing is drawn. */
    void (*picture)(void *user, const char *name, const char *title, const char *caption, const char *svg, size_t n);
    void *picture_user;
    const vwn_writer
        *page; /* with `picture`: a page of HTML that shows them as NAME.svg beside it, and inspect.json; or NULL */
} vwn_inside_options;
/* The first bytes of that page. */
#define VWN_INSIDE_PAGE "<!doctype html>\n<!-- written by `vwn inspect` -->\n"
/* What a trained model does inside, on held-out data: what connections hand from each sublayer to later ones (unfolded
 * matrices, Hyper-Connections section 4.5, by segments as of Virtual Width Networks), their weights that depend on the data,
 * how alike layer inputs are, how much of MLP activations is used, the spread of states and what they predict (Variable-Width
 * Transformers section 4). `text` has a summary, `json` one object, event "inspect"; either may be NULL. vwn_warning says what
 * this model has not. compiler/model/unfold.h and compiler/model/inside.h say exactly what is measured. Its members:
 *   connections  {sources [{path, segments, width}], reads [{path, segments, width, mean, std, gain, unexplained}], states [the
 *                same without the last]}: mean[j][a][b] is the factor of segment a of source j in segment b
 *   weights      [{path, of, divides, fixed, all, entries}]: {mean, std, p5, median, p95} of all entries and of each
 *   weight_histograms [{path, entry, low, high, share}]
 *   inputs       {cosine, next}
 *   activations  [{path, of, dimensions, experts, thresholds, density, participation, participation_share, unused, used, energy}]
 *   states       [{behind, entropy, rank, participation, target_log_probability, prediction_entropy, divergence}] */
vwn_status vwn_inspect(vwn_context *ctx, const vwn_inside_options *how, const vwn_writer *text, const vwn_writer *json);

typedef enum vwn_compare_form {
    VWN_COMPARE_TABLE,
    VWN_COMPARE_JSON,
    VWN_COMPARE_CSV,
    VWN_COMPARE_SVG
} vwn_compare_form;
typedef enum vwn_compare_axis { VWN_BY_STEP, VWN_BY_TOKENS, VWN_BY_FLOPS, VWN_BY_SECONDS } vwn_compare_axis;
typedef struct vwn_compare_options {
    /* Run directories; "NAME=RUN,RUN": runs that are averaged, as those of several seeds; the folder of a sweep: its points, those that
     * differ in the seed alone together. */
    const char *const *run;
    size_t n_runs;
    const char *
        metric; /* a name in their events.jsonl; NULL = "eval_loss", or "loss" where a run has evaluated less than twice; "bits_per_byte"
                   where all have it and their tokenizers differ */
    vwn_compare_axis by;
    bool group;     /* runs whose files differ in the seed alone are averaged, too */
    int64_t smooth; /* points that are averaged around each; 0 = 1, of "loss" one in fifty of all */
    vwn_compare_form form;
} vwn_compare_options;
/* What runs have learned, at the last step (or ...) that all have reached, and at equal tokens, FLOPs and seconds; means over seeds with
 * their 95 % intervals, and which differences lie within them; runs may be going on. VWN_USAGE: no run, or it
 * has not written such numbers. Lines that are damaged are passed over, and vwn_warning says where. */
vwn_status vwn_compare(vwn_context *ctx, const vwn_compare_options *how, const vwn_writer *out);

typedef enum vwn_watch_form {
    VWN_WATCH_SCREEN, /* a curve and the last numbers, as wide and high as asked for */
    VWN_WATCH_LINE,   /* the last numbers in one line */
    VWN_WATCH_JSON    /* one object, event "watch": run, state, step, steps, tokens, loss, ..., null where not known */
} vwn_watch_form;
typedef struct vwn_watch_options {
    const char *run; /* directory */
    vwn_watch_form form;
    int columns, rows;
    bool utf8; /* the screen may have other characters than ASCII */
} vwn_watch_options;
/* Whether somebody trains there; else how it ended: VWN_OK, VWN_INTERRUPTED, VWN_DIVERGED, or VWN_ENVIRONMENT when it
 * failed or ended without a word. */
typedef struct vwn_watched {
    bool going_on;
    vwn_status ended;
} vwn_watched;
/* What a run that may be going on has said so far; *seen may be NULL. VWN_USAGE: there is no run (yet). Lines that are
 * damaged are passed over, and vwn_warning says where. */
vwn_status vwn_watch(vwn_context *ctx, const vwn_watch_options *how, const vwn_writer *out, vwn_watched *seen);

typedef struct vwn_runs_options {
    const char *folder; /* NULL = "runs" */
    const char *sort;   /* a column, or a setting by its path; NULL: by folder */
    bool reverse;       /* the greatest first */
    const char *const
        *filter; /* "NAME=VALUE", with = != < <= > >= ~: a column, "tag", "note" or a setting; all of them hold */
    size_t n_filter;
    bool json; /* an object a line, event "run" or "sweep" */
} vwn_runs_options;
/* All runs and sweeps below a folder: state, settings that differ, where they are, losses, weights, time, tags; of a single one
 * also how it was started each time. */
vwn_status vwn_runs(vwn_context *ctx, const vwn_runs_options *how, const vwn_writer *out);
/* The runs that operands of these functions stand for: each folder of a sweep in the place of its runs that have begun. A path lives as
 * long as the call of `use`. */
vwn_status vwn_each_run(vwn_context *ctx, const char *const *operand, size_t n,
                        void (*use)(void *user, const char *run), void *user);
typedef struct vwn_label_options {
    const char *folder;     /* of a run or a sweep */
    const char *const *tag; /* are added, or with `remove` taken away; NULL: they stay */
    size_t n_tags;
    bool remove;
    const char *note; /* takes the place of the one that is there; "": none; NULL: it stays */
    bool json;
} vwn_label_options;
/* Changes the tags and the note of a run, and prints them. */
vwn_status vwn_label(vwn_context *ctx, const vwn_label_options *how, const vwn_writer *out);
/* Removes a run, or a sweep with its points: the files that vwn has made, and folders that are empty then. VWN_USAGE, and nothing is removed:
 * somebody trains there, it is another user's, a link, or no run. What stays is told. */
vwn_status vwn_remove_run(vwn_context *ctx, const char *folder, bool json, const vwn_writer *out);

typedef enum vwn_page_connections { VWN_PAGE_SMALL, VWN_PAGE_ALL, VWN_PAGE_NONE } vwn_page_connections;
typedef struct vwn_page_options {
    const char *const *run; /* run directories, folders of sweeps, folders with runs */
    size_t n_runs;
    vwn_page_connections
        connections; /* of which models their matrices are measured: where that takes about a second, of all, of none */
    size_t *shown;   /* becomes the number of runs on the page; may be NULL */
} vwn_page_options;
/* Runs, which may be going on, as one page of HTML that needs no network: what was run, curves, widths, connections as `vwn inspect`
 * measures them, costs, growth; what runs share stands there once. VWN_USAGE: one is no run. What cannot be read is left out, and
 * vwn_warning says so. */
vwn_status vwn_page(vwn_context *ctx, const vwn_page_options *how, const vwn_writer *out);
/* ---- sweeps ---- */
typedef enum vwn_sweep_kind {
    VWN_SWEEP_START,   /* all points are known: text */
    VWN_SWEEP_POINT,   /* one begins or goes on */
    VWN_SWEEP_TRAIN,   /* of its training: `train` */
    VWN_SWEEP_WRONG,   /* its diagnostics: text, several lines */
    VWN_SWEEP_END,     /* it is done, or failed: text */
    VWN_SWEEP_NOTE,    /* between points: text */
    VWN_SWEEP_COUNTED, /* one of a list: `finished` of `of`, points that differ in the seed alone being one */
    VWN_SWEEP_PLANNED /* the kernels of `point` are planned now, before any is trained: `finished` of `of` were before it */
} vwn_sweep_kind;
typedef struct vwn_sweep_event {
    vwn_sweep_kind kind;
    const char *point; /* its name, or NULL */
    size_t number, of; /* place of the point, from 1; all points */
    size_t finished;   /* points that need no more work */
    const vwn_event *train;
    const char *text;
    const char *json; /* START, POINT, END, NOTE: as one JSON object */
    bool failed;      /* END */
    double
        eta_seconds; /* END, steps of TRAIN: until all points are done, as those before them were; NaN: nothing tells */
} vwn_sweep_event;
typedef enum vwn_sweep_form { VWN_SWEEP_TABLE, VWN_SWEEP_JSON, VWN_SWEEP_CSV } vwn_sweep_form;
typedef struct vwn_sweep_options {
    vwn_file_options file; /* `set`: of all points */
    const char *name;      /* which `sweep`; NULL = the only one, or none: `vary` alone */
    const char *const *
        vary; /* axes besides those of the file, or in their place: "PATH=V1,V2", "PATH=range(a, b, n)", "PATH=between(a, b)" */
    size_t n_vary;
    const char *seeds; /* "1,2,3"; NULL = as the file says */
    const char *until; /* "500 steps", "10M tokens", "30 min"; NULL = as the file says */
    const char
        *random;     /* how often axes of `between` are drawn: "20", "draws(20, seed = 7)"; NULL = as the file says */
    const char *run; /* directory; NULL = runs/<name of the sweep> */
    bool list;       /* what points cost; nothing is trained */
    bool resume, overwrite;
    int jobs; /* points at a time, each with its share of the threads; 0 = 1 */
    vwn_sweep_form form;
    const vwn_writer *svg; /* also a picture, or NULL */
    const char
        *by; /* its axis: a path, "params", "stored" or "flops"; NULL = the columns of `report`, or the first numbers */
    bool color;                                          /* of diagnostics */
    void (*event)(void *user, const vwn_sweep_event *e); /* one at a time, on several threads */
    void *user;
} vwn_sweep_options;
/* Trains every point of a sweep as a run DIRECTORY/POINT, or lists what they cost; a table goes to `out`. A point that fails is
 * told and passed over; the status is then that of the worst one. Processes that have joined (vwn_join) share the points; the first
 * of them tells and writes. What was stopped or killed goes on with `resume`. VWN_USAGE:
 * the directory holds another sweep. */
vwn_status vwn_sweep(vwn_context *ctx, const vwn_sweep_options *how, const vwn_writer *out);

typedef enum vwn_export_form { VWN_EXPORT_CSV, VWN_EXPORT_JSON, VWN_EXPORT_TENSORBOARD } vwn_export_form;
typedef struct vwn_export_options {
    const char *const *run; /* run directories; of TensorBoard one */
    size_t n_runs;
    vwn_export_form form;
} vwn_export_options;
/* All events of runs, which may be going on, seconds counted through resumes: a table with a column for each number, an object a
 * line, or the bytes of an event file of TensorBoard, which holds scalars and the settings. vwn_warning says where lines are damaged. */
vwn_status vwn_export_log(vwn_context *ctx, const vwn_export_options *how, const vwn_writer *out);

/* Where the time of a run of several processes went: a row for each, of a mean step, which computed, waited for others, or moved
 * bytes; bytes of gradients and weights that it sent; its memory. With `json` one object, "event": "ranks". */
typedef struct vwn_ranks_options {
    const char *run;
    bool json;
} vwn_ranks_options;
vwn_status vwn_ranks(vwn_context *ctx, const vwn_ranks_options *how, const vwn_writer *out);

typedef enum vwn_plot_form { VWN_PLOT_TEXT, VWN_PLOT_JSON, VWN_PLOT_CSV, VWN_PLOT_SVG } vwn_plot_form;
typedef struct vwn_plot_options {
    const char *run; /* a run directory, where no file is given */
    const char *const
        *path; /* of a file: "layer[*].ffn.hidden", a list, "train.optimizer.lr", an expression of the step; of a
                                run: names in its events.jsonl. None: the list of what there is */
    size_t n_paths;
    vwn_compare_axis by; /* of a run */
    int64_t points;      /* of what is over the steps of a file: at most about so many; at least 2 */
    vwn_plot_form form;
    int columns;  /* of a text */
    bool unicode; /* a text may have signs that ASCII has not */
} vwn_plot_options;
/* Curves of a checked file (`unit`, else NULL) before anything is trained, or of a run. VWN_USAGE: there is no such path, or
 * paths are over different axes; vwn_message says what there is. vwn_warning: what only the run will decide. */
vwn_status vwn_plot(vwn_context *ctx, vwn_unit *unit, const vwn_plot_options *how, const vwn_writer *out);

typedef struct vwn_serve_options {
    const char *source; /* run directory or checkpoint file */
    int port;           /* of 127.0.0.1; 0: any that is free */
    int64_t queue;      /* texts that may wait, at least 1 */
    int64_t seconds;    /* that a request may take */
    bool last;          /* as above */
    bool json;          /* one object: v, event "serve", url, model, rows, context */
} vwn_serve_options;
/* Answers requests of this machine over HTTP until vwn_interrupt, which is VWN_OK: POST /v1/completions as OpenAI has it (texts or ids; stream,
 * echo and logprobs), /tokenize, /detokenize; GET /tokenizer_info, /v1/models, /health. A line goes to `out` when it listens. Several texts are
 * computed together, each at its position. VWN_ENVIRONMENT: the port is taken, or libmicrohttpd is missing. */
vwn_status vwn_serve(vwn_context *ctx, const vwn_serve_options *how, const vwn_writer *out);

typedef struct vwn_sample_options {
    const char *source; /* run directory or checkpoint file */
    const char *const *prompts;
    size_t n_prompts;   /* 0: one that is empty */
    int64_t tokens;     /* added to each */
    double temperature; /* 0 = always the most likely */
    int64_t top_k;      /* so many of the likeliest; of equals the lower id; 0 = all */
    double top_p; /* of these the likeliest whose sum, without the last of them, is below this share; 0 and 1 = all */
    double min_p; /* of these those with at least this share of the likeliest one's probability; 0 = all */
    double
        repetition; /* logits of tokens that the text has are divided by it, negative ones multiplied; 0 and 1 = as they are */
    const char *const *stops; /* a text ends with the token that completes one of these behind its prompt */
    size_t n_stops;
    size_t texts;   /* of each prompt, one behind the other; 0: one */
    uint64_t seed;  /* with the prompt's place in the list and the text's among its own it gives the random choices */
    bool last;      /* as above */
    bool json;      /* one object a line: v, event, prompt, text, tokens, step, text_of_prompt (from 0), index */
    bool recompute; /* predict each token from the whole context, keeping nothing */
} vwn_sample_options;
/* Each prompt and its text, a blank line between two, written as they are made. A text does not
 * depend on the other prompts. What is behind token n of a text is predicted from tokens
 * [s, n): s is 0 up to the model's context, then it moves on by half a context at a time. Models
 * whose positions need later ones are predicted as with `recompute`, and vwn_warning says why. */
vwn_status vwn_sample(vwn_context *ctx, const vwn_sample_options *how, const vwn_writer *out);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#endif
