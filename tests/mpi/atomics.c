// One-sided atomics: accumulates of every operation and type, their order, fetch-and-op and
// compare-and-swap under contention.
#include <stdlib.h>
#include <string.h>

#include "windows.h"

typedef struct Element {
  const char* name;
  MPI_Datatype type;
  int bytes;
  bool is_integer;
} Element;

static void store(const Element* element, void* place, int value) {
  const long as_long = value;
  const float as_float = (float)value;
  const double as_double = value;
  if (element->type == MPI_FLOAT) {
    memcpy(place, &as_float, sizeof as_float);
  } else if (element->type == MPI_DOUBLE) {
    memcpy(place, &as_double, sizeof as_double);
  } else {
    memcpy(place, &as_long, (size_t)element->bytes);
  }
}

// What each rank brings to element i.
static int operand(int rank, int i) {
  return 1 + (rank + i) % 3;
}

enum { elements = 6, slot_bytes = 64, type_count = 10, most_ops = 10 };

static const Element types[type_count] = {{"signed char", MPI_SIGNED_CHAR, 1, true},
                                          {"uint8", MPI_UINT8_T, 1, true},
                                          {"short", MPI_SHORT, 2, true},
                                          {"uint16", MPI_UINT16_T, 2, true},
                                          {"int", MPI_INT, 4, true},
                                          {"uint32", MPI_UINT32_T, 4, true},
                                          {"long", MPI_LONG, 8, true},
                                          {"uint64", MPI_UINT64_T, 8, true},
                                          {"float", MPI_FLOAT, 4, false},
                                          {"double", MPI_DOUBLE, 8, false}};

static void operands(const Element* element, int rank, unsigned char* place) {
  for (int i = 0; i < elements; i++) store(element, place + i * element->bytes, operand(rank, i));
}

// All ranks accumulate into rank 0, each type and operation in a slot of its own, which begins as
// twos. MPI_Reduce_local says what must be there in the end.
static void accumulate_each(Window* window, const MPI_Op* ops, const char* const* names, int count,
                            bool integers_only) {
  unsigned char mine[type_count][slot_bytes];
  unsigned char* before = allocate(type_count * most_ops * slot_bytes);
  for (int t = 0; t < type_count; t++) {
    operands(&types[t], window->rank, mine[t]);
    for (int i = 0; i < elements * most_ops; i++) {
      const int slot = (t * most_ops + i / elements) * slot_bytes;
      store(&types[t], window->base + slot + i % elements * types[t].bytes, 2);
    }
  }
  begin_access(window, sync_fence, 0);
  for (int t = 0; t < type_count; t++) {
    const MPI_Datatype type = types[t].type;
    for (int o = 0; o < count && (types[t].is_integer || !integers_only); o++) {
      const int slot = (t * most_ops + o) * slot_bytes;
      if ((window->rank + o) % 2 == 0) {
        MPI_Accumulate(mine[t], elements, type, 0, slot, elements, type, ops[o], window->win);
      } else {
        MPI_Get_accumulate(mine[t], elements, type, before + slot, elements, type, 0, slot,
                           elements, type, ops[o], window->win);
      }
    }
  }
  end_access(window, sync_fence, 0);
  for (int t = 0; t < type_count && window->rank == 0; t++) {
    for (int o = 0; o < count && (types[t].is_integer || !integers_only); o++) {
      unsigned char wanted[slot_bytes];
      unsigned char theirs[slot_bytes];
      for (int i = 0; i < elements; i++) store(&types[t], wanted + i * types[t].bytes, 2);
      for (int r = 0; r < window->size; r++) {
        operands(&types[t], r, theirs);
        MPI_Reduce_local(theirs, wanted, elements, types[t].type, ops[o]);
      }
      const unsigned char* got = window->base + (t * most_ops + o) * slot_bytes;
      require(memcmp(got, wanted, (size_t)(elements * types[t].bytes)) == 0,
              "accumulated %s by %s wrongly", types[t].name, names[o]);
    }
  }
  free(before);
}

static void accumulate_numbers(Window* window) {
  const MPI_Op ops[] = {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX};
  const char* const names[] = {"SUM", "PROD", "MIN", "MAX"};
  accumulate_each(window, ops, names, 4, false);
}

static void accumulate_bits(Window* window) {
  const MPI_Op ops[] = {MPI_BAND, MPI_BOR, MPI_BXOR};
  const char* const names[] = {"BAND", "BOR", "BXOR"};
  accumulate_each(window, ops, names, 3, true);
}

static void accumulate_logical(Window* window) {
  const MPI_Op ops[] = {MPI_LAND, MPI_LOR, MPI_LXOR};
  const char* const names[] = {"LAND", "LOR", "LXOR"};
  accumulate_each(window, ops, names, 3, true);
}

enum { accumulate_bytes = type_count * most_ops * slot_bytes };

static void test_accumulate(void) {
  run_on_two_kinds(accumulate_bytes, accumulate_numbers);
}
static void test_accumulate_bits(void) {
  run_on_two_kinds(accumulate_bytes, accumulate_bits);
}
// Open MPI takes logical operations on ints for those on bits, also natively: a case of its own.
static void test_accumulate_logical(void) {
  run_on_two_kinds(accumulate_bytes, accumulate_logical);
}

// MPI_REPLACE, MPI_NO_OP, and elements that are larger than what a transport does at once.
static void accumulate_large(Window* window) {
  enum { count = 20000 };
  const int right = right_in(window);
  double* mine = allocate(count * sizeof *mine);
  double* before = allocate(count * sizeof *before);
  for (int i = 0; i < count; i++) mine[i] = window->rank + i;
  MPI_Win_lock_all(0, window->win);
  MPI_Accumulate(mine, count, MPI_DOUBLE, right, 0, count, MPI_DOUBLE, MPI_REPLACE, window->win);
  MPI_Win_flush(right, window->win);
  MPI_Get_accumulate(mine, count, MPI_DOUBLE, before, count, MPI_DOUBLE, right, 0, count,
                     MPI_DOUBLE, MPI_SUM, window->win);
  MPI_Win_flush(right, window->win);
  for (int i = 0; i < count; i++) {
    require(before[i] == window->rank + i, "before the sum element %d was %f", i, before[i]);
  }
  MPI_Get_accumulate(NULL, 0, MPI_DOUBLE, before, count, MPI_DOUBLE, right, 0, count, MPI_DOUBLE,
                     MPI_NO_OP, window->win);
  MPI_Win_flush(right, window->win);
  for (int i = 0; i < count; i++) {
    require(before[i] == 2 * (window->rank + i), "after the sum element %d is %f", i, before[i]);
  }
  MPI_Win_unlock_all(window->win);
  free(mine);
  free(before);
}

static void test_accumulate_large(void) {
  run_on_two_kinds(20000 * sizeof(double), accumulate_large);
}

// A counter that all ranks fetch from: every number is given out once.
static void fetch_numbers(Window* window) {
  enum { each = 40 };
  char* taken = calloc((size_t)(each * window->size), 1);
  const long one = 1;
  MPI_Win_lock_all(0, window->win);
  for (int i = 0; i < each; i++) {
    long number = -1;
    MPI_Fetch_and_op(&one, &number, MPI_LONG, window->size - 1, 8, MPI_SUM, window->win);
    MPI_Win_flush(window->size - 1, window->win);
    require(number >= 0 && number < (long)each * window->size && !taken[number],
            "the counter gave out %ld twice or out of range", number);
    taken[number] = 1;
  }
  MPI_Win_unlock_all(window->win);
  char* all = allocate((size_t)(each * window->size));
  MPI_Allreduce(taken, all, each * window->size, MPI_SIGNED_CHAR, MPI_SUM, window->comm);
  for (int i = 0; i < each * window->size; i++) {
    require(all[i] == 1, "number %d was given out %d times", i, all[i]);
  }
  free(all);
  free(taken);
}

static void test_fetch_and_op(void) {
  run_on_two_kinds(64, fetch_numbers);
}

// A lock out of compare-and-swap guards a counter of plain gets and puts.
static void count_under_lock(Window* window) {
  enum { each = 8 };
  const int free_value = 0;
  const int taken_value = 1;
  MPI_Win_lock_all(0, window->win);
  for (int i = 0; i < each; i++) {
    int previous = taken_value;
    while (previous != free_value) {
      MPI_Compare_and_swap(&taken_value, &free_value, &previous, MPI_INT, 0, 0, window->win);
      MPI_Win_flush(0, window->win);
      yield_core();
    }
    int value = -1;
    MPI_Get(&value, 1, MPI_INT, 0, 8, 1, MPI_INT, window->win);
    MPI_Win_flush(0, window->win);
    value++;
    MPI_Put(&value, 1, MPI_INT, 0, 8, 1, MPI_INT, window->win);
    MPI_Win_flush(0, window->win);
    MPI_Fetch_and_op(&free_value, &previous, MPI_INT, 0, 0, MPI_REPLACE, window->win);
    MPI_Win_flush(0, window->win);
    require(previous == taken_value, "the lock was %d while held", previous);
  }
  MPI_Barrier(window->comm);
  int sum = -1;
  MPI_Get(&sum, 1, MPI_INT, 0, 8, 1, MPI_INT, window->win);
  MPI_Win_unlock_all(window->win);
  require(sum == each * window->size, "the guarded counter is %d, not %d", sum,
          each * window->size);
}

static void test_compare_and_swap(void) {
  run_on_two_kinds(64, count_under_lock);
}

// Accumulates from one rank to one place take effect in order.
static void order_accumulates(Window* window) {
  enum { count = 200 };
  const int right = right_in(window);
  MPI_Win_lock(MPI_LOCK_SHARED, right, 0, window->win);
  int values[count];
  for (int i = 0; i < count; i++) {
    values[i] = i;
    MPI_Accumulate(&values[i], 1, MPI_INT, right, 0, 1, MPI_INT, MPI_REPLACE, window->win);
  }
  MPI_Win_unlock(right, window->win);
  MPI_Barrier(window->comm);
  int last = -1;
  MPI_Win_lock(MPI_LOCK_SHARED, window->rank, 0, window->win);
  memcpy(&last, window->base, sizeof last);
  MPI_Win_unlock(window->rank, window->win);
  require(last == count - 1, "the last accumulate in place is %d", last);
}

static void test_accumulate_order(void) {
  run_on_two_kinds(64, order_accumulates);
}

int main(int argc, char** argv) {
  const TestCase cases[] = {
      {"accumulate", test_accumulate},
      {"accumulate_bits", test_accumulate_bits},
      {"accumulate_logical", test_accumulate_logical},
      {"accumulate_large", test_accumulate_large},
      {"accumulate_order", test_accumulate_order},
      {"fetch_and_op", test_fetch_and_op},
      {"compare_and_swap", test_compare_and_swap},
  };
  return run_cases(argc, argv, MPI_THREAD_SINGLE, cases, sizeof cases / sizeof cases[0]);
}
