#include "format/coding/checkpoint_code.hpp"

namespace bcisim {

namespace {

constexpr std::uint64_t most_block = (layout::most_page + 1) * (layout::page_bytes / 64) - 1;

}  // namespace

void encode_checkpoint(const Checkpoint& checkpoint, Compressor& compressor, Bytes& payload) {
  if (checkpoint.blocks.size() > layout::most_blocks)
    throw FrameError("a checkpoint has more than 1048576 blocks");
  Bytes numbers, dirty((checkpoint.blocks.size() + 7) / 8);
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < checkpoint.blocks.size(); ++i) {
    const Checkpoint::Block& block = checkpoint.blocks[i];
    if (block.number > most_block) throw FrameError("a checkpoint's block lies beyond 2^58");
    put_signed(numbers, block.number - last);
    last = block.number;
    if (block.dirty) dirty[i / 8] = static_cast<std::uint8_t>(dirty[i / 8] | 1u << i % 8);
  }
  payload.clear();
  put_varint(payload, checkpoint.blocks.size());
  compressor.append(payload, numbers);
  compressor.append(payload, dirty);
}

Checkpoint decode_checkpoint(ByteReader payload) {
  const std::uint64_t count = payload.varint();
  if (count > layout::most_blocks) throw FrameError("it has more blocks than a checkpoint may");
  Decompressor decompressor;
  Bytes numbers, dirty;
  decompressor.take(payload, numbers);
  decompressor.take(payload, dirty);
  if (!payload.empty()) throw FrameError("it is longer than its columns");
  if (dirty.size() != (count + 7) / 8) throw FrameError("a column of it is not of its length");
  Checkpoint checkpoint;
  ByteReader reader(numbers);
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < count; ++i) {
    last += reader.signed_varint();
    if (last > most_block) throw FrameError("a block in it lies beyond 2^58");
    checkpoint.blocks.push_back({last, (dirty[i / 8] >> i % 8 & 1) != 0});
  }
  if (!reader.empty()) throw FrameError("a column of it is not of its length");
  return checkpoint;
}

}  // namespace bcisim
