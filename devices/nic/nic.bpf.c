// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/* The receiving port of a lane. The next fragment that the lane expects loses its header and goes
 * to the lane's AF_XDP socket, whose fill ring says where its bytes belong. Every other frame is
 * dropped before it takes an entry of that ring: a stranger's, a second copy, one that comes too
 * early, as a fragment before it was lost. So the ring's entries and the fragments stay in step.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "devices/nic/frame.h"

char _license[] SEC("license") = "Dual BSD/GPL";

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, NIC_LANES);
  __type(key, __u32);
  __type(value, struct nic_lane);
} lanes SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_XSKMAP);
  __uint(max_entries, NIC_LANES);
  __type(key, __u32);
  __type(value, __u32);
} sockets SEC(".maps");

SEC("xdp.frags")
int haul_nic(struct xdp_md* frame) {
  const struct nic_header* header = (const void*)(long)frame->data;
  if ((const void*)(header + 1) > (const void*)(long)frame->data_end) return XDP_DROP;
  if (header->ethertype != bpf_htons(NIC_ETHERTYPE)) return XDP_DROP;
  const __u32 index = header->lane;
  struct nic_lane* lane = bpf_map_lookup_elem(&lanes, &index);
  if (lane == NULL || lane->key == 0 || lane->interface != frame->ingress_ifindex) return XDP_DROP;
  const __u64 sequence = header->sequence;
  const __u64 bytes = header->bytes;
  const __u32 turn = header->turn;
  if (header->key != lane->key || sequence != lane->expected || bytes == 0 ||
      bpf_xdp_get_buff_len(frame) != sizeof *header + bytes || frame->rx_queue_index != 0) {
    __sync_fetch_and_add(&lane->refused, 1);
    if (header->key == lane->key && sequence > lane->expected && turn == lane->turn) lane->early++;
    return XDP_DROP;
  }
  if (bpf_xdp_adjust_head(frame, sizeof *header) != 0) return XDP_DROP;
  if (bpf_redirect_map(&sockets, index, XDP_DROP) != XDP_REDIRECT) return XDP_DROP;
  if (turn != lane->turn) lane->late++;
  /* Counted before the socket has the bytes: whoever finds as many of them received as are counted
   * here knows that none is missing (xsk.hpp). */
  lane->expected = sequence + 1;
  return XDP_REDIRECT;
}
