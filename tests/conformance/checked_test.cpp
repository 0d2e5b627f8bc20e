// Inaccessible memory is an outcome, exact to the byte, for every engine that says it checks, and
// for memory of peers.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "conformance/drive.hpp"
#include "conformance/peer.hpp"

namespace haul::conformance {
namespace {

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t pages = 200;
constexpr std::size_t arena_bytes = pages * page_bytes;

// How a page is spoilt.
enum class Spoilt { no_access, read_only, past_the_end };

const char* name_of(Spoilt spoilt) {
  return spoilt == Spoilt::no_access   ? "no access"
         : spoilt == Spoilt::read_only ? "read only"
                                       : "past the end of the file";
}

// Memory in which pages from `bad_from` on, `bad_count` of them, are spoilt.
class Arena {
 public:
  Arena() {
    file_ = memfd_create("arena", MFD_CLOEXEC);
    EXPECT_EQ(ftruncate(file_, arena_bytes), 0);
    anonymous_ = map(MAP_PRIVATE | MAP_ANONYMOUS, -1);
    mapped_ = map(MAP_SHARED, file_);
  }
  ~Arena() {
    munmap(anonymous_, arena_bytes);
    munmap(mapped_, arena_bytes);
    close(file_);
  }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  void heal() {
    EXPECT_EQ(mprotect(anonymous_, arena_bytes, PROT_READ | PROT_WRITE), 0);
    EXPECT_EQ(ftruncate(file_, arena_bytes), 0);
    spoilt_ = false;
  }

  // Fills what is accessible, then spoils. A file's bad pages reach to its end.
  std::uint8_t* spoil(Random& random, Spoilt how, std::size_t bad_from, std::size_t bad_count) {
    heal();
    std::uint8_t* memory = how == Spoilt::past_the_end ? mapped_ : anonymous_;
    scramble(random, memory, arena_bytes);
    before_.assign(memory, memory + arena_bytes);
    spoilt_ = true;
    if (how == Spoilt::past_the_end) {
      EXPECT_EQ(ftruncate(file_, static_cast<off_t>(bad_from * page_bytes)), 0);
    } else {
      EXPECT_EQ(mprotect(memory + bad_from * page_bytes, bad_count * page_bytes,
                         how == Spoilt::read_only ? PROT_READ : PROT_NONE),
                0);
    }
    return memory;
  }

  // What lay there before it was spoilt.
  const std::vector<std::uint8_t>& before() const { return before_; }

 private:
  static std::uint8_t* map(int flags, int file) {
    void* address = mmap(nullptr, arena_bytes, PROT_READ | PROT_WRITE, flags, file, 0);
    EXPECT_NE(address, MAP_FAILED);
    return static_cast<std::uint8_t*>(address);
  }

  int file_;
  std::uint8_t *anonymous_, *mapped_;
  std::vector<std::uint8_t> before_;
  bool spoilt_ = false;
};

class Checked : public testing::TestWithParam<Subject> {
 protected:
  void SetUp() override {
    std::string why;
    engine_ = prepare(GetParam(), why);
    if (engine_ == nullptr) GTEST_SKIP() << "engine unavailable: " << why;
  }

  // Runs it; checks the outcome and that the watermark is not ahead of it.
  void expect_prefix(Piece piece, std::size_t good) {
    std::atomic<std::uint64_t> word{0};
    piece.watermark = Watermark{&word, std::uint64_t{7} << 32, 0, 6};
    const Outcome outcome = run(*engine_, piece);
    ASSERT_EQ(outcome.good_bytes, good);
    ASSERT_EQ(outcome.code, good == piece.length ? Code::ok : Code::fault);
    ASSERT_LE(word.load() & 0xffffffff, good >> 6);
  }

  Engine* engine_ = nullptr;
};

class Unchecked : public Checked {};

TEST_P(Unchecked, SaysSo) {
  std::uint8_t bytes[16] = {};
  Piece piece;
  piece.checked = true;
  piece.dst = reinterpret_cast<std::uintptr_t>(bytes);
  piece.src = piece.dst;
  piece.length = 8;
  const Outcome outcome = run(*engine_, piece);
  EXPECT_EQ(outcome.code, Code::not_supported);
  EXPECT_EQ(outcome.good_bytes, 0u);
}

TEST_P(Checked, ASpoiltPageEndsAnExactPrefix) {
  Random random(21);
  Arena sources, destinations;
  std::vector<std::uint8_t> fine(arena_bytes);
  for (int round = 0; round < 240; ++round) {
    const bool spoil_src = round % 3 == 0;
    const bool fills = round % 3 == 2;
    const auto how = static_cast<Spoilt>(round / 3 % 3);
    const std::size_t bad_from = between(random, 0, pages - 1);
    const std::size_t bad_at = bad_from * page_bytes;
    const std::size_t length = random_size(random, arena_bytes);
    const std::size_t spoilt_at = between(random, 0, arena_bytes - length);
    const std::size_t fine_at = between(random, 0, arena_bytes - length);
    SCOPED_TRACE(testing::Message()
                 << "seed 21, round " << round << ": " << name_of(how) << " from " << bad_at
                 << (spoil_src ? " src" : " dst") << ", " << length << " bytes at " << spoilt_at
                 << ", other side at " << fine_at);
    const std::size_t bad_count = how == Spoilt::past_the_end ? pages - bad_from : 1;
    const std::size_t bad_end = bad_at + bad_count * page_bytes;
    // A read-only source is a good source.
    const bool hurts = !(spoil_src && how == Spoilt::read_only);
    std::size_t good = length;
    if (hurts && spoilt_at < bad_end && spoilt_at + length > bad_at) {
      good = spoilt_at < bad_at ? bad_at - spoilt_at : 0;
    }
    Arena& arena = spoil_src ? sources : destinations;
    std::uint8_t* spoilt = arena.spoil(random, how, bad_from, bad_count) + spoilt_at;
    scramble(random, fine.data(), fine.size());
    Piece piece;
    piece.checked = true;
    piece.length = length;
    piece.operation = fills ? Operation::fill : Operation::copy;
    piece.pattern = random();
    std::uint8_t* dst = spoil_src ? fine.data() + fine_at : spoilt;
    const std::uint8_t* src = spoil_src ? spoilt : fine.data() + fine_at;
    piece.dst = reinterpret_cast<std::uintptr_t>(dst);
    piece.src = reinterpret_cast<std::uintptr_t>(src);
    ASSERT_NO_FATAL_FAILURE(expect_prefix(piece, good));
    // Good bytes are in place.
    const std::uint8_t* wanted = spoil_src ? arena.before().data() + spoilt_at : src;
    if (fills) {
      for (std::size_t at = 0; at < good; ++at) {
        ASSERT_EQ(dst[at], static_cast<std::uint8_t>(piece.pattern >> (at & 7) * 8)) << at;
      }
    } else if (good != 0) {
      ASSERT_EQ(std::memcmp(dst, wanted, good), 0);
    }
    // What lies before and behind the destination is as it was.
    if (!spoil_src && spoilt_at != 0 && (spoilt_at - 1 < bad_at || how == Spoilt::read_only)) {
      ASSERT_EQ(dst[-1], arena.before()[spoilt_at - 1]);
    }
  }
}

TEST_P(Checked, OverlapsAreMovedToTheEdgeOfASpoiltPage) {
  Random random(22);
  Arena arena;
  for (int round = 0; round < 150; ++round) {
    const auto how = static_cast<Spoilt>(round % 3);
    const std::size_t bad_from = between(random, 0, pages - 1);
    const std::size_t bad_count = how == Spoilt::past_the_end ? pages - bad_from : 1;
    const std::size_t bad_at = bad_from * page_bytes, bad_end = bad_at + bad_count * page_bytes;
    const std::size_t length = 1 + random_size(random, arena_bytes - 1);
    const std::size_t to = between(random, 0, arena_bytes - length);
    const std::size_t shift = random_size(random, length);
    const std::size_t from = between(random, 0, 1) == 0
                                 ? (to > shift ? to - shift : 0)
                                 : std::min(to + shift, arena_bytes - length);
    SCOPED_TRACE(testing::Message()
                 << "seed 22, round " << round << ": " << name_of(how) << " from " << bad_at << ", "
                 << length << " bytes to " << to << " from " << from);
    const auto prefix = [&](std::size_t at) {
      if (at >= bad_end || at + length <= bad_at) return length;
      return at < bad_at ? bad_at - at : std::size_t{0};
    };
    const std::size_t good = std::min(prefix(to), how == Spoilt::read_only ? length : prefix(from));
    std::uint8_t* memory = arena.spoil(random, how, bad_from, bad_count);
    Piece piece;
    piece.checked = true;
    piece.length = length;
    piece.dst = reinterpret_cast<std::uintptr_t>(memory + to);
    piece.src = reinterpret_cast<std::uintptr_t>(memory + from);
    ASSERT_NO_FATAL_FAILURE(expect_prefix(piece, good));
    ASSERT_EQ(good == 0 ? 0 : std::memcmp(memory + to, arena.before().data() + from, good), 0);
  }
}

class CheckedPeer : public Checked {};

TEST_P(CheckedPeer, ASpoiltPageEndsAnExactPrefix) {
  Peer peer(arena_bytes);
  if (peer.space() == self_space) GTEST_SKIP() << "the kernel refuses: " << peer.why();
  Random random(23);
  std::vector<std::uint8_t> here(arena_bytes), there(arena_bytes);
  for (int round = 0; round < 120; ++round) {
    const bool reads = round % 2 == 0;
    const std::size_t bad_at = between(random, 0, pages - 1) * page_bytes;
    const std::size_t length = random_size(random, arena_bytes);
    const std::size_t peer_at = between(random, 0, arena_bytes - length);
    const std::size_t here_at = between(random, 0, arena_bytes - length);
    SCOPED_TRACE(testing::Message()
                 << "seed 23, round " << round << ": bad page at " << bad_at << ", " << length
                 << " bytes, peer at " << peer_at << (reads ? " read" : " written"));
    std::size_t good = length;
    if (peer_at < bad_at + page_bytes && peer_at + length > bad_at) {
      good = peer_at < bad_at ? bad_at - peer_at : 0;
    }
    scramble(random, here.data(), arena_bytes);
    scramble(random, there.data(), arena_bytes);
    ASSERT_NO_FATAL_FAILURE(peer.load(there.data()));
    ASSERT_NO_FATAL_FAILURE(peer.protect(bad_at, page_bytes, reads ? PROT_NONE : PROT_READ));
    Piece piece;
    piece.length = length;
    (reads ? piece.src_space : piece.dst_space) = peer.space();
    (reads ? piece.src : piece.dst) = peer.address() + peer_at;
    (reads ? piece.dst : piece.src) = reinterpret_cast<std::uintptr_t>(here.data() + here_at);
    ASSERT_NO_FATAL_FAILURE(expect_prefix(piece, good));
    ASSERT_NO_FATAL_FAILURE(peer.protect(bad_at, page_bytes, PROT_READ | PROT_WRITE));
    const std::uint8_t* now = peer.store();
    if (good != 0) {
      ASSERT_EQ(std::memcmp(now + peer_at, here.data() + here_at, good), 0);
      ASSERT_EQ(reads ? std::memcmp(now + peer_at, there.data() + peer_at, good) : 0, 0);
    }
  }
}

const auto name = [](const auto& test) { return subject_name(test.param); };
INSTANTIATE_TEST_SUITE_P(CheckingEngines, Checked, testing::ValuesIn(subjects_that_check(true)),
                         name);
INSTANTIATE_TEST_SUITE_P(OtherEngines, Unchecked, testing::ValuesIn(subjects_that_check(false)),
                         name);
INSTANTIATE_TEST_SUITE_P(ReachingEngines, CheckedPeer,
                         testing::ValuesIn(subjects_that_reach_peers()), name);

}  // namespace
}  // namespace haul::conformance
