// libhaul-dmadev.so: the DMA devices that DPDK offers, each one a channel. (A card's channels are
// devices of their own to DPDK.)
//
// DPDK's environment is started once, without huge pages, files shared with other processes, or
// telemetry, and quietly. It numbers a device's pieces one after another, with 16 bits, and tells
// how many have completed; the tags of those under way lie in a ring by these numbers. One thread
// at a time calls a channel's submit, poll and stop (execution/channel.hpp).
#include <rte_dmadev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>

#include "engine/plugin.hpp"

namespace {

using namespace haul;

constexpr std::uint16_t queue_of_device = 0;
constexpr unsigned most_under_way = 128;

struct UnderWay {
  std::uint64_t tag = 0;
  std::size_t bytes = 0;
  Watermark watermark;
};
struct alignas(64) DmaDevice {
  std::int16_t id = -1;
  std::uint16_t next_number = 0, first_number = 0;
  std::uint16_t queue_pieces = 0;
  UnderWay under_way[most_under_way];

  std::uint16_t count_under_way() const {
    return static_cast<std::uint16_t>(next_number - first_number);
  }
};
DmaDevice dma_devices[most_channels];
std::atomic<bool> dead{false};  // takes nothing more; what was accepted is reported

Submitted submit(const Piece& piece, std::uint64_t tag, Outcome&) {
  DmaDevice& device = dma_devices[piece.channel];
  if (dead.load(std::memory_order_relaxed)) return Submitted::dead;
  if (device.count_under_way() >= device.queue_pieces) return Submitted::full;
  const int number = rte_dma_copy(device.id, queue_of_device, piece.src, piece.dst,
                                  static_cast<std::uint32_t>(piece.length), RTE_DMA_OP_FLAG_SUBMIT);
  if (number == -ENOSPC) return Submitted::full;
  if (number < 0) {
    dead.store(true, std::memory_order_relaxed);
    return Submitted::dead;
  }
  device.under_way[device.next_number++ % most_under_way] = {tag, piece.length, piece.watermark};
  return Submitted::accepted;
}

std::size_t poll(unsigned channel, Finished* finished, std::size_t most) {
  DmaDevice& device = dma_devices[channel];
  if (device.count_under_way() == 0) return 0;
  constexpr std::uint16_t at_once = 64;
  rte_dma_status_code status[at_once];
  std::uint16_t last = 0;
  const auto wanted =
      static_cast<std::uint16_t>(std::min<std::size_t>({most, at_once, device.count_under_way()}));
  const std::uint16_t count =
      rte_dma_completed_status(device.id, queue_of_device, wanted, &last, status);
  for (std::uint16_t i = 0; i < count; ++i) {
    const UnderWay& piece = device.under_way[device.first_number++ % most_under_way];
    // (What is good of a piece that failed no dmadev tells.)
    const bool good = status[i] == RTE_DMA_STATUS_SUCCESSFUL;
    if (good) piece.watermark.publish(piece.bytes);
    finished[i] = {piece.tag, good ? Outcome{piece.bytes, Code::ok} : Outcome{0, Code::io}};
  }
  return count;
}

bool stop(unsigned channel) {
  dead.store(true, std::memory_order_relaxed);
  return rte_dma_stop(dma_devices[channel].id) == 0;
}

DeviceTable table;

// EAL's options: haul's own, and one for each device that the user names. (EAL keeps pointers into
// them. It prints to standard output what options it knows where it is given another one, so users
// give none.)
class EalOptions {
 public:
  // `devices`: PCI addresses, and names of drivers of devices that are none, separated by blanks.
  explicit EalOptions(const char* devices) {
    for (const char* own :
         {"haul", "--no-huge", "-m", "64", "--no-shconf", "--no-telemetry", "--iova-mode=va",
          "--log-level=critical", "--lcores", "0@0", "--file-prefix=haul"})
      words_[count_++] = const_cast<char*>(own);
    bool pci = false;
    char names[sizeof text_];
    std::snprintf(names, sizeof names, "%s", devices);
    char* rest = nullptr;
    std::size_t used = 0;
    for (char* name = strtok_r(names, " ", &rest); name != nullptr && count_ < room - 2;
         name = strtok_r(nullptr, " ", &rest)) {
      const bool is_address = std::strchr(name, ':') != nullptr;
      pci = pci || is_address;
      const int length = std::snprintf(text_ + used, sizeof text_ - used, "--%s=%s",
                                       is_address ? "allow" : "vdev", name);
      if (used + static_cast<std::size_t>(length) + 1 > sizeof text_) break;
      words_[count_++] = text_ + used;
      used += static_cast<std::size_t>(length) + 1;
    }
    static char without_pci[] = "--no-pci";
    if (!pci) words_[count_++] = without_pci;
    words_[count_] = nullptr;
  }

  int count() const { return count_; }
  char** words() { return words_; }

 private:
  static constexpr int room = 64;
  char* words_[room];
  int count_ = 0;
  char text_[4096];
};

const char* configure(DmaDevice& device, const rte_dma_info& facts) {
  if ((facts.dev_capa & RTE_DMA_CAPA_MEM_TO_MEM) == 0 ||
      (facts.dev_capa & RTE_DMA_CAPA_OPS_COPY) == 0)
    return "it does not copy memory";
  if ((facts.dev_capa & RTE_DMA_CAPA_SVA) == 0 && !table.emulated)
    return "its driver needs registered memory, which haul does not give it yet";
  rte_dma_conf conf{};
  conf.nb_vchans = 1;
  rte_dma_vchan_conf queue{};
  queue.direction = RTE_DMA_DIR_MEM_TO_MEM;
  queue.nb_desc = std::min<std::uint16_t>(facts.max_desc, most_under_way);
  // (A ring of so many holds one less.)
  device.queue_pieces = static_cast<std::uint16_t>(queue.nb_desc - 1);
  if (rte_dma_configure(device.id, &conf) != 0 ||
      rte_dma_vchan_setup(device.id, queue_of_device, &queue) != 0 || rte_dma_start(device.id) != 0)
    return "it cannot be configured";
  return nullptr;
}

bool is_emulated(const rte_dma_info& facts) {
  return std::strncmp(facts.dev_name, "dma_skeleton", 12) == 0;
}

// All devices that DPDK has found, each a channel, as far as they can be used and are hardware, or
// none, as the first one is. nullptr, or why there is not even one.
const char* configure_all() {
  const char* refusal = nullptr;
  table.channels = 0;
  for (std::int16_t id = rte_dma_next_dev(0); id >= 0 && table.channels < most_channels;
       id = rte_dma_next_dev(static_cast<std::int16_t>(id + 1))) {
    rte_dma_info facts{};
    if (rte_dma_info_get(id, &facts) != 0) continue;
    DmaDevice& device = dma_devices[table.channels];
    device.id = id;
    if (table.channels == 0) {
      std::snprintf(table.name, sizeof table.name, "%s", facts.dev_name);
      table.emulated = is_emulated(facts);
    } else if (is_emulated(facts) != table.emulated) {
      continue;
    }
    const char* const why = configure(device, facts);
    if (why == nullptr)
      ++table.channels;
    else if (refusal == nullptr)
      refusal = why;
  }
  return table.channels != 0 ? nullptr : refusal != nullptr ? refusal : "";
}

}  // namespace

extern "C" [[gnu::visibility("default")]] const haul::DeviceTable* haul_open_device(
    const char* arguments, char* sentence, std::size_t sentence_bytes) {
  static EalOptions options(arguments);
  // What DPDK says of its start is nothing for a program's standard error.
  if (FILE* const nowhere = std::fopen("/dev/null", "w"); nowhere != nullptr)
    rte_openlog_stream(nowhere);
  if (rte_eal_init(options.count(), options.words()) < 0) {
    std::snprintf(sentence, sentence_bytes,
                  "DPDK does not start (%s); correct the devices in HAUL_ENGINE_DMADEV",
                  rte_strerror(rte_errno));
    return nullptr;
  }
  const char* const refusal = configure_all();
  if (refusal != nullptr && *refusal == '\0') {
    std::snprintf(sentence, sentence_bytes,
                  "DPDK finds no DMA device; name one in HAUL_ENGINE_DMADEV by its PCI address, or "
                  "try dma_skeleton0 (no hardware)");
    return nullptr;
  }
  if (refusal != nullptr) {
    std::snprintf(sentence, sentence_bytes, "the DMA device %s cannot be used: %s", table.name,
                  refusal);
    return nullptr;
  }
  table.most_bytes = std::size_t{1} << 20;
  table.submit = submit;
  table.poll = poll;
  table.stop = stop;
  return &table;
}
