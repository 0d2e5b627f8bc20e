// SPDX-License-Identifier: GPL-2.0-or-later
#include "stream_out.h"

#include <errno.h>
#include <unistd.h>

struct stream_out stream_out;
static int failure;

void stream_open(int descriptor) {
  const uint32_t version = BCISIM_STREAM_VERSION;
  stream_out.descriptor = descriptor;
  stream_put(BCISIM_STREAM_MAGIC, sizeof BCISIM_STREAM_MAGIC - 1);
  stream_put(&version, 4);
}

void stream_flush(void) {
  for (uint32_t sent = 0; sent < stream_out.used && !stream_out.failed;) {
    ssize_t n = write(stream_out.descriptor, stream_out.bytes + sent, stream_out.used - sent);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      stream_out.failed = true;
      failure = errno;
    } else {
      sent += (uint32_t)n;
    }
  }
  stream_out.used = 0;
}

bool stream_close(void) {
  stream_flush();
  if (close(stream_out.descriptor) != 0 && !stream_out.failed) {
    stream_out.failed = true;
    failure = errno;
  }
  errno = failure;
  return !stream_out.failed;
}
