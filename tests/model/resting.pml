/* resting.pml: a ring comes to rest, the pages of its body are given back, and another thread wakes
 * it, while a mover and a waiter may be between any two of their steps.
 *
 * OWNERS threads have the ring one after the other; each publishes EACH requests of one chunk and
 * ends without waiting for them. Contract: docs/design/hot-path.md, "Rings in use, at rest, woken".
 * Properties: each request is copied once, by whoever claims it; who is told that a request has
 * ended finds it copied; every wait ends. Each access is a step of its own. There are no store
 * buffers: a claim is a locked instruction before the look that follows it, and pages go by a
 * system call, after which every thread reads zeroes.
 */
#ifndef OWNERS
#define OWNERS 2
#endif
#ifndef EACH
#define EACH 2
#endif
#define SLOTS 2
#define FIRST SLOTS
#define END (FIRST + OWNERS * EACH)

#define SLOT(seq) ((seq) % SLOTS)
#define NONE_CLAIMED(seq) (2 * ((seq) / SLOTS)) /* and all of older generations is less */
#define ALL_CLAIMED(seq) (NONE_CLAIMED(seq) + 1)

/* The body's words, by slot; then the head's. */
byte P[SLOTS], C[SLOTS], S[SLOTS];
byte finished_below = FIRST;

byte copied[END];

/* Ring::ended(). */
#ifdef BUG_ZERO_IS_PENDING
#define ENDED(seq) (S[SLOT(seq)] >= (seq))
#else
#define ENDED(seq) (S[SLOT(seq)] >= (seq) || (S[SLOT(seq)] == 0 && finished_below > (seq)))
#endif

/* P has said that `seq` is published: claim its chunk, copy, end. */
inline work(seq)
{
  found = C[SLOT(seq)];
  do
  :: found >= ALL_CLAIMED(seq) -> break
  :: else ->
    atomic {
      if
      :: C[SLOT(seq)] == found -> C[SLOT(seq)] = ALL_CLAIMED(seq); claimed = true
      :: else -> found = C[SLOT(seq)]
      fi
    }
    if
    :: claimed ->
      claimed = false;
#ifndef BUG_NO_LOOK_AFTER_CLAIM
      if
      :: finished_below > (seq) ->
#ifdef REACH_CLAIMED_AT_REST
        assert(false);
#endif
        break
      :: else
      fi;
#endif
      assert(copied[seq] == 0);
      copied[seq]++;
      S[SLOT(seq)] = seq;
      break
    :: else
    fi
  od;
  found = 0
}

active proctype mover()
{
  byte cursor = FIRST, found;
  bool claimed;
  do
  :: cursor == END -> break
  :: else ->
end_idle:
    if
    :: P[SLOT(cursor)] == cursor -> work(cursor); cursor++
    :: P[SLOT(cursor)] > cursor -> cursor++ /* that tenancy is over */
    :: finished_below > cursor -> cursor = finished_below /* the ring was woken: a new seat */
    fi
  od
}

active proctype waiter()
{
  byte found;
  bool claimed;
  if
  :: P[SLOT(FIRST)] == FIRST -> work(FIRST) /* helps, some time */
  :: true
  fi;
  ENDED(FIRST);
#ifdef REACH_READS_ZERO
  assert(S[SLOT(FIRST)] != 0);
#endif
  assert(copied[FIRST] == 1)
}

/* Under the rings' lock, from `rest` to `awake`. */
active proctype owner()
{
  byte seq = FIRST, tail = FIRST, number;
next:
  do
  :: tail == FIRST + (number + 1) * EACH -> break
  :: else ->
    /* Its slot is free. The first tenancies' is zeroed memory. */
    tail < FIRST + SLOTS || S[SLOT(tail)] == tail - SLOTS;
    P[SLOT(tail)] = tail;
    tail++
  od;
  number++;
rest:
#ifndef BUG_RESTS_UNFINISHED
  /* first_unfinished(), until the ring is quiet: another thread that comes or goes looks again. */
  do
  :: seq == tail -> break
  :: seq < tail && S[SLOT(seq)] >= seq -> seq++
  od;
#else
  seq = tail;
#endif
#ifndef BUG_PAGES_FIRST
  finished_below = seq;
#endif
  seq = 0;
  do
  :: seq == SLOTS -> break
  :: else -> d_step { P[seq] = 0; C[seq] = 0; S[seq] = 0; seq++ } /* a page each */
  od;
#ifdef BUG_PAGES_FIRST
  finished_below = tail;
#endif
  if
  :: number == OWNERS -> goto over /* nobody wakes it */
  :: else
  fi;
  /* Ring::fill_in_ended(), by the next owner. */
#ifndef BUG_WAKES_EMPTY
  seq = (tail - SLOTS < FIRST -> FIRST : tail - SLOTS);
  do
  :: seq == tail -> break
  :: else ->
    C[SLOT(seq)] = ALL_CLAIMED(seq);
    S[SLOT(seq)] = seq;
    P[SLOT(seq)] = seq;
    seq++
  od;
#endif
  seq = tail;
awake:
  goto next;
over:
  seq = FIRST;
  do
  :: seq == END -> break
  :: else -> assert(copied[seq] == 1); seq++
  od
}
