// What of fi_getinfo()'s hints is accepted, without libfabric.
#include "fabric/endpoint/offer/hints.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace haul::fabric {
namespace {

struct Hints {
  fi_tx_attr tx = {};
  fi_rx_attr rx = {};
  fi_ep_attr ep = {};
  fi_domain_attr domain = {};
  fi_fabric_attr fabric = {};
  fi_info info = {};
  Hints() {
    info.tx_attr = &tx;
    info.rx_attr = &rx;
    info.ep_attr = &ep;
    info.domain_attr = &domain;
    info.fabric_attr = &fabric;
  }
  std::string refused(std::uint32_t version = FI_VERSION(1, 17)) const {
    const char* reason = hints_refusal(version, info);
    return reason != nullptr ? reason : "";
  }
};

// What every one of the MPIs asks for.
void common(Hints& hints) {
  hints.ep.type = FI_EP_RDM;
  hints.domain.threading = FI_THREAD_DOMAIN;
  hints.domain.resource_mgmt = FI_RM_ENABLED;
  hints.tx.msg_order = hints.rx.msg_order = FI_ORDER_SAS;
  hints.rx.op_flags = FI_COMPLETION;
}

TEST(Hints, what_the_mpis_ask_for_is_offered) {
  Hints open_mpi_4;
  common(open_mpi_4);
  open_mpi_4.info.caps = FI_TAGGED | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_DIRECTED_RECV;
  open_mpi_4.info.mode = FI_CONTEXT | FI_CONTEXT2;
  open_mpi_4.domain.av_type = FI_AV_MAP;
  open_mpi_4.domain.cq_data_size = 4;
  EXPECT_EQ(open_mpi_4.refused(FI_VERSION(1, 5)), "");

  Hints open_mpi_5 = open_mpi_4;
  open_mpi_5.domain.mr_mode = FI_MR_ALLOCATED;
  open_mpi_5.info.caps |= FI_MSG;
  EXPECT_EQ(open_mpi_5.refused(FI_VERSION(1, 18)), "");

  Hints one_sided;
  common(one_sided);
  one_sided.info.caps = FI_RMA | FI_ATOMIC;
  one_sided.domain.mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
  EXPECT_EQ(one_sided.refused(FI_VERSION(1, 18)), "");

  Hints mpich;
  common(mpich);
  mpich.info.caps = default_caps;
  mpich.info.mode = FI_CONTEXT | FI_CONTEXT2 | FI_ASYNC_IOV | FI_RX_CQ_DATA;
  mpich.domain.mr_mode = FI_MR_ENDPOINT;
  mpich.domain.av_type = FI_AV_TABLE;
  mpich.domain.cq_data_size = 4;
  EXPECT_EQ(mpich.refused(FI_VERSION(2, 5)), "");
}

TEST(Hints, what_is_not_offered_is_refused_with_a_reason) {
  const std::function<void(Hints&)> beyond[] = {
      [](Hints& h) { h.ep.type = FI_EP_MSG; },
      [](Hints& h) { h.ep.type = FI_EP_DGRAM; },
      [](Hints& h) { h.info.caps = FI_MSG | FI_HMEM; },
      [](Hints& h) { h.info.caps = FI_MSG | FI_TRIGGER; },
      [](Hints& h) { h.info.addr_format = FI_ADDR_STR; },
      [](Hints& h) { h.ep.protocol = FI_PROTO_SHM; },
      [](Hints& h) { h.ep.tx_ctx_cnt = 2; },
      [](Hints& h) { h.ep.rx_ctx_cnt = FI_SHARED_CONTEXT; },
      [](Hints& h) { h.ep.auth_key_size = 8; },
      [](Hints& h) { h.ep.max_msg_size = max_message_bytes + 1; },
      [](Hints& h) { h.ep.max_order_waw_size = max_atomic_bytes + 1; },
      [](Hints& h) { h.domain.data_progress = static_cast<fi_progress>(3); },
      [](Hints& h) { h.domain.threading = static_cast<fi_threading>(7); },
      [](Hints& h) { h.domain.mr_mode = FI_MR_BASIC | FI_MR_LOCAL; },
      [](Hints& h) { h.domain.mr_key_size = 9; },
      [](Hints& h) { h.domain.cq_data_size = 9; },
      [](Hints& h) { h.domain.mr_iov_limit = 2; },
      [](Hints& h) { h.domain.caps = FI_SHARED_AV; },
      [](Hints& h) { h.tx.inject_size = inject_bytes + 1; },
      [](Hints& h) { h.tx.size = max_queue_size + 1; },
      [](Hints& h) { h.tx.iov_limit = max_pieces + 1; },
      [](Hints& h) { h.tx.rma_iov_limit = max_pieces + 1; },
      [](Hints& h) { h.tx.op_flags = FI_COMMIT_COMPLETE; },
      [](Hints& h) { h.tx.msg_order = FI_ORDER_RMA_WAW; },
      [](Hints& h) { h.tx.comp_order = FI_ORDER_STRICT; },
      [](Hints& h) { h.tx.caps = FI_REMOTE_READ; },
      [](Hints& h) { h.rx.caps = FI_SEND; },
      [](Hints& h) { h.rx.op_flags = FI_INJECT; },
      [](Hints& h) { h.rx.msg_order = FI_ORDER_SAR; },
      [](Hints& h) { h.rx.total_buffered_recv = std::size_t{1} << 40; },
  };
  for (std::size_t i = 0; i < std::size(beyond); ++i) {
    Hints hints;
    ASSERT_EQ(hints.refused(), "");
    beyond[i](hints);
    EXPECT_NE(hints.refused(), "") << "number " << i;
  }
  char other[] = "verbs";
  Hints named;
  named.domain.name = other;
  EXPECT_NE(named.refused(), "");
  Hints elsewhere;
  elsewhere.fabric.name = other;
  EXPECT_NE(elsewhere.refused(), "");
}

TEST(Hints, fields_that_an_old_program_does_not_have_are_not_read) {
  Hints hints;
  hints.domain.caps = FI_SHARED_AV;
  hints.domain.mr_cnt = SIZE_MAX;
  hints.ep.auth_key_size = 8;
  EXPECT_NE(hints.refused(FI_VERSION(1, 5)), "");
  EXPECT_EQ(hints.refused(FI_VERSION(1, 4)), "");
}

TEST(Hints, every_control_progress_holds) {
  Hints hints;
  // 3: FI_PROGRESS_CONTROL_UNIFIED of libfabric 1.20.
  for (const int progress : {0, 1, 2, 3}) {
    hints.domain.control_progress = static_cast<fi_progress>(progress);
    EXPECT_EQ(hints.refused(FI_VERSION(2, 0)), "");
  }
}

TEST(Caps, no_modifier_means_all_of_them) {
  EXPECT_EQ(complete_caps(0), default_caps);
  EXPECT_EQ(complete_caps(FI_TAGGED) & (message_modifiers | access_modifiers), message_modifiers);
  EXPECT_EQ(complete_caps(FI_MSG | FI_SEND) & message_modifiers, FI_SEND);
  EXPECT_EQ(complete_caps(FI_RMA) & (message_modifiers | access_modifiers), access_modifiers);
  EXPECT_EQ(complete_caps(FI_ATOMIC | FI_READ) & access_modifiers, FI_READ);
}

TEST(Caps, what_changes_behaviour_comes_only_when_asked_for) {
  EXPECT_EQ(complete_caps(0) & FI_SOURCE_ERR, 0u);
  EXPECT_EQ(complete_caps(FI_MSG) & (FI_SOURCE | FI_DIRECTED_RECV | FI_RMA_EVENT), 0u);
  EXPECT_NE(complete_caps(FI_MSG | FI_SOURCE_ERR) & FI_SOURCE_ERR, 0u);
  for (const unsigned long long caps : {0ull, FI_MSG, FI_TAGGED | FI_RMA}) {
    EXPECT_EQ(complete_caps(complete_caps(caps)), complete_caps(caps));
  }
}

}  // namespace
}  // namespace haul::fabric
