/* sleep.pml: the mover sleeps, submitters wake it; a waiter sleeps, the finisher wakes it.
 *
 * Two submitters, each with its ring, hand REQUESTS requests to one mover and sleep until their
 * last ticket is done. A third thread gives up its ring, so that the mover looks whether it is still
 * needed; and a mover that sleeps may retire at any time, to be made anew by a bell. Contract:
 * docs/design/hot-path.md, "Submit" step 3, "Complete" step 4, "Sleep", "How movers end". Property: no lost wake-up, that is, no state in which all are blocked and a request
 * is not done (an invalid end state), and no cycle. -DNAP: membarrier is refused, sleepers nap
 * instead.
 */
#define SUBMITTERS 2
#define THREADS 3 /* 0 is the mover, 1 and 2 are the submitters */
#ifndef REQUESTS
#define REQUESTS 2
#endif
#ifndef BUFFER_DEPTH
#define BUFFER_DEPTH 2
#endif

/* The shared words. Each submitter's ring is one slot per request; `P(r)` counts the published ones
 * and `S(r)` the finished ones, as the words of successive slots would show. */
#define MOVER 0
#define ASLEEP 0
#define RUNS 0
#define SLEEPS 1
#define LOOKS 2
#define GONE 3
#define P(ring) (ring)
#define S(ring) (SUBMITTERS + (ring))
#define SLEEPERS(ring) (2 * SUBMITTERS + (ring))
#define VARIABLES (3 * SUBMITTERS + 1)

#include "store_buffer.pml"

/* The kernel's side of futex: who sleeps on which word. */
bool mover_in_futex;
bool mover_alive = true; /* under the lock under which movers are made */
bool waiter_in_futex[SUBMITTERS + 1];

#define WORKER_LOCALS byte scratch, todo, value

/* Looks at every ring; `found` says whether one holds a request that was not served. */
inline look()
{
  found = false;
  ring = 1;
  do
  :: ring <= SUBMITTERS ->
    load(MOVER, P(ring), value);
    if :: value > served[ring] -> found = true; :: else fi;
    ring++;
  :: else -> ring = 0; value = 0; break
  od
}

inline serve_all()
{
  found = false;
  ring = 1;
  do
  :: ring <= SUBMITTERS ->
    load(MOVER, P(ring), value); /* acquire */
    if
    :: value > served[ring] ->
      found = true;
      served[ring]++;
      store(MOVER, S(ring), served[ring]); /* release; then a compiler barrier and a plain load */
      load(MOVER, SLEEPERS(ring), value);
      if
      :: value != 0 -> LOCKED(MOVER); waiter_in_futex[ring] = false; /* futex-wake S */
      :: else
      fi;
    :: else
    fi;
    ring++;
  :: else -> ring = 0; value = 0; break
  od
}

active proctype mover()
{
  WORKER_LOCALS;
  byte ring;
  byte served[SUBMITTERS + 1];
  bool found;
awake:
  do
  :: serve_all();
    if :: found :: else -> break fi;
  od;
  /* idle for the spin time */
  store(MOVER, ASLEEP, SLEEPS);
#ifdef BUG_LOCAL_FENCE
  LOCKED(MOVER); /* a fence of the mover's own, which a submitter's store buffer does not feel */
#elif !defined(BUG_NO_MEMBARRIER)
  BARRIER_ON_ALL(MOVER);
#endif
#ifndef BUG_NO_RESCAN
  look();
  if
  :: found ->
#ifdef REACH_RESCAN_FINDS
    assert(false);
#endif
    store(MOVER, ASLEEP, RUNS);
    goto awake;
  :: else
  fi;
#endif
  /* futex-wait on `asleep`: the kernel compares and enqueues under its lock */
sleep:
  atomic {
    LOCKED(MOVER);
    if
    :: memory[ASLEEP] == SLEEPS -> mover_in_futex = true;
    :: memory[ASLEEP] == LOOKS -> memory[ASLEEP] = SLEEPS; goto sleep /* compare-and-swap */
    :: else -> goto awake
    fi;
  }
end_asleep:
  if
  :: !mover_in_futex ->
#ifdef REACH_MOVER_WOKEN
    assert(false);
#endif
    goto sleep
  :: mover_in_futex -> /* the time is up, and no ring is owned */
    atomic {
      LOCKED(MOVER);
      mover_in_futex = false;
      if
#ifdef BUG_RETIRES_UNSEEN
      :: true -> memory[ASLEEP] = GONE; mover_alive = false;
#else
      :: memory[ASLEEP] == SLEEPS -> memory[ASLEEP] = GONE; mover_alive = false;
      :: else -> goto sleep
#endif
      fi
    }
  fi;
end_gone:
  mover_alive;
#ifdef REACH_MADE_ANEW
  assert(false);
#endif
  /* a new thread */
  store(MOVER, ASLEEP, RUNS);
  goto awake
}

/* The last thread but the submitters that had a ring. (What they own does not keep the mover here.) */
active proctype giver()
{
  atomic {
    if :: memory[ASLEEP] == SLEEPS -> memory[ASLEEP] = LOOKS; mover_in_futex = false; :: else fi;
  }
}

inline submit(me)
{
  published++;
  store(me, P(me), published); /* release; then a compiler barrier and a plain load */
  load(me, ASLEEP, value);
  if
  :: value == SLEEPS || value == LOOKS ->
    atomic { /* compare-and-swap, again while it is one of these */
      LOCKED(me);
      value = memory[ASLEEP];
      if
      :: value == SLEEPS || value == LOOKS -> memory[ASLEEP] = RUNS;
      :: else
      fi;
    }
    if
    :: value == SLEEPS || value == LOOKS -> mover_in_futex = false; /* futex-wake */
    :: else
    fi;
  :: else
  fi;
#ifndef BUG_GONE_IS_AWAKE
  if
  :: value == GONE -> d_step { LOCKED(me); mover_alive = true; }
  :: else
  fi;
#endif
  value = 0
}

/* The waiter's sleep. It never helps here, so that only the mover can end its wait. Where
 * membarrier is refused its sleep is bounded: a time-out that finds the ticket done is another
 * way out. */
inline wait(me, ticket)
{
  do
  :: load(me, S(me), value);
    if :: value >= ticket -> break :: else fi;
    d_step { LOCKED(me); memory[SLEEPERS(me)]++; } /* fetch_add */
#if !defined(NAP) && !defined(BUG_WAITER_NO_MEMBARRIER)
    membarrier(me);
#endif
    load(me, S(me), value);
    if
    :: value < ticket ->
      atomic { /* futex-wait: compares with the value seen */
        LOCKED(me);
#ifdef BUG_WAITER_NO_COMPARE
        waiter_in_futex[me] = true;
#else
        if :: memory[S(me)] == value -> waiter_in_futex[me] = true; :: else fi;
#endif
      }
#ifdef NAP
      d_step { !waiter_in_futex[me] || memory[S(me)] >= ticket -> waiter_in_futex[me] = false; }
#else
      !waiter_in_futex[me];
#endif
#ifdef REACH_WAITER_WOKEN
      assert(false);
#endif
    :: else
    fi;
    d_step { LOCKED(me); memory[SLEEPERS(me)]--; } /* fetch_sub */
  od;
  value = 0
}

proctype submitter(byte me)
{
  WORKER_LOCALS;
  byte published;
  do
  :: published < REQUESTS ->
    submit(me);
    if
    :: true -> wait(me, published);
    :: published < REQUESTS /* submits the next one first */
    fi;
  :: else -> break
  od
}

init { atomic { run submitter(1); run submitter(2); } }
