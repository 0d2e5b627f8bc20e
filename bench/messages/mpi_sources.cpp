// Files put into the program by the assembler, which finds them as #include would.
#include "bench/messages/mpi_sources.hpp"

asm(R"(
  .pushsection .rodata
haul_mpi_atomic_c: .incbin "bench/messages/mpi/atomic.c"
  .byte 0
haul_mpi_bench_c: .incbin "bench/messages/mpi/bench.c"
  .byte 0
haul_mpi_buffers_c: .incbin "bench/messages/mpi/buffers.c"
  .byte 0
haul_mpi_buffers_h: .incbin "bench/messages/mpi/buffers.h"
  .byte 0
haul_mpi_common_c: .incbin "bench/messages/mpi/common.c"
  .byte 0
haul_mpi_common_h: .incbin "bench/messages/mpi/common.h"
  .byte 0
haul_mpi_content_c: .incbin "bench/messages/mpi/content.c"
  .byte 0
haul_mpi_content_h: .incbin "bench/messages/mpi/content.h"
  .byte 0
haul_mpi_exchange_c: .incbin "bench/messages/mpi/exchange.c"
  .byte 0
haul_mpi_exchange_h: .incbin "bench/messages/mpi/exchange.h"
  .byte 0
haul_mpi_nas_c: .incbin "bench/messages/mpi/nas.c"
  .byte 0
haul_mpi_nas_h: .incbin "bench/messages/mpi/nas.h"
  .byte 0
haul_mpi_nas_is_c: .incbin "bench/messages/mpi/nas_is.c"
  .byte 0
haul_mpi_nas_ft_c: .incbin "bench/messages/mpi/nas_ft.c"
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
      {"bench/messages/mpi/atomic.c", haul_mpi_atomic_c},
      {"bench/messages/mpi/bench.c", haul_mpi_bench_c},
      {"bench/messages/mpi/buffers.c", haul_mpi_buffers_c},
      {"bench/messages/mpi/buffers.h", haul_mpi_buffers_h},
      {"bench/messages/mpi/common.c", haul_mpi_common_c},
      {"bench/messages/mpi/common.h", haul_mpi_common_h},
      {"bench/messages/mpi/content.c", haul_mpi_content_c},
      {"bench/messages/mpi/content.h", haul_mpi_content_h},
      {"bench/messages/mpi/exchange.c", haul_mpi_exchange_c},
      {"bench/messages/mpi/exchange.h", haul_mpi_exchange_h},
      {"bench/messages/mpi/nas.c", haul_mpi_nas_c},
      {"bench/messages/mpi/nas.h", haul_mpi_nas_h},
      {"bench/messages/mpi/nas_is.c", haul_mpi_nas_is_c},
      {"bench/messages/mpi/nas_ft.c", haul_mpi_nas_ft_c}};
  return all;
}

std::string_view peers_script() {
  return haul_mpi_peers_sh;
}

}  // namespace haul::bench
