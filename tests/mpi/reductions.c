// Reductions: every built-in operation on the types it is defined for, operations of the program's
// own, all collectives that reduce. MPI_Reduce_local, which no transport touches, gives the
// expected values.
#include "harness.h"

#include <stdlib.h>
#include <string.h>

typedef struct Kind {
  const char* name;
  MPI_Datatype type;
  char family;  // i integer, f floating, c complex, b bool, p pair of value and index, y byte
} Kind;

typedef struct Operation {
  const char* name;
  MPI_Op op;
  const char* families;
} Operation;

enum { longest_bytes = 40 };

// Small whole numbers, so that no order of floating-point operations changes the result. Complex
// numbers and pairs are filled through their parts.
static void set_value(const Kind* kind, unsigned char* place, int value) {
  int bytes = 0;
  MPI_Type_size(kind->type, &bytes);
  memset(place, 0, longest_bytes);
  const long as_long = value;
  const float as_float = (float)value;
  const double as_double = value;
  const long double as_long_double = value;
  if (kind->type == MPI_FLOAT || kind->type == MPI_C_FLOAT_COMPLEX || kind->type == MPI_FLOAT_INT) {
    memcpy(place, &as_float, sizeof as_float);
  } else if (kind->type == MPI_DOUBLE || kind->type == MPI_C_DOUBLE_COMPLEX ||
             kind->type == MPI_DOUBLE_INT) {
    memcpy(place, &as_double, sizeof as_double);
  } else if (kind->type == MPI_LONG_DOUBLE) {
    memcpy(place, &as_long_double, 10);  // the value without its padding
  } else if (kind->type == MPI_SHORT_INT) {
    const short as_short = (short)value;
    memcpy(place, &as_short, sizeof as_short);
  } else if (kind->type == MPI_2INT) {
    memcpy(place, &value, sizeof value);
  } else {
    memcpy(place, &as_long, (size_t)bytes < sizeof as_long ? (size_t)bytes : sizeof as_long);
  }
}

static void set_index(const Kind* kind, unsigned char* place, int index) {
  size_t offset = sizeof(int);
  if (kind->type == MPI_DOUBLE_INT || kind->type == MPI_LONG_INT) offset = 8;
  memcpy(place + offset, &index, sizeof index);
}

static int extent_of(MPI_Datatype type) {
  MPI_Aint low = 0;
  MPI_Aint extent = 0;
  MPI_Type_get_extent(type, &low, &extent);
  return (int)extent;
}

// What rank `rank` brings: `count` elements from -3 to 4, which PROD keeps small, too.
static unsigned char* contribution(const Kind* kind, int rank, int count) {
  const int extent = extent_of(kind->type);
  unsigned char* data = allocate((size_t)(count * extent) + longest_bytes);
  for (int i = 0; i < count; i++) {
    const int mixed = (int)(seed_of(rank, i, 5, 0) % 8) - 3;
    int value = kind->family == 'b' ? mixed & 1 : mixed;
    if (kind->family == 'c') value = (mixed & 3) + 1;  // no zero, whose sign depends on the order
    set_value(kind, data + i * extent, value);
    if (kind->family == 'p') set_index(kind, data + i * extent, rank * 100 + i);
  }
  return data;
}

// The reduction of the ranks from 0 to `last`, in the order of ranks.
static unsigned char* reduced(const Kind* kind, MPI_Op op, int last, int count) {
  unsigned char* result = contribution(kind, last, count);
  for (int r = last - 1; r >= 0; r--) {
    unsigned char* before = contribution(kind, r, count);
    MPI_Reduce_local(before, result, count, kind->type, op);
    free(before);
  }
  return result;
}

// Compared packed, as padding between elements says nothing.
static void require_same(const Kind* kind, const void* got, const void* wanted, int count,
                         const char* what, const char* op_name) {
  int bytes = 0;
  MPI_Pack_size(count, kind->type, MPI_COMM_SELF, &bytes);
  unsigned char* packed[2] = {allocate((size_t)bytes), allocate((size_t)bytes)};
  const void* both[2] = {got, wanted};
  int end[2] = {0, 0};
  for (int k = 0; k < 2; k++) {
    MPI_Pack(both[k], count, kind->type, packed[k], bytes, &end[k], MPI_COMM_SELF);
  }
  const int each = count > 0 ? end[0] / count : 0;
  const size_t compared = kind->type == MPI_LONG_DOUBLE ? 10 : (size_t)each;  // x87: 10 of 16 bytes
  for (int i = 0; i < count; i++) {
    require(memcmp(packed[0] + i * each, packed[1] + i * each, compared) == 0,
            "%s of %s by %s: element %d of %d is wrong", what, kind->name, op_name, i, count);
  }
  free(packed[0]);
  free(packed[1]);
}

static void reduce_every_way(const Kind* kind, MPI_Op op, const char* op_name, int count,
                             bool all_ways) {
  const size_t bytes = (size_t)(count * rank_count * extent_of(kind->type)) + longest_bytes;
  unsigned char* mine = contribution(kind, my_rank, count);
  unsigned char* wanted = reduced(kind, op, rank_count - 1, count);
  unsigned char* got = allocate(bytes);
  memset(got, 0, bytes);
  MPI_Allreduce(mine, got, count, kind->type, op, MPI_COMM_WORLD);
  require_same(kind, got, wanted, count, "Allreduce", op_name);
  if (all_ways) {
    const int root = count % rank_count;
    MPI_Reduce(mine, got, count, kind->type, op, root, MPI_COMM_WORLD);
    if (my_rank == root) require_same(kind, got, wanted, count, "Reduce", op_name);
    MPI_Request request;
    memcpy(got, mine, (size_t)(count * extent_of(kind->type)));
    MPI_Iallreduce(MPI_IN_PLACE, got, count, kind->type, op, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    require_same(kind, got, wanted, count, "Iallreduce in place", op_name);
    MPI_Ireduce(mine, got, count, kind->type, op, root, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (my_rank == root) require_same(kind, got, wanted, count, "Ireduce", op_name);
    unsigned char* prefix = reduced(kind, op, my_rank, count);
    MPI_Scan(mine, got, count, kind->type, op, MPI_COMM_WORLD);
    require_same(kind, got, prefix, count, "Scan", op_name);
    MPI_Iscan(mine, got, count, kind->type, op, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    require_same(kind, got, prefix, count, "Iscan", op_name);
    free(prefix);
    if (my_rank > 0) prefix = reduced(kind, op, my_rank - 1, count);
    MPI_Exscan(mine, got, count, kind->type, op, MPI_COMM_WORLD);
    if (my_rank > 0) require_same(kind, got, prefix, count, "Exscan", op_name);
    MPI_Iexscan(mine, got, count, kind->type, op, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (my_rank > 0) require_same(kind, got, prefix, count, "Iexscan", op_name);
    if (my_rank > 0) free(prefix);
  }
  free(mine);
  free(wanted);
  free(got);
}

// Each rank receives its part of the reduction: parts of equal size, then of unequal ones, some
// empty.
static void reduce_and_scatter(const Kind* kind, MPI_Op op, const char* op_name, int each) {
  const int extent = extent_of(kind->type);
  int* parts = allocate((size_t)rank_count * sizeof *parts);
  for (int equal = 0; equal < 2; equal++) {
    int total = 0;
    int mine_begins = 0;
    for (int r = 0; r < rank_count; r++) {
      parts[r] = equal ? each : r % 3 * each;
      if (r < my_rank) mine_begins += parts[r];
      total += parts[r];
    }
    unsigned char* mine = contribution(kind, my_rank, total);
    unsigned char* wanted = reduced(kind, op, rank_count - 1, total);
    unsigned char* got = allocate((size_t)(total * extent) + longest_bytes);
    for (int way = 0; way < 2; way++) {
      MPI_Request request = MPI_REQUEST_NULL;
      memset(got, 0, (size_t)(total * extent));
      if (equal && way == 0) {
        MPI_Reduce_scatter_block(mine, got, each, kind->type, op, MPI_COMM_WORLD);
      } else if (equal) {
        MPI_Ireduce_scatter_block(mine, got, each, kind->type, op, MPI_COMM_WORLD, &request);
      } else if (way == 0) {
        MPI_Reduce_scatter(mine, got, parts, kind->type, op, MPI_COMM_WORLD);
      } else {
        MPI_Ireduce_scatter(mine, got, parts, kind->type, op, MPI_COMM_WORLD, &request);
      }
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      require_same(kind, got, wanted + mine_begins * extent, parts[my_rank],
                   equal ? "Reduce_scatter_block" : "Reduce_scatter", op_name);
    }
    free(mine);
    free(wanted);
    free(got);
  }
  free(parts);
}

static void test_built_in(void) {
  const Kind kinds[] = {
      {"signed char", MPI_SIGNED_CHAR, 'i'},
      {"unsigned char", MPI_UNSIGNED_CHAR, 'i'},
      {"short", MPI_SHORT, 'i'},
      {"unsigned short", MPI_UNSIGNED_SHORT, 'i'},
      {"int", MPI_INT, 'i'},
      {"unsigned", MPI_UNSIGNED, 'i'},
      {"long", MPI_LONG, 'i'},
      {"unsigned long", MPI_UNSIGNED_LONG, 'i'},
      {"int8", MPI_INT8_T, 'i'},
      {"uint16", MPI_UINT16_T, 'i'},
      {"int32", MPI_INT32_T, 'i'},
      {"uint64", MPI_UINT64_T, 'i'},
      {"MPI_Aint", MPI_AINT, 'i'},
      {"float", MPI_FLOAT, 'f'},
      {"double", MPI_DOUBLE, 'f'},
      {"long double", MPI_LONG_DOUBLE, 'f'},
      {"float complex", MPI_C_FLOAT_COMPLEX, 'c'},
      {"double complex", MPI_C_DOUBLE_COMPLEX, 'c'},
      {"bool", MPI_C_BOOL, 'b'},
      {"byte", MPI_BYTE, 'y'},
      {"float and int", MPI_FLOAT_INT, 'p'},
      {"double and int", MPI_DOUBLE_INT, 'p'},
      {"long and int", MPI_LONG_INT, 'p'},
      {"short and int", MPI_SHORT_INT, 'p'},
      {"two ints", MPI_2INT, 'p'},
  };
  const Operation operations[] = {
      {"SUM", MPI_SUM, "ifc"},  {"PROD", MPI_PROD, "ifc"},   {"MAX", MPI_MAX, "if"},
      {"MIN", MPI_MIN, "if"},   {"LAND", MPI_LAND, "ib"},    {"LOR", MPI_LOR, "ib"},
      {"LXOR", MPI_LXOR, "ib"}, {"BAND", MPI_BAND, "iy"},    {"BOR", MPI_BOR, "iy"},
      {"BXOR", MPI_BXOR, "iy"}, {"MAXLOC", MPI_MAXLOC, "p"}, {"MINLOC", MPI_MINLOC, "p"},
  };
  for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
    for (size_t o = 0; o < sizeof operations / sizeof operations[0]; o++) {
      if (strchr(operations[o].families, kinds[k].family) == NULL) continue;
      reduce_every_way(&kinds[k], operations[o].op, operations[o].name, 9, false);
    }
  }
}

static void test_every_collective(void) {
  const Kind kind = {"double", MPI_DOUBLE, 'f'};
  const int counts[] = {0, 1, 30, 3000, 16000};
  for (int i = 0; i < 5; i++) {
    reduce_every_way(&kind, MPI_SUM, "SUM", counts[i], true);
    reduce_and_scatter(&kind, MPI_SUM, "SUM", counts[i] / 4);
  }
}

// 2x2 matrices of bytes modulo 251: associative, not commutative.
typedef struct Matrix {
  int entry[4];
} Matrix;

static void multiply(void* left, void* right, int* count, MPI_Datatype* type) {
  (void)type;
  const Matrix* a = left;
  Matrix* b = right;
  for (int i = 0; i < *count; i++) {
    const Matrix m = b[i];
    for (int row = 0; row < 2; row++) {
      for (int column = 0; column < 2; column++) {
        b[i].entry[row * 2 + column] = (a[i].entry[row * 2] * m.entry[column] +
                                        a[i].entry[row * 2 + 1] * m.entry[2 + column]) %
                                       251;
      }
    }
  }
}

static void add_modulo(void* left, void* right, int* count, MPI_Datatype* type) {
  (void)type;
  const int* a = left;
  int* b = right;
  for (int i = 0; i < *count * 4; i++) b[i] = (a[i] + b[i]) % 251;
}

static void test_own_operations(void) {
  MPI_Datatype matrix;
  MPI_Type_contiguous(4, MPI_INT, &matrix);
  MPI_Type_commit(&matrix);
  const Kind kind = {"matrix", matrix, 'm'};
  MPI_Op product;
  MPI_Op sum;
  MPI_Op_create(multiply, 0, &product);
  MPI_Op_create(add_modulo, 1, &sum);
  const int counts[] = {1, 25, 4000};
  for (int i = 0; i < 3; i++) {
    reduce_every_way(&kind, product, "a product that does not commute", counts[i], true);
    reduce_and_scatter(&kind, product, "a product that does not commute", counts[i] / 4 + 1);
    reduce_every_way(&kind, sum, "a sum", counts[i], true);
  }
  MPI_Op_free(&product);
  MPI_Op_free(&sum);
  MPI_Type_free(&matrix);
}

int main(int argc, char** argv) {
  const TestCase cases[] = {
      {"built_in", test_built_in},
      {"every_collective", test_every_collective},
      {"own_operations", test_own_operations},
  };
  return run_cases(argc, argv, MPI_THREAD_SINGLE, cases, sizeof cases / sizeof cases[0]);
}
