// Two processes stream bytes from one namespace to another as fast as they can (paper 002, V-C: the
// bandwidth test). What arrives is checked.
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
  // Streams to an IPv4 address of the sink's. Throws CommandFailure if the stream does not begin to
  // flow. The calling thread is pinned to `own_cpu` afterwards.
  Stream(const StreamEnd& source, const StreamEnd& sink, const std::string& sink_address,
         Protocol protocol, int own_cpu);

  // What the source has sent; with UDP that is more than arrives.
  std::uint64_t sent_bytes() const;
  // Ends the stream. Throws CommandFailure if a byte was wrong or, with TCP, missing. Returns the
  // share of bytes that were lost.
  double finish();

 private:
  SharedBlock block_;
  std::vector<Child> children_;
};

}  // namespace haul::bench
