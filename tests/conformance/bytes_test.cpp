// Every engine, over every pair of spaces it reaches, moves the bytes that a byte-wise reference
// moves.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <thread>

#include "conformance/drive.hpp"
#include "conformance/peer.hpp"
#include "engine/spaces.hpp"

namespace haul::conformance {
namespace {

// Where a side of a copy lies.
enum class Where { self, own_handle, peer_a, peer_a_again, peer_b };

struct Route {
  Subject subject;
  Where dst, src;
  bool checked;
};

const char* name_of(Where where) {
  switch (where) {
    case Where::self: return "self";
    case Where::own_handle: return "own_handle";
    case Where::peer_a: return "peer_a";
    case Where::peer_a_again: return "peer_a_again";
    case Where::peer_b: return "peer_b";
  }
  return "?";
}

std::vector<Route> routes() {
  std::vector<Route> all;
  for (const Subject& subject : subjects()) {
    all.push_back({subject, Where::self, Where::self, false});
    if (std::strcmp(subject.engine, "cma") != 0) continue;
    all.push_back({subject, Where::self, Where::self, true});
    const std::pair<Where, Where> pairs[] = {
        {Where::self, Where::peer_a},         {Where::peer_a, Where::self},
        {Where::peer_a, Where::peer_a},       {Where::peer_a, Where::peer_b},
        {Where::peer_a, Where::peer_a_again}, {Where::self, Where::own_handle},
        {Where::own_handle, Where::self},     {Where::own_handle, Where::own_handle}};
    for (const auto& [dst, src] : pairs) all.push_back({subject, dst, src, false});
  }
  return all;
}

// The bytes of one memory as they should be, and where they are.
class Memory {
 public:
  Memory(Where where, std::size_t bytes) : expected_(bytes) {
    switch (where) {
      case Where::self: actual_.resize(bytes); break;
      case Where::own_handle: {
        actual_.resize(bytes);
        open_another(getpid());
        break;
      }
      default:
        peer_ = std::make_unique<Peer>(bytes);
        space_ = peer_->space();
        why_ = peer_->why();
    }
  }
  ~Memory() {
    if (own_space_ != self_space) close_space(own_space_);
  }

  // A second handle of the same memory.
  void open_another(pid_t pid) {
    Expected<Space> opened = open_space(pid);
    if (opened) {
      own_space_ = *opened;
    } else {
      why_ = opened.error().sentence;
    }
  }

  const std::string& why() const { return why_; }
  Peer* peer() const { return peer_.get(); }
  Space space() const { return space_; }
  Space another() const { return own_space_; }
  std::vector<std::uint8_t>& expected() { return expected_; }
  std::uintptr_t address() const {
    return peer_ ? peer_->address() : reinterpret_cast<std::uintptr_t>(actual_.data());
  }

  void reset(Random& random) {
    scramble(random, expected_.data(), expected_.size());
    if (peer_) {
      peer_->load(expected_.data());
    } else {
      actual_ = expected_;
    }
  }

  // The first offset that differs, or the size.
  std::size_t first_difference() {
    const std::uint8_t* actual = peer_ ? peer_->store() : actual_.data();
    if (std::memcmp(actual, expected_.data(), expected_.size()) == 0) return expected_.size();
    std::size_t at = 0;
    while (actual[at] == expected_[at]) ++at;
    return at;
  }

 private:
  std::vector<std::uint8_t> expected_, actual_;
  std::unique_ptr<Peer> peer_;
  Space space_ = self_space, own_space_ = self_space;
  std::string why_;
};

class Bytes : public testing::TestWithParam<Route> {
 protected:
  void SetUp() override {
    std::string why;
    engine_ = prepare(GetParam().subject, why);
    if (engine_ == nullptr) GTEST_SKIP() << "engine unavailable: " << why;
  }

  // Are both sides in one memory?
  bool one_memory() const {
    const auto group = [](Where where) {
      return where == Where::peer_b                               ? 2
             : where == Where::self || where == Where::own_handle ? 0
                                                                  : 1;
    };
    return group(GetParam().dst) == group(GetParam().src);
  }

  void prepare_memories(std::size_t bytes) {
    const auto [subject, dst, src, checked] = GetParam();
    dst_ = std::make_unique<Memory>(dst, bytes);
    if (!one_memory()) src_ = std::make_unique<Memory>(src, bytes);
    if (src == Where::peer_a_again) dst_->open_another(dst_->peer()->pid());
    if (src == Where::own_handle && dst == Where::self) dst_->open_another(getpid());
    for (const Memory* memory : {dst_.get(), src_.get()}) {
      if (memory != nullptr && !memory->why().empty()) {
        GTEST_SKIP() << "the kernel refuses: " << memory->why();
      }
    }
    dst_space_ = dst == Where::own_handle ? dst_->another() : dst_->space();
    src_space_ = src == Where::own_handle || src == Where::peer_a_again ? dst_->another()
                 : src_                                                 ? src_->space()
                                                                        : dst_->space();
  }

  Memory& source() { return src_ ? *src_ : *dst_; }

  // One random piece; checks outcome, watermark and both memories.
  void one_piece(Random& random, std::size_t highest) {
    const std::size_t arena = dst_->expected().size();
    Piece piece;
    piece.length = random_size(random, highest);
    const std::size_t to = between(random, 0, arena - piece.length);
    std::size_t from = between(random, 0, arena - piece.length);
    if (one_memory() && between(random, 0, 1) == 0) {
      // Near each other, so that they overlap.
      const std::size_t shift = random_size(random, piece.length);
      from = between(random, 0, 1) == 0 ? (to > shift ? to - shift : 0)
                                        : std::min(to + shift, arena - piece.length);
    }
    piece.operation = between(random, 0, 3) == 0 ? Operation::fill : Operation::copy;
    piece.dst_affinity = static_cast<Affinity>(between(random, 0, 2));
    piece.src_affinity = static_cast<Affinity>(between(random, 0, 2));
    piece.checked = GetParam().checked;
    piece.dst_space = dst_space_;
    piece.src_space = src_space_;
    piece.dst = dst_->address() + to;
    piece.src = source().address() + from;
    piece.whole_bytes = between(random, 0, 1) == 0 ? piece.length : piece.length * 64;
    const std::uint64_t pattern = random();
    const std::size_t phase = between(random, 0, 7);
    piece.pattern_bytes = static_cast<std::uint8_t>(1u << between(random, 0, 3));
    piece.pattern = pattern_at(pattern, piece.pattern_bytes, phase);

    std::atomic<std::uint64_t> word{0};
    piece.watermark.word = &word;
    piece.watermark.generation_bits = random() << 32;
    piece.watermark.block_log2 = static_cast<std::uint32_t>(between(random, 6, 20));
    piece.watermark.first_bytes = between(random, 0, 3) == 0
                                      ? random_size(random, 1 << 20)
                                      : between(random, 0, 9) << piece.watermark.block_log2;
    if (between(random, 0, 7) == 0) piece.watermark.word = nullptr;
    SCOPED_TRACE(testing::Message()
                 << (piece.operation == Operation::fill ? "fill " : "copy ") << piece.length
                 << " bytes to " << to << " from " << from << ", pattern of "
                 << int{piece.pattern_bytes} << " at phase " << phase << ", affinities "
                 << static_cast<int>(piece.dst_affinity) << static_cast<int>(piece.src_affinity)
                 << ", block 2^" << piece.watermark.block_log2 << " first "
                 << piece.watermark.first_bytes);

    std::uint8_t* dst = dst_->expected().data() + to;
    if (piece.operation == Operation::fill) {
      for (std::size_t at = 0; at < piece.length; ++at) {
        dst[at] = static_cast<std::uint8_t>(pattern >> (phase + at) % piece.pattern_bytes * 8);
      }
    } else {
      const std::vector<std::uint8_t> moved(
          source().expected().begin() + static_cast<std::ptrdiff_t>(from),
          source().expected().begin() + static_cast<std::ptrdiff_t>(from + piece.length));
      for (std::size_t at = 0; at < piece.length; ++at) dst[at] = moved[at];
    }

    Outcome outcome;
    if (GetParam().dst == Where::own_handle || GetParam().src == Where::own_handle) {
      // As a mover would: a thread whose id is not the process's.
      std::thread([&] { outcome = run(*engine_, piece); }).join();
    } else {
      outcome = run(*engine_, piece);
    }
    ASSERT_EQ(outcome.code, Code::ok);
    ASSERT_EQ(outcome.good_bytes, piece.length);
    if (piece.watermark.word != nullptr && piece.length != 0) {
      ASSERT_EQ(word.load(),
                piece.watermark.generation_bits |
                    (piece.watermark.first_bytes + piece.length) >> piece.watermark.block_log2);
    }
    ASSERT_EQ(dst_->first_difference(), arena) << "destination differs there";
    if (src_) {
      ASSERT_EQ(src_->first_difference(), arena) << "source differs there";
    }
  }

  void many_pieces(std::uint64_t seed, int pieces, std::size_t arena, std::size_t highest) {
    ASSERT_NO_FATAL_FAILURE(prepare_memories(arena));
    if (IsSkipped()) return;
    Random random(seed);
    dst_->reset(random);
    if (src_) src_->reset(random);
    for (int piece = 0; piece < pieces; ++piece) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", piece " << piece);
      ASSERT_NO_FATAL_FAILURE(one_piece(random, highest));
    }
  }

  Engine* engine_ = nullptr;
  std::unique_ptr<Memory> dst_, src_;  // no src_: the source lies in dst_'s memory
  Space dst_space_ = self_space, src_space_ = self_space;
};

TEST_P(Bytes, SmallAndMiddlingPieces) {
  many_pieces(1, 500, 160 * 1024, 150 * 1024);
}

TEST_P(Bytes, TinyPieces) {
  many_pieces(2, 1500, 4096, 300);
}

TEST_P(Bytes, LargePieces) {
  many_pieces(3, 25, 3 * 1024 * 1024 + 123, 3 * 1024 * 1024);
}

INSTANTIATE_TEST_SUITE_P(AllRoutes, Bytes, testing::ValuesIn(routes()), [](const auto& test) {
  const Route& route = test.param;
  return subject_name(route.subject) + "__" + name_of(route.dst) + "_from_" + name_of(route.src) +
         (route.checked ? "_checked" : "");
});

}  // namespace
}  // namespace haul::conformance
