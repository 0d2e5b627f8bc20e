#include "devices/nic/program.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstddef>

// The program, compiled for BPF (cmake/HaulNic.cmake), as bytes of the plug-in.
asm(".pushsection .rodata\n"
    ".balign 16\n"
    ".global haul_nic_bpf_begin\n"
    ".global haul_nic_bpf_end\n"
    ".hidden haul_nic_bpf_begin\n"
    ".hidden haul_nic_bpf_end\n"
    "haul_nic_bpf_begin:\n"
    ".incbin \"" HAUL_NIC_BPF_OBJECT
    "\"\n"
    "haul_nic_bpf_end:\n"
    ".popsection\n");
extern "C" const unsigned char haul_nic_bpf_begin[], haul_nic_bpf_end[];

namespace haul::nic {
namespace {

// The process's standard error is the program's own.
int show_nothing(libbpf_print_level, const char*, va_list) {
  return 0;
}

// A descriptor of our own, above the standard streams: libbpf closes its with the object.
int keep(int fd) noexcept {
  return fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

}  // namespace

bool PortProgram::load() noexcept {
  libbpf_set_print(show_nothing);
  LIBBPF_OPTS(bpf_object_open_opts, named, .object_name = "haul_nic");
  bpf_object* const object = bpf_object__open_mem(
      haul_nic_bpf_begin, static_cast<std::size_t>(haul_nic_bpf_end - haul_nic_bpf_begin), &named);
  if (object == nullptr) return false;
  const int result = bpf_object__load(object);
  if (result == 0) {
    program_ = keep(bpf_program__fd(bpf_object__find_program_by_name(object, "haul_nic")));
    sockets_ = keep(bpf_object__find_map_fd_by_name(object, "sockets"));
    const int lanes = bpf_object__find_map_fd_by_name(object, "lanes");
    void* const mapped =
        mmap(nullptr, NIC_LANES * sizeof(nic_lane), PROT_READ | PROT_WRITE, MAP_SHARED, lanes, 0);
    lanes_ = mapped != MAP_FAILED ? static_cast<nic_lane*>(mapped) : nullptr;
  }
  const int error = result != 0 ? -result : errno;
  bpf_object__close(object);
  errno = error;
  return result == 0 && program_ >= 0 && sockets_ >= 0 && lanes_ != nullptr;
}

bool PortProgram::attach(unsigned lane, const Port& port) noexcept {
  if (links_[lane] >= 0) return true;
  int fd = link(port.in, XDP_FLAGS_DRV_MODE);
  const bool taken = errno == EBUSY || errno == EEXIST || errno == EPERM;
  // The kernel runs it where the driver hands the frames over, which one CPU does for a queue of a
  // card, one frame after another. (A veth pair has XDP; the loopback interface hands over on
  // whatever CPU sends.)
  if (fd < 0 && port.hardware && !taken) fd = link(port.in, XDP_FLAGS_SKB_MODE);
  if (fd < 0) return false;
  links_[lane] = fd;
  if (hearing_[lane].take(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0)))
    hear_all(hearing_[lane].fd(), port.in);
  constexpr unsigned patience_s = 5, looks_a_s = 100;
  for (unsigned look = 0; look < patience_s * looks_a_s; ++look) {
    if (has_link(port.in) && has_link(port.out)) break;
    usleep(1'000'000 / looks_a_s);
  }
  return true;
}

void PortProgram::detach() noexcept {
  for (int& fd : links_) {
    if (fd >= 0) close(fd);
    fd = -1;
  }
  for (PortSocket& socket : hearing_) socket.close();
}

int PortProgram::link(unsigned interface, std::uint32_t where) noexcept {
  LIBBPF_OPTS(bpf_link_create_opts, options, .flags = where);
  const int fd = bpf_link_create(program_, static_cast<int>(interface), BPF_XDP, &options);
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  const int kept = keep(fd);
  close(fd);
  return kept;
}

bool PortProgram::connect(unsigned lane, int socket) noexcept {
  return bpf_map_update_elem(sockets_, &lane, &socket, BPF_ANY) == 0;
}

void PortProgram::disconnect(unsigned lane) noexcept {
  bpf_map_delete_elem(sockets_, &lane);
}

}  // namespace haul::nic
