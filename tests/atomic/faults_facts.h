/* What the bad cable (faults.bpf.c) and its loader agree on. */
#ifndef TESTS_ATOMIC_FAULTS_FACTS_H
#define TESTS_ATOMIC_FAULTS_FACTS_H

#include <linux/types.h>

enum { FAULTS_MOST_ENDS = 8 };

/* Per mille of the packets that carry haul's magic; all else passes as it is. */
struct faults_config {
  __u32 ends[FAULTS_MOST_ENDS]; /* interfaces of the cable's ends; 0: none */
  __u32 drop;
  __u32 duplicate; /* half of them at once, half behind later packets */
  __u32 reorder;   /* kept back, and sent behind a later packet */
};

/* Counted for each way: that from ends[0], that from ends[1], ... */
enum faults_event {
  FAULTS_SEEN,
  FAULTS_DROPPED,
  FAULTS_DUPLICATED,
  FAULTS_DUPLICATED_LATE,
  FAULTS_KEPT,     /* for reordering */
  FAULTS_RELEASED, /* kept ones and late duplicates */
  FAULTS_EVENTS
};

#endif
