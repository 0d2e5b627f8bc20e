#include "study/sensitivities.hpp"

#include <fmt/format.h>
#include <span>
#include <string_view>

#include "study/experiments.hpp"
#include "study/series.hpp"

namespace bcisim {
namespace {

// A value of what changes: its name, and the machine and replay with it.
struct Setting {
  std::string name;
  Configuration configuration;
};

// A scheme that is compared with the traced loop.
struct Contender {
  const char* label;
  Scheme scheme;
  Affinities affinities;
};
constexpr Affinities c_neu{Affinity::cacheable, Affinity::neutral},
    neu_c{Affinity::neutral, Affinity::cacheable}, neu_neu{Affinity::neutral, Affinity::neutral};
constexpr Contender schemes_compared[] = {{"CopyEng", Scheme::copy_engine, {}},
                                          {"0-DMA", Scheme::dma, {}},
                                          {"FastBCI", Scheme::fast_bci, {}},
                                          {"FastBCI NEU_NEU", Scheme::fast_bci, neu_neu}};
constexpr Contender neutral_destinations[] = {{"FastBCI C_NEU", Scheme::fast_bci, c_neu},
                                              {"FastBCI NEU_NEU", Scheme::fast_bci, neu_neu}};
constexpr Contender affinities_compared[] = {{"C_C", Scheme::fast_bci, {}},
                                             {"C_NEU", Scheme::fast_bci, c_neu},
                                             {"NEU_C", Scheme::fast_bci, neu_c},
                                             {"NEU_NEU", Scheme::fast_bci, neu_neu}};

struct Question {
  std::string id, title;
  std::vector<Setting> settings;
  std::span<const Contender> contenders = schemes_compared;
  // The workloads whose names end so are shown one by one; where it is empty, the average of all
  // is.
  std::string_view each_of;
};

template <class Value, class Change>
Question question(std::string id, std::string title, std::initializer_list<Value> values,
                  Change&& change) {
  Question question{std::move(id), std::move(title), {}, schemes_compared, {}};
  for (const Value& value : values) {
    Setting setting;
    setting.name = change(setting.configuration, value);
    question.settings.push_back(std::move(setting));
  }
  return question;
}

struct MemorySetting {
  const char* name;
  unsigned cycles;
  double bytes_per_cycle;
};

// At 4 GHz, a cycle is 0.25 ns.
constexpr MemorySetting paper_memory{"300 cycles, 6.4 GB/s (paper)", 300, 1.6},
    today_memory{"360 cycles (90 ns), 25.6 GB/s", 360, 6.4},
    busy_memory{"800 cycles (200 ns), 6.4 GB/s", 800, 1.6};

std::vector<Question> questions() {
  std::vector<Question> all;
  all.push_back(question("parallelism", "Blocks that the engine has under way",
                         {1U, 2U, 4U, 8U, 16U}, [](Configuration& c, unsigned blocks) {
                           c.parameters.engine_parallel = blocks;
                           return fmt::format("{}", blocks);
                         }));
  all.push_back(
      question("cold", "Where copied buffers lie", {0, 1, 2}, [](Configuration& c, int how) {
        c.replay.cold_copies = how != 0;
        if (how == 2) c.parameters.engine_parallel = 1;
        return std::string(how == 0   ? "as traced"
                           : how == 1 ? "in memory"
                                      : "in memory, one block at a time");
      }));
  all.push_back(question("destination", "Cacheable destination blocks that are wholly written",
                         {true, false}, [](Configuration& c, bool reads) {
                           c.parameters.reads_destination = reads;
                           return std::string(reads ? "read first" : "not read");
                         }));
  all.push_back(question("write-buffer", "Entries of the write-combining buffer",
                         {0U, 1U, 4U, 16U, 64U}, [](Configuration& c, unsigned entries) {
                           c.parameters.write_buffer_entries = entries;
                           return entries == 0 ? std::string("none: done when carried")
                                               : fmt::format("{}", entries);
                         }));
  all.back().contenders = neutral_destinations;
  all.push_back(question("splitting", "Bytes of one bulk instruction at most",
                         {256U, 512U, 1024U, 2048U, 4096U}, [](Configuration& c, unsigned bytes) {
                           c.replay.most_copy_bytes = bytes;
                           return fmt::format("{}", bytes);
                         }));
  all.push_back(question("least", "Copies of so many bytes or more by bulk instructions",
                         {1U, 64U, 256U, 1024U}, [](Configuration& c, unsigned bytes) {
                           c.replay.least_copy_bytes = bytes;
                           return fmt::format("{}", bytes);
                         }));
  all.push_back(question("fills", "What bulk instructions replace", {false, true},
                         [](Configuration& c, bool fills) {
                           c.replay.fills = fills;
                           return std::string(fills ? "copies and fills" : "copies");
                         }));
  const auto with_l2 = [](Configuration& c, unsigned kib) {
    c.parameters.l2.bytes = std::uint64_t{kib} << 10;
    return fmt::format("{} KB", kib);
  };
  all.push_back(question("l2", "Size of the L2 cache",
                         {128U, 256U, 512U, 1024U, 2048U, 4096U, 8192U}, with_l2));
  // The paper's order of affinities at receivers is that of small caches.
  all.push_back(question("receivers", "Affinities at the receivers, by the size of the L2 cache",
                         {64U, 128U, 256U, 512U, 1024U}, with_l2));
  all.back().contenders = affinities_compared;
  all.back().each_of = "-receiver";
  all.push_back(question("memory", "Memory", {paper_memory, today_memory, busy_memory},
                         [](Configuration& c, const MemorySetting& memory) {
                           c.parameters.memory_cycles = memory.cycles;
                           c.parameters.bus_bytes_per_cycle = memory.bytes_per_cycle;
                           return std::string(memory.name);
                         }));
  return all;
}

std::string name_of_run(const Question& question, const Setting& setting, const char* label) {
  return question.id + ": " + setting.name + ": " + label;
}

Figure figure_of(const Question& question, const Experiments& experiments) {
  const bool is_average = question.each_of.empty();
  Figure figure{question.id,
                question.title,
                is_average ? "average speedup over the loop, %" : "speedup over the loop, %",
                Drawing::bars,
                {},
                {}};
  for (const Contender& contender : question.contenders)
    figure.series.push_back({contender.label, {}, {}});
  const auto add = [&](std::string category, const Setting& setting, auto value_of) {
    figure.categories.push_back(std::move(category));
    for (Series& series : figure.series) {
      const std::string run = name_of_run(question, setting, series.name.c_str());
      series.values.push_back(value_of([&, run](std::size_t workload) {
        return experiments.speedup(workload, run, name_of_run(question, setting, "loop"));
      }));
      series.paper.emplace_back();
    }
  };
  if (is_average) {
    for (const Setting& setting : question.settings) {
      add(setting.name, setting, [&experiments](const auto& speedup) {
        return with_average(experiments, speedup).back();
      });
    }
    return figure;
  }
  for (std::size_t i = 0; i < experiments.workloads().size(); ++i) {
    const std::string& name = experiments.workloads()[i].name;
    if (!name.ends_with(question.each_of)) continue;
    for (const Setting& setting : question.settings) {
      add(name + " " + setting.name, setting, [i](const auto& speedup) { return speedup(i); });
    }
  }
  return figure;
}

}  // namespace

std::vector<Figure> sensitivities(const std::vector<Workload>& workloads,
                                  const SimulationOptions& options) {
  const std::vector<Question> all = questions();
  Experiments experiments(workloads);
  for (const Question& question : all) {
    for (const Setting& setting : question.settings) {
      experiments.add(name_of_run(question, setting, "loop"), setting.configuration);
      for (const Contender& contender : question.contenders) {
        Configuration configuration = setting.configuration;
        configuration.replay.scheme = contender.scheme;
        configuration.replay.affinities.all = contender.affinities;
        experiments.add(name_of_run(question, setting, contender.label), configuration);
      }
    }
  }
  experiments.run(options);
  std::vector<Figure> figures;
  for (const Question& question : all) {
    Figure figure = figure_of(question, experiments);
    if (!figure.categories.empty()) figures.push_back(std::move(figure));
  }
  return figures;
}

}  // namespace bcisim
