/* examples.c - the examples: parameter counts, state widths, checks, growth and sweep elaboration.
 *
 * In:  examples/ *.vwn.   Out: exactly the published or computed numbers, and no false check.
 * When: quick.
 */
#include "support.h"

static const struct Want {
    const char *file;
    int64_t live, stored, state, active; /* 0: the file has no model; active 0: as live */
} want[] = {
    {"01_nano.vwn", 10745088, 10745088, 384, 0},
    {"02_olmo_1b.vwn", 1176764416, 1176764416, 2048, 0},
    {"03_qwen3_0_6b.vwn", 596049920, 596049920, 1024, 0},
    {"04_hyper_x4.vwn", 0, 0, 0, 0},
    {"05_frac.vwn", 0, 0, 0, 0},
    {"06_vwn_1_5x_mtp.vwn", 447285428, 447285428, 1536, 0},
    {"07_vwn_x8_moe.vwn", 7440585472, 7440585472, 16384, 1451119360},
    {"08_xformer_500m.vwn", 543318368, 553175168, 1760, 0},
    {"09_nexus_growth.vwn", 187936512, 187936512, 768, 0},
    {"10_tokenformer_growth.vwn", 353503232, 353503232, 1024, 0},
    {"11_residual_to_hyper.vwn", 0, 0, 0, 0},
    {"12_sweep.vwn", 0, 0, 0, 0},
    {"13_vit_hyper.vwn", 304523720, 304523720, 2048, 0},
    {"14_own_connection.vwn", 78922256, 78922256, 1024, 60047888},
    {"15_olmoe_1b_7b.vwn", 6919161856, 6919161856, 2048, 1282017280},
    {"16_transformer_pp.vwn", 83112448, 83112448, 512, 0},
    {"17_published_counts.vwn", 0, 0, 0, 0},
    {"18_wirings.vwn", 0, 0, 0, 0},
    {"19_over_encoding.vwn", 1118988608, 1118988608, 1536, 0},
    {"20_mtp_chain.vwn", 429658624, 429658624, 2048, 0},
    {"21_deepseek_mtp.vwn", 1712435200, 1712435200, 2048, 0},
    {"22_virtual_widths.vwn", 0, 0, 0, 0},
    {"23_xformer_200m.vwn", 0, 0, 0, 0},
    {"24_xformer_moe.vwn", 2892229792, 2936188672, 3040, 1020743776},
    {"25_nexus_released.vwn", 194489088, 194489088, 768, 0},
    {"26_width_shapes.vwn", 25124032, 25812352, 512, 0},
    {"27_vit.vwn", 86567656, 86567656, 768, 0},
    {"28_vit_sizes.vwn", 0, 0, 0, 0},
    {"29_dit.vwn", 674834720, 674834720, 1152, 0},
    {"30_dit_hyper.vwn", 0, 0, 0, 0},
    {"31_xformer_tables.vwn", 0, 0, 0, 0},
    {"32_nexus_sizes.vwn", 0, 0, 0, 0},
    {"36_sweep_bottleneck.vwn", 544312, 559120, 88, 0},
    {"37_sweep_widths.vwn", 1083456, 1083456, 64, 0},
    {"38_variant.vwn", 10773048, 10773048, 1536, 0},
    {"quickstart.vwn", 1955856, 1955856, 288, 0},
};

static void growth(Test *t, const Unit *u, const char *file)
{
    static const struct {
        const char *file, *step;
        int64_t before, after;
    } steps[] = {{"09_nexus_growth.vwn", "to_300m", 187936512, 225003264},
                 {"09_nexus_growth.vwn", "to_380m", 225003264, 272275840},
                 {"10_tokenformer_growth.vwn", "to_757m", 353503232, 756156416},
                 {"11_residual_to_hyper.vwn", "to_hyper", 1176764416, 1177158464}};
    size_t k = 0;
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        if (strcmp(steps[i].file, file))
            continue;
        EXPECT(t, file, k < u->grow.n);
        if (k == u->grow.n)
            return;
        const GrowStep *g = &u->grow.v[k++];
        EXPECT(t, steps[i].step, !strcmp(g->name, steps[i].step) && g->after);
        EXPECT(t, steps[i].step, model_count(g->before).live == steps[i].before);
        EXPECT(t, steps[i].step, g->after && model_count(g->after).live == steps[i].after);
    }
    EXPECT(t, file, k == u->grow.n);
}

static void one(Test *t, const struct Want *w)
{
    char path[600];
    snprintf(path, sizeof path, "%s/examples/%s", VWN_SOURCE_DIR, w->file);
    Checked c = check_text(path, NULL, NULL);
    if (expect_fine(t, w->file, &c)) {
        Unit *u = c.unit;
        for (size_t i = 0; i < u->check.n; i++)
            EXPECT(t, u->check.v[i].text, u->check.v[i].state != CHECK_FALSE);
        EXPECT(t, w->file, (u->model != NULL) == (w->live != 0));
        if (u->model) {
            ModelCount n = model_count(u->model);
            EXPECT(t, w->file, n.live == w->live && n.stored == w->stored && n.dead == w->stored - w->live);
            EXPECT(t, w->file, n.active == (w->active ? w->active : w->live));
            EXPECT(t, w->file, u->model->state_width == w->state);
        }
        growth(t, u, w->file);
        if (!strcmp(w->file, "36_sweep_bottleneck.vwn"))
            EXPECT(t, w->file, u->sweep.n == 1 && u->sweep.v[0].n == 10 && u->sweep.v[0].n_axis == 2);
        if (!strcmp(w->file, "37_sweep_widths.vwn"))
            EXPECT(t, w->file, u->sweep.n == 1 && u->sweep.v[0].n == 1000 && u->sweep.v[0].n_axis == 2);
        if (!strcmp(w->file, "12_sweep.vwn"))
            EXPECT(t, w->file, u->sweep.n == 1 && u->sweep.v[0].n == 78 && u->sweep.v[0].n_axis == 3);
    }
    ctx_free(c.ctx);
}

int main(void)
{
    Test t = {0};
    for (size_t i = 0; i < COUNT_OF(want); i++)
        one(&t, &want[i]);
    return test_end(&t);
}
