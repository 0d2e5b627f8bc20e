// A driver's library of before the functions that haul needs: it has one of them.
extern "C" [[gnu::visibility("default")]] int cuInit(unsigned) {
  return 0;
}
