#include "format/reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "format/coding/checkpoint_code.hpp"
#include "format/coding/frame_decoder.hpp"
#include "format/input_bytes.hpp"

namespace bcisim {

struct TraceReader::State {
  explicit State(InputBytes&& bytes);

  [[noreturn]] void fail(std::uint64_t offset, std::string_view sentence) const {
    throw TraceError(fmt::format("{}, offset {}: {}", input.name(), offset, sentence));
  }
  [[noreturn]] void fail_cut() const {
    fail(input.offset(), "the file ends too early, it was cut; copy it or make it again");
  }
  [[noreturn]] void fail_damaged(std::uint64_t offset, std::string_view why) const {
    fail(offset, fmt::format("the file is damaged, {}; copy it or make it again", why));
  }
  void take(std::span<std::uint8_t> to) {
    if (input.read(to) != to.size()) fail_cut();
  }

  void read_header();
  void read_frame();
  void check_end();
  void begin_instructions();
  bool next(Chunk& chunk);

  InputBytes input;
  nlohmann::json metadata;
  Totals totals;
  std::optional<Checkpoint> checkpoint;
  FrameDecoder decoder;

  // The latest frame.
  layout::FrameKind kind = layout::FrameKind::end;
  std::uint64_t frame_offset = 0;
  Bytes payload;
};

TraceReader::State::State(InputBytes&& bytes) : input(std::move(bytes)) {
  read_header();
  read_frame();
  if (kind == layout::FrameKind::checkpoint) {
    try {
      checkpoint = decode_checkpoint(ByteReader(payload));
    } catch (const FrameError& error) {
      fail_damaged(frame_offset, error.what());
    }
    read_frame();
  }
  begin_instructions();
}

void TraceReader::State::read_header() {
  constexpr std::size_t totals_bytes = 6 * 8;
  Bytes head(layout::magic.size() + 4 + totals_bytes + 4);
  const std::size_t got = input.read(head);
  if (got == 0) fail(0, "the file is empty; name a trace that bcisim made");
  const std::size_t compared = std::min(got, layout::magic.size());
  if (!std::equal(head.begin(), head.begin() + static_cast<std::ptrdiff_t>(compared),
                  layout::magic.begin()))
    fail(0, "the file is no trace of bcisim; name one that bcisim made");
  if (got >= layout::magic.size() + 4) {
    const auto version = get_fixed<std::uint32_t>(&head[layout::magic.size()]);
    if (version != layout::version)
      fail(layout::magic.size(),
           fmt::format("the trace is of version {}, this bcisim reads version {}; convert it again",
                       version, layout::version));
  }
  if (got != head.size()) fail_cut();
  const std::uint8_t* at = &head[layout::magic.size() + 4];
  for (const auto total : Totals::fields) {
    totals.*total = get_fixed<std::uint64_t>(at);
    at += 8;
  }
  const auto length = get_fixed<std::uint32_t>(at);
  if (length > layout::most_metadata_bytes)
    fail_damaged(head.size() - 4, "its metadata are too long");
  Bytes text(length);
  take(text);
  Bytes sum(4);
  take(sum);
  if (get_fixed<std::uint32_t>(sum.data()) != crc32(text, crc32(head)))
    fail_damaged(0, "the checksum of its header is wrong");
  metadata = nlohmann::json::parse(text, nullptr, false);
  if (!metadata.is_object()) fail_damaged(head.size(), "its metadata are no JSON object");
  for (const char* key : {"workload", "role"}) {
    if (metadata.contains(key) && !metadata[key].is_string())
      fail_damaged(head.size(), "its metadata name the workload or role by no text");
  }
  if (const auto symbols = metadata.find("symbols"); symbols != metadata.end()) {
    if (!symbols->is_object()) fail_damaged(head.size(), "its symbols are no JSON object");
    for (const auto& symbol : *symbols) {
      if (!symbol.is_string()) fail_damaged(head.size(), "its symbols have a name that is no text");
    }
  }
}

void TraceReader::State::read_frame() {
  frame_offset = input.offset();
  Bytes head(8);
  take(head);
  const auto number = get_fixed<std::uint32_t>(&head[0]);
  const auto length = get_fixed<std::uint32_t>(&head[4]);
  if (number > static_cast<std::uint32_t>(layout::FrameKind::instructions))
    fail_damaged(frame_offset, "a frame is of no known kind");
  if (length > layout::most_payload_bytes) fail_damaged(frame_offset, "a frame is too long");
  // Piece by piece: a length that is a lie costs no more memory than the file has bytes.
  constexpr std::size_t piece = std::size_t{1} << 20;
  payload.clear();
  while (payload.size() != length) {
    const std::size_t before = payload.size();
    payload.resize(before + std::min(piece, length - before));
    take(std::span(payload).subspan(before));
  }
  Bytes sum(4);
  take(sum);
  if (get_fixed<std::uint32_t>(sum.data()) != crc32(payload, crc32(head)))
    fail_damaged(frame_offset, "the checksum of a frame is wrong");
  kind = static_cast<layout::FrameKind>(number);
}

void TraceReader::State::begin_instructions() {
  if (kind == layout::FrameKind::end) {
    check_end();
    return;
  }
  if (kind != layout::FrameKind::instructions)
    fail_damaged(frame_offset, "a checkpoint stands where it may not");
  try {
    decoder.open(ByteReader(payload));
  } catch (const FrameError& error) {
    fail_damaged(frame_offset, error.what());
  }
}

void TraceReader::State::check_end() {
  if (!payload.empty()) fail_damaged(frame_offset, "its last frame is not empty");
  if (decoder.totals() != totals)
    fail_damaged(frame_offset, "it holds more or less than its header says");
  if (decoder.copy_open()) fail_damaged(frame_offset, "it ends within a copy");
  Bytes more(1);
  if (input.read(more) != 0) fail_damaged(frame_offset, "something follows its end");
}

bool TraceReader::State::next(Chunk& chunk) {
  chunk.events.clear();
  chunk.copies.clear();
  chunk.devices.clear();
  while (kind != layout::FrameKind::end) {
    try {
      if (decoder.next(chunk)) {
        if (chunk.instructions.empty() && chunk.events.empty()) continue;
        return true;
      }
    } catch (const FrameError& error) {
      fail_damaged(frame_offset, error.what());
    }
    read_frame();
    begin_instructions();
  }
  chunk.clear();
  return false;
}

TraceReader::TraceReader(const std::string& path)
    : state_(std::make_unique<State>(InputBytes(path))) {}
TraceReader::TraceReader(std::span<const std::uint8_t> memory, const std::string& name)
    : state_(std::make_unique<State>(InputBytes(memory, name))) {}
TraceReader::~TraceReader() = default;

const nlohmann::json& TraceReader::metadata() const {
  return state_->metadata;
}
const Totals& TraceReader::totals() const {
  return state_->totals;
}
const std::optional<Checkpoint>& TraceReader::checkpoint() const {
  return state_->checkpoint;
}
const std::vector<StaticInstruction>& TraceReader::statics() const {
  return state_->decoder.statics();
}

bool TraceReader::next(Chunk& chunk) {
  return state_->next(chunk);
}

}  // namespace bcisim
