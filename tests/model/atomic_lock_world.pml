/* atomic_lock_world.pml: what atomic_lock.pml is about: the lock's words, faults, and ghosts.
 *
 * GIVE_UPS, TRIES, RENEWALS: how many acquires in all may time out, be tries, be renewed.
 * TAKE_OVER: a waiter may take the lock over when nothing else can happen, and STEALS times at any
 *   moment, though the holder is alive and goes on. Without it a lock that is nobody's is an error.
 * HASTE: how often patience may end early. DEATHS: one member may stop for good before any of its
 *   steps, amid a packet too (which is more than can happen: a packet is executed or not); its
 *   words stay. CUTS: all packets to one member fail from some moment on, executed or not; it may
 *   itself go on. LATE: one of those is executed when its sender has long gone on.
 * MOST_IN_FRONT: after how many more holders a waiter begins anew.
 *
 * A lease: it begins when the packet that makes the state is executed (in the code earlier, when
 * it is sent), and is over when a waiter has seen a state for a lease that it first saw (`older`)
 * when that lease had begun; not before. `leased` says whose are not, until they release.
 */
#ifndef MEMBERS
#define MEMBERS 3
#endif
#ifndef ROUNDS
#define ROUNDS 1
#endif
#ifndef STEALS
#define STEALS 0
#endif
#ifndef HASTE
#define HASTE 0
#endif
#ifndef GIVE_UPS
#define GIVE_UPS 0
#endif
#ifndef TRIES
#define TRIES 0
#endif
#ifndef RENEWALS
#define RENEWALS 0
#endif
#ifndef MOST_TAGS
#define MOST_TAGS 16
#endif
#ifndef MOST_IN_FRONT
#define MOST_IN_FRONT 31
#endif

/* state: {epoch 4, count 5, beat 1, held 1}: the second renewal carries */
#define HELD(state) ((state) & 1)
#define BEAT(state) ((state) & 2)
#define EPOCH(state) ((state) >> 7)
#define HOLDERS(state) ((state) >> 2 & 31)
#define TOKEN(state) (((state) >> 2) + 1)
#define RELEASED(state) ((((state) >> 2) + 1) << 2)
#define PASSED_ON(state) (RELEASED(state) | 1)
#ifdef BUG_BEAT_WRAPS
#define RENEWED(state) ((state) ^ 2)
#else
#define RENEWED(state) ((state) + (BEAT(state) -> 4 : 2)) /* beat 0 is a new holder's */
#endif
#ifdef BUG_SAME_VALUE
#define STOLEN(state) (state)
#else
#define STOLEN(state) (PASSED_ON(state) + 128)
#endif
#define QUEUE_IS_OVER (EPOCH(seen) != epoch || HOLDERS(seen) - holders > MOST_IN_FRONT)

#define REFERENCE(tag, rank) ((tag) << 2 | (rank) + 1)
#define NODE REFERENCE(tag, me)
#define TAG(word) ((word) >> 2)
#define RANK(word) (((word) & 3) - 1)
#define LINKED(word) (((word) & 3) != 0)
#define NOBODY(tag) ((tag) << 2)

#define IDLE 0
#define WAITS 1
#define GRANTED 2
#define ABANDONED 3
#define SKIPPED 4
#define REQUEUE 5
#define WAITING(tag, phase) ((tag) << 3 | (phase))
#define IS(phase) (waiting[me] == WAITING(tag, phase))
#define IS_GRANTED (IS(GRANTED) && hint[me] != 0)
#define MAY_LEAVE (IS(WAITS) || IS(GRANTED) && hint[me] == 0)
#ifdef BUG_LEAVES_BLINDLY
#define LEAVES(condition) true
#else
#define LEAVES(condition) (condition)
#endif
#define THEIRS waiting[RANK(other)]

#define BIT(rank) (1 << (rank))
#define NONE 255
#define SPEND(budget, condition) d_step { budget > 0 && (condition) -> budget--; }

/* At home, and in the members' windows. */
short state;
byte tail;
byte next[3], waiting[3];
short hint[3];

byte dead = NONE, gone = NONE; /* who, if any */
byte steals = STEALS, haste = HASTE, give_ups = GIVE_UPS, tries = TRIES, renewals = RENEWALS;

/* Ghosts. */
byte leased, older[3]; /* sets of members; older[w]: leases that w's sight of the state outlasts */
#ifdef TAKE_OVER
byte stamp, stamper; /* a guarded word */
#endif
#ifdef ORDER
byte queued, ahead[3]; /* who is in the queue, by the order of the swaps of `tail` */
#endif
#ifdef GRANTS
short granter[3]; /* the state of the member that has granted it */
#endif

#define CUT_OFF (gone == RANK(other))
#define LATE_LINK 1
#define LATE_GRANT 2
#define LATE_NOTICE 3
#ifdef LATE
byte late, late_to;
short late_value;
#define POSTPONE(kind, value, condition) \
  d_step { \
    CUT_OFF && late == 0 && (condition) -> late = kind; late_to = other; late_value = value; \
  }
#else
#define POSTPONE(kind, value, condition) false;
#endif

/* The state becomes another's, or free. */
inline change(value)
{
  assert(TOKEN(value) > TOKEN(state) ||
         TOKEN(value) == TOKEN(state) && !HELD(state) && HELD(value));
  assert((leased & ~BIT(me)) == 0);
  assert(HOLDERS(value) < 31 && EPOCH(value) < 15);
  state = value
}

/* `me` has made the state `mine`. */
inline lease()
{
  assert(state == mine);
  assert((leased & ~BIT(me)) == 0);
  leased = leased | BIT(me);
  older[0] = older[0] & ~BIT(me);
  older[1] = older[1] & ~BIT(me);
  older[2] = older[2] & ~BIT(me)
}

/* Of the state that the lock was had in: renewals leave it. */
inline have_token(value)
{
#ifdef TAKE_OVER
  token = value
#else
  skip
#endif
}

inline make(value)
{
  change(value);
  mine = state;
  have_token(TOKEN(mine));
  lease()
}

inline renew()
{
#ifdef REACH_CARRY
  assert(!BEAT(state));
#endif
  assert(HOLDERS(state) < 30);
  state = RENEWED(state);
  mine = state;
  lease()
}

/* A look at the state. */
inline see()
{
  seen = state;
#ifdef BUG_OLD_SIGHT
  if :: seen == 0 -> older[me] = leased; :: else fi;
#else
  older[me] = leased
#endif
}

/* In and out of the queue, and the lock reached. */
inline queue_up()
{
#ifdef ORDER
  ahead[me] = queued;
  queued = queued | BIT(me)
#else
  skip
#endif
}

inline leave()
{
#ifdef ORDER
  queued = queued & ~BIT(me);
  ahead[0] = ahead[0] & ~BIT(me);
  ahead[1] = ahead[1] & ~BIT(me);
  ahead[2] = ahead[2] & ~BIT(me)
#else
  skip
#endif
}

inline in_order()
{
#ifdef ORDER
  assert(ahead[me] == 0)
#else
  skip
#endif
}

/* A grant, and its end: if the granting member held the lock, it counts. */
inline grants()
{
#ifdef GRANTS
  granter[RANK(other)] = mine
#else
  skip
#endif
}

inline confirms()
{
#ifdef GRANTS
  assert(done || state != granter[me]);
  granter[me] = 0
#else
  skip
#endif
}

/* A guarded word; its responder refuses the older of two tokens. */
inline touch()
{
#ifdef TAKE_OVER
  d_step {
    if
    :: token >= stamp ->
      assert(token > stamp || stamper == me);
      stamp = token;
      stamper = me;
    :: else
#ifdef REACH_REFUSED
      -> assert(false)
#endif
    fi
  }
#else
  skip
#endif
}

/* `other` is told that nobody is in front of it. */
inline notice()
{
  if
  :: !LINKED(other)
  :: LINKED(other) && CUT_OFF
  :: POSTPONE(LATE_NOTICE, 0, LINKED(other))
  :: LINKED(other) ->
    d_step {
      if
      :: THEIRS == WAITING(TAG(other), WAITS) -> THEIRS = WAITING(TAG(other), REQUEUE);
      :: else
      fi
    }
  fi
}

#ifdef LATE
/* A packet that its sender has given up on, and that is executed later. */
proctype network()
{
  byte other;
end_idle:
  late != 0;
  other = late_to;
  if
  :: late == LATE_LINK ->
    d_step {
      if
      :: next[RANK(other)] == NOBODY(TAG(other)) -> next[RANK(other)] = late_value;
      :: else
      fi
    }
  :: late == LATE_GRANT ->
    d_step {
      if
      :: THEIRS == WAITING(TAG(other), WAITS) -> THEIRS = WAITING(TAG(other), GRANTED);
      :: else -> late_value = 0;
      fi;
    }
    if
    :: late_value != 0 -> hint[RANK(other)] = late_value
    :: late_value == 0
    fi
  :: late == LATE_NOTICE ->
    d_step {
      if
      :: THEIRS == WAITING(TAG(other), WAITS) -> THEIRS = WAITING(TAG(other), REQUEUE);
      :: else
      fi
    }
  fi
}
#endif

/* What goes wrong, now, later or never. */
proctype fate()
{
#ifdef DEATHS
  if
  :: dead = 0
  :: dead = 1
  :: dead = MEMBERS - 1
  :: true
  fi;
#endif
#ifdef CUTS
  if
  :: gone = 0
  :: gone = 1
  :: gone = MEMBERS - 1
  :: true
  fi;
#endif
  skip
}
