// The engine `dsa` on several work queues, each a device model of its own: the queues share the
// requests, and what becomes of one is nothing to the others. Skipped where haul was built without
// libaccel-config.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "device/dsa_model.hpp"
#include "dsa_support.hpp"

namespace {

using namespace e2e;
using haul_model::DsaConduct;
using haul_model::DsaModel;
using haul_model::DsaPath;
using Models = std::vector<DsaModel*>;

class DsaChannels : public testing::TestWithParam<const char*> {
 protected:
  template <class Body>
  void in_child(const std::vector<DsaConduct>& conducts, Body body) {
    const int status = run_child([&] {
      Models models;
      std::string knob;
      for (const DsaConduct& conduct : conducts) {
        models.push_back(new DsaModel(DsaPath::portal, conduct));
        models.back()->start();
        knob += (knob.empty() ? "" : ",") + models.back()->knob();
      }
      const haul_engine_info info = opened_dsa(GetParam(), knob);
      if (std::strstr(info.status, "cannot be loaded") != nullptr) return skip_status;
      CHILD_EQUAL(info.available, 1);
      CHILD_CHECK(std::strstr(info.status, "2 channels") != nullptr);
      for (DsaModel* model : models) model->misbehave();
      body(models);
      for (const DsaModel* model : models) {
        CHILD_EQUAL(model->counts().refused, 0);
        CHILD_EQUAL(model->counts().dropped, 0);
      }
      return 0;
    });
    if (status == skip_status) GTEST_SKIP() << "haul was built without libaccel-config";
    EXPECT_EQ(status, 0);
  }
};
INSTANTIATE_TEST_SUITE_P(By, DsaChannels, testing::Values("thread", "caller"));

unsigned moved(const DsaModel& model) {
  return model.counts().moves + model.counts().fills;
}

TEST_P(DsaChannels, ShareTheRequestsOfEachThread) {
  in_child({{.seed = 1, .held = 2}, {.seed = 2, .p_fault = 20}}, [](Models& models) {
    many_requests(1, 6);
    const unsigned first = moved(*models[0]), second = moved(*models[1]);
    CHILD_CHECK(first > 10 && second > 10);
    std::thread threads[3];
    for (unsigned i = 0; i < 3; ++i) threads[i] = std::thread([i] { many_requests(i + 2, 4); });
    for (std::thread& thread : threads) thread.join();
    CHILD_CHECK(moved(*models[0]) > first && moved(*models[1]) > second);
    CHILD_EQUAL(dsa().available, 1);
  });
}

// The first takes what it is given and says nothing more: the engine is not used any more, what the
// second one has is reported, and what the first has is waited for.
TEST_P(DsaChannels, OneThatIsStuckHoldsUpItsOwnAlone) {
  setenv("HAUL_MOVER_PATIENCE_MS", "400", 1);
  in_child({{}, {}}, [](Models& models) {
    models[0]->stick();
    const Buffer from(mib), to(mib), other(mib);
    from.fill(10);
    haul_ticket tickets[2];
    const haul_request requests[2] = {haul_request_copy(to.data(), from.data(), mib),
                                      haul_request_copy(other.data(), from.data(), mib)};
    CHILD_EQUAL(haul_submit(requests, 2, tickets), 2);
    for (int turn = 0; turn < 5000 && dsa().available != 0; ++turn) {
      haul_test(tickets[0]), haul_test(tickets[1]);
      sleep_ms(1);
    }
    CHILD_EQUAL(dsa().available, 0);
    // (Which of them was the first queue's depends on the ring.)
    const int one = haul_test(tickets[0]), two = haul_test(tickets[1]);
    CHILD_EQUAL(one + two, 1);
    many_requests(11, 2);
    CHILD_EQUAL(haul_test(tickets[one == 0 ? 0 : 1]), 0);
    models[0]->release();
    CHILD_EQUAL(haul_wait(tickets[0]), 0);
    CHILD_EQUAL(haul_wait(tickets[1]), 0);
    CHILD_EQUAL(std::memcmp(to.data(), from.data(), mib), 0);
    CHILD_EQUAL(std::memcmp(other.data(), from.data(), mib), 0);
  });
  unsetenv("HAUL_MOVER_PATIENCE_MS");
}

TEST(NoDsaChannels, ANameAmongThemThatIsWrongIsSaid) {
  EXPECT_EQ(run_child([] {
              DsaModel model(DsaPath::portal);
              model.start();
              const haul_engine_info info = opened_dsa("thread", model.knob() + ",/no/such/queue");
              if (std::strstr(info.status, "cannot be loaded") != nullptr) return 0;
              CHILD_EQUAL(info.available, 0);
              CHILD_CHECK(std::strstr(info.status, "/no/such/queue") != nullptr);
              return 0;
            }),
            0);
}

}  // namespace
