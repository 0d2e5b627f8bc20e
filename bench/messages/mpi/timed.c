// The calls that the kernels' timed parts make. They are weak, so that a tool that takes their
// place may be linked in.
#include "bench/messages/mpi/timed.h"

#include <mpi.h>

#include "bench/messages/mpi/common.h"

static double spent_us;

void reset_comm_time(void) {
  spent_us = 0;
}

double comm_time_us(void) {
  return spent_us;
}

double mean_comm_share(double comm_us, double total_us) {
  int ranks;
  PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const double own = total_us > 0 ? comm_us / total_us : 0;
  double sum = 0;
  PMPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return sum / ranks;
}

#define TIMED(name, parameters, arguments)          \
  __attribute__((weak)) int MPI_##name parameters { \
    const double begin_us = now_us();               \
    const int code = PMPI_##name arguments;         \
    spent_us += now_us() - begin_us;                \
    return code;                                    \
  }

TIMED(Send, (const void* at, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm),
      (at, count, type, to, tag, comm))
TIMED(Isend,
      (const void* at, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
       MPI_Request* request),
      (at, count, type, to, tag, comm, request))
TIMED(Irecv,
      (void* at, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
       MPI_Request* request),
      (at, count, type, from, tag, comm, request))
TIMED(Wait, (MPI_Request * request, MPI_Status* status), (request, status))
TIMED(Waitall, (int count, MPI_Request* requests, MPI_Status* statuses),
      (count, requests, statuses))
TIMED(Reduce,
      (const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),
      (in, out, count, type, op, root, comm))
TIMED(Allreduce,
      (const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
      (in, out, count, type, op, comm))
TIMED(Alltoall,
      (const void* out, int sent, MPI_Datatype sent_type, void* in, int got, MPI_Datatype got_type,
       MPI_Comm comm),
      (out, sent, sent_type, in, got, got_type, comm))
TIMED(Alltoallv,
      (const void* out, const int* sent, const int* sent_at, MPI_Datatype sent_type, void* in,
       const int* got, const int* got_at, MPI_Datatype got_type, MPI_Comm comm),
      (out, sent, sent_at, sent_type, in, got, got_at, got_type, comm))
