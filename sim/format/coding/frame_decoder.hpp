// Takes frames of instructions apart (format/README.md has the columns).
//
// open() decompresses all columns of a frame and adds its static instructions; next() then makes
// chunks. Within one, read_instructions() follows the path up to the next event or the chunk's end
// and only notes where each reference's address will come from (awaited_references_);
// read_references() decodes these addresses afterwards, in one loop. Two loops that each do one
// thing are what makes decoding fast: the processor predicts their branches well.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "format/chunk.hpp"
#include "format/coding/columns.hpp"
#include "format/coding/frame_memory.hpp"

namespace bcisim {

// Throws FrameError for a frame that breaks the format's rules; it is of no use then.
class FrameDecoder : public FrameMemory {
 public:
  // Begins a frame, after the one before was read to its end.
  void open(ByteReader payload);

  // Into `chunk`, which has no events, copies and devices. False when the frame has no more.
  bool next(Chunk& chunk);

 private:
  static constexpr std::size_t never = ~std::size_t{0};
  // A reference of an instruction that was read, before its address is.
  struct AwaitedReference {
    std::uint32_t slot;
    std::uint16_t shape;  // as in Shape::bytes
  };
  // Something that comes at a position now and then: its column says how far behind the last.
  struct Exceptions {
    ByteReader column;
    std::size_t next = never;

    void start() {
      next = 0;
      advance();
    }
    void advance();
  };

  void add_statics(std::size_t count);
  std::uint32_t follow(std::uint32_t from, bool& taken);
  std::uint32_t follow_unexpected(std::uint32_t from, bool& taken);
  void read_shape(Place& place);
  Shape read_new_shape();
  std::uint64_t read_address(std::uint32_t slot, std::uint8_t code);
  std::uint64_t read_page(std::uint64_t expected);
  void read_instructions(std::size_t stop, Chunk& chunk);
  void read_references(Chunk& chunk, std::size_t stop);
  void read_event(Chunk& chunk, std::size_t before);
  void read_copy(CopyCall& call);
  void read_region(std::uint64_t& address, std::uint64_t& last, std::uint64_t bytes,
                   std::vector<std::uint64_t>& pages);
  void finish_frame();

  NumberedThings<Shape> shapes_;
  NumberedThings<Form> forms_;
  Decompressor decompressor_;

  // Of the frame being read.
  bool open_ = false;
  Columns columns_;
  std::array<ByteReader, layout::columns> readers_;
  std::size_t instructions_ = 0, references_ = 0, events_ = 0;  // in it
  std::size_t position_ = 0, reference_ = 0, event_ = 0;        // read
  std::uint64_t run_ = 0;
  std::uint32_t upcoming_ = 0;                               // the instruction at position_
  std::size_t made_instructions_ = 0, made_references_ = 0;  // in the chunk
  std::vector<AwaitedReference> awaited_references_;         // by their index in the chunk
  Exceptions shape_exceptions_, taken_exceptions_, page_exceptions_, event_positions_;
};

}  // namespace bcisim
