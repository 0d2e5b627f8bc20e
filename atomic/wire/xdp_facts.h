/* What the XDP program and its loader agree on beside the packet. */
#ifndef HAUL_ATOMIC_WIRE_XDP_FACTS_H
#define HAUL_ATOMIC_WIRE_XDP_FACTS_H

#include "atomic/wire/tables.h"

enum {
  XDP_WINDOWS = 256, /* windows of one node */
  XDP_PAGE_BYTES = 4096,
  /* Counted after the responder's own events. */
  CLIENT_COMPLETED = SERVE_EVENTS,
  CLIENT_IGNORED, /* replies to nobody here, damaged, or late */
  XDP_EVENTS
};

/* Constants of a loaded program. */
struct xdp_config {
  __u32 address;     /* own; network order, as the ports */
  __u16 port;        /* where requests come to; 0: nowhere */
  __u16 client_port; /* where replies come to; 0: nowhere */
  __u32 sessions;
};

#endif
