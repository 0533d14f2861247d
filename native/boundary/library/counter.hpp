// The C++ class that every binding exposes under the same name.
#pragma once

#include <cstdint>

// [class]
class Counter {
public:
    explicit Counter(std::int64_t start);
    std::int64_t add(std::int64_t n); // returns the new value; wraps around
    std::int64_t value() const;
    std::int64_t fail(int depth) const; // throws std::domain_error, from so many calls below

private:
    std::int64_t value_;
};
// [/class]
