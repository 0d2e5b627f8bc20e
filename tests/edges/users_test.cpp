// A service is one user's. A program that acts for two, or has become another user's since it came,
// is not its client; it says so, and copies by itself.
#include <gtest/gtest.h>
#include <pthread.h>

#include "e2e/service_support.hpp"

namespace {

using namespace e2e;

constexpr unsigned nobody = 65534;

class Users : public testing::Test {
 protected:
  void SetUp() override {
    if (unprivileged()) GTEST_SKIP() << "only root may change its user";
    ASSERT_TRUE(service_.start());
  }
  Service service_;
};

// The sentence follows in a moment.
bool says_why() {
  for (int turn = 0; turn < 5000; ++turn) {
    if (std::strstr(state_now().service_status, "user") != nullptr) return true;
    sleep_ms(1);
  }
  return false;
}

// Its next copies are right all the same.
int goes_on_alone() {
  for (const std::size_t size : {kib, mib, 4 * mib}) copy_works(size, size);
  const Shared src(mib), dst(mib);
  src.fill(7);
  CHILD_EQUAL(haul_wait(haul_copy(dst.data(), src.data(), mib)), 0);
  CHILD_EQUAL(first_wrong(dst.data(), mib, 7), -1);
  return 0;
}

TEST_F(Users, OneWhoHasDroppedItsUserLeaves) {
  EXPECT_EQ(run_child([&] {
              service_.use();
              CHILD_CHECK(attach());
              CHILD_EQUAL(setresgid(nobody, nobody, nobody), 0);
              CHILD_EQUAL(setresuid(nobody, nobody, nobody), 0);
              CHILD_CHECK(detached(20'000));
              CHILD_CHECK(says_why());
              return goes_on_alone();
            }),
            0);
  EXPECT_TRUE(service_.running());
}

// The system call itself changes the calling thread only, so haul's own do not see it; the service
// does.
TEST_F(Users, OneWhoHasDroppedItsUserInSilenceIsDropped) {
  EXPECT_EQ(run_child([&] {
              service_.use();
              CHILD_CHECK(attach());
              CHILD_EQUAL(syscall(SYS_setresuid, nobody, nobody, nobody), 0);
              for (int turn = 0; turn < 2000 && state_now().service_state != 0; ++turn) {
                Shared some(64 * kib);
                CHILD_EQUAL(haul_wait(haul_fill(some.data(), 1, 1, some.size())), 0);
                haul_wake();
                sleep_ms(10);
              }
              CHILD_EQUAL(state_now().service_state, 0);
              CHILD_CHECK(says_why());
              return goes_on_alone();
            }),
            0);
  EXPECT_TRUE(service_.running());
}

// As a set-user-id program: the ordinary user behind it must not reach into it through a service.
TEST_F(Users, OneWhoActsForTwoDoesNotCome) {
  EXPECT_EQ(run_child([&] {
              service_.use();
              CHILD_EQUAL(setresuid(nobody, 0, 0), 0);
              haul_wake();
              copy_works(4 * mib, 1);
              sleep_ms(300);
              haul_wake();
              const haul_state state = state_now();
              CHILD_EQUAL(state.service_state, 0);
              CHILD_CHECK(std::strstr(state.service_status, "two users") != nullptr);
              return goes_on_alone();
            }),
            0);
}

}  // namespace
