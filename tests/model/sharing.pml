/* sharing.pml: an owner moves its quiet ring into memory that the node's service maps too.
 *
 * One slot. A mover of the process ends tenancy 1; the owner finds the ring quiet, copies it word
 * by word into the shared memory, maps that in the ring's place and publishes tenancy 2, which the
 * service ends. Two waiters look at the state meanwhile, and sleep on it. Contract:
 * docs/design/service.md, "Rings migrate". Properties: what a state word has said it says for
 * good; no tenancy's end is lost, so that every wait ends.
 *
 * A waiter that counts itself, or is woken, while the ring moves may be missed: its sleep is in
 * slices (20 ms), and the model needs them. REACH_SLICE_NEEDED and REACH_COUNT_ASTRAY show it.
 */
#define OWN 0    /* the private pages */
#define SHARED 1 /* those of the memfd */

/* The words of the slot, in each of the two memories; `mapped` is the one at the ring's address. */
byte p_seq[2], s_seq[2];
short sleepers[2]; /* wraps around 0, as the code's does */
byte mapped = OWN;
bool told; /* the board's bit */

/* The kernel's futexes: on which memory's word a waiter sleeps, plus 1. */
byte in_futex[3];
byte ending; /* finishers between the state and the end of their wake */

inline wake_all(memory)
{
  d_step {
    if :: in_futex[1] == memory + 1 -> in_futex[1] = 0; :: else fi;
    if :: in_futex[2] == memory + 1 -> in_futex[2] = 0; :: else fi;
  }
}

/* Of the process: whatever is mapped at that moment. */
proctype mover()
{
  bool wakes;
  p_seq[mapped] == 1;
  d_step { s_seq[mapped] = 1; ending++; }
  wakes = sleepers[mapped] != 0;
  if :: wakes -> wakes = false; wake_all(mapped); :: else fi;
  ending--
}

proctype service()
{
  told;
  p_seq[SHARED] == 2;
  d_step { s_seq[SHARED] = 2; ending++; }
  if :: sleepers[SHARED] != 0 -> wake_all(SHARED); :: else fi;
  ending--
}

inline copy_ring()
{
  p_seq[SHARED] = p_seq[OWN];
  sleepers[SHARED] = sleepers[OWN];
  s_seq[SHARED] = s_seq[OWN]
}

proctype owner()
{
  p_seq[mapped] = 1;
#ifndef BUG_MOVES_UNFINISHED
  s_seq[mapped] == 1; /* quiet: else it tries again with a later request */
#endif
#ifdef BUG_MAPS_FIRST
  mapped = SHARED;
  copy_ring();
#else
  copy_ring();
  mapped = SHARED; /* mmap over it: one step for whoever looks */
#endif
  told = true;
#ifdef BUG_MOVES_UNFINISHED
  s_seq[mapped] == 1;
#endif
  p_seq[mapped] = 2
}

inline look()
{
  d_step {
    assert(s_seq[mapped] >= seen);
    seen = s_seq[mapped];
  }
}

proctype waiter(byte me)
{
  byte ticket, seen;
  if :: ticket = 1 :: ticket = 2 fi;
  p_seq[mapped] >= ticket;
  do
  :: look();
    if :: seen >= ticket -> break :: else fi;
    sleepers[mapped]++;
    look();
    if
    :: seen < ticket ->
      atomic { /* futex-wait: compares with the value seen */
        if :: s_seq[mapped] == seen -> in_futex[me] = mapped + 1; :: else fi;
      }
      if
      :: in_futex[me] == 0
      :: d_step { in_futex[me] != 0 && s_seq[mapped] >= ticket && ending == 0 -> in_futex[me] = 0; }
#ifdef REACH_SLICE_NEEDED
        assert(false);
#endif
      fi;
    :: else
    fi;
    sleepers[mapped]--;
  od;
  look()
}

init
{
  atomic { run owner(); run mover(); run service(); run waiter(1); run waiter(2); }
#ifdef REACH_COUNT_ASTRAY
  _nr_pr == 1;
  assert(sleepers[SHARED] == 0);
#endif
}
