/* What lies in front of a fragment's bytes in its frame, and what the XDP program knows of a lane.
 * The program (nic.bpf.c) and the plug-in share it. The frame goes from a port to itself, so
 * numbers are in the host's order.
 */
#ifndef HAUL_DEVICES_NIC_FRAME_H
#define HAUL_DEVICES_NIC_FRAME_H

#ifdef __cplusplus
#include <cstdint>
using std::uint16_t;
using std::uint32_t;
using std::uint64_t;
#else
#include <linux/types.h>
typedef __u16 uint16_t;
typedef __u32 uint32_t;
typedef __u64 uint64_t;
#endif

/* IEEE's ethertype for local experiments. */
#define NIC_ETHERTYPE 0x88b5
#define NIC_LANES 32u
/* What an AF_XDP receiver puts into one entry of its fill ring: a chunk less XDP's headroom. */
#define NIC_CHUNK_BYTES 4096u
#define NIC_HEADROOM_BYTES 256u
#define NIC_PART_BYTES (NIC_CHUNK_BYTES - NIC_HEADROOM_BYTES)

struct nic_header {
  unsigned char addresses[12]; /* Ethernet's: of nobody */
  uint16_t ethertype;          /* in network order */
  uint16_t lane;
  uint32_t bytes;    /* of the fragment, behind this header */
  uint32_t turn;     /* of sending: how often the lane had given up what was under way */
  uint64_t key;      /* of the lane, drawn at random: strangers do not know it */
  uint64_t sequence; /* of the fragment; never used twice with one key */
};

/* Written by the plug-in before the lane's first frame; then the program counts. One line each. */
struct nic_lane {
  uint64_t key; /* 0: no lane */
  uint64_t expected;
  uint64_t refused; /* frames that were lost copies, out of order, or strangers' */
  uint64_t late;    /* of the expected fragments those of an older turn than the lane's */
  uint64_t early;   /* of the refused frames those of this turn that come behind the expected one */
  uint32_t interface;
  uint32_t turn; /* written by the plug-in before it sends a fragment again */
  uint32_t unused[4];
};

#endif
