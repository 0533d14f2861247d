/* A std::mutex, for C. */
#include "standard.h"

#include <mutex>
#include <new>

void *standard_new(void) { return new (std::nothrow) std::mutex; }
void standard_delete(void *mutex) { delete static_cast<std::mutex *>(mutex); }
void standard_lock(void *mutex) { static_cast<std::mutex *>(mutex)->lock(); }
void standard_unlock(void *mutex) { static_cast<std::mutex *>(mutex)->unlock(); }
