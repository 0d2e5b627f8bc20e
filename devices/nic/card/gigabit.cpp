#include "devices/nic/card/gigabit.hpp"

#include <unistd.h>

namespace haul::nic {
namespace {

constexpr std::uint64_t anywhere = std::uint64_t{1} << 63;
constexpr CardModel models[] = {
    {0x8086, 0x100e, "82540EM", 16128, 40, false, anywhere},
    {0x8086, 0x100f, "82545EM", 16128, 40, false, anywhere},
    {0x8086, 0x10d3, "82574L", 9216, 20, true, 4096},
};

// Registers, by the names of Intel's manuals, and their bits.
constexpr std::uint32_t ctrl = 0x0000, status = 0x0008, mdic = 0x0020, icr = 0x00c0, imc = 0x00d8;
constexpr std::uint32_t rctl = 0x0100, tctl = 0x0400, tipg = 0x0410, pba = 0x1000;
constexpr std::uint32_t rdbal = 0x2800, rdbah = 0x2804, rdlen = 0x2808, rdh = 0x2810, rdt = 0x2818;
constexpr std::uint32_t rdtr = 0x2820, rxdctl = 0x2828, radv = 0x282c;
constexpr std::uint32_t tdbal = 0x3800, tdbah = 0x3804, tdlen = 0x3808, tdh = 0x3810, tdt = 0x3818;
constexpr std::uint32_t tidv = 0x3820, txdctl = 0x3828, tadv = 0x382c, tarc0 = 0x3840;
constexpr std::uint32_t rxcsum = 0x5000, rfctl = 0x5008, mta = 0x5200;

constexpr std::uint32_t ctrl_full_duplex = 1 << 0, ctrl_no_master = 1 << 2, ctrl_asde = 1 << 5,
                        ctrl_link_up = 1 << 6, ctrl_invert_loss = 1 << 7, ctrl_gigabit = 2 << 8,
                        ctrl_force_speed = 1 << 11, ctrl_force_duplex = 1 << 12,
                        ctrl_reset = 1 << 26;
constexpr std::uint32_t status_link_up = 1 << 1, status_master = 1 << 19;
constexpr std::uint32_t rctl_enable = 1 << 1, rctl_promiscuous = 3 << 3, rctl_long = 1 << 5,
                        rctl_broadcast = 1 << 15, rctl_size_shift = 16, rctl_strip_sum = 1 << 26;
constexpr std::uint32_t tctl_enable = 1 << 1, tctl_pad = 1 << 3, tctl_collisions = 15 << 4,
                        tctl_distance = 64 << 12;
// Between frames, for copper: IPGT, IPGR1 and IPGR2.
constexpr std::uint32_t gaps = 8 | 8 << 10 | 6 << 20;
// Thresholds count descriptors; each one is written back when it is done.
constexpr std::uint32_t rxdctl_at_once = 1 << 24 | 1 << 16, txdctl_at_once = 1 << 24 | 1 << 22;

constexpr unsigned millisecond_us = 1000;

}  // namespace

const CardModel* card_model(std::uint16_t vendor, std::uint16_t device) noexcept {
  for (const CardModel& model : models)
    if (model.vendor == vendor && model.device == device) return &model;
  return nullptr;
}

void GigabitCard::reset(const CardModel& model, volatile std::uint32_t* registers) noexcept {
  model_ = &model;
  registers_ = registers;
  constexpr std::uint32_t all = 0xffff'ffff;
  write(imc, all);
  stop();
  if (model.successor) {
    write(ctrl, read(ctrl) | ctrl_no_master);
    for (unsigned look = 0; look < 100 && (read(status) & status_master) != 0; ++look)
      usleep(millisecond_us);
  }
  usleep(10 * millisecond_us);
  write(ctrl, (read(ctrl) & ~ctrl_no_master) | ctrl_reset);
  // (It reads its settings from its memory anew.)
  usleep(10 * millisecond_us);
  for (unsigned look = 0; look < 100 && (read(ctrl) & ctrl_reset) != 0; ++look)
    usleep(millisecond_us);
  write(imc, all);
  read(icr);
}

bool GigabitCard::write_transceiver(std::uint32_t at, std::uint16_t value) noexcept {
  constexpr std::uint32_t first_transceiver = 1 << 21, writes = 1 << 26, ready = 1 << 28;
  write(mdic, value | at << 16 | first_transceiver | writes);
  for (unsigned look = 0; look < 100; ++look) {
    if ((read(mdic) & ready) != 0) return true;
    usleep(50);
  }
  return false;
}

void GigabitCard::start_link(bool plugged) noexcept {
  constexpr std::uint32_t control = 0;
  constexpr std::uint16_t looped = 1 << 14, negotiates = 1 << 12, anew = 1 << 9,
                          full_duplex = 1 << 8, gigabit = 1 << 6;
  constexpr std::uint32_t forced =
      ctrl_force_speed | ctrl_force_duplex | ctrl_gigabit | ctrl_full_duplex | ctrl_invert_loss;
  const std::uint32_t others = read(ctrl) & ~(forced | ctrl_asde | ctrl_no_master);
  if (plugged) {
    write(ctrl, others | ctrl_link_up | ctrl_asde | ctrl_full_duplex);
    write_transceiver(control, negotiates | anew | full_duplex);
    return;
  }
  write_transceiver(control, looped | full_duplex | gigabit);
  write(ctrl, others | ctrl_link_up | (model_->successor ? forced & ~ctrl_invert_loss : forced));
}

bool GigabitCard::start(CardRing receive, CardRing send, std::size_t buffer_bytes,
                        bool plugged) noexcept {
  start_link(plugged);
  write(pba, model_->receive_buffer_kib);
  constexpr std::uint32_t groups = 128;
  for (std::uint32_t group = 0; group < groups; ++group) write(mta + 4 * group, 0);
  write(rxcsum, 0);
  if (model_->successor) {
    write(rfctl, 0);
    constexpr std::uint32_t queue_enabled = 1 << 10;
    write(tarc0, read(tarc0) | queue_enabled);
  }

  write(rdbal, static_cast<std::uint32_t>(receive.iova));
  write(rdbah, static_cast<std::uint32_t>(receive.iova >> 32));
  write(rdlen, receive.entries * static_cast<std::uint32_t>(sizeof(CardDescriptor)));
  write(rdh, 0);
  write(rdt, 0);
  write(rdtr, 0);
  write(radv, 0);
  write(rxdctl, rxdctl_at_once);
  write(tdbal, static_cast<std::uint32_t>(send.iova));
  write(tdbah, static_cast<std::uint32_t>(send.iova >> 32));
  write(tdlen, send.entries * static_cast<std::uint32_t>(sizeof(CardDescriptor)));
  write(tdh, 0);
  write(tdt, 0);
  write(tidv, 0);
  write(tadv, 0);
  write(txdctl, txdctl_at_once);
  write(tipg, gaps);
  write(tctl, tctl_enable | tctl_pad | tctl_collisions | tctl_distance);
  const std::uint32_t size = buffer_bytes == 2048   ? 0
                             : buffer_bytes == 1024 ? 1
                             : buffer_bytes == 512  ? 2
                                                    : 3;
  // (The card strips the sum of what it receives, and takes all in: the addresses are nobody's.)
  write(rctl, rctl_enable | rctl_promiscuous | rctl_long | rctl_broadcast |
                  size << rctl_size_shift | rctl_strip_sum);
  constexpr unsigned patience_s = 5, looks_a_s = 100;
  for (unsigned look = 0; look < patience_s * looks_a_s; ++look) {
    if ((read(status) & status_link_up) != 0) return true;
    usleep(1'000'000 / looks_a_s);
  }
  return false;
}

void GigabitCard::stop() noexcept {
  write(rctl, 0);
  write(tctl, 0);
  read(status);
}

}  // namespace haul::nic
