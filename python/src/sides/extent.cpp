#include "python/src/sides/extent.hpp"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <array>
#include <atomic>
#include <string>

#include "python/src/errors/failure.hpp"
#include "python/src/sides/export.hpp"

namespace haul_python {
namespace {

// A grant that this process has given: haul.Grant. Its memory is kept until the grant is taken
// back.
class GrantObject {
 public:
  GrantObject(nb::handle object, bool read, bool write)
      : memory_(object, write ? SideAccess::write : SideAccess::read, "memory") {
    if (!memory_.is_c_contiguous() || memory_.space() != HAUL_SPACE_SELF) {
      raise(PyExc_ValueError,
            "only contiguous memory of this process can be shared; pass a C-contiguous array");
    }
    const std::uint32_t rights = (read ? HAUL_SHARE_READ : 0u) | (write ? HAUL_SHARE_WRITE : 0u);
    int result;
    {
      nb::gil_scoped_release released;
      result = haul_share(memory_.data(), memory_.bytes(), rights, &raw_);
    }
    if (result < 0) throw haul::error(result);
    given_ = true;
  }
  GrantObject(const GrantObject&) = delete;
  ~GrantObject() { take_back(); }

  void close() { haul::check(take_back()); }
  int descriptor() const {
    if (!given_) raise(PyExc_ValueError, "this grant was taken back; share the memory again");
    return raw_.fd;
  }
  std::uint64_t index() const { return raw_.index; }
  std::size_t bytes() const { return memory_.bytes(); }

 private:
  int take_back() {
    if (!given_.exchange(false)) return 0;
    nb::gil_scoped_release released;
    return haul_unshare(&raw_);
  }

  Export memory_;
  haul_grant raw_{-1, 0, 0};
  std::atomic<bool> given_{false};
};

// Opening a space may wait for the service, or for a driver.
template <class Open>
std::shared_ptr<SpaceObject> open_space(Open open) {
  haul_space handle = HAUL_SPACE_SELF;
  std::size_t bytes = 0;
  int result;
  {
    nb::gil_scoped_release released;
    result = open(&handle, &bytes);
  }
  if (result < 0) throw haul::error(result);
  return std::make_shared<SpaceObject>(handle, bytes);
}

ExtentObject open_grant(int descriptor, std::uint64_t index) {
  const haul_grant grant{descriptor, 0, index};
  auto space = open_space([&](haul_space* handle, std::size_t* bytes) {
    return haul_space_open_grant(&grant, handle, bytes);
  });
  return {space, 0, space->bytes()};
}

std::shared_ptr<SpaceObject> process(int pid) {
  return open_space([&](haul_space* handle, std::size_t*) { return haul_space_open(pid, handle); });
}

std::shared_ptr<SpaceObject> device(const std::string& name) {
  return open_space([&](haul_space* handle, std::size_t*) {
    return haul_space_open_device(name.c_str(), handle);
  });
}

ExtentObject part_of(const ExtentObject& whole, nb::slice slice) {
  auto [start, stop, step, length] = slice.compute(whole.bytes);
  if (step != 1) raise(PyExc_ValueError, "a haul.Extent has no strides; slice it with a step of 1");
  return {whole.space, whole.address + static_cast<std::size_t>(start), length};
}

}  // namespace

haul_space SpaceObject::handle() const {
  const haul_space open = handle_;
  if (open == HAUL_SPACE_SELF) raise(PyExc_ValueError, "this space is closed; open it again");
  return open;
}

void SpaceObject::close() {
  const haul_space open = handle_.exchange(HAUL_SPACE_SELF);
  if (open != HAUL_SPACE_SELF) haul_space_close(open);
}

haul_space device_space(int number) {
  static nb::ft_mutex mutex;
  static std::array<std::shared_ptr<SpaceObject>, 64> spaces;
  if (number < 0 || number >= 64)
    raise(PyExc_ValueError, "there is no such GPU; haul opens numbers 0 to 63");
  nb::ft_lock_guard guard(mutex);
  auto& space = spaces[static_cast<std::size_t>(number)];
  if (!space) space = device("cuda:" + std::to_string(number));
  return space->handle();
}

void define_spaces(nb::module_& module) {
  nb::class_<SpaceObject>(
      module, "Space",
      "The memory of another process (haul.process()) or of a GPU (haul.device()), "
      "open for copies.")
      .def(
          "extent",
          [](std::shared_ptr<SpaceObject> space, std::size_t address, std::size_t bytes) {
            return ExtentObject{std::move(space), address, bytes};
          },
          nb::arg("address"), nb::arg("nbytes"),
          "nbytes bytes of it from an address on, in that space's addresses.")
      .def("close", &SpaceObject::close,
           "Closes it: copies that have not begun fail with ECLOSED. It is closed with its last "
           "extent, too.")
      .def(
          "__enter__", [](nb::object self) { return self; },
          nb::sig("def __enter__(self) -> Space"))
      .def(
          "__exit__", [](SpaceObject& self, nb::args) { self.close(); },
          nb::sig("def __exit__(self, *exception: object) -> None"));
  nb::class_<ExtentObject>(
      module, "Extent", nb::dynamic_attr(),
      "A range of another space, as a side of a copy. Slices are extents: extent[4096:8192].")
      .def_prop_ro(
          "nbytes", [](const ExtentObject& extent) { return extent.bytes; }, "Its length in bytes.")
      .def("__len__", [](const ExtentObject& extent) { return extent.bytes; })
      .def("__getitem__", &part_of)
      .def(
          "close", [](const ExtentObject& extent) { extent.space->close(); }, "Closes its space.");
  nb::class_<GrantObject>(
      module, "Grant", nb::dynamic_attr(),
      "Memory that other processes of the user may name in their copies; made by haul.share().\n\n"
      "Pass it on through multiprocessing (a Queue, a Pipe, an argument of Process), where it "
      "arrives as a\n"
      "haul.Extent, or over a Unix socket: send(), and haul.attach() there. `with` takes it back "
      "at the end.")
      .def("fileno", &GrantObject::descriptor,
           "The descriptor that stands for it; it is haul's, so do not close it.")
      .def_prop_ro("index", &GrantObject::index, "The number that goes with the descriptor.")
      .def_prop_ro("nbytes", &GrantObject::bytes, "How many bytes are shared.")
      .def("close", &GrantObject::close,
           "Takes the grant back: when it returns, nobody reads or writes there any more. Waits "
           "for the service.")
      .def(
          "__enter__", [](nb::object self) { return self; },
          nb::sig("def __enter__(self) -> Grant"))
      .def(
          "__exit__", [](GrantObject& self, nb::args) { self.close(); },
          nb::sig("def __exit__(self, *exception: object) -> None"));
  module.def(
      "_share",
      [](nb::handle object, bool read, bool write) {
        nb::object grant = nb::inst_alloc(nb::type<GrantObject>());
        new (nb::inst_ptr<GrantObject>(grant)) GrantObject(object, read, write);
        nb::inst_mark_ready(grant);
        return grant;
      },
      nb::arg("memory"), nb::arg("read"), nb::arg("write"),
      nb::sig("def _share(memory: object, read: bool, write: bool) -> Grant"));
  module.def("_open_grant", &open_grant, nb::arg("descriptor"), nb::arg("index"));
  module.def("process", &process, nb::arg("pid"),
             "Opens the memory of another process: haul.process(pid).extent(address, nbytes) is a "
             "side of copies.\n\n"
             "The kernel asks for the right to ptrace it, each time. Raises haul.Error (EPERM, "
             "EPEER, ENOTSUP).");
  module.def("device", &device, nb::arg("name") = "cuda:0",
             "Opens the memory of a GPU. Arrays with `__dlpack__` on a GPU need no such call.");
}

}  // namespace haul_python
