// Takes a raw stream (trace/stream.h) apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "format/input_bytes.hpp"
#include "trace/stream.h"

namespace bcisim {

// A record; what its tag does not mention keeps an old value.
struct StreamRecord {
  bcisim_tag tag = BCISIM_END;
  std::uint32_t id = 0;
  std::uint64_t address = 0, physical = 0;
  std::uint32_t bytes = 0;
  bool is_store = false;               // or: the device wrote
  std::span<const std::uint8_t> code;  // until the next record
};

// Checks what can be checked without the records before: tags, numbers, the count at the end, the
// stream's version. Throws TraceError with the offset.
class StreamReader {
 public:
  explicit StreamReader(InputBytes& input);

  // False after BCISIM_END.
  bool next(StreamRecord& record);

  // Throws TraceError at the record that next() gave last: "the stream is damaged, WHY; ...".
  [[noreturn]] void fail(std::string_view why) const;

 private:
  const std::uint8_t* take(std::size_t bytes);
  void refill(std::size_t bytes);
  [[noreturn]] void fail_at(std::uint64_t offset, std::string_view sentence) const;

  InputBytes& input_;
  std::vector<std::uint8_t> buffer_;
  std::size_t at_ = 0, end_ = 0;  // in buffer_
  std::uint64_t offset_ = 0;      // of buffer_'s begin in the stream
  std::uint64_t record_ = 0;      // offset of the latest record
  std::uint32_t statics_ = 0;
  std::uint64_t executed_ = 0;
};

}  // namespace bcisim
