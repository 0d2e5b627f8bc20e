#include "format/coding/columns.hpp"

#include <zstd.h>

#include <new>

namespace bcisim {

Compressor::Compressor(int level) : context_(ZSTD_createCCtx(), ZSTD_freeCCtx) {
  if (!context_) throw std::bad_alloc();
  ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, level);
}

void Compressor::append(Bytes& payload, std::span<const std::uint8_t> bytes) {
  Bytes compressed;
  if (!bytes.empty()) {
    compressed.resize(ZSTD_compressBound(bytes.size()));
    const std::size_t size = ZSTD_compress2(context_.get(), compressed.data(), compressed.size(),
                                            bytes.data(), bytes.size());
    if (ZSTD_isError(size) != 0) throw std::bad_alloc();  // no other reason is left
    compressed.resize(size);
  }
  put_varint(payload, bytes.size());
  put_varint(payload, compressed.size());
  payload.insert(payload.end(), compressed.begin(), compressed.end());
}

Decompressor::Decompressor() : context_(ZSTD_createDCtx(), ZSTD_freeDCtx) {
  if (!context_) throw std::bad_alloc();
}

void Decompressor::take(ByteReader& payload, Bytes& bytes) {
  const std::uint64_t size = payload.varint();
  const std::span<const std::uint8_t> compressed = payload.bytes(payload.varint());
  if (size > layout::most_column_bytes) throw FrameError("a column of it is too long");
  bytes.resize(static_cast<std::size_t>(size));
  if (size == 0 && compressed.empty()) return;
  const std::size_t got = ZSTD_decompressDCtx(context_.get(), bytes.data(), bytes.size(),
                                              compressed.data(), compressed.size());
  if (ZSTD_isError(got) != 0 || got != size) throw FrameError("zstd cannot read a column of it");
}

}  // namespace bcisim
