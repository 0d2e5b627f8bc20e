// fi_getinfo(): what four MPIs ask, with what they get; what is not offered is not found.
#include <gtest/gtest.h>

#include <cstring>

#include "node.hpp"

namespace fabric_test {
namespace {

Info ask_raw(std::uint32_t version, const fi_info* hints, std::uint64_t flags = 0) {
  fi_info* found = nullptr;
  const int status = fi_getinfo(version, nullptr, nullptr, flags, hints, &found);
  EXPECT_TRUE(status == 0 || status == -FI_ENODATA) << fi_strerror(-status);
  return Info{status == 0 ? found : nullptr};
}

Info named_hints() {
  Info hints{fi_allocinfo()};
  hints->fabric_attr->prov_name = strdup(provider_name());
  return hints;
}

void expect_consistent(const fi_info& info) {
  EXPECT_NE(info.caps, 0u);
  ASSERT_NE(info.tx_attr, nullptr);
  ASSERT_NE(info.rx_attr, nullptr);
  ASSERT_NE(info.ep_attr, nullptr);
  ASSERT_NE(info.domain_attr, nullptr);
  ASSERT_NE(info.fabric_attr, nullptr);
  EXPECT_NE(info.domain_attr->name, nullptr);
  EXPECT_NE(info.fabric_attr->name, nullptr);
  ASSERT_NE(info.fabric_attr->prov_name, nullptr);
  EXPECT_GT(info.ep_attr->max_msg_size, 0u);
  EXPECT_GT(info.tx_attr->size, 0u);
  EXPECT_GT(info.rx_attr->size, 0u);
  EXPECT_GT(info.tx_attr->iov_limit, 0u);
  EXPECT_GT(info.rx_attr->iov_limit, 0u);
  EXPECT_NE(info.domain_attr->threading, FI_THREAD_UNSPEC);
  EXPECT_NE(info.domain_attr->data_progress, FI_PROGRESS_UNSPEC);
  EXPECT_NE(info.domain_attr->control_progress, FI_PROGRESS_UNSPEC);
  EXPECT_NE(info.domain_attr->resource_mgmt, FI_RM_UNSPEC);
  if (info.src_addr != nullptr) {
    EXPECT_GT(info.src_addrlen, 0u);
  }
  if (info.domain_attr->cq_data_size > 0) {
    EXPECT_GE(info.domain_attr->cq_data_size, 4u);
  }
  // Attributes of one side hold capabilities of that side.
  EXPECT_EQ(info.tx_attr->caps & (FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE), 0u);
  EXPECT_EQ(info.rx_attr->caps & (FI_SEND | FI_READ | FI_WRITE), 0u);
}

TEST(Info, no_hints_but_the_name) {
  const Info hints = named_hints();
  const Info info = ask_raw(FI_VERSION(1, 17), hints.get());
  ASSERT_TRUE(info) << "the provider is not found: set FI_PROVIDER_PATH to its directory";
  for (const fi_info* at = info.get(); at != nullptr; at = at->next) expect_consistent(*at);
}

TEST(Info, listed_among_all_providers) {
  const Info all = ask_raw(FI_VERSION(1, 17), nullptr);
  ASSERT_TRUE(all);
  if (!provider_is_haul()) GTEST_SKIP() << "others may hide behind their layers";
  bool found = false;
  for (const fi_info* at = all.get(); at != nullptr; at = at->next)
    found = found || std::strcmp(at->fabric_attr->prov_name, "haul") == 0;
  EXPECT_TRUE(found);
}

// Every provider gives one answer then, whatever the hints.
TEST(Info, attributes_of_the_provider_alone) {
  const Info hints = named_hints();
  const Info info = ask_raw(FI_VERSION(1, 17), hints.get(), FI_PROV_ATTR_ONLY);
  ASSERT_TRUE(info);
  if (!provider_is_haul()) GTEST_SKIP() << "others are layers of several";
  int answers = 0;
  for (const fi_info* at = info.get(); at != nullptr; at = at->next) {
    if (std::strcmp(at->fabric_attr->prov_name, "haul") != 0) continue;
    ++answers;
    EXPECT_NE(at->fabric_attr->prov_version, 0u);
  }
  EXPECT_EQ(answers, 1);
}

// What haul promises; the rest of the suite leans on it.
TEST(Info, everything_haul_promises) {
  if (!provider_is_haul()) GTEST_SKIP() << "this is haul's own list";
  const Info hints = named_hints();
  const Info info = ask_raw(FI_VERSION(1, 17), hints.get());
  ASSERT_TRUE(info);
  EXPECT_STREQ(info->fabric_attr->prov_name, "haul");
  for (const std::uint64_t cap :
       {FI_MSG, FI_TAGGED, FI_RMA, FI_ATOMIC, FI_MULTI_RECV, FI_DIRECTED_RECV, FI_SOURCE, FI_FENCE,
        FI_LOCAL_COMM, FI_REMOTE_COMM, FI_READ, FI_WRITE, FI_SEND, FI_RECV, FI_REMOTE_READ,
        FI_REMOTE_WRITE, FI_RMA_EVENT})
    EXPECT_NE(info->caps & cap, 0u) << "missing: " << fi_tostr(&cap, FI_TYPE_CAPS);
  EXPECT_GE(info->domain_attr->cq_data_size, 4u);
  EXPECT_EQ(info->domain_attr->threading, FI_THREAD_SAFE);
  EXPECT_EQ(info->domain_attr->resource_mgmt, FI_RM_ENABLED);
  EXPECT_EQ(info->domain_attr->mr_key_size, 8u);
  EXPECT_EQ(info->ep_attr->type, FI_EP_RDM);
  EXPECT_EQ(info->mode, 0u) << "no mode is needed";
  for (const std::uint64_t order : {FI_ORDER_SAS, FI_ORDER_ATOMIC_RAR, FI_ORDER_ATOMIC_RAW,
                                    FI_ORDER_ATOMIC_WAR, FI_ORDER_ATOMIC_WAW})
    EXPECT_EQ(info->tx_attr->msg_order & info->rx_attr->msg_order & order, order)
        << fi_tostr(&order, FI_TYPE_MSG_ORDER);
}

struct Mpi {
  const char* name;
  std::uint32_t version;
  std::uint64_t caps, mode;
  int mr_mode;
  fi_av_type av;
  std::size_t cq_data_size;
  std::uint64_t msg_order = FI_ORDER_SAS;
};

const Mpi mpis[] = {
    {"Open MPI 4", FI_VERSION(1, 5), FI_TAGGED | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_DIRECTED_RECV,
     FI_CONTEXT | FI_CONTEXT2, 0, FI_AV_MAP, 4},
    {"Open MPI 5", FI_VERSION(1, 17),
     FI_MSG | FI_TAGGED | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_DIRECTED_RECV,
     FI_CONTEXT | FI_CONTEXT2, FI_MR_ALLOCATED, FI_AV_MAP, 4},
    {"Open MPI 5, one-sided", FI_VERSION(1, 17), FI_RMA | FI_ATOMIC, FI_CONTEXT | FI_CONTEXT2,
     FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT, FI_AV_MAP, 0},
    {"MPICH 5", FI_VERSION(1, 17),
     FI_MSG | FI_TAGGED | FI_MULTI_RECV | FI_DIRECTED_RECV | FI_RMA | FI_ATOMIC,
     FI_CONTEXT | FI_CONTEXT2 | FI_ASYNC_IOV | FI_RX_CQ_DATA, FI_MR_ENDPOINT, FI_AV_TABLE, 4,
     FI_ORDER_SAS | FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR |
         FI_ORDER_ATOMIC_WAW},
    {"Intel MPI", FI_VERSION(1, 5),
     FI_MSG | FI_TAGGED | FI_MULTI_RECV | FI_DIRECTED_RECV | FI_RMA | FI_ATOMIC,
     FI_CONTEXT | FI_CONTEXT2 | FI_ASYNC_IOV | FI_RX_CQ_DATA,
     FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY, FI_AV_MAP, 0},
};

TEST(Info, the_hints_of_each_mpi) {
  for (const Mpi& mpi : mpis) {
    SCOPED_TRACE(mpi.name);
    const Info hints = named_hints();
    hints->caps = mpi.caps;
    hints->mode = mpi.mode;
    hints->ep_attr->type = FI_EP_RDM;
    hints->tx_attr->msg_order = hints->rx_attr->msg_order = mpi.msg_order;
    hints->rx_attr->op_flags = FI_COMPLETION;
    hints->domain_attr->mr_mode = mpi.mr_mode;
    hints->domain_attr->av_type = mpi.av;
    hints->domain_attr->cq_data_size = mpi.cq_data_size;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
    const Info info = ask_raw(mpi.version, hints.get());
    if (!info && !provider_is_haul()) continue;
    ASSERT_TRUE(info);
    expect_consistent(*info);
    EXPECT_EQ(info->caps & mpi.caps, mpi.caps);
    EXPECT_EQ(info->mode & ~mpi.mode, 0u) << "a mode the program did not offer is required";
    EXPECT_EQ(info->domain_attr->mr_mode & ~mpi.mr_mode, 0) << "likewise of registration";
    EXPECT_EQ(info->tx_attr->msg_order & mpi.msg_order, mpi.msg_order);
    EXPECT_GE(info->domain_attr->cq_data_size, mpi.cq_data_size);
    EXPECT_TRUE(info->domain_attr->av_type == mpi.av || info->domain_attr->av_type == FI_AV_UNSPEC);
    // The provider's own answer is what MPICH and Intel MPI ask next.
    const Info again = ask_raw(mpi.version, info.get());
    ASSERT_TRUE(again) << "its own answer as hints finds nothing";
    EXPECT_EQ(again->caps, info->caps);
  }
}

// Each of these changes hints that are otherwise met.
TEST(Info, what_is_not_offered_is_not_found) {
  const struct {
    const char* name;
    void (*change)(fi_info&);
  } cases[] = {
      {"a connected endpoint", [](fi_info& info) { info.ep_attr->type = FI_EP_MSG; }},
      {"datagrams", [](fi_info& info) { info.ep_attr->type = FI_EP_DGRAM; }},
      {"multicast", [](fi_info& info) { info.caps |= FI_MULTICAST; }},
      {"an address format of another network",
       [](fi_info& info) { info.addr_format = FI_ADDR_BGQ; }},
      {"huge completion data", [](fi_info& info) { info.domain_attr->cq_data_size = 1 << 20; }},
      {"huge inject", [](fi_info& info) { info.tx_attr->inject_size = std::size_t{1} << 40; }},
      {"vectors without end", [](fi_info& info) { info.tx_attr->iov_limit = 1 << 20; }},
      {"as many when receiving", [](fi_info& info) { info.rx_attr->iov_limit = 1 << 20; }},
      {"another domain", [](fi_info& info) { info.domain_attr->name = strdup("no-such-domain"); }},
      {"another fabric", [](fi_info& info) { info.fabric_attr->name = strdup("no-such-fabric"); }},
      {"another protocol", [](fi_info& info) { info.ep_attr->protocol = FI_PROTO_GNI; }},
      {"a large prefix", [](fi_info& info) { info.domain_attr->mr_key_size = 64; }},
  };
  for (const auto& [name, change] : cases) {
    if (!provider_is_haul() && std::strcmp(name, "a connected endpoint") == 0) continue;
    const Info hints = hints_of(Wish{});
    ASSERT_TRUE(ask_raw(FI_VERSION(1, 17), hints.get()));
    change(*hints);
    EXPECT_FALSE(ask_raw(FI_VERSION(1, 17), hints.get())) << name;
  }
}

TEST(Info, asked_capabilities_are_primary_ones_alone) {
  for (const std::uint64_t caps :
       {std::uint64_t{FI_MSG}, std::uint64_t{FI_TAGGED}, std::uint64_t{FI_RMA}}) {
    const Info info = ask(Wish{.caps = caps});
    if (!info && !provider_is_haul()) continue;
    ASSERT_TRUE(info);
    EXPECT_EQ(info->caps & caps, caps);
    const std::uint64_t others = (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC) & ~caps;
    EXPECT_EQ(info->caps & others, 0u)
        << "only primary capabilities that were asked for may be enabled";
  }
}

TEST(Info, one_way_endpoints) {
  const Info sender = ask(Wish{.caps = FI_TAGGED | FI_SEND});
  const Info receiver = ask(Wish{.caps = FI_TAGGED | FI_RECV});
  if (!provider_is_haul() && (!sender || !receiver)) GTEST_SKIP() << "not offered";
  ASSERT_TRUE(sender && receiver);
  EXPECT_NE(sender->caps & FI_SEND, 0u);
  EXPECT_EQ(sender->caps & FI_RECV, 0u);
  EXPECT_NE(receiver->caps & FI_RECV, 0u);
  EXPECT_EQ(receiver->caps & FI_SEND, 0u);
}

TEST(Info, smaller_wishes_are_met_at_least) {
  const Info hints = hints_of(Wish{});
  hints->tx_attr->inject_size = 16;
  hints->tx_attr->iov_limit = 1;
  hints->tx_attr->size = 8;
  hints->rx_attr->size = 8;
  hints->ep_attr->max_msg_size = 1 << 20;
  const Info info = ask_raw(FI_VERSION(1, 17), hints.get());
  ASSERT_TRUE(info);
  EXPECT_GE(info->tx_attr->inject_size, 16u);
  EXPECT_GE(info->tx_attr->iov_limit, 1u);
  EXPECT_GE(info->tx_attr->size, 8u);
  EXPECT_GE(info->rx_attr->size, 8u);
  EXPECT_GE(info->ep_attr->max_msg_size, std::size_t{1} << 20);
}

// As other providers do, so that programs with limits of their own do not inject beyond these.
TEST(Info, little_is_injected_unless_asked_for_more) {
  if (!provider_is_haul()) GTEST_SKIP() << "this is haul's own promise";
  const Info hints = hints_of(Wish{});
  const auto offered = [&](std::size_t wanted) {
    hints->tx_attr->inject_size = wanted;
    const Info info = ask_raw(FI_VERSION(1, 17), hints.get());
    return info ? info->tx_attr->inject_size : 0;
  };
  EXPECT_EQ(offered(0), 4 * kib);
  EXPECT_EQ(offered(16), 4 * kib);
  EXPECT_EQ(offered(16 * kib), 16 * kib);
  EXPECT_EQ(offered(32 * kib), 32 * kib);
  EXPECT_EQ(offered(32 * kib + 1), 0u);
}

TEST(Info, registration_modes_as_asked) {
  const int basic = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  for (const int mode : {0, basic, basic | FI_MR_ENDPOINT, int{FI_MR_ENDPOINT}}) {
    const Info info = ask(Wish{.caps = FI_RMA, .mr_mode = mode});
    if (!info && !provider_is_haul()) continue;
    ASSERT_TRUE(info) << mode;
    EXPECT_EQ(info->domain_attr->mr_mode & ~mode, 0);
  }
}

TEST(Info, every_threading_and_address_vector) {
  for (const fi_threading threading : {FI_THREAD_SAFE, FI_THREAD_FID, FI_THREAD_DOMAIN,
                                       FI_THREAD_COMPLETION, FI_THREAD_ENDPOINT}) {
    const Info info = ask(Wish{.threading = threading});
    ASSERT_TRUE(info) << threading;
    EXPECT_TRUE(info->domain_attr->threading == threading ||
                info->domain_attr->threading == FI_THREAD_SAFE);
  }
  for (const fi_av_type type : {FI_AV_MAP, FI_AV_TABLE})
    EXPECT_TRUE(ask(Wish{.av = type}) || !provider_is_haul());
}

// Automatic progress for who asks for it, and for who asks for one-sided operations alone.
TEST(Info, progress_as_asked) {
  if (!provider_is_haul()) GTEST_SKIP() << "this is haul's own list";
  const struct {
    std::uint64_t caps;
    fi_progress wanted, answer;
  } cases[] = {
      {FI_MSG | FI_TAGGED, FI_PROGRESS_UNSPEC, FI_PROGRESS_MANUAL},
      {FI_MSG | FI_TAGGED, FI_PROGRESS_MANUAL, FI_PROGRESS_MANUAL},
      {FI_MSG | FI_TAGGED, FI_PROGRESS_AUTO, FI_PROGRESS_AUTO},
      {FI_TAGGED | FI_RMA | FI_ATOMIC, FI_PROGRESS_UNSPEC, FI_PROGRESS_MANUAL},
      {FI_RMA | FI_ATOMIC, FI_PROGRESS_UNSPEC, FI_PROGRESS_AUTO},
      {FI_RMA, FI_PROGRESS_UNSPEC, FI_PROGRESS_AUTO},
      {FI_ATOMIC, FI_PROGRESS_MANUAL, FI_PROGRESS_MANUAL},
  };
  for (const auto& [caps, wanted, answer] : cases) {
    const Info hints = hints_of(Wish{.caps = caps});
    hints->domain_attr->data_progress = wanted;
    const Info info = ask_raw(FI_VERSION(1, 17), hints.get());
    ASSERT_TRUE(info);
    EXPECT_EQ(info->domain_attr->data_progress, answer) << fi_tostr(&caps, FI_TYPE_CAPS);
  }
}

// An open domain is pointed out to who asks for what it is, and to nobody else.
TEST(Info, an_open_domain_that_fits_is_named) {
  if (!provider_is_haul()) GTEST_SKIP() << "this is haul's own list";
  const Node node(Wish{});
  ASSERT_TRUE(node.ready());
  const Info alike = ask(Wish{});
  ASSERT_TRUE(alike);
  EXPECT_EQ(alike->domain_attr->domain, node.domain);
  const Info automatic = ask(Wish{.caps = FI_RMA});
  ASSERT_TRUE(automatic);
  EXPECT_EQ(automatic->domain_attr->domain, nullptr);
  // Open MPI's btl/ofi names the domain of the messages.
  const Info hints = hints_of(Wish{.caps = FI_RMA | FI_ATOMIC});
  hints->domain_attr->domain = node.domain;
  const Info beside = ask_raw(FI_VERSION(1, 17), hints.get());
  ASSERT_TRUE(beside);
  EXPECT_EQ(beside->domain_attr->data_progress, FI_PROGRESS_AUTO);
  EXPECT_EQ(beside->domain_attr->domain, nullptr);
  hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
  EXPECT_FALSE(ask_raw(FI_VERSION(1, 17), hints.get())) << "this domain was opened without";
}

}  // namespace
}  // namespace fabric_test
