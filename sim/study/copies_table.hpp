// What paper 003 says of copies in its text, III-C, IV and VI, rather than in figures.
#pragma once

#include "study/experiments.hpp"
#include "study/figures.hpp"

namespace bcisim {

// Of experiments that have run "traditional", "copy-engine", "0-dma" and bci({}).
Figure copies_table(const Experiments& experiments);

}  // namespace bcisim
