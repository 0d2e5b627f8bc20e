// The program closes descriptors that are haul's, and puts files of its own in their place: each of
// haul's descriptors, in each state that haul can be in, in each way. Copies go on, and the files
// stay as they were: open, with their bytes and their place, neither written nor read.
#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>

#include <atomic>
#include <functional>
#include <set>
#include <thread>
#include <vector>

#include "e2e/service_support.hpp"
#include "edges/lost_descriptors.hpp"

namespace {

using namespace e2e;

std::set<int> open_now() {
  std::set<int> open;
  DIR* const directory = opendir("/proc/self/fd");
  CHILD_CHECK(directory != nullptr);
  while (const dirent* entry = readdir(directory)) {
    const int fd = std::atoi(entry->d_name);
    if (entry->d_name[0] != '.' && fd != dirfd(directory)) open.insert(fd);
  }
  closedir(directory);
  return open;
}

// What the program puts where a descriptor of haul's was.
class OwnFile {
 public:
  // A file, whose bytes and place show what was done to it, or one end of a connection: a byte that
  // is read there is gone, and one that is written arrives at the other end.
  explicit OwnFile(bool connection) : connection_(connection) {
    if (connection_) {
      int ends[2];
      CHILD_EQUAL(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends), 0);
      fd_ = fcntl(ends[0], F_DUPFD, 200);
      other_ = fcntl(ends[1], F_DUPFD, 200);
      close(ends[0]);
      close(ends[1]);
      CHILD_EQUAL(send(other_, text, sizeof text, 0), sizeof text);
    } else {
      fd_ = fcntl(memfd_create("own", 0), F_DUPFD, 200);
      CHILD_EQUAL(write(fd_, text, sizeof text), sizeof text);
      CHILD_EQUAL(lseek(fd_, place, SEEK_SET), place);
    }
  }
  int fd() const { return fd_; }

  // It is at `number`, and as it was.
  void check(int number) const {
    struct stat here, there;
    CHILD_EQUAL(fstat(number, &here), 0);
    CHILD_EQUAL(fstat(fd_, &there), 0);
    CHILD_EQUAL(here.st_ino, there.st_ino);
    CHILD_EQUAL(fcntl(number, F_GETFD), 0);
    char seen[2 * sizeof text] = {};
    if (connection_) {
      CHILD_EQUAL(recv(other_, seen, sizeof seen, MSG_DONTWAIT), -1);
      CHILD_EQUAL(errno, EAGAIN);
      CHILD_EQUAL(recv(number, seen, sizeof seen, MSG_DONTWAIT | MSG_PEEK), sizeof text);
    } else {
      CHILD_EQUAL(lseek(number, 0, SEEK_CUR), place);
      CHILD_EQUAL(there.st_size, sizeof text);
      CHILD_EQUAL(pread(number, seen, sizeof seen, 0), sizeof text);
    }
    CHILD_EQUAL(std::memcmp(seen, text, sizeof text), 0);
  }

 private:
  static constexpr char text[] = "the program's own";
  static constexpr off_t place = 3;
  bool connection_;
  int fd_ = -1, other_ = -1;
};

enum class Way { closed, file, connection, all_closed, all_files, last = all_files };

// Loses the descriptors in `lost`; where the program's files are afterwards.
void lose(const std::set<int>& lost, Way way, std::vector<std::pair<int, OwnFile>>* own) {
  const bool connection = way == Way::connection;
  const bool files = way == Way::file || way == Way::all_files || connection;
  for (const int fd : lost) {
    if (!files) {
      CHILD_EQUAL(close(fd), 0);
      continue;
    }
    own->emplace_back(fd, OwnFile(connection));
    CHILD_EQUAL(dup2(own->back().second.fd(), fd), fd);
  }
}

struct State {
  const char* name;
  // Brings haul into it; what to do in it afterwards.
  std::function<std::function<void()>()> enter;
};

void entries_arrive() {
  const Buffer src(mib), dst(mib);
  haul_request request = haul_request_copy(dst.data(), src.data(), mib);
  request.flags = HAUL_COMPLETE;
  haul_ticket ticket;
  CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
  CHILD_EQUAL(haul_wait(ticket), 0);
  haul_completion entry;
  for (unsigned turn = 0; haul_reap(&entry, 1) != 1; ++turn) {
    CHILD_CHECK(turn < 5000);
    sleep_ms(1);
  }
  CHILD_EQUAL(entry.status, 0);
}

// All that a program may ask of haul in any state.
void goes_on() {
  for (const std::size_t size : {std::size_t{100}, 64 * kib, 4 * mib}) copy_works(size, size);
  haul_wake();
  copy_works(mib, 2);
  entries_arrive();
  // The old descriptor of the queue, if it is lost, is said to be.
  const int armed = haul_reap_arm();
  CHILD_CHECK(armed == 0 || armed == HAUL_ECLOSED);
  const int event = haul_reap_eventfd();
  CHILD_CHECK(event > 2);
  while (haul_reap_arm() == 1) {
  }
  entries_arrive();
  pollfd waited{event, POLLIN, 0};
  CHILD_EQUAL(poll(&waited, 1, 20'000), 1);
  if (void* memory = haul_alloc(mib); memory != nullptr) {
    std::memset(memory, 1, mib);
    CHILD_EQUAL(haul_free(memory), 0);
  } else {
    CHILD_CHECK(std::strstr(haul_last_error(), "closed descriptor") != nullptr);
  }
  if (thread_sanitizer) return;  // no threads in a child of fork
  CHILD_EQUAL(run_child([] {
                copy_works(mib, 3);
                entries_arrive();
                return 0;
              }),
              0);
}

std::vector<State> ordinary_states() {
  const auto nothing = [] {};
  return {
      {"before the first copy", [=] { return nothing; }},
      {"awake",
       [=] {
         copy_works(mib, 1);
         CHILD_CHECK(wake_and_see());
         return nothing;
       }},
      {"asleep",
       [=] {
         copy_works(mib, 1);
         for (int turn = 0; state_now().mover_state != 2 && turn < 5000; ++turn) sleep_ms(1);
         return nothing;
       }},
      {"with an arena and an armed queue",
       [=]() -> std::function<void()> {
         auto* const memory = static_cast<unsigned char*>(haul_alloc(mib));
         CHILD_CHECK(memory != nullptr);
         CHILD_CHECK(haul_reap_eventfd() > 2);
         CHILD_EQUAL(haul_reap_arm(), 0);
         return [=] {
           const Buffer src(mib);
           src.fill(9);
           CHILD_EQUAL(haul_wait(haul_copy(memory, src.data(), mib)), 0);
           CHILD_EQUAL(std::memcmp(memory, src.data(), mib), 0);
           CHILD_EQUAL(haul_free(memory), 0);
         };
       }},
      {"with a peer's space",
       [=]() -> std::function<void()> {
         auto* const src = new Buffer(mib);
         src->fill(4);
         // Its parent may be traced by nobody else, but it is ours.
         const pid_t peer = start_child([] {
           pause();
           return 0;
         });
         haul_space space = 0;
         CHILD_EQUAL(haul_space_open(peer, &space), 0);
         return [=] {
           const Buffer dst(mib);
           for (const unsigned flags : {unsigned{HAUL_INLINE}, unsigned{HAUL_DEDICATED}}) {
             haul_request request = haul_request_copy(dst.data(), src->data(), mib);
             request.src.space = space;
             request.flags = flags;
             haul_ticket ticket;
             dst.clear();
             CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
             CHILD_EQUAL(haul_wait(ticket), 0);
             CHILD_EQUAL(std::memcmp(dst.data(), src->data(), mib), 0);
           }
           CHILD_EQUAL(haul_space_close(space), 0);
           kill(peer, SIGKILL);
         };
       }},
      {"in a child of fork",
       [=] {
         copy_works(mib, 1);
         CHILD_CHECK(haul_reap_eventfd() > 2);
         if (const pid_t child = fork(); child != 0) _exit(end_of(child));
         copy_works(mib, 1);
         CHILD_CHECK(haul_reap_eventfd() > 2);
         return nothing;
       }},
  };
}

std::vector<State> service_states() {
  return {
      {"attached to a service",
       []() -> std::function<void()> {
         CHILD_CHECK(attach());
         return [] {};
       }},
      {"with grants",
       []() -> std::function<void()> {
         CHILD_CHECK(attach());
         auto* const memory = static_cast<unsigned char*>(haul_alloc(mib));
         CHILD_CHECK(memory != nullptr);
         haul_grant grant;
         CHILD_EQUAL(haul_share(memory, mib, HAUL_SHARE_READ, &grant), 0);
         haul_space space = 0;
         std::size_t length = 0;
         CHILD_EQUAL(haul_space_open_grant(&grant, &space, &length), 0);
         return [=] {
           // Through the service, or with a sentence that tells why not.
           const Buffer dst(mib);
           haul_request request = haul_request_copy(dst.data(), nullptr, mib);
           request.src.space = space;
           haul_ticket ticket;
           if (haul_submit(&request, 1, &ticket) == 1) {
             haul_wait(ticket);
           } else {
             CHILD_CHECK(haul_last_error()[0] != '\0');
           }
           haul_grant another;
           if (haul_share(memory, mib, HAUL_SHARE_READ, &another) == 0) {
             CHILD_CHECK(another.fd > 2 && fcntl(another.fd, F_GETFD) == FD_CLOEXEC);
           } else {
             CHILD_CHECK(haul_last_error()[0] != '\0');
           }
           haul_unshare(&grant);
           CHILD_EQUAL(haul_space_close(space), 0);
         };
       }},
  };
}

// One case in a process of its own. skip_status: haul has fewer descriptors than `which`.
int one_case(const State& state, std::size_t which, Way way) {
  for (const int fd : {0, 1}) dup2(open("/dev/null", O_RDWR | O_CLOEXEC), fd);
  const std::set<int> before = open_now();
  const std::function<void()> afterwards = state.enter();
  sleep_ms(30);  // files that haul reads at its start are closed by then
  std::set<int> theirs;
  for (const int fd : open_now()) {
    if (before.count(fd) != 0) continue;
    CHILD_CHECK(fd > 2);
    CHILD_EQUAL(fcntl(fd, F_GETFD), FD_CLOEXEC);
    theirs.insert(fd);
  }
  const bool all = way == Way::all_closed || way == Way::all_files;
  if (all ? which != 0 : which >= theirs.size()) return skip_status;
  std::set<int> lost = theirs;
  if (!all) lost = {*std::next(theirs.begin(), static_cast<std::ptrdiff_t>(which))};
  std::vector<std::pair<int, OwnFile>> own;
  lose(lost, way, &own);
  const auto untouched = [&] {
    for (const auto& [number, file] : own) file.check(number);
  };
  goes_on();
  untouched();
  afterwards();
  untouched();
  // The mover has slept, and looked at its lease.
  sleep_ms(40);
  goes_on();
  untouched();
  CHILD_EQUAL(haul_shutdown(), 0);
  untouched();
  return 0;
}

// `at_once`: the ways of losing the same descriptor are tried at the same time.
void sweep(const State& state, bool at_once, const std::function<void()>& settings) {
  std::vector<Way> ways;
  // (For time: what a sanitizer sees is the same road in the others.)
  if (sanitizer) ways = {Way::file, Way::all_closed};
  for (int way = 0; !sanitizer && way <= static_cast<int>(Way::last); ++way)
    ways.push_back(static_cast<Way>(way));
  unsigned cases = 0;
  for (std::size_t which = 0; !ways.empty(); ++which) {
    std::vector<Way> left;
    const auto judge = [&](Way way, pid_t child) {
      const int status = end_of(child);
      if (status == skip_status) return;
      ++cases;
      EXPECT_EQ(status, 0) << state.name << ", descriptor " << which << ", way "
                           << static_cast<int>(way);
      if (status == 0) left.push_back(way);
    };
    std::vector<std::pair<Way, pid_t>> running;
    for (const Way way : ways) {
      const pid_t child = start_child([&] {
        settings();
        setenv("HAUL_MOVER_SPIN_US", "1000", 1);
        return one_case(state, which, way);
      });
      if (at_once)
        running.emplace_back(way, child);
      else
        judge(way, child);
    }
    for (const auto& [way, child] : running) judge(way, child);
    ways = std::move(left);
  }
  testing::Test::RecordProperty("cases", static_cast<int>(cases));
}

class Descriptors : public testing::TestWithParam<std::size_t> {};

TEST_P(Descriptors, OfHaulsMayBeLost) {
  const State state = ordinary_states()[GetParam()];
  if (thread_sanitizer && std::strcmp(state.name, "in a child of fork") == 0)
    GTEST_SKIP() << "ThreadSanitizer has no threads in a child of fork";
  // With the lease, which a mover of another process may have just now.
  sweep(state, false, [] {
    always_mover();
    unsetenv("HAUL_MOVER_LEASE");
  });
}
INSTANTIATE_TEST_SUITE_P(States, Descriptors, testing::Range<std::size_t>(0, 6));

class DescriptorsBesideAService : public testing::TestWithParam<std::size_t> {};

TEST_P(DescriptorsBesideAService, MayBeLost) {
  Service service;
  ASSERT_TRUE(service.start());
  // Without the lease; and who has lost the service looks for it again for two seconds.
  sweep(service_states()[GetParam()], true, [&] { service.use(); });
}
INSTANTIATE_TEST_SUITE_P(States, DescriptorsBesideAService, testing::Range<std::size_t>(0, 2));

// The standard streams were closed when haul came to life: none of its descriptors takes their
// numbers, where the program would write.
TEST(DescriptorNumbers, AreNoneOfTheStandardStreams) {
  EXPECT_EQ(run_child([] {
              always_mover();
              const int err = fcntl(2, F_DUPFD_CLOEXEC, 100);
              for (const int fd : {0, 1, 2}) close(fd);
              copy_works(mib, 1);
              bool high = haul_reap_eventfd() > 2 && haul_alloc(mib) != nullptr;
              const pid_t peer = start_child([] {
                pause();
                return 0;
              });
              haul_space space;
              high = high && haul_space_open(peer, &space) == 0;
              for (const int fd : {0, 1, 2}) high = high && fcntl(fd, F_GETFD) == -1;
              kill(peer, SIGKILL);
              dup2(err, 2);
              CHILD_CHECK(high);
              return 0;
            }),
            0);
}

// One that has descriptors of its own never gets those that haul opens afterwards. What only the
// service can copy fails there, for that reason, and goes well elsewhere.
TEST(DescriptorsOfAThread, LackHauls) {
  Service service;
  ASSERT_TRUE(service.start());
  EXPECT_EQ(run_child([&service] {
              service.use("auto");
              std::atomic<int> step{0};
              haul_space space = HAUL_SPACE_SELF;
              haul_request request{};
              std::thread apart([&] {
                CHILD_EQUAL(unshare(CLONE_FILES), 0);
                step = 1;
                while (step != 2) sleep_ms(1);
                haul_ticket ticket{};
                CHILD_EQUAL(haul_submit(&request, 1, &ticket), HAUL_EAGAIN);
                CHILD_CHECK(std::strstr(haul_last_error(), "CLONE_FILES") != nullptr);
              });
              while (step != 1) sleep_ms(1);
              CHILD_CHECK(attach());
              const Shared from(mib), to(mib);
              haul_grant grant;
              CHILD_EQUAL(haul_share(from.data(), mib, HAUL_SHARE_READ, &grant), 0);
              CHILD_EQUAL(haul_space_open_grant(&grant, &space, nullptr), 0);
              request = haul_request_copy(to.data(), nullptr, mib);
              request.src.space = space;
              step = 2;
              apart.join();
              haul_ticket ticket{};
              CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
              CHILD_EQUAL(haul_wait(ticket), 0);
              return 0;
            }),
            0);
}

}  // namespace
