// A video pipeline: frames are decoded band by band, and each band is packed into a ring of frames
// for the next stage: by memcpy between the bands, or by haul while the decoder goes on.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <haul/haul.hpp>

constexpr std::size_t margin = 64, band = 90, ring = 8;
enum Way { by_memcpy, to_be_read_soon, for_later, ways };  // by haul: what the next stage does

// NV12: rows of luma, then half as many of chroma, with margins, as motion leads out of a picture.
struct Pipeline {
  std::size_t width, rows, stride = width + 2 * margin;
  std::vector<std::uint8_t> decoded = std::vector<std::uint8_t>(2 * rows * stride, 16);
  std::vector<std::uint8_t> frames = std::vector<std::uint8_t>(ring * rows * width);
  std::vector<haul::ticket> under_way = {};

  auto* row(unsigned n, std::size_t y) { return &decoded[(n % 2 * rows + y) * stride + margin]; }
  auto* packed(unsigned n, std::size_t y) { return &frames[(n % ring * rows + y) * width]; }

  // Takes a row of the frame before, moved by half a pixel, and corrects it.
  void decode(std::uint8_t* to, const std::uint8_t* from, std::size_t noise) {
    for (std::size_t x = 0; x < width; ++x)
      to[x] = std::uint8_t(((from[x] + from[x + 1] + 1) / 2) ^ ((x ^ noise) & 3));
  }

  // One request gathers the rows. It is dedicated, since this thread has better to do: the planner
  // would leave to it what lies in its cache.
  void pack(unsigned n, std::size_t y, Way way) {
    haul_extent from[band];
    for (std::size_t i = 0; i < band; ++i) from[i] = {HAUL_SPACE_SELF, 0, row(n, y + i), width};
    haul_request request = haul_request_copy(packed(n, y), nullptr, band * width);
    request.src_vector = from;
    request.src_count = band;
    request.dst_affinity = way == for_later ? HAUL_NON_CACHEABLE : HAUL_CACHEABLE;
    request.flags = HAUL_DEDICATED;
    haul::submit({&request, 1}, under_way);
  }

  // How many milliseconds frame n takes until the next stage can have it.
  double make(unsigned n, Way way) {
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t y = 0; y < rows; y += band) {
      for (std::size_t i = y; i < y + band; ++i) decode(row(n, i), row(n + 1, i), i ^ n);
      if (way != by_memcpy) pack(n, y, way);
      for (std::size_t i = y; way == by_memcpy && i < y + band; ++i)
        memcpy(packed(n, i), row(n, i), width);
    }
    for (const haul::ticket& packing : std::exchange(under_way, {})) packing.wait();
    const auto took = std::chrono::steady_clock::now() - begin;
    return std::chrono::duration<double, std::milli>(took).count();
  }
};

double at(std::vector<double> values, std::size_t percentile) {
  std::sort(values.begin(), values.end());
  return values[(values.size() - 1) * percentile / 100];
}

int main(int argc, char** argv) try {
  const bool measure = argc == 2 && strcmp(argv[1], "--measure") == 0;
  for (Pipeline p : {Pipeline{1920, 1080 * 3 / 2}, Pipeline{3840, 2160 * 3 / 2}}) {
    std::vector<double> ms[ways], ratio[ways];
    for (unsigned n = 0; n < (measure ? 600 : 24); ++n) {
      const Way way = Way(n % ways);  // they take turns
      ms[way].push_back(p.make(n, way));
      ratio[way].push_back(ms[way].back() / ms[by_memcpy].back());
      for (std::size_t y = 0; y < p.rows; ++y)
        if (memcmp(p.packed(n, y), p.row(n, y), p.width) != 0) throw std::runtime_error("WRONG");
    }
    printf("frames %zu pixels wide: every byte of each is right\n", p.width);
    const char* names[] = {"memcpy:", "haul, read soon:", "haul, for later:"};
    for (int i = 0; measure && i < ways; ++i)
      printf("  %-16s p50 %6.2f ms, p99 %6.2f ms, ratio %.2f (%.2f to %.2f)\n", names[i],
             at(ms[i], 50), at(ms[i], 99), at(ratio[i], 50), at(ratio[i], 25), at(ratio[i], 75));
  }
} catch (const std::exception& failed) {
  return fprintf(stderr, "%s\n", failed.what()), 1;
}
