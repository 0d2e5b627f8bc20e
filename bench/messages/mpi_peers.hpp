// The MPIs of this machine: how each compiles a program, and launches it on each transport.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/messages/mpi_command.hpp"

namespace haul::bench {

// haul: the provider of this program's libhaul.so.0. native: the MPI's own shared memory.
// ofi_shm: the same MPI on libfabric's provider shm.
enum class Transport { haul, native, ofi_shm };
const char* transport_name(Transport transport);  // haul, native, ofi-shm

// The names by which scripts/peers.sh and --mpi know them.
const std::vector<std::string>& mpi_names();

struct Launch {
  unsigned ranks = 2;
  unsigned limit_s = 60;
  tools::Environment extra = {};  // for the ranks
};

class MpiPeer {
 public:
  // Nothing if it is not there; `missing` is then one sentence that says so.
  static std::optional<MpiPeer> find(const std::string& name, std::string& missing);

  const std::string& name() const { return name_; }
  const std::string& title() const { return title_; }

  // Writes the sources below `directory`, compiles `files` of them, and returns the program's path.
  // Throws Failure with the compiler's complaint.
  std::string build(const std::string& directory, const std::string& program,
                    const std::vector<std::string>& files) const;

  // "" or why this transport is not there.
  std::string unusable(Transport transport) const;

  CommandOutcome run(Transport transport, const Launch& launch,
                     const std::vector<std::string>& program) const;

 private:
  using Words = std::vector<std::string>;
  std::string name_, title_;
  Words compiler_, launcher_, crowd_args_, native_args_, haul_args_, shm_args_;
  tools::Environment environment_, crowd_environment_, native_environment_, haul_environment_,
      shm_environment_;
};

// Where libhaul-fi.so lies: beside the libhaul.so.0 that this program runs on.
std::string provider_directory();

}  // namespace haul::bench
