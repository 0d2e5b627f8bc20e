// A stencil on a periodic grid in two or three dimensions: a step exchanges the faces with the
// neighbours, all at once from point to point, and then sweeps over the own points.
//
// The sweep adds up neighbours modulo 2^64 with odd weights, so that a step multiplies the sum of
// all points by a known number. Checked: every ghost at its place before the first step and after
// the last, and the sum after all steps. Usage: halo FORM SIZES CPUS BUDGET_US WHEN    FORM:
// 2d-WIDTH or 3d-WIDTH
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/messages/mpi/common.h"
#include "bench/messages/mpi/kernel.h"

enum { AXES = 3, SIDES = 2, FACES = AXES * SIDES };
enum { LOW, HIGH };

struct Halo {
  int dimensions, width;
  int parts[AXES], neighbour[AXES][SIDES];  // of the ranks along each axis
  size_t n[AXES], first[AXES];              // own points, and where they lie among all
  size_t ghosts[AXES], stride[AXES];        // width of the halo, 0 where there is no axis
  size_t points;                            // with ghosts
  uint64_t *now, *next;
  uint64_t *out[AXES][SIDES], *in[AXES][SIDES];
  size_t face[AXES];  // elements
};

// ---- exchange
// ------------------------------------------------------------------------------------

// A box of points: `at` its first, in coordinates where ghosts come first.
struct Part {
  size_t at[AXES], n[AXES];
};

// The points next to a side that its neighbour needs, or the ghosts beyond that side.
static struct Part part_at(const struct Halo* h, int axis, int side, int ghosts) {
  struct Part part;
  for (int a = 0; a < AXES; a++) {
    part.at[a] = h->ghosts[a];
    part.n[a] = h->n[a];
  }
  part.n[axis] = h->ghosts[axis];
  if (side == LOW)
    part.at[axis] = ghosts ? 0 : h->ghosts[axis];
  else
    part.at[axis] = ghosts ? h->ghosts[axis] + h->n[axis] : h->n[axis];
  return part;
}

static size_t line_of(const struct Halo* h, const struct Part* part, size_t z, size_t y) {
  return (part->at[2] + z) * h->stride[2] + (part->at[1] + y) * h->stride[1] + part->at[0];
}

static void pack(const struct Halo* h, struct Part part, uint64_t* face) {
  for (size_t z = 0; z < part.n[2]; z++)
    for (size_t y = 0; y < part.n[1]; y++) {
      const uint64_t* from = h->now + line_of(h, &part, z, y);
      for (size_t x = 0; x < part.n[0]; x++) *face++ = from[x];
    }
}
static void unpack(const struct Halo* h, struct Part part, const uint64_t* face) {
  for (size_t z = 0; z < part.n[2]; z++)
    for (size_t y = 0; y < part.n[1]; y++) {
      uint64_t* to = h->now + line_of(h, &part, z, y);
      for (size_t x = 0; x < part.n[0]; x++) to[x] = *face++;
    }
}

// What leaves at one side arrives beyond the other. An axis with one rank wraps around by itself.
static void exchange(struct Halo* h) {
  MPI_Request requests[2 * FACES];
  int started = 0;
  for (int a = 0; a < h->dimensions; a++) {
    for (int side = 0; side < SIDES && h->parts[a] > 1; side++)
      MPI_Irecv(h->in[a][side], (int)h->face[a], MPI_UINT64_T, h->neighbour[a][side],
                SIDES * a + 1 - side, MPI_COMM_WORLD, &requests[started++]);
  }
  for (int a = 0; a < h->dimensions; a++) {
    for (int side = 0; side < SIDES; side++) {
      pack(h, part_at(h, a, side, 0), h->out[a][side]);
      if (h->parts[a] > 1)
        MPI_Isend(h->out[a][side], (int)h->face[a], MPI_UINT64_T, h->neighbour[a][side],
                  SIDES * a + side, MPI_COMM_WORLD, &requests[started++]);
    }
  }
  MPI_Waitall(started, requests, MPI_STATUSES_IGNORE);
  for (int a = 0; a < h->dimensions; a++) {
    for (int side = 0; side < SIDES; side++)
      unpack(h, part_at(h, a, side, 1), h->parts[a] > 1 ? h->in[a][side] : h->out[a][1 - side]);
  }
}

// ---- a step
// --------------------------------------------------------------------------------------

static const uint64_t centre_weight = 5;

// Every neighbour has another weight; that of the two sides differs as well.
static uint64_t weight(int axis, int distance, int side) {
  return (uint64_t)(2 * (SIDES * (axis + AXES * distance) + side) + 1);
}

static void make_step(struct Kernel* kernel) {
  struct Halo* h = kernel->state;
  exchange(h);
  const struct Part own = {{h->ghosts[0], h->ghosts[1], h->ghosts[2]}, {h->n[0], h->n[1], h->n[2]}};
  for (size_t z = 0; z < own.n[2]; z++) {
    for (size_t y = 0; y < own.n[1]; y++) {
      const uint64_t* from = h->now + line_of(h, &own, z, y);
      uint64_t* to = h->next + line_of(h, &own, z, y);
      for (size_t x = 0; x < own.n[0]; x++) to[x] = centre_weight * from[x];
      for (int a = 0; a < h->dimensions; a++) {
        for (int d = 1; d <= h->width; d++) {
          const size_t step = (size_t)d * h->stride[a];
          const uint64_t low = weight(a, d, LOW), high = weight(a, d, HIGH);
          for (size_t x = 0; x < own.n[0]; x++)
            to[x] += low * *(from + x - step) + high * from[x + step];
        }
      }
    }
  }
  uint64_t* done = h->next;
  h->next = h->now;
  h->now = done;
}

// ---- checks
// --------------------------------------------------------------------------------------

// Among all points; ghosts lie where their owners have them.
static uint64_t place_of(const struct Halo* h, const size_t* at) {
  uint64_t place = 0;
  for (int a = AXES - 1; a >= 0; a--) {
    const size_t all = h->n[a] * (size_t)h->parts[a];
    place = place * all + (h->first[a] + at[a] + all - h->ghosts[a]) % all;
  }
  return place;
}

static void fill_own(struct Halo* h) {
  for (size_t i = 0; i < h->points; i++) h->now[i] = 0;
  for (size_t z = 0; z < h->n[2]; z++)
    for (size_t y = 0; y < h->n[1]; y++)
      for (size_t x = 0; x < h->n[0]; x++) {
        const size_t at[AXES] = {x + h->ghosts[0], y + h->ghosts[1], z + h->ghosts[2]};
        h->now[at[0] + at[1] * h->stride[1] + at[2] * h->stride[2]] = element(place_of(h, at));
      }
}

static void check_ghosts(struct Halo* h) {
  fill_own(h);
  exchange(h);
  for (int f = 0; f < h->dimensions * SIDES; f++) {
    const struct Part part = part_at(h, f / SIDES, f % SIDES, 1);
    for (size_t z = 0; z < part.n[2]; z++)
      for (size_t y = 0; y < part.n[1]; y++)
        for (size_t x = 0; x < part.n[0]; x++) {
          const size_t at[AXES] = {part.at[0] + x, part.at[1] + y, part.at[2] + z};
          if (h->now[at[0] + at[1] * h->stride[1] + at[2] * h->stride[2]] !=
              element(place_of(h, at)))
            fail("halo: the ghost at %zu, %zu, %zu is wrong", at[0], at[1], at[2]);
        }
  }
}

static uint64_t sum_of_all(const struct Halo* h) {
  uint64_t own = 0, all = 0;
  for (size_t z = 0; z < h->n[2]; z++)
    for (size_t y = 0; y < h->n[1]; y++) {
      const uint64_t* line = h->now + (z + h->ghosts[2]) * h->stride[2] +
                             (y + h->ghosts[1]) * h->stride[1] + h->ghosts[0];
      for (size_t x = 0; x < h->n[0]; x++) own += line[x];
    }
  MPI_Allreduce(&own, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

static void check_sum(const struct Halo* h, uint64_t before, uint64_t steps) {
  uint64_t factor = centre_weight;
  for (int a = 0; a < h->dimensions; a++)
    for (int d = 1; d <= h->width; d++) factor += weight(a, d, LOW) + weight(a, d, HIGH);
  for (uint64_t i = 0; i < steps; i++) before *= factor;
  if (sum_of_all(h) != before)
    fail("halo: after %llu steps the sum is wrong", (unsigned long long)steps);
}

// ---- the kernel
// ----------------------------------------------------------------------------------

// The last axis is divided first, and the first gets the first factor of the size: lines are long.
static void divide(struct Halo* h, const struct Kernel* kernel) {
  for (int a = 0; a < AXES; a++) h->parts[a] = 1, h->n[a] = 1;
  for (int ranks = 1, a = h->dimensions - 1; ranks < kernel->ranks; ranks *= 2) {
    h->parts[a] *= 2;
    a = (a + h->dimensions - 1) % h->dimensions;
  }
  size_t points = 1;
  for (int a = 0; points * 2 * sizeof(uint64_t) <= kernel->field_bytes; points *= 2) {
    h->n[a] *= 2;
    a = (a + 1) % h->dimensions;
  }
  int step = 1;
  h->points = 1;
  for (int a = 0; a < AXES; a++) {
    const int place = kernel->rank / step % h->parts[a], base = kernel->rank - place * step;
    h->neighbour[a][LOW] = base + (place + h->parts[a] - 1) % h->parts[a] * step;
    h->neighbour[a][HIGH] = base + (place + 1) % h->parts[a] * step;
    step *= h->parts[a];
    h->first[a] = (size_t)place * h->n[a];
    h->ghosts[a] = a < h->dimensions ? (size_t)h->width : 0;
    if (a < h->dimensions && h->n[a] < h->ghosts[a])
      fail("a field of %zu bytes has no room for a halo of %d points; use more",
           kernel->field_bytes, h->width);
    h->stride[a] = h->points;
    h->points *= h->n[a] + 2 * h->ghosts[a];
  }
}

static void measure(struct Kernel* kernel, const char* form) {
  struct Halo h = {0};
  if (sscanf(form, "%dd-%d", &h.dimensions, &h.width) != 2 || h.dimensions < 2 ||
      h.dimensions > AXES || h.width < 1)
    fail("there is no form '%s'; use 2d-1, 3d-2 and the like", form);
  divide(&h, kernel);
  h.now = allocate(h.points * sizeof *h.now);
  h.next = allocate(h.points * sizeof *h.next);
  size_t longest = 0;
  for (int a = 0; a < h.dimensions; a++) {
    h.face[a] = (size_t)h.width * (h.n[0] * h.n[1] * h.n[2] / h.n[a]);
    if (h.parts[a] > 1 && h.face[a] > longest) longest = h.face[a];
    for (int side = 0; side < SIDES; side++) {
      h.out[a][side] = allocate(h.face[a] * sizeof(uint64_t));
      h.in[a][side] = allocate(h.face[a] * sizeof(uint64_t));
    }
  }
  check_ghosts(&h);
  kernel->state = &h;
  kernel->step = make_step;
  const uint64_t before = sum_of_all(&h);
  const uint64_t steps = time_kernel(kernel, form, longest * sizeof(uint64_t));
  check_sum(&h, before, steps);
  check_ghosts(&h);
  free(h.now);
  free(h.next);
  for (int a = 0; a < h.dimensions; a++) {
    for (int side = 0; side < SIDES; side++) {
      free(h.out[a][side]);
      free(h.in[a][side]);
    }
  }
}

int main(int argc, char** argv) {
  return run_kernel(argc, argv, measure);
}
