#include "python/src/atomic/remote_words.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

#include "python/src/errors/failure.hpp"
#include "python/src/errors/without_gil.hpp"

namespace haul_python {
namespace {

struct RemoteObject {
  SharedNode node;  // outlives the connection
  haul::atomic::remote remote;
  std::size_t bytes;
};

SharedNode open_node(const std::string& responder, std::optional<std::string> host, int port,
                     double timeout, unsigned sessions, unsigned connections,
                     std::optional<int> cpu) {
  if (port < 0 || port > 65535)
    raise(PyExc_ValueError, "a port is a number from 0 to 65535 (0: any)");
  if (!(timeout > 0 && timeout < 1e9))
    raise(PyExc_ValueError, "a timeout is a number of seconds above 0");
  haul_atomic_node_options options{};
  options.port = static_cast<std::uint16_t>(port);
  options.host = host ? host->c_str() : nullptr;
  options.timeout_ns = static_cast<std::uint64_t>(timeout * 1e9);
  options.sessions = sessions;
  options.connections = connections;
  options.cpu_plus_1 = cpu ? *cpu + 1 : 0;
  auto node = without_gil([&] { return std::make_unique<haul::atomic::node>(responder, options); });
  return {node.release(), [](haul::atomic::node* last) { without_gil([&] { delete last; }); }};
}

nb::dict counters(const NodeObject& object) {
  const SharedNode held = object.open();
  haul_atomic_node* node = held->raw();
  std::vector<std::uint64_t> values(
      static_cast<std::size_t>(haul::check(haul_atomic_node_counters(node, nullptr, 0))));
  haul::check(haul_atomic_node_counters(node, values.data(), values.size()));
  nb::dict named;
  for (std::size_t i = 0; i < values.size(); ++i)
    named[haul_atomic_node_counter_name(i)] = values[i];
  return named;
}

RemoteObject connect(const NodeObject& object, const std::string& text) {
  const haul_atomic_window_name name = haul::atomic::parse(text);
  const SharedNode node = object.open();
  auto remote = without_gil([&] { return haul::atomic::remote(*node, name); });
  return {node, std::move(remote), static_cast<std::size_t>(name.bytes)};
}

int give_memory(PyObject* self, Py_buffer* view, int flags) {
  const auto memory = nb::inst_ptr<WindowObject>(nb::handle(self))->window().memory();
  return PyBuffer_FillInfo(view, self, memory.data(), static_cast<Py_ssize_t>(memory.size()), 0,
                           flags);
}
PyType_Slot window_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&give_memory)},
                              {0, nullptr}};

haul_atomic_code code_of(nb::handle object) {
  const std::string word = nb::str(object).c_str();
  static constexpr std::pair<std::string_view, haul_atomic_code> codes[] = {
      {"read", HAUL_ATOMIC_READ}, {"write", HAUL_ATOMIC_WRITE}, {"add", HAUL_ATOMIC_ADD},
      {"swap", HAUL_ATOMIC_SWAP}, {"cas", HAUL_ATOMIC_CAS},     {"and", HAUL_ATOMIC_AND},
      {"or", HAUL_ATOMIC_OR},     {"xor", HAUL_ATOMIC_XOR}};
  for (const auto& [name, code] : codes) {
    if (name == word) return code;
  }
  raise(PyExc_ValueError,
        "'" + word + "' is no operation; pass read, write, add, swap, cas, and, or, xor");
}

// Words are unsigned; a negative number stands for its two's complement.
std::uint64_t word_of(nb::handle number) {
  const nb::object integer = nb::steal(PyNumber_Index(number.ptr()));
  if (!integer.is_valid()) throw nb::python_error();
  return nb::cast<std::uint64_t>(integer & nb::int_(UINT64_MAX));
}

std::size_t offset_of(nb::handle number) {
  const std::size_t offset = PyLong_AsSize_t(number.ptr());
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  return offset;
}

struct Width {
  std::uint8_t bytes;
};
Width width_of(int bytes) {
  if (bytes != 4 && bytes != 8) raise(PyExc_ValueError, "a word has 4 or 8 bytes");
  return {static_cast<std::uint8_t>(bytes)};
}

haul_atomic_operation operation_of(const RemoteObject& remote, haul_atomic_code code,
                                   std::size_t offset, std::uint64_t operand, std::uint64_t compare,
                                   Width width, std::optional<std::uint64_t> token) {
  haul_atomic_operation operation{};
  operation.code = static_cast<std::uint8_t>(code);
  operation.width = width.bytes;
  operation.address = remote.remote.address(offset);
  operation.operand = operand;
  operation.compare = compare;
  if (token) {
    operation.flags = HAUL_ATOMIC_GUARDED;
    operation.token = *token;
  }
  return operation;
}

std::uint64_t run_one(const RemoteObject& remote, haul_atomic_operation operation) {
  without_gil([&] { remote.remote.run({&operation, 1}); });
  return operation.old;
}

// Binds a single operation of one operand.
template <haul_atomic_code Code>
std::uint64_t one(const RemoteObject& remote, std::size_t offset, nb::handle value, int width,
                  std::optional<std::uint64_t> token) {
  return run_one(remote,
                 operation_of(remote, Code, offset, word_of(value), 0, width_of(width), token));
}

// (operation, offset[, operand[, compare]]) each.
nb::list run_batch(const RemoteObject& remote, nb::sequence batch, int width,
                   std::optional<std::uint64_t> token) {
  std::vector<haul_atomic_operation> operations;
  for (nb::handle each : batch) {
    const nb::tuple parts(nb::borrow(each));
    if (parts.size() < 2 || parts.size() > 4) {
      raise(PyExc_ValueError,
            "an operation is a tuple (word, offset, operand, compare), the last two as it needs "
            "them");
    }
    operations.push_back(
        operation_of(remote, code_of(nb::object(parts[0])), offset_of(nb::object(parts[1])),
                     parts.size() > 2 ? word_of(nb::object(parts[2])) : 0,
                     parts.size() > 3 ? word_of(nb::object(parts[3])) : 0, width_of(width), token));
  }
  if (operations.empty() || operations.size() > HAUL_ATOMIC_MAX_BATCH) {
    raise(PyExc_ValueError,
          "a batch has 1 to " + std::to_string(HAUL_ATOMIC_MAX_BATCH) + " operations");
  }
  without_gil([&] { remote.remote.run(operations); });
  nb::list words;
  for (const haul_atomic_operation& operation : operations) words.append(operation.old);
  return words;
}

}  // namespace

SharedNode NodeObject::open() const {
  SharedNode node;
  {
    nb::ft_lock_guard guard(mutex_);
    node = node_;
  }
  if (!node) raise(PyExc_ValueError, "this node is closed; open another");
  return node;
}

void NodeObject::close() {
  SharedNode last;
  nb::ft_lock_guard guard(mutex_);
  last.swap(node_);
}

void define_remote_words(nb::module_& module) {
  nb::class_<WindowObject>(
      module, "Window", nb::type_slots(window_slots),
      "Memory on which remote atomics may act; made by Node.window() or attach().\n\n"
      "It has the buffer protocol: numpy.frombuffer(window, \"u8\") are its words here, which\n"
      "the operations change, too.")
      .def_prop_ro("name", &WindowObject::name,
                   "What others pass to Node.connect(): one word of text, with a key.")
      .def_prop_ro(
          "nbytes", [](const WindowObject& window) { return window.window().memory().size(); },
          "Its length in bytes.")
      .def("__len__", [](const WindowObject& window) { return window.window().memory().size(); });
  nb::class_<NodeObject>(
      module, "Node",
      "A place in the network: it may serve windows, and reach those of other nodes.\n\n"
      "responder: who executes what others ask: \"none\", \"block[:ADDRESS]\", \"spin\", "
      "\"poll\",\n"
      "\"xdp:INTERFACE\" (root), \"fabric:PROVIDER\"; atomic.h has all. host: what windows' names "
      "say.\n"
      "port: UDP port, 0 for any. timeout: seconds until an operation without an answer fails.\n"
      "sessions, connections: room for clients, for connections with a completion map; 0: "
      "default.\n"
      "cpu: the responder's thread's. Raises haul.Error. May take a second.")
      .def(
          "__init__",
          [](NodeObject* self, const std::string& responder, std::optional<std::string> host,
             int port, double timeout, unsigned sessions, unsigned connections,
             std::optional<int> cpu) {
            new (self) NodeObject(
                open_node(responder, std::move(host), port, timeout, sessions, connections, cpu));
          },
          nb::arg("responder") = "none", nb::kw_only(), nb::arg("host") = nb::none(),
          nb::arg("port") = 0, nb::arg("timeout") = 5.0, nb::arg("sessions") = 0,
          nb::arg("connections") = 0, nb::arg("cpu") = nb::none())
      .def(
          "window",
          [](const NodeObject& node, std::size_t bytes) {
            return new WindowObject(haul::atomic::window(*node.open(), bytes));
          },
          nb::arg("nbytes"), nb::keep_alive<0, 1>(),
          "Makes a zeroed window of nbytes bytes; at most 256 a node.")
      .def("connect", &connect, nb::arg("name"),
           "Connects to a window of another node, by its name. Waits for up to the node's timeout.")
      .def(
          "describe", [](const NodeObject& node) { return node.open()->description(); },
          "Who serves, how, and why not as asked, in one line.")
      .def("counters", &counters, "What it has served and dropped: a dict of numbers.")
      .def(
          "close", &NodeObject::close,
          "Closes it, once the last of its connections and locks is gone, too. Its windows' memory "
          "stays.")
      .def(
          "__enter__", [](nb::object self) { return self; }, nb::sig("def __enter__(self) -> Node"))
      .def(
          "__exit__", [](NodeObject& node, nb::args) { node.close(); },
          nb::sig("def __exit__(self, *exception: object) -> None"));
  const auto width = nb::arg("width") = 8;
  const auto token = nb::arg("token") = nb::none();
  nb::class_<RemoteObject>(
      module, "Remote",
      "Another node's window, as reached from here; made by Node.connect().\n\n"
      "Offsets are bytes from the window's beginning, multiples of width. Words are unsigned, of "
      "width 8 or 4 bytes;\n"
      "negative operands are taken as two's complement. Each call waits for its answer (a round "
      "trip, without the\n"
      "GIL) and returns the word before the operation. token: a fencing token (haul.Lock), which "
      "makes the word a\n"
      "guarded one. Raises haul.Error: EFAULT (outside the window), ETIMEDOUT, ESTALE (an old "
      "token), EPEER.")
      .def_prop_ro(
          "nbytes", [](const RemoteObject& remote) { return remote.bytes; }, "The window's length.")
      .def(
          "read",
          [](const RemoteObject& remote, std::size_t offset, int bytes,
             std::optional<std::uint64_t> fence) {
            return run_one(remote, operation_of(remote, HAUL_ATOMIC_READ, offset, 0, 0,
                                                width_of(bytes), fence));
          },
          nb::arg("offset"), nb::kw_only(), width, token, "The word.")
      .def(
          "write",
          [](const RemoteObject& remote, std::size_t offset, nb::handle value, int bytes,
             std::optional<std::uint64_t> fence) {
            run_one(remote, operation_of(remote, HAUL_ATOMIC_WRITE, offset, word_of(value), 0,
                                         width_of(bytes), fence));
          },
          nb::arg("offset"), nb::arg("value"), nb::kw_only(), width, token,
          "Writes a word; returns None.")
      .def("fetch_add", &one<HAUL_ATOMIC_ADD>, nb::arg("offset"), nb::arg("value"), nb::kw_only(),
           width, token, "Adds.")
      .def("fetch_write", &one<HAUL_ATOMIC_SWAP>, nb::arg("offset"), nb::arg("value"),
           nb::kw_only(), width, token, "Writes, and fetches what was there.")
      .def("fetch_and", &one<HAUL_ATOMIC_AND>, nb::arg("offset"), nb::arg("value"), nb::kw_only(),
           width, token, "Clears the bits that value has not.")
      .def("fetch_or", &one<HAUL_ATOMIC_OR>, nb::arg("offset"), nb::arg("value"), nb::kw_only(),
           width, token, "Sets the bits that value has.")
      .def("fetch_xor", &one<HAUL_ATOMIC_XOR>, nb::arg("offset"), nb::arg("value"), nb::kw_only(),
           width, token, "Turns the bits that value has.")
      .def(
          "compare_swap",
          [](const RemoteObject& remote, std::size_t offset, nb::handle value, nb::handle compare,
             int bytes, std::optional<std::uint64_t> fence) {
            return run_one(remote, operation_of(remote, HAUL_ATOMIC_CAS, offset, word_of(value),
                                                word_of(compare), width_of(bytes), fence));
          },
          nb::arg("offset"), nb::arg("value"), nb::arg("compare"), nb::kw_only(), width, token,
          "Writes value if the word equals compare; it did if the result equals compare.")
      .def("run", &run_batch, nb::arg("operations"), nb::kw_only(), width, token,
           "1 to 16 operations as one packet, executed in order: tuples (word, offset, operand, "
           "compare), such as\n"
           "(\"add\", 0, 1); words are read, write, add, swap, cas, and, or, xor. Returns the old "
           "words, a list.");
  module.def(
      "attach",
      [](const std::string& name) {
        const haul_atomic_window_name parsed = haul::atomic::parse(name);
        return new WindowObject(without_gil([&] { return haul::atomic::window(parsed); }));
      },
      nb::arg("name"), "Maps the window of another process of this host and user, by its name.");
}

}  // namespace haul_python
