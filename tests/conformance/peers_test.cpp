// Peers that die, that are closed, whose pid another process gets, and that the kernel keeps to
// itself.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "conformance/drive.hpp"
#include "conformance/peer.hpp"
#include "engine/registry.hpp"
#include "engine/spaces.hpp"

namespace haul::conformance {
namespace {

constexpr std::size_t bytes = 64 * 1024;

class Peers : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    engine_ = prepare({"cma"}, why);
    if (engine_ == nullptr) GTEST_SKIP() << "engine unavailable: " << why;
    if (peer_.space() == self_space) GTEST_SKIP() << "the kernel refuses: " << peer_.why();
  }

  Piece piece(bool reads, std::size_t length = bytes) {
    Piece result;
    result.length = length;
    (reads ? result.src_space : result.dst_space) = peer_.space();
    (reads ? result.src : result.dst) = peer_.address();
    (reads ? result.dst : result.src) = reinterpret_cast<std::uintptr_t>(here_.data());
    return result;
  }

  Peer peer_{bytes};
  std::vector<std::uint8_t> here_ = std::vector<std::uint8_t>(bytes);
  Engine* engine_ = nullptr;
};

TEST_F(Peers, ADeadPeerIsGone) {
  EXPECT_EQ(run(*engine_, piece(true)).code, Code::ok);
  peer_.kill();
  for (const bool reads : {true, false}) {
    const Outcome outcome = run(*engine_, piece(reads));
    EXPECT_EQ(outcome.code, Code::peer_gone);
    EXPECT_EQ(outcome.good_bytes, 0u);
  }
  Piece fill = piece(false);
  fill.operation = Operation::fill;
  EXPECT_EQ(run(*engine_, fill).code, Code::peer_gone);
}

TEST_F(Peers, AZombieIsGone) {
  const pid_t pid = peer_.pid();
  ::kill(pid, SIGKILL);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(run(*engine_, piece(true)).code, Code::peer_gone);
  Expected<Space> opened = open_space(pid);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::peer_gone);
}

TEST_F(Peers, APeerKilledWhileItIsReadLeavesAnHonestPrefix) {
  // Many rounds over a large piece, killed at another moment each; the peer's bytes are known.
  constexpr std::size_t large = 8 * 1024 * 1024;
  std::vector<std::uint8_t> known(large), dst(large);
  Random random(41);
  scramble(random, known.data(), large);
  int cut = 0;
  for (int round = 0; round < 12; ++round) {
    Peer peer(large);
    ASSERT_NE(peer.space(), self_space);
    peer.load(known.data());
    std::fill(dst.begin(), dst.end(), std::uint8_t{0});
    const pid_t pid = peer.pid();
    std::thread killer([pid, round] {
      std::this_thread::sleep_for(std::chrono::microseconds(round * 100));
      ::kill(pid, SIGKILL);
    });
    Piece large_piece;
    large_piece.src_space = peer.space();
    large_piece.src = peer.address();
    large_piece.dst = reinterpret_cast<std::uintptr_t>(dst.data());
    large_piece.length = large;
    const Outcome outcome = run(*engine_, large_piece);
    killer.join();
    if (outcome.code == Code::ok) {
      ASSERT_EQ(outcome.good_bytes, large);
    } else {
      ++cut;
      ASSERT_EQ(outcome.code, Code::peer_gone);
    }
    ASSERT_EQ(std::memcmp(dst.data(), known.data(), outcome.good_bytes), 0);
  }
  RecordProperty("rounds_cut_short", cut);
}

TEST_F(Peers, APidGivenToAnotherProcessIsNotThePeer) {
  const pid_t pid = peer_.pid();
  peer_.kill();
  // Only a sufficiently privileged process may choose the pid of its child.
  clone_args arguments{};
  arguments.exit_signal = SIGCHLD;
  arguments.set_tid = reinterpret_cast<std::uintptr_t>(&pid);
  arguments.set_tid_size = 1;
  const long child = syscall(SYS_clone3, &arguments, sizeof arguments);
  if (child == 0) {
    pause();
    _exit(0);
  }
  if (child < 0) GTEST_SKIP() << "the kernel does not let this user choose a pid";
  ASSERT_EQ(child, pid);
  // The newcomer's memory is open to us: only the pidfd tells that it is another.
  Expected<Space> newcomer = open_space(pid);
  ASSERT_TRUE(newcomer) << newcomer.error().sentence;
  Piece through_newcomer = piece(false);
  through_newcomer.dst_space = *newcomer;
  EXPECT_EQ(run(*engine_, through_newcomer).code, Code::ok);
  std::fill(here_.begin(), here_.end(), std::uint8_t{0xee});
  for (const bool reads : {false, true}) {
    const Outcome outcome = run(*engine_, piece(reads));
    EXPECT_EQ(outcome.code, Code::peer_gone);
    EXPECT_EQ(outcome.good_bytes, 0u);
  }
  Piece from_newcomer = piece(true);
  from_newcomer.src_space = *newcomer;
  EXPECT_EQ(run(*engine_, from_newcomer).code, Code::ok);
  EXPECT_EQ(here_[0], 0) << "the newcomer was written to";
  EXPECT_EQ(close_space(*newcomer), Code::ok);
  ::kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

// The program has closed haul's descriptor of it, and put a file of its own in its place.
TEST_F(Peers, WhoseDescriptorIsLostIsKnownByTheTimeItBegan) {
  const SpaceUse use = acquire_space(peer_.space());
  const int lost = use.pidfd.number();
  release_space(peer_.space());
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(dup2(ends[0], lost), lost);
  for (const bool reads : {false, true}) EXPECT_EQ(run(*engine_, piece(reads)).code, Code::ok);
  peer_.kill();
  for (const bool reads : {false, true})
    EXPECT_EQ(run(*engine_, piece(reads)).code, Code::peer_gone);
  for (const int fd : {lost, ends[0], ends[1]}) EXPECT_EQ(close(fd), 0);
}

TEST_F(Peers, AClosedSpaceIsClosedEvenIfItsIndexIsReused) {
  Expected<Space> another = open_space(peer_.pid());
  ASSERT_TRUE(another);
  ASSERT_EQ(close_space(*another), Code::ok);
  Piece closed = piece(true);
  closed.src_space = *another;
  EXPECT_EQ(run(*engine_, closed).code, Code::closed);
  // Every index anew.
  std::vector<Space> all;
  while (true) {
    Expected<Space> opened = open_space(peer_.pid());
    if (!opened) {
      EXPECT_EQ(opened.error().code, Code::no_memory);
      break;
    }
    all.push_back(*opened);
  }
  EXPECT_EQ(all.size(), max_spaces - 2) << "the fixture holds one";
  EXPECT_EQ(run(*engine_, closed).code, Code::closed);
  for (const Space space : all) EXPECT_EQ(close_space(space), Code::ok);
}

// Runs `body` in a child of another user; its exit status.
int as_nobody(int (*body)(pid_t), pid_t argument) {
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(77);
    prctl(PR_SET_DUMPABLE, 1);  // setuid took it away, and with it the rights of ptrace
    _exit(body(argument));
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

// From now on the kernel answers process_vm_readv in this process with this errno.
void refuse_reads(int sys_errno) {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(sys_errno)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog filter{4, program};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
    std::exit(77);
  }
}

// Exits: 0 if the engine says so, with this word in its sentence, and refuses honestly.
[[noreturn]] void expect_refusal(int sys_errno, const char* word, Code code) {
  refuse_reads(sys_errno);
  const EngineStatus status = cma_engine().status();
  if (status.available) std::exit(1);
  if (std::strstr(status.sentence, word) == nullptr) std::exit(2);
  Expected<Space> opened = open_space(getpid());
  if (opened || opened.error().code != code) std::exit(3);
  std::uint8_t from[64] = {1}, to[64] = {};
  Piece piece;
  piece.checked = true;
  piece.length = sizeof from;
  piece.dst = reinterpret_cast<std::uintptr_t>(to);
  piece.src = reinterpret_cast<std::uintptr_t>(from);
  const Outcome outcome = run(cma_engine(), piece);
  std::exit(outcome.code == code && outcome.good_bytes == 0 && to[0] == 0 ? 0 : 4);
}

// In a fresh process: the engine asks the kernel once.
TEST(RefusedPeers, AFilterThatRefusesIsNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(expect_refusal(EPERM, "seccomp", Code::permission), testing::ExitedWithCode(0), "");
}

TEST(RefusedPeers, AKernelWithoutTheCallIsNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(expect_refusal(ENOSYS, "CONFIG_CROSS_MEMORY_ATTACH", Code::not_supported),
              testing::ExitedWithCode(0), "");
}

TEST_F(Peers, AnotherUsersProcessIsRefused) {
  const int result = as_nobody(
      [](pid_t) {
        // Process 1 is root's, whoever we are.
        Expected<Space> opened = open_space(1);
        if (opened) return 1;
        if (opened.error().code != Code::permission) return 2;
        return std::strstr(opened.error().sentence, "CAP_SYS_PTRACE") != nullptr ? 0 : 3;
      },
      0);
  EXPECT_EQ(result, 0);
}

TEST_F(Peers, AnOrdinaryUserReachesItsOwnChild) {
  const int result = as_nobody(
      [](pid_t) {
        Peer child(bytes);
        if (child.space() == self_space) return 1;
        std::vector<std::uint8_t> from(bytes, 5);
        Piece to_child;
        to_child.dst_space = child.space();
        to_child.dst = child.address();
        to_child.src = reinterpret_cast<std::uintptr_t>(from.data());
        to_child.length = bytes;
        if (run(cma_engine(), to_child).code != Code::ok) return 2;
        return std::memcmp(child.store(), from.data(), bytes) == 0 ? 0 : 3;
      },
      0);
  EXPECT_EQ(result, 0);
}

}  // namespace
}  // namespace haul::conformance
