// One piece of memory of the model: what a program may have under a copy's destination, and a
// shadow of what it must hold, which only this file's loops write and read.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace transparent {

enum class Kind : unsigned {
  mapped,        // private and new
  allocated,     // by malloc()
  shared,        // MAP_SHARED without a file
  file_private,  // a file's, copied on write
  file_shared,   // a file's
  small_pages,   // MADV_NOHUGEPAGE
  huge_pages,    // MADV_HUGEPAGE
  count_
};

class Region {
 public:
  Region() = default;
  ~Region() { drop(); }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  unsigned char* data() const { return data_; }
  std::size_t size() const { return size_; }
  Kind kind() const { return kind_; }

  // Anew, of that kind and size. False: there is no memory, and the region is empty.
  bool make(Kind kind, std::size_t size) {
    drop();
    kind_ = kind;
    void* at = MAP_FAILED;
    constexpr int rights = PROT_READ | PROT_WRITE;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    switch (kind) {
      case Kind::allocated: at = std::malloc(size); break;
      case Kind::shared: flags = MAP_SHARED | MAP_ANONYMOUS; break;
      case Kind::file_private:
      case Kind::file_shared:
        flags = kind == Kind::file_private ? MAP_PRIVATE : MAP_SHARED;
        file_ = memfd_create("model", MFD_CLOEXEC);
        if (file_ < 0 || ftruncate(file_, static_cast<off_t>(size)) != 0) return false;
        break;
      default: break;
    }
    if (kind != Kind::allocated) at = mmap(nullptr, size, rights, flags, file_, 0);
    if (at == nullptr || at == MAP_FAILED || !resize_shadow(size)) {
      if (at == MAP_FAILED) at = nullptr;
      data_ = static_cast<unsigned char*>(at);
      size_ = at == nullptr ? 0 : size;
      drop();
      return false;
    }
    data_ = static_cast<unsigned char*>(at);
    size_ = size;
    if (kind == Kind::small_pages) madvise(at, size, MADV_NOHUGEPAGE);
    if (kind == Kind::huge_pages) madvise(at, size, MADV_HUGEPAGE);
    // What malloc() gives is not defined; the shadow follows it.
    for (std::size_t i = 0; kind == Kind::allocated && i < size; ++i) shadow_[i] = data_[i];
    return true;
  }

  void drop() {
    if (data_ != nullptr && kind_ == Kind::allocated) std::free(data_);
    if (data_ != nullptr && kind_ != Kind::allocated) munmap(data_, size_);
    if (file_ >= 0) close(file_);
    if (shadow_ != nullptr) munmap(shadow_, shadow_size_);
    data_ = shadow_ = nullptr;
    size_ = shadow_size_ = 0;
    file_ = -1;
  }

  // By realloc() or mremap(), as the kind has it. What was there stays; what comes is as new.
  bool resize(std::size_t size) {
    const std::size_t kept = size < size_ ? size : size_;
    void* at;
    if (kind_ == Kind::allocated) {
      at = std::realloc(data_, size);
      if (at == nullptr) return false;
    } else {
      if (file_ >= 0 && ftruncate(file_, static_cast<off_t>(size)) != 0) return false;
      // A shared mapping without a file does not grow beyond what it was made with.
      if (kind_ == Kind::shared && size > size_) return false;
      at = mremap(data_, size_, size, MREMAP_MAYMOVE);
      if (at == MAP_FAILED) return false;
    }
    data_ = static_cast<unsigned char*>(at);
    if (!resize_shadow(size)) return false;
    // What lay behind the end within its page is no matter of this model.
    if (kind_ == Kind::allocated || size > kept)
      for (std::size_t i = kept; i < size; ++i) shadow_[i] = data_[i];
    size_ = size;
    return true;
  }

  // munmap() of all behind `size`, which is whole pages of a mapping.
  void cut(std::size_t size) {
    munmap(data_ + size, size_ - size);
    size_ = size;
  }

  // MADV_DONTNEED; only memory without a file is zero afterwards.
  void forget(std::size_t begin, std::size_t length) {
    if (kind_ != Kind::mapped && kind_ != Kind::small_pages && kind_ != Kind::huge_pages) return;
    begin &= ~std::size_t{4095};
    length &= ~std::size_t{4095};
    if (length == 0 || begin + length > size_) return;
    if (madvise(data_ + begin, length, MADV_DONTNEED) != 0) return;
    for (std::size_t i = 0; i < length; ++i) shadow_[begin + i] = 0;
  }

  // The model's own copies and fills. (No compiler may make calls of libc of these loops:
  // transparent.cmake has the options.)
  void model_copy(std::size_t at, const Region& from, std::size_t from_at, std::size_t length) {
    unsigned char* to = shadow_ + at;
    const unsigned char* source = from.shadow_ + from_at;
    if (to <= source) {
      for (std::size_t i = 0; i < length; ++i) to[i] = source[i];
    } else {
      for (std::size_t i = length; i-- > 0;) to[i] = source[i];
    }
  }
  void model_fill(std::size_t at, unsigned char value, std::size_t length) {
    for (std::size_t i = 0; i < length; ++i) shadow_[at + i] = value;
  }

  static constexpr std::size_t none = ~std::size_t{0};
  // The first byte of [begin, end) that is not as it must be.
  std::size_t first_wrong(std::size_t begin, std::size_t end) const {
    if (end > size_) end = size_;
    for (std::size_t i = begin; i < end; ++i)
      if (data_[i] != shadow_[i]) return i;
    return none;
  }
  unsigned shadow_at(std::size_t at) const { return shadow_[at]; }

 private:
  bool resize_shadow(std::size_t size) {
    void* at = shadow_ == nullptr
                   ? mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                   : mremap(shadow_, shadow_size_, size, MREMAP_MAYMOVE);
    if (at == MAP_FAILED) return false;
    shadow_ = static_cast<unsigned char*>(at);
    shadow_size_ = size;
    return true;
  }

  Kind kind_ = Kind::mapped;
  int file_ = -1;
  unsigned char* data_ = nullptr;
  unsigned char* shadow_ = nullptr;
  std::size_t size_ = 0, shadow_size_ = 0;
};

}  // namespace transparent
