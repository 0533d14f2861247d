#include "counter.hpp"

#include <new>
#include <stdexcept>

#include "boundary.h"

Counter::Counter(std::int64_t start) : value_(start) {}

// Unsigned, because signed overflow is undefined in C++.
std::int64_t Counter::add(std::int64_t n) {
    value_ = static_cast<std::int64_t>(static_cast<std::uint64_t>(value_) + static_cast<std::uint64_t>(n));
    return value_;
}

std::int64_t Counter::value() const { return value_; }

// A frame for each call: what is read after it keeps the compiler from making a loop of them.
std::int64_t Counter::fail(int depth) const {
    if (depth <= 0) {
        throw std::domain_error("as asked");
    }
    const volatile std::int64_t here = value_;
    return fail(depth - 1) + here;
}

struct counter_handle {
    Counter counter;
};

counter_handle *counter_new(std::int64_t start) { return new (std::nothrow) counter_handle{Counter(start)}; }

std::int64_t counter_add(counter_handle *handle, std::int64_t n) { return handle->counter.add(n); }

void counter_delete(counter_handle *handle) { delete handle; }
