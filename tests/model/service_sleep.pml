/* service_sleep.pml: the node's service sleeps on its sockets, processes that submit ring its bell.
 *
 * Two submitters, of two processes or (-DCLIENTS=1) threads of one, publish REQUESTS requests for
 * the service. The bell is a packet, so it stays until it is read; the word in a process's board
 * says whether one is wanted, and who exchanges it to 0 sends it. Contract: docs/design/service.md,
 * "Submit", "Sleep". Property: no published request is left while the service sleeps and no bell is
 * under way (an invalid end state), and no cycle. -DNAP: the global membarrier is refused.
 */
#define THREADS 3 /* 0 is the service, 1 and 2 are the submitters */
#ifndef CLIENTS
#define CLIENTS 2
#endif
#ifndef REQUESTS
#define REQUESTS 2
#endif
#ifndef BUFFER_DEPTH
#define BUFFER_DEPTH 2
#endif

/* The shared words: `P(r)` counts what submitter r has published, as the words of successive slots
 * would show; `ASLEEP(c)` lies in the board of process c. */
#define SERVICE 0
#define P(ring) ((ring) - 1)
#define ASLEEP(client) (1 + (client))
#define CLIENT_OF(submitter) ((CLIENTS == 1) -> 1 : (submitter))
#define VARIABLES (2 + CLIENTS)

#include "store_buffer.pml"

byte packets;   /* bells in the service's sockets */
byte served[3]; /* requests that have ended; how their waiters learn of it is sleep.pml's */

#define LOCALS byte scratch, todo, value

/* One turn of every ring. */
inline round()
{
  found = false;
  each = 1;
  do
  :: each <= 2 ->
    load(SERVICE, P(each), value); /* acquire */
    if
    :: value > served[each] -> found = true; served[each]++;
    :: else
    fi;
    each++;
  :: else -> each = 0; value = 0; break
  od
}

/* A sequentially consistent store to every board, one after another. */
inline set_asleep(flag)
{
  each = 1;
  do
  :: each <= CLIENTS -> d_step { LOCKED(SERVICE); memory[ASLEEP(each)] = flag; } each++;
  :: else -> each = 0; break
  od
}

active proctype service()
{
  LOCALS;
  byte each;
  bool found;
awake:
#ifndef CLEAR_LATE
  set_asleep(0);
#endif
  do
  :: round();
    if :: found :: else -> break fi;
  od;
#ifdef CLEAR_LATE
  set_asleep(0);
#endif
  if
  :: packets != 0 -> packets = 0; /* an awake service looks at its sockets now and then */
  :: true
  fi;
  /* idle for the spin time */
#ifdef BUG_LOOK_BEFORE_SET
  round();
  if :: found -> goto awake :: else fi;
#endif
  set_asleep(1);
#if defined(BUG_CLIENT_NOT_REGISTERED)
  LOCKED(SERVICE); /* the barrier reaches processes that are registered for it, and no other */
#elif !defined(BUG_NO_MEMBARRIER)
  BARRIER_ON_ALL(SERVICE);
#endif
#if !defined(BUG_LOOK_BEFORE_SET) && !defined(BUG_NO_RESCAN)
  round();
  if
  :: found ->
#ifdef REACH_RESCAN_FINDS
    assert(false);
#endif
    goto awake
  :: else
  fi;
#endif
end_asleep:
  atomic { packets != 0 -> packets = 0; } /* epoll_wait, then all that was sent is read */
#ifdef REACH_SERVICE_WOKEN
  assert(false);
#endif
#if defined(BUG_BLOCK_AGAIN) || defined(REACH_BELL_FOR_NOTHING)
  round();
#ifdef REACH_BELL_FOR_NOTHING
  assert(found);
#endif
  if :: !found -> goto end_asleep :: else fi;
#endif
  goto awake
}

inline send_bell(me)
{
  atomic { LOCKED(me); packets++; } /* a system call */
}

inline submit(me)
{
  published++;
  store(me, P(me), published); /* release; then a compiler barrier and a plain load */
  load(me, ASLEEP(CLIENT_OF(me)), value);
  if
  :: value == 1 ->
#ifdef BUG_BELL_BEFORE_EXCHANGE
    send_bell(me);
    d_step { LOCKED(me); memory[ASLEEP(CLIENT_OF(me))] = 0; }
#elif defined(ALWAYS_BELL)
    send_bell(me);
#else
    d_step { /* exchange */
      LOCKED(me);
      value = memory[ASLEEP(CLIENT_OF(me))];
      memory[ASLEEP(CLIENT_OF(me))] = 0;
    }
    if
#ifndef BUG_EXCHANGE_NO_BELL
    :: value == 1 -> send_bell(me);
#endif
    :: else
    fi;
#endif
  :: else
  fi;
  value = 0
}

proctype submitter(byte me)
{
  LOCALS;
  byte published;
  do
  :: published < REQUESTS ->
    submit(me);
    if
    :: true -> served[me] >= published; /* waits, without helping */
    :: published < REQUESTS /* submits the next one first */
    fi;
  :: else -> break
  od
}

init { atomic { run submitter(1); run submitter(2); } }
