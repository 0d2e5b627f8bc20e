// Doubly-linked lists through their elements: no allocation, removal in one step. An element is in
// at most one list of a tag type at a time.
#pragma once

namespace haul::fabric {

template <class Tag>
struct Link {
  Link* previous = nullptr;
  Link* next = nullptr;
  bool linked() const noexcept { return next != nullptr; }
  void unlink() noexcept {
    if (!linked()) return;
    previous->next = next;
    next->previous = previous;
    previous = next = nullptr;
  }
};

// A place in a table by tag (matching/index/tag_table.hpp).
struct InTable {};
struct TableEntry : Link<InTable> {};

// Elements are derived from Link<Tag>.
template <class Element, class Tag>
class List {
 public:
  List() noexcept { head_.previous = head_.next = &head_; }
  List(const List&) = delete;
  List& operator=(const List&) = delete;

  bool empty() const noexcept { return head_.next == &head_; }
  Element* front() noexcept { return empty() ? nullptr : of(head_.next); }
  Element* back() noexcept { return empty() ? nullptr : of(head_.previous); }
  // The element behind, or nullptr at the end.
  Element* after(Element& element) noexcept {
    Link<Tag>* next = static_cast<Link<Tag>&>(element).next;
    return next == &head_ ? nullptr : of(next);
  }
  // The one in front, or nullptr at the begin.
  Element* before(Element& element) noexcept {
    Link<Tag>* previous = static_cast<Link<Tag>&>(element).previous;
    return previous == &head_ ? nullptr : of(previous);
  }
  void push_back(Element& element) noexcept { insert(element, head_); }
  void push_front(Element& element) noexcept { insert(element, *head_.next); }

 private:
  static Element* of(Link<Tag>* link) noexcept { return static_cast<Element*>(link); }
  void insert(Element& element, Link<Tag>& before) noexcept {
    auto& link = static_cast<Link<Tag>&>(element);
    link.previous = before.previous;
    link.next = &before;
    before.previous->next = &link;
    before.previous = &link;
  }
  Link<Tag> head_;
};

}  // namespace haul::fabric
