// NAS FT: a diffusion equation in three dimensions, solved by Fourier transforms: forward once,
// then for each step a damping of every mode, an inverse transform, and a checksum of 1024 values.
//
// Each rank holds whole planes of z. The transform along z needs all z of a line: an all-to-all
// turns planes of z into planes of x. Verified as the rules want: each step's checksum agrees with
// the published one to 1e-12.
#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "bench/messages/mpi/common.h"
#include "bench/messages/mpi/nas.h"

enum { MOST_STEPS = 20, BATCH = 8 };

struct Complex {
  double re, im;
};

struct Class {
  char name;
  int nx, ny, nz, steps;
  struct Complex sums[MOST_STEPS];
};
static const struct Class classes[] = {
    {'S',
     64,
     64,
     64,
     6,
     {{5.546087004964e+02, 4.845363331978e+02},
      {5.546385409189e+02, 4.865304269511e+02},
      {5.546148406171e+02, 4.883910722336e+02},
      {5.545423607415e+02, 4.901273169046e+02},
      {5.544255039624e+02, 4.917475857993e+02},
      {5.542683411902e+02, 4.932597244941e+02}}},
    {'W',
     128,
     128,
     32,
     6,
     {{5.673612178944e+02, 5.293246849175e+02},
      {5.631436885271e+02, 5.282149986629e+02},
      {5.594024089970e+02, 5.270996558037e+02},
      {5.560698047020e+02, 5.260027904925e+02},
      {5.530898991250e+02, 5.249400845633e+02},
      {5.504159734538e+02, 5.239212247086e+02}}},
    {'A',
     256,
     256,
     128,
     6,
     {{5.046735008193e+02, 5.114047905510e+02},
      {5.059412319734e+02, 5.098809666433e+02},
      {5.069376896287e+02, 5.098144042213e+02},
      {5.077892868474e+02, 5.101336130759e+02},
      {5.085233095391e+02, 5.104914655194e+02},
      {5.091487099959e+02, 5.107917842803e+02}}},
    {'B',
     512,
     256,
     256,
     20,
     {{5.177643571579e+02, 5.077803458597e+02}, {5.154521291263e+02, 5.088249431599e+02},
      {5.146409228650e+02, 5.096208912659e+02}, {5.142378756213e+02, 5.101023387619e+02},
      {5.139626667737e+02, 5.103976610618e+02}, {5.137423460082e+02, 5.105948019802e+02},
      {5.135547056878e+02, 5.107404165783e+02}, {5.133910925467e+02, 5.108576573661e+02},
      {5.132470705390e+02, 5.109577278523e+02}, {5.131197729984e+02, 5.110460304483e+02},
      {5.130070319283e+02, 5.111252433800e+02}, {5.129070537032e+02, 5.111968077718e+02},
      {5.128182883503e+02, 5.112616233064e+02}, {5.127393733383e+02, 5.113203605551e+02},
      {5.126691062021e+02, 5.113735928093e+02}, {5.126064276005e+02, 5.114218460548e+02},
      {5.125504076570e+02, 5.114656139760e+02}, {5.125002331721e+02, 5.115053595966e+02},
      {5.124551951846e+02, 5.115415130407e+02}, {5.124146770029e+02, 5.115744692211e+02}}},
    {'C',
     512,
     512,
     512,
     20,
     {{5.195078707457e+02, 5.149019699238e+02}, {5.155422171134e+02, 5.127578201997e+02},
      {5.144678022222e+02, 5.122251847514e+02}, {5.140150594328e+02, 5.121090289018e+02},
      {5.137550426810e+02, 5.121143685824e+02}, {5.135811056728e+02, 5.121496764568e+02},
      {5.134569343165e+02, 5.121870921893e+02}, {5.133651975661e+02, 5.122193250322e+02},
      {5.132955192805e+02, 5.122454735794e+02}, {5.132410471738e+02, 5.122663649603e+02},
      {5.131971141679e+02, 5.122830879827e+02}, {5.131605205716e+02, 5.122965869718e+02},
      {5.131290734194e+02, 5.123075927445e+02}, {5.131012720314e+02, 5.123166486553e+02},
      {5.130760908195e+02, 5.123241541685e+02}, {5.130528295923e+02, 5.123304037599e+02},
      {5.130310107773e+02, 5.123356167976e+02}, {5.130103090133e+02, 5.123399592211e+02},
      {5.129905029333e+02, 5.123435588985e+02}, {5.129714421109e+02, 5.123465164008e+02}}}};

static const struct Class* find_class(char name) {
  for (unsigned i = 0; i < sizeof classes / sizeof classes[0]; i++) {
    if (classes[i].name == name) return &classes[i];
  }
  fail("there is no class %c of FT; use S, W, A, B or C", name);
}

// ---- one-dimensional transforms ----------------------------------------------------------------

// Transforms BATCH lines at once: their values of one index lie side by side, so that a CPU's
// vectors fit.
struct Lines {
  double re[BATCH], im[BATCH];
};

struct Plan {
  int n;
  struct Complex* roots;  // exp(-2 pi i k / n), k below n/2
  struct Lines *a, *b;
};

static struct Plan make_plan(int n) {
  struct Plan plan = {.n = n};
  plan.roots = allocate((size_t)(n / 2) * sizeof *plan.roots);
  plan.a = allocate((size_t)n * sizeof *plan.a);
  plan.b = allocate((size_t)n * sizeof *plan.b);
  for (int k = 0; k < n / 2; k++) {
    const double angle = -2 * M_PI * k / n;
    plan.roots[k] = (struct Complex){cos(angle), sin(angle)};
  }
  return plan;
}

static void free_plan(struct Plan* plan) {
  free(plan->roots);
  free(plan->a);
  free(plan->b);
}

// out1 = x + y, out2 = (x - y) w, for all lines.
static inline void butterfly(const struct Lines* restrict x, const struct Lines* restrict y,
                             struct Complex w, struct Lines* restrict out1,
                             struct Lines* restrict out2) {
  for (int i = 0; i < BATCH; i++) {
    const double re = x->re[i] - y->re[i], im = x->im[i] - y->im[i];
    out1->re[i] = x->re[i] + y->re[i];
    out1->im[i] = x->im[i] + y->im[i];
    out2->re[i] = re * w.re - im * w.im;
    out2->im[i] = re * w.im + im * w.re;
  }
}

// Stockham's algorithm, which needs no bit reversal: each pass halves the length of the transforms
// and doubles their number. Returns where the result lies, a or b. sign: 1 forward, -1 inverse
// (unscaled).
static struct Lines* transform(const struct Plan* plan, int sign) {
  struct Lines *from = plan->a, *to = plan->b;
  for (int half = plan->n / 2, many = 1; half >= 1; half /= 2, many *= 2) {
    for (int k = 0; k < half; k++) {
      struct Complex w = plan->roots[k * many];
      w.im *= sign;
      for (int j = 0; j < many; j++) {
        butterfly(&from[j + many * k], &from[j + many * (k + half)], w, &to[j + many * 2 * k],
                  &to[j + many * (2 * k + 1)]);
      }
    }
    struct Lines* other = from;
    from = to;
    to = other;
  }
  return from;
}

// Transforms `lines` lines whose values lie `step` apart; a line begins `gap` after the one before.
static void transform_lines(const struct Plan* plan, int sign, struct Complex* at, size_t step,
                            size_t lines, size_t gap) {
  for (size_t first = 0; first < lines; first += BATCH) {
    for (size_t k = 0; k < (size_t)plan->n; k++) {
      for (size_t i = 0; i < BATCH; i++) {
        plan->a[k].re[i] = at[k * step + (first + i) * gap].re;
        plan->a[k].im[i] = at[k * step + (first + i) * gap].im;
      }
    }
    const struct Lines* done = transform(plan, sign);
    for (size_t k = 0; k < (size_t)plan->n; k++) {
      for (size_t i = 0; i < BATCH; i++)
        at[k * step + (first + i) * gap] = (struct Complex){done[k].re[i], done[k].im[i]};
    }
  }
}

// ---- three dimensions --------------------------------------------------------------------------

struct Field {
  const struct Class* class;
  int rank, ranks;
  size_t nx, ny, nz, own_z, own_x, own;  // own: values of a rank
  struct Plan x, y, z;
  struct Complex* planes;        // in space: [own_z][ny][nx]
  struct Complex *modes, *work;  // of modes: [own_x][ny][nz]
  double* damping;               // of each mode in one step
};

// What goes to one rank is a block [own_x][ny][own_z].
static void planes_to_blocks(const struct Field* f, const struct Complex* planes,
                             struct Complex* blocks) {
  for (size_t y = 0; y < f->ny; y++) {
    for (size_t x0 = 0; x0 < f->nx; x0 += BATCH) {
      for (size_t z = 0; z < f->own_z; z++) {
        for (size_t x = x0; x < x0 + BATCH; x++)
          blocks[(x * f->ny + y) * f->own_z + z] = planes[(z * f->ny + y) * f->nx + x];
      }
    }
  }
}
static void blocks_to_planes(const struct Field* f, const struct Complex* blocks,
                             struct Complex* planes) {
  for (size_t y = 0; y < f->ny; y++) {
    for (size_t x0 = 0; x0 < f->nx; x0 += BATCH) {
      for (size_t z = 0; z < f->own_z; z++) {
        for (size_t x = x0; x < x0 + BATCH; x++)
          planes[(z * f->ny + y) * f->nx + x] = blocks[(x * f->ny + y) * f->own_z + z];
      }
    }
  }
}

// Between blocks [rank][own_x * ny][own_z] and lines [own_x * ny][nz].
static void blocks_to_lines(const struct Field* f, const struct Complex* blocks,
                            struct Complex* lines) {
  const size_t count = f->own_x * f->ny, bytes = f->own_z * sizeof *lines;
  for (size_t line = 0; line < count; line++) {
    for (size_t r = 0; r < (size_t)f->ranks; r++)
      memcpy(lines + line * f->nz + r * f->own_z, blocks + (r * count + line) * f->own_z, bytes);
  }
}
static void lines_to_blocks(const struct Field* f, const struct Complex* lines,
                            struct Complex* blocks) {
  const size_t count = f->own_x * f->ny, bytes = f->own_z * sizeof *lines;
  for (size_t line = 0; line < count; line++) {
    for (size_t r = 0; r < (size_t)f->ranks; r++)
      memcpy(blocks + (r * count + line) * f->own_z, lines + line * f->nz + r * f->own_z, bytes);
  }
}

static void swap_blocks(const struct Field* f, const struct Complex* from, struct Complex* to) {
  const int doubles = (int)(2 * f->own / (size_t)f->ranks);
  MPI_Alltoall(from, doubles, MPI_DOUBLE, to, doubles, MPI_DOUBLE, MPI_COMM_WORLD);
}

static void transform_planes(struct Field* f, int sign) {
  transform_lines(&f->x, sign, f->planes, 1, f->own_z * f->ny, f->nx);
  for (size_t z = 0; z < f->own_z; z++)
    transform_lines(&f->y, sign, f->planes + z * f->ny * f->nx, f->nx, f->nx, 1);
}

static void forward(struct Field* f) {
  transform_planes(f, 1);
  planes_to_blocks(f, f->planes, f->work);
  swap_blocks(f, f->work, f->planes);
  blocks_to_lines(f, f->planes, f->modes);
  transform_lines(&f->z, 1, f->modes, 1, f->own_x * f->ny, f->nz);
}

// From f->work, which holds modes, to f->planes.
static void inverse(struct Field* f) {
  transform_lines(&f->z, -1, f->work, 1, f->own_x * f->ny, f->nz);
  lines_to_blocks(f, f->work, f->planes);
  swap_blocks(f, f->planes, f->work);
  blocks_to_planes(f, f->work, f->planes);
  transform_planes(f, -1);
}

// ---- the benchmark -----------------------------------------------------------------------------

static void set_up(struct Field* f, const struct Run* run) {
  f->class = find_class(run->class_name);
  f->rank = run->rank;
  f->ranks = run->ranks;
  f->nx = (size_t)f->class->nx;
  f->ny = (size_t)f->class->ny;
  f->nz = (size_t)f->class->nz;
  if (f->nz % (size_t)f->ranks != 0 || f->nx % (size_t)f->ranks != 0)
    fail("class %c of FT has no planes for %d ranks", run->class_name, f->ranks);
  f->own_z = f->nz / (size_t)f->ranks;
  f->own_x = f->nx / (size_t)f->ranks;
  f->own = f->nx * f->ny * f->own_z;
  f->planes = allocate(f->own * sizeof *f->planes);
  f->modes = allocate(f->own * sizeof *f->modes);
  f->work = allocate(f->own * sizeof *f->work);
  f->damping = allocate(f->own * sizeof *f->damping);
  f->x = make_plan(f->class->nx);
  f->y = make_plan(f->class->ny);
  f->z = make_plan(f->class->nz);
}

static void tear_down(struct Field* f) {
  free(f->planes);
  free(f->modes);
  free(f->work);
  free(f->damping);
  free_plan(&f->x);
  free_plan(&f->y);
  free_plan(&f->z);
}

static void make_planes(struct Field* f) {
  struct Random random = random_after(2 * (uint64_t)f->own * (uint64_t)f->rank);
  for (size_t i = 0; i < f->own; i++) {
    f->planes[i].re = next_random(&random);
    f->planes[i].im = next_random(&random);
  }
}

// Indices from the middle on stand for negative frequencies.
static double squared_frequency(size_t index, size_t n) {
  const double k = (double)index - (index < n / 2 ? 0 : (double)n);
  return k * k;
}

static void make_damping(struct Field* f) {
  const double alpha = 1e-6;
  for (size_t x = 0; x < f->own_x; x++) {
    const double fx = squared_frequency(x + f->own_x * (size_t)f->rank, f->nx);
    for (size_t y = 0; y < f->ny; y++) {
      for (size_t z = 0; z < f->nz; z++) {
        const double k2 = fx + squared_frequency(y, f->ny) + squared_frequency(z, f->nz);
        f->damping[(x * f->ny + y) * f->nz + z] = exp(-4 * alpha * M_PI * M_PI * k2);
      }
    }
  }
}

static void damp(struct Field* f) {
  for (size_t i = 0; i < f->own; i++) {
    f->modes[i].re *= f->damping[i];
    f->modes[i].im *= f->damping[i];
  }
  memcpy(f->work, f->modes, f->own * sizeof *f->work);
}

static struct Complex checksum(const struct Field* f) {
  double own[2] = {0, 0}, all[2] = {0, 0};
  for (size_t j = 1; j <= 1024; j++) {
    const size_t x = j % f->nx, y = 3 * j % f->ny, z = 5 * j % f->nz;
    if (z / f->own_z != (size_t)f->rank) continue;
    const struct Complex value = f->planes[(z % f->own_z * f->ny + y) * f->nx + x];
    own[0] += value.re;
    own[1] += value.im;
  }
  MPI_Reduce(own, all, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  const double scale = 1 / (double)(f->nx * f->ny * f->nz);  // of the inverse transform
  return (struct Complex){all[0] * scale, all[1] * scale};
}

static void check(const struct Field* f, int step, struct Complex sum) {
  if (f->rank != 0) return;
  const struct Complex wanted = f->class->sums[step];
  const double off = fmax(fabs(sum.re / wanted.re - 1), fabs(sum.im / wanted.im - 1));
  if (!(off <= 1e-12))
    fail("FT class %c, step %d: the checksum is %.12e %.12e instead of %.12e %.12e", f->class->name,
         step + 1, sum.re, sum.im, wanted.re, wanted.im);
}

static void solve(struct Field* f) {
  make_damping(f);
  make_planes(f);
  forward(f);
  for (int step = 0; step < f->class->steps; step++) {
    damp(f);
    inverse(f);
    check(f, step, checksum(f));
  }
}

int main(int argc, char** argv) {
  const struct Run run = begin_run(&argc, &argv);
  struct Field field = {0};
  set_up(&field, &run);
  // The part that the rules leave untimed: it touches memory and uses the library's paths once.
  make_damping(&field);
  make_planes(&field);
  forward(&field);
  const struct Timing timing = begin_timing();
  solve(&field);
  const struct Told told = end_timing(timing);
  // The number of operations by the rules.
  const double n = (double)(field.nx * field.ny * field.nz), steps = field.class->steps;
  const double operations = n * (14.8157 + 7.19641 * log(n) + (5.23518 + 7.21113 * log(n)) * steps);
  tear_down(&field);
  end_run(&run, "ft", told, operations);
  return 0;
}
