#include "counter.hpp"

#include <new>

#include "boundary.h"

Counter::Counter(std::int64_t start) : value_(start) {}

// Unsigned, because signed overflow is undefined in C++.
std::int64_t Counter::add(std::int64_t n) {
    value_ = static_cast<std::int64_t>(static_cast<std::uint64_t>(value_) + static_cast<std::uint64_t>(n));
    return value_;
}

std::int64_t Counter::value() const { return value_; }

struct counter_handle {
    Counter counter;
};

counter_handle *counter_new(std::int64_t start) { return new (std::nothrow) counter_handle{Counter(start)}; }

std::int64_t counter_add(counter_handle *handle, std::int64_t n) { return handle->counter.add(n); }

void counter_delete(counter_handle *handle) { delete handle; }
