// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/* A bad cable: interfaces of a namespace in between, ports of a bridge. Packets of remote atomics
 * are lost, repeated and overtaken on the way, never damaged. It lies in between because XDP and
 * raw frames pass by the tc hooks of the hosts themselves; and it lets the bridge send on what it
 * has received, because generic XDP takes no packet that a tc program has redirected to an
 * interface. */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>
#include <linux/udp.h>
#include <stddef.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "atomic/wire/packet.h"
#include "tests/atomic/faults_facts.h"

char _license[] SEC("license") = "Dual BSD/GPL";

enum {
  FRONT_BYTES = sizeof(struct ethhdr) + sizeof(struct iphdr) + sizeof(struct udphdr),
  LEAST_BYTES = FRONT_BYTES + sizeof(struct wire_header),
  MOST_BYTES = LEAST_BYTES + WIRE_MAX_OPERATIONS * sizeof(struct wire_operation),
  PLACES = 32, /* kept packets of a way and CPU */
  RELEASE_ONE_IN = 8,
  AGAIN = 0xcab1e /* mark of a copy that was received once more: it has met its fate */
};

/* Set by the loader before the program is loaded. */
const volatile struct faults_config config;

/* A whole frame: it goes out in the buffer of a later packet of whatever client and length. */
struct kept {
  __u32 bytes; /* 0: none */
  __u8 frame[MOST_BYTES];
};
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, FAULTS_MOST_ENDS* PLACES);
  __type(key, __u32);
  __type(value, struct kept);
} places SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, FAULTS_MOST_ENDS* FAULTS_EVENTS);
  __type(key, __u32);
  __type(value, __u64);
} events SEC(".maps");

SERVE_INLINE void count(__u32 way, __u32 event) {
  const __u32 index = way * FAULTS_EVENTS + event;
  __u64* counter = bpf_map_lookup_elem(&events, &index);
  if (counter) ++*counter;
}

SERVE_INLINE struct kept* place_of(__u32 way, __u32 place) {
  const __u32 index = way * PLACES + place % PLACES;
  return bpf_map_lookup_elem(&places, &index);
}

SERVE_INLINE int is_ours(struct __sk_buff* skb) {
  void* end = (void*)(long)skb->data_end;
  struct ethhdr* eth = (void*)(long)skb->data;
  struct iphdr* ip = (void*)(eth + 1);
  struct udphdr* udp = (void*)(ip + 1);
  struct wire_header* header = (void*)(udp + 1);
  return (void*)(header + 1) <= end && eth->h_proto == bpf_htons(ETH_P_IP) && ip->ihl == 5 &&
         ip->protocol == IPPROTO_UDP && header->magic == WIRE_MAGIC;
}

/* Copies the packet to a free place; 0: there is none. */
SERVE_INLINE int keep(struct __sk_buff* skb, __u32 way) {
  const __u32 first = bpf_get_prandom_u32();
  const __u32 bytes = skb->len;
  if (bytes < LEAST_BYTES || bytes > MOST_BYTES) return 0;
  for (__u32 i = 0; i < PLACES; ++i) {
    struct kept* place = place_of(way, first + i);
    if (!place) return 0;
    if (place->bytes != 0) continue;
    if (bpf_skb_load_bytes(skb, 0, place->frame, bytes)) return 0;
    /* A virtual interface's unfinished checksum means nothing in another buffer: none at all. */
    struct udphdr* udp = (void*)(place->frame + sizeof(struct ethhdr) + sizeof(struct iphdr));
    udp->check = 0;
    place->bytes = bytes;
    return 1;
  }
  return 0;
}

/* A copy of the packet is received by the same interface. */
SERVE_INLINE int send_copy(struct __sk_buff* skb) {
  skb->mark = AGAIN;
  const int failed = bpf_clone_redirect(skb, skb->ifindex, BPF_F_INGRESS);
  skb->mark = 0;
  return !failed;
}

/* Sends the packet, and leaves in its buffer one that was kept; 0: nothing was done. */
SERVE_INLINE int release(struct __sk_buff* skb, __u32 way) {
  struct kept* place = place_of(way, bpf_get_prandom_u32());
  if (!place || place->bytes < LEAST_BYTES || place->bytes > MOST_BYTES) return 0;
  if (bpf_get_prandom_u32() % RELEASE_ONE_IN != 0) return 0;
  if (!send_copy(skb)) return 0;
  const __u32 bytes = place->bytes;
  if (bytes >= LEAST_BYTES && bytes <= MOST_BYTES && !bpf_skb_change_tail(skb, bytes, 0)) {
    bpf_skb_store_bytes(skb, 0, place->frame, bytes, 0);
  }
  place->bytes = 0;
  count(way, FAULTS_RELEASED);
  return 1;
}

/* A kept packet leaves by the end it came by: a bridge learns from it where its sender is. */
SERVE_INLINE __u32 way_from(__u32 interface) {
  __u32 way = 0;
  for (__u32 i = 0; i < FAULTS_MOST_ENDS; ++i) {
    if (config.ends[i] == interface) way = i;
  }
  return way;
}

SEC("tc")
int bad_cable(struct __sk_buff* skb) {
  const __u32 way = way_from(skb->ifindex);
  __u32 fate;
  if (skb->mark == AGAIN) {
    skb->mark = 0;
    return TC_ACT_OK;
  }
  if (bpf_skb_pull_data(skb, LEAST_BYTES) || !is_ours(skb)) return TC_ACT_OK;
  count(way, FAULTS_SEEN);
  fate = bpf_get_prandom_u32() % 1000;
  if (fate < config.drop) {
    count(way, FAULTS_DROPPED);
    return TC_ACT_SHOT;
  }
  fate -= config.drop;
  if (fate < config.duplicate) {
    if (fate % 2 == 0 && keep(skb, way)) {
      count(way, FAULTS_DUPLICATED_LATE);
    } else if (send_copy(skb)) {
      count(way, FAULTS_DUPLICATED);
    }
    return TC_ACT_OK;
  }
  fate -= config.duplicate;
  if (fate < config.reorder && keep(skb, way)) {
    count(way, FAULTS_KEPT);
    return TC_ACT_SHOT;
  }
  release(skb, way);
  return TC_ACT_OK;
}

/* A virtual interface sends natively only to one that has a native program, such as this. */
SEC("xdp")
int let_pass(struct xdp_md* context) {
  return XDP_PASS;
}
