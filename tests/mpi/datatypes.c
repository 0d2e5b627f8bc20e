// Derived datatypes on messages and collectives. MPI_Pack and MPI_Unpack, which no transport
// touches, say what must arrive where, and that the gaps stay as they were.
#include "harness.h"

#include <stdlib.h>
#include <string.h>

typedef struct Record {
  char kind;
  double values[3];
  int count;
  short tail;
} Record;

typedef struct Layout {
  const char* name;
  MPI_Datatype type;
  int count;      // elements in a message
  int ints_each;  // the signature as ints; 0: not only ints
} Layout;

enum { layout_count = 12, memory_bytes = 1 << 20, front_bytes = 4096 };

static MPI_Datatype record_type(void) {
  const int lengths[] = {1, 3, 1, 1};
  const MPI_Aint places[] = {offsetof(Record, kind), offsetof(Record, values),
                             offsetof(Record, count), offsetof(Record, tail)};
  const MPI_Datatype types[] = {MPI_CHAR, MPI_DOUBLE, MPI_INT, MPI_SHORT};
  MPI_Datatype bare;
  MPI_Datatype type;
  MPI_Type_create_struct(4, lengths, places, types, &bare);
  MPI_Type_create_resized(bare, 0, sizeof(Record), &type);
  MPI_Type_free(&bare);
  return type;
}

// Small and large ones of each constructor; the caller frees them with free_layouts().
static void make_layouts(Layout* layouts) {
  MPI_Datatype part;
  MPI_Datatype nested;
  int n = 0;
  layouts[n] = (Layout){"contiguous", MPI_DATATYPE_NULL, 3, 7};
  MPI_Type_contiguous(7, MPI_INT, &layouts[n++].type);
  layouts[n] = (Layout){"vector", MPI_DATATYPE_NULL, 1, 60};
  MPI_Type_vector(20, 3, 5, MPI_INT, &layouts[n++].type);
  layouts[n] = (Layout){"large vector", MPI_DATATYPE_NULL, 1, 100000};
  MPI_Type_vector(50000, 2, 3, MPI_INT, &layouts[n++].type);
  layouts[n] = (Layout){"column of a matrix", MPI_DATATYPE_NULL, 4, 100};
  MPI_Type_vector(100, 1, 100, MPI_INT, &part);
  MPI_Type_create_resized(part, 0, sizeof(int), &layouts[n++].type);
  MPI_Type_free(&part);
  const int lengths[] = {2, 0, 5, 1, 3};
  const int places[] = {30, 1, 20, 2, 6};
  layouts[n] = (Layout){"indexed", MPI_DATATYPE_NULL, 9, 11};
  MPI_Type_indexed(5, lengths, places, MPI_INT, &layouts[n++].type);
  const MPI_Aint byte_places[] = {120, 4, 80, -64, 24};
  layouts[n] = (Layout){"hindexed before its address", MPI_DATATYPE_NULL, 300, 11};
  MPI_Type_create_hindexed(5, lengths, byte_places, MPI_INT, &layouts[n++].type);
  layouts[n] = (Layout){"indexed block", MPI_DATATYPE_NULL, 200, 10};
  MPI_Type_create_indexed_block(5, 2, places, MPI_INT, &layouts[n++].type);
  layouts[n] = (Layout){"record", record_type(), 500, 0};
  n++;
  const int whole[] = {30, 40, 50};
  const int some[] = {7, 20, 31};
  const int start[] = {3, 9, 11};
  layouts[n] = (Layout){"subarray", MPI_DATATYPE_NULL, 1, 7 * 20 * 31};
  MPI_Type_create_subarray(3, whole, some, start, MPI_ORDER_C, MPI_INT, &layouts[n++].type);
  layouts[n] = (Layout){"vector of records", MPI_DATATYPE_NULL, 2, 0};
  nested = record_type();
  MPI_Type_vector(100, 3, 7, nested, &layouts[n++].type);
  MPI_Type_free(&nested);
  layouts[n] = (Layout){"strided vectors", MPI_DATATYPE_NULL, 3, 600};
  MPI_Type_vector(10, 2, 3, MPI_INT, &part);
  MPI_Type_create_hvector(30, 1, 304, part, &layouts[n++].type);
  MPI_Type_free(&part);
  layouts[n] = (Layout){"backwards", MPI_DATATYPE_NULL, 1, 400};
  MPI_Type_vector(100, 4, -6, MPI_INT, &part);
  const int one = 1;
  const MPI_Aint shift = 100 * 6 * sizeof(int);
  MPI_Type_create_hindexed(1, &one, &shift, part, &layouts[n++].type);
  MPI_Type_free(&part);
  require(n == layout_count, "there are %d layouts, not %d", n, layout_count);
  for (int i = 0; i < layout_count; i++) {
    MPI_Type_commit(&layouts[i].type);
    int bytes = 0;
    MPI_Type_size(layouts[i].type, &bytes);
    MPI_Aint low = 0;
    MPI_Aint extent = 0;
    MPI_Type_get_true_extent(layouts[i].type, &low, &extent);
    require(low >= -front_bytes && low + extent < memory_bytes - front_bytes,
            "layout %s does not fit", layouts[i].name);
    require(layouts[i].ints_each == 0 || bytes == 4 * layouts[i].ints_each,
            "layout %s has %d bytes", layouts[i].name, bytes);
  }
}

static void free_layouts(Layout* layouts) {
  for (int i = 0; i < layout_count; i++) MPI_Type_free(&layouts[i].type);
}

// What a buffer with `before` in it must hold after receiving `count` elements that `source` holds.
static void unpack_expected(unsigned char* result, const unsigned char* source, MPI_Datatype type,
                            int count) {
  int bytes = 0;
  MPI_Pack_size(count, type, MPI_COMM_SELF, &bytes);
  unsigned char* packed = allocate((size_t)bytes);
  int end = 0;
  MPI_Pack(source + front_bytes, count, type, packed, bytes, &end, MPI_COMM_SELF);
  int place = 0;
  MPI_Unpack(packed, end, &place, result + front_bytes, count, type, MPI_COMM_SELF);
  free(packed);
}

typedef struct Buffers {
  unsigned char* out;       // what this rank sends
  unsigned char* theirs;    // what the sender has
  unsigned char* in;        // what arrives
  unsigned char* expected;  // what should
} Buffers;

static Buffers allocate_buffers(void) {
  Buffers buffers = {allocate(memory_bytes), allocate(memory_bytes), allocate(memory_bytes),
                     allocate(memory_bytes)};
  return buffers;
}

static void free_buffers(Buffers* buffers) {
  free(buffers->out);
  free(buffers->theirs);
  free(buffers->in);
  free(buffers->expected);
}

static void prepare(Buffers* buffers, const Layout* layout, int sender, int seed) {
  fill(buffers->out, memory_bytes, seed_of(seed, my_rank, 0, 0));
  fill(buffers->theirs, memory_bytes, seed_of(seed, sender, 0, 0));
  memset(buffers->in, 0xbb, memory_bytes);
  memset(buffers->expected, 0xbb, memory_bytes);
  unpack_expected(buffers->expected, buffers->theirs, layout->type, layout->count);
}

static void compare(const Buffers* buffers, const Layout* layout, const char* how) {
  if (memcmp(buffers->in, buffers->expected, memory_bytes) == 0) return;
  size_t first = 0;
  while (buffers->in[first] == buffers->expected[first]) first++;
  fail("%s by %s: byte %zd of the buffer is 0x%02x, not 0x%02x", layout->name, how,
       (ssize_t)first - front_bytes, buffers->in[first], buffers->expected[first]);
}

static void test_messages(void) {
  Layout layouts[layout_count];
  make_layouts(layouts);
  Buffers b = allocate_buffers();
  for (int i = 0; i < layout_count; i++) {
    const Layout* layout = &layouts[i];
    for (int unexpected = 0; unexpected < 2; unexpected++) {
      prepare(&b, layout, left_of_me(), 10 + i);
      MPI_Request receive;
      MPI_Request send;
      if (!unexpected) {
        MPI_Irecv(b.in + front_bytes, layout->count, layout->type, left_of_me(), 1, MPI_COMM_WORLD,
                  &receive);
      }
      MPI_Barrier(MPI_COMM_WORLD);
      MPI_Isend(b.out + front_bytes, layout->count, layout->type, right_of_me(), 1, MPI_COMM_WORLD,
                &send);
      if (unexpected) {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Irecv(b.in + front_bytes, layout->count, layout->type, left_of_me(), 1, MPI_COMM_WORLD,
                  &receive);
      }
      MPI_Status status;
      MPI_Wait(&receive, &status);
      MPI_Wait(&send, MPI_STATUS_IGNORE);
      int count = -1;
      MPI_Get_count(&status, layout->type, &count);
      require(count == layout->count, "%s: received %d elements, not %d", layout->name, count,
              layout->count);
      compare(&b, layout, unexpected ? "an unexpected message" : "a message");
    }
  }
  free_buffers(&b);
  free_layouts(layouts);
}

// Scattered at one end and contiguous at the other, both ways.
static void test_to_contiguous(void) {
  Layout layouts[layout_count];
  make_layouts(layouts);
  Buffers b = allocate_buffers();
  for (int i = 0; i < layout_count; i++) {
    const Layout* layout = &layouts[i];
    const int ints = layout->count * layout->ints_each;
    if (ints == 0) continue;
    prepare(&b, layout, left_of_me(), 30 + i);
    int* flat = allocate((size_t)ints * sizeof(int));
    int* wanted = allocate((size_t)ints * sizeof(int));
    int end = 0;
    MPI_Pack(b.theirs + front_bytes, layout->count, layout->type, wanted, 4 * ints, &end,
             MPI_COMM_SELF);
    MPI_Sendrecv(b.out + front_bytes, layout->count, layout->type, right_of_me(), 1, flat, ints,
                 MPI_INT, left_of_me(), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    require(memcmp(flat, wanted, (size_t)ints * sizeof(int)) == 0, "%s does not arrive as ints",
            layout->name);
    // Back as it came, and round again: two steps to the left end where the scattered data began.
    MPI_Sendrecv(flat, ints, MPI_INT, right_of_me(), 2, b.in + front_bytes, layout->count,
                 layout->type, left_of_me(), 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    const int two_left = (my_rank + 2 * (rank_count - 1)) % rank_count;
    fill(b.theirs, memory_bytes, seed_of(30 + i, two_left, 0, 0));
    memset(b.expected, 0xbb, memory_bytes);
    unpack_expected(b.expected, b.theirs, layout->type, layout->count);
    compare(&b, layout, "ints");
    free(flat);
    free(wanted);
  }
  free_buffers(&b);
  free_layouts(layouts);
}

static void test_collectives(void) {
  Layout layouts[layout_count];
  make_layouts(layouts);
  Buffers b = allocate_buffers();
  for (int i = 0; i < layout_count; i++) {
    const Layout* layout = &layouts[i];
    const int root = i % rank_count;
    prepare(&b, layout, root, 50 + i);
    unsigned char* mine = my_rank == root ? b.out : b.in;
    MPI_Bcast(mine + front_bytes, layout->count, layout->type, root, MPI_COMM_WORLD);
    if (my_rank != root) compare(&b, layout, "Bcast");
    // Alltoallw with one neighbour: only the left one's data, with its own type and place.
    prepare(&b, layout, left_of_me(), 70 + i);
    int* counts = calloc((size_t)(4 * rank_count), sizeof *counts);
    MPI_Datatype* types = allocate((size_t)rank_count * sizeof *types);
    for (int r = 0; r < rank_count; r++) types[r] = layout->type;
    counts[right_of_me()] = layout->count;
    counts[rank_count + left_of_me()] = layout->count;
    counts[2 * rank_count + right_of_me()] = front_bytes;
    counts[3 * rank_count + left_of_me()] = front_bytes;
    MPI_Alltoallw(b.out, counts, counts + 2 * rank_count, types, b.in, counts + rank_count,
                  counts + 3 * rank_count, types, MPI_COMM_WORLD);
    compare(&b, layout, "Alltoallw");
    free(counts);
    free(types);
  }
  free_buffers(&b);
  free_layouts(layouts);
}

// Columns gathered side by side make the transpose.
static void test_gathered_columns(void) {
  enum { rows = 64 };
  MPI_Datatype column;
  MPI_Datatype stepping;
  MPI_Type_vector(rows, 1, rank_count, MPI_INT, &column);
  MPI_Type_create_resized(column, 0, sizeof(int), &stepping);
  MPI_Type_commit(&stepping);
  int mine[rows];
  for (int i = 0; i < rows; i++) mine[i] = my_rank * rows + i;
  int* all = allocate((size_t)(rows * rank_count) * sizeof *all);
  MPI_Allgather(mine, rows, MPI_INT, all, 1, stepping, MPI_COMM_WORLD);
  for (int i = 0; i < rows; i++) {
    for (int r = 0; r < rank_count; r++) {
      require(all[i * rank_count + r] == r * rows + i, "row %d column %d of the matrix is %d", i, r,
              all[i * rank_count + r]);
    }
  }
  int back[rows];
  MPI_Scatter(all, 1, stepping, back, rows, MPI_INT, 0, MPI_COMM_WORLD);
  require(memcmp(back, mine, sizeof mine) == 0, "the scattered column is not what was gathered");
  MPI_Type_free(&column);
  MPI_Type_free(&stepping);
  free(all);
}

// Absolute addresses from MPI_BOTTOM; a shorter message than the receive, counted by elements.
static void test_bottom_and_partial(void) {
  int first = my_rank;
  double second = my_rank + 0.5;
  int in_first = -1;
  double in_second = -1;
  const int lengths[] = {1, 1};
  const MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE};
  MPI_Aint places[2];
  MPI_Datatype out_type;
  MPI_Datatype in_type;
  MPI_Get_address(&first, &places[0]);
  MPI_Get_address(&second, &places[1]);
  MPI_Type_create_struct(2, lengths, places, types, &out_type);
  MPI_Get_address(&in_first, &places[0]);
  MPI_Get_address(&in_second, &places[1]);
  MPI_Type_create_struct(2, lengths, places, types, &in_type);
  MPI_Type_commit(&out_type);
  MPI_Type_commit(&in_type);
  MPI_Sendrecv(MPI_BOTTOM, 1, out_type, right_of_me(), 1, MPI_BOTTOM, 1, in_type, left_of_me(), 1,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  require(in_first == left_of_me() && in_second == left_of_me() + 0.5, "MPI_BOTTOM: %d and %f",
          in_first, in_second);
  MPI_Type_free(&out_type);
  MPI_Type_free(&in_type);
  MPI_Datatype triple;
  MPI_Type_contiguous(3, MPI_INT, &triple);
  MPI_Type_commit(&triple);
  const int five[] = {1, 2, 3, 4, 5};
  int in[9] = {0};
  MPI_Status status;
  MPI_Sendrecv(five, 5, MPI_INT, right_of_me(), 1, in, 3, triple, left_of_me(), 1, MPI_COMM_WORLD,
               &status);
  int elements = 0;
  int count = 0;
  MPI_Get_elements(&status, triple, &elements);
  MPI_Get_count(&status, triple, &count);
  require(elements == 5 && count == MPI_UNDEFINED, "a part: %d elements, count %d", elements,
          count);
  require(memcmp(in, five, sizeof five) == 0 && in[5] == 0, "a part of a triple is wrong");
  MPI_Type_free(&triple);
}

int main(int argc, char** argv) {
  const TestCase cases[] = {
      {"messages", test_messages},
      {"to_contiguous", test_to_contiguous},
      {"collectives", test_collectives},
      {"gathered_columns", test_gathered_columns},
      {"bottom_and_partial", test_bottom_and_partial},
  };
  return run_cases(argc, argv, MPI_THREAD_SINGLE, cases, sizeof cases / sizeof cases[0]);
}
