// wire/serve.h on several processors at once, as the XDP program runs: the same packets meet there,
// the same slots change hands, and yet each is executed once.
#include <atomic>
#include <functional>
#include <iterator>
#include <thread>
#include <utility>
#include <vector>

#include "unit/atomic/service.hpp"

namespace {

// Several wait for each other at one line of serve.h, so that they go on from it at once.
class Meeting {
 public:
  explicit Meeting(unsigned members) : members_(members) {}
  void meet() {
    const std::uint64_t mine = arrived_.fetch_add(1) / members_;
    for (unsigned spins = 0; arrived_.load() < (mine + 1) * members_; ++spins) {
      if (spins > 1000) std::this_thread::yield();
    }
  }

 private:
  const unsigned members_;
  std::atomic<std::uint64_t> arrived_{0};
};
// Of this thread: the next meeting at these lines, and then no more.
thread_local Meeting* before_taking_slot = nullptr;
thread_local Meeting* before_results = nullptr;
thread_local unsigned slots_looked_at = 0;
// What other processors do while this one stands between a packet's session and its results.
thread_local std::function<void()> meanwhile;

void attend(Meeting** meeting) {
  if (*meeting != nullptr) std::exchange(*meeting, nullptr)->meet();
}

// A responder whose counters may be counted by several.
struct shared_tables {
  haul::atomics::Tables* tables;
  std::atomic<std::uint64_t> events[SERVE_EVENTS];
};

}  // namespace

struct responder {
  shared_tables* shared;
  char* memory;
};

#include "atomic/wire/serve.h"

SERVE_INLINE void count_event(struct responder* self, __u32 event) {
  self->shared->events[event].fetch_add(1, std::memory_order_relaxed);
}
SERVE_INLINE struct window_entry* find_window(struct responder* self, __u32 window) {
  return self->shared->tables->find_window(window);
}
SERVE_INLINE char* find_page(struct responder* self, __u32 window, __u64 offset) {
  return self->shared->tables->find_page(window, offset);
}
SERVE_INLINE struct session_entry* find_session(struct responder* self, __u32 slot) {
  // A hello looks at all slots that its number leads to, then takes one.
  if (++slots_looked_at == self->shared->tables->sessions() + 1) attend(&before_taking_slot);
  return self->shared->tables->find_session(slot);
}
SERVE_INLINE struct result_entry* find_results(struct responder* self, __u32 slot, __u32 sequence) {
  attend(&before_results);
  if (const auto others = std::exchange(meanwhile, nullptr)) others();
  return self->shared->tables->find_results(slot, sequence);
}
SERVE_INLINE __u32 session_slots(struct responder* self) {
  return self->shared->tables->sessions();
}

namespace haul::atomics::test {
namespace {

constexpr unsigned processors = 2;

class Processors : public testing::Test {
 protected:
  // What each of several does, in step with the others.
  template <class Work>
  void on_each(Work work) {
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < processors; ++i) threads.emplace_back([&work, i] { work(i); });
    for (std::thread& thread : threads) thread.join();
  }
  // True: answered. A drop is asked again by the caller, as a client does.
  bool serve_here(WirePacket* packet, std::uint64_t source) {
    responder self{&shared, nullptr};
    const std::size_t bytes = packet_bytes(*packet);
    const char* limit = reinterpret_cast<const char*>(packet) + bytes;
    return ::serve(&self, &packet->header, static_cast<__u32>(bytes), limit, source,
                   service.now_s) == SERVE_ANSWER;
  }
  bool ask_until_answered(const WirePacket& question, std::uint64_t source, WirePacket* answer) {
    for (int tries = 0; tries < 1'000'000; ++tries) {
      *answer = question;
      if (serve_here(answer, source)) return true;
      std::this_thread::yield();
    }
    return false;
  }

  Service service{4};
  shared_tables shared{&service.tables, {}};
  Meeting meeting{processors};
};

TEST_F(Processors, TheSamePacketOnAllIsExecutedOnce) {
  Asker asker(5);
  ASSERT_EQ(asker.hello(service), WIRE_OK);
  constexpr std::uint64_t rounds = 20'000;
  std::atomic<std::uint64_t> wrong{0};
  on_each([&](unsigned) {
    Asker mine = asker;
    for (std::uint64_t i = 0; i < rounds; ++i) {
      WirePacket answer;
      const WirePacket question =
          mine.request({operation(WIRE_ADD, 0, 1), operation(WIRE_ADD, 8, 2)});
      before_results = &meeting;
      if (!ask_until_answered(question, mine.source, &answer) || answer.header.status != WIRE_OK ||
          answer.operations[0].operand != i || answer.operations[1].operand != 2 * i) {
        ++wrong;
      }
    }
  });
  EXPECT_EQ(wrong.load(), 0u);
  EXPECT_EQ(service.memory.word(0), rounds);
  EXPECT_EQ(service.memory.word(8), 2 * rounds);
  EXPECT_EQ(shared.events[SERVED_PACKETS].load(), rounds);
}

TEST_F(Processors, NewAndOldSequencesOfOnePlaceMeet) {
  // One asks for the next sequence of a place while others still deliver copies of the last.
  Asker asker(5);
  ASSERT_EQ(asker.hello(service), WIRE_OK);
  constexpr std::uint64_t rounds = 20'000;
  std::atomic<std::uint64_t> wrong{0};
  on_each([&](unsigned processor) {
    Asker mine = asker;
    WirePacket last = mine.request({operation(WIRE_ADD, 0, 1)});
    for (std::uint64_t i = 0; i < rounds; ++i) {
      mine.sequence += WIRE_RESULTS - 1;
      const WirePacket next = mine.request({operation(WIRE_ADD, 0, 1)});
      meeting.meet();
      if (processor == 0) {
        WirePacket answer;
        if (!ask_until_answered(next, mine.source, &answer)) ++wrong;
      } else if (i > 0) {
        WirePacket copy = last;
        serve_here(&copy, mine.source);  // replayed or dropped
      }
      last = next;
    }
  });
  EXPECT_EQ(wrong.load(), 0u);
  EXPECT_EQ(service.memory.word(0), rounds);
}

TEST_F(Processors, ClientsThatWantOneSlotAreKeptApart) {
  // Whoever is told that it has a session can use it, until it leaves.
  constexpr std::uint64_t rounds = 20'000;
  std::atomic<std::uint64_t> wrong{0}, added{0};
  on_each([&](unsigned processor) {
    for (std::uint64_t i = 0; i < rounds; ++i) {
      // All lead to one slot first.
      Asker mine((i % 4) << 32 | (processor + 1) << 20 | (i + 1), processor + 1);
      meeting.meet();
      before_taking_slot = &meeting;
      slots_looked_at = 0;
      WirePacket answer;
      if (!ask_until_answered(mine.packet(WIRE_HELLO), mine.source, &answer) ||
          answer.header.status != WIRE_OK) {
        ++wrong;
        continue;
      }
      mine.slot = answer.header.slot;
      if (!ask_until_answered(mine.request({operation(WIRE_ADD, 0, 1)}), mine.source, &answer) ||
          answer.header.status != WIRE_OK) {
        ++wrong;
      } else {
        ++added;
      }
      WirePacket bye = mine.packet(WIRE_BYE);
      serve_here(&bye, mine.source);
    }
  });
  EXPECT_EQ(wrong.load(), 0u);
  EXPECT_EQ(service.memory.word(0), added.load());
}

TEST_F(Processors, ALateCopyOfAnEndedSessionLeavesTheNextOnesResultsAlone) {
  Asker old(5);
  ASSERT_EQ(old.hello(service), WIRE_OK);
  const WirePacket first = old.request({operation(WIRE_ADD, 0, 1)});
  WirePacket answer = first;
  ASSERT_TRUE(serve_here(&answer, old.source));
  // A copy is held up behind the look at its session; meanwhile that one ends, and its slot's next
  // session uses the same entry of the table.
  Asker next(6);
  WirePacket next_first;
  meanwhile = [&] {
    old.bye(service);
    ASSERT_EQ(next.hello(service), WIRE_OK);
    ASSERT_EQ(next.slot & 0xffff, old.slot & 0xffff);
    next_first = next.request({operation(WIRE_ADD, 8, 1)});
    answer = next_first;
    ASSERT_TRUE(serve_here(&answer, next.source));
  };
  WirePacket copy = first;
  EXPECT_FALSE(serve_here(&copy, old.source));
  EXPECT_EQ(service.memory.word(0), 1u) << "the copy was executed once more";
  // A copy of the next session's packet is answered from the table.
  answer = next_first;
  ASSERT_TRUE(serve_here(&answer, next.source));
  EXPECT_EQ(answer.operations[0].operand, 0u);
  EXPECT_EQ(service.memory.word(8), 1u) << "the next session's packet was executed once more";
}

TEST_F(Processors, EntriesOfAnySessionBeforeAreEmptyToTheNext) {
  // However long ago that was: generations wrap round.
  const Asker first(5);
  constexpr std::uint32_t generations[] = {1, 2, 77, 1u << 29, (1u << 29) + 1, (1u << 30) - 1};
  for (const std::uint32_t passed : generations) {
    Asker one = first;
    ASSERT_EQ(one.hello(service), WIRE_OK);
    WirePacket answer = one.request({operation(WIRE_ADD, 0, 1)});
    ASSERT_TRUE(serve_here(&answer, one.source));
    one.bye(service);
    service.tables.find_session(one.slot & 0xffff)->generation += passed - 1;
    Asker next = first;
    ASSERT_EQ(next.hello(service), WIRE_OK);
    answer = next.request({operation(WIRE_ADD, 8, 1)});
    ASSERT_TRUE(serve_here(&answer, next.source)) << passed << " sessions later";
    EXPECT_EQ(answer.header.status, WIRE_OK);
    next.bye(service);
  }
  EXPECT_EQ(service.memory.word(8), std::size(generations));
}

TEST_F(Processors, SessionsComeAndGoBesideLateCopies) {
  constexpr std::uint64_t rounds = 20'000;
  std::atomic<std::uint64_t> wrong{0};
  WirePacket last{};
  on_each([&](unsigned processor) {
    WirePacket bye{};
    for (std::uint64_t i = 0; i < rounds; ++i) {
      meeting.meet();
      WirePacket copy = last;
      meeting.meet();
      if (processor == 1) {
        // A copy of what the session before has asked, while that one ends.
        if (i != 0) serve_here(&copy, 1);
        continue;
      }
      if (i != 0) serve_here(&bye, 1);
      Asker asker(i + 1, 1);
      WirePacket answer;
      if (!ask_until_answered(asker.packet(WIRE_HELLO), 1, &answer)) ++wrong;
      asker.slot = answer.header.slot;
      const WirePacket question = asker.request({operation(WIRE_ADD, 0, 1)});
      for (int copies = 0; copies < 2; ++copies) {
        if (!ask_until_answered(question, 1, &answer) || answer.header.status != WIRE_OK ||
            answer.operations[0].operand != i) {
          ++wrong;
        }
      }
      last = question;
      bye = asker.packet(WIRE_BYE);
    }
  });
  EXPECT_EQ(wrong.load(), 0u);
  EXPECT_EQ(service.memory.word(0), rounds);
}

TEST_F(Processors, GuardedWordsLoseNothing) {
  constexpr std::uint64_t rounds = 50'000;
  std::atomic<std::uint64_t> added{0};
  on_each([&](unsigned processor) {
    Asker mine((processor + 1ull) << 32 | 1, processor + 1);
    WirePacket answer;
    ASSERT_TRUE(ask_until_answered(mine.packet(WIRE_HELLO), mine.source, &answer));
    mine.slot = answer.header.slot;
    for (std::uint64_t i = 0; i < rounds; ++i) {
      const WirePacket question = mine.request({operation(WIRE_ADD, 0, 1, 0, 8, WIRE_GUARDED, 7)});
      ASSERT_TRUE(ask_until_answered(question, mine.source, &answer));
      if (answer.operations[0].result == WIRE_DONE) ++added;
    }
  });
  EXPECT_GT(added.load(), 0u);
  EXPECT_EQ(service.memory.word(0), 7ull << 32 | added.load());
}

}  // namespace
}  // namespace haul::atomics::test
