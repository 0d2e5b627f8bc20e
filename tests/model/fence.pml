/* fence.pml: a fenced request starts only when every earlier one of its ring has finished.
 *
 * One owner, TENANCIES requests of two chunks each, any of them fenced, SLOTS slots; a mover and
 * a helping waiter. Claims are kept by tenancy here (ring.pml checks the generations). Contract:
 * docs/design/hot-path.md, "Claim" step 4, "Sleep". Properties: the fence; no deadlock though a
 * helper holds an earlier chunk, the mover may sleep, or there is no mover (-DNO_MOVER: a fork
 * child).
 */
#ifndef SLOTS
#define SLOTS 3
#endif
#ifndef TENANCIES
#define TENANCIES 4
#endif
#define CHUNKS 2
#define FULL 3
#define SLOT(seq) ((seq) % SLOTS)

byte p_seq[SLOTS];
bool p_fence[SLOTS];
byte s_seq[SLOTS];
byte claimed[TENANCIES + 1];
byte done[TENANCIES + 1];
bool asleep;

/* Ghosts. */
bool fenced[TENANCIES + 1];
bool finished[TENANCIES + 1];

proctype owner()
{
  byte seq = 1;
  do
  :: seq <= TENANCIES ->
    if :: seq > SLOTS -> s_seq[SLOT(seq)] == seq - SLOTS; :: else fi;
    if :: fenced[seq] = false :: fenced[seq] = true fi;
    p_fence[SLOT(seq)] = fenced[seq];
    p_seq[SLOT(seq)] = seq;
    asleep = false; /* sleep.pml has the truth about this line */
    seq++;
  :: else -> break
  od
}

/* The earliest tenancy that may still be unfinished when `seq` has its slot. */
#define OLDEST(seq) ((seq) > SLOTS -> (seq) - SLOTS + 1 : 1)

/* Reads S of the earlier tenancies one by one; `open` says whether all have finished. Finished
 * stays finished, so that the reads need not be of one instant. */
inline test_fence(seq)
{
  open = true;
  earlier = OLDEST(seq);
#ifdef BUG_FENCE_CHECKS_PREDECESSOR_ONLY
  earlier = (seq > 1 -> seq - 1 : 1);
#endif
#ifndef BUG_FENCE_IGNORED
  do
  :: open && earlier < seq ->
    if :: s_seq[SLOT(earlier)] < earlier -> open = false; :: else fi;
    earlier++;
  :: else -> break
  od;
#endif
  earlier = 0
}

inline copy_and_complete(seq)
{
  d_step { done[seq] = done[seq] | chunk; last = (done[seq] == FULL); }
  if
  :: last -> d_step { s_seq[SLOT(seq)] = seq; finished[seq] = true; }
  :: else
  fi
}

/* Claims what can be had of `seq`; `open` says on return whether it was claimable at all. */
inline work(seq)
{
  open = true;
  if
  :: p_seq[SLOT(seq)] == seq ->
    fence = p_fence[SLOT(seq)]; /* may tear: then all is claimed */
    if :: fence -> test_fence(seq); :: else fi;
    do
    :: open ->
      atomic { /* compare-and-swap */
        if
        :: !(claimed[seq] & 1) -> chunk = 1;
        :: !(claimed[seq] & 2) -> chunk = 2;
        :: claimed[seq] == FULL -> chunk = 0;
        fi;
        if
        :: chunk ->
          claimed[seq] = claimed[seq] | chunk;
          /* the property */
          do
          :: earlier < seq -> assert(earlier == 0 || !fenced[seq] || finished[earlier]); earlier++;
          :: else -> earlier = 0; break
          od;
        :: else
        fi;
      }
      if :: chunk == 0 -> break :: else fi;
      copy_and_complete(seq);
    :: else -> break
    od;
  :: else
  fi;
  fence = false; chunk = 0; last = false
}

#define WORKER_LOCALS \
  byte earlier, chunk; \
  bool fence, open, last

proctype mover()
{
  byte cursor = 1;
  WORKER_LOCALS;
  do
  :: cursor <= TENANCIES ->
    p_seq[SLOT(cursor)] >= cursor;
    work(cursor);
    if
    :: open -> cursor++;
    :: else ->
#ifdef REACH_FENCE_BLOCKS
      assert(false);
#endif
#ifdef BUG_SLEEP_BEHIND_FENCE
      /* nothing to claim, so to bed: only a submit ends this sleep */
      asleep = true;
      if :: p_seq[SLOT(cursor + 1)] < cursor + 1 -> !asleep; :: else fi;
#endif
      earlier = OLDEST(cursor);
      do /* polls, awake: a published request has unclaimed chunks */
      :: earlier < cursor -> s_seq[SLOT(earlier)] >= earlier; earlier++;
      :: else -> earlier = 0; break
      od;
    fi;
  :: else -> break
  od
}

/* Waits for any selection of the tickets. For a fenced one it helps the ring's earlier requests
 * first: there may be nobody else to end them. */
proctype waiter()
{
  byte ticket = 1;
  byte target;
  WORKER_LOCALS;
  do
  :: ticket <= TENANCIES ->
    if
    :: p_seq[SLOT(ticket)] >= ticket ->
      if
      :: s_seq[SLOT(ticket)] < ticket ->
#ifdef BUG_HELP_OWN_REQUEST_ONLY
        target = ticket;
#else
        target = (p_fence[SLOT(ticket)] -> OLDEST(ticket) : ticket);
#endif
        do
        :: target <= ticket ->
          work(target);
          if
          :: open -> target++;
#ifdef BUG_HELP_OWN_REQUEST_ONLY
          :: else -> break
#else
          :: else -> /* somebody else holds an earlier chunk: it ends */
            earlier = OLDEST(target);
            do
            :: earlier < target -> s_seq[SLOT(earlier)] >= earlier; earlier++;
            :: else -> earlier = 0; break
            od;
#endif
          fi;
        :: else -> break
        od;
        target = 0;
        s_seq[SLOT(ticket)] >= ticket;
      :: else
      fi;
      assert(finished[ticket]);
    :: ticket < TENANCIES
    fi;
    ticket++;
  :: else -> break
  od
}

init
{
  atomic {
    run owner();
    run waiter();
#ifndef NO_MOVER
    run mover();
#endif
  }
}
