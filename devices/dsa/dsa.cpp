// libhaul-dsa.so: work queues of Intel's Data Streaming Accelerator, given to users by Linux' idxd
// driver.
#include <cstdio>
#include <cstring>

#include "devices/dsa/pieces.hpp"
#include "devices/dsa/work_queue.hpp"
#include "engine/plugin.hpp"

namespace {

haul::DeviceTable device_table;
unsigned verifying_queues = 0;

bool add_queue(const char* name, const haul::dsa::Sentence& why) {
  using namespace haul::dsa;
  WorkQueue queue;
  if (!open_work_queue(name, queue, why)) return false;
  if (!begin_pieces(queue, why)) {
    close_work_queue(queue);
    return false;
  }
  if (device_table.channels++ == 0)
    std::snprintf(device_table.name, sizeof device_table.name, "%.26s %s", queue.name,
                  way_of_pieces());
  verifying_queues += queue.verifies ? 1 : 0;
  device_table.emulated = device_table.emulated || queue.emulated;
  return true;
}

// Behind the name: all of them, or how many.
void say_which_verify() {
  if (verifying_queues == 0) return;
  const std::size_t length = std::strlen(device_table.name);
  char* const end = device_table.name + length;
  const std::size_t room = sizeof device_table.name - length;
  if (verifying_queues == device_table.channels) {
    std::snprintf(end, room, ", verified");
  } else {
    std::snprintf(end, room, ", %u of %u verified", verifying_queues, device_table.channels);
  }
}

// (Short: it is added to a sentence.)
void remark_on_pieces(char* text, std::size_t text_bytes) {
  if (const unsigned count = haul::dsa::count_differing_pieces(); count != 0)
    std::snprintf(text, text_bytes, "; pieces with wrong bytes: %u, put right", count);
}

}  // namespace

// `arguments`: "" for the first work queue that there is; wq0.1 or /dev/dsa/wq0.1 for that one, or
// what else open_work_queue() takes, or several of these, separated by commas.
extern "C" [[gnu::visibility("default")]] const haul::DeviceTable* haul_open_device(
    const char* arguments, char* sentence, std::size_t sentence_bytes) {
  using namespace haul::dsa;
  const Sentence why{sentence, sentence_bytes};
  char names[4096];
  std::snprintf(names, sizeof names, "%s", arguments);
  device_table.channels = verifying_queues = 0;
  char* rest = names;
  for (const char* name = strsep(&rest, ","); name != nullptr; name = strsep(&rest, ",")) {
    if (device_table.channels == haul::most_channels) {
      why.say("HAUL_ENGINE_DSA names more than %u work queues; name fewer", haul::most_channels);
      return nullptr;
    }
    if (!add_queue(name, why)) return nullptr;
  }
  say_which_verify();
  device_table.fills = true;
  device_table.most_bytes = most_bytes_of_piece();
  device_table.submit = submit_piece;
  device_table.poll = poll_pieces;
  device_table.stop = stop_pieces;
  device_table.remark = remark_on_pieces;
  return &device_table;
}
