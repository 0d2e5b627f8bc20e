// Other processes: children of fork, those that attach to a window, and those that are killed.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "atomic/node.hpp"

namespace atomic_test {
namespace {

// What `work` returns in a child of fork; -1 if that dies.
int in_child(const std::function<int()>& work) {
  const pid_t child = fork();
  if (child == 0) _exit(work());
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class Processes : public OnCarrier {};

TEST_P(Processes, AnotherOneAttachesAndSharesTheWord) {
  constexpr std::uint64_t adds = 20'000;
  const auto inside = place->enter_server();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    haul_atomic_window* mine = nullptr;
    if (haul_atomic_window_attach(&name, &mine) != 0) _exit(1);
    if (haul_atomic_window_bytes(mine) != name.bytes) _exit(2);
    // Its own mapping, elsewhere, of the same memory.
    if (haul_atomic_window_memory(mine) == haul_atomic_window_memory(window.get())) _exit(3);
    haul_atomic_window_name same{};
    if (haul_atomic_window_export(mine, &same) != 0 || same.address != name.address) _exit(4);
    auto* memory = static_cast<std::uint64_t*>(haul_atomic_window_memory(mine));
    for (std::uint64_t i = 0; i < adds; ++i) __atomic_fetch_add(memory, 1, __ATOMIC_SEQ_CST);
    haul_atomic_operation one = operation(HAUL_ATOMIC_ADD, name.address, 1);
    for (std::uint64_t i = 0; i < adds; ++i) {
      if (haul_atomic_window_run(mine, &one, 1) != 0) _exit(5);
    }
    _exit(haul_atomic_window_destroy(mine) == 0 ? 0 : 6);
  }
  for (int i = 0; i < 500; ++i)
    ASSERT_EQ(haul_atomic_fetch_add(remote.get(), at(0), 1, nullptr), 0);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "exit " << WEXITSTATUS(status);
  EXPECT_EQ(word(), 2 * adds + 500);
}

TEST_P(Processes, WhoDoesNotKnowTheKeyDoesNotAttach) {
  const auto inside = place->enter_server();
  haul_atomic_window* none = nullptr;
  haul_atomic_window_name wrong = name;
  wrong.key ^= 1;
  EXPECT_REFUSED(HAUL_EPERM, haul_atomic_window_attach(&wrong, &none));
  wrong = name;
  wrong.window = 5;
  EXPECT_REFUSED(HAUL_EPERM, haul_atomic_window_attach(&wrong, &none));
  wrong.window = 0xffffffff;
  EXPECT_REFUSED(HAUL_EPERM, haul_atomic_window_attach(&wrong, &none));
  wrong = name;
  wrong.port ^= 1;
  EXPECT_REFUSED(HAUL_EPEER, haul_atomic_window_attach(&wrong, &none));
  EXPECT_EQ(none, nullptr);
  ASSERT_EQ(haul_atomic_window_attach(&name, &none), 0) << haul_last_error();
  const Window attached(none);
  EXPECT_EQ(haul_atomic_write(remote.get(), at(8), 6), 0);
  EXPECT_EQ(word_of(attached, 8), 6u);
  // It stays, when the owner's has gone.
  window.reset();
  EXPECT_EQ(word_of(attached, 8), 6u);
  EXPECT_REFUSED(HAUL_EPERM, haul_atomic_window_attach(&name, &none));
}

TEST_P(Processes, AChildHasNoneOfItsParentsNodes) {
  haul_atomic_operation one = operation(HAUL_ATOMIC_ADD, at(0), 1);
  std::uint64_t ticket = 0;
  ASSERT_EQ(haul_atomic_submit(remote.get(), &one, 1, 0, &ticket), 0);
  const int failed = in_child([&] {
    haul_atomic_remote* other = nullptr;
    haul_atomic_window* none = nullptr;
    haul_atomic_completion completion{};
    char text[100];
    const int results[] = {
        haul_atomic_run(remote.get(), &one, 1),
        haul_atomic_submit(remote.get(), &one, 1, 0, nullptr),
        haul_atomic_test(remote.get(), ticket, &one, 1),
        haul_atomic_wait(remote.get(), ticket, &one, 1),
        haul_atomic_reap(remote.get(), &completion, 1),
        haul_atomic_disconnect(remote.get()),
        haul_atomic_connect(client.get(), &name, &other),
        haul_atomic_window_create(server.get(), 1, &none),
        haul_atomic_node_describe(server.get(), text, sizeof text),
        haul_atomic_node_counters(server.get(), nullptr, 0),
        haul_atomic_node_close(client.get()),
        haul_atomic_node_close(server.get()),
    };
    for (int i = 0; i < 12; ++i) {
      if (results[i] != HAUL_ESTALE) return i + 1;
    }
    // The memory is there, for the CPU.
    one.operand = 10;
    if (haul_atomic_window_run(window.get(), &one, 1) != 0) return 20;
    __atomic_fetch_add(&word(), 100, __ATOMIC_SEQ_CST);
    return haul_atomic_window_destroy(window.get()) == 0 ? 0 : 21;
  });
  EXPECT_EQ(failed, 0) << "which call of the child's was wrong";
  EXPECT_EQ(haul_atomic_wait(remote.get(), ticket, &one, 1), 0);
  EXPECT_EQ(word(), 111u);
  EXPECT_EQ(haul_atomic_fetch_add(remote.get(), at(0), 1, nullptr), 0);
  EXPECT_EQ(word(), 112u);
}

TEST_P(Processes, AKilledOwnerLeavesNothing) {
  remote.reset();
  window.reset();
  server.reset();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const Node mine = place->open_server();
    if (!mine) _exit(1);
    const Window its = make_window(mine);
    const haul_atomic_window_name told = name_of(its);
    if (write(ends[1], &told, sizeof told) != sizeof told) _exit(1);
    for (;;) pause();
  }
  close(ends[1]);
  haul_atomic_window_name told{};
  ASSERT_EQ(read(ends[0], &told, sizeof told), static_cast<ssize_t>(sizeof told));
  close(ends[0]);
  Remote its = connect(client, told);
  // In the middle of things.
  haul_atomic_operation one = operation(HAUL_ATOMIC_ADD, told.address, 1);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(haul_atomic_run(its.get(), &one, 1), 0);
  for (int i = 0; i < 20; ++i) haul_atomic_submit(its.get(), &one, 1, 0, nullptr);
  ASSERT_EQ(kill(child, SIGKILL), 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << "exit " << WEXITSTATUS(status);
  if (place->cable() != nullptr) {
    const std::string shown =
        "ip -d link show dev " + std::string(Cable::server_interface) + " | grep -q xdp";
    EXPECT_NE(place->cable()->server.shell(shown), 0) << "an XDP program is still there";
  }
  haul_atomic_node_options again = default_options();
  again.port = told.port;
  const Node next = place->open_server(again);
  ASSERT_TRUE(next);
  EXPECT_EQ(description_of(next).find("no XDP"), std::string::npos);
  const Window fresh = make_window(next);
  EXPECT_EQ(name_of(fresh).port, told.port);
  // Its connections learn that it has gone.
  EXPECT_REFUSED(HAUL_EPEER, haul_atomic_fetch_add(its.get(), told.address, 1, nullptr));
}

INSTANTIATE_TEST_SUITE_P(, Processes, testing::ValuesIn(carriers), name_of_carrier);

}  // namespace
}  // namespace atomic_test
