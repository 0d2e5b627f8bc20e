// SPDX-License-Identifier: GPL-2.0-or-later
#include "virtqueue.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "control.h"
#include "stream_out.h"

// The layout of virtio 1.x, section 2.7 (split virtqueues).
struct descriptor {
  uint64_t address;
  uint32_t length;
  uint16_t flags, next;
};
enum { flag_next = 1, flag_write = 2, flag_indirect = 4 };
enum { index_offset = 2, ring_offset = 4, available_bytes = 2, used_bytes = 8 };

struct queue {
  char name[32];
  uint64_t descriptors, available, used;
  uint32_t size;
  uint16_t next_available, next_used;  // the first entries not looked at
  uint64_t requests, read, written;    // entries made available, bytes of buffers read and written
};
enum { most_queues = 16 };

uint8_t* virtqueue_pages;
static struct queue queues[most_queues];
static unsigned queue_count;

static void watch(uint64_t physical) {
  virtqueue_pages[physical >> page_bits >> 3] |= (uint8_t)(1u << (physical >> page_bits & 7));
}

bool virtqueue_add(const char* name, uint64_t descriptors, uint64_t available, uint64_t used,
                   uint32_t size) {
  if (virtqueue_pages == NULL)
    virtqueue_pages = calloc((guest_memory_bytes >> page_bits >> 3) + 1, 1);
  if (virtqueue_pages == NULL || queue_count == most_queues || size == 0 || size > 32768)
    return false;
  if (guest_bytes(descriptors, size * sizeof(struct descriptor)) == NULL ||
      guest_bytes(available, ring_offset + (uint64_t)size * available_bytes) == NULL ||
      guest_bytes(used, ring_offset + (uint64_t)size * used_bytes) == NULL)
    return false;
  struct queue* queue = &queues[queue_count++];
  *queue = (struct queue){
      .descriptors = descriptors, .available = available, .used = used, .size = size};
  strncpy(queue->name, name, sizeof queue->name - 1);
  watch(available + index_offset);
  watch(used + index_offset);
  return true;
}

// A little-endian field of a ring; its address was checked by virtqueue_add().
static uint16_t field16(uint64_t physical) {
  uint16_t value;
  memcpy(&value, guest_memory + physical, sizeof value);
  return value;
}

void virtqueues_start(void) {
  for (unsigned i = 0; i < queue_count; ++i) {
    queues[i].next_available = field16(queues[i].available + index_offset);
    queues[i].next_used = field16(queues[i].used + index_offset);
  }
}

// Walks the chain that begins at descriptor `head`, and an indirect table in its place: reports the
// buffers that the device reads, or up to `limit` bytes of those that it writes. Returns their
// bytes.
static uint64_t walk(const struct queue* queue, uint16_t head, bool writes, uint64_t limit) {
  uint64_t table = queue->descriptors, total = 0;
  uint32_t entries = queue->size, at = head;
  for (uint32_t steps = 0; steps <= queue->size + entries && at < entries; ++steps) {
    const void* raw =
        guest_bytes(table + at * sizeof(struct descriptor), sizeof(struct descriptor));
    if (raw == NULL) break;
    struct descriptor one;
    memcpy(&one, raw, sizeof one);
    if (!writes) stream_device(table + at * sizeof one, sizeof one, 0);
    if ((one.flags & flag_indirect) != 0) {
      if (table != queue->descriptors) break;  // no tables within tables
      table = one.address;
      entries = one.length / (uint32_t)sizeof one;
      at = 0;
      continue;
    }
    if (((one.flags & flag_write) != 0) == writes && guest_bytes(one.address, one.length) != NULL) {
      const uint64_t bytes = one.length < limit - total ? one.length : limit - total;
      if (bytes != 0) stream_device(one.address, (uint32_t)bytes, writes);
      total += bytes;
    }
    if ((one.flags & flag_next) == 0) break;
    at = one.next;
  }
  return total;
}

static void made_available(struct queue* queue) {
  const uint16_t end = field16(queue->available + index_offset);
  if (queue->next_available == end) return;
  stream_device(queue->available + index_offset, 2, 0);
  for (; queue->next_available != end; ++queue->next_available) {
    const uint64_t entry =
        queue->available + ring_offset + queue->next_available % queue->size * available_bytes;
    stream_device(entry, available_bytes, 0);
    queue->read += walk(queue, field16(entry), false, UINT64_MAX);
    ++queue->requests;
  }
}

static void made_used(struct queue* queue) {
  const uint16_t end = field16(queue->used + index_offset);
  if (queue->next_used == end) return;
  for (; queue->next_used != end; ++queue->next_used) {
    const uint64_t entry =
        queue->used + ring_offset + (uint64_t)(queue->next_used % queue->size) * used_bytes;
    uint32_t element[2];  // the head of the chain, the bytes written
    memcpy(element, guest_memory + entry, sizeof element);
    queue->written += walk(queue, (uint16_t)element[0], true, element[1]);
    stream_device(entry, used_bytes, 1);
  }
  stream_device(queue->used + index_offset, 2, 1);
}

static bool covers(uint64_t physical, uint32_t bytes, uint64_t index) {
  return physical < index + 2 && index < physical + bytes;
}

void virtqueues_reference(uint64_t physical, uint32_t bytes, bool store) {
  for (unsigned i = 0; i < queue_count; ++i) {
    struct queue* queue = &queues[i];
    if (store && covers(physical, bytes, queue->available + index_offset)) made_available(queue);
    if (!store && covers(physical, bytes, queue->used + index_offset)) made_used(queue);
  }
}

void virtqueues_report(void) {
  for (unsigned i = 0; i < queue_count; ++i)
    control_say("dma %s requests=%" PRIu64 " read=%" PRIu64 " written=%" PRIu64, queues[i].name,
                queues[i].requests, queues[i].read, queues[i].written);
}
