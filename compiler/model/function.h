/* function.h - a part of a model as a function, and its gradient.
 *
 * In:  a Model, values that are given and values that are wanted.   Out: graphs of that part alone.
 * The one idea: a function is a cut through the model's graph. What is given becomes an input, what is wanted is stored; the
 * parameters in between are parameters. The gradient computes the function once more from what was given, so nothing is kept
 * from one to the other.
 */
#ifndef VWN_FUNCTION_H
#define VWN_FUNCTION_H

#include "model.h"

typedef struct FunctionPort {
    Name name;
    Val value; /* of the model's graph */
} FunctionPort;

typedef struct ModelFunction {
    const Model *m;
    Name name;  /* "read" */
    Name owner; /* the path of the module whose parameters it has, "layer[1].ffn"; "" for all of the model */
    VEC(FunctionPort) given;
    VEC(FunctionPort) wanted;
    VEC(size_t) param; /* numbers of the model's parameters that it reads, ascending */
} ModelFunction;

/* The parameters it reads. Returns why it is no function of what is given alone, as the end of a sentence, or NULL. */
const char *function_close(ModelFunction *f, Arena *arena);

/* EXT_INPUT tensors under the names of what is given, EXT_PARAM or EXT_BUFFER those of parameters; what is wanted is stored
 * in EXT_STEP tensors. */
Graph *function_forward(const ModelFunction *f, Arena *arena);
/* Reads the same, and EXT_INPUT "NAME.grad" for each of what is wanted, which has the gradient of something with respect to it.
 * Stores the gradients with respect to what is given in EXT_STEP tensors of these names, and those of parameters in EXT_GRAD
 * tensors: zeros where nothing depends on one. Integers and buffers have none. */
Graph *function_gradient(const ModelFunction *f, Arena *arena);
Name function_gradient_name(Ctx *ctx, Name wanted);

/* The connection around sublayer i: `read` makes what the sublayer is given of the state, `write` makes the state behind it of
 * the state and what the sublayer returned. */
void function_of_read(ModelFunction *f, const Model *m, size_t i, Arena *arena);
void function_of_write(ModelFunction *f, const Model *m, size_t i, Arena *arena);
/* The same in one pass over the state less: what `write` needs of it beside the state itself are a few numbers for each position,
 * such as coefficients, which `begin` makes with x, and `end` is given. Returns how many such values there are; 0: none, or too
 * many. */
enum { GATES_MOST = 8 };
#define FUNCTION_GATE "gate" /* and its number: what they are called */
size_t function_gates(const Model *m, size_t i, Val gate[GATES_MOST], Arena *arena);
void function_of_begin(ModelFunction *f, const Model *m, size_t i, const Val *gate, size_t n, Arena *arena);
void function_of_end(ModelFunction *f, const Model *m, size_t i, const Val *gate, size_t n, Arena *arena);
/* `end` of sublayer i, and `begin` of the one behind it, whose gates are `then`, in one pass over the state. */
void function_of_next(ModelFunction *f, const Model *m, size_t i, const Val *gate, size_t n, const Val *then,
                      size_t n_then, Arena *arena);
/* `open` makes the first state of the embedding, `close` what a head is given of the last one. False: nothing reads a closed
 * state. */
void function_of_open(ModelFunction *f, const Model *m, Arena *arena);
bool function_of_close(ModelFunction *f, const Model *m, Arena *arena);

/* What a module makes of the tensors that it is given; of a sublayer, with its norms: what its connection hands it, and gets back. */
void function_of_module(ModelFunction *f, const Model *m, size_t module, Arena *arena);
/* The model's output, "logits" or the first where there is none of this name; the sum of its losses. False: it has none. */
bool function_of_output(ModelFunction *f, const Model *m, Arena *arena);
bool function_of_loss(ModelFunction *f, const Model *m, Arena *arena);
/* Gives it the inputs of the model that it reads besides. */
void function_give_inputs(ModelFunction *f, Arena *arena);

#endif
