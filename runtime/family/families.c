/* families.c - the table of families: what config.json calls what, and where a model has it.
 *
 * The text of a family is in TYPE.vwn. Where to add: a row here, a text there, and a model of it in tests/torch/families.py.
 */
#include "family.h"

#include <math.h>
#include <string.h>

#define STATE                                                                                                          \
    {"vocab_size", KEY_COUNT, "embed.tokens", "vocab", NULL}, {"hidden_size", KEY_COUNT, "", "width", NULL},           \
        {"max_position_embeddings", KEY_COUNT, "", "context", NULL},                                                   \
        {"num_hidden_layers", KEY_LAYERS, "layer[*].attention", NULL, NULL},                                           \
        {"rms_norm_eps", KEY_REAL, "head.lm.norm", "eps", NULL},                                                       \
        {"initializer_range", KEY_STD, "embed.tokens.W", NULL, NULL},                                                  \
    {                                                                                                                  \
        "tie_word_embeddings", KEY_LACKS, "head.lm.W", NULL, NULL                                                      \
    }
#define ATTENTION                                                                                                      \
    {"num_attention_heads", KEY_COUNT, "layer[1].attention", "heads", NULL},                                           \
        {"num_key_value_heads", KEY_COUNT, "layer[1].attention", "kv_heads", NULL},                                    \
    {                                                                                                                  \
        "rope_theta", KEY_REAL, "layer[1].attention.position", "base", NULL                                            \
    }
#define HEAD_DIM                                                                                                       \
    {                                                                                                                  \
        "head_dim", KEY_COUNT, "layer[1].attention", "head_dim", NULL                                                  \
    }
#define ATTENTION_BIAS                                                                                                 \
    {                                                                                                                  \
        "attention_bias", KEY_HAS, "layer[1].attention.o_proj.b", NULL, NULL                                           \
    }
#define FFN                                                                                                            \
    {"intermediate_size", KEY_COUNT, "layer[1].ffn", "hidden", NULL},                                                  \
    {                                                                                                                  \
        "hidden_act", KEY_FUNCTION, "layer[1].ffn", "activation", NULL                                                 \
    }
#define EXPERTS                                                                                                        \
    {"hidden_act", KEY_FUNCTION, "layer[1].moe", "activation", NULL},                                                  \
        {"num_experts", KEY_COUNT, "layer[1].moe", "experts", "num_local_experts"},                                    \
        {"num_experts_per_tok", KEY_COUNT, "layer[1].moe", "active", NULL},                                            \
        {"norm_topk_prob", KEY_FLAG, "layer[1].moe", "normalize", NULL},                                               \
    {                                                                                                                  \
        "router_aux_loss_coef", KEY_REAL, "layer[1].moe", "balance", NULL                                              \
    }

static const FamilyKey llama[] = {STATE,
                                  ATTENTION,
                                  HEAD_DIM,
                                  ATTENTION_BIAS,
                                  FFN,
                                  {"mlp_bias", KEY_HAS, "layer[1].ffn.up.b", NULL, NULL},
                                  {"factor", KEY_LET, NULL, NULL, NULL},
                                  {"low_freq_factor", KEY_LET, NULL, NULL, NULL},
                                  {"high_freq_factor", KEY_LET, NULL, NULL, NULL},
                                  {"original_max_position_embeddings", KEY_LET, NULL, NULL, NULL}};
static const FamilyKey mistral[] = {
    STATE, ATTENTION, HEAD_DIM, FFN, {"sliding_window", KEY_WINDOW, "layer[1].attention", "window", NULL}};
static const FamilyKey qwen2[] = {STATE, ATTENTION, FFN};
static const FamilyKey qwen3[] = {STATE, ATTENTION, HEAD_DIM, ATTENTION_BIAS, FFN};
static const FamilyKey qwen3_moe[] = {STATE,    ATTENTION,
                                      HEAD_DIM, ATTENTION_BIAS,
                                      EXPERTS,  {"moe_intermediate_size", KEY_COUNT, "layer[1].moe", "hidden", NULL}};
static const FamilyKey olmo2[] = {STATE, ATTENTION, ATTENTION_BIAS, FFN};
static const FamilyKey olmoe[] = {
    STATE, ATTENTION, ATTENTION_BIAS, EXPERTS, {"intermediate_size", KEY_COUNT, "layer[1].moe", "hidden", NULL}};
static const FamilyKey gemma[] = {STATE, ATTENTION, HEAD_DIM, ATTENTION_BIAS, FFN};
static const FamilyKey phi3[] = {
    STATE, ATTENTION, FFN, {"partial_rotary_factor", KEY_REAL, "layer[1].attention.position", "fraction", NULL}};
static const FamilyKey gpt2[] = {{"vocab_size", KEY_COUNT, "embed.tokens", "vocab", NULL},
                                 {"n_embd", KEY_COUNT, "", "width", NULL},
                                 {"n_positions", KEY_COUNT, "embed.position", "size", NULL},
                                 {"n_layer", KEY_LAYERS, "layer[*].attention", NULL, NULL},
                                 {"n_head", KEY_COUNT, "layer[1].attention", "heads", NULL},
                                 {"n_inner", KEY_COUNT, "layer[1].ffn", "hidden", NULL},
                                 {"layer_norm_epsilon", KEY_REAL, "head.lm.norm", "eps", NULL},
                                 {"initializer_range", KEY_STD, "embed.tokens.W", NULL, NULL},
                                 {"activation_function", KEY_FUNCTION, "layer[1].ffn", "activation", NULL},
                                 {"tie_word_embeddings", KEY_LACKS, "head.lm.W", NULL, NULL}};

static const FixedKey llama_fixed[] = {{"rope_type", "default llama3", false}, {"type", "default llama3", false}};
static const FixedKey no_window[] = {
    {"use_sliding_window", "false", false}, {"sliding_window", "*", false}, /* nothing without use_sliding_window */
    {"max_window_layers", "*", false},      {"layer_types", "full_attention", false},
    {"decoder_sparse_step", "1", false},                                       /* of experts: they are in every layer */
    {"mlp_only_layers", "", false},         {"intermediate_size", "*", false}, /* of layers without experts */
    {"output_router_logits", "*", false}};
static const FixedKey olmoe_fixed[] = {{"output_router_logits", "*", false}};
static const FixedKey mistral_fixed[] = {{"layer_types", "full_attention sliding_attention", false}};
static const FixedKey gemma_fixed[] = {{"hidden_activation", "gelu_pytorch_tanh", false}};
static const FixedKey phi3_fixed[] = {{"original_max_position_embeddings", "*", false}};
static const FixedKey gpt2_fixed[] = {{"n_ctx", "*", false},
                                      {"scale_attn_weights", "true", false},
                                      {"scale_attn_by_inverse_layer_idx", "false", false},
                                      {"reorder_and_upcast_attn", "*", false},
                                      {"add_cross_attention", "false", false},
                                      {"summary_activation", "*", false},
                                      {"summary_first_dropout", "*", false},
                                      {"summary_proj_to_labels", "*", false},
                                      {"summary_type", "*", false},
                                      {"summary_use_proj", "*", false}};

#define ROW(type, architecture, keys) type, architecture, keys, COUNT_OF(keys)
#define FIXED(keys)                   keys, COUNT_OF(keys)
static const char no_ends[] = "\"bos_token_id\": null,\n  \"pad_token_id\": null";
static const char computed[] = ".rotary_emb.inv_freq"; /* of older files */
static const Family families[] = {
    {ROW("llama", "LlamaForCausalLM", llama), FIXED(llama_fixed), computed, no_ends},
    {ROW("mistral", "MistralForCausalLM", mistral), FIXED(mistral_fixed), computed, no_ends},
    {ROW("qwen2", "Qwen2ForCausalLM", qwen2), FIXED(no_window), computed, no_ends},
    {ROW("qwen3", "Qwen3ForCausalLM", qwen3), FIXED(no_window), NULL, no_ends},
    {ROW("qwen3_moe", "Qwen3MoeForCausalLM", qwen3_moe), FIXED(no_window), NULL, no_ends},
    {ROW("olmo2", "Olmo2ForCausalLM", olmo2), NULL, 0, NULL, no_ends},
    {ROW("olmoe", "OlmoeForCausalLM", olmoe), FIXED(olmoe_fixed), NULL, no_ends},
    {ROW("gemma", "GemmaForCausalLM", gemma), FIXED(gemma_fixed), NULL, no_ends},
    {ROW("phi3", "Phi3ForCausalLM", phi3), FIXED(phi3_fixed), NULL, no_ends},
    {ROW("gpt2", "GPT2LMHeadModel", gpt2), FIXED(gpt2_fixed), ".attn.bias .attn.masked_bias", no_ends},
};

/* Of all families: what says nothing of the function that a model is. */
static const FixedKey common[] = {
    {"model_type", "*", false},
    {"architectures", "*", false}, /* see config.c */
    {"transformers_version", "*", false},
    {"_name_or_path", "*", false},
    {"dtype", "*", false},
    {"torch_dtype", "*", false},
    {"use_cache", "*", false},
    {"bos_token_id", "*", false},
    {"eos_token_id", "*", false},
    {"pad_token_id", "*", false},
    {"pretraining_tp", "*", false}, /* in how many pieces products were computed */
    {"output_attentions", "*", false},
    {"output_hidden_states", "*", false},
    {"return_dict", "*", false},
    {"task_specific_params", "*", false},
    {"rope_type", "default", false},
    {"type", "default", false}, /* of rope_scaling, in older files */
    {"partial_rotary_factor", "1", false},
    {"attention_dropout", "0", true},
    {"embd_pdrop", "0", true},
    {"resid_pdrop", "0", true},
    {"attn_pdrop", "0", true},
};

static const struct {
    const char *there, *own;
} functions[] = {{"silu", "silu"}, {"swish", "silu"}, {"gelu_new", "gelu_tanh"}, {"gelu_pytorch_tanh", "gelu_tanh"},
                 {"gelu", "gelu"}, {"relu", "relu"}};

const Family *family_at(size_t i) { return i < COUNT_OF(families) ? &families[i] : NULL; }

const Family *family_of(const char *type)
{
    for (size_t i = 0; i < COUNT_OF(families); i++)
        if (!strcmp(families[i].type, type))
            return &families[i];
    return NULL;
}

const char *family_names(Arena *a)
{
    Buf b = buf_new(a);
    for (size_t i = 0; i < COUNT_OF(families); i++)
        buf_printf(&b, "%s%s", i ? ", " : "", families[i].type);
    return b.s;
}

const FixedKey *family_fixed(const Family *f, const char *key)
{
    for (size_t i = 0; i < f->n_fixed; i++)
        if (!strcmp(f->fixed[i].key, key))
            return &f->fixed[i];
    for (size_t i = 0; i < COUNT_OF(common); i++)
        if (!strcmp(common[i].key, key))
            return &common[i];
    return NULL;
}

const char *family_function(const char *other)
{
    for (size_t i = 0; i < COUNT_OF(functions); i++)
        if (!strcmp(functions[i].there, other))
            return functions[i].own;
    return NULL;
}

const char *family_function_there(const char *own)
{
    for (size_t i = 0; i < COUNT_OF(functions); i++)
        if (!strcmp(functions[i].own, own))
            return functions[i].there;
    return NULL;
}

const char *family_number(Arena *a, double x)
{
    char text[40];
    JsonText t;
    if (x == floor(x) && fabs(x) < 1e15)
        return arena_printf(a, "%.0f", x);
    json_begin(&t, text, sizeof text);
    json_put_number(&t, NULL, x);
    return arena_copy(a, text, strlen(text));
}

const char *family_text(Arena *a, const Family *f, const char *const *value)
{
    size_t n;
    const char *text = families_text(f->type, &n);
    Buf b = buf_new(a);
    for (const char *line = text; *line;) {
        const char *end = strchr(line, '\n') + 1, *equals = strchr(line, '=');
        const char *put = NULL;
        for (size_t i = 0; i < f->n_key && !put && !strncmp(line, "let ", 4); i++) {
            size_t length = strlen(f->key[i].key);
            if (!strncmp(line + 4, f->key[i].key, length) && line[4 + length] == ' ')
                put = value[i];
        }
        buf_put(&b, line, put ? (size_t)(equals + 2 - line) : (size_t)(end - line));
        if (put)
            buf_printf(&b, "%s\n", put);
        line = end;
    }
    return b.s;
}
