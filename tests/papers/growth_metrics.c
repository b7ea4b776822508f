/* growth_metrics.c - the indicators of growth: the printed radii of the Nexusformer paper, and numbers of SciPy.
 *
 * Those marked SciPy were computed with version 1.17.1: stats.mannwhitneyu (asymptotic, two-sided), stats.gaussian_kde
 * ("scott") and numpy.trapezoid, numpy.histogram, numpy.linalg.svd, linalg.subspace_angles and stats.linregress.
 * When: quick.
 */
#include <math.h>
#include <stdio.h>

#include "runtime/look/growth_metrics.h"

static int failures;

static void near(const char *what, double got, double want, double tolerance)
{
    if (fabs(got - want) <= tolerance || (isnan(got) && isnan(want)))
        return;
    failures++;
    fprintf(stderr, "%s: %.12g instead of %.12g\n", what, got, want);
}

/* Table 4: three settings, eleven snapshots of 240M grown to 380M. */
enum { SNAPSHOTS = 11 };
static const struct {
    const char *name;
    double u[SNAPSHOTS], noc[SNAPSHOTS], radius[SNAPSHOTS], loss[SNAPSHOTS];
} table4[] = {
    {"zero",
     {0.8152, 0.8608, 0.7707, 0.8794, 0.8769, 0.9374, 0.9903, 0.8490, 0.8697, 0.5923, 0.7171},
     {0.7752, 0.7888, 0.7747, 0.7663, 0.7614, 0.7585, 0.7567, 0.7559, 0.7550, 0.7595, 0.7645},
     {0, 0.058623857, 0.054591642, 0.079586138, 0.0777523, 0.151441944, 0.216115606, 0.04836286, 0.071753518,
      0.274178867, 0.12112758},
     {2.5112, 2.6199, 2.5528, 2.5385, 2.5932, 2.6416, 2.5655, 2.5608, 2.5404, 2.3602, 2.3337}},
    {"noise 10 %",
     {0.7168, 0.9653, 0.3055, 0.0455, 0.0404, 0.0035, 0.0076, 0.0071, 0.0462, 0.0469, 0.0374},
     {0.7947, 0.9150, 0.9193, 0.9106, 0.8973, 0.8870, 0.8796, 0.8783, 0.8751, 0.8843, 0.8955},
     {0, 0.37828834, 0.594835608, 0.947811059, 0.952429315, 1.001872123, 0.995148381, 0.995667735, 0.941001262,
      0.941346665, 0.956273056},
     {2.5119, 2.6255, 2.5550, 2.5370, 2.5900, 2.6376, 2.5602, 2.5540, 2.5310, 2.3487, 2.32018}},
    {"noise 20 %",
     {0.7702, 0.7103, 0.2047, 0.0039, 0.0145, 0.0147, 0.0424, 0.0259, 0.0462, 0.0029, 0.0128},
     {0.8135, 0.9174, 0.9224, 0.9106, 0.8955, 0.8854, 0.8770, 0.8724, 0.8679, 0.8788, 0.8922},
     {0, 0.149535328, 0.746328532, 1.002070555, 0.986337829, 0.98488782, 0.948167874, 0.969080895, 0.942391158,
      0.99946336, 0.988128119},
     {2.5170, 2.6256, 2.5565, 2.5393, 2.5892, 2.6371, 2.5580, 2.5510, 2.5283, 2.3466, 2.31934}},
};

static void fill_path(GrowthState *s, size_t setting)
{
    for (int t = 0; t < SNAPSHOTS; t++)
        s[t] =
            (GrowthState){.u = table4[setting].u[t], .noc = table4[setting].noc[t], .score = -table4[setting].loss[t]};
    growth_path(s, SNAPSHOTS);
}

static void printed_radii(void)
{
    for (size_t i = 0; i < sizeof table4 / sizeof *table4; i++) {
        GrowthState s[SNAPSHOTS];
        fill_path(s, i);
        for (int t = 0; t < SNAPSHOTS; t++)
            near(table4[i].name, s[t].radius, table4[i].radius[t], 1e-9);
    }
}

/* Of the first setting: distances in the plane of the two main components, and the fit of eq. 19 (SciPy). */
static void distances(void)
{
    static const double euclidean[] = {0,          0.07254397, 0.05592202, 0.08000759, 0.08174301, 0.158304,
                                       0.21697496, 0.04521575, 0.06923558, 0.27967618, 0.14024271};
    static const double grassmann[] = {0,           0.837019463,  0.267323545, 0.0249961733, 0.288463075,
                                       0.196293968, 0.0453215761, 0.255438144, 0.0999948728, 0.12210191,
                                       0.375798992};
    GrowthState s[SNAPSHOTS];
    double x[SNAPSHOTS];
    FittedLine line = {0};
    fill_path(s, 0);
    for (int t = 0; t < SNAPSHOTS; t++) {
        near("R_E", s[t].euclidean, euclidean[t], 1e-8);
        near("R_G", s[t].grassmann, grassmann[t], 1e-7);
        x[t] = s[t].log_radius;
    }
    near("|ln R| where R is 0", x[0], NAN, 0);
    if (!line_through(x + 1, table4[0].loss + 1, SNAPSHOTS - 1, &line))
        near("a line", 0, 1, 0);
    near("slope", line.w, 0.07476900909976664, 1e-8);
    near("intercept", line.b, 2.3563169721916286, 1e-8);
    near("explained share", line.share, 0.18968072372602654, 1e-7);
}

enum { NX = 500, NY = 700, NZ = 300, BINS = 100 };

static double histograms(const double *x, size_t nx, const double *y, size_t ny)
{
    double lo = INFINITY, hi = -INFINITY;
    int64_t f[BINS] = {0}, g[BINS] = {0};
    for (size_t i = 0; i < nx + ny; i++) {
        double v = i < nx ? x[i] : y[i - nx];
        lo = fmin(lo, v);
        hi = fmax(hi, v);
    }
    for (size_t i = 0; i < nx; i++)
        f[histogram_bin(x[i], lo, hi, BINS)]++;
    for (size_t i = 0; i < ny; i++)
        g[histogram_bin(y[i], lo, hi, BINS)]++;
    return overlap_of_histograms(f, (int64_t)nx, g, (int64_t)ny, BINS);
}

static void estimators(void)
{
    double x[NX], y[NY], z[NZ], rounded[NX], moved[NY];
    for (int i = 0; i < NX; i++) {
        x[i] = sin(i);
        rounded[i] = rint(100 * x[i]) / 100;
    }
    for (int i = 0; i < NY; i++) {
        y[i] = rint(100 * sin(1.3 * i) + 5) / 100;
        moved[i] = rint((y[i] + 0.07) * 100) / 100;
    }
    for (int i = 0; i < NZ; i++)
        z[i] = 0.5 * x[i] + 0.2;
    near("overlap of densities", overlap_of_densities(x, NX, y, NY), 0.9609080012888196, 1e-12);
    near("overlap of unlike densities", overlap_of_densities(x, NX, z, NZ), 0.5031845773142818, 1e-12);
    near("overlap of histograms", histograms(x, NX, z, NZ), 0.3466666666666667, 1e-12);
    near("overlap with itself", histograms(x, NX, x, NX), 1, 1e-12);
    near("U_P", mann_whitney(x, NX, y, NY), 0.08083493670577169, 1e-12);
    near("U_P with ties", mann_whitney(rounded, NX, y, NY), 0.08094355122721524, 1e-12);
    near("U_P of moved numbers", mann_whitney(rounded, NX, moved, NY), 0.00023366438672549922, 1e-14);
}

/* What has no answer says so. */
static void degenerate(void)
{
    double same[] = {2, 2, 2}, other[] = {2, 2};
    int64_t none[2] = {0}, two[2] = {1, 1};
    FittedLine line;
    near("density of one number", overlap_of_densities(same, 3, other, 2), NAN, 0);
    near("U_P of one number", mann_whitney(same, 3, other, 2), 1, 0);
    near("U_P of nothing", mann_whitney(same, 0, other, 2), NAN, 0);
    near("overlap with nothing", overlap_of_histograms(none, 0, two, 2, 2), NAN, 0);
    near("a line through one x", line_through(same, other, 2, &line) || line_through(same, same, 3, &line), 0, 0);
    GrowthState s[] = {
        {.noc = 0.8, .u = 0.5, .score = NAN}, {.noc = 0.7, .u = 0.5, .score = 1}, {.noc = 0.7, .u = 0.6, .score = 1}};
    growth_path(s, 3);
    near("R without scores", s[1].radius, 0.125, 1e-15);
    near("R_E without scores", s[1].euclidean, NAN, 0);
}

int main(void)
{
    printed_radii();
    distances();
    estimators();
    degenerate();
    return failures != 0;
}
