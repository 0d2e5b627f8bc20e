// Takes frames of instructions apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "format/addresses.hpp"
#include "format/chunk.hpp"
#include "format/columns.hpp"
#include "format/copy_sites.hpp"
#include "format/numbered.hpp"
#include "format/pages.hpp"
#include "format/rules.hpp"
#include "format/shapes.hpp"
#include "format/successors.hpp"
#include "format/totals.hpp"

namespace bcisim {

// Remembers across frames what FrameEncoder does. Throws FrameError for a frame that breaks the
// format's rules; it is of no use then.
class FrameDecoder {
 public:
  // Begins a frame, after the one before was read to its end.
  void open(ByteReader payload);

  // Into `chunk`, which has no events, copies and devices. False when the frame has no more.
  bool next(Chunk& chunk);

  const std::vector<StaticInstruction>& statics() const { return statics_; }
  const Totals& totals() const { return totals_; }
  bool copy_open() const { return copies_.open(); }

 private:
  static constexpr std::size_t never = ~std::size_t{0};
  struct Place {
    Shape shape;
    bool known = false;
    std::uint8_t capacity = 0;  // slots
    std::uint32_t slots = 0;
  };
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
  bool is_taken(std::uint32_t from, std::uint32_t next) const;
  std::uint32_t follow(std::uint32_t from, bool& taken);
  std::uint32_t follow_unexpected(std::uint32_t from, bool& taken);
  void read_shape(Place& place);
  std::uint64_t read_address(std::uint32_t slot, std::uint8_t code);
  std::uint64_t read_page(std::uint64_t expected);
  void read_instructions(std::size_t stop, Chunk& chunk);
  void read_references(Chunk& chunk, std::size_t stop);
  void read_event(Chunk& chunk, std::size_t before);
  void read_copy(CopyCall& call);
  void read_region(std::uint64_t& address, std::uint64_t& last, std::uint64_t bytes,
                   std::vector<std::uint64_t>& pages);
  void finish_frame();

  std::vector<StaticInstruction> statics_;
  std::vector<Place> places_;
  Successors successors_;
  Addresses addresses_;
  Pages pages_;
  NumberedThings<Shape> shapes_;
  NumberedThings<Form> forms_;
  NumberedThings<CopySite> sites_;
  std::uint64_t device_end_ = 0;
  std::uint32_t previous_ = 0;
  rules::CopyState copies_;
  Totals totals_;
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
