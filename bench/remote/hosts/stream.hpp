// A stream of bytes from one namespace to another as fast as it goes, by two processes (paper 002,
// V-C: the bandwidth test). What arrives is checked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/kit/processes.hpp"
#include "bench/remote/hosts/namespaces.hpp"

namespace haul::bench {

enum class Protocol : std::uint32_t { tcp, udp };
const char* protocol_name(Protocol protocol);

struct StreamEnd {
  const Namespace& space;
  int cpu;
};

class Stream {
 public:
  // To an IPv4 address of the sink's. Throws Failure if it does not begin to flow. The calling
  // thread is pinned to `own_cpu` afterwards.
  Stream(const StreamEnd& source, const StreamEnd& sink, const std::string& sink_address,
         Protocol protocol, int own_cpu);

  // By the source: of UDP more than arrives.
  std::uint64_t sent_bytes() const;
  // Ends it. Throws Failure if a byte was wrong, or, with TCP, missing. Returns the share of bytes
  // that got lost.
  double finish();

 private:
  SharedBlock block_;
  std::vector<Child> children_;
};

}  // namespace haul::bench
