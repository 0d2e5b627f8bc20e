// libhaul-dsa.so: a work queue of Intel's Data Streaming Accelerator, given to users by Linux' idxd
// driver.
#include <cstdio>

#include "devices/dsa/pieces.hpp"
#include "devices/dsa/work_queue.hpp"
#include "engine/plugin.hpp"

namespace {

haul::DeviceTable device_table;

}  // namespace

// `arguments`: "" for the first work queue that there is, wq0.1 or /dev/dsa/wq0.1 for that one, or
// what open_stand_in() takes.
extern "C" [[gnu::visibility("default")]] const haul::DeviceTable* haul_open_device(
    const char* arguments, char* sentence, std::size_t sentence_bytes) {
  using namespace haul::dsa;
  const Sentence why{sentence, sentence_bytes};
  WorkQueue queue;
  if (!open_work_queue(arguments, queue, why)) return nullptr;
  if (!begin_pieces(queue, why)) {
    close_work_queue(queue);
    return nullptr;
  }
  std::snprintf(device_table.name, sizeof device_table.name, "%.30s %s", queue.name,
                way_of_pieces());
  device_table.fills = true;
  device_table.emulated = queue.emulated;
  device_table.most_bytes = most_bytes_of_piece();
  device_table.submit = submit_piece;
  device_table.poll = poll_pieces;
  device_table.stop = stop_pieces;
  return &device_table;
}
