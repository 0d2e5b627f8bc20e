// SPDX-License-Identifier: GPL-2.0-or-later
#include "control.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static int control = -1;

void control_open(int descriptor) {
  control = descriptor;
}

void control_say(const char* format, ...) {
  char line[512];
  va_list rest;
  va_start(rest, format);
  int length = vsnprintf(line, sizeof line - 1, format, rest);
  va_end(rest);
  if (length < 0) return;
  if ((size_t)length > sizeof line - 2) length = sizeof line - 2;
  line[length++] = '\n';
  // A runner that is gone ends QEMU by itself: nothing to do about a failure here.
  for (int sent = 0; sent < length;) {
    ssize_t n = send(control, line + sent, (size_t)(length - sent), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    sent += (int)n;
  }
}

bool control_hear(char* line, size_t size) {
  // Byte by byte: a few dozen short lines in the life of a guest.
  for (size_t length = 0; length < size; ++length) {
    ssize_t n;
    while ((n = recv(control, line + length, 1, 0)) < 0 && errno == EINTR) {
    }
    if (n <= 0) return false;
    if (line[length] == '\n') {
      line[length] = 0;
      return true;
    }
  }
  return false;
}
