// Address spaces other than this process's, and ranges of them that requests can name.
#pragma once

#include <haul/haul.h>
#include <nanobind/nanobind.h>

#include <atomic>
#include <memory>

namespace haul_python {

namespace nb = nanobind;

// A space that is open until its last range is gone, or close() is called.
class SpaceObject {
 public:
  explicit SpaceObject(haul_space handle, std::size_t bytes) : handle_(handle), bytes_(bytes) {}
  SpaceObject(const SpaceObject&) = delete;
  SpaceObject& operator=(const SpaceObject&) = delete;
  ~SpaceObject() { close(); }
  // Raises ValueError once it is closed.
  haul_space handle() const;
  // How long it is: what was granted; 0 where nobody can say (a process, a device).
  std::size_t bytes() const { return bytes_; }
  void close();

 private:
  std::atomic<haul_space> handle_;
  std::size_t bytes_;
};

// Bytes [address, address + bytes) of a space: haul.Extent.
struct ExtentObject {
  std::shared_ptr<SpaceObject> space;
  std::size_t address;
  std::size_t bytes;
};

// The space of a GPU, opened at its first use and kept.
haul_space device_space(int number);

// Defines Space, Extent, Grant, share(), attach(), process() and device().
void define_spaces(nb::module_& module);

}  // namespace haul_python
