// Whose requests a mover may do: rights get equal numbers when they are equal, and keys must agree.
#include "request/rights.hpp"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

namespace haul {
namespace {

int in_child(int (*body)()) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Rights, OfOneProcessesThreadsAreOneNumber) {
  const RightsNumber mine = rights_number();
  EXPECT_NE(mine, nobodys);
  EXPECT_EQ(rights_number(), mine);
  RightsNumber others = nobodys;
  std::thread([&] { others = rights_number(); }).join();
  EXPECT_EQ(others, mine);
  EXPECT_TRUE(may_act_for(mine));
  EXPECT_FALSE(may_act_for(nobodys));
}

TEST(Rights, OfAThreadThatGaveUpItsUserAreOthers) {
  if (geteuid() != 0) GTEST_SKIP() << "only root may change its user";
  EXPECT_EQ(in_child([] {
              const RightsNumber before = rights_number();
              // The system call itself, which changes this thread only.
              if (syscall(SYS_setresuid, 65534, 65534, 65534) != 0) return 1;
              if (rights_number() == before || may_act_for(before)) return 2;
              RightsNumber others = nobodys;
              const os::Rights rights = os::rights_of_this_thread();
              others = number_of(rights);
              return others == rights_number() && others != nobodys ? 0 : 3;
            }),
            0);
}

TEST(Rights, DifferInEachPart) {
  EXPECT_EQ(in_child([] {
              os::Rights some;
              some.user[0] = 7;
              const RightsNumber number = number_of(some);
              for (int part = 0; part < 7; ++part) {
                os::Rights other = some;
                if (part < 3) ++other.user[part];
                if (part >= 3 && part < 6) ++other.group[part - 3];
                if (part == 6) other.capabilities = 1;
                if (number_of(other) == number || number_of(other) == nobodys) return 1;
              }
              return number_of(some) == number ? 0 : 2;
            }),
            0);
}

// Who has other rights than all that were met acts for himself alone.
TEST(Rights, BeyondTheTableAreNobodys) {
  EXPECT_EQ(in_child([] {
              const RightsNumber mine = rights_number();
              os::Rights many;
              many.capabilities = 1;
              for (std::uint32_t user = 1; user < 100; ++user) {
                many.user[0] = user;
                number_of(many);
              }
              if (number_of(many) != nobodys) return 1;
              return rights_number() == mine ? 0 : 2;
            }),
            0);
}

TEST(Rights, KeysMustAgreeWhereThereAreKeys) {
  EXPECT_FALSE(keys_part(false, 0, 0xffffffff)) << "no keys";
  EXPECT_FALSE(keys_part(true, 0x55555554, 0x55555554));
  EXPECT_TRUE(keys_part(true, 0x55555550, 0x55555554)) << "the caller has opened key 1";
  EXPECT_TRUE(keys_part(true, 0x55555554, 0x55555550)) << "the mover has, and must not use it";
}

TEST(Rights, KeysAreLookedAtOnlyWhereTheCpuHasThem) {
  EXPECT_EQ(in_child([] {
              if (keyed_apart()) return 1;  // there is no mover yet
              note_mover_keys();
              if (mover_keys.keyed.load() != cpu_features().protection_keys) return 2;
              return keyed_apart() ? 3 : 0;
            }),
            0);
}

}  // namespace
}  // namespace haul
