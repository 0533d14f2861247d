// cxx hands C++ objects to Rust through a unique_ptr.
#pragma once

#include <memory>

#include "counter.hpp"

inline std::unique_ptr<Counter> make_counter(std::int64_t start) { return std::make_unique<Counter>(start); }
