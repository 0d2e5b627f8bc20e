#include "python/src/copy.hpp"

#include "python/src/errors/failure.hpp"
#include "python/src/pattern.hpp"
#include "python/src/plan.hpp"
#include "python/src/sides/side.hpp"
#include "python/src/submit.hpp"
#include "python/src/tickets/abandoned.hpp"
#include "python/src/tickets/completions.hpp"

namespace haul_python {
namespace {

bool is_plain(const Export& memory) {
  return memory.space() == HAUL_SPACE_SELF && memory.is_c_contiguous();
}

// Both sides as they were asked for, checked against each other.
std::pair<CopySide, CopySide> read_sides(nb::handle dst, nb::handle src) {
  CopySide to;
  CopySide from;
  if (!PyList_Check(dst.ptr()) && !PyTuple_Check(dst.ptr()) && !PyList_Check(src.ptr()) &&
      !PyTuple_Check(src.ptr())) {
    Export dst_memory(dst, SideAccess::write, "destination");
    Export src_memory(src, SideAccess::read, "source");
    check_match(dst_memory, src_memory);
    const bool as_they_lie = both_column_major(dst_memory, src_memory);
    to = as_they_lie ? source_of(std::move(dst_memory), true)
                     : destination_of(std::move(dst_memory));
    from = source_of(std::move(src_memory), as_they_lie);
  } else {
    to = read_destination(dst);
    from = read_source(src);
    check_match(to, from);
  }
  check_apart(to, from);
  return {std::move(to), std::move(from)};
}

std::vector<Export> memory_of(CopySide& dst, CopySide& src) {
  std::vector<Export> memory = std::move(dst.memory);
  for (Export& each : src.memory) memory.push_back(std::move(each));
  return memory;
}

// (Those of several requests, which would fill the queue, are looked at now and then.)
nb::object submit_all(Requests& requests, std::size_t bytes, std::vector<Export> memory) {
  const std::uint64_t completion = requests.several() ? 0 : completion_for(bytes);
  return new_ticket(requests.submit(bytes, completion, std::move(memory)), bytes, completion);
}

nb::object copy_with(nb::handle dst, nb::handle src, const CopyOptions& options) {
  auto [to, from] = read_sides(dst, src);
  const std::size_t bytes = to.bytes;
  Requests requests(to, &from, options);
  return submit_all(requests, bytes, memory_of(to, from));
}

// The common case: two objects, each in one piece, and everything else as it is by default.
nb::object copy(nb::handle dst, nb::handle src) {
  look_at_abandoned();
  if (PyObject_CheckBuffer(dst.ptr()) && PyObject_CheckBuffer(src.ptr())) {
    Export to(dst, SideAccess::write, "destination");
    Export from(src, SideAccess::read, "source");
    check_match(to, from);
    const std::size_t bytes = to.bytes();
    if (is_plain(to) && is_plain(from) && completion_for(bytes) == 0) {
      RequestsInFlight requests;
      {
        LongSubmit submit(bytes, 0);
        requests.first = haul_copy(to.data(), from.data(), bytes);
        submit.ran_inline(haul_test(requests.first) != 0);
      }
      if (haul_test(requests.first) == 1) return new_ended_ticket(bytes);
      requests.memory.reserve(2);
      requests.memory.push_back(std::move(to));
      requests.memory.push_back(std::move(from));
      return new_ticket(std::move(requests), bytes, 0);
    }
  }
  return copy_with(dst, src, CopyOptions{});
}

Requests fill_requests(const CopySide& to, nb::handle value, const CopyOptions& options) {
  const ItemType type = to.memory.empty() ? ItemType{} : to.memory.front().items();
  const Pattern pattern = read_pattern(value, type);
  for (const haul_extent& piece : to.pieces) {
    if (piece.length % pattern.bytes != 0) {
      raise(PyExc_ValueError, "the destination has " + std::to_string(piece.length) +
                                  " bytes, which is no multiple of the "
                                  "pattern's " +
                                  std::to_string(pattern.bytes) + "; pass a shorter pattern");
    }
  }
  Requests requests(to, nullptr, options);
  requests.fill_with(pattern.word, pattern.bytes);
  return requests;
}

nb::object fill(nb::handle dst, nb::handle value, const CopyOptions& options) {
  look_at_abandoned();
  CopySide to = read_destination(dst);
  check_apart(to, CopySide{});
  const std::size_t bytes = to.bytes;
  Requests requests = fill_requests(to, value, options);
  return submit_all(requests, bytes, std::move(to.memory));
}

PlanObject explain(nb::handle dst, nb::handle src, nb::object value, const CopyOptions& options) {
  if (!src.is_none() && !value.is_none()) {
    raise(PyExc_TypeError, "explain() takes a source or a value to fill with, not both");
  }
  if (!src.is_none()) {
    auto [to, from] = read_sides(dst, src);
    return plan_of(Requests(to, &from, options).front());
  }
  const CopySide to = read_destination(dst);
  return plan_of(fill_requests(to, value.is_none() ? nb::bytes("\0", 1) : value, options).front());
}

constexpr const char* copy_signature =
    "def copy(dst: haul._typing.Side, src: haul._typing.Side, *, dst_affinity: "
    "haul._typing.Affinity = 'cacheable', "
    "src_affinity: haul._typing.Affinity = 'cacheable', mover: haul._typing.Mover = 'auto', fence: "
    "bool = False, "
    "checked: bool = False, nonblock: bool = False) -> Ticket";
constexpr const char* copy_text =
    "Copies all of src to dst, byte by byte, and returns a Ticket; long copies go on while the "
    "program computes.\n\n"
    "dst: a writable, C-contiguous object with the buffer protocol or `__dlpack__`, a haul.Extent, "
    "or a list of these,\n"
    "filled in order. src: likewise; it may be read-only, and may have gaps (a slice of columns), "
    "if its stretches\n"
    "without gaps have 64 bytes or more. Shapes need not agree, sizes must: elements are taken in "
    "row-major order,\n"
    "or, where both sides are column-major arrays of one shape, as they lie. Two objects in one "
    "piece may overlap.\n\n"
    "dst_affinity, src_affinity: what the copy does to the caches on that side (a hint). mover: "
    "who moves the bytes;\n"
    "by default haul's planner decides (haul.explain()). fence: start only after all earlier "
    "copies of this thread.\n"
    "checked: memory that is not mapped makes wait() raise EFAULT instead of ending the process; "
    "slower. nonblock:\n"
    "raise EAGAIN where 256 requests of the thread are under way, instead of copying here.\n\n"
    "Nothing has moved where it raises: ValueError (sizes differ, dst is read-only or not "
    "contiguous, pieces overlap),\n"
    "TypeError (element types differ, and neither is bytes; an object without memory), BufferError "
    "(an exporter\n"
    "refuses), haul.Error. (A part has moved where one of more than 1024 pieces raises haul.Error, "
    "as "
    "with nonblock.)\n"
    "What goes wrong later Ticket.wait() raises. Any thread may call.";
constexpr const char* fill_signature =
    "def fill(dst: haul._typing.Side, value: complex | bytes = 0, *, dst_affinity: "
    "haul._typing.Affinity = 'cacheable', "
    "mover: haul._typing.Mover = 'auto', fence: bool = False, checked: bool = False, nonblock: "
    "bool = False) -> Ticket";
constexpr const char* fill_text =
    "Fills dst with a value, and returns a Ticket.\n\n"
    "dst: as for copy(). value: of dst's element type (a list's first one), which has 1, 2, 4 or 8 "
    "bytes; or a bytes\n"
    "object of that length, repeated from dst's first byte on. The others as for copy(). Raises as "
    "copy(), and\n"
    "ValueError where the value is none of that type.";
constexpr const char* explain_signature =
    "def explain(dst: haul._typing.Side, src: haul._typing.Side | None = None, value: "
    "complex | "
    "bytes | None = None, *, "
    "dst_affinity: haul._typing.Affinity = 'cacheable', src_affinity: haul._typing.Affinity = "
    "'cacheable', "
    "mover: haul._typing.Mover = 'auto', fence: bool = False, checked: bool = False, nonblock: "
    "bool = False) -> Plan";
constexpr const char* explain_text =
    "What haul would do now with copy(dst, src, ...), or, without src, with fill(dst, value, ...), "
    "and why: a Plan.\n\n"
    "Moves nothing. print(haul.explain(dst, src)) gives the reasons. Raises as copy() and fill().";

nb::object copy_as_asked(nb::handle dst, nb::handle src, nb::handle dst_affinity,
                         nb::handle src_affinity, nb::handle mover, nb::handle fence,
                         nb::handle checked, nb::handle nonblock) {
  const Keywords words{dst_affinity, src_affinity, mover, fence, checked, nonblock};
  if (words.none()) return copy(dst, src);
  look_at_abandoned();
  return copy_with(dst, src, read_options(words));
}

nb::object fill_as_asked(nb::handle dst, nb::handle value, nb::handle dst_affinity,
                         nb::handle mover, nb::handle fence, nb::handle checked,
                         nb::handle nonblock) {
  return fill(dst, value,
              read_options({dst_affinity, nb::handle(), mover, fence, checked, nonblock}));
}

PlanObject explain_as_asked(nb::handle dst, nb::handle src, nb::object value,
                            nb::handle dst_affinity, nb::handle src_affinity, nb::handle mover,
                            nb::handle fence, nb::handle checked, nb::handle nonblock) {
  return explain(dst, src, value,
                 read_options({dst_affinity, src_affinity, mover, fence, checked, nonblock}));
}

}  // namespace

// (Keyword arguments come as they are, None where they were left out: what nobody gave costs
// nothing.)
void define_copy(nb::module_& module) {
  module.def("copy", &copy_as_asked, nb::arg("dst"), nb::arg("src"), nb::kw_only(),
             nb::arg("dst_affinity") = nb::none(), nb::arg("src_affinity") = nb::none(),
             nb::arg("mover") = nb::none(), nb::arg("fence") = nb::none(),
             nb::arg("checked") = nb::none(), nb::arg("nonblock") = nb::none(),
             nb::sig(copy_signature), copy_text);
  module.def("fill", &fill_as_asked, nb::arg("dst"), nb::arg("value") = 0, nb::kw_only(),
             nb::arg("dst_affinity") = nb::none(), nb::arg("mover") = nb::none(),
             nb::arg("fence") = nb::none(), nb::arg("checked") = nb::none(),
             nb::arg("nonblock") = nb::none(), nb::sig(fill_signature), fill_text);
  module.def("explain", &explain_as_asked, nb::arg("dst"), nb::arg("src") = nb::none(),
             nb::arg("value") = nb::none(), nb::kw_only(), nb::arg("dst_affinity") = nb::none(),
             nb::arg("src_affinity") = nb::none(), nb::arg("mover") = nb::none(),
             nb::arg("fence") = nb::none(), nb::arg("checked") = nb::none(),
             nb::arg("nonblock") = nb::none(), nb::sig(explain_signature), explain_text);
}

}  // namespace haul_python
