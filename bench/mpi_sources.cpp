// Files put into the program by the assembler, which finds them as #include would.
#include "bench/mpi_sources.hpp"

asm(R"(
  .pushsection .rodata
haul_mpi_atomic_c: .incbin "bench/mpi/atomic.c"
  .byte 0
haul_mpi_bench_c: .incbin "bench/mpi/bench.c"
  .byte 0
haul_mpi_buffers_c: .incbin "bench/mpi/buffers.c"
  .byte 0
haul_mpi_buffers_h: .incbin "bench/mpi/buffers.h"
  .byte 0
haul_mpi_common_c: .incbin "bench/mpi/common.c"
  .byte 0
haul_mpi_common_h: .incbin "bench/mpi/common.h"
  .byte 0
haul_mpi_content_c: .incbin "bench/mpi/content.c"
  .byte 0
haul_mpi_content_h: .incbin "bench/mpi/content.h"
  .byte 0
haul_mpi_exchange_c: .incbin "bench/mpi/exchange.c"
  .byte 0
haul_mpi_exchange_h: .incbin "bench/mpi/exchange.h"
  .byte 0
haul_mpi_nas_c: .incbin "bench/mpi/nas.c"
  .byte 0
haul_mpi_nas_h: .incbin "bench/mpi/nas.h"
  .byte 0
haul_mpi_nas_is_c: .incbin "bench/mpi/nas_is.c"
  .byte 0
haul_mpi_nas_ft_c: .incbin "bench/mpi/nas_ft.c"
  .byte 0
haul_mpi_peers_sh: .incbin "scripts/peers.sh"
  .byte 0
  .popsection
)");

extern "C" {
extern const char haul_mpi_atomic_c[], haul_mpi_bench_c[], haul_mpi_buffers_c[],
    haul_mpi_buffers_h[], haul_mpi_common_c[], haul_mpi_common_h[], haul_mpi_content_c[],
    haul_mpi_content_h[], haul_mpi_exchange_c[], haul_mpi_exchange_h[], haul_mpi_nas_c[],
    haul_mpi_nas_h[], haul_mpi_nas_is_c[], haul_mpi_nas_ft_c[], haul_mpi_peers_sh[];
}

namespace haul::bench {

const std::vector<SourceFile>& mpi_sources() {
  static const std::vector<SourceFile> all = {
      {"bench/mpi/atomic.c", haul_mpi_atomic_c},     {"bench/mpi/bench.c", haul_mpi_bench_c},
      {"bench/mpi/buffers.c", haul_mpi_buffers_c},   {"bench/mpi/buffers.h", haul_mpi_buffers_h},
      {"bench/mpi/common.c", haul_mpi_common_c},     {"bench/mpi/common.h", haul_mpi_common_h},
      {"bench/mpi/content.c", haul_mpi_content_c},   {"bench/mpi/content.h", haul_mpi_content_h},
      {"bench/mpi/exchange.c", haul_mpi_exchange_c}, {"bench/mpi/exchange.h", haul_mpi_exchange_h},
      {"bench/mpi/nas.c", haul_mpi_nas_c},           {"bench/mpi/nas.h", haul_mpi_nas_h},
      {"bench/mpi/nas_is.c", haul_mpi_nas_is_c},     {"bench/mpi/nas_ft.c", haul_mpi_nas_ft_c}};
  return all;
}

std::string_view peers_script() {
  return haul_mpi_peers_sh;
}

}  // namespace haul::bench
