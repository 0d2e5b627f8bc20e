/* parting.pml: the process forks or shuts down while the node's service goes.
 *
 * A request is in the hands of the service, which may tell things, be asked to drop the process,
 * and die, at any time. Another thread forks (or, -DSHUTDOWN, shuts down): it takes locks, drains,
 * and lets go of them. If the service is gone the drain's end depends on the link's thread, which
 * recovers. Contract: docs/design/service.md, "Recovery", "Fork". Property: no deadlock, for until
 * its recovery is over the link's thread waits for no lock that a drain is made under.
 */
bool link_locked, gate_locked;
bool ended; /* the request */
byte messages; /* in the socket, any of DISTANCE and REFUSED */
#define DISTANCE 1
#define REFUSED 2
bool closed;
bool over; /* the link's thread has ended */
bool shut; /* the socket, by the process itself */

#define LOCK(lock) atomic { !lock -> lock = true; }
#define UNLOCK(lock) lock = false

proctype service()
{
  if :: messages = messages | DISTANCE; :: true fi;
  if
  :: ended = true; /* reports the chunk */
    shut
  :: true
  fi;
  if :: messages = messages | REFUSED; :: true fi;
  closed = true
}

/* What a message says is put into tables that others read under a lock. */
inline take_note(lock)
{
#ifdef BUG_WAITS_FOR_LOCK
  LOCK(lock); UNLOCK(lock);
#else
  if /* trylock: what is held is passed over, or done after the recovery */
  :: atomic { !lock -> lock = true; } UNLOCK(lock);
  :: lock
#ifdef REACH_PASSED_OVER
    -> assert(false)
#endif
  fi;
#endif
}

proctype link()
{
  do
  :: messages & DISTANCE -> messages = messages & ~DISTANCE; take_note(gate_locked);
  :: !(messages & DISTANCE) && (messages & REFUSED) ->
    messages = messages & ~REFUSED;
    take_note(link_locked);
  :: messages == 0 && (closed || shut) -> break
  od;
#ifdef BUG_SAYS_SO_FIRST
  LOCK(link_locked); UNLOCK(link_locked);
#endif
  ended = true; /* recovery.pml; with neither lock */
  LOCK(gate_locked); UNLOCK(gate_locked); /* the gate: there is no service */
  LOCK(link_locked); UNLOCK(link_locked);
  over = true
}

proctype forker()
{
#ifdef SHUTDOWN
  LOCK(gate_locked);
  ended; /* drain */
  UNLOCK(gate_locked);
  LOCK(link_locked);
  shut = true;
  UNLOCK(link_locked);
  over /* join */
#else
  LOCK(link_locked);
  LOCK(gate_locked);
  ended;
  UNLOCK(gate_locked);
  UNLOCK(link_locked);
  shut = true /* the process goes on, and ends some time */
#endif
}

init { atomic { run service(); run link(); run forker(); } }
