// The columns of a frame, and their compression.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

#include "format/bytes.hpp"
#include "format/layout.hpp"

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace bcisim {

using Columns = std::array<Bytes, layout::columns>;

// Appends blocks: the number of bytes, the number of compressed bytes, and these, as zstd frames.
class Compressor {
 public:
  explicit Compressor(int level);
  void append(Bytes& payload, std::span<const std::uint8_t> bytes);

 private:
  std::unique_ptr<ZSTD_CCtx_s, std::size_t (*)(ZSTD_CCtx_s*)> context_;
};

// Takes them off again. Throws FrameError for a block that is damaged, longer than
// layout::most_column_bytes or not as long as it says.
class Decompressor {
 public:
  Decompressor();
  void take(ByteReader& payload, Bytes& bytes);

 private:
  std::unique_ptr<ZSTD_DCtx_s, std::size_t (*)(ZSTD_DCtx_s*)> context_;
};

}  // namespace bcisim
