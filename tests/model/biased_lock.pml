/* biased_lock.pml: BiasedLock (fabric/endpoint/lock.hpp): a program that takes turns by itself, and one guest.
 *
 * The program's side makes CALLS calls, the guest tries TURNS times to come in. The program's store to `calls_` and its
 * load of `guest_` have a compiler barrier between them, and no more: the guest's membarrier stands for the fence.
 * Properties: never are both inside; every wait ends.
 */
#define THREADS 2
#define PROGRAM 0
#define GUEST 1
#ifndef CALLS
#define CALLS 3
#endif
#ifndef TURNS
#define TURNS 3
#endif
#ifndef BUFFER_DEPTH
#define BUFFER_DEPTH 2
#endif
#define CALLS_WORD 0
#define GUEST_WORD 1
#define ASLEEP_WORD 2
#define VARIABLES 3

#include "store_buffer.pml"

bool program_inside, guest_inside; /* ghosts */
bool sleeping;                     /* the program's thread, in futex_wait() */

#define LOCALS byte scratch, todo, value

/* A sequentially consistent store is an exchange: it is in memory before what follows. */
inline exchange(thread, variable, new_value)
{
  d_step { LOCKED(thread); memory[variable] = new_value; }
}

inline wait_for_guest()
{
  if
  :: memory[GUEST_WORD] == 0 /* while it spins */
  :: exchange(PROGRAM, ASLEEP_WORD, 1);
    do
    :: load(PROGRAM, GUEST_WORD, value);
      if
      :: value == 0 -> break
      :: else ->
        d_step { /* futex_wait() compares under the kernel's lock */
          LOCKED(PROGRAM);
          if
          :: memory[GUEST_WORD] == 1 -> sleeping = true;
          :: else
          fi;
        }
#ifdef REACH_PROGRAM_SLEEPS
        assert(!sleeping);
#endif
        !sleeping;
      fi
    od;
    store(PROGRAM, ASLEEP_WORD, 0);
  fi
}

proctype program()
{
  LOCALS;
  byte call;
  do
  :: call < CALLS ->
    call++;
    store(PROGRAM, CALLS_WORD, 2 * call - 1);
    load(PROGRAM, GUEST_WORD, value);
    if
    :: value != 0 -> wait_for_guest();
    :: else
    fi;
    program_inside = true;
    assert(!guest_inside);
    program_inside = false;
    store(PROGRAM, CALLS_WORD, 2 * call); /* release */
  :: else -> break
  od
}

inline leave_as_guest()
{
#ifdef BUG_LEAVES_BY_PLAIN_STORE
  store(GUEST, GUEST_WORD, 0);
#else
  exchange(GUEST, GUEST_WORD, 0);
#endif
  load(GUEST, ASLEEP_WORD, value);
  if
  :: value != 0 -> d_step { LOCKED(GUEST); sleeping = false; } /* futex_wake() */
  :: else
  fi
}

proctype guest()
{
  LOCALS;
  byte turn;
  do
  :: turn < TURNS ->
    turn++;
    load(GUEST, CALLS_WORD, value);
    if
    :: value % 2 == 1 /* the program is inside: not now */
    :: else ->
      store(GUEST, GUEST_WORD, 1);
#ifdef BUG_FENCE_OF_ITS_OWN
      LOCKED(GUEST);
#else
#ifndef BUG_NO_MEMBARRIER
      membarrier(GUEST);
#endif
#endif
      load(GUEST, CALLS_WORD, value);
      if
#ifndef BUG_NO_SECOND_LOOK
      :: value % 2 == 1 ->
#ifdef REACH_GUEST_STEPS_BACK
        assert(false);
#endif
#ifdef BUG_STEPS_BACK_SILENTLY
        exchange(GUEST, GUEST_WORD, 0);
#else
        leave_as_guest();
#endif
#endif
      :: else ->
        guest_inside = true;
        assert(!program_inside);
#ifdef REACH_PROGRAM_WAITS
        assert(memory[CALLS_WORD] % 2 == 0);
#endif
        guest_inside = false;
        leave_as_guest();
      fi
    fi
  :: else -> break
  od
}

init { atomic { run program(); run guest(); } }
