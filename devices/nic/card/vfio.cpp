#include "devices/nic/card/vfio.hpp"

#include <fcntl.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace haul::nic {
namespace {

constexpr char devices[] = "/sys/bus/pci/devices";

// The name that a link of the device's ends in; empty: there is no such link.
struct LinkedName {
  char text[64] = {};
};
LinkedName linked(const char* address, const char* link) noexcept {
  char path[128], target[256];
  std::snprintf(path, sizeof path, "%s/%s/%s", devices, address, link);
  const ssize_t length = readlink(path, target, sizeof target - 1);
  LinkedName name;
  if (length <= 0) return name;
  target[length] = '\0';
  const char* const slash = std::strrchr(target, '/');
  std::snprintf(name.text, sizeof name.text, "%.63s", slash != nullptr ? slash + 1 : target);
  return name;
}

// Why a call failed; or none has, and what it said is not what this program knows.
const char* reason() noexcept {
  return errno != 0 ? strerrordesc_np(errno) : "it is of another kind than haul knows";
}

bool read_number(const char* address, const char* file, std::uint16_t* number) noexcept {
  char path[128], text[16] = {};
  std::snprintf(path, sizeof path, "%s/%s/%s", devices, address, file);
  PortSocket opened;
  if (!opened.take(::open(path, O_RDONLY | O_CLOEXEC)) ||
      read(opened.fd(), text, sizeof text - 1) <= 0)
    return false;
  *number = static_cast<std::uint16_t>(std::strtoul(text, nullptr, 16));
  return true;
}

}  // namespace

bool VfioDevice::identify(const char* address, PciIdentity* identity, char* sentence,
                          std::size_t bytes) noexcept {
  if (std::strchr(address, '/') == nullptr && read_number(address, "vendor", &identity->vendor) &&
      read_number(address, "device", &identity->device))
    return true;
  std::snprintf(sentence, bytes,
                "there is no PCI device %.40s; name the card as 0000:00:03.0 in HAUL_ENGINE_NIC "
                "(`lspci -D` lists them)",
                address);
  return false;
}

bool VfioDevice::open(const char* address, char* sentence, std::size_t bytes) noexcept {
  if (open_group(address, sentence, bytes) && open_device(address, sentence, bytes)) return true;
  close();
  return false;
}

bool VfioDevice::open_group(const char* address, char* sentence, std::size_t bytes) noexcept {
  const LinkedName driver = linked(address, "driver"), group = linked(address, "iommu_group");
  if (std::strcmp(driver.text, "vfio-pci") != 0) {
    std::snprintf(
        sentence, bytes,
        "%s has the driver '%.16s'; as root, A its address: cd /sys/bus/pci; echo vfio-pci "
        ">devices/A/driver_override; echo A >devices/A/driver/unbind; echo A >drivers_probe",
        address, driver.text);
    return false;
  }
  if (group.text[0] == '\0') {
    std::snprintf(sentence, bytes,
                  "%s is in no IOMMU group, as the IOMMU is off; start Linux with intel_iommu=on, "
                  "and turn VT-d or AMD-Vi on in the firmware",
                  address);
    return false;
  }
  errno = 0;
  if (!container_.take(::open("/dev/vfio/vfio", O_RDWR | O_CLOEXEC)) ||
      ioctl(container_.fd(), VFIO_GET_API_VERSION) != VFIO_API_VERSION) {
    std::snprintf(sentence, bytes,
                  "/dev/vfio/vfio cannot be opened (%s); `modprobe vfio-pci` as root, start Linux "
                  "with intel_iommu=on, and let the user read and write it",
                  reason());
    return false;
  }
  char path[96];
  std::snprintf(path, sizeof path, "/dev/vfio/%s", group.text);
  if (!group_.take(::open(path, O_RDWR | O_CLOEXEC))) {
    const int error = errno;
    std::snprintf(sentence, bytes,
                  error == EBUSY ? "another program has the card %s (%s: %s); end it"
                                 : "the card %s may not be opened (%s: %s); as root give that file "
                                   "to the user who is to have the card",
                  address, path, strerrordesc_np(error));
    return false;
  }
  vfio_group_status status{};
  status.argsz = sizeof status;
  if (ioctl(group_.fd(), VFIO_GROUP_GET_STATUS, &status) != 0 ||
      (status.flags & VFIO_GROUP_FLAGS_VIABLE) == 0) {
    std::snprintf(sentence, bytes,
                  "the IOMMU group %s of %s holds other devices with drivers of Linux' own; bind "
                  "them to vfio-pci, too, or put the card in another slot",
                  group.text, address);
    return false;
  }
  const int container = container_.fd();
  if (ioctl(group_.fd(), VFIO_GROUP_SET_CONTAINER, &container) != 0 ||
      ioctl(container_.fd(), VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU) != 0) {
    const int error = errno;
    std::snprintf(sentence, bytes,
                  "the IOMMU does not take the card %s (%s); `modprobe vfio_iommu_type1`, and turn "
                  "interrupt remapping on (the log of Linux says what is missing)",
                  address, strerrordesc_np(error));
    return false;
  }
  return true;
}

bool VfioDevice::open_device(const char* address, char* sentence, std::size_t bytes) noexcept {
  vfio_region_info bar{}, configuration{};
  bar.argsz = configuration.argsz = sizeof bar;
  bar.index = VFIO_PCI_BAR0_REGION_INDEX;
  configuration.index = VFIO_PCI_CONFIG_REGION_INDEX;
  constexpr std::uint32_t wanted =
      VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE | VFIO_REGION_INFO_FLAG_MMAP;
  errno = 0;
  bool opened = device_.take(ioctl(group_.fd(), VFIO_GROUP_GET_DEVICE_FD, address)) &&
                ioctl(device_.fd(), VFIO_DEVICE_GET_REGION_INFO, &bar) == 0 &&
                ioctl(device_.fd(), VFIO_DEVICE_GET_REGION_INFO, &configuration) == 0;
  if (opened && (bar.flags & wanted) == wanted) {
    void* const mapped = mmap(nullptr, bar.size, PROT_READ | PROT_WRITE, MAP_SHARED, device_.fd(),
                              static_cast<off_t>(bar.offset));
    if (mapped != MAP_FAILED) {
      registers_ = static_cast<volatile std::uint32_t*>(mapped);
      register_bytes_ = bar.size;
      configuration_ = configuration.offset;
      opened = madvise(mapped, bar.size, MADV_DONTFORK) == 0;
    }
  }
  if (opened && registers_ != nullptr && find_offered()) return true;
  std::snprintf(sentence, bytes,
                "the registers of the card %s cannot be mapped (%s); see what Linux' log says of "
                "vfio-pci",
                address, reason());
  return false;
}

// The addresses that the IOMMU can translate, without those that stand for interrupts.
bool VfioDevice::find_offered() noexcept {
  alignas(8) unsigned char room[4096] = {};
  auto* const info = reinterpret_cast<vfio_iommu_type1_info*>(room);
  info->argsz = sizeof room;
  if (ioctl(container_.fd(), VFIO_IOMMU_GET_INFO, info) != 0) return false;
  bool found = false;
  if ((info->flags & VFIO_IOMMU_INFO_CAPS) != 0) {
    for (std::uint32_t at = info->cap_offset; at != 0 && at < sizeof room;) {
      const auto* const header = reinterpret_cast<const vfio_info_cap_header*>(room + at);
      if (header->id == VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE) {
        const auto* const ranges =
            reinterpret_cast<const vfio_iommu_type1_info_cap_iova_range*>(header);
        for (std::uint32_t i = 0; i < ranges->nr_iovas; ++i) {
          const auto& range = ranges->iova_ranges[i];
          offered_.offer({range.start, range.end + 1 == 0 ? range.end : range.end + 1});
          found = true;
        }
      }
      at = header->next;
    }
  }
  // (Linux before 5.4 does not say; each IOMMU has these.)
  if (!found) offered_.offer({std::uint64_t{1} << 32, std::uint64_t{1} << 38});
  return true;
}

void VfioDevice::close() noexcept {
  if (registers_ != nullptr) munmap(const_cast<std::uint32_t*>(registers_), register_bytes_);
  registers_ = nullptr;
  device_.close();
  group_.close();
  container_.close();
}

bool VfioDevice::let_access_memory(bool on) noexcept {
  std::uint16_t command = 0;
  const auto at = static_cast<off_t>(configuration_ + PCI_COMMAND);
  if (pread(device_.fd(), &command, sizeof command, at) != sizeof command) return false;
  command =
      static_cast<std::uint16_t>(on ? command | PCI_COMMAND_MASTER : command & ~PCI_COMMAND_MASTER);
  if (pwrite(device_.fd(), &command, sizeof command, at) != sizeof command) return false;
  // (Reading pushes what the device has written before it.)
  return pread(device_.fd(), &command, sizeof command, at) == sizeof command;
}

Code VfioDevice::map(std::uintptr_t address, std::size_t bytes, std::uint64_t iova) noexcept {
  vfio_iommu_type1_dma_map wanted{};
  wanted.argsz = sizeof wanted;
  wanted.flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE;
  wanted.vaddr = address;
  wanted.iova = iova;
  wanted.size = bytes;
  if (ioctl(container_.fd(), VFIO_IOMMU_MAP_DMA, &wanted) == 0) return Code::ok;
  return errno == EFAULT                                         ? Code::fault
         : errno == ENOMEM || errno == ENOSPC || errno == EAGAIN ? Code::no_memory
                                                                 : Code::io;
}

bool VfioDevice::unmap(std::uint64_t iova, std::size_t bytes) noexcept {
  vfio_iommu_type1_dma_unmap gone{};
  gone.argsz = sizeof gone;
  gone.iova = iova;
  gone.size = bytes;
  return ioctl(container_.fd(), VFIO_IOMMU_UNMAP_DMA, &gone) == 0;
}

}  // namespace haul::nic
