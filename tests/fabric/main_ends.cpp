// A program whose threads all end by themselves, main's by pthread_exit(), while endpoints are open
// that make progress by themselves. The process ends then, and exit handlers may still close the
// endpoints. 0: it has; 1: something failed before; a hang is the caller's to notice.
#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

#include "transfer.hpp"

namespace fabric_test {
namespace {

Node* sender = nullptr;
Node* receiver = nullptr;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  _exit(1);
}

void send_one() {
  std::uint64_t sent = 42, got = 0;
  Op send_op, receive_op;
  if (receive(*receiver, {.tag = 1}, &got, sizeof got, receive_op) != 0 ||
      send(*sender, {.to = sender->insert(receiver->name()), .tag = 1}, &sent, sizeof sent,
           send_op) != 0)
    fail("not posted");
  if (receiver->await(receive_op).err != 0 || sender->await(send_op).err != 0 || got != sent)
    fail("not received");
}

void close_all() {
  delete sender;
  delete receiver;
  _exit(0);
}

void play() {
  const Wish wish;
  const Info hints = hints_of(wish);
  hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
  fi_info* found = nullptr;
  if (fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints.get(), &found) != 0)
    fail("no provider");
  const Info info{found};
  sender = new Node(wish, *info);
  receiver = new Node(wish, *info);
  if (!sender->ready() || !receiver->ready()) fail("no endpoints");
  std::atexit(close_all);
  std::thread(send_one).detach();
}

}  // namespace
}  // namespace fabric_test

int main() {
  fabric_test::play();
  pthread_exit(nullptr);
}
