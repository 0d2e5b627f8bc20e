/* second_hand.pml: the service's thread offers the half of a piece to its second hand.
 *
 * The service's thread offers PIECES halves, one after another, takes back what was not taken, and
 * last ends the hand and joins it. The hand takes what is offered, or sleeps. Contract:
 * service/second_hand.hpp. Properties: each half is moved once, by one of the two; the offer ends;
 * so does the join (an invalid end state).
 */
#define THREADS 2
#define SERVICE 0
#define HAND 1
#ifndef PIECES
#define PIECES 2
#endif
#define BUFFER_DEPTH 2
#define HALF 0 /* NONE, OFFERED, TAKEN, DONE */
#define ASLEEP 1
#define ENDING 2
#define VARIABLES 3
#define NONE 0
#define OFFERED 1
#define TAKEN 2
#define DONE 3

#include "store_buffer.pml"

bool in_futex; /* the hand, on ASLEEP */
bool gone;
byte moved; /* halves */

#define LOCALS byte scratch, todo, value

proctype service()
{
  LOCALS;
  byte pieces;
  do
  :: pieces < PIECES ->
    pieces++;
    store(SERVICE, HALF, OFFERED);
    load(SERVICE, ASLEEP, value);
    if
    :: value != 0 ->
      d_step { LOCKED(SERVICE); value = memory[ASLEEP]; memory[ASLEEP] = 0; } /* exchange */
      if :: value != 0 -> in_futex = false; :: else fi;
    :: else
    fi;
    /* moves the front; then */
    d_step { /* compare-and-swap */
      LOCKED(SERVICE);
      value = memory[HALF];
      if :: value == OFFERED -> memory[HALF] = NONE; :: else fi;
    }
    if
    :: value == OFFERED -> moved++; /* takes it back */
    :: else ->
      memory[HALF] == DONE; /* acquire */
      store(SERVICE, HALF, NONE);
#ifdef REACH_HAND_HELPS
      assert(false);
#endif
    fi;
    assert(moved == pieces);
  :: else -> break
  od;
  store(SERVICE, ENDING, 1);
  store(SERVICE, ASLEEP, 0);
  d_step { LOCKED(SERVICE); in_futex = false; } /* futex-wake */
  gone
}

proctype hand()
{
  LOCALS;
  do
  :: load(HAND, ENDING, value);
    if :: value == 1 -> break :: else fi;
    if
    :: memory[HALF] == OFFERED || memory[ENDING] == 1 -> /* spins until there is something */
      d_step { /* compare-and-swap */
        LOCKED(HAND);
        value = memory[HALF];
        if :: value == OFFERED -> memory[HALF] = TAKEN; :: else fi;
      }
      if
      :: value == OFFERED ->
        moved++;
        d_step { LOCKED(HAND); memory[HALF] = DONE; } /* sequentially consistent */
      :: else
      fi;
    :: true -> /* idle for its spin time */
      d_step { LOCKED(HAND); memory[ASLEEP] = 1; } /* sequentially consistent */
      do
      :: load(HAND, HALF, value);
        if :: value == OFFERED -> break :: else fi;
#ifndef BUG_ENDS_UNSEEN
        load(HAND, ENDING, value);
        if :: value == 1 -> break :: else fi;
#endif
        load(HAND, ASLEEP, value);
        if :: value != 1 -> break :: else fi;
        atomic { if :: memory[ASLEEP] == 1 -> in_futex = true; :: else fi; }
        !in_futex;
#ifdef REACH_HAND_WOKEN
        assert(false);
#endif
      od;
      store(HAND, ASLEEP, 0);
    fi;
  od;
  gone = true
}

init { atomic { run service(); run hand(); } }
