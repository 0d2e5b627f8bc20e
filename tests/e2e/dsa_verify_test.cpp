// The engine `dsa` on queues that verify (HAUL_ENGINE_DSA=... verify): the device compares what it
// has moved, what it finds to be wrong is put right by the CPU, and nothing that was not compared
// is shown as finished. Skipped where haul was built without libaccel-config.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "device/dsa_model.hpp"
#include "dsa_support.hpp"

namespace {

using namespace e2e;
using haul_model::DsaConduct;
using haul_model::DsaModel;
using haul_model::DsaPath;

class DsaVerify : public testing::TestWithParam<std::tuple<const char*, DsaPath>> {
 protected:
  template <class Body>
  int child(DsaConduct conduct, Body body, bool verified = true) {
    conduct.verified = verified;
    return with_dsa(std::get<0>(GetParam()), std::get<1>(GetParam()), conduct, body);
  }
};
INSTANTIATE_TEST_SUITE_P(By, DsaVerify,
                         testing::Combine(testing::Values("thread", "caller"),
                                          testing::Values(DsaPath::portal, DsaPath::pipe)));
class DsaVerifyByCaller : public DsaVerify {};
INSTANTIATE_TEST_SUITE_P(By, DsaVerifyByCaller,
                         testing::Combine(testing::Values("caller"),
                                          testing::Values(DsaPath::portal, DsaPath::pipe)));

// How many pieces with wrong bytes the engine's sentence tells of.
unsigned wrong_copies() {
  constexpr char words[] = "pieces with wrong bytes: ";
  const haul_engine_info info = dsa();
  const char* const at = std::strstr(info.status, words);
  return at == nullptr ? 0 : static_cast<unsigned>(std::atoi(at + sizeof words - 1));
}

unsigned moved(const DsaModel& model) {
  return model.counts().moves + model.counts().fills;
}

// Is what it made right? (A fill's pattern has 8 bytes.)
bool is_right(bool fills, const Buffer& to, const Buffer& from, std::uint64_t pattern) {
  if (!fills) return std::memcmp(to.data(), from.data(), to.size()) == 0;
  for (std::size_t at = 0; at < to.size(); ++at)
    if (to[at] != (pattern >> at % 8 * 8 & 0xff)) return false;
  return true;
}

// A copy or fill of so many bytes that the device has done, without help. True: it is right.
bool one_is_right(bool fills, std::size_t length) {
  const Buffer from(length), to(length);
  from.fill(length);
  const std::uint64_t pattern = 0x1122'3344'5566'7788 * (length | 1);
  const haul_request request = fills ? haul_request_fill(to.data(), pattern, 8, length)
                                     : haul_request_copy(to.data(), from.data(), length);
  haul_ticket ticket{};
  CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
  ends_without_help(ticket);
  return is_right(fills, to, from, pattern);
}

TEST_P(DsaVerify, AllThatIsMovedIsCompared) {
  SKIP_OR_GOOD(child({.held = 3}, [](DsaModel& model) {
    CHILD_CHECK(std::strstr(dsa().status, ", verified") != nullptr);
    const std::uint64_t before = dsa().bytes, compared = model.counts().compared_bytes;
    const std::uint64_t bytes = many_requests(1, 12);
    const std::uint64_t by_device = dsa().bytes - before;
    CHILD_CHECK(by_device > bytes / 8);
    CHILD_EQUAL(model.counts().compared_bytes - compared, by_device);
    CHILD_EQUAL(model.counts().compares, moved(model));
    // (A piece of one part is a batch, too; the kernel takes none.)
    CHILD_EQUAL(model.counts().batches > 20, by_portal(model));
    CHILD_EQUAL(wrong_copies(), 0);
  }));
}

TEST_P(DsaVerify, SizesAroundThoseOfPartsAndBatches) {
  for (const unsigned most_batch : {1u, 2u, 5u, 1024u}) {
    SKIP_OR_GOOD(
        child({.most_batch = most_batch, .most_transfer = 4096}, [=](const DsaModel& model) {
          for (const std::size_t parts : {0u, 1u, 2u, 3u, 8u, 9u}) {
            for (const int beside : {-9, 0, 1, 8}) {
              const std::size_t length = parts * 4096 + static_cast<std::size_t>(beside);
              if (length == 0 || length > mib) continue;
              CHILD_CHECK(one_is_right(false, length));
              CHILD_CHECK(one_is_right(true, length));
            }
          }
          CHILD_EQUAL(model.counts().compares, moved(model));
          CHILD_EQUAL(model.counts().batches > 0, by_portal(model) && most_batch > 1);
          CHILD_EQUAL(wrong_copies(), 0);
        }));
  }
}

TEST_P(DsaVerify, WrongBytesArePutRight) {
  SKIP_OR_GOOD(child({.seed = 2, .held = 2, .p_spoil = 6}, [](DsaModel& model) {
    many_requests(2, 16);
    CHILD_CHECK(model.counts().spoilt > 5);
    // (What stands behind the first difference of a piece is not looked at.)
    CHILD_CHECK(wrong_copies() > 3 && wrong_copies() <= model.counts().spoilt);
    CHILD_EQUAL(dsa().available, 1);
  }));
}

// Pieces of up to eight parts, of which each in turn is wrong.
TEST_P(DsaVerify, APartThatIsWrongIsFound) {
  SKIP_OR_GOOD(child({.most_transfer = 4096}, [](DsaModel& model) {
    unsigned found = 0;
    for (const bool fills : {false, true}) {
      for (unsigned number = 1; number <= 32; ++number) {
        const std::uint64_t before = dsa().bytes, compared = model.counts().compared_bytes;
        model.spoil_move(number);
        CHILD_CHECK(one_is_right(fills, 128 * kib));
        CHILD_EQUAL(model.counts().spoilt, ++found);
        CHILD_EQUAL(wrong_copies(), found);
        // What is good of it are the bytes that the compares found equal.
        CHILD_EQUAL(dsa().bytes - before, model.counts().compared_bytes - compared);
        CHILD_CHECK(dsa().bytes - before < 128 * kib);
        // (So that there are no sixteen in a row.)
        CHILD_CHECK(one_is_right(fills, 4 * kib));
      }
    }
    CHILD_EQUAL(dsa().available, 1);
  }));
}

TEST_P(DsaVerify, WithoutItNobodyFindsThem) {
  SKIP_OR_GOOD(child(
      {.most_transfer = 4096},
      [](DsaModel& model) {
        for (const bool fills : {false, true}) {
          for (unsigned number = 1; number <= 32; ++number) {
            model.spoil_move(number);
            CHILD_CHECK(!one_is_right(fills, 128 * kib));
          }
        }
        CHILD_EQUAL(model.counts().compares, 0);
        CHILD_EQUAL(wrong_copies(), 0);
        CHILD_EQUAL(dsa().available, 1);
      },
      false));
}

TEST_P(DsaVerify, ADeviceThatIsAlwaysWrongIsGivenUp) {
  SKIP_OR_GOOD(child({.p_spoil = 100}, [](const DsaModel&) {
    many_requests(3, 6);
    CHILD_EQUAL(dsa().available, 0);
    const haul_engine_info info = dsa();
    CHILD_CHECK(std::strstr(info.status, "dead") == info.status);
    CHILD_CHECK(wrong_copies() >= 16);
  }));
}

TEST_P(DsaVerify, PageFaultsInTheCompareCostNoByte) {
  SKIP_OR_GOOD(
      child({.seed = 4, .held = 2, .p_fault = 15, .p_compare_fault = 40}, [](DsaModel& model) {
        const std::uint64_t before = dsa().bytes;
        const std::uint64_t bytes = many_requests(4, 12);
        CHILD_CHECK(dsa().bytes - before > bytes / 8);
        CHILD_CHECK(model.counts().faults > 50);
        CHILD_EQUAL(wrong_copies(), 0);
        CHILD_EQUAL(dsa().available, 1);
      }));
}

TEST_P(DsaVerify, NewPagesBatchesThatEndEarlyAndWrongBytesTogether) {
  SKIP_OR_GOOD(child({.seed = 5,
                      .faults_at_new_pages = true,
                      .p_fault = 5,
                      .p_batch_error = 30,
                      .p_spoil = 3,
                      .p_compare_fault = 10,
                      .p_compare_error = 2},
                     [](DsaModel& model) {
                       many_requests(5, 16);
                       CHILD_CHECK(model.counts().faults > 20);
                       CHILD_CHECK(wrong_copies() > 0);
                     }));
}

TEST_P(DsaVerify, AQueueThatMayBlockOnFaultsDoes) {
  SKIP_OR_GOOD(child({.block_on_fault = true, .faults_at_new_pages = true}, [](DsaModel& model) {
    many_requests(6, 6);
    CHILD_EQUAL(model.counts().faults, 0);
    CHILD_EQUAL(model.counts().compares, moved(model));
  }));
}

TEST_P(DsaVerify, AFullQueueIsTriedAgain) {
  SKIP_OR_GOOD(child({.depth = 1, .full_pipe = true}, [](DsaModel& model) {
    const std::uint64_t before = dsa().bytes;
    const std::uint64_t bytes = many_requests(7, 12);
    CHILD_CHECK(dsa().bytes - before > bytes / 8);
    CHILD_EQUAL(model.counts().compares, moved(model));
  }));
}

// Each status but success and a page fault, at the compare alone.
TEST_P(DsaVerify, ErrorsOfTheCompareLoseNothing) {
  std::vector<std::uint8_t> errors;
  for (unsigned status = DSA_COMP_SUCCESS_PRED; status <= 0xff; ++status) {
    const unsigned code = status & DSA_COMP_STATUS_MASK;
    const bool fault = code == DSA_COMP_PAGE_FAULT_NOBOF || code == DSA_COMP_PAGE_FAULT_IR;
    if (code != DSA_COMP_NONE && code != DSA_COMP_SUCCESS && !fault)
      errors.push_back(static_cast<std::uint8_t>(status));
  }
  SKIP_OR_GOOD(child({.seed = 8, .errors = errors, .p_excess = 1, .p_compare_error = 6},
                     [](DsaModel& model) {
                       many_requests(8, 24);
                       CHILD_CHECK(model.counts().errors > 15);
                       CHILD_EQUAL(dsa().available, 1);
                     }));
  // (The model takes one error after the other.)
  SKIP_OR_GOOD(child({.seed = 8, .errors = errors, .p_compare_error = 30}, [&](DsaModel& model) {
    for (unsigned turn = 0; model.counts().errors < 2 * errors.size(); ++turn)
      CHILD_CHECK(one_is_right(turn % 2 != 0, 8 * kib));
    CHILD_EQUAL(dsa().available, 1);
  }));
  SKIP_OR_GOOD(child({.errors = errors, .p_compare_error = 100}, [](const DsaModel& model) {
    many_requests(8, 6);
    CHILD_CHECK(model.counts().errors >= 16);
    CHILD_EQUAL(dsa().available, 0);
  }));
}

TEST_P(DsaVerify, LostComparesAreFoundByADrain) {
  const ShortPatience patience;
  SKIP_OR_GOOD(child({.seed = 9, .p_compare_lose = 4}, [](DsaModel& model) {
    many_requests(9, 12);
    CHILD_CHECK(model.counts().lost > 0);
    CHILD_EQUAL(model.counts().drains, 1);
    CHILD_EQUAL(dsa().available, 0);
    CHILD_EQUAL(wrong_copies(), 0);
  }));
}

// What it had is moved when it goes on, and not compared any more where that was to be handed over:
// the CPU does it.
TEST_P(DsaVerify, OneThatIsStuckIsWaitedFor) {
  const ShortPatience patience;
  SKIP_OR_GOOD(child({}, [](DsaModel& model) { copy_while_stuck(model, [] {}); }));
}

// (A mover would copy some of it itself while the queue is full.)
TEST_P(DsaVerifyByCaller, WhatIsShownAsFinishedWasCompared) {
  SKIP_OR_GOOD(child({.most_transfer = 4096, .slow_us = 300}, [](const DsaModel& model) {
    unsigned steps = 0;
    for (unsigned turn = 0; turn < 3; ++turn) {
      const Buffer from(512 * kib), to(512 * kib);
      from.fill(turn);
      const std::uint64_t compared = model.counts().compared_bytes;
      const haul_request request = haul_request_copy(to.data(), from.data(), to.size());
      haul_ticket ticket{};
      CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
      std::size_t shown = 0;
      for (int tested = 0; tested == 0;) {
        tested = haul_test(ticket);
        std::size_t good = 0;
        haul_progress(ticket, &good);
        CHILD_CHECK(good <= model.counts().compared_bytes - compared);
        steps += good != shown ? 1 : 0;
        shown = good;
        sched_yield();
      }
      CHILD_EQUAL(model.counts().compared_bytes - compared, to.size());
    }
    CHILD_CHECK(steps > 30);
  }));
}

// A program must not do that, and its own bytes are anyone's guess; but the copy ends well.
TEST_P(DsaVerify, ASourceThatTheProgramChangesIsCopiedByTheCpu) {
  if (thread_sanitizer) GTEST_SKIP() << "it races, as is its purpose";
  SKIP_OR_GOOD(child({.slow_us = 50}, [](const DsaModel& model) {
    const Buffer from(mib), to(mib);
    std::atomic<bool> ends{false};
    std::thread changes([&] {
      for (unsigned value = 0; !ends; ++value)
        for (std::size_t at = 0; at < mib; at += 512)
          __atomic_store_n(from.data() + at, static_cast<unsigned char>(value), __ATOMIC_RELAXED);
    });
    for (unsigned turn = 0; turn < 12 || (wrong_copies() == 0 && turn < 1000); ++turn) {
      const haul_request request = haul_request_copy(to.data(), from.data(), mib);
      haul_ticket ticket{};
      CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
      ends_without_help(ticket);
    }
    ends = true;
    changes.join();
    CHILD_CHECK(wrong_copies() > 0);
    CHILD_EQUAL(model.counts().spoilt, 0);
    CHILD_CHECK(one_is_right(false, mib));
  }));
}

}  // namespace
