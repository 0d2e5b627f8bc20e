// SPDX-License-Identifier: GPL-2.0-or-later
// The tracer: a QEMU plugin that writes the stream of ../stream.h for one virtual processor.
//
//   -plugin libbcisim_tracer.so,out=FD,control=FD,instructions=N,skip=N
//
// It goes through four states. WAITING: the guest runs at QEMU's speed; only the mark, an
// instruction that nothing else uses, is looked for. Then the runner says where the virtqueues are.
// SKIPPING: every instruction calls back, but nothing is written; what the slowdown upset settles.
// RECORDING. DONE: still slow, so that a peer's recording does not see a machine that is suddenly a
// hundred times faster.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control.h"
#include "guest_memory.h"
#include "qemu_plugin_v1.h"
#include "statics.h"
#include "stream_out.h"
#include "virtqueue.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error \
    "The tracer writes little-endian records as they lie in memory: build it on a little-endian machine."
#endif

PLUGIN_EXPORT int qemu_plugin_version = 1;

// nopl 0x73696362(%rax), of ../guest/mark.c
static const uint8_t mark_bytes[7] = {0x0f, 0x1f, 0x80, 0x62, 0x63, 0x69, 0x73};
enum { page_bytes = 4096 };

static enum { WAITING, SKIPPING, RECORDING, DONE } state;
static qemu_plugin_id_t self;
static uint64_t skip, limit, recorded;
static uint32_t next_id;

// The runner will end QEMU; until then the guest stands still, or runs unrecorded.
static void give_up(const char* cause) {
  state = DONE;
  control_say("error %s", cause);
  char line[16];
  control_hear(line, sizeof line);
}

// Tells the runner and waits until it has answered, line by line, up to "go".
static bool ask_runner(const char* what) {
  char line[256];
  control_say("%s", what);
  while (control_hear(line, sizeof line)) {
    char name[32];
    uint64_t descriptors, available, used;
    uint32_t size;
    if (strcmp(line, "go") == 0) return true;
    if (sscanf(line, "queue %31s %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu32, name, &descriptors,
               &available, &used, &size) != 5 ||
        !virtqueue_add(name, descriptors, available, used, size)) {
      give_up(
          "The rings of a virtqueue do not lie in the guest's memory; use split rings of virtio "
          "1.0.");
      return false;
    }
  }
  state = DONE;
  return false;
}

static void finish(void) {
  stream_begin(BCISIM_END);
  stream_put(&recorded, 8);
  if (!stream_close()) {
    give_up(strerror(errno));
    return;
  }
  state = DONE;
  virtqueues_report();
  char text[64];
  snprintf(text, sizeof text, "done %" PRIu64, recorded);
  ask_runner(text);
}

static void write_static(struct static_instruction* one) {
  one->id = next_id++;
  stream_begin(BCISIM_STATIC);
  stream_put(&one->id, 4);
  stream_put(&one->address, 8);
  stream_put(&one->physical, 8);
  stream_put(&one->size, 1);
  stream_put(one->bytes, one->size);
}

static void on_instruction(unsigned cpu, void* user) {
  (void)cpu;
  struct static_instruction* one = user;
  if (state == SKIPPING) {
    if (skip != 0) {
      --skip;
      return;
    }
    virtqueues_start();
    state = RECORDING;
    if (!ask_runner("begin")) return;
  }
  if (state != RECORDING) return;
  if (recorded == limit || stream_out.failed) {
    finish();
    return;
  }
  if (one->id == NO_ID) write_static(one);
  stream_exec(one->id);
  if ((++recorded & 0xfffff) == 0) control_say("progress %" PRIu64, recorded);
}

static void write_reference(qemu_plugin_meminfo_t info, uint64_t address, uint32_t bytes,
                            bool store) {
  struct qemu_plugin_hwaddr* where = qemu_plugin_get_hwaddr(info, address);
  uint64_t physical = NOT_MEMORY;
  // For memory QEMU says its own number of the byte; the guest's memory is the first block of
  // these.
  if (where != NULL && !qemu_plugin_hwaddr_is_io(where))
    physical = qemu_plugin_hwaddr_phys_addr(where);
  if (physical >= guest_memory_bytes) physical = NOT_MEMORY;
  stream_memory(address, physical, (uint16_t)bytes, store);
  if (virtqueue_watches(physical)) virtqueues_reference(physical, bytes, store);
}

static void on_memory(unsigned cpu, qemu_plugin_meminfo_t info, uint64_t address, void* user) {
  (void)cpu;
  (void)user;
  if (state != RECORDING) return;
  const uint32_t bytes = 1u << qemu_plugin_mem_size_shift(info);
  const bool store = qemu_plugin_mem_is_store(info);
  const uint32_t in_page = page_bytes - (uint32_t)(address & (page_bytes - 1));
  if (bytes <= in_page) {
    write_reference(info, address, bytes, store);
  } else {  // crosses into a page that may lie anywhere
    write_reference(info, address, in_page, store);
    write_reference(info, address + in_page, bytes - in_page, store);
  }
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb* block) {
  (void)id;
  for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); ++i) {
    struct qemu_plugin_insn* insn = qemu_plugin_tb_get_insn(block, i);
    struct static_instruction* one =
        static_of(qemu_plugin_insn_vaddr(insn), guest_physical(qemu_plugin_insn_haddr(insn)),
                  qemu_plugin_insn_data(insn), qemu_plugin_insn_size(insn));
    if (one == NULL) {
      give_up("No memory is left for the tracer's list of instructions; free some on the host.");
      return;
    }
    qemu_plugin_register_vcpu_insn_exec_cb(insn, on_instruction, QEMU_PLUGIN_CB_NO_REGS, one);
    qemu_plugin_register_vcpu_mem_cb(insn, on_memory, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW,
                                     NULL);
  }
}

static void on_reset(qemu_plugin_id_t id) {
  state = SKIPPING;
  qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
}

static void on_mark(unsigned cpu, void* user) {
  (void)cpu;
  (void)user;
  static bool marked;
  if (marked) return;
  marked = true;
  if (!guest_memory_find()) {
    give_up(
        "The guest's memory was not found; start QEMU with -object memory-backend-memfd,share=on.");
    return;
  }
  if (ask_runner("mark")) qemu_plugin_reset(self, on_reset);
}

static void on_translation_while_waiting(qemu_plugin_id_t id, struct qemu_plugin_tb* block) {
  (void)id;
  for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); ++i) {
    struct qemu_plugin_insn* insn = qemu_plugin_tb_get_insn(block, i);
    if (qemu_plugin_insn_size(insn) == sizeof mark_bytes &&
        memcmp(qemu_plugin_insn_data(insn), mark_bytes, sizeof mark_bytes) == 0)
      qemu_plugin_register_vcpu_insn_exec_cb(insn, on_mark, QEMU_PLUGIN_CB_NO_REGS, NULL);
  }
}

PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t* info, int argc,
                                      char** argv) {
  int out = -1, control = -1;
  for (int i = 0; i < argc; ++i) {
    if (sscanf(argv[i], "out=%d", &out) == 1 || sscanf(argv[i], "control=%d", &control) == 1 ||
        sscanf(argv[i], "instructions=%" SCNu64, &limit) == 1 ||
        sscanf(argv[i], "skip=%" SCNu64, &skip) == 1)
      continue;
    fprintf(
        stderr,
        "The tracer does not know its argument '%s'; it takes out, control, instructions, skip.\n",
        argv[i]);
    return -1;
  }
  if (out < 0 || control < 0 || limit == 0) {
    fprintf(stderr,
            "The tracer needs out=FD, control=FD and instructions=N; run it through record.py.\n");
    return -1;
  }
  if (!info->system_emulation || info->system.max_vcpus != 1 ||
      strcmp(info->target_name, "x86_64") != 0) {
    fprintf(stderr,
            "The tracer records one x86-64 processor; start qemu-system-x86_64 with -smp 1.\n");
    return -1;
  }
  self = id;
  control_open(control);
  stream_open(out);
  qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation_while_waiting);
  return 0;
}
