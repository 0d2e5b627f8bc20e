// Connections that fail.
#include "base/net/socket.hpp"

#include <gtest/gtest.h>
#include <pthread.h>

#include <cerrno>

namespace haul::os {
namespace {

// pthread_cancel() is pending all the time: a call of haul's is not a cancellation point, so what
// it has opened it also closes.
TEST(Socket, AConnectionThatFailsIsNoCancellationPoint) {
  int failed = 0;
  pthread_t thread;
  ASSERT_EQ(pthread_create(
                &thread, nullptr,
                [](void* result) -> void* {
                  pthread_cancel(pthread_self());
                  *static_cast<int*>(result) = connect_to("/nothing/listens/here");
                  pthread_testcancel();
                  return nullptr;
                },
                &failed),
            0);
  void* end = nullptr;
  ASSERT_EQ(pthread_join(thread, &end), 0);
  EXPECT_EQ(end, PTHREAD_CANCELED);
  EXPECT_EQ(failed, -ENOENT);
}

}  // namespace
}  // namespace haul::os
