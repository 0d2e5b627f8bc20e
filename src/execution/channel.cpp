#include "execution/channel.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/log.hpp"
#include "base/machine/clock.hpp"
#include "copy/copy.hpp"
#include "execution/help.hpp"
#include "execution/own_rings.hpp"
#include "request/rings.hpp"

namespace haul {
namespace {

constinit Channel channels[max_engines][most_channels];
constinit RegionCache region_caches[max_engines];
// On all channels of this process. Relaxed: a hint that polling may be worth it.
constinit std::atomic<unsigned> chunks_under_way{0};

constexpr unsigned polls_between_clocks = 64;
// The time between two polls in which this process was stopped, or did something else, counts no
// more than that.
constexpr std::uint64_t longest_step_ns = 10'000'000;

// Calls act(number) for each bit that is set now.
template <class Act>
void for_each(std::uint32_t flights, Act act) noexcept {
  for (; flights != 0; flights &= flights - 1)
    act(static_cast<unsigned>(std::countr_zero(flights)));
}

// One writer at a time, so it needs no locked instruction.
void add(std::atomic<std::uint64_t>& sum, std::uint64_t bytes) noexcept {
  sum.store(sum.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
}

bool registers_source(const Engine& engine, Operation operation) noexcept {
  return operation == Operation::copy && engine.registers_sources();
}

// Of this process, among those that fork has made of one another; never 0.
std::uint64_t age() noexcept {
  return std::uint64_t{forks_survived.load(std::memory_order_relaxed)} + 1;
}

}  // namespace

Channel& channel_of(const Ring& ring, const Job& job) noexcept {
  const unsigned count = engine_at(job.engine).channels();
  // (Rings begin at different ones, so that threads that wait for each of their copies do not
  // meet.)
  const std::uint64_t turn = count == 1 ? 0 : (ring.index + job.seq) % count;
  return channels[job.engine][turn];
}

RegionCache& regions_of(std::size_t engine) noexcept {
  return region_caches[engine];
}

std::uint64_t queued_bytes(std::size_t engine) noexcept {
  const unsigned count = engine_at(engine).channels();
  std::uint64_t sum = 0;
  for (unsigned i = 0; i < count; ++i) sum += channels[engine][i].queued_bytes();
  return sum / count;
}

bool any_under_way() noexcept {
  return chunks_under_way.load(std::memory_order_relaxed) != 0;
}

bool poll_channels() noexcept {
  if (!any_under_way()) return false;
  for (std::size_t engine = 0; engine < engine_count(); ++engine) {
    if (!is_asynchronous(static_cast<std::uint8_t>(engine))) continue;
    for (unsigned i = 0; i < engine_at(engine).channels(); ++i)
      if (const ChannelTurn turn(channels[engine][i]); turn) turn->poll();
  }
  return true;
}

std::uint8_t Channel::engine_index() const noexcept {
  return static_cast<std::uint8_t>((this - channels[0]) / most_channels);
}

unsigned Channel::place() const noexcept {
  return static_cast<unsigned>((this - channels[0]) % most_channels);
}

std::uint64_t Channel::left_ns() const noexcept {
  const std::uint64_t bytes = queued_bytes();
  const Engine& engine = engine_at(engine_index());
  // (Who waits for an engine that has something for the CPU to do must not sleep.)
  if (bytes == 0 || engine.has_memory()) return 0;
  const double bytes_per_ns = engine.device_facts().bytes_per_ns;
  return bytes_per_ns > 0 ? static_cast<std::uint64_t>(static_cast<double>(bytes) / bytes_per_ns)
                          : 0;
}

bool Channel::enter() noexcept {
  const std::uint64_t now = age();
  std::uint64_t seen = turn_.load(std::memory_order_relaxed);
  // Acquire: pairs with leave().
  if (seen == now || !turn_.compare_exchange_strong(seen, now, std::memory_order_acquire))
    return false;
  if (age_ != now) {  // the flights are another process's, or there were none yet
    const auto count = static_cast<unsigned>(std::popcount(used()));
    chunks_under_way.fetch_sub(count, std::memory_order_relaxed);
    waiting_ = accepted_ = left_ = 0;
    queued_bytes_.store(0, std::memory_order_relaxed);
    // (Of the first process that has any, others may be looking at them already.)
    if (age_ != 0) regions_of(engine_index()).forget();
    for (Flight& flight : room_.flights)
      flight.registered = flight.dst_held = flight.src_held = false;
    stagings_.store(0, std::memory_order_relaxed);
    age_ = now;
  }
  return true;
}

void Channel::leave() noexcept {
  turn_.store(0, std::memory_order_release);
}

void Channel::carry(Ring& ring, const Job& job, unsigned chunk) noexcept {
  const auto number = static_cast<unsigned>(std::countr_one(used()));
  room_.flights[number].ring = &ring;
  room_.flights[number].run = ChunkRun(job, chunk);
  waiting_ |= Flights{1} << number;
  add(queued_bytes_, room_.flights[number].run.whole_bytes());
  chunks_under_way.fetch_add(1, std::memory_order_relaxed);
  proceed(number);
}

// Of a flight that waits: hands over the next piece of its chunk; ends the chunk where there is
// none.
void Channel::proceed(unsigned number) noexcept {
  Flight& flight = room_.flights[number];
  const Flights bit = Flights{1} << number;
  Piece piece;
  while (next_piece(*flight.ring, flight.run, &piece)) {
    if (flight.run.job.engine != engine_index()) {
      waiting_ &= ~bit;
      left_ |= bit;
      add(queued_bytes_, -flight.run.whole_bytes());
      return;
    }
    Outcome outcome;
    piece.length = std::min(piece.length, engine_at(engine_index()).most_bytes());
    piece.channel = place();
    if (engine_at(engine_index()).registers() && !register_sides(flight, piece)) {
      flight.run.moved(Outcome{0, Code::not_supported});
      continue;
    }
    switch (engine_at(engine_index()).submit(piece, number, outcome)) {
      case Submitted::finished:
        release_sides(flight);
        flight.run.moved(outcome);
        break;
      case Submitted::accepted:
        flight.piece_bytes = piece.length;
        waiting_ &= ~bit;
        accepted_ |= bit;
        return;
      case Submitted::full: return;  // tried again when polled
      case Submitted::dead:
        release_sides(flight);
        flight.run.engine_died();
        break;
    }
  }
  add(queued_bytes_, -flight.run.whole_bytes());
  report_chunk(*flight.ring, flight.run);
  waiting_ &= ~bit;
  chunks_under_way.fetch_sub(1, std::memory_order_relaxed);
}

// Makes the piece one whose memory is registered; a shorter one, if need be. False: it cannot be.
bool Channel::register_sides(Flight& flight, Piece& piece) noexcept {
  const Engine& engine = engine_at(engine_index());
  if (!flight.registered) {
    if (engine.registers_by_choice()) {
      hold_what_is_worth_it(flight, piece);
    } else if (!hold_sides(flight, piece)) {
      return false;
    }
    flight.registered = true;
  }
  if (flight.dst_held) {
    piece.dst_region = flight.dst.region;
    if (!engine.registers_by_choice()) piece.length = std::min(piece.length, flight.dst.bytes);
  }
  if (flight.src_held) {
    piece.src_region = flight.src.region;
    if (!engine.registers_by_choice()) piece.length = std::min(piece.length, flight.src.bytes);
  }
  return true;
}

bool Channel::hold_sides(Flight& flight, const Piece& piece) noexcept {
  Engine& engine = engine_at(engine_index());
  RegionCache& regions = regions_of(engine_index());
  const std::size_t wanted = piece.length, before = piece.bytes_before, behind = piece.bytes_behind;
  if (registers_source(engine, piece.operation) &&
      regions.acquire_both(piece.dst, piece.src, wanted, &flight.dst, &flight.src)) {
    flight.dst_held = flight.src_held = true;
    return true;
  }
  Code code = regions.acquire(engine, piece.dst, wanted, before, behind, &flight.dst);
  flight.dst_held = code == Code::ok;
  if (code == Code::ok && registers_source(engine, piece.operation)) {
    code = regions.acquire(engine, piece.src, wanted, before, behind, &flight.src);
    flight.src_held = code == Code::ok;
  }
  if (code == Code::ok) return true;
  release_sides(flight);
  if (!std::exchange(warned_of_memory_, true)) {
    log(LogLevel::warning,
        "Memory cannot be registered with the engine %s (%s), so the CPU copies that%s.",
        engine.facts().name, describe(code),
        code == Code::no_memory ? "; raise ulimit -l, or lower HAUL_MEMORY_REGISTERED_BYTES" : "");
  }
  return false;
}

// Of the sides in this process's memory those that are worth it, the whole of the stretch in which
// the piece lies: a device may refuse to register a page twice.
void Channel::hold_what_is_worth_it(Flight& flight, const Piece& piece) noexcept {
  Engine& engine = engine_at(engine_index());
  RegionCache& regions = regions_of(engine_index());
  const std::uint64_t asker = flight.run.job.seq << 16 | flight.ring->index;
  const std::size_t bytes = piece.bytes_before + piece.length + piece.bytes_behind;
  const auto hold = [&](Space space, std::uintptr_t address, RegisteredUse* use) {
    return space == self_space && regions.acquire_whole(engine, address - piece.bytes_before, bytes,
                                                        asker, use) == Code::ok;
  };
  flight.dst_held = hold(piece.dst_space, piece.dst, &flight.dst);
  flight.src_held =
      piece.operation == Operation::copy && hold(piece.src_space, piece.src, &flight.src);
}

// The piece is over, or was not taken.
void Channel::release_sides(Flight& flight) noexcept {
  flight.registered = false;
  RegionCache& regions = regions_of(engine_index());
  const bool dst = std::exchange(flight.dst_held, false);
  const bool src = std::exchange(flight.src_held, false);
  if (dst || src)
    regions.release(dst ? flight.dst : flight.src, dst && src ? &flight.src : nullptr);
}

void Channel::poll() noexcept {
  if (used() == 0) return;
  constexpr std::size_t at_once = 4;
  Finished finished[at_once];
  bool any = false;
  for (std::size_t count = at_once; count == at_once && accepted_ != 0;) {
    count = engine_at(engine_index()).poll(place(), finished, at_once);
    any = any || count != 0;
    for (std::size_t i = 0; i < count; ++i)
      if (!note(finished[i])) count = 0;
  }
  if (any) {
    quiet_ns_ = looked_ns_ = 0;
    idle_polls_ = 0;
  } else if (++idle_polls_ % polls_between_clocks == 0) {
    watch();
  }
  for_each(waiting_, [&](unsigned number) { proceed(number); });
}

// False: the engine is not to be believed.
bool Channel::note(const Finished& finished) noexcept {
  const std::size_t good_bytes = finished.outcome.good_bytes;
  if (finished.tag >= depth || (accepted_ >> finished.tag & 1) == 0) {
    distrust("reports the end of a copy that nobody gave it");
    return false;
  }
  Flight& flight = room_.flights[finished.tag];
  if (good_bytes > flight.piece_bytes ||
      (finished.outcome.code == Code::ok && good_bytes != flight.piece_bytes)) {
    distrust("reports more or fewer bytes than it was given");
    return false;
  }
  accepted_ &= ~(Flights{1} << finished.tag);
  waiting_ |= Flights{1} << finished.tag;
  release_sides(flight);
  flight.run.moved(finished.outcome);
  return true;
}

void Channel::watch() noexcept {
  const std::uint64_t now = now_ns();
  // (A thread that copies for the engine may wait for the program's memory.)
  const bool waits = stagings_.load(std::memory_order_relaxed) != 0;
  if (looked_ns_ != 0 && !waits) quiet_ns_ += std::min(now - looked_ns_, longest_step_ns);
  looked_ns_ = now;
  // Half of what a fork or an exit waits, which so finds it stopped.
  if (quiet_ns_ < mover_patience_ns() / 2) return;
  quiet_ns_ = 0;
  distrust("has finished nothing for half of HAUL_MOVER_PATIENCE_MS");
}

// Stops the engine, and lets the CPU do what it had accepted. One that cannot be stopped may still
// write to that memory: nothing of it is reported before the engine does.
void Channel::distrust(const char* what) noexcept {
  Engine& engine = engine_at(engine_index());
  const bool stopped = engine.stop(place());
  if (!warned_) {
    log(LogLevel::warning, "The engine %s %s, so it %s; the CPU does what is left.",
        engine.facts().name, what,
        stopped ? "is not used any more" : "gets nothing more, and what it had is waited for");
  }
  warned_ = true;
  if (stopped) waiting_ |= std::exchange(accepted_, 0);
  for_each(waiting_, [&](unsigned number) { give_up(room_.flights[number]); });
}

void Channel::give_up(Flight& flight) noexcept {
  ChunkRun& run = flight.run;
  release_sides(flight);
  if (run.job.engine != engine_index()) return;  // the CPU has it
  const std::size_t visible =
      flight.ring->tenancy(run.job.seq).visible_in_chunk(run.job.chunks, run.chunk, 0);
  const std::size_t begun = run.at - run.begin;
  // (Watermarks count blocks, and so may say less than pieces did that ended before.)
  run.moved(Outcome{visible > begun ? visible - begun : 0, Code::io});
}

ChannelTurn::~ChannelTurn() {
  finish();
}

bool ChannelTurn::finish() noexcept {
  if (channel_ == nullptr) return staged_;
  if (channel_->accepted_ != 0) [[unlikely]]
    stage();
  else
    end();
  channel_ = nullptr;
  return staged_;
}

void ChannelTurn::end() noexcept {
  if (channel_->left_ == 0) [[likely]] {
    channel_->leave();
  } else {
    end_with_left();
  }
}

// Ends the turn, copies what the engine wants copied, and tells it, so that it goes on.
void ChannelTurn::stage() noexcept {
  StagingCopy copy;
  const std::uint8_t index = channel_->engine_index();
  staged_ = engine_at(index).take_staging(&copy);
  if (staged_) channel_->stagings_.fetch_add(1, std::memory_order_relaxed);
  end();
  if (!staged_) return;
  const std::uint64_t begun = age();
  copy::move_bytes(reinterpret_cast<void*>(copy.dst), reinterpret_cast<const void*>(copy.src),
                   copy.bytes, copy.streams ? Affinity::non_cacheable : Affinity::cacheable,
                   Affinity::cacheable);
  // Release: pairs with the engine's look at the word.
  copy.done->store(1, std::memory_order_release);
  if (age() != begun) return;  // a handler has forked meanwhile: this is the child
  channel_->stagings_.fetch_sub(1, std::memory_order_relaxed);
  if (!channel_->enter()) return;
  channel_->poll();
  end();
}

void ChannelTurn::end_with_left() noexcept {
  struct Left {
    Ring* ring;
    ChunkRun run;
  } left[Channel::depth];
  unsigned count = 0;
  for_each(std::exchange(channel_->left_, 0), [&](unsigned number) {
    const Channel::Flight& flight = channel_->room_.flights[number];
    left[count++] = {flight.ring, flight.run};
  });
  chunks_under_way.fetch_sub(count, std::memory_order_relaxed);
  channel_->leave();
  for (unsigned i = 0; i < count; ++i) finish_here(*left[i].ring, left[i].run);
}

}  // namespace haul
