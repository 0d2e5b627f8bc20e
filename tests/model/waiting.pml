/* waiting.pml: who sleeps on S when waiters of different tenancies share one slot.
 *
 * One slot, two tenancies, a finisher for each, two waiters that each pick a ticket. sleep.pml
 * has one waiter a slot; here a slow waiter or a slow finisher of the first tenancy meets those
 * of the second. A count of sleepers is safe; a word that names the waiters' generation is so
 * only with more care than its bugs below take. Contract: docs/design/hot-path.md, "Complete"
 * step 4, "Test and wait". Property: every wait ends.
 */
#define THREADS 4 /* 0 and 1 finish tenancies 1 and 2; 2 and 3 wait */
#ifndef BUFFER_DEPTH
#define BUFFER_DEPTH 2
#endif
#define S 0
#define SLEEPERS 1
#define VARIABLES 2

#include "store_buffer.pml"

bool in_futex[THREADS];

#define LOCALS byte scratch, todo, value

proctype finisher(byte me; byte tenancy)
{
  LOCALS;
  /* the slot is published again, and so can be finished again, once its former tenancy has ended */
  memory[S] == tenancy - 1;
  store(me, S, tenancy); /* release; then a compiler barrier and a plain load */
  load(me, SLEEPERS, value);
  if
#if defined(BUG_GENERATION_EQUAL)
  :: value == tenancy ->
#elif defined(BUG_GENERATION_PLAIN_STORE)
  :: value >= tenancy ->
#else
  :: value != 0 ->
#endif
    LOCKED(me);
#ifdef BUG_WAKE_ONE
    d_step {
      if
      :: in_futex[2] -> in_futex[2] = false;
      :: else -> in_futex[3] = false;
      fi;
    }
#else
    d_step { in_futex[2] = false; in_futex[3] = false; } /* futex-wake S, all */
#endif
  :: else
  fi
}

proctype waiter(byte me)
{
  LOCALS;
  byte ticket;
  if
  :: ticket = 1;
  :: memory[S] >= 1 -> ticket = 2; /* its ticket exists only then */
  fi;
  do
  :: load(me, S, value);
    if :: value >= ticket -> break :: else fi;
#if defined(BUG_GENERATION_PLAIN_STORE)
    store(me, SLEEPERS, ticket);
#elif defined(BUG_GENERATION_EQUAL)
    d_step {
      LOCKED(me);
      if :: memory[SLEEPERS] < ticket -> memory[SLEEPERS] = ticket; :: else fi;
    }
#elif defined(BUG_FLAG_INSTEAD_OF_COUNT)
    store(me, SLEEPERS, 1);
#else
    d_step { LOCKED(me); memory[SLEEPERS]++; } /* fetch_add */
#endif
#if !defined(NAP) && !defined(BUG_NO_MEMBARRIER)
    membarrier(me);
#endif
    load(me, S, value);
    if
    :: value < ticket ->
      atomic { /* futex-wait: compares with the value seen */
        LOCKED(me);
        if :: memory[S] == value -> in_futex[me] = true; :: else fi;
      }
#ifdef NAP
      d_step { !in_futex[me] || memory[S] >= ticket -> in_futex[me] = false; } /* or timed out */
#else
      !in_futex[me];
#endif
#ifdef REACH_SPURIOUS_WAKE
      assert(memory[S] >= ticket);
#endif
    :: else
    fi;
#if defined(BUG_FLAG_INSTEAD_OF_COUNT)
    store(me, SLEEPERS, 0);
#elif !defined(BUG_GENERATION_PLAIN_STORE) && !defined(BUG_GENERATION_EQUAL)
    d_step { LOCKED(me); memory[SLEEPERS]--; } /* fetch_sub */
#endif
  od
}

init { atomic { run finisher(0, 1); run finisher(1, 2); run waiter(2); run waiter(3); } }
