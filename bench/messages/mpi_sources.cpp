// Files put into the program by the assembler, which finds them as #include would.
#include "bench/messages/mpi_sources.hpp"

#define HAUL_EMBED(name, path)                                                          \
  asm(".pushsection .rodata\n" #name ": .incbin \"" path "\"\n.byte 0\n.popsection\n"); \
  extern "C" const char(name)[];

#define HAUL_MPI_SOURCES(APPLY)                               \
  APPLY(haul_mpi_atomic_c, "bench/messages/mpi/atomic.c")     \
  APPLY(haul_mpi_bench_c, "bench/messages/mpi/bench.c")       \
  APPLY(haul_mpi_buffers_c, "bench/messages/mpi/buffers.c")   \
  APPLY(haul_mpi_buffers_h, "bench/messages/mpi/buffers.h")   \
  APPLY(haul_mpi_common_c, "bench/messages/mpi/common.c")     \
  APPLY(haul_mpi_common_h, "bench/messages/mpi/common.h")     \
  APPLY(haul_mpi_content_c, "bench/messages/mpi/content.c")   \
  APPLY(haul_mpi_content_h, "bench/messages/mpi/content.h")   \
  APPLY(haul_mpi_exchange_c, "bench/messages/mpi/exchange.c") \
  APPLY(haul_mpi_exchange_h, "bench/messages/mpi/exchange.h") \
  APPLY(haul_mpi_matching_c, "bench/messages/mpi/matching.c") \
  APPLY(haul_mpi_halo_c, "bench/messages/mpi/halo.c")         \
  APPLY(haul_mpi_kernel_c, "bench/messages/mpi/kernel.c")     \
  APPLY(haul_mpi_kernel_h, "bench/messages/mpi/kernel.h")     \
  APPLY(haul_mpi_nas_c, "bench/messages/mpi/nas.c")           \
  APPLY(haul_mpi_nas_h, "bench/messages/mpi/nas.h")           \
  APPLY(haul_mpi_nas_cg_c, "bench/messages/mpi/nas_cg.c")     \
  APPLY(haul_mpi_nas_mg_c, "bench/messages/mpi/nas_mg.c")     \
  APPLY(haul_mpi_overlap_c, "bench/messages/mpi/overlap.c")   \
  APPLY(haul_mpi_spectral_c, "bench/messages/mpi/spectral.c") \
  APPLY(haul_mpi_timed_c, "bench/messages/mpi/timed.c")       \
  APPLY(haul_mpi_timed_h, "bench/messages/mpi/timed.h")       \
  APPLY(haul_mpi_nas_is_c, "bench/messages/mpi/nas_is.c")     \
  APPLY(haul_mpi_nas_ft_c, "bench/messages/mpi/nas_ft.c")

HAUL_MPI_SOURCES(HAUL_EMBED)
HAUL_EMBED(haul_mpi_peers_sh, "scripts/peers.sh")

namespace haul::bench {

const std::vector<SourceFile>& mpi_sources() {
#define HAUL_ENTRY(name, path) {path, name},
  static const std::vector<SourceFile> all = {HAUL_MPI_SOURCES(HAUL_ENTRY)};
#undef HAUL_ENTRY
  return all;
}

std::string_view peers_script() {
  return haul_mpi_peers_sh;
}

}  // namespace haul::bench
