// The C++ face, with libhaul-atomic.so.0 alone: what each member of atomic.hpp gives back, what it
// throws, and a counter and a lock that two processes share by it.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <haul/atomic.hpp>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using namespace haul::atomic;
using namespace std::chrono_literals;

constexpr const char* here = "block:127.0.0.1";
constexpr unsigned rounds = 200, members = 2;
constexpr std::uint64_t lock_at = 1024;

static_assert(!std::is_copy_constructible_v<window> &&
              std::is_nothrow_move_constructible_v<window>);
static_assert(!std::is_copy_constructible_v<remote> && !std::is_copy_constructible_v<lock>);

// The code of the haul::error that `call` throws, after a look at its sentence; 0: none.
template <class Call>
int thrown(Call call) {
  try {
    call();
  } catch (const haul::error& error) {
    EXPECT_STREQ(error.what(), haul_last_error());
    EXPECT_STRNE(error.what(), "");
    return error.code();
  }
  return 0;
}

std::uint64_t word(const window& of, std::size_t index) {
  return reinterpret_cast<const volatile std::uint64_t*>(of.memory().data())[index];
}

// A member of the lock whose home is at lock_at of this window: a word that only holders change.
void add_under_lock(const haul_atomic_window_name& name) {
  const node mine(here);
  const window own(mine, HAUL_ATOMIC_LOCK_MEMBER_BYTES);
  const haul_atomic_lock_place home{name, lock_at};
  haul_atomic_lock_options options{};
  options.rank = HAUL_ATOMIC_LOCK_ANY_RANK;
  options.count = members;
  options.home = &home;
  const lock turn(mine, own, options);
  const remote counter(mine, name);
  std::uint64_t last = 0;
  for (unsigned i = 0; i < rounds; ++i) {
    const std::uint64_t token = turn.acquire();
    ASSERT_GT(token, last);
    last = token;
    counter.write(8, counter.read(8) + 1);
    counter.fetch_add(0, 1);
    turn.release();
  }
}

TEST(AtomicHpp, TwoProcessesShareACounterAndALock) {
  int name_pipe[2];
  ASSERT_EQ(pipe(name_pipe), 0);
  const pid_t child = fork();  // while this process has no threads
  ASSERT_GE(child, 0);
  if (child == 0) {
    char text[160] = {};
    if (read(name_pipe[0], text, sizeof text - 1) > 0) add_under_lock(parse(text));
    _exit(testing::Test::HasFailure() || text[0] == '\0' ? 1 : 0);
  }
  const node owner(here);
  const window shared(owner, 4096);
  const std::string text = to_string(shared.name());
  ASSERT_EQ(write(name_pipe[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  add_under_lock(parse(text));
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(word(shared, 0), 2 * rounds);
  EXPECT_EQ(word(shared, 1), 2 * rounds);
  close(name_pipe[0]);
  close(name_pipe[1]);
}

TEST(AtomicHpp, EachOperationGivesTheWordBefore) {
  const node owner(here), client("none");
  const window shared(owner, 4096);
  EXPECT_NE(owner.description().find("block, "), std::string::npos);
  EXPECT_EQ(shared.memory().size(), 4096u);
  const window attached(shared.name());
  const remote there(client, shared.name());
  EXPECT_EQ(there.fetch_add(0, 3), 0u);
  EXPECT_EQ(there.fetch_write(0, 5), 3u);
  EXPECT_EQ(there.compare_swap(0, 7, 4), 5u);  // it was not 4
  EXPECT_EQ(there.compare_swap(0, 7, 5), 5u);
  EXPECT_EQ(there.read(0), 7u);
  there.write(8, 9);
  EXPECT_EQ(word(attached, 0), 7u);
  EXPECT_EQ(word(attached, 1), 9u);
  EXPECT_EQ(there.address(8), shared.name().address + 8);
}

TEST(AtomicHpp, BatchesGoOutAndComeBack) {
  const node owner(here), client("none");
  const window shared(owner, 4096);
  const remote there(client, shared.name());
  std::vector<haul_atomic_operation> batch(2);
  for (haul_atomic_operation& one : batch) {
    one.code = HAUL_ATOMIC_ADD;
    one.width = 8;
    one.address = there.address(0);
    one.operand = 10;
  }
  there.run(batch);
  EXPECT_EQ(batch[1].old, 10u);
  shared.run(batch);
  EXPECT_EQ(batch[1].old, 30u);
  there.wait(there.submit(batch), batch);
  EXPECT_EQ(batch[1].old, 50u);
  const std::uint64_t ticket = there.submit(batch);
  while (!there.test(ticket)) std::this_thread::yield();
  ASSERT_GT(there.submit(batch, 42), ticket);
  haul_atomic_completion completion{};
  while (there.reap({&completion, 1}) == 0) std::this_thread::yield();
  EXPECT_EQ(completion.tag, 42u);
  EXPECT_EQ(completion.old[1], 90u);
}

TEST(AtomicHpp, LocksAreTriedAndRenewed) {
  const node owner(here);
  const window home(owner, 4096), own(owner, 2 * HAUL_ATOMIC_LOCK_MEMBER_BYTES);
  const haul_atomic_lock_place place{home.name(), 0};
  const haul_atomic_lock_place places[] = {{own.name(), 0},
                                           {own.name(), HAUL_ATOMIC_LOCK_MEMBER_BYTES}};
  haul_atomic_lock_options options{};
  options.count = members;
  options.home = &place;
  options.members = places;
  const lock first(owner, own, options);
  options.rank = 1;
  const lock second(owner, own, options);
  const auto token = first.try_acquire();
  ASSERT_TRUE(token.has_value());
  EXPECT_FALSE(second.try_acquire().has_value());
  EXPECT_FALSE(second.try_acquire_for(20ms).has_value());
  first.renew();
  EXPECT_GT(first.remaining(), 0ns);
  first.release();
  EXPECT_EQ(first.remaining(), 0ns);
  const auto next = second.try_acquire_for(10s);
  ASSERT_TRUE(next.has_value());
  EXPECT_GT(*next, *token);
  second.release();
  EXPECT_EQ(thrown([&] { second.release(); }), HAUL_EINVAL);
}

TEST(AtomicHpp, FailuresAreThrownWithTheirSentence) {
  EXPECT_EQ(thrown([] { const node none("carrier-pigeon"); }), HAUL_EINVAL);
  EXPECT_EQ(thrown([] { parse("haul:"); }), HAUL_EINVAL);
  const node client("none");
  EXPECT_EQ(thrown([&] { const window none(client, 4096); }), HAUL_ENOTSUP);
  haul_atomic_window_name wrong;
  {
    const node owner(here);
    window shared(owner, 4096);
    const window moved(std::move(shared));
    EXPECT_EQ(shared.raw(), nullptr);
    wrong = moved.name();
    const remote there(client, wrong);
    EXPECT_EQ(thrown([&] { there.fetch_add(4096, 1); }), HAUL_EFAULT);
    ++wrong.key;
    EXPECT_EQ(thrown([&] { const remote none(client, wrong); }), HAUL_EPERM);
    EXPECT_EQ(thrown([&] { const window none(wrong); }), HAUL_EPERM);
  }
  EXPECT_EQ(thrown([&] { const window none(wrong); }), HAUL_EPEER);
}

}  // namespace
