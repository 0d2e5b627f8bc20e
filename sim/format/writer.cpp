#include "format/writer.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "format/coding/checkpoint_code.hpp"
#include "format/coding/frame_encoder.hpp"
#include "format/output_file.hpp"

namespace bcisim {

struct TraceWriter::State {
  State(const std::string& path, const nlohmann::json& about, int level)
      : file(path), compressor(level), metadata(about.dump()) {}

  // Runs what may throw FrameError.
  template <typename Action>
  auto checked(Action action) {
    try {
      return action();
    } catch (const FrameError& error) {
      throw TraceError(fmt::format("{}: {}; the program that writes it has a mistake, report it",
                                   file.path(), error.what()));
    }
  }

  void append(layout::FrameKind kind, std::span<const std::uint8_t> contents) {
    Bytes head;
    put_fixed(head, static_cast<std::uint32_t>(kind));
    put_fixed(head, static_cast<std::uint32_t>(contents.size()));
    const std::uint32_t sum = crc32(contents, crc32(head));
    file.append(head);
    file.append(contents);
    Bytes tail;
    put_fixed(tail, sum);
    file.append(tail);
  }

  void close_frame() {
    encoder.close(compressor, payload);
    append(layout::FrameKind::instructions, payload);
  }

  void write_events(const Chunk& chunk, std::size_t& next, std::size_t before);
  void add(const Chunk& chunk);

  OutputFile file;
  Compressor compressor;
  FrameEncoder encoder;
  std::string metadata;
  Bytes payload;
  bool has_checkpoint = false;
  std::uint32_t next_copy = 0, next_device = 0;  // of the chunk being added
};

void TraceWriter::State::write_events(const Chunk& chunk, std::size_t& next, std::size_t before) {
  for (; next < chunk.events.size() && chunk.events[next].before == before; ++next) {
    if (encoder.full()) close_frame();
    const Event& event = chunk.events[next];
    switch (event.kind) {
      case Event::Kind::copy_begin:
        if (event.index != next_copy++ || event.index >= chunk.copies.size())
          throw FrameError("copies of a chunk are not in the order of their events");
        encoder.begin_copy(chunk.copies[event.index]);
        break;
      case Event::Kind::copy_end: encoder.end_copy(); break;
      case Event::Kind::device:
        if (event.index != next_device++ || event.index >= chunk.devices.size())
          throw FrameError("device accesses of a chunk are not in the order of their events");
        encoder.add_device(chunk.devices[event.index]);
        break;
      case Event::Kind::interrupt: encoder.add_interrupt(); break;
    }
  }
}

void TraceWriter::State::add(const Chunk& chunk) {
  next_copy = next_device = 0;
  std::size_t next_event = 0;
  for (std::size_t i = 0; i < chunk.instructions.size(); ++i) {
    write_events(chunk, next_event, i);
    const DynamicInstruction& instruction = chunk.instructions[i];
    if (instruction.first_reference > chunk.references.size() ||
        instruction.references > chunk.references.size() - instruction.first_reference)
      throw FrameError("an instruction's references lie outside its chunk");
    if (encoder.full()) close_frame();
    encoder.add(instruction,
                {chunk.references.data() + instruction.first_reference, instruction.references});
  }
  write_events(chunk, next_event, chunk.instructions.size());
  if (next_event != chunk.events.size() || next_copy != chunk.copies.size() ||
      next_device != chunk.devices.size())
    throw FrameError("a chunk's events are not sorted, or it has a copy or an access without one");
}

TraceWriter::TraceWriter(const std::string& path, const nlohmann::json& metadata, int level)
    : state_(std::make_unique<State>(path, metadata, level)) {}
TraceWriter::~TraceWriter() = default;

std::uint32_t TraceWriter::add_static(const StaticInstruction& instruction) {
  return state_->checked([&] {
    if (state_->encoder.full()) state_->close_frame();
    return state_->encoder.add_static(instruction);
  });
}

void TraceWriter::set_checkpoint(const Checkpoint& checkpoint) {
  state_->checked([&] {
    const Totals& so_far = state_->encoder.totals();
    if (state_->has_checkpoint || so_far.instructions + so_far.events != 0 ||
        state_->file.size() != 0)
      throw FrameError("a checkpoint comes second or after instructions");
    encode_checkpoint(checkpoint, state_->compressor, state_->payload);
    state_->append(layout::FrameKind::checkpoint, state_->payload);
    state_->has_checkpoint = true;
  });
}

void TraceWriter::add(const Chunk& chunk) {
  state_->checked([&] { state_->add(chunk); });
}

void TraceWriter::set_metadata(const nlohmann::json& metadata) {
  state_->metadata = metadata.dump();
}

const Totals& TraceWriter::totals() const {
  return state_->encoder.totals();
}

void TraceWriter::finish() {
  state_->checked([&] {
    if (state_->encoder.copy_open()) throw FrameError("it ends within a copy");
    if (state_->metadata.size() > layout::most_metadata_bytes)
      throw FrameError("its metadata are longer than 16 MiB");
    if (!state_->encoder.empty()) state_->close_frame();
    state_->append(layout::FrameKind::end, {});
    const Totals& totals = state_->encoder.totals();
    Bytes head(layout::magic.begin(), layout::magic.end());
    put_fixed(head, layout::version);
    for (const auto total : Totals::fields) put_fixed(head, totals.*total);
    put_fixed(head, static_cast<std::uint32_t>(state_->metadata.size()));
    head.insert(head.end(), state_->metadata.begin(), state_->metadata.end());
    put_fixed(head, crc32(head));
    state_->file.prepend(head);
    state_->file.publish();
  });
}

}  // namespace bcisim
