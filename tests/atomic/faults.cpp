#include "tests/atomic/faults.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_link.h>
#include <net/if.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "tools/failure.hpp"

namespace atomic_test {
namespace {

using haul::bench::Inside;
using haul::tools::CommandFailure;

std::string end_name(unsigned end) {
  return "end" + std::to_string(end);
}

int quiet(libbpf_print_level, const char*, va_list) {
  return 0;
}

void must(bool done, const std::string& what) {
  if (!done) throw CommandFailure(what + " failed (" + strerror(errno) + "); it needs root");
}

// Those of a namespace go with it: nothing is ever detached.
void attach_tc(int program, int interface) {
  LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = interface, .attach_point = BPF_TC_INGRESS);
  LIBBPF_OPTS(bpf_tc_opts, how, .prog_fd = program);
  must(bpf_tc_hook_create(&hook) == 0 && bpf_tc_attach(&hook, &how) == 0,
       "attaching the bad cable's program");
}

}  // namespace

BadCable::BadCable(const std::vector<CableEnd>& ends, const FaultRates& rates, bool native) {
  middle_.ip("link add cable type bridge");
  middle_.ip("link set cable up");
  for (unsigned i = 0; i < ends.size(); ++i) {
    const std::string unused = "10.0.1." + std::to_string(i + 1) + "/32";
    haul::bench::join(ends[i].host, ends[i].interface, ends[i].address, middle_, end_name(i),
                      unused);
    middle_.ip("link set " + end_name(i) + " master cable");
  }
  const Inside inside(middle_);
  open(static_cast<unsigned>(ends.size()), rates, native);
}

BadCable::~BadCable() {
  if (object_ != nullptr) bpf_object__close(object_);
}

void BadCable::open(unsigned ends, const FaultRates& rates, bool native) {
  libbpf_set_print(quiet);
  object_ = bpf_object__open_file(FAULTS_OBJECT, nullptr);
  must(object_ != nullptr, "opening " FAULTS_OBJECT);
  faults_config config{{}, rates.drop, rates.duplicate, rates.reorder};
  must(ends <= FAULTS_MOST_ENDS, "joining so many ends");
  for (unsigned i = 0; i < ends; ++i) config.ends[i] = if_nametoindex(end_name(i).c_str());
  bpf_map* constants = bpf_object__find_map_by_name(object_, ".rodata");
  must(constants != nullptr && bpf_map__set_initial_value(constants, &config, sizeof config) == 0 &&
           bpf_object__load(object_) == 0,
       "loading the bad cable's program");
  const auto program = [this](const char* name) {
    return bpf_program__fd(bpf_object__find_program_by_name(object_, name));
  };
  events_ = bpf_object__find_map_fd_by_name(object_, "events");
  for (unsigned i = 0; i < ends; ++i) {
    const int interface = static_cast<int>(config.ends[i]);
    attach_tc(program("bad_cable"), interface);
    if (native) {
      must(bpf_xdp_attach(interface, program("let_pass"), XDP_FLAGS_DRV_MODE, nullptr) == 0,
           "attaching the bad cable's native program");
    }
  }
}

BadCable::Counts BadCable::counts(unsigned way) const {
  Counts sums{};
  std::vector<std::uint64_t> values(static_cast<std::size_t>(libbpf_num_possible_cpus()));
  for (unsigned event = 0; event < FAULTS_EVENTS; ++event) {
    const unsigned index = way * FAULTS_EVENTS + event;
    if (bpf_map_lookup_elem(events_, &index, values.data()) != 0) continue;
    for (const std::uint64_t value : values) sums[event] += value;
  }
  return sums;
}

}  // namespace atomic_test
