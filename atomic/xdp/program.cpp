// libhaul-atomic-xdp.so: the XDP program through libbpf.
#include "atomic/plugin/xdp_program.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

#include "atomic/link/frame.hpp"
#include "atomic/link/kernel_object.hpp"
#include "atomic/wire/wire_packet.hpp"
#include "base/log.hpp"
#include "base/os/keep_errno.hpp"
#include "base/os/os.hpp"

// The program, compiled for BPF (cmake/HaulAtomic.cmake).
extern "C" const unsigned char haul_atomic_bpf_begin[], haul_atomic_bpf_end[];

namespace haul::atomics {
namespace {

int show(libbpf_print_level level, const char* format, va_list arguments) {
  // Refusals become errors of ours; the verifier's log only helps people who change the program.
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
  const int fd = os::above_streams(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (fd < 0) return false;
  const bool known = if_indextoname(interface, request.ifr_name) != nullptr &&
                     ioctl(fd, SIOCETHTOOL, &request) == 0;
  os::close_fd(fd);
  return known && std::strcmp(driver.driver, "veth") == 0;
}

class LoadedProgram final : public XdpProgram {
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
  bool is_intact() const noexcept override;
  void close() noexcept override;

 private:
  bool load(Error* error) noexcept;
  bool load(bpf_object* object, Error* error) noexcept;
  bool attach(Error* error) noexcept;

  XdpOptions options_;
  KernelObject program_, link_;
  KernelObject windows_, memory_, events_;
  void* completions_ = MAP_FAILED;
  bool native_ = false;
};

// A descriptor of our own: libbpf closes its by their numbers, whosever they are by then.
KernelObject keep_one(int fd) noexcept {
  return KernelObject::of(fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
}

bool resize(bpf_object* object, const char* name, unsigned entries) noexcept {
  bpf_map* map = bpf_object__find_map_by_name(object, name);
  return map != nullptr && bpf_map__set_max_entries(map, entries) == 0;
}

bool LoadedProgram::load(Error* error) noexcept {
  libbpf_set_print(show);
  LIBBPF_OPTS(bpf_object_open_opts, named, .object_name = "haul_atomic");
  bpf_object* const object = bpf_object__open_mem(
      haul_atomic_bpf_begin, static_cast<std::size_t>(haul_atomic_bpf_end - haul_atomic_bpf_begin),
      &named);
  if (object == nullptr) {
    *error = refusal("opening the XDP program", errno);
    return false;
  }
  const bool loaded = load(object, error);
  bpf_object__close(object);
  return loaded;
}

bool LoadedProgram::load(bpf_object* object, Error* error) noexcept {
  bpf_map* constants = bpf_object__find_map_by_name(object, ".rodata");
  const xdp_config config{options_.address, options_.port, options_.client_port, options_.sessions};
  const bool fits = constants != nullptr &&
                    bpf_map__set_initial_value(constants, &config, sizeof config) == 0 &&
                    resize(object, "sessions", options_.sessions) &&
                    resize(object, "results", options_.sessions * WIRE_RESULTS) &&
                    resize(object, "completions", options_.connections);
  const int result = fits ? bpf_object__load(object) : -EINVAL;
  if (result != 0) {
    *error = refusal("loading the XDP program", -result);
    return false;
  }
  const auto map_fd = [object](const char* name) {
    return bpf_object__find_map_fd_by_name(object, name);
  };
  program_ = keep_one(bpf_program__fd(bpf_object__find_program_by_name(object, "haul_atomic")));
  windows_ = keep_one(map_fd("windows"));
  memory_ = keep_one(map_fd("memory"));
  events_ = keep_one(map_fd("events"));
  if (!program_.valid() || !windows_.valid() || !memory_.valid() || !events_.valid()) {
    *error = refusal("keeping the XDP program's descriptors", errno);
    return false;
  }
  completions_ = mmap(nullptr, std::size_t{options_.connections} * COMPLETION_SLOT_BYTES,
                      PROT_READ | PROT_WRITE, MAP_SHARED, map_fd("completions"), 0);
  if (completions_ == MAP_FAILED) {
    *error = refusal("mapping the completion map", errno);
    return false;
  }
  return true;
}

bool LoadedProgram::attach(Error* error) noexcept {
  const auto try_mode = [this](bool native) {
    LIBBPF_OPTS(bpf_link_create_opts, how,
                .flags = native ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE);
    const int fd = os::above_streams(
        bpf_link_create(program_.get(), static_cast<int>(options_.interface), BPF_XDP, &how));
    link_ = KernelObject::of(fd);
    native_ = native;
    return fd < 0 ? -fd : 0;
  };
  // A veth sends natively only to a peer that has an XDP program as well; generic mode always
  // works.
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

bool LoadedProgram::is_intact() const noexcept {
  return program_.intact() && windows_.intact() && memory_.intact() &&
         (options_.interface == 0 || link_.intact());
}

bool LoadedProgram::open(const XdpOptions& options, Error* error) noexcept {
  options_ = options;
  return load(error) && (options.interface == 0 || attach(error));
}

void LoadedProgram::close() noexcept {
  const KeepErrno keep;
  // A child of fork may have the link as well, which would keep the program serving.
  if (link_.intact()) bpf_link_detach(link_.get());
  for (KernelObject* one : {&link_, &program_, &windows_, &memory_, &events_}) one->close();
  if (completions_ != MAP_FAILED) {
    munmap(completions_, std::size_t{options_.connections} * COMPLETION_SLOT_BYTES);
  }
  delete this;
}

int LoadedProgram::make_memory(std::size_t pages, Error* error) noexcept {
  const KeepErrno keep;
  LIBBPF_OPTS(bpf_map_create_opts, how, .map_flags = BPF_F_MMAPABLE | BPF_F_INNER_MAP);
  const int fd = os::above_streams(bpf_map_create(BPF_MAP_TYPE_ARRAY, "haul_window", 4,
                                                  XDP_PAGE_BYTES, static_cast<__u32>(pages), &how));
  if (fd < 0) *error = refusal("making a window's memory", -fd);
  return fd;
}

bool LoadedProgram::add_window(unsigned index, const window_entry& window, int memory_fd,
                               Error* error) noexcept {
  const KeepErrno keep;
  if (!is_intact()) {
    *error = make_error(Code::io, 0,
                        "this process has closed the XDP program's descriptors (closefrom()?), and "
                        "with them its service; open another node");
    return false;
  }
  // The memory first: a packet that finds the key finds its memory.
  if (bpf_map_update_elem(memory_.get(), &index, &memory_fd, BPF_ANY) == 0 &&
      bpf_map_update_elem(windows_.get(), &index, &window, BPF_ANY) == 0) {
    return true;
  }
  *error = refusal("making a window known to the XDP program", errno);
  return false;
}

void LoadedProgram::remove_window(unsigned index) noexcept {
  const KeepErrno keep;
  // Without its tables the program could not be told, and would go on serving the window, so its
  // service ends altogether.
  if (!windows_.intact() && link_.intact()) bpf_link_detach(link_.get());
  const window_entry none{};
  bpf_map_update_elem(windows_.get(), &index, &none, BPF_ANY);
  bpf_map_delete_elem(memory_.get(), &index);
}

completion_slot* LoadedProgram::slot(unsigned cookie) noexcept {
  if (cookie >= options_.connections) return nullptr;
  auto* at =
      static_cast<unsigned char*>(completions_) + std::size_t{cookie} * COMPLETION_SLOT_BYTES;
  return reinterpret_cast<completion_slot*>(at);
}

std::size_t LoadedProgram::serve(void* packet, std::size_t bytes, std::uint32_t source_address,
                                 std::uint16_t source_port) noexcept {
  const KeepErrno keep;
  unsigned char frame[frame_front_bytes + sizeof(WirePacket)], answer[sizeof frame];
  if (bytes > sizeof(WirePacket)) return 0;
  ether_header eth{};
  eth.ether_type = htons(ETHERTYPE_IP);
  make_front(eth, source_address, source_port, options_.address, options_.port, frame);
  set_payload(frame, bytes);
  std::memcpy(frame + frame_front_bytes, packet, bytes);
  LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = frame, .data_out = answer,
              .data_size_in = static_cast<__u32>(frame_front_bytes + bytes),
              .data_size_out = sizeof answer, .repeat = 1);
  if (bpf_prog_test_run_opts(program_.get(), &run) != 0 || run.retval != XDP_TX) return 0;
  std::memcpy(packet, answer + frame_front_bytes, bytes);
  return bytes;
}

void LoadedProgram::counts(std::uint64_t* counters) noexcept {
  const KeepErrno keep;
  const int events = events_.get();
  const int cpus = libbpf_num_possible_cpus();
  if (cpus <= 0) return;
  auto* values = static_cast<std::uint64_t*>(
      std::calloc(static_cast<std::size_t>(cpus), sizeof(std::uint64_t)));
  if (values == nullptr) return;
  for (unsigned event = 0; event < XDP_EVENTS; ++event) {
    counters[event] = 0;
    if (bpf_map_lookup_elem(events, &event, values) != 0) continue;
    for (int cpu = 0; cpu < cpus; ++cpu) counters[event] += values[cpu];
  }
  std::free(values);
}

}  // namespace

extern "C" [[gnu::visibility("default")]] XdpProgram* haul_atomic_xdp_open(
    const XdpOptions& options, Error* error) noexcept {
  const KeepErrno keep;
  auto* program = new (std::nothrow) LoadedProgram;
  if (program == nullptr) {
    *error = make_error(Code::no_memory, ENOMEM, "no memory for the XDP program; free some");
    return nullptr;
  }
  if (program->open(options, error)) return program;
  program->close();
  return nullptr;
}

}  // namespace haul::atomics
