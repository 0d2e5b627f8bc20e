/* fork.pml: the claim gate. At the moment of fork nobody is between a claim and the end of its
 * request.
 *
 * Two workers on one request of two chunks; a third thread forks at any time. Contract:
 * docs/design/hot-path.md, "Fork". Properties: in the child's memory each claimed chunk is done
 * and a request with all chunks done has its S, so that the child can end whatever it inherits;
 * in the parent everything ends. -DNAP: membarrier is refused.
 */
#define THREADS 3 /* 0 and 1 work, 2 forks */
#define FORKER 2
#ifndef BUFFER_DEPTH
#define BUFFER_DEPTH 2
#endif
#define BUSY(worker) (worker)
#define GATE 2
#define S 3
#define VARIABLES 4
#define FULL 3

#include "store_buffer.pml"

byte claimed; /* locked instructions only: no store buffer */
byte done;

#define LOCALS byte scratch, todo, value

proctype worker(byte me)
{
  LOCALS;
  byte chunk;
  do
  :: store(me, BUSY(me), 1); /* then a compiler barrier and a plain load */
    load(me, GATE, value);
    if
    :: value == 1 ->
      store(me, BUSY(me), 0);
      memory[GATE] == 0; /* polls: it must not sleep while chunks are unclaimed */
    :: else ->
      atomic { /* compare-and-swap */
        LOCKED(me);
        if
        :: !(claimed & 1) -> chunk = 1;
        :: !(claimed & 2) -> chunk = 2;
        :: claimed == FULL -> chunk = 0;
        fi;
        claimed = claimed | chunk;
      }
      if
      :: chunk == 0 -> store(me, BUSY(me), 0); break
      :: else
      fi;
      d_step { LOCKED(me); done = done | chunk; value = done; } /* compare-and-swap */
#ifdef BUG_IDLE_BEFORE_STATE
      store(me, BUSY(me), 0);
#endif
      if
      :: value == FULL -> store(me, S, 1); /* notification, completion queue, S */
      :: else
      fi;
      store(me, BUSY(me), 0); /* release */
    fi;
  od;
  memory[S] == 1
}

proctype forker()
{
  LOCALS;
  store(FORKER, GATE, 1);
#ifndef BUG_NO_MEMBARRIER
  BARRIER_ON_ALL(FORKER);
#endif
#ifdef BUG_SCANS_CLAIMS_ONLY
  claimed == done;
#else
  memory[BUSY(0)] == 0; /* acquire */
  memory[BUSY(1)] == 0;
#endif
  /* fork(2): the child has this memory and none of the other threads */
  atomic {
    LOCKED(FORKER);
    assert(claimed == done);
    assert(done != FULL || memory[S] == 1);
#ifdef REACH_FORK_MIDWAY
    assert(claimed == 0 || claimed == FULL);
#endif
#ifdef REACH_FLAG_UP_AT_FORK
    assert(memory[BUSY(0)] == 0); /* a worker that looks at the closed gate: the child clears it */
#endif
  }
  store(FORKER, GATE, 0);
}

init { atomic { run worker(0); run worker(1); run forker(); } }
