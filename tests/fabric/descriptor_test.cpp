// A program that closes all descriptors, or puts files of its own at their numbers: the provider
// goes on or says so, ends in time, and leaves the program's files alone.
#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <ctime>
#include <set>
#include <thread>

#include "transfer.hpp"

namespace fabric_test {
namespace {

std::set<int> open_numbers() {
  std::set<int> numbers;
  DIR* directory = opendir("/proc/self/fd");
  while (const dirent* entry = directory != nullptr ? readdir(directory) : nullptr) {
    if (entry->d_name[0] == '.') continue;
    numbers.insert(std::atoi(entry->d_name));
  }
  if (directory != nullptr) {
    numbers.erase(dirfd(directory));
    closedir(directory);
  }
  return numbers;
}

// A file of the program's: nothing else may write into it, close it or move in it.
class File {
 public:
  // At this number, or the lowest that is free.
  explicit File(int at = -1) : fd_(memfd_create("program", MFD_CLOEXEC)) {
    if (at >= 0 && at != fd_) {
      EXPECT_EQ(dup2(fd_, at), at);
      close(fd_);
      fd_ = at;
    }
    EXPECT_EQ(fstat(fd_, &status_), 0);
  }
  ~File() { close(fd_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  int number() const { return fd_; }
  bool untouched() const {
    struct stat now {};
    return fstat(fd_, &now) == 0 && now.st_dev == status_.st_dev && now.st_ino == status_.st_ino &&
           now.st_size == 0 && lseek(fd_, 0, SEEK_CUR) == 0;
  }

 private:
  int fd_;
  struct stat status_ {};
};

const Wish descriptor_wish{.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_DIRECTED_RECV,
                           .wait = FI_WAIT_FD};

// Sends something each way, and sleeps for it. It may fail, but must end.
void use(Pair& pair) {
  std::uint64_t from = 1, to = 0;
  for (int i = 0; i < 2; ++i) {
    SCOPED_TRACE(i == 0 ? "from the first" : "from the second");
    Op receive_op, send_op;
    Node& sender = i == 0 ? pair.a : pair.b;
    Node& receiver = i == 0 ? pair.b : pair.a;
    const fi_addr_t there = i == 0 ? pair.to_b : pair.to_a, back = i == 0 ? pair.to_a : pair.to_b;
    if (fi_trecv(receiver.ep.get(), &to, sizeof to, nullptr, back, 1, 0, &receive_op) != 0)
      continue;
    const ssize_t sent = sender.post(
        [&] { return fi_tsend(sender.ep.get(), &from, sizeof from, nullptr, there, 1, &send_op); });
    const bool arrives = sent == 0 && sender.await(send_op).err == 0;
    fi_cq_tagged_entry entry{};
    fi_cq_sread(receiver.cq.get(), &entry, 0, nullptr, 5);
    // Who cannot be connected to hears nothing of that. (It may have failed already.)
    if (!arrives) fi_cancel(&receiver.ep->fid, &receive_op);
    EXPECT_NE(receiver.await(receive_op).err, ETIMEDOUT);
  }
}

// A new pair works, whatever became of the old one.
void expect_recovery() {
  Pair pair(descriptor_wish);
  ASSERT_TRUE(pair.ready());
  check_transfer(pair, {.to = pair.to_b, .tag = 1}, {.tag = 1}, 100 * kib);
}

class Descriptors : public testing::Test {
 protected:
  void SetUp() override {
    if (!provider_is_haul()) GTEST_SKIP() << "haul's promise";
    ASSERT_TRUE(ask(descriptor_wish));
    // What libhaul has of its own comes with the first.
    expect_recovery();
  }
};

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Each descriptor that endpoints have, in turn, at two times: before the peers know each other, and
// after.
TEST_F(Descriptors, each_replaced_by_a_file_of_the_programs) {
  for (const bool connected : {false, true}) {
    for (std::size_t index = 0;; ++index) {
      // What cannot be told from the program's files any more is left open, so there may be more.
      const std::set<int> before = open_numbers();
      auto pair = std::make_unique<Pair>(descriptor_wish);
      ASSERT_TRUE(pair->ready());
      if (connected) use(*pair);
      std::vector<int> own;
      for (const int number : open_numbers()) {
        if (before.count(number) == 0) own.push_back(number);
      }
      ASSERT_FALSE(own.empty());
      if (index >= own.size()) break;
      SCOPED_TRACE(std::to_string(index) + " of " + std::to_string(own.size()) +
                   (connected ? ", connected" : ""));
      const File file(own[index]);
      use(*pair);
      pair.reset();
      EXPECT_TRUE(file.untouched());
      if (HasFailure()) return;
    }
  }
  expect_recovery();
}

TEST_F(Descriptors, all_closed_and_their_numbers_taken) {
  for (const bool connected : {false, true}) {
    SCOPED_TRACE(connected ? "connected" : "apart");
    const std::set<int> before = open_numbers();
    auto pair = std::make_unique<Pair>(descriptor_wish);
    ASSERT_TRUE(pair->ready());
    if (connected) use(*pair);
    int highest = 0;
    for (const int number : open_numbers()) {
      if (before.count(number) != 0) continue;
      close(number);
      highest = std::max(highest, number);
    }
    std::vector<std::unique_ptr<File>> files;
    do {
      files.push_back(std::make_unique<File>());
    } while (files.back()->number() <= highest);
    use(*pair);
    // Nobody spins for what is gone, and it is noticed.
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    const double begin = cpu_seconds();
    constexpr double idle_s = 1.5;
    std::this_thread::sleep_for(std::chrono::duration<double>(idle_s));
    EXPECT_LT(cpu_seconds() - begin, idle_s / 2);
    use(*pair);
    expect_recovery();
    pair.reset();
    for (const auto& file : files) EXPECT_TRUE(file->untouched()) << file->number();
    files.clear();
    expect_recovery();
  }
}

// The standard streams' numbers are not taken where the program has closed them.
TEST_F(Descriptors, none_at_the_standard_streams) {
  const int saved = dup(STDIN_FILENO);
  close(STDIN_FILENO);
  {
    Pair pair(descriptor_wish);
    ASSERT_TRUE(pair.ready());
    use(pair);
    EXPECT_EQ(fcntl(STDIN_FILENO, F_GETFD), -1) << "a descriptor of haul's is stdin";
  }
  if (saved < 0) return;
  dup2(saved, STDIN_FILENO);
  close(saved);
}

}  // namespace
}  // namespace fabric_test
