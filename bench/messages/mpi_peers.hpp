// The MPIs of this machine: how each compiles a program and launches it on each transport.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/kit/command.hpp"

namespace haul::bench {

// haul: the provider beside this program's libhaul.so.0; haul_shared: the same with large
// allocations born shared (libhaul-malloc.so). native: the MPI's own shared memory. ofi_shm: the
// same MPI on libfabric's provider shm. loopback: on its provider tcp, over the loopback interface.
enum class Transport { haul, haul_shared, native, ofi_shm, loopback };
const char* transport_name(Transport transport);  // haul, haul-shared, ...

// The names by which scripts/peers.sh and --mpi know the MPIs.
const std::vector<std::string>& mpi_names();

struct Launch {
  unsigned ranks = 2;
  unsigned limit_s = 60;
  tools::Environment extra = {};  // for the ranks
};

class MpiPeer {
 public:
  // Returns nothing if that MPI is not installed; `missing` is then a sentence that says so.
  static std::optional<MpiPeer> find(const std::string& name, std::string& missing);

  const std::string& name() const { return name_; }
  const std::string& title() const { return title_; }

  // Writes the sources below `directory`, compiles `files` of them, and returns the program's path.
  // Throws CommandFailure with the compiler's complaint.
  std::string build(const std::string& directory, const std::string& program,
                    const std::vector<std::string>& files) const;

  // "", or why this transport is not available.
  std::string unusable(Transport transport) const;

  CommandOutcome run(Transport transport, const Launch& launch,
                     const std::vector<std::string>& program) const;

 private:
  using Words = std::vector<std::string>;
  std::string name_, title_;
  Words compiler_, launcher_, crowd_args_, native_args_, haul_args_, shm_args_, tcp_args_;
  tools::Environment environment_, crowd_environment_, native_environment_, haul_environment_,
      shm_environment_, tcp_environment_;
};

}  // namespace haul::bench
