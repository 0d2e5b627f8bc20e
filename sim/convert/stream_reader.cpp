#include "convert/stream_reader.hpp"

#include <fmt/format.h>

#include <cstring>

#include "format/bytes.hpp"
#include "format/error.hpp"
#include "format/layout.hpp"
#include "format/rules.hpp"

namespace bcisim {

namespace {

constexpr std::string_view magic = BCISIM_STREAM_MAGIC;
constexpr std::size_t buffer_bytes = std::size_t{1} << 20;

}  // namespace

StreamReader::StreamReader(InputBytes& input) : input_(input), buffer_(buffer_bytes) {
  refill(magic.size() + 4);
  if (end_ == 0) fail_at(0, "the stream is empty; see what the tracer said");
  const std::size_t compared = end_ < magic.size() ? end_ : magic.size();
  if (std::memcmp(buffer_.data(), magic.data(), compared) != 0)
    fail_at(0, "this is no stream of the tracer; convert reads what the tracer writes");
  const std::uint8_t* at = take(magic.size() + 4);
  const auto version = get_fixed<std::uint32_t>(at + magic.size());
  if (version != BCISIM_STREAM_VERSION)
    fail_at(magic.size(),
            fmt::format("the stream is of version {}, this bcisim reads version {}; use the tracer "
                        "that was built with it",
                        version, BCISIM_STREAM_VERSION));
}

void StreamReader::fail_at(std::uint64_t offset, std::string_view sentence) const {
  throw TraceError(fmt::format("{}, offset {}: {}", input_.name(), offset, sentence));
}

void StreamReader::fail(std::string_view why) const {
  fail_at(record_, fmt::format("the stream is damaged, {}; trace again", why));
}

void StreamReader::refill(std::size_t bytes) {
  std::memmove(buffer_.data(), buffer_.data() + at_, end_ - at_);
  offset_ += at_;
  end_ -= at_;
  at_ = 0;
  while (end_ < bytes) {
    const std::size_t got = input_.read(std::span(buffer_).subspan(end_));
    if (got == 0) return;
    end_ += got;
  }
}

const std::uint8_t* StreamReader::take(std::size_t bytes) {
  if (end_ - at_ < bytes) [[unlikely]] {
    refill(bytes);
    if (end_ < bytes)
      fail_at(
          offset_ + end_,
          "the stream ends too early, the tracer was stopped; see what it said and trace again");
  }
  const std::uint8_t* taken = buffer_.data() + at_;
  at_ += bytes;
  return taken;
}

bool StreamReader::next(StreamRecord& record) {
  record_ = offset_ + at_;
  const std::uint8_t tag = *take(1);
  record.tag = static_cast<bcisim_tag>(tag);
  switch (tag) {
    case BCISIM_STATIC: {
      const std::uint8_t* at = take(21);
      record.id = get_fixed<std::uint32_t>(at);
      record.address = get_fixed<std::uint64_t>(at + 4);
      record.physical = get_fixed<std::uint64_t>(at + 12);
      const std::uint8_t length = at[20];
      if (record.id != statics_) fail("an instruction comes with an id out of turn");
      if (length < 1 || length > layout::most_instruction_bytes)
        fail("an instruction is not of 1 to 15 bytes");
      ++statics_;
      record.code = {take(length), length};
      return true;
    }
    case BCISIM_EXEC:
      record.id = get_fixed<std::uint32_t>(take(4));
      if (record.id >= statics_) fail("an instruction is executed that has not come before");
      ++executed_;
      return true;
    case BCISIM_MEMORY: {
      const std::uint8_t* at = take(19);
      record.address = get_fixed<std::uint64_t>(at);
      record.physical = get_fixed<std::uint64_t>(at + 8);
      record.bytes = get_fixed<std::uint16_t>(at + 16);
      record.is_store = at[18] != 0;
      if (executed_ == 0) fail("memory is referred to before the first instruction");
      if (record.bytes < 1 || record.bytes > layout::most_reference_bytes)
        fail("a reference is not of 1 to 512 bytes");
      if (at[18] > 1) fail("a reference is neither a load nor a store");
      return true;
    }
    case BCISIM_DEVICE: {
      const std::uint8_t* at = take(13);
      record.physical = get_fixed<std::uint64_t>(at);
      record.bytes = get_fixed<std::uint32_t>(at + 8);
      record.is_store = at[12] != 0;
      if (record.bytes == 0) fail("a device refers to no bytes");
      if (at[12] > 1) fail("a device neither reads nor writes");
      if (!rules::valid(DeviceAccess{record.physical, record.bytes, record.is_store}))
        fail("a device refers to memory beyond 2^64");
      return true;
    }
    case BCISIM_END: {
      const auto executed = get_fixed<std::uint64_t>(take(8));
      if (executed != executed_)
        fail(fmt::format("it has {} executions and says {}", executed_, executed));
      refill(1);
      if (end_ != at_) fail("something follows its end");
      return false;
    }
    default: fail(fmt::format("a record has the unknown tag {}", tag));
  }
}

}  // namespace bcisim
