// No call of the provider's is a cancellation point: a thread that is to be cancelled comes through
// all of them, and what it leaves behind can be used.
#include <gtest/gtest.h>
#include <pthread.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "transfer.hpp"

namespace fabric_test {
namespace {

// Where the thread is. Unwound out of the provider it ends the program, which says this.
const char* at = "";

void say_where() {
  std::fprintf(stderr, "the thread was cancelled in %s\n", at);
  std::abort();
}

// Makes the call with a cancellation pending, which stays so.
#define CALL(call) (at = #call, call)

void every_call(fi_progress progress) {
  const Info hints = hints_of(Wish{.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC});
  hints->domain_attr->data_progress = progress;
  hints->domain_attr->domain = nullptr;
  fi_info* found = nullptr;
  EXPECT_NE(
      CALL(fi_getinfo(FI_VERSION(1, 17), "no-such-host.invalid", "1", 0, hints.get(), &found)), 0);
  ASSERT_EQ(CALL(fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints.get(), &found)), 0);
  const Info info{found};
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  fid_eq* events = nullptr;
  fid_wait* set = nullptr;
  fid_poll* polls = nullptr;
  fid_av* vector = nullptr;
  fid_cq* queue = nullptr;
  fid_cntr* counter = nullptr;
  fid_ep* ep = nullptr;
  fid_mr* region = nullptr;
  ASSERT_EQ(CALL(fi_fabric(info->fabric_attr, &fabric, nullptr)), 0);
  info->domain_attr->domain = nullptr;
  ASSERT_EQ(CALL(fi_domain(fabric, info.get(), &domain, nullptr)), 0);
  fi_eq_attr eq_attr{};
  eq_attr.wait_obj = FI_WAIT_FD;
  ASSERT_EQ(CALL(fi_eq_open(fabric, &eq_attr, &events, nullptr)), 0);
  fi_wait_attr wait_attr{FI_WAIT_FD, 0};
  ASSERT_EQ(CALL(fi_wait_open(fabric, &wait_attr, &set)), 0);
  fi_poll_attr poll_attr{0};
  ASSERT_EQ(CALL(fi_poll_open(domain, &poll_attr, &polls)), 0);
  fi_av_attr av_attr{};
  ASSERT_EQ(CALL(fi_av_open(domain, &av_attr, &vector, nullptr)), 0);
  fi_cq_attr cq_attr{};
  cq_attr.format = FI_CQ_FORMAT_TAGGED;
  cq_attr.wait_obj = FI_WAIT_FD;
  ASSERT_EQ(CALL(fi_cq_open(domain, &cq_attr, &queue, nullptr)), 0);
  fi_cntr_attr cntr_attr{};
  cntr_attr.wait_obj = FI_WAIT_FD;
  ASSERT_EQ(CALL(fi_cntr_open(domain, &cntr_attr, &counter, nullptr)), 0);
  ASSERT_EQ(CALL(fi_endpoint(domain, info.get(), &ep, nullptr)), 0);
  ASSERT_EQ(CALL(fi_ep_bind(ep, &vector->fid, 0)), 0);
  ASSERT_EQ(CALL(fi_ep_bind(ep, &queue->fid, FI_TRANSMIT | FI_RECV)), 0);
  ASSERT_EQ(CALL(fi_ep_bind(ep, &counter->fid, FI_RECV | FI_READ | FI_WRITE)), 0);
  ASSERT_EQ(CALL(fi_poll_add(polls, &queue->fid, 0)), 0);
  ASSERT_EQ(CALL(fi_enable(ep)), 0);
  std::byte name[256];
  std::size_t length = sizeof name;
  ASSERT_EQ(CALL(fi_getname(&ep->fid, name, &length)), 0);
  fi_addr_t self = FI_ADDR_NOTAVAIL;
  ASSERT_EQ(CALL(fi_av_insert(vector, name, 1, &self, 0, nullptr)), 1);
  char text[256];
  std::size_t room = sizeof text;
  CALL(fi_av_straddr(vector, name, text, &room));
  EXPECT_LT(CALL(fi_av_insertsvc(vector, "no-such-host.invalid", "1", &self, 0, nullptr)), 0);

  std::vector<std::uint8_t> from = pattern(2 * mib, 1), to(2 * mib);
  ASSERT_EQ(CALL(fi_mr_reg(domain, to.data(), to.size(), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 77, 0,
                           &region, nullptr)),
            0);
  const bool by_address = (info->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
  const std::uint64_t base = by_address ? reinterpret_cast<std::uintptr_t>(to.data()) : 0;
  const std::uint64_t key = fi_mr_key(region);
  Op ops[2];
  // Both halves of one exchange, and what completes them.
  const auto await = [&](int count) {
    for (fi_cq_tagged_entry entry; count > 0;) {
      ssize_t got = CALL(fi_cq_read(queue, &entry, 1));
      if (got == -FI_EAGAIN) got = CALL(fi_cq_sread(queue, &entry, 1, nullptr, 5));
      if (got != -FI_EAGAIN && got != -FI_ETIMEDOUT) {
        ASSERT_EQ(got, 1);
        --count;
      }
    }
  };
  for (const std::size_t size : {std::size_t{8}, 4 * kib, 100 * kib, 2 * mib}) {
    ASSERT_EQ(CALL(fi_trecv(ep, to.data(), size, nullptr, FI_ADDR_UNSPEC, 1, 0, &ops[0])), 0);
    ASSERT_EQ(CALL(fi_tsend(ep, from.data(), size, nullptr, self, 1, &ops[1])), 0);
    await(2);
    ASSERT_EQ(CALL(fi_recv(ep, to.data(), size, nullptr, FI_ADDR_UNSPEC, &ops[0])), 0);
    ASSERT_EQ(CALL(fi_send(ep, from.data(), size, nullptr, self, &ops[1])), 0);
    await(2);
    ASSERT_EQ(CALL(fi_write(ep, from.data(), size, nullptr, self, base, key, &ops[0])), 0);
    await(1);
    EXPECT_EQ(difference(to.data(), {from.begin(), from.begin() + static_cast<long>(size)}), "");
    ASSERT_EQ(CALL(fi_read(ep, from.data(), size, nullptr, self, base, key, &ops[0])), 0);
    await(1);
  }
  std::uint64_t one = 1, result = 0;
  ASSERT_EQ(CALL(fi_fetch_atomic(ep, &one, 1, nullptr, &result, nullptr, self, base, key, FI_UINT64,
                                 FI_SUM, &ops[0])),
            0);
  await(1);
  ASSERT_EQ(CALL(fi_trecv(ep, to.data(), 8, nullptr, FI_ADDR_UNSPEC, 9, 0, &ops[0])), 0);
  ASSERT_EQ(CALL(fi_cancel(&ep->fid, &ops[0])), 0);
  fi_cq_err_entry error{};
  ASSERT_EQ(CALL(fi_cq_readerr(queue, &error, 0)), 1);
  EXPECT_GT(CALL(fi_cntr_read(counter)), 0u);
  EXPECT_EQ(CALL(fi_cntr_wait(counter, 1000, 5)), -FI_ETIMEDOUT);
  std::uint32_t event = 0;
  fi_eq_entry entry{};
  EXPECT_LT(CALL(fi_eq_sread(events, &event, &entry, sizeof entry, 5, 0)), 0);
  CALL(fi_wait(set, 5));
  void* contexts[4];
  CALL(fi_poll(polls, contexts, 4));
  fid* waited[] = {&queue->fid};
  CALL(fi_trywait(fabric, waited, 1));
  CALL(fi_cq_signal(queue));

  ASSERT_EQ(CALL(fi_poll_del(polls, &queue->fid, 0)), 0);
  EXPECT_EQ(CALL(fi_close(&region->fid)), 0);
  EXPECT_EQ(CALL(fi_close(&ep->fid)), 0);
  EXPECT_EQ(CALL(fi_close(&counter->fid)), 0);
  EXPECT_EQ(CALL(fi_close(&queue->fid)), 0);
  EXPECT_EQ(CALL(fi_close(&vector->fid)), 0);
  EXPECT_EQ(CALL(fi_close(&polls->fid)), 0);
  EXPECT_EQ(CALL(fi_close(&set->fid)), 0);
  EXPECT_EQ(CALL(fi_close(&events->fid)), 0);
  EXPECT_EQ(CALL(fi_close(&domain->fid)), 0);
  EXPECT_EQ(CALL(fi_close(&fabric->fid)), 0);
}

void* run(void* progress) {
  // Nothing of gtest's or of the program's own is to be unwound.
  std::set_terminate(say_where);
  pthread_cancel(pthread_self());
  every_call(*static_cast<fi_progress*>(progress));
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
  return progress;
}

TEST(Cancellation, no_call_is_a_point_of_it) {
  if (!provider_is_haul()) GTEST_SKIP() << "haul's promise";
  ASSERT_TRUE(ask(Wish{}));  // libfabric has been set up
  for (fi_progress progress : {FI_PROGRESS_MANUAL, FI_PROGRESS_AUTO}) {
    pthread_t thread;
    ASSERT_EQ(pthread_create(&thread, nullptr, run, &progress), 0);
    void* result = nullptr;
    ASSERT_EQ(pthread_join(thread, &result), 0);
    EXPECT_EQ(result, &progress) << "it was cancelled in " << at;
  }
  Pair pair(Wish{});
  ASSERT_TRUE(pair.ready());
  check_transfer(pair, {.to = pair.to_b, .tag = 1}, {.tag = 1}, 100 * kib);
}

}  // namespace
}  // namespace fabric_test
