// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/* A node of remote atomics in the receive path of its network interface (XDP). Requests are
 * executed on the windows' memory and sent back (wire/serve.h); replies go into the completion map.
 * Packets that are not for us, or that we cannot read here (IPv6, VLAN, fragments, IP options), go
 * on to the kernel; a socket of the node hands the latter to this same program (BPF_PROG_TEST_RUN).
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <stddef.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "atomic/wire/completion.h"
#include "atomic/wire/serve.h"
#include "atomic/wire/xdp_facts.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* Set by the loader before the program is loaded. */
const volatile struct xdp_config config;

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, XDP_WINDOWS);
  __type(key, __u32);
  __type(value, struct window_entry);
} windows SEC(".maps");

/* A window's memory, by pages; user space maps the inner maps. */
struct pages {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE | BPF_F_INNER_MAP);
  __uint(max_entries, 1);
  __uint(key_size, 4);
  __uint(value_size, XDP_PAGE_BYTES);
};
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
  __uint(max_entries, XDP_WINDOWS);
  __uint(key_size, 4);
  __array(values, struct pages);
} memory SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct session_entry);
} sessions SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct result_entry);
} results SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);
  __uint(key_size, 4);
  __uint(value_size, COMPLETION_SLOT_BYTES);
} completions SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, XDP_EVENTS);
  __type(key, __u32);
  __type(value, __u64);
} events SEC(".maps");

struct responder {
  char unused;
};

SERVE_INLINE void count_event(struct responder* self, __u32 event) {
  __u64* counter = bpf_map_lookup_elem(&events, &event);
  if (counter) ++*counter;
}
SERVE_INLINE struct window_entry* find_window(struct responder* self, __u32 window) {
  return bpf_map_lookup_elem(&windows, &window);
}
SERVE_INLINE char* find_page(struct responder* self, __u32 window, __u64 offset) {
  const __u32 page = offset / XDP_PAGE_BYTES;
  void* inner = bpf_map_lookup_elem(&memory, &window);
  return inner ? bpf_map_lookup_elem(inner, &page) : NULL;
}
SERVE_INLINE struct session_entry* find_session(struct responder* self, __u32 slot) {
  return bpf_map_lookup_elem(&sessions, &slot);
}
SERVE_INLINE struct result_entry* find_results(struct responder* self, __u32 slot, __u32 sequence) {
  const __u32 index = slot * WIRE_RESULTS + sequence % WIRE_RESULTS;
  return slot < config.sessions ? bpf_map_lookup_elem(&results, &index) : NULL;
}
SERVE_INLINE __u32 session_slots(struct responder* self) {
  return config.sessions;
}

/* The sum of an IPv4 header without options; 0xffff if its checksum is right. */
SERVE_INLINE __u32 ip_sum(const struct iphdr* ip) {
  const __u16* words = (const __u16*)ip;
  __u32 sum = 0;
  for (int i = 0; i < 10; ++i) sum += words[i];
  sum = (sum & 0xffff) + (sum >> 16);
  return (sum & 0xffff) + (sum >> 16);
}

SERVE_INLINE void turn_round(struct ethhdr* eth, struct iphdr* ip, struct udphdr* udp) {
  unsigned char mac[ETH_ALEN];
  __builtin_memcpy(mac, eth->h_dest, ETH_ALEN);
  __builtin_memcpy(eth->h_dest, eth->h_source, ETH_ALEN);
  __builtin_memcpy(eth->h_source, mac, ETH_ALEN);
  const __u32 address = ip->saddr;
  ip->saddr = ip->daddr;
  ip->daddr = address;
  const __u16 port = udp->source;
  udp->source = udp->dest;
  udp->dest = port;
  udp->check = 0; /* allowed over IPv4; the packet has its own */
  ip->ttl = 64;
  ip->check = 0;
  ip->check = ~ip_sum(ip);
}

SERVE_INLINE int answer_request(struct ethhdr* eth, struct iphdr* ip, struct udphdr* udp,
                                struct wire_header* header, __u32 bytes, void* end) {
  struct responder self;
  const __u64 source = (__u64)ip->saddr << 16 | udp->source;
  const __u32 now_s = bpf_ktime_get_coarse_ns() >> 30;
  if (serve(&self, header, bytes, end, source, now_s) == SERVE_DROP) return XDP_DROP;
  header->checksum = wire_checksum(header, end, header->count);
  turn_round(eth, ip, udp);
  return XDP_TX;
}

SERVE_INLINE int ignore_reply(void) {
  count_event(NULL, CLIENT_IGNORED);
  return XDP_DROP;
}

SERVE_INLINE int take_reply(struct wire_header* header, __u32 bytes, void* end) {
  const __u32 connection = header->cookie & 0xffff;
  const __u32 sequence = header->sequence;
  struct wire_operation* ops = (struct wire_operation*)(header + 1);
  if (header->magic != WIRE_MAGIC || !(header->kind & WIRE_REPLY) ||
      header->count > WIRE_MAX_OPERATIONS ||
      bytes != sizeof *header + header->count * sizeof *ops) {
    return ignore_reply();
  }
  /* Sessions begin and end at the socket. */
  if (header->kind != (WIRE_REQUEST | WIRE_REPLY)) return XDP_PASS;
  struct completion_slot* slot = bpf_map_lookup_elem(&completions, &connection);
  if (!slot || header->session == 0 || slot->session != header->session ||
      header->checksum != wire_checksum(header, end, header->count)) {
    return ignore_reply();
  }
  struct completion_entry* entry = &slot->entries[sequence % WIRE_RESULTS];
  const __u64 state = SHARED_LOAD(entry->state);
  if ((__u32)state == COMPLETION_FILLING || (__s32)(sequence - (__u32)(state >> 32)) <= 0 ||
      __sync_val_compare_and_swap(&entry->state, state,
                                  completion_state(sequence, COMPLETION_FILLING)) != state) {
    return ignore_reply();
  }
  /* Once more behind that swap: a client that gives the slot to another session changes its number
     first, and then waits for whoever fills an entry. */
  if (SHARED_LOAD(slot->session) != header->session) {
    __sync_lock_test_and_set(&entry->state, state);
    return ignore_reply();
  }
  entry->status = header->status;
  entry->count = header->count;
  entry->repetition = header->cookie >> 16;
  for (__u32 i = 0; i < WIRE_MAX_OPERATIONS; ++i) {
    if (i >= header->count || (void*)(ops + i + 1) > end) break;
    entry->old[i] = ops[i].operand;
    entry->result[i] = ops[i].result;
  }
  __sync_lock_test_and_set(&entry->state, completion_state(sequence, COMPLETION_DONE));
  count_event(NULL, CLIENT_COMPLETED);
  /* Read after the swap, a full barrier; the client sets it, and then looks at the entry. */
  return SHARED_LOAD(slot->asleep) ? XDP_PASS : XDP_DROP;
}

/* Counts a packet of ours that the kernel has to read for us, and passes it on. */
SERVE_INLINE int pass_other(struct ethhdr* eth, void* end) {
  struct ipv6hdr* six = (struct ipv6hdr*)(eth + 1);
  struct udphdr* udp = (struct udphdr*)(six + 1);
  if (eth->h_proto == bpf_htons(ETH_P_IPV6) && (void*)(udp + 1) <= end &&
      six->nexthdr == IPPROTO_UDP &&
      (udp->dest == config.port || udp->dest == config.client_port)) {
    count_event(NULL, PASSED_OTHER);
  }
  /* A tag of four bytes, then IPv4. */
  struct iphdr* tagged = (void*)(eth + 1) + 4;
  udp = (struct udphdr*)(tagged + 1);
  if ((eth->h_proto == bpf_htons(ETH_P_8021Q) || eth->h_proto == bpf_htons(ETH_P_8021AD)) &&
      (void*)(udp + 1) <= end && tagged->protocol == IPPROTO_UDP &&
      (udp->dest == config.port || udp->dest == config.client_port)) {
    count_event(NULL, PASSED_OTHER);
  }
  return XDP_PASS;
}

SEC("xdp")
int haul_atomic(struct xdp_md* context) {
  void* end = (void*)(long)context->data_end;
  struct ethhdr* eth = (void*)(long)context->data;
  struct iphdr* ip = (void*)(eth + 1);
  struct udphdr* udp = (void*)(ip + 1);
  struct wire_header* header = (void*)(udp + 1);
  if ((void*)(eth + 1) > end) return XDP_PASS;
  if (eth->h_proto != bpf_htons(ETH_P_IP)) return pass_other(eth, end);
  if ((void*)header > end || ip->version != 4 || ip->protocol != IPPROTO_UDP ||
      ip->daddr != config.address) {
    return XDP_PASS;
  }
  if (ip->ihl != 5 || (ip->frag_off & bpf_htons(0x3fff))) {
    count_event(NULL, PASSED_OTHER);
    return XDP_PASS;
  }
  /* A node without a responder, or without a client, gives 0 as the port. */
  if (udp->dest == 0 || (udp->dest != config.port && udp->dest != config.client_port)) {
    return XDP_PASS;
  }
  /* A frame may be longer than its packet (Ethernet's least length). */
  const __u32 bytes = bpf_ntohs(udp->len) - sizeof *udp;
  if (ip_sum(ip) != 0xffff || bpf_ntohs(ip->tot_len) != sizeof *ip + sizeof *udp + bytes ||
      bytes > (__u32)(end - (void*)header) || (void*)(header + 1) > end) {
    count_event(NULL, DROPPED_SHORT);
    return XDP_DROP;
  }
  if (udp->dest == config.client_port) return take_reply(header, bytes, end);
  return answer_request(eth, ip, udp, header, bytes, end);
}
