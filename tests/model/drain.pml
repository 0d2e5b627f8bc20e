/* drain.pml: fork (and shutdown) with the submit gate: nobody publishes after the drain has begun.
 *
 * A thread submits REQUESTS requests of one chunk, a mover moves them, a third thread forks at
 * any time: it holds the gate, waits until no submit that saw it open is still under way, then
 * drains, helping. Contract: docs/design/hot-path.md, "Fork". Properties: in the child's memory
 * every published request has its S; in the parent everything ends. -DNAP: membarrier is
 * refused.
 */
#define THREADS 3
#define SUBMITTER 0
#define MOVER 1
#define FORKER 2
#ifndef REQUESTS
#define REQUESTS 2
#endif
#ifndef BUFFER_DEPTH
#define BUFFER_DEPTH 2
#endif
#define SUBMITTING 0
#define GATE 1 /* 1: held */
#define P 2    /* requests published */
#define S(seq) (2 + (seq))
#define VARIABLES (3 + REQUESTS)

#include "store_buffer.pml"

bool claimed[REQUESTS + 1]; /* locked instructions only: no store buffer */
bool submitter_ended;
byte published_in_all; /* ghost */

#define LOCALS byte scratch, todo, value

proctype submitter()
{
  LOCALS;
  byte published, calls;
  do
  :: calls < REQUESTS ->
    calls++;
#ifndef BUG_NO_SUBMITTING_FLAG
    store(SUBMITTER, SUBMITTING, 1); /* then a compiler barrier and a plain load */
#endif
    load(SUBMITTER, GATE, value);
    if
    :: value == 0 ->
      published++;
#ifdef BUG_FLAG_DOWN_BEFORE_PUBLISH
      store(SUBMITTER, SUBMITTING, 0);
#endif
      store(SUBMITTER, P, published);
    :: else /* copies inline */
#ifdef REACH_GATE_HELD
      assert(false);
#endif
    fi;
    store(SUBMITTER, SUBMITTING, 0); /* release */
  :: else -> break
  od;
  LOCKED(SUBMITTER);
  d_step { published_in_all = published; submitter_ended = true; }
}

/* Claims, copies and ends request `seq` if nobody has. */
inline work(me, seq)
{
  d_step { LOCKED(me); value = claimed[seq]; claimed[seq] = true; } /* compare-and-swap */
  if
  :: value == 0 -> store(me, S(seq), 1);
  :: else
  fi;
  value = 0
}

proctype mover()
{
  LOCALS;
  byte cursor = 1;
  do
  :: memory[P] >= cursor -> work(MOVER, cursor); cursor++;
  :: submitter_ended && published_in_all < cursor -> break
  od
}

proctype forker()
{
  LOCALS;
  byte seq = 1, end;
  store(FORKER, GATE, 1);
#ifndef BUG_NO_MEMBARRIER
  BARRIER_ON_ALL(FORKER);
#endif
  memory[SUBMITTING] == 0; /* acquire */
  load(FORKER, P, end);
  do
  :: seq <= end ->
    work(FORKER, seq);
    LOCKED(FORKER);
    memory[S(seq)] == 1;
    seq++;
  :: else -> break
  od;
  /* fork(2): the child has this memory and none of the other threads */
  atomic {
    LOCKED(FORKER);
    assert(memory[P] == end); /* nothing was published since: whatever is claimed has ended */
#ifdef REACH_FORK_MIDWAY
    assert(end == 0 || end == REQUESTS);
#endif
#ifdef REACH_FLAG_UP_AT_FORK
    assert(memory[SUBMITTING] == 0); /* a submit that looks at the held gate: the child clears it */
#endif
  }
  store(FORKER, GATE, 0);
}

init { atomic { run submitter(); run mover(); run forker(); } }
