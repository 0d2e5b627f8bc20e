/* ring.pml: one slot's life: publish, claim, complete, reuse.
 *
 * One owner submits TENANCIES requests into SLOTS slots; a mover and WAITERS helping waiters
 * claim and copy their chunks. Contract: docs/design/hot-path.md, "Submit", "Claim", "Complete";
 * README.md maps each part to its code. A polling loop appears as a guard that blocks (each
 * condition polled stays true once it is), so "every wait ends" is: no deadlock, and no cycle in
 * the state graph.
 */
#ifndef SLOTS
#define SLOTS 1
#endif
#ifndef TENANCIES
#define TENANCIES 3
#endif
#ifndef WAITERS
#define WAITERS 1
#endif
#define MAX_CHUNKS 2
#define ALL_BITS 3 /* as many bits as the claim word has: MAX_CHUNKS of them */

#define MASK(chunks) ((1 << (chunks)) - 1)
/* Chunks that do not exist are claimed together with the first one that does: a torn copy of P may
 * name more chunks than the ended tenancy had, and must find none of them free. */
#ifdef BUG_ABSENT_CHUNKS_FREE
#define ABSENT(chunks) 0
#else
#define ABSENT(chunks) (ALL_BITS & ~MASK(chunks))
#endif
#define SLOT(seq) ((seq) % SLOTS)
#define GENERATION(seq) ((seq) / SLOTS)

/* Line P (writer: the owner) and line Q. Each parameter holds the seq of its tenancy, so that a
 * torn copy can be told. */
byte p_seq[SLOTS];
byte p_destination[SLOTS];
byte p_chunks[SLOTS];
byte p_source[SLOTS];
byte q_notify[SLOTS];

/* Line C (writers: workers): two 64-bit words of {generation, bits}. */
byte claim_generation[SLOTS];
byte claim_bits[SLOTS];
byte done_generation[SLOTS];
byte done_bits[SLOTS];

/* Line S (writer: the last finisher). */
byte s_seq[SLOTS];

/* Ghosts: what really happened, for the properties alone. */
byte real_chunks[TENANCIES + 1];
byte copied[TENANCIES + 1]; /* bits */
byte notified[TENANCIES + 1];
byte queued[TENANCIES + 1];
byte pinned[SLOTS]; /* workers between a won claim and their last touch of the slot */

/* A tenancy that is over must not be touched: neither its slot, nor Q, nor the user's memory. */
inline assert_alive(seq) { assert(s_seq[SLOT(seq)] < seq) }

inline owner_fills(seq, chunks)
{
  assert(pinned[SLOT(seq)] == 0); /* the owner never overwrites a slot in use */
  q_notify[SLOT(seq)] = seq;
  p_destination[SLOT(seq)] = seq;
  p_chunks[SLOT(seq)] = chunks;
  p_source[SLOT(seq)] = seq;
#ifdef BUG_FETCH_OR
  atomic { claim_generation[SLOT(seq)] = GENERATION(seq); claim_bits[SLOT(seq)] = 0; }
#endif
}

proctype owner()
{
  byte seq = 1, oldest = 1, credits = SLOTS, chunks;
  do
  :: seq <= TENANCIES ->
    if
    :: credits == 0 ->
#ifdef BUG_REUSE_BEFORE_STATE
      done_generation[SLOT(oldest)] == GENERATION(oldest) &&
        done_bits[SLOT(oldest)] == MASK(real_chunks[oldest]);
#else
      s_seq[SLOT(oldest)] >= oldest; /* acquire */
#endif
      credits++; oldest++;
      do /* many at once */
      :: oldest < seq && s_seq[SLOT(oldest)] >= oldest -> credits++; oldest++;
      :: else -> break
      od
    :: else
    fi;
    credits--;
    if :: chunks = 1 :: chunks = 2 fi;
    real_chunks[seq] = chunks;
#ifdef BUG_SEQ_FIRST
    p_seq[SLOT(seq)] = seq;
    owner_fills(seq, chunks);
#else
    owner_fills(seq, chunks);
    p_seq[SLOT(seq)] = seq; /* release */
#endif
    seq++;
  :: else -> break
  od
}

/* Complete, step 3: everything the user sees, then S, and nothing after it. */
inline finish(seq)
{
#ifdef BUG_STATE_FIRST
  s_seq[SLOT(seq)] = seq;
#endif
  assert_alive(seq);
  assert(q_notify[SLOT(seq)] == seq);
  assert(notified[seq] == 0 && copied[seq] == MASK(real_chunks[seq]));
  notified[seq]++;
  assert_alive(seq);
  assert(queued[seq] == 0);
  queued[seq]++;
#ifndef BUG_STATE_FIRST
  d_step {
    assert_alive(seq); /* S once a tenancy */
    assert(copied[seq] == MASK(real_chunks[seq]) && notified[seq] == 1 && queued[seq] == 1);
    pinned[SLOT(seq)]--;
    s_seq[SLOT(seq)] = seq; /* release */
  }
#endif
}

/* Claim and complete all chunks of `seq` that can be had. */
inline work(seq)
{
  if
  :: p_seq[SLOT(seq)] == seq -> /* acquire */
    destination = p_destination[SLOT(seq)];
    chunks = p_chunks[SLOT(seq)];
    source = p_source[SLOT(seq)];
#ifdef REACH_TORN_COPY
    assert(destination == source);
#endif
    do
    :: d_step { generation = claim_generation[SLOT(seq)]; bits = claim_bits[SLOT(seq)]; }
#ifdef BUG_FETCH_OR
      if
      :: generation != GENERATION(seq) -> break
      :: else
      fi;
      free = MASK(chunks) & ~bits;
#else
      if
      :: generation > GENERATION(seq) -> break
      :: generation < GENERATION(seq) -> free = MASK(chunks);
      :: else -> free = MASK(chunks) & ~bits;
      fi;
#endif
      if
      :: (free & 1) -> chunk = 1;
      :: (free & 2) -> chunk = 2;
      :: free == 0 -> break
      fi;
      d_step { /* compare-and-swap, acquire-release */
        won = false;
#ifdef BUG_FETCH_OR
        if
        :: !(claim_bits[SLOT(seq)] & chunk) -> won = true;
        :: else
        fi;
        claim_bits[SLOT(seq)] = claim_bits[SLOT(seq)] | chunk;
#else
        if
        :: claim_generation[SLOT(seq)] == generation && claim_bits[SLOT(seq)] == bits ->
          won = true;
          claim_generation[SLOT(seq)] = GENERATION(seq);
          claim_bits[SLOT(seq)] = (MASK(chunks) & ~free) | chunk | ABSENT(chunks);
        :: else
        fi;
#endif
        if
        :: won -> pinned[SLOT(seq)]++;
        :: else
        fi;
      }
      if
      :: won ->
        d_step { /* the copy itself */
          assert_alive(seq);
          assert(destination == seq && source == seq && chunks == real_chunks[seq]);
          assert(!(copied[seq] & chunk)); /* each chunk once */
          copied[seq] = copied[seq] | chunk;
        }
        do
        :: d_step { generation = done_generation[SLOT(seq)]; bits = done_bits[SLOT(seq)]; }
          d_step { /* compare-and-swap, acquire-release */
            assert_alive(seq);
            won = false;
            if
            :: done_generation[SLOT(seq)] == generation && done_bits[SLOT(seq)] == bits ->
              won = true;
#ifndef BUG_DONE_NO_GENERATION
              if :: generation != GENERATION(seq) -> bits = 0; :: else fi; /* reset on read */
#endif
              bits = bits | chunk;
              done_generation[SLOT(seq)] = GENERATION(seq);
              done_bits[SLOT(seq)] = bits;
              /* the last finisher pins the slot until it has stored S */
              if :: bits != MASK(chunks) -> pinned[SLOT(seq)]--; :: else fi;
            :: else
            fi;
          }
          if :: won -> break :: else fi;
        od;
        if
        :: bits == MASK(chunks) ->
#ifdef REACH_HELPER_FINISHES_LAST
          assert(!(helper && chunks == 2 && mover_copied == seq));
#endif
          finish(seq);
        :: else
        fi;
#ifdef REACH_HELPER_FINISHES_LAST
        if :: !helper -> mover_copied = seq; :: else fi;
#endif
      :: else
      fi;
    od;
  :: else /* the tenancy is over */
  fi;
  destination = 0; source = 0; chunks = 0;
  generation = 0; bits = 0; free = 0; chunk = 0; won = false;
}

#define WORKER_LOCALS \
  byte destination, source, chunks, generation, bits, free, chunk; \
  bool won

#ifdef REACH_HELPER_FINISHES_LAST
byte mover_copied;
#endif

proctype mover()
{
  byte cursor = 1;
  bool helper = false;
  WORKER_LOCALS;
  do
  :: cursor <= TENANCIES ->
#ifdef BUG_CURSOR_WAITS_FOR_EQUAL
    p_seq[SLOT(cursor)] == cursor;
#else
    p_seq[SLOT(cursor)] >= cursor; /* greater: that tenancy is over, go on */
#endif
#ifdef REACH_CURSOR_OVERTAKEN
    assert(p_seq[SLOT(cursor)] == cursor);
#endif
    work(cursor);
    cursor++;
  :: else -> break
  od
}

/* Waits for any selection of the tickets, helping first. */
proctype waiter()
{
  byte ticket = 1;
  bool helper = true;
  WORKER_LOCALS;
  do
  :: ticket <= TENANCIES ->
    if
    :: true ->
      p_seq[SLOT(ticket)] >= ticket; /* a ticket exists once its request is published */
      if
      :: s_seq[SLOT(ticket)] < ticket ->
        work(ticket);
        s_seq[SLOT(ticket)] >= ticket; /* spin, then sleep: sleep.pml */
      :: else
      fi;
      assert(copied[ticket] == MASK(real_chunks[ticket]));
      assert(notified[ticket] == 1 && queued[ticket] == 1);
    :: true /* nobody waits for this one */
    fi;
    ticket++;
  :: else -> break
  od
}

init
{
  atomic {
    byte i;
    run owner();
    run mover();
    for (i : 1 .. WAITERS) { run waiter(); }
  }
}
