// Memory that is registered with a card: mapped for it through the IOMMU, which pins its pages.
// add() and remove() one at a time, from any thread; find() by the thread that drives the card, of
// a region that stays registered meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/error.hpp"
#include "devices/nic/card/iova.hpp"
#include "devices/nic/card/vfio.hpp"

namespace haul::nic {

class CardRegions {
 public:
  void start(VfioDevice& device) noexcept;
  // As Registrar::pin() and unpin().
  Code add(std::uintptr_t address, std::size_t bytes, std::uint64_t* region) noexcept;
  void remove(std::uint64_t region) noexcept;

  // Are all these bytes in the region? Then *shift added to their address is where the card finds
  // them.
  bool find(std::uint64_t region, std::uintptr_t address, std::size_t bytes,
            std::uint64_t* shift) const noexcept;

 private:
  struct Mapped {
    std::uintptr_t address = 0;
    std::size_t bytes = 0;  // 0: none
    std::uint64_t iova = 0;
  };

  VfioDevice* device_ = nullptr;
  IovaSpace space_;
  Mapped mapped_[IovaSpace::most_regions];  // a region is named by its place and one
};

}  // namespace haul::nic
