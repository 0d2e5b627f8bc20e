#include "sides.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace fabric_test {

namespace {

constexpr const char* role_variable = "HAUL_TEST_SIDE_DESCRIPTOR";
// Words put before the second process's command, e.g. "unshare --pid --fork".
constexpr const char* prefix_variable = "HAUL_TEST_PEER_PREFIX";

void play(const Side& side, const Wish& wish, int descriptor) {
  Node node(wish);
  ASSERT_TRUE(node.ready()) << node.why();
  Link link(descriptor, node);
  const fi_addr_t peer = node.insert(link.exchange(node.name()));
  side(node, peer, link);
  link.meet();
}

std::string own_path() {
  std::string path(4096, 0);
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  EXPECT_GT(length, 0);
  path.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  return path;
}

std::vector<std::string> command_of_peer() {
  std::vector<std::string> words;
  if (const char* prefix = std::getenv(prefix_variable)) {
    std::string word;
    for (const char* at = prefix; *at != 0; ++at) {
      if (*at != ' ') {
        word += *at;
      } else if (!word.empty()) {
        words.push_back(std::move(word));
        word.clear();
      }
    }
    if (!word.empty()) words.push_back(std::move(word));
  }
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  words.push_back(own_path());
  words.push_back(std::string("--gtest_filter=") + test->test_suite_name() + "." + test->name());
  words.push_back("--gtest_brief=1");
  words.push_back("--gtest_color=no");
  return words;
}

pid_t start_peer(int descriptor) {
  const std::vector<std::string> words = command_of_peer();
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const std::string number = std::to_string(descriptor);
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    fcntl(descriptor, F_SETFD, 0);
    setenv(role_variable, number.c_str(), 1);
    unsetenv("GTEST_OUTPUT");
    unsetenv("GTEST_SHARD_INDEX");
    unsetenv("GTEST_TOTAL_SHARDS");
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  return pid;
}

void expect_good_end(pid_t pid) {
  const auto limit = std::chrono::steady_clock::now() + patience();
  int status = 0;
  pid_t ended = 0;
  while ((ended = waitpid(pid, &status, WNOHANG)) == 0) {
    if (std::chrono::steady_clock::now() > limit) {
      ADD_FAILURE() << "the other process does not end";
      kill(pid, SIGKILL);
      ended = waitpid(pid, &status, 0);
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ASSERT_EQ(ended, pid);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
      << "the other process failed: status " << status << "; its own messages are above";
}

}  // namespace

const char* name_of(Surrounding surrounding) {
  return surrounding == Surrounding::one_process ? "one_process" : "two_processes";
}

void Link::put_bytes(const void* bytes, std::size_t size) {
  const auto* from = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t count = ::send(descriptor_, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count > 0) {
      from += count;
      size -= static_cast<std::size_t>(count);
      continue;
    }
    ASSERT_TRUE(count < 0 && (errno == EAGAIN || errno == EINTR)) << "the other side has gone";
    node_.progress();
  }
}

void Link::get_bytes(void* bytes, std::size_t size) {
  auto* to = static_cast<char*>(bytes);
  while (size > 0) {
    ssize_t count = 0;
    const bool came = node_.await_until([&] {
      count = ::recv(descriptor_, to, size, MSG_DONTWAIT);
      return count >= 0 || (errno != EAGAIN && errno != EINTR);
    });
    ASSERT_TRUE(came && count > 0) << "the other side has gone, or hangs";
    to += count;
    size -= static_cast<std::size_t>(count);
  }
}

std::vector<std::byte> Link::exchange(const std::vector<std::byte>& mine) {
  put(mine.size());
  put_bytes(mine.data(), mine.size());
  std::vector<std::byte> theirs(get<std::size_t>());
  get_bytes(theirs.data(), theirs.size());
  return theirs;
}

void Link::meet() {
  put('.');
  EXPECT_EQ(get<char>(), '.');
}

bool offered(const Wish& wish) {
  if (ask(wish)) return true;
  EXPECT_FALSE(provider_is_haul())
      << "fi_getinfo() finds nothing for the test's hints: set FI_PROVIDER_PATH to the directory "
         "of libhaul-fi.so, or repair what it offers";
  return false;
}

void run_sides(Surrounding surrounding, const Wish& wish, const Side& left, const Side& right) {
  if (const char* role = std::getenv(role_variable)) {
    play(right, wish, std::atoi(role));
    return;
  }
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  if (surrounding == Surrounding::one_process) {
    std::thread other([&] {
      play(right, wish, ends[1]);
      shutdown(ends[1], SHUT_RDWR);
    });
    play(left, wish, ends[0]);
    shutdown(ends[0], SHUT_RDWR);
    other.join();
    close(ends[1]);
  } else {
    const pid_t pid = start_peer(ends[1]);
    close(ends[1]);
    play(left, wish, ends[0]);
    shutdown(ends[0], SHUT_RDWR);
    expect_good_end(pid);
  }
  close(ends[0]);
}

}  // namespace fabric_test
