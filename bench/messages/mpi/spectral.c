// A spectral transform's communication, in the manner of PSTSWM: a field of levels, latitudes and
// longitudes, distributed over a grid of ranks, of which a step transforms all lines of longitude,
// then all of latitude, and both back. A line is transformed where it is whole, so the field goes
// from one distribution to the next and back:
//   grid points   latitudes over the grid's columns of ranks, longitudes over its rows
//   lines         levels over the rows instead of longitudes
//   modes         longitudes (now wave numbers) over the columns instead of latitudes
//
// The transform is Walsh's, on integers, which is exact: there and back multiplies each element by
// the number of elements of a level, by which it is divided again. Every element is checked at its
// place: in each distribution before the first step and after the last, and that the steps left the
// field as it was.
// Usage: spectral FORM SIZES CPUS BUDGET_US WHEN    FORM: exchange (point to point) or alltoall
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "bench/messages/mpi/common.h"
#include "bench/messages/mpi/kernel.h"

enum { MOST_RANKS = 1024 };

// One of the two ways of the field through the ranks: `count` blocks go out, one to each rank of
// the group, and as many come in.
struct Group {
  MPI_Comm ranks;
  int rank, count;
};

struct Spectral {
  int by_alltoall;
  struct Group row, column;
  size_t levels, latitudes, longitudes;              // of all ranks
  size_t own_levels, own_latitudes, own_longitudes;  // longitudes: own at grid points
  size_t own_modes;                                  // wave numbers: own among modes
  size_t own;                                        // elements of a rank
  int level_log2;                                    // of the elements of a level
  int64_t *field, *out, *in;
};

static void exchange(const struct Spectral* s, const struct Group* group) {
  const size_t block = s->own / (size_t)group->count;
  if (s->by_alltoall) {
    MPI_Alltoall(s->out, (int)block, MPI_INT64_T, s->in, (int)block, MPI_INT64_T, group->ranks);
    return;
  }
  MPI_Request requests[2 * MOST_RANKS];
  int started = 0;
  for (int i = 1; i < group->count; i++) {
    const int from = (group->rank + group->count - i) % group->count;
    MPI_Irecv(s->in + (size_t)from * block, (int)block, MPI_INT64_T, from, 0, group->ranks,
              &requests[started++]);
  }
  for (int i = 1; i < group->count; i++) {
    const int to = (group->rank + i) % group->count;
    MPI_Isend(s->out + (size_t)to * block, (int)block, MPI_INT64_T, to, 0, group->ranks,
              &requests[started++]);
  }
  const size_t own = (size_t)group->rank * block;
  memcpy(s->in + own, s->out + own, block * sizeof *s->in);
  MPI_Waitall(started, requests, MPI_STATUSES_IGNORE);
}

// ---- distributions
// ------------------------------------------------------------------------------- Grid points
// [levels][own latitudes][own longitudes], lines [own levels][own latitudes][longitudes], modes
// [own levels][own modes][latitudes]. Blocks on their way hold the elements in the order of the
// side with the longer rows.

// A block to the rank q of the row: its levels, of the own longitudes.
static void points_to_lines(struct Spectral* s) {
  const size_t rows = s->own_levels * s->own_latitudes, width = s->own_longitudes;
  memcpy(s->out, s->field, s->own * sizeof *s->out);  // levels are outermost: blocks already
  exchange(s, &s->row);
  for (size_t q = 0; q < (size_t)s->row.count; q++) {
    for (size_t i = 0; i < rows; i++)
      memcpy(s->field + i * s->longitudes + q * width, s->in + (q * rows + i) * width,
             width * sizeof *s->field);
  }
}
static void lines_to_points(struct Spectral* s) {
  const size_t rows = s->own_levels * s->own_latitudes, width = s->own_longitudes;
  for (size_t q = 0; q < (size_t)s->row.count; q++) {
    for (size_t i = 0; i < rows; i++)
      memcpy(s->out + (q * rows + i) * width, s->field + i * s->longitudes + q * width,
             width * sizeof *s->field);
  }
  exchange(s, &s->row);
  memcpy(s->field, s->in, s->own * sizeof *s->field);
}

// A block to the rank p of the column: its wave numbers, of the own latitudes, latitudes fastest.
static void lines_to_modes(struct Spectral* s) {
  const size_t modes = s->own_modes, height = s->own_latitudes;
  const size_t block = s->own_levels * modes * height;
  for (size_t level = 0; level < s->own_levels; level++) {
    for (size_t y = 0; y < height; y++) {
      const int64_t* line = s->field + (level * height + y) * s->longitudes;
      for (size_t p = 0; p < (size_t)s->column.count; p++) {
        int64_t* to = s->out + p * block + level * modes * height + y;
        for (size_t m = 0; m < modes; m++) to[m * height] = line[p * modes + m];
      }
    }
  }
  exchange(s, &s->column);
  for (size_t p = 0; p < (size_t)s->column.count; p++) {
    for (size_t i = 0; i < s->own_levels * modes; i++)
      memcpy(s->field + i * s->latitudes + p * height, s->in + p * block + i * height,
             height * sizeof *s->field);
  }
}
static void modes_to_lines(struct Spectral* s) {
  const size_t modes = s->own_modes, height = s->own_latitudes;
  const size_t block = s->own_levels * modes * height;
  for (size_t p = 0; p < (size_t)s->column.count; p++) {
    for (size_t i = 0; i < s->own_levels * modes; i++)
      memcpy(s->out + p * block + i * height, s->field + i * s->latitudes + p * height,
             height * sizeof *s->field);
  }
  exchange(s, &s->column);
  for (size_t level = 0; level < s->own_levels; level++) {
    for (size_t y = 0; y < height; y++) {
      int64_t* line = s->field + (level * height + y) * s->longitudes;
      for (size_t p = 0; p < (size_t)s->column.count; p++) {
        const int64_t* from = s->in + p * block + level * modes * height + y;
        for (size_t m = 0; m < modes; m++) line[p * modes + m] = from[m * height];
      }
    }
  }
}

// ---- a step
// --------------------------------------------------------------------------------------

// One pass of a line. Inlined, so that the short ones become a few instructions.
static inline __attribute__((always_inline)) void pass(int64_t* line, size_t length, size_t half) {
  for (size_t first = 0; first < length; first += 2 * half) {
    int64_t* restrict a = line + first, * restrict b = a + half;
    for (size_t i = 0; i < half; i++) {
      const int64_t x = a[i], y = b[i];
      a[i] = x + y;
      b[i] = x - y;
    }
  }
}

// Walsh's transform of each line of `length` elements, a power of two; twice multiplies by
// `length`.
static void transform(struct Spectral* s, size_t length) {
  enum { SHORT = 8 };
  for (int64_t* line = s->field; line < s->field + s->own; line += length) {
    size_t half = 1;
    if (length >= SHORT) {
      for (size_t first = 0; first < length; first += SHORT) {
        pass(line + first, SHORT, 1);
        pass(line + first, SHORT, 2);
        pass(line + first, SHORT, 4);
      }
      half = SHORT;
    }
    for (; half < length; half *= 2) pass(line, length, half);
  }
}

static void make_step(struct Kernel* kernel) {
  struct Spectral* s = kernel->state;
  points_to_lines(s);
  transform(s, s->longitudes);
  lines_to_modes(s);
  transform(s, s->latitudes);
  transform(s, s->latitudes);
  modes_to_lines(s);
  transform(s, s->longitudes);
  for (size_t i = 0; i < s->own; i++) s->field[i] >>= s->level_log2;
  lines_to_points(s);
}

// ---- checks
// --------------------------------------------------------------------------------------

// The distributions as boxes: the extent of each index, the slowest first, where the own ones
// begin, and what a step of each is worth among all elements.
struct Box {
  const char* name;
  size_t extent[3], first[3], worth[3];
};
static struct Box points_of(const struct Spectral* s) {
  return (struct Box){
      "grid points",
      {s->levels, s->own_latitudes, s->own_longitudes},
      {0, (size_t)s->column.rank * s->own_latitudes, (size_t)s->row.rank * s->own_longitudes},
      {s->latitudes * s->longitudes, s->longitudes, 1}};
}
static struct Box lines_of(const struct Spectral* s) {
  return (struct Box){
      "lines",
      {s->own_levels, s->own_latitudes, s->longitudes},
      {(size_t)s->row.rank * s->own_levels, (size_t)s->column.rank * s->own_latitudes, 0},
      {s->latitudes * s->longitudes, s->longitudes, 1}};
}
static struct Box modes_of(const struct Spectral* s) {
  return (struct Box){
      "modes",
      {s->own_levels, s->own_modes, s->latitudes},
      {(size_t)s->row.rank * s->own_levels, (size_t)s->column.rank * s->own_modes, 0},
      {s->latitudes * s->longitudes, 1, s->longitudes}};
}

static uint64_t place_in(const struct Box* box, size_t a, size_t b, size_t c) {
  return (box->first[0] + a) * box->worth[0] + (box->first[1] + b) * box->worth[1] +
         (box->first[2] + c) * box->worth[2];
}

// Small enough that no sum over a level exceeds 63 bits.
static int64_t small_element(uint64_t place) {
  return (int64_t)(element(place) >> 29);
}

static void fill_field(struct Spectral* s) {
  const struct Box box = points_of(s);
  int64_t* at = s->field;
  for (size_t a = 0; a < box.extent[0]; a++)
    for (size_t b = 0; b < box.extent[1]; b++)
      for (size_t c = 0; c < box.extent[2]; c++) *at++ = small_element(place_in(&box, a, b, c));
}

static void check_field(const struct Spectral* s, struct Box box) {
  const int64_t* at = s->field;
  for (size_t a = 0; a < box.extent[0]; a++)
    for (size_t b = 0; b < box.extent[1]; b++)
      for (size_t c = 0; c < box.extent[2]; c++) {
        const uint64_t place = place_in(&box, a, b, c);
        if (*at++ != small_element(place))
          fail("spectral: element %llu is wrong among the %s", (unsigned long long)place, box.name);
      }
}

// Each way of the field alone, so that no error is undone on the way back.
static void check_ways(struct Spectral* s) {
  points_to_lines(s);
  check_field(s, lines_of(s));
  lines_to_modes(s);
  check_field(s, modes_of(s));
  modes_to_lines(s);
  check_field(s, lines_of(s));
  lines_to_points(s);
  check_field(s, points_of(s));
}

// ---- the kernel
// ----------------------------------------------------------------------------------

static struct Group split(int color, int key) {
  struct Group group;
  MPI_Comm_split(MPI_COMM_WORLD, color, key, &group.ranks);
  MPI_Comm_rank(group.ranks, &group.rank);
  MPI_Comm_size(group.ranks, &group.count);
  return group;
}

// Levels, latitudes and longitudes are powers of two, about one to two to two in their logarithms.
static void divide(struct Spectral* s, const struct Kernel* kernel) {
  size_t rows = 1, columns = 1;  // of the grid of ranks; a row has `columns` of them
  while (rows * columns < (size_t)kernel->ranks) {
    if (columns == rows)
      columns *= 2;
    else
      rows *= 2;
  }
  s->row = split(kernel->rank / (int)columns, kernel->rank);
  s->column = split(kernel->rank % (int)columns, kernel->rank);
  const size_t least = rows * columns * sizeof(int64_t);
  if ((kernel->field_bytes & (kernel->field_bytes - 1)) != 0 || kernel->field_bytes < least)
    fail("a field of %zu bytes cannot be divided; use a power of two of at least %zu",
         kernel->field_bytes, least);
  s->levels = columns;
  s->latitudes = rows;
  s->longitudes = rows * columns;
  s->own = kernel->field_bytes / sizeof(int64_t);
  for (int turn = 0; s->levels * s->latitudes * s->longitudes < s->own * (size_t)kernel->ranks;
       turn = (turn + 1) % 5)
    *(turn == 0 ? &s->levels : turn % 2 == 1 ? &s->longitudes : &s->latitudes) *= 2;
  s->own_levels = s->levels / columns;
  s->own_latitudes = s->latitudes / rows;
  s->own_longitudes = s->longitudes / columns;
  s->own_modes = s->longitudes / rows;
  while ((size_t)1 << s->level_log2 < s->latitudes * s->longitudes) s->level_log2++;
  if (s->level_log2 > 28) fail("a field of %zu bytes is too large; use less", kernel->field_bytes);
}

static void measure(struct Kernel* kernel, const char* form) {
  struct Spectral s = {.by_alltoall = strcmp(form, "alltoall") == 0};
  if (!s.by_alltoall && strcmp(form, "exchange") != 0) fail("there is no form '%s'", form);
  if (kernel->ranks > MOST_RANKS) fail("spectral runs with up to %d ranks", MOST_RANKS);
  divide(&s, kernel);
  s.field = allocate(kernel->field_bytes);
  s.out = allocate(kernel->field_bytes);
  s.in = allocate(kernel->field_bytes);
  fill_field(&s);
  check_ways(&s);
  kernel->state = &s;
  kernel->step = make_step;
  time_kernel(kernel, form, kernel->field_bytes / (size_t)s.row.count);
  check_field(&s, points_of(&s));
  check_ways(&s);
  free(s.field);
  free(s.out);
  free(s.in);
  MPI_Comm_free(&s.row.ranks);
  MPI_Comm_free(&s.column.ranks);
}

int main(int argc, char** argv) {
  return run_kernel(argc, argv, measure);
}
