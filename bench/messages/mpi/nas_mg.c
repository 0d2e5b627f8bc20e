// NAS MG: a Poisson equation on a cube without borders (each face continues at the opposite one),
// solved by V-cycles over grids from the finest to that of two points in each direction.
//
// The ranks divide the cube in z, then in y, then in x. Each grid has a layer of ghosts around it,
// which the neighbours fill from point to point, axis by axis, so that edges and corners follow.
// Verified as the rules want: the norm of the last residual agrees with the published one to 1e-8.
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>

#include "bench/messages/mpi/common.h"
#include "bench/messages/mpi/nas.h"

enum { AXES = 3, MOST_LEVELS = 10, CHARGES = 10 };

struct Class {
  char name;
  int levels, steps;  // the finest grid has 2^levels points in each direction
  double norm;
  double smoother[3];  // weights of the centre, of faces and of edges
};
#define COARSE_SMOOTHER \
  { -3.0 / 8, 1.0 / 32, -1.0 / 64 }
#define FINE_SMOOTHER \
  { -3.0 / 17, 1.0 / 33, -1.0 / 61 }
static const struct Class classes[] = {{'S', 5, 4, 0.5307707005734e-04, COARSE_SMOOTHER},
                                       {'W', 7, 4, 0.6467329375339e-05, COARSE_SMOOTHER},
                                       {'A', 8, 4, 0.2433365309069e-05, COARSE_SMOOTHER},
                                       {'B', 8, 20, 0.1800564401355e-05, FINE_SMOOTHER},
                                       {'C', 9, 20, 0.5706732285740e-06, FINE_SMOOTHER}};

// Own points of a level have indices 1 to n; 0 and n + 1 are ghosts. Axis 0 (x) is the fastest.
struct Grid {
  int n[AXES];
  size_t stride[AXES];
  size_t points;  // with ghosts
};

struct Cycle {
  const struct Class* class;
  int parts[AXES], place[AXES];        // of the ranks along each axis
  int before[AXES], behind[AXES];      // neighbours along each axis
  struct Grid grids[MOST_LEVELS + 1];  // by level
  double *u[MOST_LEVELS + 1], *r[MOST_LEVELS + 1], *v;
  double* faces[4];  // sent down and up, received from above and from below
};

static const struct Class* find_class(char name) {
  for (unsigned i = 0; i < sizeof classes / sizeof classes[0]; i++) {
    if (classes[i].name == name) return &classes[i];
  }
  fail("there is no class %c of MG; use S, W, A, B or C", name);
}

static double* make_points(const struct Grid* grid) {
  return allocate(grid->points * sizeof(double));
}

static void divide(struct Cycle* c, const struct Run* run) {
  int log2 = 0;
  while (1 << log2 < run->ranks) log2++;
  if (log2 > AXES) fail("MG divides among 8 ranks at most, not among %d", run->ranks);
  const int in_x = log2 / 3, in_y = (log2 - in_x) / 2, in_z = log2 - in_x - in_y;
  const int parts[AXES] = {1 << in_x, 1 << in_y, 1 << in_z};
  int step = 1;
  for (int a = 0; a < AXES; a++) {
    c->parts[a] = parts[a];
    c->place[a] = run->rank / step % parts[a];
    const int base = run->rank - c->place[a] * step;
    c->before[a] = base + (c->place[a] + parts[a] - 1) % parts[a] * step;
    c->behind[a] = base + (c->place[a] + 1) % parts[a] * step;
    step *= parts[a];
  }
}

static void set_up(struct Cycle* c, const struct Run* run) {
  c->class = find_class(run->class_name);
  divide(c, run);
  for (int level = 1; level <= c->class->levels; level++) {
    struct Grid* grid = &c->grids[level];
    grid->points = 1;
    for (int a = 0; a < AXES; a++) {
      grid->n[a] = (1 << level) / c->parts[a];
      grid->stride[a] = grid->points;
      grid->points *= (size_t)grid->n[a] + 2;
    }
    c->u[level] = make_points(grid);
    c->r[level] = make_points(grid);
  }
  const struct Grid* finest = &c->grids[c->class->levels];
  c->v = make_points(finest);
  const size_t face = (size_t)(finest->n[0] + 2) * (size_t)(finest->n[1] + 2);
  for (int i = 0; i < 4; i++) c->faces[i] = allocate(face * sizeof(double));
}

static void tear_down(struct Cycle* c) {
  for (int level = 1; level <= c->class->levels; level++) {
    free(c->u[level]);
    free(c->r[level]);
  }
  free(c->v);
  for (int i = 0; i < 4; i++) free(c->faces[i]);
}

// ---- ghosts
// --------------------------------------------------------------------------------------

// The layer of points whose index along `axis` is `index`, ghosts of the other axes included.
struct Layer {
  size_t first, outer_stride, inner_stride;
  int outer, inner;
};
static struct Layer layer_of(const struct Grid* grid, int axis, int index) {
  const int inner = axis == 0 ? 1 : 0, outer = axis == 2 ? 1 : 2;
  return (struct Layer){(size_t)index * grid->stride[axis], grid->stride[outer],
                        grid->stride[inner], grid->n[outer] + 2, grid->n[inner] + 2};
}

static int pack(struct Layer layer, const double* points, double* face) {
  int count = 0;
  for (int i = 0; i < layer.outer; i++) {
    const double* from = points + layer.first + (size_t)i * layer.outer_stride;
    for (int k = 0; k < layer.inner; k++) face[count++] = from[(size_t)k * layer.inner_stride];
  }
  return count;
}
static void unpack(struct Layer layer, const double* face, double* points) {
  int count = 0;
  for (int i = 0; i < layer.outer; i++) {
    double* to = points + layer.first + (size_t)i * layer.outer_stride;
    for (int k = 0; k < layer.inner; k++) to[(size_t)k * layer.inner_stride] = face[count++];
  }
}

static void fill_ghosts(struct Cycle* c, const struct Grid* grid, double* points) {
  enum { DOWN, UP };
  for (int axis = 0; axis < AXES; axis++) {
    const int n = grid->n[axis];
    double **out = c->faces, **in = c->faces + 2;
    const int count = pack(layer_of(grid, axis, 1), points, out[DOWN]);
    pack(layer_of(grid, axis, n), points, out[UP]);
    if (c->parts[axis] == 1) {
      in = out;
    } else {
      MPI_Request requests[2];
      MPI_Irecv(in[DOWN], count, MPI_DOUBLE, c->behind[axis], DOWN, MPI_COMM_WORLD, &requests[0]);
      MPI_Irecv(in[UP], count, MPI_DOUBLE, c->before[axis], UP, MPI_COMM_WORLD, &requests[1]);
      MPI_Send(out[UP], count, MPI_DOUBLE, c->behind[axis], UP, MPI_COMM_WORLD);
      MPI_Send(out[DOWN], count, MPI_DOUBLE, c->before[axis], DOWN, MPI_COMM_WORLD);
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    unpack(layer_of(grid, axis, n + 1), in[DOWN], points);
    unpack(layer_of(grid, axis, 0), in[UP], points);
  }
}

// ---- stencils
// ------------------------------------------------------------------------------------

// Sums of the neighbours in y and z of each point of a line: the four beside it and the four
// across.
struct Sums {
  double beside[(1 << MOST_LEVELS) + 2], across[(1 << MOST_LEVELS) + 2];
};
static void sum_around(struct Sums* sums, const struct Grid* grid, const double* line) {
  const size_t y = grid->stride[1], z = grid->stride[2];
  for (int i = 0; i < grid->n[0] + 2; i++) {
    const double* p = line + i;
    sums->beside[i] = (p[y] + *(p - y)) + (p[z] + *(p - z));
    sums->across[i] = (p[y + z] + *(p - y - z)) + (*(p + z - y) + *(p - z + y));
  }
}

static size_t line_at(const struct Grid* grid, int y, int z) {
  return (size_t)y * grid->stride[1] + (size_t)z * grid->stride[2];
}

// r = v - A u. r may be v.
static void residual(struct Cycle* c, int level, const double* v) {
  static struct Sums sums;
  const struct Grid* grid = &c->grids[level];
  double *u = c->u[level], *r = c->r[level];
  const double centre = -8.0 / 3, edges = 1.0 / 6, corners = 1.0 / 12;
  for (int z = 1; z <= grid->n[2]; z++) {
    for (int y = 1; y <= grid->n[1]; y++) {
      const size_t line = line_at(grid, y, z);
      sum_around(&sums, grid, u + line);
      for (int x = 1; x <= grid->n[0]; x++)
        r[line + (size_t)x] = v[line + (size_t)x] - centre * u[line + (size_t)x] -
                              edges * (sums.across[x] + sums.beside[x - 1] + sums.beside[x + 1]) -
                              corners * (sums.across[x - 1] + sums.across[x + 1]);
    }
  }
  fill_ghosts(c, grid, r);
}

// u += S r
static void smooth(struct Cycle* c, int level) {
  static struct Sums sums;
  const struct Grid* grid = &c->grids[level];
  double *u = c->u[level], *r = c->r[level];
  const double* weight = c->class->smoother;
  for (int z = 1; z <= grid->n[2]; z++) {
    for (int y = 1; y <= grid->n[1]; y++) {
      const size_t line = line_at(grid, y, z);
      const double* p = r + line;
      sum_around(&sums, grid, p);
      for (int x = 1; x <= grid->n[0]; x++)
        u[line + (size_t)x] +=
            weight[0] * p[x] + weight[1] * (p[x - 1] + p[x + 1] + sums.beside[x]) +
            weight[2] * (sums.across[x] + sums.beside[x - 1] + sums.beside[x + 1]);
    }
  }
  fill_ghosts(c, grid, u);
}

// The residual of the next coarser level, whose point i lies at point 2 i of this one.
static void restrict_residual(struct Cycle* c, int level) {
  static struct Sums sums;
  const struct Grid *fine = &c->grids[level], *coarse = &c->grids[level - 1];
  for (int z = 1; z <= coarse->n[2]; z++) {
    for (int y = 1; y <= coarse->n[1]; y++) {
      const double* from = c->r[level] + line_at(fine, 2 * y, 2 * z);
      double* to = c->r[level - 1] + line_at(coarse, y, z);
      sum_around(&sums, fine, from);
      for (int x = 1; x <= coarse->n[0]; x++) {
        const int at = 2 * x;
        to[x] = 0.5 * from[at] + 0.25 * (from[at - 1] + from[at + 1] + sums.beside[at]) +
                0.125 * (sums.beside[at - 1] + sums.beside[at + 1] + sums.across[at]) +
                0.0625 * (sums.across[at - 1] + sums.across[at + 1]);
      }
    }
  }
  fill_ghosts(c, coarse, c->r[level - 1]);
}

// Adds the next coarser level's solution, interpolated, to this one's, ghosts included.
static void prolong(struct Cycle* c, int level) {
  const struct Grid *fine = &c->grids[level], *coarse = &c->grids[level - 1];
  for (int z = 0; z < fine->n[2] + 2; z++) {
    for (int y = 0; y < fine->n[1] + 2; y++) {
      // An odd index lies between two points of the coarser grid.
      const double* from = c->u[level - 1] + line_at(coarse, y / 2, z / 2);
      const size_t dy = y % 2 * coarse->stride[1], dz = z % 2 * coarse->stride[2];
      double* to = c->u[level] + line_at(fine, y, z);
      double here = from[0] + from[dy] + from[dz] + from[dy + dz];
      for (int x = 0; x <= coarse->n[0]; x++) {
        const double* next = from + x + 1;
        const double there = next[0] + next[dy] + next[dz] + next[dy + dz];
        to[2 * x] += 0.25 * here;
        to[2 * x + 1] += 0.125 * (here + there);
        here = there;
      }
    }
  }
}

static void set_zero(const struct Grid* grid, double* points) {
  for (size_t i = 0; i < grid->points; i++) points[i] = 0;
}

// ---- the benchmark
// -------------------------------------------------------------------------------

static void cycle(struct Cycle* c) {
  const int finest = c->class->levels;
  for (int level = finest; level > 1; level--) restrict_residual(c, level);
  set_zero(&c->grids[1], c->u[1]);
  smooth(c, 1);
  for (int level = 2; level < finest; level++) {
    set_zero(&c->grids[level], c->u[level]);
    prolong(c, level);
    residual(c, level, c->r[level]);
    smooth(c, level);
  }
  prolong(c, finest);
  residual(c, finest, c->v);
  smooth(c, finest);
}

static double norm(const struct Cycle* c) {
  const struct Grid* grid = &c->grids[c->class->levels];
  double own = 0, all = 0;
  for (int z = 1; z <= grid->n[2]; z++) {
    for (int y = 1; y <= grid->n[1]; y++) {
      const double* line = c->r[c->class->levels] + line_at(grid, y, z);
      for (int x = 1; x <= grid->n[0]; x++) own += line[x] * line[x];
    }
  }
  MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return sqrt(all / pow(2, AXES * c->class->levels));
}

struct Charge {
  double value;
  double place;  // among all points; exact
};

// Keeps the greatest values in falling order.
static void insert(struct Charge* kept, struct Charge new) {
  if (!(new.value > kept[CHARGES - 1].value)) return;
  int at = CHARGES - 1;
  for (; at > 0 && kept[at - 1].value < new.value; at--) kept[at] = kept[at - 1];
  kept[at] = new;
}

// Puts `charge` where the greatest of all ranks' kept values are.
static void put_charges(struct Cycle* c, const struct Charge* kept, double charge) {
  const struct Grid* grid = &c->grids[c->class->levels];
  const int64_t side = (int64_t)1 << c->class->levels;
  const int ranks = c->parts[0] * c->parts[1] * c->parts[2], doubles = CHARGES * 2;
  struct Charge* all = allocate((size_t)ranks * CHARGES * sizeof *all);
  struct Charge best[CHARGES];
  MPI_Allgather(kept, doubles, MPI_DOUBLE, all, doubles, MPI_DOUBLE, MPI_COMM_WORLD);
  for (int i = 0; i < CHARGES; i++) best[i].value = -2;
  for (int i = 0; i < ranks * CHARGES; i++) insert(best, all[i]);
  for (int i = 0; i < CHARGES; i++) {
    int64_t place = (int64_t)best[i].place;
    size_t at = 0;
    int own = 1;
    for (int a = 0; a < AXES; a++, place /= side) {
      const int index = (int)(place % side) - c->place[a] * grid->n[a] + 1;
      own &= index >= 1 && index <= grid->n[a];
      at += (size_t)index * grid->stride[a];
    }
    if (own) c->v[at] = charge;
  }
  free(all);
}

// +1 at the ten greatest of random numbers, one for each point, and -1 at the ten least.
static void begin(struct Cycle* c) {
  const struct Grid* grid = &c->grids[c->class->levels];
  const int64_t side = (int64_t)1 << c->class->levels;
  struct Charge greatest[CHARGES], least[CHARGES];
  for (int i = 0; i < CHARGES; i++) greatest[i].value = least[i].value = -2;
  for (int z = 0; z < grid->n[2]; z++) {
    for (int y = 0; y < grid->n[1]; y++) {
      int64_t place = (int64_t)(z + c->place[2] * grid->n[2]) * side + y + c->place[1] * grid->n[1];
      place = place * side + c->place[0] * grid->n[0];
      struct Random random = random_after((uint64_t)place);
      for (int x = 0; x < grid->n[0]; x++) {
        const double value = next_random(&random);
        insert(greatest, (struct Charge){value, (double)(place + x)});
        insert(least, (struct Charge){-value, (double)(place + x)});
      }
    }
  }
  set_zero(grid, c->v);
  put_charges(c, greatest, 1);
  put_charges(c, least, -1);
  fill_ghosts(c, grid, c->v);
  set_zero(grid, c->u[c->class->levels]);
}

int main(int argc, char** argv) {
  const struct Run run = begin_run(&argc, &argv);
  static struct Cycle c;
  set_up(&c, &run);
  const int finest = c.class->levels;
  begin(&c);
  residual(&c, finest, c.v);
  cycle(&c);  // the rules leave one cycle untimed
  residual(&c, finest, c.v);
  begin(&c);
  const struct Timing timing = begin_timing();
  residual(&c, finest, c.v);
  for (int step = 0; step < c.class->steps; step++) {
    cycle(&c);
    residual(&c, finest, c.v);
  }
  const double found = norm(&c);
  const struct Told told = end_timing(timing);
  if (!(fabs(found / c.class->norm - 1) <= 1e-8))
    fail("MG class %c: the residual's norm is %.13e instead of %.13e", c.class->name, found,
         c.class->norm);
  const double points = pow(2, AXES * finest);
  end_run(&run, "mg", told, 58.0 * c.class->steps * points);
  tear_down(&c);
  return 0;
}
