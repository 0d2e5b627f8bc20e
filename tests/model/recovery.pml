/* recovery.pml: the node's service dies, wherever it is, and the process goes on without it.
 *
 * One ring in shared memory. Its owner publishes REQUESTS requests of two chunks for the service,
 * then helps and waits or only tests, and last reaps the completion queue that all of them post
 * to. A second thread waits and helps; a mover of the process posts the end of a request of its
 * own to the same queue. The service may die before each of its steps (a client that it drops is
 * the same: it leaves off anywhere); once the link's thread reads "closed", it does no step any
 * more, and that thread recovers. Contract: docs/design/service.md, "Recovery". -DGRANTED: the
 * memory is another process's, so nobody here can help, and what the service left fails.
 *
 * Properties: a request ends once, when each chunk is done, and is posted and reaped once; nobody
 * writes to the memory of a request that has ended; no chunk is copied by two at a time; every
 * wait ends. Claims and reports are single steps here; ring.pml has their compare-and-swap loops.
 */
#ifndef REQUESTS
#define REQUESTS 2
#endif
#define ALL 3 /* chunks of a request */
#ifdef NO_MOVER
#define PLACES REQUESTS
#else
#define PLACES (REQUESTS + 1)
#endif
#define PRIVATE (REQUESTS + 1) /* the mover's own request */
#define CHUNK(request, chunk) (2 * (request) + (chunk) - 1)

/* In shared memory: the parameters, lines C and S of each slot, and the queue. */
byte published;
byte claimed[REQUESTS + 1]; /* bits */
byte done[REQUESTS + 1];    /* bits */
bool ended[REQUESTS + 2];   /* S */
byte tail;                  /* places taken */
byte entry[PLACES];         /* the request whose entry lies in a place; 0: not filled in */
bool armed;

/* Of the process alone. */
byte helpers;
bool recovering;
bool publishing;
bool bell = true; /* there is a service */
bool signalled;   /* the eventfd */

bool closed; /* what the link's thread reads from the socket */
bool die;

/* Ghosts. */
byte copying[2 * REQUESTS + 2]; /* by how many at the moment */
byte failed[REQUESTS + 1];
byte in_service; /* the chunk that the service is amid */
byte posters;    /* threads of this process between taking a place and filling it in */

inline begin_copy(request, chunk)
{
  assert(!ended[request]);                     /* its memory is still its own */
  assert(copying[CHUNK(request, chunk)] == 0); /* nobody else is at it */
  copying[CHUNK(request, chunk)]++;
}

inline end_copy(request, chunk)
{
  assert(!ended[request]);
  copying[CHUNK(request, chunk)]--;
}

/* The last finisher's duties from the queue's entry on. `ours`: a thread of this process does
 * them, whose steps always go on. */
inline take_place(ours)
{
  d_step {
    assert(tail < PLACES); /* an entry a request */
    place = tail;
    tail++;
    if :: ours -> posters++; :: else fi;
  }
}

inline fill_place(request, ours)
{
  d_step {
    assert(entry[place] == 0);
    entry[place] = request;
    if :: ours -> posters--; :: else fi;
  }
  d_step { told = armed; armed = false; }
}

inline store_state(request)
{
  d_step {
    assert(!ended[request]);
    assert(request == PRIVATE || done[request] == ALL);
    ended[request] = true;
  }
}

inline complete(request)
{
  take_place(true);
  fill_place(request, true);
  if :: told -> signalled = true; told = false; :: else fi;
  store_state(request);
  place = 0
}

/* What the recovery does for a request that was reported and not ended: post, unless the dead
 * has, and fill the place that it took. */
inline complete_for_the_dead(request)
{
#ifdef BUG_POSTS_AGAIN
  complete(request);
#else
  place = 0;
  do
  :: place < tail ->
#ifndef BUG_EMPTY_IS_THE_DEADS
    entry[place] != 0 || posters == 0; /* patience with the posters of this process */
#endif
    if
    :: entry[place] == request -> d_step { told = armed; armed = false; } break
    :: entry[place] == 0 ->
#ifdef REACH_PLACE_LEFT_EMPTY
      assert(false);
#endif
      fill_place(request, false); break
    :: else -> place++;
    fi;
  :: else -> take_place(true); fill_place(request, true); break
  od;
  if :: told -> signalled = true; told = false; :: else fi;
  store_state(request);
  place = 0;
#endif
}

inline claim(request)
{
  d_step { /* compare-and-swap */
    chunk = 0;
    if
    :: !(claimed[request] & 1) -> chunk = 1;
    :: (claimed[request] & 1) && !(claimed[request] & 2) -> chunk = 2;
    :: else
    fi;
    claimed[request] = claimed[request] | chunk;
  }
}

/* Reports a chunk; `last`: it was the last. */
inline finish(request)
{
  d_step {
    assert(!ended[request] && !(done[request] & chunk));
    done[request] = done[request] | chunk;
    last = done[request] == ALL;
    chunk = 0;
  }
}

#define WORKER_LOCALS \
  byte chunk, place; \
  bool last, told

/* What a worker of this process does with a chunk that it has. */
inline run_here(request)
{
  d_step { begin_copy(request, chunk); }
  d_step { end_copy(request, chunk); }
  finish(request);
  if :: last -> last = false; complete(request); :: else fi
}

/* A waiter's help, and its wait. */
inline wait_for(request)
{
  do
  :: ended[request] -> break
  :: else ->
#ifdef BUG_LOOKS_BEFORE_COUNTING
    may_help = !recovering;
    helpers++;
#else
    helpers++; /* sequentially consistent, both */
    may_help = !recovering;
#endif
#ifdef GRANTED
    may_help = false;
#endif
#ifdef REACH_KEPT_OFF
    assert(may_help || !(claimed[request] != ALL));
#endif
    if :: may_help -> may_help = false; claim(request); :: else -> chunk = 0; fi;
    if
    :: chunk != 0 -> run_here(request); helpers--;
    :: else -> helpers--; ended[request]; break
    fi;
  od
}

proctype service()
{
  WORKER_LOCALS;
  byte request;
  {
  end_idle:
    do
    :: published >= 1 && claimed[1] != ALL -> request = 1; goto work;
#if REQUESTS > 1
    :: published >= 2 && claimed[2] != ALL -> request = 2; goto work;
#endif
    od;
  work:
    claim(request);
    if
    :: chunk != 0 ->
      d_step { begin_copy(request, chunk); in_service = CHUNK(request, chunk); }
      d_step { end_copy(request, chunk); in_service = 0; }
      finish(request);
      if
      :: last ->
        last = false;
        take_place(false);
        fill_place(request, false);
        store_state(request);
        if :: told -> signalled = true; told = false; :: else fi; /* Reap */
        place = 0;
      :: else
      fi;
    :: else
    fi;
    request = 0;
    goto end_idle
  } unless {
    d_step {
      die;
      if
      :: in_service != 0 ->
#ifdef REACH_DEATH_AMID_A_COPY
        assert(false);
#endif
        copying[in_service]--; in_service = 0;
      :: else
      fi;
      chunk = 0; place = 0; last = false; told = false; request = 0;
      closed = true;
    }
  }
}

/* The link's thread. */
proctype link()
{
  WORKER_LOCALS;
  bool may_help;
  byte request, orphans;
end_listening:
#ifdef BUG_RECOVERS_BEFORE_CLOSED
  die;
#else
  closed;
#endif
  bell = false;
#ifndef BUG_NO_WAIT_FOR_PUBLISHERS
  !publishing; /* drain.pml has the barrier that belongs here */
#endif
  recovering = true;
#ifndef BUG_NO_WAIT_FOR_HELPERS
  helpers == 0;
#endif
  request = 1;
  do
  :: request <= published && !ended[request] ->
    d_step {
#ifdef BUG_UNCLAIMED_IS_ORPHANED
      orphans = ALL & ~done[request];
#else
      orphans = claimed[request] & ~done[request];
#endif
    }
    do
    :: orphans != 0 ->
      chunk = ((orphans & 1) -> 1 : 2);
      orphans = orphans & ~chunk;
#ifdef GRANTED
      failed[request] = failed[request] | chunk;
      finish(request);
      if :: last -> last = false; complete(request); :: else fi;
#else
      run_here(request);
#endif
    :: else -> break
    od;
#ifndef BUG_FORGETS_THE_UNENDED
    if
    :: !ended[request] && done[request] == ALL ->
#ifdef REACH_REPORTED_NOT_ENDED
      assert(false);
#endif
      complete_for_the_dead(request);
    :: else
    fi;
#endif
    request++;
  :: request <= published && ended[request] -> request++;
  :: request > published -> break
  od;
  recovering = false;
  request = 1;
  do
  :: request <= published ->
#ifdef GRANTED
    do
    :: claim(request);
      if
      :: chunk != 0 ->
        failed[request] = failed[request] | chunk;
        finish(request);
        if :: last -> last = false; complete(request); :: else fi;
      :: else -> break
      fi;
    od;
#else
    wait_for(request);
#endif
    request++;
  :: else -> break
  od;
#ifndef BUG_NO_SIGNAL
  signalled = true; /* the dead may have found the queue armed and told nobody */
#endif
}

/* Publishes, waits, reaps. */
proctype owner()
{
  WORKER_LOCALS;
  bool may_help;
  byte request, reaped, expected, seen;
  do
  :: request < REQUESTS ->
    publishing = true;
    if
    :: bell -> published++;
    :: else -> publishing = false; break /* copies inline */
    fi;
    publishing = false;
    request++;
  :: else -> break
  od;
  request = 1;
  do
  :: request <= published ->
    if
    :: true -> wait_for(request);
    :: true /* only reaps it */
    fi;
    request++;
  :: else -> break
  od;
  request = 0;
  expected = published + PLACES - REQUESTS;
  do
  :: reaped < expected ->
    signalled = false;
    armed = true;
    if
    :: entry[reaped] != 0 ->
      armed = false;
      ended[entry[reaped]]; /* its state is stored a moment later */
      d_step {
        assert(!(seen & (1 << entry[reaped])));
        seen = seen | (1 << entry[reaped]);
        reaped++;
      }
    :: else -> signalled; /* an event loop asleep on the eventfd */
    fi;
  :: else -> break
  od;
  assert(tail == expected)
}

proctype waiter()
{
  WORKER_LOCALS;
  bool may_help;
  if
  :: published >= 1 -> wait_for(1);
  :: published >= 2 -> wait_for(2);
  :: true
  fi
}

#ifndef NO_MOVER
proctype mover()
{
  byte place;
  bool told;
  complete(PRIVATE)
}
#endif

/* What kills it, now, later or never. */
proctype fate() { if :: die = true; :: true fi }

init
{
  atomic {
    run owner();
#ifndef NO_WAITER
    run waiter();
#endif
#ifndef NO_MOVER
    run mover();
#endif
    run link();
    run service();
    run fate();
  }
}
