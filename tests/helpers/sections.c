/* Locks of the interpreter, and what ThreadSanitizer must know of them: the linker puts these in their places. Weak: not
   every module calls each of them. */
typedef struct { void *previous, *mutex, *second; } Section;
void __tsan_acquire(void *), __tsan_release(void *);
#define SEEN(name, arguments, given, before, after)      \
    __attribute__((weak)) void __real_##name arguments;  \
    void __wrap_##name arguments { before; __real_##name given; after; }
#define ENTER(mutex) if (mutex) __tsan_acquire(mutex)
#define LEAVE(mutex) if (mutex) __tsan_release(mutex)
SEEN(PyMutex_Lock, (void *m), (m), , ENTER(m))
SEEN(PyMutex_Unlock, (void *m), (m), LEAVE(m), )
SEEN(PyCriticalSection_Begin, (Section *s, void *o), (s, o), , ENTER(s->mutex))
SEEN(_PyCriticalSection_BeginSlow, (Section *s, void *m), (s, m), , ENTER(s->mutex))
SEEN(PyCriticalSection_BeginMutex, (Section *s, void *m), (s, m), , ENTER(s->mutex))
SEEN(PyCriticalSection_End, (Section *s), (s), LEAVE(s->mutex), )
SEEN(PyCriticalSection2_Begin, (Section *s, void *a, void *b), (s, a, b), , ENTER(s->mutex); ENTER(s->second))
SEEN(PyCriticalSection2_End, (Section *s), (s), LEAVE(s->mutex); LEAVE(s->second), )
