// NAS CG: the smallest eigenvalue of a large sparse matrix by inverse iteration, each step of which
// solves a system with 25 iterations of the conjugate gradient method.
//
// The ranks form a grid of rows and columns; each holds a block of the matrix, and of the vectors
// the piece that belongs to its column. A product of the block is summed along the grid's row and
// then exchanged with the rank across the diagonal, which makes pieces of rows pieces of columns.
// All of that goes from point to point. Verified as the rules want: the estimate zeta agrees with
// the published one to 1e-10.
#include <math.h>
#include <mpi.h>
#include <stdlib.h>

#include "bench/messages/mpi/common.h"
#include "bench/messages/mpi/nas.h"

enum { INNER_STEPS = 25, MOST_NONZEROS = 16, MOST_FOLDS = 16 };

struct Class {
  char name;
  int n, nonzeros, steps;
  double shift, zeta;
};
static const struct Class classes[] = {{'S', 1400, 7, 15, 10, 8.5971775078648},
                                       {'W', 7000, 8, 15, 12, 10.362595087124},
                                       {'A', 14000, 11, 15, 20, 17.130235054029},
                                       {'B', 75000, 13, 75, 60, 22.712745482631},
                                       {'C', 150000, 15, 75, 110, 28.973605592845}};

struct System {
  const struct Class* class;
  int rank, grid_rows, grid_columns, row, column;
  int first_row, rows, first_column, columns;  // of the own block
  // The block, row by row.
  size_t* row_begin;
  int* at_column;
  double* value;
  // Partners in the sums along the grid's row, and the one across the diagonal.
  int folds, fold_with[MOST_FOLDS], across;
  // Which part of its rows' sums a rank has and exchanges: all, or one half where the grid has two
  // columns for each row.
  int part_begin, part;
  double *x, *z, *p, *q, *r;  // pieces of columns
  double *product, *incoming;
};

static const struct Class* find_class(char name) {
  for (unsigned i = 0; i < sizeof classes / sizeof classes[0]; i++) {
    if (classes[i].name == name) return &classes[i];
  }
  fail("there is no class %c of CG; use S, W, A, B or C", name);
}

static double* make_vector(int count) {
  return allocate((size_t)count * sizeof(double));
}

static void set_up(struct System* s, const struct Run* run) {
  s->class = find_class(run->class_name);
  s->rank = run->rank;
  s->grid_rows = s->grid_columns = 1;
  while (s->grid_rows * s->grid_columns < run->ranks) {
    if (s->grid_columns == s->grid_rows)
      s->grid_columns *= 2;
    else
      s->grid_rows *= 2;
  }
  const int n = s->class->n;
  if (n % s->grid_columns != 0)
    fail("class %c of CG does not divide among %d ranks; use 64 at most", run->class_name,
         run->ranks);
  s->row = run->rank / s->grid_columns;
  s->column = run->rank % s->grid_columns;
  s->rows = n / s->grid_rows;
  s->columns = n / s->grid_columns;
  s->first_row = s->row * s->rows;
  s->first_column = s->column * s->columns;
  for (int distance = 1; distance < s->grid_columns; distance *= 2)
    s->fold_with[s->folds++] = s->row * s->grid_columns + (s->column ^ distance);
  if (s->grid_rows == s->grid_columns) {
    s->part = s->rows;
    s->across = s->column * s->grid_columns + s->row;
  } else {
    const int half = s->column % 2;
    s->part = s->rows / 2;
    s->part_begin = half * s->part;
    s->across = s->column / 2 * s->grid_columns + 2 * s->row + half;
  }
  s->x = make_vector(s->columns);
  s->z = make_vector(s->columns);
  s->p = make_vector(s->columns);
  s->q = make_vector(s->columns);
  s->r = make_vector(s->columns);
  s->product = make_vector(s->rows);
  s->incoming = make_vector(s->rows);
}

// ---- the matrix
// ----------------------------------------------------------------------------------

// The sum of outer products of sparse random vectors, each weighted less than the one before.
struct Sparse {
  int count, at[MOST_NONZEROS];
  double value[MOST_NONZEROS];
};

// As many different places as the class says, and 0.5 on the diagonal.
static void make_sparse(struct Sparse* v, struct Random* random, const struct Class* class,
                        int diagonal) {
  int range = 1, seen, k;
  while (range < class->n) range *= 2;
  v->count = 0;
  while (v->count < class->nonzeros) {
    const double value = next_random(random);
    const int at = (int)(range * next_random(random));
    seen = at >= class->n;
    for (k = 0; k < v->count; k++) seen |= v->at[k] == at;
    if (seen) continue;
    v->at[v->count] = at;
    v->value[v->count++] = value;
  }
  for (k = 0; k < v->count && v->at[k] != diagonal; k++) continue;
  v->at[k] = diagonal;
  v->value[k] = 0.5;
  if (k == v->count) v->count++;
}

struct Entry {
  int column;
  double value;
};

static int by_column(const void* a, const void* b) {
  return ((const struct Entry*)a)->column - ((const struct Entry*)b)->column;
}

// Entries of one place are added up.
static size_t merge_row(struct Entry* row, size_t count, int* columns, double* values) {
  size_t kept = 0;
  qsort(row, count, sizeof *row, by_column);
  for (size_t i = 0; i < count; i++) {
    if (kept > 0 && columns[kept - 1] == row[i].column) {
      values[kept - 1] += row[i].value;
    } else {
      columns[kept] = row[i].column;
      values[kept++] = row[i].value;
    }
  }
  return kept;
}

static int is_within(int at, int first, int count) {
  return at >= first && at < first + count;
}

// Every rank makes all vectors, and keeps what lies in its block.
static void make_matrix(struct System* s) {
  const int n = s->class->n;
  struct Sparse* vectors = allocate((size_t)n * sizeof *vectors);
  size_t* begin = allocate(((size_t)s->rows + 1) * sizeof *begin);
  struct Random random = random_after(1);  // the rules take one number before
  for (int i = 0; i < n; i++) {
    struct Sparse* v = &vectors[i];
    make_sparse(v, &random, s->class, i);
    size_t columns = 0;
    for (int k = 0; k < v->count; k++) columns += is_within(v->at[k], s->first_column, s->columns);
    for (int k = 0; k < v->count; k++) {
      if (is_within(v->at[k], s->first_row, s->rows)) begin[v->at[k] - s->first_row + 1] += columns;
    }
  }
  for (int i = 0; i < s->rows; i++) begin[i + 1] += begin[i];
  struct Entry* entries = allocate(begin[s->rows] * sizeof *entries);
  size_t* next = allocate((size_t)s->rows * sizeof *next);
  const double rcond = 0.1, ratio = pow(rcond, 1.0 / n);
  double weight = 1;
  for (int i = 0; i < n; i++, weight *= ratio) {
    const struct Sparse* v = &vectors[i];
    for (int j = 0; j < v->count; j++) {
      if (!is_within(v->at[j], s->first_row, s->rows)) continue;
      const int row = v->at[j] - s->first_row;
      for (int k = 0; k < v->count; k++) {
        if (!is_within(v->at[k], s->first_column, s->columns)) continue;
        double value = v->value[k] * (v->value[j] * weight);
        if (v->at[j] == i && v->at[k] == i) value += rcond - s->class->shift;
        entries[begin[row] + next[row]++] = (struct Entry){v->at[k] - s->first_column, value};
      }
    }
  }
  s->row_begin = allocate(((size_t)s->rows + 1) * sizeof *s->row_begin);
  s->at_column = allocate(begin[s->rows] * sizeof *s->at_column);
  s->value = allocate(begin[s->rows] * sizeof *s->value);
  for (int i = 0; i < s->rows; i++) {
    const size_t at = s->row_begin[i];
    s->row_begin[i + 1] =
        at + merge_row(entries + begin[i], next[i], s->at_column + at, s->value + at);
  }
  free(vectors);
  free(begin);
  free(entries);
  free(next);
}

// ---- communication
// -------------------------------------------------------------------------------

static void swap(const double* out, int sent, double* in, int got, int peer) {
  MPI_Request request;
  MPI_Irecv(in, got, MPI_DOUBLE, peer, 0, MPI_COMM_WORLD, &request);
  MPI_Send(out, sent, MPI_DOUBLE, peer, 0, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

// Along the grid's row, whose ranks' pieces make up the whole.
static void sum_along_row(const struct System* s, double* values, int count) {
  double incoming[2];
  for (int i = 0; i < s->folds; i++) {
    swap(values, count, incoming, count, s->fold_with[i]);
    for (int k = 0; k < count; k++) values[k] += incoming[k];
  }
}

static double dot(const struct System* s, const double* a, const double* b) {
  double sum = 0;
  for (int i = 0; i < s->columns; i++) sum += a[i] * b[i];
  sum_along_row(s, &sum, 1);
  return sum;
}

// Adds up the products along the grid's row. Where a rank keeps but half of them, the first partner
// gets the other half.
static void sum_products(struct System* s) {
  for (int i = 0; i < s->folds; i++) {
    const int halving = i == 0 && s->part < s->rows;
    const int begin = halving ? s->rows - s->part - s->part_begin : s->part_begin;
    swap(s->product + begin, s->part, s->incoming, s->part, s->fold_with[i]);
    for (int k = 0; k < s->part; k++) s->product[s->part_begin + k] += s->incoming[k];
  }
}

// to = A from
static void multiply(struct System* s, const double* from, double* to) {
  for (int i = 0; i < s->rows; i++) {
    double sum = 0;
    for (size_t k = s->row_begin[i]; k < s->row_begin[i + 1]; k++)
      sum += s->value[k] * from[s->at_column[k]];
    s->product[i] = sum;
  }
  sum_products(s);
  const double* own = s->product + s->part_begin;
  if (s->across != s->rank) {
    swap(own, s->part, to, s->columns, s->across);
  } else {
    for (int i = 0; i < s->columns; i++) to[i] = own[i];
  }
}

// ---- the benchmark
// -------------------------------------------------------------------------------

// Solves A z = x.
static void solve(struct System* s) {
  for (int i = 0; i < s->columns; i++) {
    s->z[i] = 0;
    s->p[i] = s->r[i] = s->x[i];
  }
  double rho = dot(s, s->r, s->r);
  for (int step = 0; step < INNER_STEPS; step++) {
    multiply(s, s->p, s->q);
    const double alpha = rho / dot(s, s->p, s->q), before = rho;
    for (int i = 0; i < s->columns; i++) {
      s->z[i] += alpha * s->p[i];
      s->r[i] -= alpha * s->q[i];
    }
    rho = dot(s, s->r, s->r);
    const double beta = rho / before;
    for (int i = 0; i < s->columns; i++) s->p[i] = s->r[i] + beta * s->p[i];
  }
  // The rules want the residual's norm as well.
  multiply(s, s->z, s->r);
  double sum = 0;
  for (int i = 0; i < s->columns; i++) sum += (s->x[i] - s->r[i]) * (s->x[i] - s->r[i]);
  sum_along_row(s, &sum, 1);
  if (!(sqrt(sum) < 1e-2)) fail("CG class %c: the residual is %g", s->class->name, sqrt(sum));
}

// One step of the inverse iteration; returns the estimate.
static double step(struct System* s) {
  solve(s);
  double sums[2] = {0, 0};
  for (int i = 0; i < s->columns; i++) {
    sums[0] += s->x[i] * s->z[i];
    sums[1] += s->z[i] * s->z[i];
  }
  sum_along_row(s, sums, 2);
  const double scale = 1 / sqrt(sums[1]);
  for (int i = 0; i < s->columns; i++) s->x[i] = scale * s->z[i];
  return s->class->shift + 1 / sums[0];
}

static void begin_with_ones(struct System* s) {
  for (int i = 0; i < s->columns; i++) s->x[i] = 1;
}

static double operations(const struct Class* class) {
  const double products = class->nonzeros * (class->nonzeros + 1.0);
  return 2.0 * class->steps * class->n * (3 + products + INNER_STEPS * (5 + products) + 3);
}

int main(int argc, char** argv) {
  const struct Run run = begin_run(&argc, &argv);
  struct System s = {0};
  set_up(&s, &run);
  make_matrix(&s);
  begin_with_ones(&s);
  step(&s);  // the rules leave it untimed
  begin_with_ones(&s);
  const struct Timing timing = begin_timing();
  double zeta = 0;
  for (int i = 0; i < s.class->steps; i++) zeta = step(&s);
  const struct Told told = end_timing(timing);
  if (!(fabs(zeta / s.class->zeta - 1) <= 1e-10))
    fail("CG class %c: zeta is %.13f instead of %.13f", s.class->name, zeta, s.class->zeta);
  end_run(&run, "cg", told, operations(s.class));
  void* all[] = {s.row_begin, s.at_column, s.value, s.x, s.z, s.p, s.q, s.r, s.product, s.incoming};
  for (unsigned i = 0; i < sizeof all / sizeof all[0]; i++) free(all[i]);
  return 0;
}
