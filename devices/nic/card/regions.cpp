#include "devices/nic/card/regions.hpp"

namespace haul::nic {

void CardRegions::start(VfioDevice& device) noexcept {
  device_ = &device;
  space_ = device.offered();
}

Code CardRegions::add(std::uintptr_t address, std::size_t bytes, std::uint64_t* region) noexcept {
  std::uint64_t place = 0;
  while (place < IovaSpace::most_regions && mapped_[place].bytes != 0) ++place;
  const std::uint64_t iova = place < IovaSpace::most_regions ? space_.take(bytes) : 0;
  if (iova == 0) return Code::no_memory;
  const Code code = device_->map(address, bytes, iova);
  if (code != Code::ok) {
    space_.give_back(iova);
    return code;
  }
  mapped_[place] = {address, bytes, iova};
  *region = place + 1;
  return Code::ok;
}

void CardRegions::remove(std::uint64_t region) noexcept {
  Mapped& mapped = mapped_[region - 1];
  // (What the kernel did not unmap stays taken: a later mapping there would fail.)
  if (device_->unmap(mapped.iova, mapped.bytes)) space_.give_back(mapped.iova);
  mapped = {};
}

bool CardRegions::find(std::uint64_t region, std::uintptr_t address, std::size_t bytes,
                       std::uint64_t* shift) const noexcept {
  if (region == 0 || region > IovaSpace::most_regions) return false;
  const Mapped& mapped = mapped_[region - 1];
  // (Below its begin, the difference is beyond its end.)
  const std::uintptr_t from_begin = address - mapped.address;
  if (from_begin > mapped.bytes || bytes > mapped.bytes - from_begin) return false;
  *shift = mapped.iova - mapped.address;
  return true;
}

}  // namespace haul::nic
