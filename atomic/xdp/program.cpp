// libhaul-atomic-xdp.so: the XDP program through libbpf.
#include "atomic/responder/xdp.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

#include "atomic/client/packet.hpp"
#include "atomic/link/frame.hpp"
#include "base/keep_errno.hpp"
#include "base/log.hpp"
#include "base/os.hpp"

// The program, compiled for BPF (cmake/HaulAtomic.cmake).
extern "C" const unsigned char haul_atomic_bpf_begin[], haul_atomic_bpf_end[];

namespace haul::atomics {
namespace {

int show(libbpf_print_level level, const char* format, va_list arguments) {
  // Refusals are told as errors of ours; the verifier's log helps only who changes the program.
  if (level == LIBBPF_DEBUG || !log_enabled(LogLevel::debug)) return 0;
  return vfprintf(stderr, format, arguments);
}

Error refusal(const char* what, int sys_errno) noexcept {
  if (sys_errno == EPERM || sys_errno == EACCES) {
    return make_error(Code::permission, sys_errno,
                      "%s is not permitted; run as root, or give the program CAP_NET_ADMIN, "
                      "CAP_BPF, CAP_PERFMON and CAP_NET_RAW",
                      what);
  }
  return make_error(sys_errno == ENOMEM ? Code::no_memory : Code::not_supported, sys_errno,
                    "%s failed (%s)", what, describe_errno(sys_errno));
}

bool is_veth(unsigned interface) noexcept {
  const KeepErrno keep;
  ifreq request{};
  ethtool_drvinfo driver{};
  driver.cmd = ETHTOOL_GDRVINFO;
  request.ifr_data = reinterpret_cast<char*>(&driver);
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  const bool known = if_indextoname(interface, request.ifr_name) != nullptr &&
                     ioctl(fd, SIOCETHTOOL, &request) == 0;
  os::close_fd(fd);
  return known && std::strcmp(driver.driver, "veth") == 0;
}

class Program final : public Xdp {
 public:
  bool open(const XdpOptions& options, Error* error) noexcept;

  int make_memory(std::size_t pages, Error* error) noexcept override;
  bool add_window(unsigned index, const window_entry& window, int memory_fd,
                  Error* error) noexcept override;
  void remove_window(unsigned index) noexcept override;
  completion_slot* slot(unsigned cookie) noexcept override;
  std::size_t serve(void* packet, std::size_t bytes, std::uint32_t source_address,
                    std::uint16_t source_port) noexcept override;
  void counts(std::uint64_t* counters) noexcept override;
  bool is_native() const noexcept override { return native_; }
  void close() noexcept override;

 private:
  bool load(Error* error) noexcept;
  bool attach(Error* error) noexcept;
  int map_fd(const char* name) const noexcept {
    return bpf_object__find_map_fd_by_name(object_, name);
  }
  bool resize(const char* name, unsigned entries) noexcept {
    bpf_map* map = bpf_object__find_map_by_name(object_, name);
    return map != nullptr && bpf_map__set_max_entries(map, entries) == 0;
  }

  XdpOptions options_;
  bpf_object* object_ = nullptr;
  int program_fd_ = -1, link_fd_ = -1;
  int windows_fd_ = -1, memory_fd_ = -1, events_fd_ = -1;
  void* completions_ = MAP_FAILED;
  bool native_ = false;
};

bool Program::load(Error* error) noexcept {
  libbpf_set_print(show);
  LIBBPF_OPTS(bpf_object_open_opts, named, .object_name = "haul_atomic");
  object_ = bpf_object__open_mem(
      haul_atomic_bpf_begin, static_cast<std::size_t>(haul_atomic_bpf_end - haul_atomic_bpf_begin),
      &named);
  if (object_ == nullptr) {
    *error = refusal("opening the XDP program", errno);
    return false;
  }
  bpf_map* constants = bpf_object__find_map_by_name(object_, ".rodata");
  const xdp_config config{options_.address, options_.port, options_.client_port, options_.sessions};
  const bool fits = constants != nullptr &&
                    bpf_map__set_initial_value(constants, &config, sizeof config) == 0 &&
                    resize("sessions", options_.sessions) &&
                    resize("results", options_.sessions * WIRE_RESULTS) &&
                    resize("completions", options_.connections);
  const int result = fits ? bpf_object__load(object_) : -EINVAL;
  if (result != 0) {
    *error = refusal("loading the XDP program", -result);
    return false;
  }
  program_fd_ = bpf_program__fd(bpf_object__find_program_by_name(object_, "haul_atomic"));
  windows_fd_ = map_fd("windows");
  memory_fd_ = map_fd("memory");
  events_fd_ = map_fd("events");
  completions_ = mmap(nullptr, std::size_t{options_.connections} * COMPLETION_SLOT_BYTES,
                      PROT_READ | PROT_WRITE, MAP_SHARED, map_fd("completions"), 0);
  if (completions_ == MAP_FAILED) {
    *error = refusal("mapping the completion map", errno);
    return false;
  }
  return true;
}

bool Program::attach(Error* error) noexcept {
  const auto try_mode = [this](bool native) {
    LIBBPF_OPTS(bpf_link_create_opts, how,
                .flags = native ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE);
    link_fd_ = bpf_link_create(program_fd_, static_cast<int>(options_.interface), BPF_XDP, &how);
    native_ = native;
    return link_fd_ >= 0 ? 0 : errno;
  };
  // A veth sends natively only to a peer that has an XDP program, too: generic always works.
  const bool native_first = options_.mode == XdpMode::native ||
                            (options_.mode == XdpMode::automatic && !is_veth(options_.interface));
  int failed = native_first ? try_mode(true) : -1;
  if (failed != 0 && options_.mode != XdpMode::native) failed = try_mode(false);
  if (failed == 0) return true;
  if (failed == EBUSY || failed == EEXIST) {
    *error =
        make_error(Code::not_supported, failed,
                   "the interface has an XDP program already; remove that, or serve on another "
                   "interface");
  } else {
    *error = refusal("attaching the XDP program", failed);
  }
  return false;
}

bool Program::open(const XdpOptions& options, Error* error) noexcept {
  options_ = options;
  return load(error) && (options.interface == 0 || attach(error));
}

void Program::close() noexcept {
  const KeepErrno keep;
  if (link_fd_ >= 0) {
    // A child of fork may have the link, too, which would keep the program serving.
    bpf_link_detach(link_fd_);
    os::close_fd(link_fd_);
  }
  if (completions_ != MAP_FAILED) {
    munmap(completions_, std::size_t{options_.connections} * COMPLETION_SLOT_BYTES);
  }
  if (object_ != nullptr) bpf_object__close(object_);
  delete this;
}

int Program::make_memory(std::size_t pages, Error* error) noexcept {
  const KeepErrno keep;
  LIBBPF_OPTS(bpf_map_create_opts, how, .map_flags = BPF_F_MMAPABLE | BPF_F_INNER_MAP);
  const int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "haul_window", 4, XDP_PAGE_BYTES,
                                static_cast<__u32>(pages), &how);
  if (fd < 0) *error = refusal("making a window's memory", errno);
  return fd;
}

bool Program::add_window(unsigned index, const window_entry& window, int memory_fd,
                         Error* error) noexcept {
  const KeepErrno keep;
  // The memory first: who finds the key finds it.
  if (bpf_map_update_elem(memory_fd_, &index, &memory_fd, BPF_ANY) == 0 &&
      bpf_map_update_elem(windows_fd_, &index, &window, BPF_ANY) == 0) {
    return true;
  }
  *error = refusal("making a window known to the XDP program", errno);
  return false;
}

void Program::remove_window(unsigned index) noexcept {
  const KeepErrno keep;
  const window_entry none{};
  bpf_map_update_elem(windows_fd_, &index, &none, BPF_ANY);
  bpf_map_delete_elem(memory_fd_, &index);
}

completion_slot* Program::slot(unsigned cookie) noexcept {
  if (cookie >= options_.connections) return nullptr;
  auto* at =
      static_cast<unsigned char*>(completions_) + std::size_t{cookie} * COMPLETION_SLOT_BYTES;
  return reinterpret_cast<completion_slot*>(at);
}

std::size_t Program::serve(void* packet, std::size_t bytes, std::uint32_t source_address,
                           std::uint16_t source_port) noexcept {
  const KeepErrno keep;
  unsigned char frame[frame_front_bytes + sizeof(Packet)], answer[sizeof frame];
  if (bytes > sizeof(Packet)) return 0;
  ether_header eth{};
  eth.ether_type = htons(ETHERTYPE_IP);
  make_front(eth, source_address, source_port, options_.address, options_.port, frame);
  set_payload(frame, bytes);
  std::memcpy(frame + frame_front_bytes, packet, bytes);
  LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = frame, .data_out = answer,
              .data_size_in = static_cast<__u32>(frame_front_bytes + bytes),
              .data_size_out = sizeof answer, .repeat = 1);
  if (bpf_prog_test_run_opts(program_fd_, &run) != 0 || run.retval != XDP_TX) return 0;
  std::memcpy(packet, answer + frame_front_bytes, bytes);
  return bytes;
}

void Program::counts(std::uint64_t* counters) noexcept {
  const KeepErrno keep;
  const int cpus = libbpf_num_possible_cpus();
  if (cpus <= 0) return;
  auto* values = static_cast<std::uint64_t*>(
      std::calloc(static_cast<std::size_t>(cpus), sizeof(std::uint64_t)));
  if (values == nullptr) return;
  for (unsigned event = 0; event < XDP_EVENTS; ++event) {
    counters[event] = 0;
    if (bpf_map_lookup_elem(events_fd_, &event, values) != 0) continue;
    for (int cpu = 0; cpu < cpus; ++cpu) counters[event] += values[cpu];
  }
  std::free(values);
}

}  // namespace

extern "C" [[gnu::visibility("default")]] Xdp* haul_atomic_xdp_open(const XdpOptions& options,
                                                                    Error* error) noexcept {
  const KeepErrno keep;
  auto* program = new (std::nothrow) Program;
  if (program == nullptr) {
    *error = make_error(Code::no_memory, ENOMEM, "no memory for the XDP program; free some");
    return nullptr;
  }
  if (program->open(options, error)) return program;
  program->close();
  return nullptr;
}

}  // namespace haul::atomics
