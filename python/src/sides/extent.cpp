#include "python/src/sides/extent.hpp"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "python/src/errors/failure.hpp"
#include "python/src/errors/without_gil.hpp"
#include "python/src/sides/export.hpp"

namespace haul_python {
namespace {

// A grant that this process has given: haul.Grant. Its memory is kept until the grant has been
// taken back, by close() or with the object.
class GrantObject {
 public:
  GrantObject(nb::handle object, bool read, bool write)
      : memory_(std::in_place, object, write ? SideAccess::write : SideAccess::read, "memory"),
        bytes_(memory_->bytes()),
        type_name_(numpy_name(memory_->items())) {
    if (!memory_->is_c_contiguous() || memory_->space() != HAUL_SPACE_SELF) {
      raise(PyExc_ValueError,
            "only contiguous memory of this process can be shared; pass a C-contiguous array");
    }
    const std::uint32_t rights = (read ? HAUL_SHARE_READ : 0u) | (write ? HAUL_SHARE_WRITE : 0u);
    haul::check(
        without_gil([&] { return haul_share(memory_->data(), memory_->bytes(), rights, &raw_); }));
    given_ = true;
    // haul closes its own descriptor in a child of fork, which may have this object from its
    // parent.
    key_ = fcntl(raw_.fd, F_DUPFD_CLOEXEC, 0);
    if (key_ < 0) {
      PyErr_SetFromErrno(PyExc_OSError);
      end();
      throw nb::python_error();
    }
  }
  GrantObject(const GrantObject&) = delete;
  ~GrantObject() {
    end();
    if (key_ >= 0) ::close(key_);
  }

  void close() {
    haul::check(take_back());
    std::optional<Export> done;
    nb::ft_lock_guard guard(mutex_);
    if (memory_) done.emplace(std::move(*memory_));
    memory_.reset();
  }
  int descriptor() const {
    if (!given_) raise(PyExc_ValueError, "this grant was taken back; share the memory again");
    return key_;
  }
  std::uint64_t index() const { return raw_.index; }
  std::size_t bytes() const { return bytes_; }
  // What the memory's elements are in numpy's words; empty where numpy has none for them.
  const std::string& type_name() const { return type_name_; }

 private:
  // 0 also where it was taken back before, as by another thread, which is waited for. After a
  // failure it can be asked for again.
  int take_back() {
    return without_gil([&] {
      if (getpid() != owner_) return haul_unshare(&raw_);  // a child has the lock as it was
      const std::lock_guard<std::mutex> lock(taking_back_);
      if (!given_) return 0;
      const int result = haul_unshare(&raw_);
      given_ = result == HAUL_ETIMEDOUT;
      return result;
    });
  }

  // Memory that the service may still use is never let go.
  void end() {
    if (take_back() == HAUL_ETIMEDOUT) new Export(std::move(*memory_));
  }

  std::optional<Export> memory_;
  std::size_t bytes_;
  std::string type_name_;
  haul_grant raw_{-1, 0, 0};
  int key_ = -1;
  const pid_t owner_ = getpid();
  std::mutex taking_back_;
  std::atomic<bool> given_{false};
  nb::ft_mutex mutex_;
};

// Opening a space may wait for the service, or for a driver.
template <class Open>
std::unique_ptr<SpaceObject> open_space(Open open) {
  haul_space handle = HAUL_SPACE_SELF;
  std::size_t bytes = 0;
  haul::check(without_gil([&] { return open(&handle, &bytes); }));
  return std::make_unique<SpaceObject>(handle, bytes);
}

ExtentObject open_grant(int descriptor, std::uint64_t index) {
  const haul_grant grant{descriptor, 0, index};
  std::shared_ptr<SpaceObject> space = open_space([&](haul_space* handle, std::size_t* bytes) {
    return haul_space_open_grant(&grant, handle, bytes);
  });
  return {space, 0, space->bytes()};
}

std::shared_ptr<SpaceObject> process(int pid) {
  return open_space([&](haul_space* handle, std::size_t*) { return haul_space_open(pid, handle); });
}

std::unique_ptr<SpaceObject> open_device(const std::string& name) {
  return open_space([&](haul_space* handle, std::size_t*) {
    return haul_space_open_device(name.c_str(), handle);
  });
}

std::shared_ptr<SpaceObject> device(const std::string& name) {
  return open_device(name);
}

ExtentObject extent_of(std::shared_ptr<SpaceObject> space, std::size_t address, std::size_t bytes) {
  constexpr std::size_t end = std::size_t{1} << 56;
  if (address > end || bytes > end - address)
    raise(PyExc_ValueError, "this range goes past 2**56, where no memory is; give another");
  return {std::move(space), address, bytes};
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
  static std::array<std::atomic<SpaceObject*>, 64> spaces{};
  if (number < 0 || number >= 64)
    raise(PyExc_ValueError, "there is no such GPU; haul opens numbers 0 to 63");
  std::atomic<SpaceObject*>& place = spaces[static_cast<std::size_t>(number)];
  if (SpaceObject* open = place.load(); open != nullptr) return open->handle();
  // Another thread may open it meanwhile; the first stays.
  std::unique_ptr<SpaceObject> opened = open_device("cuda:" + std::to_string(number));
  SpaceObject* first = nullptr;
  if (place.compare_exchange_strong(first, opened.get())) return opened.release()->handle();
  return first->handle();
}

void define_spaces(nb::module_& module) {
  nb::class_<SpaceObject>(
      module, "Space",
      "The memory of another process (haul.process()) or of a GPU (haul.device()), "
      "open for copies.")
      .def("extent", &extent_of, nb::arg("address"), nb::arg("nbytes"),
           "nbytes bytes of it from an address on, in that space's addresses. ValueError past "
           "2**56.")
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
      "It lasts as long as this object: keep it until others have what they want, and close() it, "
      "or leave its\n"
      "`with` block. Pass it on through multiprocessing (a Queue, a Pipe, an argument of Process), "
      "where it\n"
      "arrives as a haul.Extent (a child of fork gets it as it is, and haul.attach() makes an "
      "Extent of it there),\n"
      "or over a Unix socket: send(), and haul.attach() there.")
      .def("fileno", &GrantObject::descriptor,
           "The descriptor that stands for it; it is the grant's, so do not close it.")
      .def_prop_ro("index", &GrantObject::index, "The number that goes with the descriptor.")
      .def_prop_ro("nbytes", &GrantObject::bytes, "How many bytes are shared.")
      .def_prop_ro("_type_name", &GrantObject::type_name)
      .def("close", &GrantObject::close,
           "Takes the grant back: when it returns, nobody reads or writes there any more, and the "
           "memory is let go.\n"
           "Waits for the service. Raises haul.Error: ETIMEDOUT where the service does not answer "
           "for 5 s (the memory\n"
           "is kept; close it again), EINVAL in a child of fork, which has granted nothing.")
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
  module.def(
      "device", &device, nb::arg("name") = "cuda:0",
      "Opens the memory of a GPU. Arrays with `__dlpack__` on a GPU need no such call.\n\n"
      "name: cuda:0 to cuda:63. May take seconds, without the GIL. Raises haul.Error: ENOTSUP "
      "(no such GPU,\n"
      "driver or engine), EINVAL (a name of another form), EIO (it cannot be used).");
}

}  // namespace haul_python
