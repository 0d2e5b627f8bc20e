// Windows and their names.
#include "atomic/api/handles.hpp"
#include "atomic/link/fabric_host.hpp"
#include "atomic/window/attach.hpp"
#include "atomic/window/name.hpp"

using namespace haul::atomics;
using haul::Code;
using haul::make_error;

namespace {

constexpr std::size_t most_bytes = std::size_t{1} << 40;

}  // namespace

extern "C" int haul_atomic_window_create(haul_atomic_node* node, size_t bytes,
                                         haul_atomic_window** window) {
  const haul::Uncancelled guard;
  if (node == nullptr || window == nullptr) return refuse("node or window is NULL");
  *window = nullptr;
  if (bytes == 0 || bytes > most_bytes) return refuse("a window has 1 byte to 1 TiB");
  if (const int wrong = check_here(node); wrong != 0) return wrong;
  haul::Expected<Window*> made = from_c(node)->create_window(bytes);
  if (!made) return fail(made.error());
  *window = to_c(*made);
  return 0;
}

extern "C" int haul_atomic_window_attach(const haul_atomic_window_name* name,
                                         haul_atomic_window** window) {
  const haul::Uncancelled guard;
  if (name == nullptr || window == nullptr) return refuse("name or window is NULL");
  *window = nullptr;
  if (const int wrong = check_name(*name); wrong != 0) return wrong;
  haul_atomic_window_name known = *name;
  haul::Expected<int> fd = fetch_window(&known);
  if (!fd) return fail(fd.error());
  haul::Expected<Window*> made = Window::map(nullptr, *fd, known);
  if (!made) return fail(made.error());
  // Only the owner has a connection by which such operations could go.
  if (known.kind == by_fabric && !is_atomic_with_cpu(known.host)) (*made)->run_by(nullptr);
  *window = to_c(*made);
  return 0;
}

extern "C" int haul_atomic_window_counters(const haul_atomic_window_name* name, uint64_t* values,
                                           size_t count) {
  const haul::Uncancelled guard;
  if (name == nullptr || (values == nullptr && count != 0)) return refuse("name or values is NULL");
  if (const int wrong = check_name(*name); wrong != 0) return wrong;
  haul::Expected<AttachReply> reply = fetch_counters(*name);
  if (!reply) return fail(reply.error());
  for (std::size_t i = 0; i < count && i < reply->counters; ++i) values[i] = reply->counter[i];
  return static_cast<int>(reply->counters);
}

extern "C" void* haul_atomic_window_memory(const haul_atomic_window* window) {
  return window == nullptr ? nullptr : from_c(window)->memory();
}

extern "C" size_t haul_atomic_window_bytes(const haul_atomic_window* window) {
  return window == nullptr ? 0 : from_c(window)->name().bytes;
}

extern "C" int haul_atomic_window_export(const haul_atomic_window* window,
                                         haul_atomic_window_name* name) {
  if (window == nullptr || name == nullptr) return refuse("window or name is NULL");
  *name = from_c(window)->name();
  return 0;
}

extern "C" int haul_atomic_window_destroy(haul_atomic_window* window) {
  const haul::Uncancelled guard;
  if (window == nullptr) return 0;
  Node* owner = from_c(window)->owner();
  // A child of fork unmaps its own; the parent goes on serving.
  if (owner != nullptr && owner->is_here()) owner->withdraw(from_c(window));
  delete from_c(window);
  return 0;
}

extern "C" int haul_atomic_window_format(const haul_atomic_window_name* name, char* text,
                                         size_t bytes) {
  if (name == nullptr || text == nullptr) return refuse("name or text is NULL");
  if (const int wrong = check_name(*name); wrong != 0) return wrong;
  if (!format_name(*name, text, bytes)) return refuse("no room for the name; 160 bytes do");
  return 0;
}

extern "C" int haul_atomic_window_parse(const char* text, haul_atomic_window_name* name) {
  if (text == nullptr || name == nullptr) return refuse("text or name is NULL");
  if (!parse_name(text, name)) {
    return fail(make_error(Code::invalid, 0,
                           "'%.80s' is no name of a window; one looks like "
                           "haul:10.0.0.2:9475/0/7f2a4c000000+1000#6d3f0a92c1b4e857",
                           text));
  }
  return 0;
}
