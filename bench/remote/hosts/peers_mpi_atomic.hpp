// MPI_Fetch_and_op as a peer: Open MPI over TCP between the two hosts.
#pragma once

#include <memory>
#include <optional>

#include "bench/messages/mpi_peers.hpp"
#include "bench/remote/hosts/atomic_calls.hpp"
#include "bench/remote/hosts/atomic_stage.hpp"
#include "tools/directory.hpp"

namespace haul::bench {

class MpiAtomic {
 public:
  // Compiles the program. Throws CommandFailure if there is no Open MPI or it cannot be used here.
  MpiAtomic(const Pair& hosts, Cores cores);

  struct Times {
    double median_us = 0, p99_us = 0, rate_per_s = 0;
  };
  // Launches it once. Throws CommandFailure with the launcher's complaint.
  Times run(const Limit& limit) const;

 private:
  const Pair& hosts_;
  Cores cores_;
  tools::TemporaryDirectory directory_;
  std::string program_, agent_;
};

}  // namespace haul::bench
