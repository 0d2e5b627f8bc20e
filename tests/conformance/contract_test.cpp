// What every engine promises beside the bytes: facts, refusals, tags, and no piece lost when it
// fails or dies.
#include <gtest/gtest.h>

#include <chrono>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include "conformance/drive.hpp"
#include "conformance/gpu.hpp"
#include "conformance/peer.hpp"
#include "engine/fault/fault.hpp"
#include "engine/registry.hpp"
#include "engine/spaces.hpp"
#include "repeats.hpp"

namespace haul::conformance {
namespace {

constexpr Space never_opened = 0x00abcd07;

class Contract : public testing::TestWithParam<Subject> {
 protected:
  void SetUp() override {
    std::string why;
    engine_ = prepare(GetParam(), why);
    if (engine_ == nullptr) GTEST_SKIP() << "engine unavailable: " << why;
  }
  Engine* engine_ = nullptr;
};

TEST_P(Contract, SaysWhatItIs) {
  EXPECT_STREQ(engine_->facts().name, GetParam().engine);
  EXPECT_STRNE(engine_->status().sentence, "");
  EXPECT_STRNE(engine_->spaces_text(), "");
  // Either the process's own memory, or a device's.
  EXPECT_NE(engine_->reaches(Operation::copy, self_space, self_space), engine_->has_memory());
  EXPECT_TRUE(!engine_->facts().synchronous ||
              engine_->reaches(Operation::fill, self_space, self_space));
}

TEST_P(Contract, NothingIsNothing) {
  for (const Operation operation : {Operation::copy, Operation::fill}) {
    Piece piece;
    piece.operation = operation;
    const Outcome outcome = run(*engine_, piece);
    EXPECT_EQ(outcome.code, Code::ok);
    EXPECT_EQ(outcome.good_bytes, 0u);
  }
}

TEST_P(Contract, ASpaceThatIsNotOpenIsRefused) {
  std::uint8_t bytes[64] = {1, 2, 3};
  for (const bool as_source : {false, true}) {
    Piece piece;
    piece.length = 32;
    piece.dst = reinterpret_cast<std::uintptr_t>(bytes + 32);
    piece.src = reinterpret_cast<std::uintptr_t>(bytes);
    (as_source ? piece.src_space : piece.dst_space) = never_opened;
    const Outcome outcome = run(*engine_, piece);
    EXPECT_EQ(outcome.good_bytes, 0u);
    const bool reaches = engine_->reaches(Operation::copy, piece.dst_space, piece.src_space);
    EXPECT_EQ(outcome.code, reaches || engine_->has_memory() ? Code::closed : Code::not_supported);
  }
  EXPECT_EQ(bytes[32], 0);
}

TEST_P(Contract, NothingToPollIsNoPiece) {
  Finished finished[2];
  EXPECT_EQ(engine_->poll(0, finished, 2), 0u);
}

// Submits pieces of one buffer until `count` are in or it is dead, polling when it is full. What
// each tag ended with.
struct Report {
  std::vector<Outcome> outcomes;  // by tag
  std::vector<bool> reported;
  std::vector<std::uint64_t> order;
  std::size_t refused_dead = 0;
  bool was_full = false;
};

Report flood(Engine& engine, std::uint8_t* dst, const std::uint8_t* src, std::size_t piece_bytes,
             std::size_t count) {
  Report report;
  report.outcomes.resize(count);
  report.reported.assign(count, false);
  Finished finished[5];
  std::size_t in_flight = 0;
  // Where the engine's memory is a device's, the sources lie there.
  std::optional<GpuTwin> gpu;
  if (engine.has_memory()) gpu.emplace(src, piece_bytes * count);
  const auto reap = [&] {
    stage(engine);
    const std::size_t got = engine.poll(0, finished, 5);
    EXPECT_LE(got, std::size_t{5});
    for (std::size_t index = 0; index < got; ++index) {
      const std::uint64_t tag = finished[index].tag;
      ASSERT_LT(tag, count);
      ASSERT_FALSE(report.reported[tag]) << "piece " << tag << " ended twice";
      report.reported[tag] = true;
      report.outcomes[tag] = finished[index].outcome;
      report.order.push_back(tag);
    }
    in_flight -= got;
  };
  Piece whole;
  whole.dst = reinterpret_cast<std::uintptr_t>(dst);
  whole.src = reinterpret_cast<std::uintptr_t>(src);
  whole.length = piece_bytes * count;
  const RegisteredSides sides(engine, whole);
  for (std::size_t tag = 0; tag < count;) {
    Piece piece = sides.piece();
    piece.dst += tag * piece_bytes;
    piece.src += tag * piece_bytes;
    piece.length = piece_bytes;
    if (gpu) {
      piece.src = gpu->address() + tag * piece_bytes;
      piece.src_space = gpu->space();
    }
    Outcome outcome;
    switch (engine.submit(piece, tag, outcome)) {
      case Submitted::finished:
        report.outcomes[tag] = outcome;
        report.reported[tag++] = true;
        break;
      case Submitted::accepted:
        ++in_flight;
        ++tag;
        break;
      case Submitted::full:
        report.was_full = true;
        reap();
        break;
      case Submitted::dead:
        ++report.refused_dead;
        report.outcomes[tag] = Outcome{0, Code::io};
        report.reported[tag++] = true;
        break;
    }
    if (testing::Test::HasFatalFailure()) return report;
  }
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::seconds(30);
  while (in_flight != 0 && Clock::now() < deadline) reap();
  EXPECT_EQ(in_flight, 0u) << "pieces were lost";
  EXPECT_EQ(engine.poll(0, finished, 5), 0u) << "a piece nobody submitted";
  return report;
}

class Flood {
 public:
  static constexpr std::size_t piece_bytes = 3000, count = 200;
  Flood() : src_(piece_bytes * count), dst_(src_.size()) {
    Random random(31);
    scramble(random, src_.data(), src_.size());
    for (std::size_t at = 0; at < src_.size(); ++at)
      dst_[at] = static_cast<std::uint8_t>(~src_[at]);
  }
  Report run(Engine& engine) { return flood(engine, dst_.data(), src_.data(), piece_bytes, count); }
  // Each piece's good bytes are there; what it does not call good of a failed one is not pretended.
  void expect_honest(const Report& report) const {
    for (std::size_t tag = 0; tag < count; ++tag) {
      SCOPED_TRACE(testing::Message() << "piece " << tag);
      const Outcome& outcome = report.outcomes[tag];
      ASSERT_TRUE(report.reported[tag]);
      ASSERT_LE(outcome.good_bytes, piece_bytes);
      if (outcome.code == Code::ok) {
        ASSERT_EQ(outcome.good_bytes, piece_bytes);
      }
      const std::size_t at = tag * piece_bytes;
      ASSERT_EQ(std::memcmp(&dst_[at], &src_[at], outcome.good_bytes), 0);
      for (std::size_t more = outcome.good_bytes; more < piece_bytes; ++more) {
        ASSERT_NE(dst_[at + more], src_[at + more]) << "byte " << more << " moved but not reported";
      }
    }
  }

 private:
  std::vector<std::uint8_t> src_, dst_;
};

TEST_P(Contract, AFloodLosesNoPiece) {
  Flood data;
  const Report report = data.run(*engine_);
  data.expect_honest(report);
  for (const Outcome& outcome : report.outcomes) EXPECT_EQ(outcome.code, Code::ok);
  EXPECT_EQ(report.refused_dead, 0u);
  EXPECT_NE(report.was_full, engine_->facts().synchronous) << "200 pieces fill a queue, if any";
}

INSTANTIATE_TEST_SUITE_P(AllEngines, Contract, testing::ValuesIn(subjects()),
                         [](const auto& test) { return subject_name(test.param); });

// ---- failures on purpose ----

TEST(Failing, PartialAndFailedPiecesTellTheTruth) {
  configure_fault("delay=2,partial=50%@3,fail=io@7,fail=no_memory@8,partial=10%@8,partial=33%@9");
  Flood data;
  const Report report = data.run(fault_engine());
  data.expect_honest(report);
  for (std::size_t tag = 0; tag < Flood::count; ++tag) {
    const Outcome& outcome = report.outcomes[tag];
    Outcome wanted{Flood::piece_bytes, Code::ok};
    if (tag == 2) wanted = Outcome{1500, Code::io};
    if (tag == 6) wanted = Outcome{0, Code::io};
    if (tag == 7) wanted = Outcome{300, Code::no_memory};
    if (tag == 8) wanted = Outcome{990, Code::io};
    EXPECT_EQ(outcome.good_bytes, wanted.good_bytes) << "piece " << tag;
    EXPECT_EQ(outcome.code, wanted.code) << "piece " << tag;
  }
}

TEST(Failing, UnseededPiecesFinishInOrder) {
  configure_fault("delay=1");
  Flood data;
  const Report report = data.run(fault_engine());
  data.expect_honest(report);
  EXPECT_TRUE(std::is_sorted(report.order.begin(), report.order.end()));
  configure_fault("");
}

TEST(Failing, DeathReportsEveryAcceptedPieceAndRefusesTheRest) {
  configure_fault("delay=3,die@12");
  Flood data;
  Engine& engine = fault_engine();
  const Report report = data.run(engine);
  data.expect_honest(report);
  EXPECT_GT(report.refused_dead, 0u);
  std::size_t ok = 0, partly = 0;
  for (const Outcome& outcome : report.outcomes) {
    ok += outcome.code == Code::ok;
    partly += outcome.code != Code::ok && outcome.good_bytes != 0;
    EXPECT_TRUE(outcome.code == Code::ok || outcome.code == Code::io);
  }
  EXPECT_EQ(ok, 11u) << "those before the twelfth, whose turn came first";
  EXPECT_GT(partly, 0u) << "those behind it were on their way";
  EXPECT_FALSE(engine.status().available);
  Outcome outcome;
  EXPECT_EQ(engine.submit(Piece{}, 1, outcome), Submitted::dead);
  configure_fault("");
  EXPECT_TRUE(engine.status().available);
  EXPECT_EQ(engine.submit(Piece{}, 1, outcome), Submitted::accepted);
}

TEST(Failing, ASeedFailsTheSameWayTwiceAndReorders) {
  std::vector<Outcome> first;
  for (int round = 0; round < 2; ++round) {
    configure_fault("seed=42,p_fail=10,p_partial=20,delay=5");
    Flood data;
    const Report report = data.run(fault_engine());
    data.expect_honest(report);
    std::size_t failed = 0, partly = 0;
    for (const Outcome& outcome : report.outcomes) {
      failed += outcome.code != Code::ok;
      partly += outcome.code != Code::ok && outcome.good_bytes != 0;
    }
    EXPECT_GT(failed, Flood::count / 10);
    EXPECT_LT(failed, Flood::count / 2);
    EXPECT_GT(partly, 0u);
    EXPECT_FALSE(std::is_sorted(report.order.begin(), report.order.end()));
    if (round == 0) first = report.outcomes;
    for (std::size_t tag = 0; tag < Flood::count; ++tag) {
      EXPECT_EQ(report.outcomes[tag].good_bytes, first[tag].good_bytes);
      EXPECT_EQ(report.outcomes[tag].code, first[tag].code);
    }
  }
  configure_fault("seed=1");
  Flood data;
  const Report report = data.run(fault_engine());
  data.expect_honest(report);
  EXPECT_FALSE(std::is_sorted(report.order.begin(), report.order.end())) << "though none waits";
  configure_fault("");
}

TEST(Failing, EverySeedsDeathLosesNoPiece) {
  for (unsigned seed = 0; seed < testing_haul::repeats(100); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const std::string schedule =
        "p_die=3,p_partial=10,p_fail=5,delay=9,seed=" + std::to_string(seed);
    configure_fault(schedule.c_str());
    Flood data;
    const Report report = data.run(fault_engine());
    ASSERT_NO_FATAL_FAILURE(data.expect_honest(report));
  }
  configure_fault("");
}

TEST(Failing, BadTextWarnsAndPassesEverythingThrough) {
  testing::internal::CaptureStderr();
  configure_fault("delay=3,explode@1");
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("HAUL_ENGINE_FAULT"), std::string::npos) << said;
  EXPECT_NE(said.find("'explode@1'"), std::string::npos) << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  EXPECT_TRUE(fault_engine().status().available);
  Flood data;
  const Report report = data.run(fault_engine());
  data.expect_honest(report);
  for (const Outcome& outcome : report.outcomes) EXPECT_EQ(outcome.code, Code::ok);
  configure_fault("");
}

}  // namespace
}  // namespace haul::conformance
