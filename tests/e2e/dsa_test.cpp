// The engine `dsa` on a device model that executes real descriptors: the bytes are right whatever
// the device does, by a mover and by the caller, through a portal and through write(). Skipped
// where haul was built without libaccel-config.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <csignal>
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

class Dsa : public testing::TestWithParam<std::tuple<const char*, DsaPath>> {
 protected:
  template <class Body>
  int child(const DsaConduct& conduct, Body body, unsigned seconds = 60) {
    return with_dsa(std::get<0>(GetParam()), std::get<1>(GetParam()), conduct, body, seconds);
  }
};
INSTANTIATE_TEST_SUITE_P(By, Dsa,
                         testing::Combine(testing::Values("thread", "caller"),
                                          testing::Values(DsaPath::portal, DsaPath::pipe)));

// (A mover copies some itself while the queue is full.)
TEST_P(Dsa, MovesWhateverItIsGiven) {
  SKIP_OR_GOOD(child({.held = 3}, [](DsaModel& model) {
    const std::uint64_t before = dsa().bytes;
    const std::uint64_t bytes = many_requests(1, 12);
    CHILD_CHECK(dsa().bytes - before > bytes / 8);
    CHILD_CHECK(model.counts().moves > 20);
    CHILD_CHECK(model.counts().fills > 20);
    // The kernel takes no batches.
    CHILD_EQUAL(model.counts().batches > 0, by_portal(model));
    CHILD_EQUAL(dsa().available, 1);
  }));
}

// A queue of one descriptor, and one that is full without being asked.
TEST_P(Dsa, AFullQueueIsTriedAgain) {
  SKIP_OR_GOOD(child({.depth = 1, .full_pipe = true}, [](DsaModel&) {
    const std::uint64_t before = dsa().bytes;
    const std::uint64_t bytes = many_requests(2, 12);
    CHILD_CHECK(dsa().bytes - before > bytes / 8);
  }));
}

TEST_P(Dsa, PageFaultsAnywhereCostNoByte) {
  SKIP_OR_GOOD(child({.seed = 3, .held = 2, .p_fault = 40}, [](DsaModel& model) {
    const std::uint64_t before = dsa().bytes;
    const std::uint64_t bytes = many_requests(3, 12);
    CHILD_CHECK(dsa().bytes - before > bytes / 8);
    CHILD_CHECK(model.counts().faults > 50);
  }));
}

TEST_P(Dsa, WhatABackwardMoveHasDoneIsNotCounted) {
  SKIP_OR_GOOD(child({.seed = 4, .p_fault = 30, .backwards = true}, [](DsaModel& model) {
    many_requests(4, 16);
    CHILD_CHECK(model.counts().faults > 20);
  }));
}

// New memory: the rest of a part is populated at its first fault, not page by page.
TEST_P(Dsa, NewPagesAreMadeAtOnce) {
  SKIP_OR_GOOD(child({.faults_at_new_pages = true}, [](DsaModel& model) {
    for (unsigned turn = 0; turn < 4; ++turn) {
      const Buffer from(4 * mib), to(4 * mib);
      from.fill(turn);
      const unsigned before = model.counts().faults;
      const haul_request request = haul_request_copy(to.data(), from.data(), to.size());
      haul_ticket ticket{};
      CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
      ends_without_help(ticket);
      CHILD_EQUAL(std::memcmp(to.data(), from.data(), to.size()), 0);
      // 64 parts of 64 KiB, and a few more where chunks end.
      CHILD_CHECK(model.counts().faults - before < 140);
      many_requests(5, 3);
    }
    CHILD_CHECK(model.counts().faults > 0);
  }));
}

TEST_P(Dsa, AQueueThatMayBlockOnFaultsDoes) {
  SKIP_OR_GOOD(child({.block_on_fault = true, .faults_at_new_pages = true}, [](DsaModel& model) {
    many_requests(6, 6);
    CHILD_EQUAL(model.counts().faults, 0);
  }));
}

TEST_P(Dsa, BatchesThatEndEarlyAreFinished) {
  SKIP_OR_GOOD(child({.seed = 7, .p_fault = 10, .p_batch_error = 50}, [](DsaModel& model) {
    const std::uint64_t before = dsa().bytes;
    const std::uint64_t bytes = many_requests(7, 12);
    CHILD_CHECK(dsa().bytes - before > bytes / 8);
    if (by_portal(model)) CHILD_CHECK(model.counts().errors > 3);
  }));
}

// Each status that <linux/idxd.h> has for a descriptor that failed, and others; first now and then,
// then always, until the engine is given up (once: the status comes by the same record whoever
// drives, and however descriptors are handed over).
TEST_P(Dsa, ErrorsOfEveryStatusLoseNothing) {
  std::vector<std::uint8_t> errors;
  for (unsigned status = DSA_COMP_SUCCESS_PRED; status <= 0xff; ++status) {
    const unsigned code = status & DSA_COMP_STATUS_MASK;
    const bool fault = code == DSA_COMP_PAGE_FAULT_NOBOF || code == DSA_COMP_PAGE_FAULT_IR;
    if (code != DSA_COMP_NONE && code != DSA_COMP_SUCCESS && !fault)
      errors.push_back(static_cast<std::uint8_t>(status));
  }
  SKIP_OR_GOOD(
      child({.seed = 8, .p_error = 25, .errors = errors, .p_excess = 5}, [](DsaModel& model) {
        many_requests(8, 24);
        CHILD_CHECK(model.counts().errors > 40);
        CHILD_EQUAL(dsa().available, 1);
      }));
  const bool always = GetParam() == std::tuple(std::string_view("caller"), DsaPath::portal);
  for (std::size_t first = 0; always && first < errors.size(); first += 40) {
    const std::vector<std::uint8_t> some(
        errors.begin() + static_cast<std::ptrdiff_t>(first),
        errors.begin() + static_cast<std::ptrdiff_t>(std::min(first + 40, errors.size())));
    SKIP_OR_GOOD(child({.seed = first, .p_error = 100, .errors = some}, [](DsaModel& model) {
      many_requests(8, 6);
      CHILD_CHECK(model.counts().errors >= 16);
      CHILD_EQUAL(dsa().available, 0);
    }));
  }
}

// Their completion records never come: a drain tells that nothing more will be written.
TEST_P(Dsa, LostCompletionsAreFoundByADrain) {
  const ShortPatience patience;
  SKIP_OR_GOOD(child({.seed = 9, .p_lose = 4}, [](DsaModel& model) {
    many_requests(9, 12);
    CHILD_CHECK(model.counts().lost > 0);
    CHILD_EQUAL(model.counts().drains, 1);
    CHILD_EQUAL(dsa().available, 0);
  }));
}

// A device cannot be stopped: what it had is waited for, and all else goes on by the CPU.
TEST_P(Dsa, OneThatIsStuckIsWaitedFor) {
  const ShortPatience patience;
  SKIP_OR_GOOD(
      child({}, [](DsaModel& model) { copy_while_stuck(model, [] { many_requests(11, 4); }); }));
}

TEST_P(Dsa, AProcessEndsThoughItIsStuck) {
  const ShortPatience patience;
  SKIP_OR_GOOD(child({}, [](DsaModel& model) {
    model.stick();
    static const Buffer from(mib), to(mib);
    const haul_request request = haul_request_copy(to.data(), from.data(), mib);
    haul_ticket ticket{};
    CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
    std::exit(0);
  }));
}

// A range that is not mapped is the CPU's to fault at, as it is without a device.
TEST_P(Dsa, AFaultThatIsRealIsTheProgramsOwn) {
  const int status = child({}, [](DsaModel&) {
    std::signal(SIGSEGV, SIG_DFL);  // a sanitizer has a handler of its own
    const Buffer from(256 * kib), to(256 * kib);
    mprotect(to.data() + 128 * kib, 4096, PROT_READ);
    const haul_request request = haul_request_copy(to.data(), from.data(), from.size());
    haul_ticket ticket{};
    CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
    haul_wait(ticket);
  });
  if (status == skip_status) GTEST_SKIP() << "haul was built without libaccel-config";
  EXPECT_EQ(status, 1000 + SIGSEGV);
}

TEST_P(Dsa, TheDestinationsAffinityIsTheDevices) {
  SKIP_OR_GOOD(child({}, [](DsaModel& model) {
    const Buffer from(mib), to(mib);
    for (const unsigned affinity : {HAUL_CACHEABLE, HAUL_NEUTRAL, HAUL_NON_CACHEABLE}) {
      haul_request request = haul_request_copy(to.data(), from.data(), mib);
      request.dst_affinity = static_cast<std::uint8_t>(affinity);
      const unsigned moves = model.counts().moves, to_cache = model.counts().to_cache;
      haul_ticket ticket{};
      CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
      ends_without_help(ticket);
      const unsigned moved = model.counts().moves - moves;
      CHILD_CHECK(moved != 0);
      CHILD_EQUAL(model.counts().to_cache - to_cache, affinity == HAUL_NON_CACHEABLE ? 0 : moved);
    }
  }));
}

TEST_P(Dsa, AChildOfForkDoesWithout) {
  if (thread_sanitizer) GTEST_SKIP() << "ThreadSanitizer does not survive a fork of threads";
  SKIP_OR_GOOD(child({.slow_us = 100}, [](DsaModel& model) {
    RandomNumbers random(12);
    const SomeRequest under_way(random, 2 * mib);
    const pid_t forked = start_child([&] {
      under_way.is_right();
      many_requests(13, 3);
      CHILD_EQUAL(dsa().available, 0);
      return 0;
    });
    CHILD_EQUAL(haul_wait(under_way.ticket()), 0);
    under_way.is_right();
    many_requests(14, 3);
    CHILD_EQUAL(end_of(forked), 0);
    const unsigned before = model.counts().moves + model.counts().fills;
    many_requests(15, 3);
    CHILD_CHECK(model.counts().moves + model.counts().fills > before);
    CHILD_EQUAL(dsa().available, 1);
  }));
}

}  // namespace
