/* diag_cases.h - the messages of the language reference as data: what a stage would file.
 *
 * In:  nothing.   Out: cases[i], whose rendering is tests/front/diag/NN.txt byte for byte.
 * The one idea: a span is given by a fragment of the source and its number of occurrence.
 */

static const Case cases[] = {
    /* 1: value missing after `=` */
    {
        .code = "E0001",
        .lint = NULL,
        .file = "gpt.vwn",
        .message = "`heads` has no value",
        .source = "model gpt {\n"
                  "  for layer in 1..12 {\n"
                  "    attention {\n"
                  "      heads =\n"
                  "      kv_heads = 4\n"
                  "    }\n"
                  "  }\n"
                  "}\n",
        .labels = {{"heads =", 1, "expected an expression after `=`"}},
        .notes = {"the next line starts a new item, so the value cannot be there"},
        .helps = {"write the number of heads, for example `heads = 12`"},
    },
    /* 2: mathematician's product */
    {
        .code = "E0002",
        .lint = NULL,
        .file = "gpt.vwn",
        .message = "unknown unit `D` in `4D`",
        .source = "let D = 768\n"
                  "model gpt {\n"
                  "  for layer in 1..12 {\n"
                  "    ffn { hidden = 4D, activation = gelu }\n"
                  "  }\n"
                  "}\n",
        .labels = {{"4D", 1, "a number and a name without an operator"}},
        .notes = {"units are k M B T, Ki Mi Gi, %, d (times the base width) and L (times the "
                  "number of layers)"},
        .helps = {"to multiply, write `4 * D`"},
    },
    /* 3: misspelt attribute */
    {
        .code = "E0101",
        .lint = NULL,
        .file = "gpt.vwn",
        .message = "`attention` has no attribute `kv_head`",
        .source = "model gpt {\n"
                  "  for layer in 1..12 {\n"
                  "    attention { heads = 12, kv_head = 4 }\n"
                  "  }\n"
                  "}\n",
        .labels = {{"kv_head", 1, "unknown attribute"}},
        .notes = {"a misspelt attribute is never ignored: the run would silently use `kv_heads "
                  "= heads`"},
        .helps = {"did you mean `kv_heads`?"},
    },
    /* 4: misspelt name */
    {
        .code = "E0102",
        .lint = NULL,
        .file = "gpt.vwn",
        .message = "no name `hiden_size` here",
        .source = "let hidden_size = 768\n"
                  "model gpt {\n"
                  "  embed tokens { vocab = 50_304, width = hiden_size }\n"
                  "}\n",
        .labels = {{"hiden_size", 1, "not found in this file or its imports"},
                   {"hidden_size", 1, "a similar name is defined here"}},
        .helps = {"did you mean `hidden_size`?"},
    },
    /* 5: import cycle */
    {
        .code = "E0103",
        .lint = NULL,
        .file = "a.vwn",
        .message = "import cycle",
        .source = "edition = 1\n"
                  "import \"b.vwn\"\n",
        .labels = {{"\"b.vwn\"", 1, "a.vwn imports b.vwn ..."}},
        .notes = {"a.vwn -> b.vwn -> base/c.vwn -> a.vwn"},
        .helps = {"move the shared `let`s into a fourth file that imports none of these"},
        .other = "base/c.vwn",
        .other_line = 3,
        .other_text = "import \"../a.vwn\"",
        .other_label = {"\"../a.vwn\"", 1, "... and base/c.vwn imports a.vwn again"},
    },
    /* 6: no silent default */
    {
        .code = "E0104",
        .lint = NULL,
        .file = "gpt.vwn",
        .message = "`rms_norm` needs `eps`",
        .source = "model gpt {\n"
                  "  pre_norm = rms_norm()\n"
                  "}\n",
        .labels = {{"rms_norm()", 1, "missing `eps`"}},
        .notes = {"`eps` has no default because published models disagree (1e-5, 1e-6, 1e-8) "
                  "and the choice changes results"},
        .helps = {"write `rms_norm(eps = 1e-6)`"},
        .other = "std/transformer.vwn",
        .other_line = 20,
        .other_text = "block rms_norm(eps: float, gain: bool = true)(x: [.., D]) -> [.., D] {",
        .other_label = {"eps: float", 1, "`rms_norm` is declared here"},
    },
    /* 7: override of a name that does not exist */
    {
        .code = "E0105",
        .lint = NULL,
        .file = "<command line>",
        .message = "`--set` names nothing in x500.vwn",
        .source = "width.bottlneck = 0.3d\n",
        .labels = {{"width.bottlneck", 1, "`width` has no argument `bottlneck`"}},
        .notes = {"`width` is geometric(layers, base, bottleneck, at, match, round), set at "
                  "x500.vwn:9:13"},
        .helps = {"did you mean `--set width.bottleneck=0.3d`?"},
    },
    /* 8: quantity without unit */
    {
        .code = "E0201",
        .lint = NULL,
        .file = "gpt.vwn",
        .message = "`batch` needs a unit",
        .source = "train {\n"
                  "  batch  = 512\n"
                  "  length = 100B tokens\n"
                  "}\n",
        .labels = {{"512", 1, "512 of what?"}},
        .notes = {"with context = 2048 the two readings differ by a factor of 2048"},
        .helps = {"write `512 seqs` (1,048,576 tokens per step) or `0.5M tokens`"},
    },
    /* 9: run-time value in a shape */
    {
        .code = "E0202",
        .lint = NULL,
        .file = "gpt.vwn",
        .message = "`hidden` is a dimension and cannot depend on `step`",
        .source = "model gpt {\n"
                  "  for layer in 1..12 {\n"
                  "    ffn { hidden = 2048 + step / 10, activation = gelu }\n"
                  "  }\n"
                  "}\n",
        .labels = {{"step", 1, "known only while training"}},
        .notes = {"shapes are fixed when the model is compiled; `step`, `tokens`, `progress` "
                  "and `eval.loss` exist at run time"},
        .helps = {"to change a width during training use a growth step:\n"
                  "grow wider { when = step >= 10k, let hidden = 4096, ... }"},
    },
    /* 10: scope attribute never set */
    {
        .code = "E0203",
        .lint = NULL,
        .file = "gpt.vwn",
        .message = "no `init` for the weights of `attention`",
        .source = "model gpt {\n"
                  "  context = 1024\n"
                  "  embed tokens { vocab = 50_304, width = 768, init = normal(std = 0.02) }\n"
                  "  for layer in 1..12 {\n"
                  "    attention { heads = 12, mask = causal }\n"
                  "  }\n"
                  "}\n",
        .labels = {{"attention", 1, "`attention.q_proj.W` and 3 more weights have no initialiser"}},
        .notes = {"`linear` takes `scope.init`, and no enclosing scope sets `init`"},
        .helps = {"add `init = normal(std = 0.02)` to the model or to this node"},
        .other = "std/transformer.vwn",
        .other_line = 7,
        .other_text = "  init  : init = scope.init,",
        .other_label = {"scope.init", 1, "asked for here"},
    },
    /* 11: matmul shapes */
    {
        .code = "E0301",
        .lint = NULL,
        .file = "low_rank.vwn",
        .message = "shapes do not match in `@`",
        .source = "block low_rank(r: dim, out: dim)(x: [.., D]) -> [.., out] {\n"
                  "  param U : [D, r]   = normal(std = 0.02)\n"
                  "  param V : [out, r] = normal(std = 0.02)\n"
                  "  return x @ U @ V\n"
                  "}\n",
        .labels = {{"@", 2, "inner dimensions `r` and `out` differ"}, {"x @ U", 1, "[.., r]"}, {"V", 2, "[out, r]"}},
        .notes = {"`a @ b` needs the last dimension of `a` to equal the second-to-last of `b`"},
        .helps = {"multiply by the transpose: `x @ U @ V.T`"},
    },
    /* 12: m does not divide D */
    {
        .code = "E0302",
        .lint = NULL,
        .file = "vwn.vwn",
        .message = "`m` = 3 does not divide the backbone width 1024",
        .source = "model m {\n"
                  "  width      = 1024\n"
                  "  connection = ghc(m = 3, n = 4, dynamic = true)\n"
                  "}\n",
        .labels = {{"m = 3", 1, "1024 / 3 is not an integer"}, {"1024", 1, "backbone width"}},
        .notes = {"generalized hyper-connections cut every hidden vector into m equal segments "
                  "of D / m coordinates"},
        .helps = {"use m = 2 or m = 4, or a width such as 1023 or 1026"},
    },
    /* 13: sublayer changes the residual width */
    {
        .code = "E0303",
        .lint = NULL,
        .file = "gpt.vwn",
        .message = "a residual sublayer must return the width it reads",
        .source = "block squeeze(h: dim)(x: [.., D]) -> [.., h] {\n"
                  "  let proj = linear(out = h)\n"
                  "  return proj(x)\n"
                  "}\n"
                  "model gpt {\n"
                  "  connection = residual()\n"
                  "  for layer in 1..12 {\n"
                  "    squeeze { h = 512 }\n"
                  "  }\n"
                  "}\n",
        .labels = {{"squeeze { h = 512 }", 1, "reads [B, T, 768], returns [B, T, 512]"}},
        .notes = {"`residual` computes x + f(x)"},
        .helps = {"return to the input width inside the block, or vary the width of whole "
                  "layers with\n"
                  "`connection = carried(stream = ..., head = ...)`"},
    },
    /* 14: unused parameter */
    {
        .code = "E0304",
        .lint = NULL,
        .file = "nexus.vwn",
        .message = "parameter `W_A` is never used",
        .source = "block nexus(M: dim, A: dim)(x: [.., D]) -> [.., D] {\n"
                  "  param W_M : [D, M] = normal(std = 0.02)\n"
                  "  param W_A : [M, A] = normal(std = 0.02)\n"
                  "  param W_D : [M, D] = normal(std = 0.02)\n"
                  "  z = gelu(x @ W_M)\n"
                  "  return z @ W_D\n"
                  "}\n",
        .labels = {{"W_A", 1, "gets memory and optimizer state but no gradient"}},
        .notes = {"it would add 748,800 weights per use (M = 780, A = 960)"},
        .helps = {"use it, or delete the line; to keep it for later put `/-` in front"},
    },
    /* 15: odd head_dim with RoPE */
    {
        .code = "E0305",
        .lint = NULL,
        .file = "gpt.vwn",
        .message = "rotary embedding needs an even head_dim, got 65",
        .source = "let D = 390\n"
                  "model gpt {\n"
                  "  for layer in 1..12 {\n"
                  "    attention { heads = 6, position = rope(base = 10_000) }\n"
                  "  }\n"
                  "}\n",
        .labels = {{"rope(base = 10_000)", 1, "rotates pairs of coordinates"},
                   {"heads = 6", 1, "head_dim = D / heads = 390 / 6 = 65"}},
        .helps = {"set `head_dim = 64` or `head_dim = 66`; it need not equal D / heads",
                  "or rotate only a part: `rope(base = 10_000, fraction = 64 / 65)`"},
    },
    /* 16: heads do not divide the width */
    {
        .code = "E0306",
        .lint = NULL,
        .file = "gpt.vwn",
        .message = "12 heads do not divide the width 1000",
        .source = "let D = 1000\n"
                  "model gpt {\n"
                  "  for layer in 1..12 {\n"
                  "    attention { heads = 12 }\n"
                  "  }\n"
                  "}\n",
        .labels = {{"heads = 12", 1, "head_dim = 1000 / 12 is not an integer"}},
        .helps = {"set `head_dim` explicitly, for example `head_dim = 64` (then Q, K and V "
                  "have 768 columns)",
                  "or use 8 or 10 heads, or width 960 or 1008"},
    },
    /* 17: unsatisfiable width schedule */
    {
        .code = "E0401",
        .lint = NULL,
        .file = "x500.vwn",
        .message = "no width schedule satisfies these constraints",
        .source = "let L = 24\n"
                  "let width = geometric(\n"
                  "  layers     = L,\n"
                  "  base       = 960,\n"
                  "  bottleneck = 1.2d,\n"
                  "  at         = 0.75L,\n"
                  "  match      = dense(mlp_matrices = 3, expansion = 4),\n"
                  "  round      = 32,\n"
                  ")\n",
        .labels = {{"bottleneck = 1.2d", 1, "1152 is wider than the base width 960"},
                   {"match      = dense(mlp_matrices = 3, expansion = 4)", 1,
                    "the parameter budget fixes the mean square width at 960"}},
        .notes = {"with the bottleneck at layer 18 the solver searches a ratio in (0, 1]; "
                  "ratio 1 already gives bottleneck 960"},
        .helps = {"for an x shape choose a bottleneck below 1.0d",
                  "for a diamond drop `match` and give `first` and `bottleneck`"},
    },
    /* 18: width list and depth disagree */
    {
        .code = "E0402",
        .lint = NULL,
        .file = "hand.vwn",
        .message = "`width` has 5 entries but layer 6 asks for a sixth",
        .source = "let width = [1024, 768, 512, 512, 768]\n"
                  "model hand {\n"
                  "  for layer in 1..6 {\n"
                  "    width = width[layer]\n"
                  "  }\n"
                  "}\n",
        .labels = {{"width[layer]", 1, "layer = 6 here"}, {"[1024, 768, 512, 512, 768]", 1, "5 entries"}},
        .helps = {"add an entry, or loop over the list: `for layer in 1..size(width)`"},
    },
    /* 19: rounding and heads disagree */
    {
        .code = "E0403",
        .lint = NULL,
        .file = "x500.vwn",
        .message = "8 layers have a width that 16 heads with rotary embedding cannot split",
        .source = "let L = 24\n"
                  "let width = geometric(\n"
                  "  layers     = L,\n"
                  "  base       = 960,\n"
                  "  bottleneck = 0.3d,\n"
                  "  at         = 0.75L,\n"
                  "  match      = dense(mlp_matrices = 3, expansion = 4),\n"
                  "  round      = 16,\n"
                  ")\n"
                  "model x {\n"
                  "  for layer in 1..L {\n"
                  "    width = width[layer]\n"
                  "    attention { heads = 16, position = rope(base = 10_000) }\n"
                  "  }\n"
                  "}\n",
        .labels = {{"heads = 16", 1, "needs a multiple of 2 * 16 = 32"},
                   {"round      = 16", 1, "widths were rounded to multiples of 16"}},
        .notes = {"layers 1, 6, 9, 13, 15, 20, 21 and 24: widths 1776, 1040, 752, 496, 400, "
                  "528, 720 and 1776"},
        .helps = {"use `round = 32`"},
    },
    /* 20: n < m */
    {
        .code = "E0501",
        .lint = NULL,
        .file = "vwn.vwn",
        .message = "`n` = 3 is smaller than `m` = 4",
        .source = "model m {\n"
                  "  connection = ghc(m = 4, n = 3, dynamic = true)\n"
                  "}\n",
        .labels = {{"n = 3", 1, "the state must hold at least the m segments the backbone reads"}},
        .notes = {"virtual width is n / m = 0.75 of the backbone width, which would discard a "
                  "quarter of every hidden vector"},
        .helps = {"for a wider state use n > m, for example (m, n) = (2, 3)",
                  "for no widening use `frac(m = 4, dynamic = true)`"},
        .other = "std/connections.vwn",
        .other_line = 97,
        .other_text = "  check n >= m \"the state must hold at least the m segments the backbone reads\"",
        .other_label = {"check n >= m", 1, "required here"},
    },
    /* 21: embedding and virtual width disagree */
    {
        .code = "E0502",
        .lint = NULL,
        .file = "vwn.vwn",
        .message = "the embedding is 1024 wide, but the connection needs 1536",
        .source = "let D = 1024\n"
                  "model m {\n"
                  "  width      = D\n"
                  "  connection = ghc(m = 2, n = 3, dynamic = true, reduce = linear(out = D))\n"
                  "  embed tokens { vocab = 50_304 }\n"
                  "}\n",
        .labels = {{"embed tokens", 1, "width = 1024, inherited from the model"},
                   {"ghc(m = 2, n = 3", 1, "n / m * width = 3 / 2 * 1024 = 1536"}},
        .helps = {"widen the table: `width = D * 3 / 2`",
                  "or keep a D-wide table and project: `expand = linear(out = D * 3 / 2)`"},
    },
    /* 22: matrix literal of the wrong size */
    {
        .code = "E0503",
        .lint = NULL,
        .file = "hc.vwn",
        .message = "hyper-connection matrix has 2 rows, expected n + 1 = 3",
        .source = "let HC = [[0, 1, 1],\n"
                  "          [1, 1, 0]]\n"
                  "model m {\n"
                  "  connection = hyper_fixed(n = 2, matrices = [HC])\n"
                  "}\n",
        .labels = {{"[[0, 1, 1],", 1, "2 x 3"}},
        .notes = {"the layout is [[0, B], [A_m, A_r]]: one row for the output weights B, then "
                  "n rows [A_m | A_r]"},
        .helps = {"the last row is missing; for plain residuals it is `[0, 0, 1]`"},
    },
    /* 23: vocabulary and tokenizer disagree */
    {
        .code = "E0601",
        .lint = NULL,
        .file = "gpt.vwn",
        .message = "the tokenizer produces ids up to 100262 but the embedding has 50304 rows",
        .source = "model gpt {\n"
                  "  embed tokens { vocab = 50_304, width = 768 }\n"
                  "}\n"
                  "train {\n"
                  "  tokenizer = file(\"cl100k_base.json\")\n"
                  "}\n",
        .labels = {{"vocab = 50_304", 1, "ids 50304 to 100262 have no row"},
                   {"file(\"cl100k_base.json\")", 1, "100263 entries"}},
        .helps = {"write `vocab = 100_352` (100263 rounded up to a multiple of 128)"},
    },
    /* 24: parameter group without weight decay */
    {
        .code = "E0602",
        .lint = NULL,
        .file = "hc.vwn",
        .message = "no weight decay given for group `static`",
        .source = "model m {\n"
                  "  connection = hyper(n = 4, dynamic = true)\n"
                  "}\n"
                  "train {\n"
                  "  optimizer adamw {\n"
                  "    lr = 4e-4\n"
                  "    group matrix { weight_decay = 0.1 }\n"
                  "    group vector { weight_decay = 0 }\n"
                  "  }\n"
                  "}\n",
        .labels = {{"optimizer adamw", 1, "groups in this model: matrix, vector, static"}},
        .notes = {"group `static` holds 832 weights in 160 tensors: the B, A_m, A_r, s_b and "
                  "s_a of every hyper-connection"},
        .helps = {"the Hyper-Connections paper does not decay them: `group static { "
                  "weight_decay = 0 }`",
                  "or give one value for every group: `weight_decay = 0.1`"},
    },
    /* 25: growth that does not preserve the function */
    {
        .code = "E0701",
        .lint = NULL,
        .file = "nexus.vwn",
        .message = "this growth step changes the function of the model",
        .source = "grow wider {\n"
                  "  when = step >= 10k\n"
                  "  let D = 800\n"
                  "  fill {\n"
                  "    entry = normal(std = 0.02)\n"
                  "    exit  = zeros\n"
                  "    inner = zeros\n"
                  "  }\n"
                  "  check preserves(1e-5)\n"
                  "}\n",
        .labels = {{"check preserves(1e-5)", 1, "cannot hold"}, {"let D = 800", 1, "768 -> 800"}},
        .notes = {"25 norms divide by rms(x) over D coordinates; 32 new zeros make rms(x) "
                  "smaller by sqrt(768 / 800)",
                  "every normalised value grows by a factor of 1.0206"},
        .helps = {"add `norms = rescale` to `fill`: gains are multiplied by sqrt(768 / 800) "
                  "and eps by 768 / 800",
                  "or state that the jump is intended: `check preserves(none)`"},
    },
    /* 26: growth with zero gradient */
    {
        .code = "E0702",
        .lint = NULL,
        .file = "nexus.vwn",
        .message = "the new weights can never learn",
        .source = "grow wider {\n"
                  "  when = step >= 10k\n"
                  "  let M = 1088\n"
                  "  let A = 1228\n"
                  "  fill {\n"
                  "    entry = zeros\n"
                  "    exit  = zeros\n"
                  "    inner = zeros\n"
                  "  }\n"
                  "  check preserves(1e-5)\n"
                  "}\n",
        .labels = {{"fill", 1,
                    "all five new blocks of `nexus_rank` have an exactly zero gradient, now "
                    "and after every later step"}},
        .notes = {"W_M.entry  needs W_A.exit, or W_A.inner and W_D.exit, to be non-zero\n"
                  "W_A.entry  needs W_D.exit to be non-zero\n"
                  "W_A.exit   needs W_M.entry to be non-zero\n"
                  "W_A.inner  needs W_M.entry and W_D.exit to be non-zero\n"
                  "W_D.exit   needs W_A.entry, or W_A.inner and W_M.entry, to be non-zero",
                  "gelu(0) = 0, so zero weights make zero features, and zero features make "
                  "zero gradients"},
        .helps = {"keep `exit = zeros` and write `entry = normal(std = 0.02)`: the function is "
                  "still preserved,\n"
                  "2 of 5 blocks learn from the first step and all 5 from the second"},
    },
    /* 27: size-dependent constant */
    {
        .code = "E0703",
        .lint = NULL,
        .file = "tokenformer.vwn",
        .message = "this growth step changes the function of the model",
        .source = "block pattention(slots: int, out: dim, init: init)(x: [.., D]) -> [.., out] {\n"
                  "  param K : [slots, D]   = init\n"
                  "  param V : [slots, out] = init\n"
                  "  let tau = sqrt(slots)\n"
                  "  s = x @ K.T\n"
                  "  s = s / sqrt(sum(s * s, over = -1, keep = true)) * tau\n"
                  "  return gelu(s) @ V\n"
                  "}\n"
                  "grow more {\n"
                  "  when = step >= 600k\n"
                  "  let slots = 1792\n"
                  "  check preserves(1e-5)\n"
                  "}\n",
        .labels = {{"sqrt(slots)", 1, "changes from sqrt(768) to sqrt(1792)"},
                   {"let slots = 1792", 1, "because of this"}},
        .notes = {"the new keys are zero and add nothing, but every old logit is multiplied by "
                  "1.5275"},
        .helps = {"compute it once and store it in the checkpoint: `buffer tau : [] = "
                  "fill(sqrt(slots))`"},
    },
    /* 28: growth re-cuts the heads */
    {
        .code = "E0704",
        .lint = NULL,
        .file = "gpt.vwn",
        .message = "growing `D` would re-cut the attention heads",
        .source = "let D = 768\n"
                  "model gpt {\n"
                  "  for layer in 1..12 {\n"
                  "    attention { heads = 12 }\n"
                  "  }\n"
                  "}\n"
                  "grow wider {\n"
                  "  when = step >= 10k\n"
                  "  let D = 1024\n"
                  "  check preserves(1e-5)\n"
                  "}\n",
        .labels = {{"heads = 12", 1, "head_dim = D / heads"}, {"let D = 1024", 1, "1024 / 12 is not an integer"}},
        .notes = {"even where it divides, a new head_dim moves old columns into other heads "
                  "and changes the softmax scale"},
        .helps = {"fix the head size: `head_dim = 64`; then Q, K and V keep 768 columns while "
                  "D grows"},
    },
    /* 29: growth that shrinks */
    {
        .code = "E0705",
        .lint = NULL,
        .file = "gpt.vwn",
        .message = "`hidden` would shrink from 3072 to 2048",
        .source = "let hidden = 3072\n"
                  "grow smaller {\n"
                  "  when = step >= 10k\n"
                  "  let hidden = 2048\n"
                  "}\n",
        .labels = {{"let hidden = 2048", 1, "growth only adds"}},
        .helps = {"to prune, use `vwn export --prune` and start a new run"},
    },
    /* 30: failed assertion */
    {
        .code = "E0801",
        .lint = NULL,
        .file = "nexus.vwn",
        .message = "check failed: Table 6 of the Nexusformer paper",
        .source = "let M = 780\n"
                  "let A = 960\n"
                  "check near(params, 240M, 2%) \"Table 6 of the Nexusformer paper\"\n",
        .labels = {{"near(params, 240M, 2%)", 1, "params = 187,936,512, which is 21.7 % below 240M"}},
        .notes = {"embed.tokens      24,576,000\n"
                  "layer[*].attention 82,151,424   q, k, v: nexus_rank(780, 960); o: linear\n"
                  "layer[*].ffn       56,632,320   3 x 768 x 2048\n"
                  "head.lm            24,576,768"},
        .helps = {"`vwn params nexus.vwn` prints every tensor"},
    },
    /* 31: weights that cannot learn */
    {
        .code = "W0304",
        .lint = "dead_weights",
        .file = "x500.vwn",
        .message = "9,856,000 weights can never receive a gradient",
        .source = "let d = 960\n"
                  "model x {\n"
                  "  connection = carried(stream = 1760, head = d)\n"
                  "}\n",
        .labels = {{"head = d", 1, "coordinates 961..1760 are zero on entry and unread on exit"}},
        .notes = {"layer[1].attention.{q,k,v}_proj.W  4,224,000   rows that multiply a "
                  "constant zero\n"
                  "layer[24].ffn.down.W              5,632,000   columns that nothing reads",
                  "`params` does not count them"},
        .helps = {"expected for ><former; silence with `allow = [dead_weights]` in the model"},
    },
};
