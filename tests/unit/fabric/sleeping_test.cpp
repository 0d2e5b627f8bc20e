// Threads that sleep on libfabric's objects are woken: wait sets, blocking reads of queues and
// counters, signals. The objects and the network are the real ones; libfabric is not needed.
#include <gtest/gtest.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "fabric/endpoint/fabric.hpp"

namespace haul::fabric {
namespace {

struct Close {
  template <class Object>
  void operator()(Object* object) const {
    EXPECT_EQ(fi_close(&object->fid), 0);
  }
};
template <class Object>
using Owned = std::unique_ptr<Object, Close>;

// What `open(&object)` opened.
template <class Object, class Open>
Owned<Object> opened(Open open) {
  Object* object = nullptr;
  EXPECT_EQ(open(&object), 0);
  return Owned<Object>(object);
}

constexpr int patience_ms = 30'000;
// Long enough that the other thread sleeps by then, most likely; the tests hold if it does not.
void let_sleep() {
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

class Sleeping : public testing::Test {
 protected:
  Owned<fid_fabric> fabric = opened<fid_fabric>([](fid_fabric** made) {
    fi_fabric_attr attr = {};
    attr.api_version = FI_VERSION(1, 17);
    return Fabric::open(&attr, made, nullptr);
  });
  Owned<fid_domain> domain = opened<fid_domain>([this](fid_domain** made) {
    fi_domain_attr attr = {};
    attr.threading = FI_THREAD_SAFE;
    fi_info info = {};
    info.domain_attr = &attr;
    return fi_domain(fabric.get(), &info, made, nullptr);
  });

  Owned<fid_wait> wait_set(fi_wait_obj kind) {
    return opened<fid_wait>([&](fid_wait** made) {
      fi_wait_attr attr = {kind, 0};
      return fi_wait_open(fabric.get(), &attr, made);
    });
  }
  Owned<fid_cq> queue(fi_wait_obj kind, fid_wait* set = nullptr) {
    return opened<fid_cq>([&](fid_cq** made) {
      fi_cq_attr attr = {};
      attr.format = FI_CQ_FORMAT_TAGGED;
      attr.wait_obj = kind;
      attr.wait_set = set;
      return fi_cq_open(domain.get(), &attr, made, nullptr);
    });
  }
  Owned<fid_cntr> counter(fi_wait_obj kind, fid_wait* set = nullptr) {
    return opened<fid_cntr>([&](fid_cntr** made) {
      fi_cntr_attr attr = {};
      attr.wait_obj = kind;
      attr.wait_set = set;
      return fi_cntr_open(domain.get(), &attr, made, nullptr);
    });
  }

  // Two endpoints that know each other.
  struct Pair {
    Owned<fid_av> vector;
    Owned<fid_cq> sends;
    Owned<fid_ep> from, to;
    fi_addr_t target = FI_ADDR_NOTAVAIL;

    void send(std::uint64_t tag) {
      char byte = 1;
      ssize_t done = -FI_EAGAIN;
      while ((done = fi_tinject(from.get(), &byte, 1, target, tag)) == -FI_EAGAIN) {
        fi_cq_read(sends.get(), nullptr, 0);
      }
      EXPECT_EQ(done, 0);
      // A first message waits for the connection, which the sender must see.
      for (int i = 0; i < 200; ++i) {
        fi_cq_read(sends.get(), nullptr, 0);
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
    }
  };
  Pair pair(fid_cq* receives, fid_cntr* received = nullptr) {
    Pair made;
    made.vector = opened<fid_av>([this](fid_av** vector) {
      fi_av_attr attr = {};
      return fi_av_open(domain.get(), &attr, vector, nullptr);
    });
    made.sends = queue(FI_WAIT_NONE);
    const auto endpoint = [&](fid_cq* sends, fid_cq* queue) {
      Owned<fid_ep> one = opened<fid_ep>([this](fid_ep** ep) {
        fi_info info = {};
        info.caps = FI_TAGGED;
        return fi_endpoint(domain.get(), &info, ep, nullptr);
      });
      EXPECT_EQ(fi_ep_bind(one.get(), &made.vector->fid, 0), 0);
      EXPECT_EQ(fi_ep_bind(one.get(), &sends->fid, FI_TRANSMIT), 0);
      EXPECT_EQ(fi_ep_bind(one.get(), &queue->fid, FI_RECV), 0);
      return one;
    };
    made.from = endpoint(made.sends.get(), made.sends.get());
    made.to = endpoint(receives, receives);
    if (received != nullptr) {
      EXPECT_EQ(fi_ep_bind(made.to.get(), &received->fid, FI_RECV), 0);
    }
    EXPECT_EQ(fi_enable(made.from.get()), 0);
    EXPECT_EQ(fi_enable(made.to.get()), 0);
    char name[64];
    std::size_t bytes = sizeof name;
    EXPECT_EQ(fi_getname(&made.to->fid, name, &bytes), 0);
    EXPECT_EQ(fi_av_insert(made.vector.get(), name, 1, &made.target, 0, nullptr), 1);
    return made;
  }
};

class WaitSets : public Sleeping, public testing::WithParamInterface<fi_wait_obj> {};

TEST_P(WaitSets, a_message_wakes_whoever_waits) {
  const Owned<fid_wait> set = wait_set(GetParam());
  const Owned<fid_cq> quiet = queue(FI_WAIT_SET, set.get());
  const Owned<fid_cq> receives = queue(FI_WAIT_SET, set.get());
  EXPECT_EQ(fi_close(&set->fid), -FI_EBUSY);
  fi_cq_tagged_entry entry = {};
  EXPECT_EQ(fi_cq_sread(receives.get(), &entry, 1, nullptr, 0), -FI_ENOSYS);
  EXPECT_EQ(fi_wait(set.get(), 1), -FI_ETIMEDOUT);
  Pair two = pair(receives.get());
  for (std::uint64_t tag = 0; tag < 5; ++tag) {
    char byte = 0;
    fi_context context;
    ASSERT_EQ(fi_trecv(two.to.get(), &byte, 1, nullptr, FI_ADDR_UNSPEC, tag, 0, &context), 0);
    std::thread sender([&] {
      let_sleep();
      two.send(tag);
    });
    ssize_t done = -FI_EAGAIN;
    while (done == -FI_EAGAIN) {
      ASSERT_EQ(fi_wait(set.get(), patience_ms), 0);
      done = fi_cq_read(receives.get(), &entry, 1);
    }
    sender.join();
    EXPECT_EQ(done, 1);
    EXPECT_EQ(entry.tag, tag);
    EXPECT_EQ(fi_cq_read(quiet.get(), &entry, 1), -FI_EAGAIN);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, WaitSets,
                         testing::Values(FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_POLLFD,
                                         FI_WAIT_YIELD));

TEST_F(Sleeping, a_counter_of_a_wait_set_wakes_too) {
  const Owned<fid_wait> set = wait_set(FI_WAIT_UNSPEC);
  const Owned<fid_cq> receives = queue(FI_WAIT_NONE);
  const Owned<fid_cntr> received = counter(FI_WAIT_SET, set.get());
  Pair two = pair(receives.get(), received.get());
  char byte = 0;
  ASSERT_EQ(fi_trecv(two.to.get(), &byte, 1, nullptr, FI_ADDR_UNSPEC, 9, 0, nullptr), 0);
  std::thread sender([&] {
    let_sleep();
    two.send(9);
  });
  EXPECT_EQ(fi_wait(set.get(), patience_ms), 0);
  sender.join();
  EXPECT_EQ(fi_cntr_read(received.get()), 1u);
}

TEST_F(Sleeping, counters_are_waited_for) {
  const Owned<fid_cq> receives = queue(FI_WAIT_NONE);
  const Owned<fid_cntr> received = counter(FI_WAIT_UNSPEC);
  Pair two = pair(receives.get(), received.get());
  char byte = 0;
  for (std::uint64_t tag = 0; tag < 3; ++tag) {
    ASSERT_EQ(fi_trecv(two.to.get(), &byte, 1, nullptr, FI_ADDR_UNSPEC, tag, 0, nullptr), 0);
  }
  EXPECT_EQ(fi_cntr_wait(received.get(), 1, 1), -FI_ETIMEDOUT);
  std::thread sender([&] {
    let_sleep();
    for (std::uint64_t tag = 0; tag < 3; ++tag) two.send(tag);
  });
  EXPECT_EQ(fi_cntr_wait(received.get(), 3, patience_ms), 0);
  sender.join();
  // What a program itself adds counts as well, and errors end the waiting.
  std::thread other([&] {
    let_sleep();
    EXPECT_EQ(fi_cntr_add(received.get(), 10), 0);
    let_sleep();
    EXPECT_EQ(fi_cntr_adderr(received.get(), 1), 0);
  });
  EXPECT_EQ(fi_cntr_wait(received.get(), 13, patience_ms), 0);
  EXPECT_EQ(fi_cntr_wait(received.get(), 100, patience_ms), -FI_EAVAIL);
  other.join();
}

TEST_F(Sleeping, a_signal_ends_every_blocking_read) {
  const Owned<fid_cq> receives = queue(FI_WAIT_FD);
  std::atomic<int> ended{0};
  const auto read = [&] {
    fi_cq_tagged_entry entry;
    EXPECT_EQ(fi_cq_sread(receives.get(), &entry, 1, nullptr, patience_ms), -FI_EAGAIN);
    ++ended;
  };
  std::thread first(read), second(read);
  while (ended.load() < 2) {
    let_sleep();
    EXPECT_EQ(fi_cq_signal(receives.get()), 0);
  }
  first.join();
  second.join();
}

TEST_F(Sleeping, events_end_blocking_reads_of_their_queue) {
  const Owned<fid_eq> events = opened<fid_eq>([this](fid_eq** made) {
    fi_eq_attr attr = {};
    attr.wait_obj = FI_WAIT_FD;
    attr.flags = FI_WRITE;
    return fi_eq_open(fabric.get(), &attr, made, nullptr);
  });
  std::uint32_t event = 0;
  fi_eq_entry entry = {};
  EXPECT_EQ(fi_eq_sread(events.get(), &event, &entry, sizeof entry, 1, 0), -FI_EAGAIN);
  std::thread writer([&] {
    let_sleep();
    const fi_eq_entry written = {&events->fid, nullptr, 77};
    EXPECT_EQ(fi_eq_write(events.get(), FI_NOTIFY, &written, sizeof written, 0),
              static_cast<ssize_t>(sizeof written));
  });
  EXPECT_EQ(fi_eq_sread(events.get(), &event, &entry, sizeof entry, patience_ms, 0),
            static_cast<ssize_t>(sizeof entry));
  writer.join();
  EXPECT_EQ(event, static_cast<std::uint32_t>(FI_NOTIFY));
  EXPECT_EQ(entry.data, 77u);
}

}  // namespace
}  // namespace haul::fabric
