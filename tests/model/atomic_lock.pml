/* atomic_lock.pml: the members of a queue lock, any of which may give up, be slow, or die.
 *
 * Each of MEMBERS members wants the lock ROUNDS times. Contract: docs/design/atomic-locks.md; the
 * labels are the steps of atomic/lock/member*.cpp. Words, faults, ghosts: atomic_lock_world.pml.
 *
 * A step is an operation of a packet, or what a member does with an answer: others come between
 * any two operations, and an answer may be late by as much as the member is slow. What a member
 * does to its own words is one step with the next where nobody can tell the difference. Waits are
 * guards that block. Time passes (a take-over, a free lock that nobody in front takes, no patience
 * left with a neighbour) when nothing else can happen, and STEALS and HASTE times at any moment.
 *
 * Properties: `state` only grows, each held value is one member's, nobody makes another while its
 * lease lasts (change, lease): so there is exclusion without take-overs. Tokens order the holders,
 * for a guarded word too (touch). First come, first served, but for who gives up (in_order). What
 * the holder grants is not lost (confirms), nor is a link (enqueue). Every wait ends: no invalid
 * end state, no cycle, few tags; without TAKE_OVER, before a lease does.
 */
#include "atomic_lock_world.pml"

proctype member(byte me; byte rounds)
{
  short mine, seen, found, token; /* states, but for the last */
  byte tag, epoch, holders, other, behind;
  bool back, once, head, done;
  {
    skip;
  next_round:
    if
    :: rounds == 0 -> goto finished
    :: rounds > 0 -> rounds--
    fi;
  start:
    if
    :: once = false
    :: SPEND(tries, true) once = true
    fi;
    if
    :: back && once && IS(ABANDONED) -> /* peek */
      if
      :: HELD(state) -> goto start
      :: !HELD(state)
      fi
    :: d_step {
        back && !once && IS(ABANDONED) ->
        waiting[me] = WAITING(tag, WAITS);
        older[me] = leased;
        back = false;
        head = false;
      }
      goto wait
    :: !back || !IS(ABANDONED)
    fi;
    back = false;

  enqueue:
    atomic { skip; d_step {
      tag++;
      assert(tag < MOST_TAGS);
      hint[me] = 0;
      waiting[me] = WAITING(tag, WAITS);
      next[me] = NOBODY(tag);
      see();
      epoch = EPOCH(state);
      holders = HOLDERS(state);
      head = false; other = 0; behind = 0; found = 0; mine = 0; done = false;
    } }
    d_step {
      other = tail;
      if
      :: other == 0 || !once -> tail = NODE; queue_up();
      :: else
      fi
    }
    if
    :: other == 0 ->
      d_step {
        see();
        done = !HELD(state);
        if :: done -> make(state | 1); :: else fi;
        head = true;
      }
      if
      :: done -> goto hold
      :: !done -> goto wait
      fi
    :: other != 0 && once -> waiting[me] = WAITING(tag, IDLE); goto start
    :: other != 0 && !once && CUT_OFF -> head = true
    :: POSTPONE(LATE_LINK, NODE, other != 0 && !once) head = true
    :: other != 0 && !once ->
      d_step {
        head = next[RANK(other)] != NOBODY(TAG(other));
#ifdef BUG_LINK_UNTAGGED
        head = false;
#endif
        if
        :: !head ->
          assert(!LINKED(next[RANK(other)])); /* nobody's link is overwritten by another's */
          next[RANK(other)] = NODE;
        :: else
        fi;
        head = head || CUT_OFF;
      }
    fi;
    other = 0;

  wait:
    if
    :: IS_GRANTED -> goto confirm
#ifdef BUG_REQUEUES
    :: IS(REQUEUE) -> goto begin_anew
#else
#ifdef REACH_NEW_HEAD
    :: IS(REQUEUE) -> assert(false)
#endif
    :: d_step { IS(REQUEUE) -> waiting[me] = WAITING(tag, WAITS); head = true; }
      goto wait
#endif
    :: d_step {
        IS(WAITS) && !head && !once && give_ups > 0 ->
        waiting[me] = WAITING(tag, ABANDONED);
        give_ups--;
        back = true;
        leave();
      }
      goto gave_up
    :: IS(WAITS) && head && once -> goto undo
    :: SPEND(give_ups, IS(WAITS) && head && !once) goto undo
    :: d_step { head && !HELD(state) -> see(); make(state | 1); }
      goto hold
#ifndef BUG_NO_LOOK
    :: d_step {
        MAY_LEAVE && (HELD(state) || !head) && (state != seen || IS(WAITS) && QUEUE_IS_OVER) ->
        if :: state != seen -> see(); :: else fi;
        done = IS(WAITS) && QUEUE_IS_OVER;
      }
      if
      :: done -> goto leave_node
      :: !done -> goto wait
      fi
    /* free, and nobody in front takes it */
    :: SPEND(haste, MAY_LEAVE && !head && !HELD(state)) see(); head = true; goto wait
    :: MAY_LEAVE && !head && !HELD(state) && timeout -> see(); head = true; goto wait
#ifdef TAKE_OVER /* the same value for a lease */
    :: SPEND(steals, MAY_LEAVE && HELD(state) && state == seen) goto take_over
    :: MAY_LEAVE && HELD(state) && state == seen && timeout -> goto take_over
#endif
#endif
    fi;

  confirm:
#ifdef REACH_STALE_GRANT
    assert(state == hint[me]);
#endif
#ifdef BUG_NO_CONFIRM
    atomic { skip; d_step { mine = hint[me]; have_token(TOKEN(mine)); lease(); } }
    goto hold;
#endif
    found = hint[me];
    d_step {
      done = state == found;
      confirms();
      if :: done -> make(PASSED_ON(found)); :: else fi;
    }
    if
    :: done -> goto hold
    :: !done -> goto begin_anew
    fi;

  leave_node:
    atomic { skip; d_step {
      done = LEAVES(IS(WAITS));
      if :: done -> waiting[me] = WAITING(tag, IDLE); :: else fi;
    } }
    if
    :: !done -> goto wait
    :: done
    fi;

  begin_anew:
    atomic { skip; d_step { other = next[me]; next[me] = NOBODY(tag + 1); leave(); } }
    notice();
    goto enqueue;

  take_over:
    atomic { skip; d_step {
      done = LEAVES(MAY_LEAVE);
      if :: done -> waiting[me] = WAITING(tag, IDLE); leave(); :: else fi;
    } }
    if
    :: !done -> goto wait
    :: done
    fi;
    d_step {
      tag++;
      other = next[me];
      next[me] = NOBODY(tag);
      waiting[me] = WAITING(tag, IDLE);
      leased = leased & ~older[me]; /* a lease has passed since it saw that state */
    }
    d_step {
      done = state == seen;
      if :: done -> make(STOLEN(seen)); :: else fi;
    }
    if
    :: done ->
      tail = NODE;
      notice();
      goto have_it
    :: !done ->
      notice();
      goto enqueue
    fi;

  undo:
    atomic { skip; d_step {
      done = tail == NODE;
      if :: done -> tail = 0; :: else fi;
      leave();
    } }
    d_step {
      head = !LEAVES(!IS(GRANTED));
      if :: !head -> waiting[me] = WAITING(tag, IDLE); :: else fi;
    }
    if
    :: head -> head = false; goto wait
    :: !head && done
    :: !head && !done ->
      if
      :: LINKED(next[me])
      :: SPEND(haste, true)
      :: timeout
      fi;
      d_step { other = next[me]; next[me] = NOBODY(tag + 1); }
      notice();
    fi;
    goto gave_up;

  hold:
    waiting[me] = WAITING(tag, IDLE);
  have_it:
    do
    :: d_step {
        (leased & BIT(me)) != 0 ->
        in_order();
        leave();
        seen = 0; found = 0; epoch = 0; holders = 0; other = 0; head = false; older[me] = 0;
      }
      break
    :: d_step { /* verify: by its own clock, too, the lease is over */
        (leased & BIT(me)) == 0 ->
#ifdef REACH_LATE_ANSWER
        assert(state != mine);
#endif
        done = state == mine;
        if :: done -> renew(); :: else fi;
      }
      if
      :: !done -> goto begin_anew
      :: done
      fi
    od;
    touch();
    if
    :: true
    :: SPEND(renewals, true)
      d_step {
        done = state == mine;
        if :: done -> renew(); :: else -> leased = leased & ~BIT(me); fi;
      }
      if
      :: !done -> goto released
      :: done
      fi
    fi;
    d_step { leased = leased & ~BIT(me); other = next[me]; }
    if
    :: LINKED(other) -> goto grant
    :: !LINKED(other)
    fi;
    d_step {
      done = tail == NODE;
      if :: done -> tail = 0; :: else fi;
    }
    if
    :: done -> goto free_it
    :: !done && LINKED(next[me]) -> other = next[me]; goto grant
    :: SPEND(haste, !done) goto free_it
    :: !done && timeout -> goto free_it
    fi;

  grant:
    if
    :: CUT_OFF -> goto free_it
    :: POSTPONE(LATE_GRANT, mine, true) goto free_it
    :: behind = next[RANK(other)]
    fi;
#ifdef BUG_HINT_FIRST
    hint[RANK(other)] = mine;
#endif
    d_step {
      found = THEIRS;
      done = found == WAITING(TAG(other), WAITS);
      if :: done -> THEIRS = WAITING(TAG(other), GRANTED); grants(); :: else fi;
    }
    if
    :: done ->
#ifndef BUG_HINT_FIRST
      hint[RANK(other)] = mine;
#endif
      if
      :: CUT_OFF -> goto free_it
      :: !CUT_OFF -> goto released
      fi
    :: !done && (found != WAITING(TAG(other), ABANDONED) || CUT_OFF) -> goto free_it
    :: !done && found == WAITING(TAG(other), ABANDONED) && LINKED(behind) ->
      d_step { /* skip */
        if
        :: THEIRS == found ->
#ifdef REACH_PASSED_OVER
          assert(false);
#endif
          THEIRS = WAITING(TAG(other), SKIPPED);
          other = behind;
        :: else
        fi
      }
      goto grant
    :: !done && found == WAITING(TAG(other), ABANDONED) && !LINKED(behind)
    fi;
    d_step { /* skip_home */
      done = tail == other;
      if :: done -> tail = 0; :: else fi;
    }
    if
    :: !done && (next[RANK(other)] != behind || THEIRS != found) -> goto grant
    :: SPEND(haste, !done) goto free_it
    :: !done && timeout -> goto free_it
    :: done
    fi;
    d_step {
      done = state == mine;
      if :: done -> change(RELEASED(mine)); :: else fi;
    }
    if
    :: !done || CUT_OFF -> goto released
    :: done
    fi;
    d_step { /* skip_tell */
      done = THEIRS == WAITING(TAG(other), WAITS);
      if :: THEIRS == found -> THEIRS = WAITING(TAG(other), SKIPPED); :: else fi;
    }
    if
    :: done -> notice()
    :: !done
    fi;
    goto released;

  free_it:
    atomic { skip; d_step {
      if
#ifdef BUG_BLIND_RELEASE
      :: true -> change(RELEASED(mine));
#else
      :: state == mine -> change(RELEASED(mine));
      :: else
#endif
      fi
    } }
  released:
    atomic { skip; d_step {
      mine = 0; other = 0; behind = 0; found = 0; done = false;
      have_token(0);
    } }
    goto next_round;

  gave_up:
    atomic { skip; d_step { other = 0; done = false; head = false; } }
    if
    :: goto start
    :: goto finished /* for good; its words stay */
    fi;
  finished:
    skip
  } unless { dead == me }
}

init
{
  atomic {
    run member(0, ROUNDS);
    run member(1, ROUNDS);
#if MEMBERS > 2
    run member(2, ROUNDS);
#endif
    run fate();
#ifdef LATE
    run network();
#endif
  }
}
