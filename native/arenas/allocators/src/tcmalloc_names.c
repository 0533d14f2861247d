/* TCMalloc under the names of the C library. Its crate compiles it with names of its own only, for Rust. */
#define _GNU_SOURCE
#include <stddef.h>

#define API __attribute__((visibility("default")))

/* [names] */
void *TCMallocInternalMalloc(size_t);
void TCMallocInternalFree(void *);
void *TCMallocInternalCalloc(size_t, size_t);
void *TCMallocInternalRealloc(void *, size_t);
void *TCMallocInternalReallocArray(void *, size_t, size_t);
void *TCMallocInternalMemalign(size_t, size_t);
void *TCMallocInternalAlignedAlloc(size_t, size_t);
int TCMallocInternalPosixMemalign(void **, size_t, size_t);
void *TCMallocInternalValloc(size_t);
void *TCMallocInternalPvalloc(size_t);
size_t TCMallocInternalMallocSize(void *);

API void *malloc(size_t size) { return TCMallocInternalMalloc(size); }
API void free(void *block) { TCMallocInternalFree(block); }
API void *calloc(size_t count, size_t size) { return TCMallocInternalCalloc(count, size); }
API void *realloc(void *block, size_t size) { return TCMallocInternalRealloc(block, size); }
API void *reallocarray(void *block, size_t count, size_t size) { return TCMallocInternalReallocArray(block, count, size); }
API void *memalign(size_t alignment, size_t size) { return TCMallocInternalMemalign(alignment, size); }
API void *aligned_alloc(size_t alignment, size_t size) { return TCMallocInternalAlignedAlloc(alignment, size); }
API int posix_memalign(void **block, size_t alignment, size_t size) {
    return TCMallocInternalPosixMemalign(block, alignment, size);
}
API void *valloc(size_t size) { return TCMallocInternalValloc(size); }
API void *pvalloc(size_t size) { return TCMallocInternalPvalloc(size); }
API size_t malloc_usable_size(void *block) { return TCMallocInternalMallocSize(block); }
/* [/names] */
