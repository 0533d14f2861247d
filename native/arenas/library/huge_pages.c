/* Preload this to get huge pages for all that a program maps, as with transparent_hugepage set to `always`.
 * It changes this one process only. glibc's own mappings, for arenas and stacks, do not pass here. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/types.h>

/* [mmap] */
__attribute__((visibility("default"))) void *mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset) {
    static void *(*real)(void *, size_t, int, int, int, off_t);
    if (!real) {
        real = dlsym(RTLD_NEXT, "mmap");
    }
    void *memory = real(address, bytes, protection, flags, file, offset);
#ifdef MADV_HUGEPAGE
    if (memory != MAP_FAILED && flags & MAP_ANONYMOUS) {
        madvise(memory, bytes, MADV_HUGEPAGE);
    }
#endif
    return memory;
}
/* [/mmap] */

#ifdef __GLIBC__
/* What programs with large files call. */
__attribute__((visibility("default"), alias("mmap"))) void *mmap64(void *, size_t, int, int, int, off64_t);
#endif
