/* queue.pml: the completion queue's eventfd: posting, arming, reaping.
 *
 * Two finishers post POSTS entries each; the owner reaps, arms, and sleeps in poll. Contract:
 * src/completion/queue.hpp. Properties: an entry that was posted is reaped, once and in the
 * order of its index; the owner never sleeps for good with an entry in the queue; no deadlock,
 * no cycle.
 */
#define THREADS 3 /* 0 and 1 post, 2 reaps */
#define OWNER 2
#ifndef POSTS
#define POSTS 2
#endif
#ifndef BUFFER_DEPTH
#define BUFFER_DEPTH 2
#endif
#define ENTRIES (2 * POSTS)
#define TURN(index) (index)
#define ARMED ENTRIES
#define VARIABLES (ENTRIES + 1)

#include "store_buffer.pml"

byte tail; /* fetch_add only: no store buffer */
byte event_fd;

/* A sequentially consistent store is an exchange: it empties the buffer. */
#ifdef BUG_RELEASE_STORES
#define SEQ_CST(thread) true
#else
#define SEQ_CST(thread) LOCKED(thread)
#endif

#define LOCALS byte scratch, value

proctype finisher(byte me)
{
  LOCALS;
  byte index, posts;
  do
  :: posts < POSTS ->
    d_step { LOCKED(me); index = tail; tail++; }
    store(me, TURN(index), 1);
    SEQ_CST(me);
    load(me, ARMED, value);
    if
    :: value == 1 ->
      d_step { LOCKED(me); value = memory[ARMED]; memory[ARMED] = 0; } /* exchange */
      if :: value == 1 -> event_fd++; :: else fi;
    :: else
    fi;
    posts++;
  :: else -> break
  od
}

active proctype owner()
{
  LOCALS;
  byte head;
  do
  :: head < ENTRIES ->
    load(OWNER, TURN(head), value); /* acquire */
    if
    :: value == 1 -> assert(head < tail); head++;
    :: else ->
#ifndef BUG_CLEAR_AFTER_ARM
      event_fd = 0;
#endif
      store(OWNER, ARMED, 1);
      SEQ_CST(OWNER);
#ifdef BUG_CLEAR_AFTER_ARM
      event_fd = 0;
#endif
#ifdef BUG_ARM_NO_LOOK
      value = 0;
#else
      load(OWNER, TURN(head), value);
#endif
      if
      :: value == 1 -> store(OWNER, ARMED, 0); /* an entry waits already: stays disarmed */
      :: else ->
        LOCKED(OWNER);
        event_fd > 0; /* poll */
#ifdef REACH_OWNER_WOKEN_FOR_LATER_ENTRY
        assert(memory[TURN(head)] == 1); /* the entry before it is still being filled in */
#endif
      fi;
    fi;
  :: else -> break
  od
}

init { atomic { run finisher(0); run finisher(1); } }
