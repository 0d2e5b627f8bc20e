// SPDX-License-Identifier: GPL-2.0-or-later
// Lines of text between the plugin and the runner (record.py), over a stream socket that the runner
// made. Plugin to runner: "mark", "begin", "progress INSTRUCTIONS",
// "dma QUEUE COUNTS", "done INSTRUCTIONS", "error CAUSE".
// After mark, begin and done the guest stands still until the runner has answered.
#pragma once

#include <stdbool.h>
#include <stddef.h>

void control_open(int descriptor);
void control_say(const char* format, ...) __attribute__((format(printf, 1, 2)));
// The runner's next line, without its end; false when the runner is gone.
bool control_hear(char* line, size_t size);
